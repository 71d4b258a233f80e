"""Plans of jobs."""

from ._error import error_of, usage_error
from ._library import human


class Plan:
    """The plan of a job: see Context.plan."""

    __module__ = "ggufmill"
    __slots__ = (
        *("file", "source", "outputs", "problems", "warnings", "least_memory", "bytes_read", "bytes_written"),
        *("_operator", "_options", "_identity"),
    )

    def __init__(self, operator, options, described, problems):
        if "sources" in described:
            raise usage_error("a batch has no plan", "plan each source with its own pipeline file")
        self._operator, self._options, self._identity = operator, options, described["identity"]
        self.file = "job" if isinstance(options["job"], dict) else options["job"]
        self.source, self.outputs, self.problems = described["source"], described["outputs"], list(problems)
        for each in described.get("solved", ()):  # a run measures first
            where, what, help = each["where"], each["what"], each["help"]
            text = f"{where}: error: {what}\n  help: {help}\n"
            self.problems.append(error_of(text, where, what, "", help, 2, ()))
        self.warnings, self.least_memory = described["warnings"], described["least_memory"]
        self.bytes_read, self.bytes_written = described["bytes_read"], described["bytes_written"]
        for output in self.outputs:
            for tensor in output["tensors"]:
                tensor["shape"] = tuple(reversed(tensor["shape"]))

    def written(self):
        """The plan in its serialized form, JSON: the same on every machine."""
        described, _ = self._operator._described_plan({**self._options, "written": True})
        return described["written"]

    def _request(self, options):
        """Return the options of a run of this plan."""
        changed = [name for name in ("set", "parameters") if options.get(name)]
        if changed:
            raise usage_error("a plan cannot be changed when it is run", "pass `set` and `parameters` to plan()")
        job = {name: self._options[name] for name in ("job", "set", "parameters") if name in self._options}
        return {**options, **job, "identity": self._identity}

    def __repr__(self):
        count = len(self.outputs)
        read, written = human(self.bytes_read), human(self.bytes_written)
        return f"<ggufmill.Plan of {self.file!r}: {count} output{'' if count == 1 else 's'}, {read} to read, {written} to write>"
