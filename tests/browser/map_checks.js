// Checks of a models page: uses its treemap as a reader would. Run by run_checks.js. The address ends with #dark or
// #light, the colour scheme that the browser reports as the system's.
runChecks(async (check) => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const settled = async () => {
    for (let i = 0; i < 4; ++i) await new Promise((resolve) => setTimeout(resolve, 50));
  };
  const layerOf = (name) => (/^(.*?\.\d+)\./.exec(name) || /^([^.]*)/.exec(name))[1];
  const light = () => {
    const [red, green, blue] = getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number);
    return red + green + blue > 3 * 128;
  };
  await settled();
  check('a map for each model', all('.map').length === models.length);
  const layers = models.map((model) => new Set(model.tensors.map((tensor) => layerOf(tensor.name))).size);
  check('an area for each layer', all('.map').every((map, i) => map.querySelectorAll('.map-layer').length === layers[i]));
  const area = (made) => made.offsetWidth * made.offsetHeight;
  const first = models[0], whole = first.tensors.reduce((sum, tensor) => sum + tensor.bytes, 0);
  const map = all('.map')[0];
  check('as large as its bytes', [...map.querySelectorAll('.map-layer')].every((made) => {
    const name = made.getAttribute('aria-label').replace(/: \d+ tensors?, .*$/, '');
    const bytes = first.tensors.filter((tensor) => layerOf(tensor.name) === name).reduce((sum, tensor) => sum + tensor.bytes, 0);
    return Math.abs(area(made) / area(map) - bytes / whole) < 0.02;
  }));
  const types = new Set(models.flatMap((model) => model.tensors.map((tensor) => tensor.type)));
  check('a legend of all types', all('#map .legend li').length === types.size);
  check('all areas can be reached by keyboard', all('.map-layer').every((made) => made.tagName === 'BUTTON'));
  const chosen = all('.map-layer').find((made) => made.getAttribute('aria-label').startsWith('blk.2:'));
  chosen.focus();
  check('what has the focus is told', document.querySelector('#map .status').textContent.startsWith('blk.2: '));
  chosen.click();
  await settled();
  const inside = first.tensors.filter((tensor) => layerOf(tensor.name) === 'blk.2');
  check('a click shows the layer\'s tensors in every map', all('.map').every((one) => one.querySelectorAll('.map-cell').length === inside.length));
  check('which say name, shape, type and size', inside.every((tensor) => all('.map-cell').some((made) =>
    made.getAttribute('aria-label').startsWith(`${tensor.name} · ${tensor.shape.join(' × ')} · ${tensor.type} · `))));
  document.querySelector('.map-way button').dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true}));
  await settled();
  check('Escape goes back', all('.map-layer').length === layers.reduce((sum, count) => sum + count, 0));
  const labelled = all('.map-cell').filter((made) => made.textContent !== '');
  check('areas with room have the names of tensors', labelled.length > 0 && labelled.every((made) => {
    const role = made.getAttribute('aria-label').split(' · ')[0].replace(/^blk\.\d+\./, '').replace(/\.weight$/, '');
    return role.endsWith(made.firstChild.textContent.split(' ')[0]);
  }));
  checkGrid(check, models.slice(0, 2));
  document.querySelector('details').open = true;
  await settled();
  check('all tensors stand in tables', all('#tables tr').length === models.reduce((sum, model) => sum + model.tensors.length + 1, 0));
  check('no name became markup', !document.getElementById('pwned') && window.pwned === undefined);
  check(`follows a system that is ${location.hash.slice(1)}`, light() === (location.hash === '#light'));
  document.querySelector('details').open = false;
  check('the page is not wider than the window', document.documentElement.scrollWidth <= window.innerWidth);
});
