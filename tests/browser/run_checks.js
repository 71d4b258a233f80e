// Appended to a copy of a page before its checks: calls them, and writes what they find into the page, a line each,
// "ok WHAT" or "not ok WHAT", and at the end that all of them ran.
'use strict';
const runChecks = async (checks) => {
  const results = [];
  const check = (what, holds) => results.push(`${holds ? 'ok' : 'not ok'} ${what}`);
  try {
    await checks(check);
    check('nothing is fetched', performance.getEntriesByType('resource').length === 0);
    check('all checks ran', true);
  } catch (error) {
    check(`an exception: ${error.stack}`, false);
  }
  const shown = document.createElement('pre');
  shown.id = 'checks';
  shown.textContent = `\n${results.join('\n')}\n`;
  document.body.append(shown);
};
