"""ggufmill: weights quantized and decoded, models opened and converted. See README.md beside this package's sources."""

import functools
import json
import os

import numpy as np

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
from ._files import ImportanceMatrix, settings
from ._job import job_text, report
from ._model import Metadata, Model, Tensor
from ._native import Plan, Progress
from ._progress import ProgressBar

__version__ = _native.version
__all__ = [
    *("Context", "ImportanceMatrix", "Metadata", "Model", "Plan", "Progress", "ProgressBar", "Tensor"),
    *("Error", "FileError", "InputError", "KernelError", "TransientError", "UsageError", "VerificationError"),
    *("check", "compare", "curve", "dequantize", "edit", "imatrix", "measure", "open", "plan", "quantize", "recipes"),
    *("run", "types", "verify"),
]

_FLOATS = {"float32": "F32", "float16": "F16", "float64": "F64", "bfloat16": "BF16"}


def _floats(array):
    """The array in the form that kernels read, and its type there. Copied only where it is not so yet."""
    array = np.asanyarray(array)
    if array.dtype.name not in _FLOATS:
        raise usage_error(
            f"an array of {array.dtype} cannot be quantized",
            "it has to be of float32, float16, bfloat16 or float64: array.astype(numpy.float32)",
        )
    if array.ndim == 0:
        raise usage_error("an array without dimensions cannot be quantized", "rows are along the last axis")
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    return np.require(native, requirements=["C", "A"]), _FLOATS[array.dtype.name]


def _weights(importance, shape):
    """Importance for rows of so many columns: for all rows, or for each matrix of them."""
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
            f"it is of shape {shape[-1:]}, for all rows, or {wanted}, for each matrix",
        )
    return weights


def _checked_out(out, source):
    """`out`, if a result can be written to it while `source` is read."""
    if out is None:
        return None
    if not isinstance(out, np.ndarray) or not (out.flags.c_contiguous and out.flags.aligned and out.flags.writeable):
        raise usage_error("`out` has to be a numpy array that is C-contiguous, aligned and writable")
    if not isinstance(source, np.ndarray):
        source = np.frombuffer(source, np.uint8) if len(memoryview(source)) else np.empty(0, np.uint8)
    if np.may_share_memory(out, source):
        raise usage_error("`out` shares memory with what is converted", "the result needs memory of its own")
    return out


