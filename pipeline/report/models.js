const models = pageData();
const title = models.map((model) => model.name).join(', ');
byId('name').textContent = title;
document.title = title;
treemap(byId('map'), models);
typeGrid(byId('grid'), models, models.map((_, index) => index));

// The tables are created when they are first opened, because models have many tensors.
document.querySelector('details').addEventListener('toggle', () => {
  const line = (tag, words) => element('tr', {}, ...words.map((word) => element(tag, {}, word)));
  byId('tables').replaceChildren(...models.flatMap((model) => [element('h2', {}, model.name), element('table', {},
    line('th', ['Tensor', 'Shape', 'Type', 'Bytes', 'Why']),
    ...model.tensors.map((t) => line('td', [t.name, t.shape.join(' × '), t.type, count(t.bytes), t.rule])))]));
}, {once: true});
