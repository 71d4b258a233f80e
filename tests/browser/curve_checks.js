// Checks of a curve page. Run by run_checks.js.
runChecks(async (check) => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const boxes = (selector) => all(selector).map((made) => made.getBBox());
  check('the axes have names', all('.axis-name').map((made) => made.textContent).join() === 'bytes of all tensors,loss (logarithmic)');
  const marks = all('svg text:not([class])').map((made) => made.textContent);
  const round = marks.filter((text) => /^[\d.e-]+( [KMG]?i?B)?$/.test(text));
  check('the marks are round numbers', round.length >= 8 && round.every((text) => /^[125]0*$|^\d{1,3}(\.\d)?( |$)|^0\.0*[125]$|^[125](e-\d+)?$/.test(text)));
  check('the target of the job is marked', all('circle.target').length === 1);
  check('and named', all('.target-name').length === 1 && all('.target-name')[0].textContent.startsWith("this job's target"));
  const labels = boxes('svg text:not(.axis-name)');
  const overlap = (a, b) => a.x < b.x + b.width && b.x < a.x + a.width && a.y + 2 < b.y + b.height && b.y + 2 < a.y + a.height;
  check('no label is over another', labels.every((a, i) => labels.every((b, k) => k <= i || !overlap(a, b))));
  check('the page is not wider than the window', document.documentElement.scrollWidth <= window.innerWidth);
});
