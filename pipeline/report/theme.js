// ---- colours: as the system says, light or dark ----

const kThemes = ['auto', 'light', 'dark'];
const systemIsDark = matchMedia('(prefers-color-scheme: dark)');
let theme = 'auto';
try {
  theme = kThemes.find((name) => name === localStorage.getItem('ggufmill-theme')) || 'auto';
} catch { /* pages of files may have no storage */ }

function showTheme() {
  document.documentElement.dataset.theme = theme === 'auto' ? (systemIsDark.matches ? 'dark' : 'light') : theme;
  document.getElementById('theme').textContent = {auto: '◐ auto', light: '☀ light', dark: '☾ dark'}[theme];
}

document.getElementById('theme').addEventListener('click', () => {
  theme = kThemes[(kThemes.indexOf(theme) + 1) % kThemes.length];
  try {
    localStorage.setItem('ggufmill-theme', theme);
  } catch { /* it lasts as long as the page */ }
  showTheme();
});
systemIsDark.addEventListener('change', showTheme);
showTheme();
