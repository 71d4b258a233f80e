"""Progress shown in a tqdm bar."""

import contextlib

from ._error import usage_error


class ProgressBar:
    """A function for `progress` that moves a bar: ``with ggufmill.ProgressBar(desc="model") as bar: run(job, progress=bar)``.

    bar      a tqdm bar, or an object with its `total`, `n`, `refresh`, and `close`; None: a new bar of tqdm.auto
    options  options of the new bar

    The bar counts the bytes read; a job that is measured first reads them twice, and the bar starts over.
    """

    def __init__(self, bar=None, **options):
        if bar is None:
            try:
                from tqdm.auto import tqdm  # imported on use: ggufmill does not depend on it
            except ImportError:
                raise usage_error("a bar needs tqdm, which is not installed", "pip install tqdm") from None

            bar = tqdm(**{"unit": "B", "unit_scale": True, "unit_divisor": 1024, **options})
        self.bar = bar

    def __call__(self, now):
        self.bar.total = now.bytes_to_read
        self.bar.n = now.bytes_read
        self.bar.refresh()

    def close(self):
        self.bar.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __repr__(self):
        return f"<ggufmill.ProgressBar {self.bar.n} of {self.bar.total}>"


@contextlib.contextmanager
def progress_function(name, progress):
    """Yield the function for a value of the option `progress` of an operation. True: a bar, for as long as it runs."""
    if progress is not True:
        yield None if progress is False else progress
        return
    with ProgressBar(desc=name) as bar:
        yield bar
