"""Code that the functions of _operations share."""

from __future__ import annotations

import functools
import inspect
import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._error import Error, FileError, usage_error
from ._library import call_with_result, encoded, interruptible
from ._plan import Plan
from ._progress import progress_function
from ._result import Result


if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Concatenate, ParamSpec, TypeVar

    _Parameters = ParamSpec("_Parameters")
    _Returned = TypeVar("_Returned")


def of_default(method: Callable[Concatenate[Any, _Parameters], _Returned]) -> Callable[_Parameters, _Returned]:
    """Return a method of Context as a function of the module, which calls it on the default context."""

    @functools.wraps(method)
    def function(*args, **keywords):
        from . import _default  # imported on use: the package imports this module

        return method(_default(), *args, **keywords)

    signature = inspect.signature(method)
    function.__signature__ = signature.replace(parameters=[*signature.parameters.values()][1:])
    function.__module__ = __package__
    function.__qualname__ = method.__name__
    return function


def _plain(value):
    """Convert values that JSON does not have: paths, those of numpy, mappings, and other iterables."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, bytes):
        return os.fsdecode(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    try:
        return list(value)
    except TypeError:
        raise usage_error(f"an option cannot contain {value!r}, which is of type {type(value).__name__}") from None


class Operator:
    """Calls operations of the library. `_native` is the context to call them with."""

    def _operate(self, name, options, progress=None, *, none_if_empty=(), is_alone=False):
        given = {option: value for option, value in options.items() if value is not None}
        request = encoded(json.dumps(given, default=_plain))
        work = lambda control: call_with_result(self._native.handle, encoded(name), request, control)
        with progress_function(name, progress) as report:
            result = json.loads(interruptible(work, report))
        if is_alone:  # there is one member besides the warnings
            return next(value for member, value in result.items() if member != "warnings")
        members = {member: None if member in none_if_empty and value == "" else value for member, value in result.items()}
        return Result(self, members)

    # Operations whose results are not dictionaries of their members.

    def _check(self, options):
        try:
            self._operate("check", options)
        except Error as error:
            also, error.also = error.also, []
            return [error, *also]
        return []

    def _described_plan(self, options):
        """Return the description of a plan, and its problems."""
        try:
            return self._operate("plan", options), []
        except Error as error:
            if error.result is None:
                raise
            also, error.also = error.also, []
            return {"warnings": [], **error.result}, [error, *also]

    def _plan(self, options):
        options = json.loads(json.dumps(options, default=_plain))  # a plan keeps its own
        return Plan(self, options, *self._described_plan(options))

    def _measure(self, options, progress):
        for path in (os.fspath(options[name]) for name in ("output", "html") if options[name]):
            if not options["overwrite"] and os.path.exists(path):
                help = "pass overwrite=True to replace it"
                raise FileError(f"{path}: error: already exists\n  help: {help}\n", path, "already exists", "", help, 6)
        measured = self._operate("measure", options, progress)
        del measured["warnings"]  # a measurement is what its file contains
        return measured

    def _curve(self, options, progress):
        return self._operate("curve", options, progress)["points"]

    def _run(self, options, progress):
        job = options["job"]
        return self._operate("run", job._request(options) if isinstance(job, Plan) else options, progress)
