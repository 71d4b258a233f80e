"""Jobs in the form that the library takes: pipeline files, and dictionaries with the same contents."""

import json
import os
from collections.abc import Mapping

from . import _native
from ._error import usage_error


def _plain(value):
    """Convert values that JSON does not support: paths and numpy numbers."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "item"):
        return value.item()
    raise usage_error(f"a job cannot contain {value!r}, which is of type {type(value).__name__}")


def job_text(job, set=None, parameters=None):
    """Return the text of `job`, which is the path of a pipeline file or a dictionary with its contents."""
    changes = [f"{path}={json.dumps(value, default=_plain)}" for path, value in (set or {}).items()]
    values = [f"{name}={value}" for name, value in (parameters or {}).items()]
    if isinstance(job, Mapping):
        # JSON is valid YAML. It is indented so that a message can show the affected line.
        return _native.JobText("job", json.dumps(job, default=_plain, indent=2, ensure_ascii=False), changes, values)
    return _native.JobText(os.fspath(job), None, changes, values)
