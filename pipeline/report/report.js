const report = pageData();
const compares = report.kind === 'compare';

// ---- text ----

const baseName = (path) => path.slice(path.lastIndexOf('/') + 1);
const seconds = (number) => number < 100 ? number.toFixed(2) + ' s' : Math.round(number) + ' s';

function weights(number) {
  for (const [size, letter] of [[1e12, ' T'], [1e9, ' B'], [1e6, ' M']])
    if (number >= size) return (number / size).toPrecision(3) + letter;
  return count(number);
}

const fileBytes = (files) => files.reduce((sum, file) => sum + file.bytes, 0);

function figure(number) {
  if (number === null || number === undefined) return '-';
  if (number === 0) return '0';
  return Math.abs(number) >= 1e-3 && Math.abs(number) < 1e5 ? Number(number.toPrecision(4)).toString() : number.toExponential(2);
}
const cosineText = (number) => number === null || number === undefined ? '-' : number === 1 ? '1' : number.toFixed(7);

// ---- elements ----

// Each output has its own colour; colours repeat after eight outputs.
const colour = (index, more = {}) => ({style: {'--color': `var(--c${index % 8})`, ...more}});
const outputName = (index) => baseName(report.outputs[index].files[0].path);
const chip = (index) => element('span', {class: 'chip', ...colour(index)});

// ---- metrics ----

const hasWeighted = report.outputs.some((output) => output.tensors.some((tensor) => tensor.importance));
const metrics = [
  {key: 'relative', short: 'Relative', label: 'Relative error', formula: 'sqrt(sum (a − b)² / sum a²)'},
  {key: 'weighted', short: 'Weighted', label: 'Weighted error', formula: 'sqrt(sum w (a − b)² / sum w a²), w the importance of the column'},
  {key: 'rmse', short: 'RMSE', label: 'RMSE', formula: 'root-mean-square error, sqrt(sum (a − b)² / number of weights)'},
  {key: 'largest', short: 'Largest', label: 'Largest error', formula: 'max |a − b|'},
  {key: 'cosine', short: 'Cosine', label: 'Cosine', formula: 'sum a b / sqrt(sum a² · sum b²); bars show 1 − cosine', text: cosineText},
].filter((metric) => metric.key !== 'weighted' || hasWeighted);
let metric = metrics[0];

const value = (error, key) => error ? error[key] : null;
const badness = (error) => {
  const number = value(error, metric.key);
  return number === null || number === undefined ? 0 : metric.key === 'cosine' ? 1 - number : number;
};
const metricText = (error, which) => (which.text || figure)(value(error, which.key));

// ---- head ----

function showHead() {
  const source = report.source, run = report.run;
  const path = source.files.length ? source.files[0].path : '';
  byId('kind').textContent = `ggufmill ${report.ggufmill} · ${compares ? 'comparison of B with A' : 'report of a run'}`;
  byId('name').textContent = source.name || baseName(path);
  byId('path').textContent = path + (source.files.length > 1 ? ` and ${source.files.length - 1} more` : '');
  document.title = `${baseName(path)} · ggufmill report`;
  const facts = [
    ['Weights', weights(source.weights), source.architecture],
    [compares ? 'Size of A' : 'Source', bytes(fileBytes(source.files)), source.bits_per_weight.toFixed(2) + ' bits per weight'],
    ['Tensors', count(source.tensors)],
    ['Time', seconds(run.seconds), `${run.threads} thread${run.threads === 1 ? '' : 's'}, ${run.isa}`],
    ['Read', bytes(run.bytes_read)],
    ...(compares ? [] : [['Written', bytes(run.bytes_written), `${report.outputs.length} output${report.outputs.length === 1 ? '' : 's'}`]]),
    ['Buffers at most', bytes(run.peak_memory)],
  ];
  for (const [name, text, more] of facts)
    byId('facts').append(element('div', {}, element('dt', {}, name), element('dd', {}, text, ' ', element('small', {}, more || ''))));
}

// ---- outputs ----