class Context:
    """Kernels, and what can be done with them. The functions of the module are those of a context without options.

    kernel_dirs  folders of further kernel modules
    isa          force an instruction set: "x86-64-v3"; empty: the best that this machine has
    """

    def __init__(self, *, kernel_dirs=(), isa=""):
        self._native = _native.Context([os.fspath(each) for each in kernel_dirs], isa)

    def __repr__(self):
        return f"<ggufmill.Context with kernels for {self.isa}>"

    @property
    def isa(self):
        """The instruction set of the kernels that run."""
        return self._native.isa

    def modules(self):
        """The kernel modules that were found, and why one was refused: dictionaries."""
        return self._native.modules()

    def types(self):
        """The tensor types, as `ggufmill types --json` has them."""
        return self._native.types()

    def quantize(self, array, type, importance=None, *, out=None, threads=0):
        """Rows of numbers, along the last axis, to rows of a type: uint8 of shape (..., bytes of a row).

        array       float32, float16, bfloat16 or float64, of any shape; read where it lies if it is C-contiguous
        type        "Q4_K", "F16", ...; the length of a row has to be a multiple of its block
        importance  weights of the columns: of shape (columns,) for all rows, or array.shape without the axis of
                    rows, for each matrix
        out         an array of the result's shape to write to, which spares the system's work of giving new memory
        threads     0: as many as the machine gives this process

        The bytes are those that a run writes. Values that are not finite are an error.
        """
        values, from_type = _floats(array)
        weights = None if importance is None else _weights(importance, values.shape)
        return self._native.quantize(values, from_type, type, weights, _checked_out(out, values), threads)

    def dequantize(self, buffer, type, shape=None, *, out=None, threads=0):
        """Rows of a type to float32.

        buffer  whatever has its bytes in one piece: uint8 array, bytes, memoryview, memory map
        shape   of the values; None: that of the array `buffer`, whose last axis are the bytes of a row
        out     as of quantize()
        """
        if isinstance(buffer, np.ndarray):
            if shape is None:
                shape = self._value_shape(buffer, type)
            buffer = np.ascontiguousarray(buffer).reshape(-1).view(np.uint8)
        elif shape is None:
            raise usage_error("the shape of the values has to be given", "dequantize(buffer, type, shape)")
        shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(int(each) for each in shape)
        if any(each < 0 for each in shape):
            raise usage_error(f"the shape {shape} has a negative dimension")
        return self._native.dequantize(buffer, type, shape, _checked_out(out, buffer), threads)

    def _value_shape(self, rows, type):
        info = next((each for each in self.types() if each["name"].lower() == type.lower()), None)
        if info is None or rows.ndim == 0:
            return rows.shape
        row_bytes = rows.shape[-1] * rows.itemsize
        if row_bytes % info["block_bytes"]:
            raise usage_error(
                f"rows of {row_bytes} bytes are no whole blocks of {info['name']}",
                f"a block of {info['name']} has {info['block_bytes']} bytes; or give the shape of the values",
            )
        return (*rows.shape[:-1], row_bytes // info["block_bytes"] * info["block_elements"])

    def open(self, path):
        """A GGUF file (of shards the first), a checkpoint folder, or a safetensors file. Reads headers, not weights."""
        return Model(self._native.open(os.fspath(path)))

    def plan(self, job, *, set=None, parameters=None):
        """What a job does to every tensor: reads headers, writes nothing.

        job         the path of a pipeline file, or a dictionary with what would stand in it
        set         changes to it: {"outputs.0.gguf": "out/a.gguf"}
        parameters  values of the parameters that it declares
        """
        return self._native.plan(job_text(job, set, parameters))

    def check(self, job, *, overwrite=False, set=None, parameters=None):
        """All that is known to prevent a run, here and now: a list of errors, empty where there are none."""
        return self._native.check(job_text(job, set, parameters), overwrite)

    def run(self, job, *, overwrite=False, resume=True, progress=None, set=None, parameters=None):
        """Carries out a job, or a plan: all outputs become visible together, or none.

        overwrite   replace outputs that are there
        resume      go on with what an earlier run of the same job left
        progress    a function that is given a Progress some times a second; an exception of it ends the run
        set, parameters
                    as of plan()

        Gives the report as a dictionary of the form that `ggufmill run --report` writes, with "warnings". Of a batch,
        it is the report of the batch; outputs that failed are an error once the others are done. Ctrl-C ends a run,
        and the same call goes on from there.
        """
        if isinstance(job, Plan):
            if set or parameters:
                raise usage_error("a plan is run as it is", "give `set` and `parameters` to plan()")
            return report(job._run(overwrite, resume, progress))
        return report(self._native.run(job_text(job, set, parameters), overwrite, resume, progress))

    def compare(self, a, b, *, importance="", html="", overwrite=False, threads=0, progress=None):
        """How far the values of model `b` are from those of `a`, tensor by tensor of the same name.

        a, b        as of open()
        importance  a file of importance for `a`: gives the weighted error
        html        where a page is written
        overwrite   replace a page that is there

        Gives the report as a dictionary of the form of `ggufmill compare --json`, with "warnings".
        """
        paths = [os.fspath(each) for each in (a, b, importance, html)]
        return report(self._native.compare(*paths, overwrite, threads, progress))

    def measure(self, job, *, output="", html="", overwrite=False, progress=None, set=None, parameters=None):
        """What each candidate type of a job's targets would cost each tensor; reads the source once.

        output     a file to write it to, for `measured` of the job; what it has so far lets an interrupted call continue
        html       where a page is written
        overwrite  replace files that are there

        Gives the measurement as a dictionary of the form of `ggufmill measure`.
        """
        paths = [os.fspath(each) for each in (output, html)]
        return json.loads(self._native.measure(job_text(job, set, parameters), *paths, overwrite, progress))

    def curve(self, job, *, output=0, points=25, progress=None, set=None, parameters=None):
        """What the best choice of types loses at each size, for an output of a job with a target.

        Gives dictionaries: `bytes` of all tensors, `loss`, `recipe` (None: the best choice of that size), and `target`,
        true where the job's own target comes to. What is not measured yet is measured.
        """
        return self._native.curve(job_text(job, set, parameters), output, points, progress)

    def verify(self, path, *, manifest="", threads=0, progress=None):
        """Reads a model file, or the manifest of an output, from end to end: structure, numbers, checksums.

        manifest  that it is compared with; by default FILE.manifest.json, where that is there

        Gives `files`, `tensors`, `bytes`, `manifest` and `warnings`. What is wrong is an InputError, what is not as the
        manifest says a VerificationError.
        """
        return self._native.verify(os.fspath(path), os.fspath(manifest), threads, progress)

    def recipes(self):
        """The built-in recipes: dictionaries of name, aliases, file_type, type and description."""
        return self._native.recipes()

    def imatrix(self, path):
        """An importance matrix of llama-imatrix, GGUF or .dat: a mapping of names of tensors to weights of columns."""
        return ImportanceMatrix(self._native.imatrix(os.fspath(path)))

    def edit(self, path, *, set=None, remove=(), rename=None, output="", overwrite=False, dry_run=False):
        """Changes the metadata of a GGUF file where it is; its weights are not read where the header has room.

        set        keys and values: {"general.license": "mit", "llama.context_length:uint32": 8192}. A number takes the
                   type that its key has; a key may name another
        remove     keys
        rename     {old: new}
        output     a file to write the result to; by default the file itself is changed
        overwrite  replace `output` where it is there
        dry_run    write nothing

        Gives `keys` that changed, `in_place` (the header alone was written), `bytes`, `restored` and `warnings`.
        """
        changes = settings(set), [os.fspath(each) for each in remove], list((rename or {}).items())
        if not any(changes):
            raise usage_error("nothing is to be changed", "give `set`, `remove` or `rename`")
        return self._native.edit(os.fspath(path), *changes, os.fspath(output), overwrite, dry_run)


@functools.lru_cache(maxsize=None)
def _default():
    return Context()


def types():
    return _default().types()


def quantize(array, type, importance=None, *, out=None, threads=0):
    return _default().quantize(array, type, importance, out=out, threads=threads)


def dequantize(buffer, type, shape=None, *, out=None, threads=0):
    return _default().dequantize(buffer, type, shape, out=out, threads=threads)


def open(path):
    return _default().open(path)


def plan(job, *, set=None, parameters=None):
    return _default().plan(job, set=set, parameters=parameters)


def check(job, *, overwrite=False, set=None, parameters=None):
    return _default().check(job, overwrite=overwrite, set=set, parameters=parameters)


def run(job, *, overwrite=False, resume=True, progress=None, set=None, parameters=None):
    return _default().run(
        job, overwrite=overwrite, resume=resume, progress=progress, set=set, parameters=parameters
    )


def compare(a, b, *, importance="", html="", overwrite=False, threads=0, progress=None):
    return _default().compare(
        a, b, importance=importance, html=html, overwrite=overwrite, threads=threads, progress=progress
    )


def measure(job, *, output="", html="", overwrite=False, progress=None, set=None, parameters=None):
    return _default().measure(
        job, output=output, html=html, overwrite=overwrite, progress=progress, set=set, parameters=parameters
    )


def curve(job, *, output=0, points=25, progress=None, set=None, parameters=None):
    return _default().curve(job, output=output, points=points, progress=progress, set=set, parameters=parameters)


def verify(path, *, manifest="", threads=0, progress=None):
    return _default().verify(path, manifest=manifest, threads=threads, progress=progress)


def recipes():
    return _default().recipes()


def imatrix(path):
    return _default().imatrix(path)


def edit(path, *, set=None, remove=(), rename=None, output="", overwrite=False, dry_run=False):
    return _default().edit(
        path, set=set, remove=remove, rename=rename, output=output, overwrite=overwrite, dry_run=dry_run
    )


for _each in (
    *(types, quantize, dequantize, open, plan, check, run, compare),
    *(measure, curve, verify, recipes, imatrix, edit),
):
    _each.__doc__ = getattr(Context, _each.__name__).__doc__
