// Checks of a report page: uses it as a reader would. Run by run_checks.js. The address ends with #dark or #light, the
// colour scheme that the browser reports as the system's.
runChecks(async (check) => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const lines = () => all('#tensors tbody tr');
  const cellsOf = (title) => {
    const at = all('#tensors thead th').findIndex((head) => head.textContent === title);
    return lines().map((line) => line.children[at].textContent);
  };
  const set = (id, value) => {
    document.getElementById(id).value = value;
    document.getElementById(id).dispatchEvent(new Event('input'));
  };
  const sort = (key) => document.querySelector(`[data-sort="${key}"]`).click();
  const tensors = report.outputs.flatMap((output, index) => output.tensors.map((tensor) => ({...tensor, index})));
  const kept = (test) => tensors.filter(test).length;
  const falls = (numbers) => numbers.every((number, i) => i === 0 || number <= numbers[i - 1]);
  const numbers = (title) => cellsOf(title).map((text) => text === '-' ? -1 : Number(text));
  const light = () => {
    const [red, green, blue] = getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number);
    return red + green + blue > 3 * 128;
  };

  const checkTables = () => {
    check('a map for each output', all('#map .map').length === report.outputs.length);
    check('one row for each output', all('#outputs tbody tr').length === report.outputs.length);
    const first = Math.min(tensors.length, 500);
    check('one row for each tensor of each output, at most 500 at first', lines().length === first);
    const more = document.getElementById('more');
    check('the button for more rows is there when there are more', more.hidden === (tensors.length === first));
    if (!more.hidden) more.click();
    check('then all rows are there', lines().length === tensors.length);
    check('the count says so', document.getElementById('count').textContent === `${tensors.length.toLocaleString('en-US')} rows`);
    check('names are text', cellsOf('Tensor').every((name, i) => name === tensors[i].name));
    check('no name became markup', !document.getElementById('pwned') && window.pwned === undefined);
  };

  const checkSorting = () => {
    sort('rmse');
    document.getElementById('more').click();
    check('the first click shows the greatest error first', falls(numbers('RMSE')));
    const most = tensors.reduce((top, tensor) => tensor.error && tensor.error.rmse > top.error.rmse ? tensor : top, {error: {rmse: -1}});
    check('which is the greatest there is', cellsOf('Tensor')[0] === most.name);
    check('the head says so', document.querySelector('[aria-sort]').textContent === 'RMSE');
    check('there are weighted errors where there is importance', Boolean(document.querySelector('[data-sort="weighted"]')) ===
      tensors.some((tensor) => tensor.importance));
    sort('rmse');
    document.getElementById('more').click();
    check('the second turns the order', falls(numbers('RMSE').reverse()));
    sort('name');
    document.getElementById('more').click();
    const names = cellsOf('Tensor');
    check('numbers in names sort as numbers', names.indexOf('blk.2.ffn_down.weight') < names.indexOf('blk.10.ffn_down.weight'));
  };

  const checkFilters = () => {
    set('name-filter', 'FFN_DOWN');
    document.getElementById('more').click();
    const shown = kept((tensor) => tensor.name.includes('ffn_down'));
    check('a name filters rows, in any letter case', shown > 0 && lines().length === shown);
    check('the count says of how many', document.getElementById('count').textContent.endsWith(`of ${tensors.length.toLocaleString('en-US')} rows`));
    set('output-filter', '1');
    check('so does an output', lines().length === kept((tensor) => tensor.name.includes('ffn_down') && tensor.index === 1));
    set('name-filter', '');
    set('output-filter', '');
    const type = report.outputs[0].tensors.find((tensor) => tensor.name.includes('ffn_down')).type;
    set('type-filter', type);
    document.getElementById('more').click();
    check('and a type', lines().length === kept((tensor) => tensor.type === type) && cellsOf('To').every((text) => text === type));
    set('type-filter', '');
    set('name-filter', 'no such tensor');
    check('nothing may be left', lines().length === 0);
    set('name-filter', '');
  };

  const checkBars = () => {
    const heights = () => all('.strip').map((strip) => [...strip.querySelectorAll('.columns span')].map((bar) => parseFloat(bar.style.height)));
    check('a strip for each output', heights().length === report.outputs.length);
    check('a bar for each layer', heights().every((bars, i) => bars.length === report.outputs[i].layers.length));
    check('on one scale one bar is the highest of all', Math.max(...heights().flat()) === 100);
    set('scale', 'own');
    check('on scales of their own each output has one', heights().every((bars) => Math.max(...bars) === 100));
    const before = JSON.stringify(heights());
    set('metric', 'largest');
    check('another figure, other bars', JSON.stringify(heights()) !== before);
    check('its name is above the bars of the table', document.getElementById('gauge').textContent === 'Largest error');
    check('bars beside tensors', all('#tensors .gauge span').length > 0);
    document.querySelector('.columns button').click();
    const layer = report.outputs[0].layers[0].layer;
    check('a click on a bar shows its tensors', lines().length > 0 && cellsOf('Tensor').every((name) => name.startsWith(layer)));
    set('metric', 'relative');
    set('scale', 'one');
    set('name-filter', '');
    set('output-filter', '');
  };

  const checkColours = () => {
    const system = location.hash.slice(1), button = document.getElementById('theme');
    check(`follows a system that is ${system}`, light() === (system === 'light'));
    button.click();
    check('light when asked', light() && button.textContent.includes('light'));
    button.click();
    check('dark when asked', !light() && button.textContent.includes('dark'));
    button.click();
    check('and back', light() === (system === 'light'));
  };

  checkTables();
  checkGrid(check, report.outputs.slice(0, 2));
  checkSorting();
  checkFilters();
  checkBars();
  checkColours();
  check('the page is not wider than the window', document.documentElement.scrollWidth <= window.innerWidth);
});
