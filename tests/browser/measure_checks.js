// Appended to a copy of the page of a measurement: uses it as a reader would, and writes what it finds into the page as
// page_checks.js does.
'use strict';
(async () => {
  const results = [];
  const check = (what, holds) => results.push(`${holds ? 'ok' : 'not ok'} ${what}`);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const measured = JSON.parse(document.getElementById('data').textContent);
  const own = () => [...document.getElementById('rows').children].filter((tr) => tr.children.length > 1);
  const names = () => own().map((tr) => tr.firstChild.textContent);
  const heading = (within, name) => [...within.querySelectorAll('th button')].find((button) => button.textContent === name);
  const isSorted = (list, down) => list.every((value, i) => i === 0 || (down ? list[i - 1] >= value : list[i - 1] <= value));
  try {
    check('a row for each tensor', own().length === measured.tensors.length);
    const top = document.getElementById('head'), type = measured.types[0];
    heading(top, type).click();
    const error = (name) => measured.tensors.find((tensor) => tensor[0] === name)[3][0][1];
    check('a click sorts', isSorted(names().map(error), false));
    heading(top, type).click();
    check('another sorts the other way', isSorted(names().map(error), true));
    check('which is said', heading(top, type).parentNode.getAttribute('aria-sort') === 'descending');
    const experts = measured.tensors.filter((tensor) => tensor[4]);
    const openers = all('#rows td button');
    check('a tensor of several matrices opens', experts.length === 1 && openers.length === 1);
    check('and is closed at first', openers[0].getAttribute('aria-expanded') === 'false' && all('#rows table').length === 0);
    openers[0].click();
    const table = document.querySelector('#rows table'), count = experts[0][4][0].length;
    check('it shows each matrix', table.tBodies[0].rows.length === count);
    heading(table, type).click();
    const order = [...table.tBodies[0].rows].map((tr) => experts[0][4][0][Number(tr.firstChild.textContent)]);
    check('sorted by a type', order.length === count && isSorted(order, false));
    heading(top, 'weights').click();
    check('it stays open below its tensor', openers[0].closest('tr').nextSibling.contains(table));
    check('the rest is sorted', isSorted(names().map((name) => measured.tensors.find((tensor) => tensor[0] === name)[2]), false));
    openers[0].click();
    check('and closes', all('#rows table').length === 0 && openers[0].getAttribute('aria-expanded') === 'false');
    const find = document.getElementById('find');
    find.value = 'attn_q';
    find.dispatchEvent(new Event('input'));
    check('a search shows what it names', names().length > 0 && names().every((name) => name.includes('attn_q')));
    check('no name became markup', !document.getElementById('pwned') && window.pwned === undefined);
    check('nothing is fetched', performance.getEntriesByType('resource').length === 0);
    check('all checks ran', true);
  } catch (error) {
    check(`an exception: ${error.stack}`, false);
  }
  const shown = document.createElement('pre');
  shown.id = 'checks';
  shown.textContent = `\n${results.join('\n')}\n`;
  document.body.append(shown);
})();
