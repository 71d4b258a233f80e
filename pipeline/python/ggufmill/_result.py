"""Results of operations: dictionaries that are easy to read."""

from __future__ import annotations

import html
import json
import os
import tempfile

_SHOWN = 5  # items of a list
_WIDTH = 100  # characters of a value


def _short(value):
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"


def _is_flat(value):
    """Tell whether a value takes one line: all but dictionaries, and lists that contain some."""
    if isinstance(value, dict):
        return not value
    return not isinstance(value, list) or not any(isinstance(each, (dict, list)) for each in value)


def _lines(value, indent):
    """Yield the lines of a dictionary or of a list, as in YAML, without the later items of long lists."""
    if isinstance(value, list):
        for item in value[:_SHOWN]:
            if _is_flat(item):
                yield f"{indent}- {_short(item)}"
            else:
                first, *others = _lines(item, indent + "  ")
                yield f"{indent}- {first.lstrip()}"
                yield from others
        if len(value) > _SHOWN:
            yield f"{indent}… {len(value) - _SHOWN} more"
        return
    for name, member in value.items():
        if _is_flat(member):
            yield f"{indent}{name}: {_short(member)}"
        else:
            yield f"{indent}{name}:"
            yield from _lines(member, indent + "  ")


def _cell(value):
    if _is_flat(value):
        return html.escape(_short(value))
    kind = "items" if isinstance(value, list) else "members"
    return f"<details><summary>{len(value)} {kind}</summary>{_table(value)}</details>"


def _table(value):
    """Return a table: of the items of a list with the same members in a row each, else of names and values."""
    if isinstance(value, list):
        names = list(value[0]) if isinstance(value[0], dict) else None
        if names and all(isinstance(each, dict) and list(each) == names for each in value):
            head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
            rows = ("".join(f"<td>{_cell(each[name])}</td>" for name in names) for each in value)
            return f"<table><tr>{head}</tr>" + "".join(f"<tr>{row}</tr>" for row in rows) + "</table>"
        return "<table>" + "".join(f"<tr><td>{_cell(each)}</td></tr>" for each in value) + "</table>"
    rows = (f"<tr><th>{html.escape(name)}</th><td>{_cell(member)}</td></tr>" for name, member in value.items())
    return "<table>" + "".join(rows) + "</table>"


def _page(report, operator):
    """Return the page of a report, in a frame: its styles and scripts are its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({name: member for name, member in report.items() if name != "warnings"}, file)
        page = operator.report(path)["html"]
    return f'<iframe srcdoc="{html.escape(page)}" style="width: 100%; height: 40em; border: 0"></iframe>'


class Result(dict):
    """The result of an operation: a dictionary whose members are attributes, too, unless a method has their name.

    print() shows it like YAML, with the first items of each list. A notebook shows it as a table, and the report of a run
    or a comparison as its page. json.dumps() writes all of it.
    """

    __module__ = "ggufmill"

    def __init__(self, operator, members):
        super().__init__(members)
        self.__dict__["_operator"] = operator

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the result has no member {name!r}: it has {', '.join(self) or 'none'}") from None

    def __setattr__(self, name, value):
        raise AttributeError(f"set the member, not the attribute: result[{name!r}] = ...")

    def __dir__(self):
        return [*super().__dir__(), *self]

    def __reduce__(self):
        return dict, (dict(self),)

    def __repr__(self):
        return "\n".join(_lines(self, "")) or "{}"

    def _repr_html_(self):
        return _page(self, self._operator) if self.get("format") == "ggufmill-report" else _table(self)
