// A grid of a model: one row for each tensor role (attn_q, ffn_down), one column for each layer. Tensors outside layers
// are shown below it. Several models can share a grid: each cell has a band for each model.

// Returns the elements of a grid. `tensors` is [{name, bands: [{class, style, label, words}], differs}]; `label` is
// shown in a band that has room for it, and `words` describes the band. `tell` is called with the text of the cell
// under the mouse.
function layerGrid(tensors, tell) {
  const kMostLabelled = 20;  // layers; with more of them, cells have no room for text
  const cell = (tag, tensor, label) => {
    const words = [tensor.name, ...tensor.bands.map((band) => band.words)].join(' · ');
    const made = element(tag, {class: tensor.differs ? 'grid-cell differs' : 'grid-cell', title: words, 'aria-label': words},
      ...tensor.bands.map((band) => element('i', {class: band.class, style: band.style}, label ? band.label : '')));
    made.addEventListener('mouseenter', () => tell(words));
    return made;
  };
  const families = new Map(), outside = [];  // families by the name before the layer number: blk, v.blk
  for (const tensor of tensors) {
    const place = /^(.*?)\.(\d+)\..+$/.exec(tensor.name);
    if (!place) {
      outside.push(element('div', {class: 'grid-outside'}, element('span', {}, roleOf(tensor.name)), cell('div', tensor, true)));
      continue;
    }
    if (!families.has(place[1])) families.set(place[1], {layers: new Set(), roles: new Map()});
    const family = families.get(place[1]), role = roleOf(tensor.name);
    family.layers.add(Number(place[2]));
    if (!family.roles.has(role)) family.roles.set(role, new Map());
    family.roles.get(role).set(Number(place[2]), tensor);
  }
  const made = [...families].map(([name, family]) => {
    const layers = [...family.layers].sort((a, b) => a - b), step = Math.ceil(layers.length / 32);
    return element('div', {class: 'scroll'}, element('table', {class: 'grid', style: {'--layers': layers.length}},
      element('thead', {}, element('tr', {}, element('th', {scope: 'col'}, name), ...layers.map((layer, i) =>
        element('th', {scope: 'col', title: `${name}.${layer}`}, i % step === 0 ? String(layer) : '')))),
      element('tbody', {}, ...[...family.roles].map(([role, cells]) => element('tr', {}, element('th', {scope: 'row'}, role),
        ...layers.map((layer) => cells.has(layer) ? cell('td', cells.get(layer), layers.length <= kMostLabelled) : element('td')))))));
  });
  if (outside.length) made.push(element('div', {class: 'grid-others'}, ...outside));
  return made;
}

// Fills `place` with a grid of tensor types that one or two models share. `models` is
// [{name, tensors: [{name, type, bytes, weights}]}]; `first` has the indices of the models to show first.
function typeGrid(place, models, first) {
  const shown = first.slice(0, 2);
  const status = element('p', {class: 'status', role: 'status'}), body = element('div'), legend = element('div');
  const choice = (which, label) => {
    const select = element('select', {oninput: () => {
      shown[which] = Number(select.value);
      show();
    }}, ...models.map((model, i) => element('option', {value: i}, model.name)));
    select.value = shown[which];
    return element('label', {}, label, ' ', select);
  };
  const bar = element('div', {class: 'bar'}, ...(shown.length < 2 ? [] : models.length > 2 ?
    [choice(0, 'Upper'), choice(1, 'Lower')] :
    [element('span', {class: 'count'}, `upper: ${models[shown[0]].name}, lower: ${models[shown[1]].name}`)]));
  const difference = element('span', {class: 'count', id: 'grid-difference'});
  bar.append(difference);
  const show = () => {
    const tensors = new Map();
    shown.forEach((index, band) => {
      for (const tensor of models[index].tensors) {
        if (!tensors.has(tensor.name))
          tensors.set(tensor.name, {name: tensor.name, types: new Set(), bands: shown.map(() => ({class: 'missing', style: {}, label: '', words: '–'}))});
        const one = tensors.get(tensor.name);
        one.types.add(tensor.type);
        one.bands[band] = {class: 'typed', style: typeColour(tensor.type), label: tensor.type, words: `${tensor.type}, ${bytes(tensor.bytes)}`};
      }
    });
    for (const one of tensors.values()) one.differs = one.types.size > 1;
    body.replaceChildren(...layerGrid([...tensors.values()], (words) => { status.textContent = words; }));
    const differ = [...tensors.values()].filter((one) => one.differs).length;
    difference.textContent = shown.length < 2 ? '' : `${count(differ)} of ${count(tensors.size)} tensors have another type`;
    legend.replaceChildren(typeLegend(shown.flatMap((index) => models[index].tensors)));
  };
  place.replaceChildren(bar, body, status, legend);
  show();
}
