"""Jobs as the library takes them: pipeline files, and dictionaries that say the same."""

import json
import os
from collections.abc import Mapping

from . import _native
from ._error import usage_error


def _plain(value):
    """What JSON has no form for: paths, and numbers of numpy."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "item"):
        return value.item()
    raise usage_error(f"a job cannot hold {value!r}, which is of type {type(value).__name__}")


def job_text(job, set=None, parameters=None):
    """`job`: the path of a pipeline file, or a dictionary with what would stand in it."""
    changes = [f"{path}={json.dumps(value, default=_plain)}" for path, value in (set or {}).items()]
    values = [f"{name}={value}" for name, value in (parameters or {}).items()]
    if isinstance(job, Mapping):
        # JSON is valid YAML. It is indented so that a message can show the affected line.
        return _native.JobText("job", json.dumps(job, default=_plain, indent=2, ensure_ascii=False), changes, values)
    return _native.JobText(os.fspath(job), None, changes, values)


def report(told):
    """The report of a run as a dictionary, with what is to be known beside it."""
    text, warnings = told
    made = json.loads(text)
    made["warnings"] = warnings
    return made
