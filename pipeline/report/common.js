// Shared by all pages: text, elements, type colours, and the light and dark themes.

// ---- text ----

const count = (number) => number.toLocaleString('en-US');

function bytes(number) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  for (; number >= 1024 && unit < units.length - 1; ++unit) number /= 1024;
  return (unit ? number.toFixed(2) : number) + ' ' + units[unit];
}

function percent(part, whole) {
  const share = 100 * part / (whole || 1);
  return share > 0 && share < 0.1 ? '< 0.1%' : share.toFixed(1) + '%';
}

const natural = new Intl.Collator('en', {numeric: true}).compare;

// ---- elements: text is never parsed as markup ----

// Creates an element. An attribute whose value is a function, such as `onclick`, adds a listener for that event;
// `style` is an object of CSS properties.
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    if (typeof value === 'function') made.addEventListener(name.slice(2), value);
    else if (name === 'style') for (const [property, text] of Object.entries(value)) made.style.setProperty(property, text);
    else made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const byId = (id) => document.getElementById(id);
const pageData = () => JSON.parse(byId('data').textContent);

// ---- types ----

// Hue, lightness, and optionally saturation of each type, the same on every page. Types with few bits per weight have
// warm colours, those with many have cold ones.
const kTypeColours = {
  Q1_0: [335, 80], IQ1_S: [335, 58], IQ1_M: [335, 68], TQ1_0: [315, 68],
  IQ2_XXS: [8, 56], IQ2_XS: [8, 64], IQ2_S: [8, 72], Q2_K: [8, 80], TQ2_0: [350, 66], Q2_0: [350, 78],
  IQ3_XXS: [32, 56], IQ3_S: [32, 65], Q3_K: [32, 76],
  IQ4_XS: [52, 56], IQ4_NL: [52, 66], MXFP4: [72, 54], NVFP4: [72, 66],
  Q4_0: [95, 60], Q4_1: [95, 72], Q4_K: [130, 70],
  Q5_0: [165, 56], Q5_1: [165, 80], Q5_K: [165, 68],
  Q6_K: [200, 68],
  F8_E4M3: [222, 60], F8_E5M2: [222, 68], Q8_0: [222, 76], Q8_1: [222, 82], Q8_K: [222, 86],
  F16: [250, 80], BF16: [250, 72],
  F32: [285, 78], F64: [285, 66],
  I8: [20, 62, 12], I16: [20, 68, 12], I32: [20, 74, 12], I64: [20, 80, 12],
  BOOL: [200, 58, 12], U2: [200, 60, 12], U3: [200, 62, 12], U4: [200, 64, 12], U5: [200, 66, 12], U6: [200, 68, 12],
  U8: [200, 70, 12], U16: [200, 74, 12], U32: [200, 78, 12],
  U64: [200, 82, 12],
};

// Returns CSS properties with the colour of a type. Types of external modules get a pale colour derived from their
// name.
function typeColour(type) {
  const sum = [...type].reduce((all, letter) => (31 * all + letter.codePointAt(0)) % 360, 0);
  const [hue, lightness, saturation = 62] = kTypeColours[type] ?? [sum, 72, 28];
  return {'--hue': hue, '--lightness': lightness, '--saturation': saturation + '%'};
}

// Returns [type, bits per weight] for each type of the tensors, sorted by bits. Tensors have `type`, `bytes` and
// `weights`.
function typesOf(tensors) {
  const bits = new Map();
  for (const tensor of tensors) if (tensor.weights) bits.set(tensor.type, 8 * tensor.bytes / tensor.weights);
  return [...bits].sort((a, b) => a[1] - b[1] || natural(a[0], b[0]));
}

const typeLegend = (tensors) => element('ul', {class: 'legend', 'aria-label': 'Types'}, ...typesOf(tensors).map(([type, bits]) =>
  element('li', {}, element('span', {class: 'mark typed', style: typeColour(type)}), `${type}, ${bits.toFixed(2)} bits`)));

// ---- places in a model ----

// Returns the layer of a tensor: "blk.3" for "blk.3.ffn_up.weight", "output" for "output.weight".
const layerOf = (name) => (/^(.*?\.\d+)\./.exec(name) || /^([^.]*)/.exec(name))[1];

// Returns the role of a tensor in its layer: "ffn_up" for "blk.3.ffn_up.weight".
const roleOf = (name) => (/^.*?\.\d+\.(.+)$/.exec(name) || [name, name])[1].replace(/(.)\.weight$/, '$1');

// ---- light or dark: follows the system unless set with the button ----

const kThemes = ['auto', 'light', 'dark'];
const systemIsDark = matchMedia('(prefers-color-scheme: dark)');
const themeButton = element('button', {type: 'button', id: 'theme', title: 'Light or dark: as the system says, light, dark'});
let theme = 'auto';
try {
  theme = kThemes.find((name) => name === localStorage.getItem('ggufmill-theme')) || 'auto';
} catch { /* pages opened from a file may have no storage */ }

function showTheme() {
  document.documentElement.dataset.theme = theme === 'auto' ? (systemIsDark.matches ? 'dark' : 'light') : theme;
  themeButton.textContent = {auto: '◐ auto', light: '☀ light', dark: '☾ dark'}[theme];
}

themeButton.addEventListener('click', () => {
  theme = kThemes[(kThemes.indexOf(theme) + 1) % kThemes.length];
  try {
    localStorage.setItem('ggufmill-theme', theme);
  } catch { /* the choice lasts until the page is closed */ }
  showTheme();
});
systemIsDark.addEventListener('change', showTheme);
document.querySelector('header').append(themeButton);
showTheme();
