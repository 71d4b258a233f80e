// Models as treemaps: an area for each tensor, as large as its bytes, coloured by its type, grouped by layer. The layout
// is that of "Squarified Treemaps" (Bruls, Huizing, van Wijk, 2000). Text is only ever set as text.
// treemap(place, models): models are [{name, tensors: [{name, shape, type, weights, bytes, rule}]}].
function treemap(place, models) {
  const kHeight = 420, kSmallest = 3;  // pixels
  const bytesText = (number) => {
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
    let unit = 0;
    for (; number >= 1024 && unit < units.length - 1; ++unit) number /= 1024;
    return (unit ? number.toFixed(2) : number) + ' ' + units[unit];
  };
  const share = (part, whole) => (100 * part / (whole || 1)).toFixed(1) + '%';
  const sum = (items) => items.reduce((all, item) => all + item.bytes, 0);
  const node = (tag, attributes, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  };
  // "blk.3" of "blk.3.ffn_up.weight", "output" of "output.weight".
  const layerOf = (name) => (/^(.*?\.\d+)\./.exec(name) || /^([^.]*)/.exec(name))[1];
  const natural = new Intl.Collator('en', {numeric: true}).compare;

  // Few bits for a weight are warm, many are cold.
  const bits = new Map();
  for (const model of models)
    for (const tensor of model.tensors)
      if (tensor.weights) bits.set(tensor.type, 8 * tensor.bytes / tensor.weights);
  const types = [...bits.keys()].sort((a, b) => bits.get(a) - bits.get(b) || natural(a, b));
  const hue = new Map(types.map((type, i) => [type, types.length < 2 ? 210 : 15 + 235 * i / (types.length - 1)]));

  // Rectangles for items with `bytes`, largest first, within one of this size.
  const squarify = (items, x, y, width, height) => {
    const placed = [], whole = sum(items);
    const sorted = items.filter((item) => item.bytes > 0).sort((a, b) => b.bytes - a.bytes);
    const scale = width * height / (whole || 1);
    const worst = (row, area, side) => Math.max(side * side * row[0].bytes * scale / (area * area),
      area * area / (side * side * row[row.length - 1].bytes * scale));
    for (let first = 0; first < sorted.length && width > 0 && height > 0;) {
      const side = Math.min(width, height);
      let row = [sorted[first]], area = sorted[first].bytes * scale;
      for (let next = first + 1; next < sorted.length; ++next) {
        const more = [...row, sorted[next]], larger = area + sorted[next].bytes * scale;
        if (worst(more, larger, side) > worst(row, area, side)) break;
        row = more;
        area = larger;
      }
      const thick = area / side;
      let along = 0;
      for (const item of row) {
        const length = item.bytes * scale / thick;
        placed.push(width < height ? {item, x: x + along, y, width: length, height: thick} :
          {item, x, y: y + along, width: thick, height: length});
        along += length;
      }
      if (width < height) { y += thick; height -= thick; } else { x += thick; width -= thick; }
      first += row.length;
    }
    return placed;
  };

  const status = node('p', {class: 'map-status', role: 'status'});
  const way = node('nav', {class: 'map-way', 'aria-label': 'Place in the model'});
  const legend = node('ul', {class: 'map-legend', 'aria-label': 'Types'});
  const maps = node('div', {class: 'maps'});
  place.replaceChildren(way, maps, status, legend);
  for (const type of types) {
    const mark = node('span', {class: 'map-mark'});
    mark.style.setProperty('--hue', hue.get(type));
    legend.append(node('li', {}, mark, `${type}, ${bits.get(type).toFixed(2)} bits`));
  }

  let layer = null;  // the one that is shown alone
  const tell = (words) => { status.textContent = words; };
  const wordsOf = (tensor, whole) => [tensor.name, tensor.shape.join(' × '), tensor.type,
    `${bytesText(tensor.bytes)} (${share(tensor.bytes, whole)})`, tensor.rule].filter(Boolean).join(' · ');
  const put = (made, box) => {
    Object.assign(made.style, {left: box.x + 'px', top: box.y + 'px', width: box.width + 'px', height: box.height + 'px'});
    return made;
  };
  const told = (made, words) => {
    made.setAttribute('aria-label', words);
    made.title = words;
    for (const event of ['mouseenter', 'focus']) made.addEventListener(event, () => tell(words));
    return made;
  };
  const cell = (box, whole, focusable) => {
    const tensor = box.item;
    const fits = box.width > 60 && box.height > 30;
    const label = focusable && fits ? [tensor.name.slice(layerOf(tensor.name).length + 1) || tensor.name, node('br', {}), tensor.type] :
      box.width > 34 && box.height > 16 ? [tensor.type] : [];
    const made = node('div', focusable ? {class: 'map-cell', tabindex: '0', role: 'img'} : {class: 'map-cell', 'aria-hidden': 'true'}, ...label);
    made.style.setProperty('--hue', hue.get(tensor.type) ?? 0);
    return put(told(made, wordsOf(tensor, whole)), box);
  };

  const show = () => {
    const top = node('button', {type: 'button'}, 'all layers');
    top.addEventListener('click', () => go(null));
    way.replaceChildren(...(layer === null ? [node('span', {}, 'all layers: choose one to look into it')] : [top, node('span', {}, ' › ' + layer)]));
    const fills = [];
    maps.replaceChildren(...models.map((model) => {
      const whole = sum(model.tensors);
      const tensors = layer === null ? model.tensors : model.tensors.filter((tensor) => layerOf(tensor.name) === layer);
      const map = node('div', {class: 'map', role: 'group', 'aria-label': model.name});
      const figure = node('figure', {}, node('figcaption', {}, `${model.name}: ${bytesText(sum(tensors))}` +
        (layer === null ? '' : ` of ${bytesText(whole)}`)), map);
      fills.push(() => fill(map, tensors, whole));
      return figure;
    }));
    for (const each of fills) each();  // once they have a width
  };
  const fill = (map, tensors, whole) => {
    const width = map.clientWidth || 600;
    if (layer !== null) {
      map.replaceChildren(...squarify(tensors, 0, 0, width, kHeight).map((box) => cell(box, whole, true)));
      return;
    }
    const groups = new Map();
    for (const tensor of tensors) {
      const name = layerOf(tensor.name);
      if (!groups.has(name)) groups.set(name, {name, bytes: 0, tensors: []});
      groups.get(name).bytes += tensor.bytes;
      groups.get(name).tensors.push(tensor);
    }
    map.replaceChildren(...squarify([...groups.values()], 0, 0, width, kHeight).map((box) => {
      const group = box.item;
      const words = `${group.name}: ${group.tensors.length} tensor${group.tensors.length === 1 ? '' : 's'}, ${bytesText(group.bytes)} (${share(group.bytes, whole)})`;
      const made = put(told(node('button', {type: 'button', class: 'map-layer'}), words), box);
      made.addEventListener('click', () => go(group.name));
      const head = box.height > 44 && box.width > 50 ? 16 : 0;
      if (head) made.append(node('span', {class: 'map-name'}, group.name));
      if (box.width > kSmallest && box.height > kSmallest)
        made.append(...squarify(group.tensors, 0, head, box.width - 3, box.height - head - 3)
          .filter((inner) => inner.width * inner.height >= 1).map((inner) => cell(inner, whole, false)));
      return made;
    }));
  };
  const go = (name) => {
    layer = name;
    tell('');
    show();
    const first = name === null ? maps.querySelector('.map-layer') : way.querySelector('button');
    if (first) first.focus();
  };
  place.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && layer !== null) go(null);
  });
  let before = 0;
  new ResizeObserver(() => {
    if (place.clientWidth === before) return;
    before = place.clientWidth;
    show();
  }).observe(place);
  show();
}
