// Runs the checks of a page. This file is appended to a copy of the page, before the file with the checks. Writes one
// line for each result into the page, "ok WHAT" or "not ok WHAT", and a last line if all checks ran.
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

// Checks the grid that shows the tensor types of two models.
const checkGrid = (check, two) => {
  const cells = [...document.querySelectorAll('#grid .grid-cell')];
  const types = new Map();
  two.forEach((model, i) => model.tensors.forEach((tensor) => {
    if (!types.has(tensor.name)) types.set(tensor.name, ['–', '–']);
    types.get(tensor.name)[i] = tensor.type;
  }));
  check('a cell for each tensor of the two models', cells.length === types.size);
  const nameOf = (cell) => [...types.keys()].find((name) => cell.title.startsWith(name + ' · '));
  check('with the type of each', cells.every((cell) => {
    const shown = cell.title.slice(nameOf(cell).length + 3).split(' · ').map((words) => words.split(',')[0]);
    return shown.join() === types.get(nameOf(cell)).join();
  }));
  check('marked where they differ', cells.every((cell) => {
    const [a, b] = types.get(nameOf(cell));
    return cell.classList.contains('differs') === (a !== b && a !== '–' && b !== '–');
  }));
  const colours = new Map();
  const add = (type, made) => {
    if (!colours.has(type)) colours.set(type, new Set());
    colours.get(type).add(getComputedStyle(made).backgroundColor);
  };
  for (const cell of cells)
    types.get(nameOf(cell)).forEach((type, i) => { if (type !== '–') add(type, cell.querySelectorAll('i')[i]); });
  for (const made of document.querySelectorAll('.legend li')) add(made.textContent.split(',')[0], made.firstChild);
  const used = [...colours.values()].map((set) => [...set]);
  check('each type has one colour', used.every((set) => set.length === 1));
  check('and no other has it', new Set(used.flat()).size === used.length);
};
