import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

__version__: str

_Path = Union[str, "os.PathLike[str]"]
_Shape = Union[int, Sequence[int]]
_Job = Union[_Path, Mapping[str, Any]]
_Progress = Union[Callable[["Progress"], object], None]
_Changes = Union[Mapping[str, Any], None]
_Out = Union[NDArray[Any], None]
_Buffer = Any  # any object with contiguous memory

class Error(Exception):
    where: str
    what: str
    detail: str
    help: str
    exit_code: int
    also: list[Error]

class UsageError(Error, ValueError): ...
class VerificationError(Error): ...
class InputError(Error, ValueError): ...
class KernelError(Error): ...
class FileError(Error): ...
class TransientError(Error): ...

class Progress:
    @property
    def bytes_read(self) -> int: ...
    @property
    def bytes_to_read(self) -> int: ...
    @property
    def bytes_written(self) -> int: ...
    @property
    def bytes_to_write(self) -> int: ...
    @property
    def tensor(self) -> str: ...
    @property
    def seconds(self) -> float: ...

class ProgressBar:
    bar: Any
    def __init__(self, bar: Any = None, **options: Any) -> None: ...
    def __call__(self, now: Progress) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> ProgressBar: ...
    def __exit__(self, *_: object) -> None: ...

class ImportanceMatrix(Mapping[str, NDArray[np.float32]]):
    files: list[str]
    datasets: list[str]
    chunks: int
    def __getitem__(self, name: str) -> NDArray[np.float32]: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...

class Metadata(Mapping[str, Any]):
    def __getitem__(self, key: str) -> Any: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def type(self, key: str) -> str: ...

class Tensor:
    name: str
    type: str
    shape: tuple[int, ...]
    nbytes: int
    @property
    def dtype(self) -> np.dtype[np.float32]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def is_mapped(self) -> bool: ...
    @property
    def raw(self) -> NDArray[np.uint8]: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]: ...
    def __getitem__(self, key: Any) -> Any: ...
    def __len__(self) -> int: ...

class Model:
    files: list[str]
    metadata: Metadata
    tensors: Mapping[str, Tensor]
    warnings: list[str]
    def close(self) -> None: ...
    def __enter__(self) -> Model: ...
    def __exit__(self, *_: object) -> None: ...

class Plan:
    @property
    def file(self) -> str: ...
    @property
    def source(self) -> dict[str, Any]: ...
    @property
    def outputs(self) -> list[dict[str, Any]]: ...
    @property
    def problems(self) -> list[Error]: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def bytes_read(self) -> int: ...
    @property
    def bytes_written(self) -> int: ...
    @property
    def least_memory(self) -> int: ...
    def written(self) -> str: ...

class Context:
    def __init__(
        self, *, kernel_dirs: _Path | Iterable[_Path] = (), isa: str = "", architectures: _Path | Iterable[_Path] = ()
    ) -> None: ...
    @property
    def isa(self) -> str: ...
    def modules(self) -> list[dict[str, Any]]: ...
    def types(self) -> list[dict[str, Any]]: ...
    def quantize(
        self, array: ArrayLike, type: str, importance: ArrayLike | None = None, *, out: _Out = None, threads: int = 0
    ) -> NDArray[np.uint8]: ...
    def dequantize(
        self, buffer: _Buffer, type: str, shape: _Shape | None = None, *, out: _Out = None, threads: int = 0
    ) -> NDArray[np.float32]: ...
    def open(self, path: _Path) -> Model: ...
    def plan(self, job: _Job, *, set: _Changes = None, parameters: _Changes = None) -> Plan: ...
    def check(
        self, job: _Job, *, overwrite: bool = False, set: _Changes = None, parameters: _Changes = None
    ) -> list[Error]: ...
    def run(
        self, job: Union[_Job, Plan],
        *,
        overwrite: bool = False,
        resume: bool = True,
        progress: _Progress = None,
        set: _Changes = None,
        parameters: _Changes = None,
    ) -> dict[str, Any]: ...
    def compare(
        self, a: _Path,
        b: _Path,
        *,
        importance: _Path = "",
        html: _Path = "",
        overwrite: bool = False,
        threads: int = 0,
        progress: _Progress = None,
    ) -> dict[str, Any]: ...
    def measure(
        self,
        job: _Job,
        *,
        output: _Path = "",
        html: _Path = "",
        overwrite: bool = False,
        progress: _Progress = None,
        set: _Changes = None,
        parameters: _Changes = None,
    ) -> dict[str, Any]: ...
    def curve(
        self,
        job: _Job,
        *,
        output: int = 0,
        points: int = 25,
        progress: _Progress = None,
        set: _Changes = None,
        parameters: _Changes = None,
    ) -> list[dict[str, Any]]: ...
    def verify(
        self,
        path: _Path,
        *,
        manifest: _Path = "",
        against: _Path = "",
        allow_missing: bool = False,
        threads: int = 0,
        progress: _Progress = None,
    ) -> dict[str, Any]: ...
    def recipes(self) -> list[dict[str, Any]]: ...
    def imatrix(self, path: _Path) -> ImportanceMatrix: ...
    def edit(
        self,
        path: _Path,
        *,
        set: _Changes = None,
        remove: Iterable[str] = (),
        rename: Union[Mapping[str, str], None] = None,
        output: _Path = "",
        overwrite: bool = False,
        dry_run: bool = False,
    ) -> dict[str, Any]: ...

def types() -> list[dict[str, Any]]: ...
def quantize(
    array: ArrayLike, type: str, importance: ArrayLike | None = None, *, out: _Out = None, threads: int = 0
) -> NDArray[np.uint8]: ...
def dequantize(
    buffer: _Buffer, type: str, shape: _Shape | None = None, *, out: _Out = None, threads: int = 0
) -> NDArray[np.float32]: ...
def open(path: _Path) -> Model: ...
def plan(job: _Job, *, set: _Changes = None, parameters: _Changes = None) -> Plan: ...
def check(
    job: _Job, *, overwrite: bool = False, set: _Changes = None, parameters: _Changes = None
) -> list[Error]: ...
def run(
    job: Union[_Job, Plan],
    *,
    overwrite: bool = False,
    resume: bool = True,
    progress: _Progress = None,
    set: _Changes = None,
    parameters: _Changes = None,
) -> dict[str, Any]: ...
def compare(
    a: _Path,
    b: _Path,
    *,
    importance: _Path = "",
    html: _Path = "",
    overwrite: bool = False,
    threads: int = 0,
    progress: _Progress = None,
) -> dict[str, Any]: ...
def measure(
    job: _Job,
    *,
    output: _Path = "",
    html: _Path = "",
    overwrite: bool = False,
    progress: _Progress = None,
    set: _Changes = None,
    parameters: _Changes = None,
) -> dict[str, Any]: ...
def curve(
    job: _Job,
    *,
    output: int = 0,
    points: int = 25,
    progress: _Progress = None,
    set: _Changes = None,
    parameters: _Changes = None,
) -> list[dict[str, Any]]: ...
def verify(
    path: _Path,
    *,
    manifest: _Path = "",
    against: _Path = "",
    allow_missing: bool = False,
    threads: int = 0,
    progress: _Progress = None,
) -> dict[str, Any]: ...
def recipes() -> list[dict[str, Any]]: ...
def imatrix(path: _Path) -> ImportanceMatrix: ...
def edit(
    path: _Path,
    *,
    set: _Changes = None,
    remove: Iterable[str] = (),
    rename: Union[Mapping[str, str], None] = None,
    output: _Path = "",
    overwrite: bool = False,
    dry_run: bool = False,
) -> dict[str, Any]: ...