function typesCell(output) {
  const shares = [...output.types].sort((a, b) => b.bytes - a.bytes);
  const stack = element('div', {class: 'stack'}, ...shares.map((share) => element('span', {class: 'typed',
    title: `${share.type}: ${bytes(share.bytes)}, ${share.tensors} tensors`, style: {...typeColour(share.type), 'flex-grow': share.bytes}})));
  const words = shares.map((share) => `${share.type} ${percent(share.bytes, output.bytes)}`);
  if (output.fallbacks) words.push(`${output.fallbacks} tensor${output.fallbacks === 1 ? '' : 's'} fell back to another type, as their rows are no whole blocks`);
  return element('td', {class: 'types'}, stack, words.join(' · '));
}

function showOutputs() {
  const number = (text) => element('td', {class: 'number'}, text);
  const hasQuality = report.outputs.some((output) => output.quality);
  const titles = [compares ? 'B' : 'Output', 'Recipe', 'Size', 'Bits per weight', compares ? 'Of A' : 'Of source', ...(hasQuality ? ['KL divergence', 'Same top token'] : []),
    ...(report.measured ? metrics.map((m) => m.label) : []), 'Types'];
  const qualityCells = (quality) => quality ? [number(quality.divergence.toPrecision(3)), number(percent(quality.same_top, 1))] : [number('-'), number('-')];
  const left = ['B', 'Output', 'Recipe', 'Types'];
  byId('outputs-title').textContent = compares ? 'Compared' : 'Outputs';
  const [head, body] = byId('outputs').querySelector('table').children;
  head.append(element('tr', {}, ...titles.map((title) => element('th', left.includes(title) ? {} : {class: 'number'}, title))));
  report.outputs.forEach((output, index) => {
    const files = output.files.map((file) => file.path).join('\n');
    const more = output.files.length > 1 ? ` and ${output.files.length - 1} more` : '';
    body.append(element('tr', {},
      element('td', {title: files}, chip(index), outputName(index) + more),
      element('td', {}, output.recipe || '-'),
      number(bytes(fileBytes(output.files))), number(output.bits_per_weight.toFixed(3)),
      number(percent(fileBytes(output.files), fileBytes(report.source.files))),
      ...(hasQuality ? qualityCells(output.quality) : []),
      ...(report.measured ? metrics.map((m) => number(metricText(output.error, m))) : []),
      typesCell(output)));
  });
}

// An output whose tensors were not all measured has no totals.
function showPartly() {
  const why = compares ? 'the values of such tensors cannot be decoded' : 'an earlier run made these tensors, or they were taken from an earlier output (reuse)';
  const texts = report.outputs.flatMap((output, index) => output.not_measured ?
    [`The errors of ${count(output.not_measured)} of ${count(output.tensors.length)} tensors of ${outputName(index)} are not known: ${why}. `] : []);
  byId('partly').hidden = texts.length === 0;
  byId('partly').append(...texts, 'The output and the layers with such tensors therefore have no total.');
}

function showUnmatched() {
  const all = report.outputs.flatMap((output) => output.unmatched || []);
  byId('unmatched').hidden = all.length === 0;
  const [head, body] = byId('unmatched').querySelector('table').children;
  head.append(element('tr', {}, element('th', {}, 'Tensor'), element('th', {}, 'Why')));
  for (const tensor of all) body.append(element('tr', {}, element('td', {class: 'tensor'}, tensor.name), element('td', {}, tensor.what)));
}

// ---- layers ----

function axis(layers) {
  const step = Math.ceil(layers.length / 24);
  return element('div', {class: 'axis'}, ...layers.map((layer, i) => {
    const number = /(\d+)$/.exec(layer.layer);
    return element('span', {title: layer.layer, class: number ? 'number' : 'word'}, number ? (Number(number[1]) % step === 0 ? number[1] : '') : layers.length <= 24 ? layer.layer : '');
  }));
}

