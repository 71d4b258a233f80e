"""ggufmill: quantize and decode weights, open and convert models. See README.md next to this package's sources."""

import functools
import importlib
import os
import sys

from . import _native
from ._error import (
    Error,
    FileError,
    InputError,
    KernelError,
    TransientError,
    UsageError,
    VerificationError,
    usage_error,
)
from ._files import ImportanceMatrix
from ._library import Progress
from ._model import Metadata, Model, Tensor
from ._numpy import np
from ._operate import of_default
from ._operations import *  # noqa: F403
from ._operations import Operations
from ._operations import __all__ as _operations
from ._plan import Plan
from ._progress import ProgressBar
from ._result import Result

__version__ = _native.version
__all__ = [
    *("Context", "ImportanceMatrix", "Metadata", "Model", "Plan", "Progress", "ProgressBar", "Result", "Tensor"),
    *("Error", "FileError", "InputError", "KernelError", "TransientError", "UsageError", "VerificationError"),
    *("dequantize", "imatrix", "open", "quantize"),
    *_operations,
]

_FLOATS = {"float32": "F32", "float16": "F16", "float64": "F64", "bfloat16": "BF16"}


def _of_torch(tensor):
    """Return a tensor of torch as an array and its tensor type, or None: of the same memory if that is the CPU's."""
    torch = sys.modules["torch"]
    tensor = tensor.detach().cpu()
    if tensor.dtype == torch.bfloat16:  # numpy has no such type
        return tensor.contiguous().view(torch.int16).numpy(), "BF16"
    return tensor.numpy(), None


def _floats(array):
    """Return the array in the form that kernels read, and its tensor type. Copies it only if necessary."""
    type_ = None
    if type(array).__module__.partition(".")[0] == "torch":
        array, type_ = _of_torch(array)
    if isinstance(array, (str, os.PathLike)):
        raise usage_error(f"{os.fspath(array)!r} is text, not an array", "quantize_model() quantizes a file")
    array = np.asanyarray(array)
    type_ = type_ or _FLOATS.get(array.dtype.name)
    if type_ is None:
        raise usage_error(
            f"an array of {array.dtype} cannot be quantized",
            "it must be of float32, float16, bfloat16, or float64: array.astype(numpy.float32)",
        )
    if array.ndim == 0:
        raise usage_error("an array without dimensions cannot be quantized", "rows are along the last axis")
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    return np.require(native, requirements=["C", "A"]), type_


def _weights(importance, shape):
    """Return the importance of the columns, either for all rows or for each matrix."""
    weights = np.ascontiguousarray(importance, dtype=np.float32)
    wanted = (*shape[:-2], shape[-1])
    if weights.ndim > 1:
        try:
            weights = np.ascontiguousarray(np.broadcast_to(weights, wanted))
        except ValueError:
            weights = None
    if weights is None or weights.shape[-1:] != shape[-1:]:
        raise usage_error(
            f"importance of shape {np.shape(importance)} does not fit an array of shape {tuple(shape)}",
            f"it must be of shape {shape[-1:]}, for all rows, or {wanted}, for each matrix",
        )
    return weights


def _covariance(covariance, shape):
    """Return the covariance of the columns as the library reads it."""
    matrix = np.require(covariance, np.float64, ["C", "A"])
    if matrix.shape != (shape[-1], shape[-1]):
        raise usage_error(
            f"a covariance of shape {matrix.shape} does not fit an array of shape {tuple(shape)}",
            f"it must be of shape {(shape[-1], shape[-1])}, for all rows",
        )
    return matrix


def _started(start, shape, out):
    """Return a copy of the encoded rows `start`, in `out` if that is not None."""
    rows = np.asarray(start)
    if rows.dtype != np.uint8 or rows.shape != shape:
        raise usage_error(
            f"`start` is an array of {rows.dtype} {rows.shape}, but the result is of uint8 {shape}",
            "pass rows that quantize() has returned for an array of this shape and type",
        )
    if out is None:
        return rows.copy()
    if out.dtype != np.uint8 or out.shape != shape:
        raise usage_error(f"`out` is an array of {out.dtype} {out.shape}, but the result is of uint8 {shape}")
    out[...] = rows
    return out


def _checked_out(out, source):
    """Return `out` if a result can be written to it while `source` is read."""
    if out is None:
        return None
    if not isinstance(out, np.ndarray) or not (out.flags.c_contiguous and out.flags.aligned and out.flags.writeable):
        raise usage_error("`out` must be a numpy array that is C-contiguous, aligned, and writable")
    if not isinstance(source, np.ndarray):
        source = np.frombuffer(source, np.uint8) if len(memoryview(source)) else np.empty(0, np.uint8)
    if np.may_share_memory(out, source):
        raise usage_error("`out` shares memory with what is converted", "the result needs memory of its own")
    return out


def _paths(given):
    """Return one path or several as a list of strings."""
    return [os.fspath(each) for each in ([given] if isinstance(given, (str, os.PathLike)) else given)]


