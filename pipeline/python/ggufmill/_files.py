"""Importance matrices, and metadata values in the form that the library takes."""

import collections.abc
import math
import os

from ._error import usage_error
from ._numpy import np


class ImportanceMatrix(collections.abc.Mapping):
    """A mapping of tensor names to the weights of their columns, read on access: see ``ggufmill.imatrix``.

    Weights are float32 of shape (columns,) or (experts, columns), as ``quantize`` takes them for importance.

    files     paths
    datasets  names of the texts that were used, if the file lists them
    chunks    number of chunks of text that were used; 0: unknown
    """

    def __init__(self, native):
        self._native = native
        self._names = dict.fromkeys(native.names())
        self.files = native.files
        self.datasets = native.datasets
        self.chunks = native.chunks

    def __getitem__(self, name):
        if name not in self._names:
            raise KeyError(name)
        return self._native.weights(name)

    def __contains__(self, name):
        return name in self._names

    def __iter__(self):
        return iter(self._names)

    def __len__(self):
        return len(self._names)

    def __repr__(self):
        return f"<ggufmill.ImportanceMatrix {self.files[0]!r}: {len(self)} tensors, {self.chunks} chunks>"