function showLayers() {
  const tops = report.outputs.map((output) => Math.max(0, ...output.layers.map((layer) => badness(layer.error))));
  const top = Math.max(...tops);
  byId('strips').replaceChildren(...report.outputs.map((output, index) => {
    const most = byId('scale').value === 'one' ? top : tops[index];
    const columns = output.layers.map((layer) => {
      const share = most > 0 ? 100 * badness(layer.error) / most : 0;
      const known = layer.weights ? metricText(layer.error, metric) : 'as in the source';
      const title = `${layer.layer}: ${layer.not_measured ? `${count(layer.not_measured)} tensors not measured` : known}`;
      const show = () => filterBy(layer.layer + (/\d$/.test(layer.layer) ? '.' : ''), index);
      const bar = layer.not_measured ? {class: 'unknown'} : colour(index, {height: share + '%'});
      return element('button', {type: 'button', title, 'aria-label': title, onclick: show}, element('span', bar));
    });
    const words = `${metric.key === 'cosine' ? '1 − cosine' : metric.label}, at most ${figure(tops[index])}`;
    return element('div', {class: 'strip'},
      element('div', {class: 'label'}, chip(index), outputName(index), element('small', {}, words)),
      element('div', {}, element('div', {class: 'columns'}, ...columns), axis(output.layers)));
  }));
}

// ---- maps ----

// The grid includes the source as well; if there is only one output, the source is shown next to it.
function showMaps() {
  const outputs = report.outputs.map((output, index) => ({name: outputName(index), tensors: output.tensors}));
  treemap(byId('map'), outputs);
  const source = {name: compares ? 'A' : 'source', tensors: report.outputs[0].tensors.map((tensor) =>
    ({...tensor, type: tensor.source_type, bytes: tensor.source_bytes}))};
  typeGrid(byId('grid'), [source, ...outputs], outputs.length > 1 ? [1, 2] : [0, 1]);
}

// ---- tensors ----

const kAtOnce = 500;
const rows = report.outputs.flatMap((output, index) => output.tensors.map((tensor) => ({...tensor, output: index})));
const order = {key: null, down: false};
let shown = kAtOnce;

const bits = (row) => row.weights ? 8 * row.bytes / row.weights : 0;
const typeCell = (type) => element('td', {}, element('span', {class: 'mark typed', style: typeColour(type)}), type);
const columns = [
  {title: 'Output', by: (row) => row.output, cell: (row) => element('td', {}, chip(row.output), outputName(row.output))},
  {title: 'Tensor', key: 'name', by: (row) => row.name, text: (row) => row.name, style: 'tensor'},
  {title: 'Shape', by: (row) => row.weights, text: (row) => row.shape.join(' × ')},
  {title: compares ? 'A' : 'From', by: (row) => row.source_type, cell: (row) => typeCell(row.source_type)},
  {title: compares ? 'B' : 'To', by: (row) => row.type, cell: (row) => typeCell(row.type)},
  {title: 'Size', by: (row) => row.bytes, text: (row) => bytes(row.bytes), number: true},
  {title: 'Bits', by: bits, text: (row) => bits(row).toFixed(2), number: true},
  ...(!report.measured ? [] : [
    ...metrics.map((m) => ({title: m.short, key: m.key, by: (row) => value(row.error, m.key), text: (row) => metricText(row.error, m), number: true})),
    {title: '', gauge: true}]),
  ...(compares ? [] : [
    {title: 'Time', by: (row) => row.seconds, text: (row) => row.seconds === 0 ? '-' : (1000 * row.seconds).toFixed(1) + ' ms', number: true},
    {title: 'Rule', by: (row) => row.rule, text: (row) => row.rule, style: 'rule'}]),
];

function compare(a, b) {
  if (typeof a === 'string') return natural(a, b);
  return (a === null || a === undefined ? -1 : a) - (b === null || b === undefined ? -1 : b);
}

