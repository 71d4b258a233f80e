const measured = pageData();  // format: see measure_page.cpp
const columns = [['tensor', (t) => t[0]], ['shape', (t) => t[2]], ['weights', (t) => t[2]],
  ...measured.types.map((name, i) => [name, (t) => t[3][i] ? t[3][i][1] : Infinity])];

// ---- heat ----

const errors = measured.tensors.flatMap((t) => t[3]).filter((f) => f && f[1] > 0).map((f) => f[1]);

// Returns a logarithmic heat scale for the errors: its range, and a function that returns the style for an error.
function scaleOf(errors) {
  const least = errors.reduce((a, b) => Math.min(a, b), Infinity), most = errors.reduce((a, b) => Math.max(a, b), 0);
  const heat = (error) => error > 0 ? Math.min(Math.max(Math.log(error / least) / (Math.log(most / least) || 1), 0.04), 1) : 0;
  return {least, most, style: (error) => ({'--heat': heat(error).toFixed(3)})};
}
const scale = scaleOf(errors);

function showGrid() {
  const at = Number(byId('type').value);
  const own = scaleOf(measured.tensors.filter((t) => t[3][at] && t[3][at][1] > 0).map((t) => t[3][at][1]));
  byId('least').textContent = own.most > 0 ? own.least.toPrecision(2) : '';
  byId('most').textContent = own.most > 0 ? own.most.toPrecision(2) : '';
  const tensors = measured.tensors.filter((t) => t[3][at]).map((t) => {
    const [bits, error] = t[3][at];
    const words = `${measured.types[at]}, ${bits.toFixed(2)} bits, ${error.toPrecision(3)}`;
    return {name: t[0], bands: [{class: 'heat', style: own.style(error), label: error.toPrecision(2), words}]};
  });
  byId('grid').replaceChildren(...layerGrid(tensors, (words) => { byId('status').textContent = words; }));
}

// ---- table ----

const cell = (text) => element('td', {}, String(text));
const number = (text) => element('td', {class: 'number'}, text);
const errorCell = (error) => element('td', {class: 'number heat', style: scale.style(error)}, error.toPrecision(3));

// Returns a heading for each column that sorts by it when clicked. `sort` is called with the column's index and true if
// the largest values come first.
function headings(names, left, sort) {
  let by = -1, down = false;
  const made = names.map((name, i) => element('th', {scope: 'col', class: i < left ? '' : 'number'}, element('button', {type: 'button', onclick: () => {
    down = by === i && !down;
    by = i;
    made.forEach((th, k) => k === by ? th.setAttribute('aria-sort', down ? 'descending' : 'ascending') : th.removeAttribute('aria-sort'));
    sort(by, down);
  }}, name)));
  return made;
}

function sorted(list, key, down) {
  const sign = down ? -1 : 1;
  const compare = (x, y) => typeof x === 'string' ? natural(x, y) : x < y ? -1 : x > y ? 1 : 0;
  return list.slice().sort((a, b) => sign * compare(key(a), key(b)));
}

// Returns the row to show below a tensor's row, with a table of its matrices.
function matrices(t) {
  const used = measured.types.map((_, i) => i).filter((i) => t[4][i]);
  const body = element('tbody');
  const lines = t[4][used[0]].map((_, m) => [m, element('tr', {}, cell(m), ...used.map((i) => errorCell(t[4][i][m])))]);
  const show = (list) => body.replaceChildren(...list.map(([, line]) => line));
  const top = element('tr', {}, ...headings(['matrix', ...used.map((i) => measured.types[i])], 1,
    (by, down) => show(sorted(lines, ([m]) => by === 0 ? m : t[4][used[by - 1]][m], down))));
  show(lines);
  return element('tr', {}, element('td', {colspan: columns.length}, element('table', {}, element('thead', {}, top), body)));
}

function row(t) {
  const line = element('tr', {}, cell(t[0]), cell(t[1]), number(count(t[2])), ...t[3].map((f) => f ? errorCell(f[1]) : cell('')));
  if (!t[4]) return line;
  const button = element('button', {type: 'button', class: 'opener', 'aria-expanded': 'false', onclick: () => {
    if (line.below) line.below.remove();
    line.below = line.below ? null : matrices(t);
    if (line.below) line.after(line.below);
    button.setAttribute('aria-expanded', String(Boolean(line.below)));
  }}, t[0]);
  line.firstChild.replaceChildren(button);
  return line;
}

const made = measured.tensors.map((t) => [t, row(t)]);
let order = (list) => list;

function show() {
  const shown = order(made.filter(([t]) => t[0].includes(byId('find').value)));
  byId('rows').replaceChildren(...shown.flatMap(([, line]) => line.below ? [line, line.below] : [line]));
  byId('count').textContent = `${count(shown.length)} of ${count(made.length)} tensors`;
}

// ---- start ----

byId('type').append(...measured.types.map((name, i) => element('option', {value: i}, name)));
byId('type').value = Math.floor(measured.types.length / 2);
byId('type').addEventListener('input', showGrid);
byId('find').addEventListener('input', show);
byId('head').append(...headings(columns.map(([name]) => name), 2, (by, down) => {
  order = (list) => sorted(list, ([t]) => columns[by][1](t), down);
  show();
}));
showGrid();
show();
