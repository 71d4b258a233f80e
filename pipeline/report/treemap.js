// Shows models as treemaps: each tensor is an area proportional to its bytes, coloured by its type and grouped by
// layer. The layout follows "Squarified Treemaps" (Bruls, Huizing, van Wijk, 2000). treemap(place, models): `models` is
// [{name, tensors: [{name, shape, type, weights, bytes, rule}]}].
function treemap(place, models) {
  const kHeight = 420, kSmallest = 3;  // pixels
  const kLetter = 6.2, kLine = 14, kPadding = 8;  // upper bounds for labels, in pixels
  const sum = (items) => items.reduce((all, item) => all + item.bytes, 0);

  // Places items with `bytes` in a rectangle, largest first; returns the rectangle of each.
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

  const status = element('p', {class: 'status', role: 'status'});
  const way = element('nav', {class: 'map-way', 'aria-label': 'Place in the model'});
  const maps = element('div', {class: 'maps'});
  place.replaceChildren(way, maps, status, typeLegend(models.flatMap((model) => model.tensors)));

  let layer = null;  // the only layer shown; null: all layers
  const tell = (words) => { status.textContent = words; };
  const wordsOf = (tensor, whole) => [tensor.name, tensor.shape.join(' × '), tensor.type,
    `${bytes(tensor.bytes)} (${percent(tensor.bytes, whole)})`, tensor.rule].filter(Boolean).join(' · ');
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
  // Returns label lines with as much of the tensor's role and type as fits. If the role is too long, its last words are
  // used ("down" for "ffn_down"); no lines if these do not fit either.
  const labelOf = (tensor, width, height) => {
    const letters = (width - kPadding) / kLetter, lines = Math.floor((height - kPadding / 2) / kLine);
    const role = roleOf(tensor.name), short = role.slice(role.indexOf('_') + 1);
    const name = [role, short].find((text) => text.length <= letters);
    const type = tensor.type.length <= letters ? [tensor.type] : [];
    if (lines < 1 || !name) return [];
    if (lines > 1) return [name, ...type];
    return [`${name} ${tensor.type}`.length <= letters ? `${name} ${tensor.type}` : name];
  };
  const cell = (box, whole, focusable) => {
    const tensor = box.item;
    const made = element('div', {class: 'map-cell typed', style: typeColour(tensor.type),
      ...(focusable ? {tabindex: '0', role: 'img'} : {'aria-hidden': 'true'})});
    const across = labelOf(tensor, box.width, box.height), down = labelOf(tensor, box.height, box.width);
    const stands = across.length === 0 && box.height > box.width && down.length > 0;
    if (stands) made.classList.add('stands');
    for (const line of stands ? down : across) made.append(element('span', {}, line));
    return put(told(made, wordsOf(tensor, whole)), box);
  };

  const show = () => {
    const top = element('button', {type: 'button'}, 'all layers');
    top.addEventListener('click', () => go(null));
    way.replaceChildren(...(layer === null ? [element('span', {}, 'all layers: select one to zoom in')] : [top, element('span', {}, ' › ' + layer)]));
    const fills = [];
    maps.replaceChildren(...models.map((model) => {
      const whole = sum(model.tensors);
      const tensors = layer === null ? model.tensors : model.tensors.filter((tensor) => layerOf(tensor.name) === layer);
      const map = element('div', {class: 'map', role: 'group', 'aria-label': model.name});
      const figure = element('figure', {}, element('figcaption', {}, `${model.name}: ${bytes(sum(tensors))}` +
        (layer === null ? '' : ` of ${bytes(whole)}`)), map);
      fills.push(() => fill(map, tensors, whole));
      return figure;
    }));
    for (const each of fills) each();  // only now do the maps have a width
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
      const words = `${group.name}: ${group.tensors.length} tensor${group.tensors.length === 1 ? '' : 's'}, ${bytes(group.bytes)} (${percent(group.bytes, whole)})`;
      const made = put(told(element('button', {type: 'button', class: 'map-layer'}), words), box);
      made.addEventListener('click', () => go(group.name));
      const head = box.height > 44 && box.width > 50 ? 16 : 0;
      if (head) made.append(element('span', {class: 'map-name'}, group.name));
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