class Context(Operations):
    """Kernels and the operations that use them. The functions of the module use a context without options.

    kernel_dirs    folder of additional kernel modules, or several
    isa            instruction set to use: "x86-64-v3"; empty: the best that this machine supports
    architectures  folder of architecture maps, or one map file, to add to the built-in ones, or several
    """

    def __init__(self, *, kernel_dirs=(), isa="", architectures=()):
        self._native = _native.Context(_paths(kernel_dirs), isa, _paths(architectures))

    def __repr__(self):
        return f"<ggufmill.Context with kernels for {self.isa}>"

    @property
    def isa(self):
        """Instruction set of the kernels in use."""
        return self.kernels()["isa"]

    def modules(self):
        """Return the kernel modules that were found, with the reason if one was refused, as dictionaries."""
        members = ("path", "name", "version", "isa", "loaded")
        return [{**{name: each[name] for name in members}, "why": each["refusal"]} for each in self.kernels()["modules"]]

    def quantize(self, array, type, importance=None, *, covariance=None, start=None, sweeps=2, out=None, threads=0):
        """Quantize rows of numbers, along the last axis, to rows of a type: uint8 of shape (..., bytes per row).

        array       float32, float16, bfloat16, or float64, of any shape, of numpy or torch; not copied if it is
                    C-contiguous and in the memory of the CPU
        type        "Q4_K", "F16", ...; the row length must be a multiple of its block size
        importance  weights of the columns: of shape (columns,) for all rows, or array.shape without the row axis,
                    for each matrix
        covariance  sum of x x^T over the vectors x that the rows are multiplied with, of shape (columns, columns): the
                    levels are those that make the error of the products small. Used as it is, so shrink the elements
                    beside the diagonal and add something to it before: run() takes 0.7 of them and adds 0.01 of the mean
        start       with `covariance`: encoded rows whose scales and minimums remain; None: rows encoded without it
        sweeps      with `covariance`: how often each level is reconsidered
        out         an array of the result's shape to write to, which avoids allocating new memory
        threads     number of threads; 0: as many as this process may use

        The bytes are the same as those written by a run. Non-finite values are an error.
        """
        values, from_type = _floats(array)
        weights = None if importance is None else _weights(importance, values.shape)
        if covariance is None:
            if start is not None:
                raise usage_error("`start` has no effect without `covariance`", "pass the covariance of the columns, too")
            return self._native.quantize(values, from_type, type, weights, _checked_out(out, values), threads)
        if sweeps < 0:
            raise usage_error(f"sweeps={sweeps} is negative", "2 suffice; 0: only error feedback")
        matrix = _covariance(covariance, values.shape)
        if start is None:
            made = self._native.quantize(values, from_type, type, weights, _checked_out(out, values), threads)
        else:
            made = _started(start, self._native.row_shape(values.shape, type), _checked_out(out, values))
        if values.size:
            numbers = values if from_type == "F32" else self._native.quantize(values, from_type, "F32", None, None, threads)
            self._native.choose_levels(numbers.view(np.float32), type, matrix, sweeps, made, threads)
        return made

    def dequantize(self, buffer, type, shape=None, *, out=None, threads=0):
        """Decode rows of a type to float32.

        buffer  any object with contiguous bytes: uint8 array, bytes, memoryview, memory map
        shape   shape of the values; None: derived from the array `buffer`, whose last axis holds the bytes of a row
        out     as for quantize()
        """
        if isinstance(buffer, np.ndarray):
            if shape is None:
                shape = self._value_shape(buffer, type)
            buffer = np.ascontiguousarray(buffer).reshape(-1).view(np.uint8)
        elif shape is None:
            raise usage_error("the shape of the values is missing", "dequantize(buffer, type, shape)")
        shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(int(each) for each in shape)
        if any(each < 0 for each in shape):
            raise usage_error(f"the shape {shape} has a negative dimension")
        return self._native.dequantize(buffer, type, shape, _checked_out(out, buffer), threads)

    def _value_shape(self, rows, type):
        info = self._native.type_infos().get(type.lower())
        if info is None or rows.ndim == 0:
            return rows.shape
        row_bytes = rows.shape[-1] * rows.itemsize
        blocks_bytes = row_bytes - info["row_header_bytes"]
        if blocks_bytes < 0 or blocks_bytes % info["block_bytes"]:
            raise usage_error(
                f"rows of {row_bytes} bytes are not a whole number of blocks of {info['name']}",
                f"a block of {info['name']} has {info['block_bytes']} bytes; otherwise give the shape of the values",
            )
        return (*rows.shape[:-1], blocks_bytes // info["block_bytes"] * info["block_elements"])

    def open(self, path):
        """Open a GGUF file (or its first shard), a checkpoint folder, or a safetensors file. Reads headers only."""
        return Model(self._native.open(os.fspath(path)))

    def imatrix(self, path):
        """Open an importance matrix of llama-imatrix, GGUF or .dat: a mapping of tensor names to column weights."""
        return ImportanceMatrix(self._native.imatrix(os.fspath(path)))


@functools.lru_cache(maxsize=None)
def _default():
    return Context()


quantize = of_default(Context.quantize)
dequantize = of_default(Context.dequantize)
open = of_default(Context.open)
imatrix = of_default(Context.imatrix)


def __getattr__(name):
    if name != "aio":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(".aio", __name__)  # on use: importing asyncio takes longer than the rest
