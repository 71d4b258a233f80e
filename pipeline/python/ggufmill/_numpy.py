"""numpy, imported on first use: only arrays need it, jobs and files do not."""

from ._error import usage_error


class _Numpy:
    def __getattr__(self, name):
        try:
            import numpy
        except ImportError:
            raise usage_error("numpy is missing, which arrays need", "pip install numpy") from None
        return getattr(numpy, name)


np = _Numpy()