function selected() {
  const name = byId('name-filter').value.toLowerCase(), output = byId('output-filter').value, type = byId('type-filter').value;
  const kept = rows.filter((row) => row.name.toLowerCase().includes(name) && (output === '' || row.output === Number(output)) &&
    (type === '' || row.type === type));
  if (order.by) kept.sort((a, b) => (order.down ? -1 : 1) * compare(order.by(a), order.by(b)));
  return kept;
}

function cell(row, column, most) {
  if (column.cell) return column.cell(row);
  if (column.gauge) {
    const share = most > 0 ? 100 * badness(row.error) / most : 0;
    return element('td', {class: 'gauge', ...colour(row.output)}, share > 0 ? element('span', {style: {width: share + '%'}}) : '');
  }
  return element('td', column.number ? {class: 'number'} : column.style ? {class: column.style} : {}, column.text(row));
}

function showTensors() {
  const kept = selected();
  const most = kept.reduce((top, row) => Math.max(top, badness(row.error)), 0);
  byId('tensors').querySelector('tbody').replaceChildren(...kept.slice(0, shown).map((row) =>
    element('tr', {}, ...columns.map((column) => cell(row, column, most)))));
  byId('count').textContent = kept.length === rows.length ? `${count(rows.length)} rows` : `${count(kept.length)} of ${count(rows.length)} rows`;
  byId('more').hidden = kept.length <= shown;
  byId('more').textContent = `Show the other ${count(kept.length - shown)} rows`;
}

function restart() {
  shown = kAtOnce;
  showTensors();
}

function filterBy(name, output) {
  byId('name-filter').value = name;
  byId('output-filter').value = String(output);
  restart();
  byId('tensors').scrollIntoView({behavior: 'smooth'});
}

// The first click on a numeric column sorts the largest values first; each further click reverses the order.
function sortBy(column, head) {
  order.down = order.by === column.by ? !order.down : Boolean(column.number);
  order.by = column.by;
  for (const other of head.parentNode.children) other.removeAttribute('aria-sort');
  head.setAttribute('aria-sort', order.down ? 'descending' : 'ascending');
  restart();
}

function showTensorHead() {
  const line = element('tr');
  for (const column of columns) {
    const head = element('th', column.number ? {class: 'number'} : {});
    if (column.gauge) head.id = 'gauge';
    else head.append(element('button', {type: 'button', 'data-sort': column.key || column.title, onclick: () => sortBy(column, head)}, column.title));
    line.append(head);
  }
  byId('tensors').querySelector('thead').append(line);
}

// ---- controls ----

const option = (key, text) => element('option', {value: key}, text);

function showControls() {
  byId('metric').append(...metrics.map((m) => option(m.key, m.label)));
  byId('output-filter').append(option('', 'all'), ...report.outputs.map((output, index) => option(index, outputName(index))));
  const types = [...new Set(rows.map((row) => row.type))].sort(natural);
  byId('type-filter').append(option('', 'all'), ...types.map((type) => option(type, type)));
  for (const id of ['name-filter', 'output-filter', 'type-filter']) byId(id).addEventListener('input', restart);
  byId('scale').addEventListener('input', showLayers);
  byId('metric').addEventListener('input', showMetric);
  byId('more').addEventListener('click', () => {
    shown = Infinity;
    showTensors();
  });
}

function showMetric() {
  metric = metrics.find((m) => m.key === byId('metric').value);
  const title = byId('gauge');
  if (title) title.textContent = metric.key === 'cosine' ? '1 − cosine' : metric.label;
  showLayers();
  showTensors();
}

// ---- start ----

showHead();
showOutputs();
showPartly();
showUnmatched();
showControls();
showTensorHead();
showMaps();
byId('layers').hidden = !report.measured;
byId('unmeasured').hidden = report.measured;
showMetric();
if (report.measured)
  byId('formulas').append(
    element('p', {}, compares ? 'a: values of A; b: values of B.' : 'a: values of the source; b: what the output’s values decode to.',
      ' Totals and layers are of the tensors whose values changed.'),
    ...metrics.map((m) => element('p', {}, `${m.label}: ${m.formula}.`)));
