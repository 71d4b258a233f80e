// Checks of a batch page in a window 800 pixels wide. Run by run_checks.js.
runChecks(async (check) => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  check('the window has 800 pixels', window.innerWidth <= 800);
  check('the page is not wider', document.documentElement.scrollWidth <= window.innerWidth);
  const lines = (made) => {
    const range = document.createRange();
    range.selectNodeContents(made);
    return new Set([...range.getClientRects()].map((box) => box.top)).size;
  };
  check('recipes, numbers and states are on one line', all('td.recipe, td.number, td.state').every((made) => lines(made) <= 1));
  check('a row for each output, below its source', all('.source').length === 2 && all('td.recipe').length === 4);
  check('below what failed is why', all('.has-why').length === all('td.failed').length && all('.why').length === all('td.failed').length &&
    all('.why').every((made) => made.textContent.length > 10 && made.previousElementSibling.classList.contains('has-why')));
  check('and something failed', all('td.failed').length === 2);
});
