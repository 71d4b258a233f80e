"""Maps the tensors of a checkpoint to the tensors of a GGUF file made from them, according to ggufmill's own plan.

The plan of a conversion lists an expression for each GGUF tensor, whose leaves are ranges of bytes of the checkpoint's
files (pipeline/core/expression.h). Following the columns of a GGUF tensor through its expression leads to the axis of a
checkpoint tensor that is multiplied with the input. So every architecture that ggufmill converts is known here.
"""

import dataclasses
import hashlib
import json

from .. import plan as plan_of

# Operations whose result has the dimensions of their first input, in the same order.
_ELEMENTWISE = {"cast", "map", "interleave", "scale_blocks", "add_blocks", "low_rank"}
_FLOATS = {"F64", "F32", "F16", "BF16"}


def _same(a, b):
    """Return the number of equal elements at the beginning of two lists."""
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


@dataclasses.dataclass(frozen=True)
class Use:
    """A GGUF tensor whose columns are those of a checkpoint tensor.

    tensor  name of the GGUF tensor
    axis    axis of the checkpoint tensor that holds the columns: -1 or -2
    first   first matrix of the checkpoint tensor that is used; 0 if it is a single matrix
    count   number of its matrices that are used
    expert  the expert of the GGUF tensor that the first one becomes
    """

    tensor: str
    axis: int
    first: int
    count: int
    expert: int


@dataclasses.dataclass(frozen=True)
class Target:
    """A GGUF tensor that can be quantized: number of columns, and of experts (1 for a matrix)."""

    columns: int
    experts: int


class Mapping:
    """uses     {name of a checkpoint tensor: list of Use}, of all tensors
    targets  {name of a GGUF tensor: Target}, of those that can be quantized
    names    {name of a checkpoint tensor: set of GGUF tensors in which it appears}

    nodes        the expressions of the plan
    expressions  {name of a GGUF tensor: number of its expression in nodes}, of those that can be quantized
    """

    def __init__(self, checkpoint, scratch, architectures=None):
        """`scratch` is the path of an output that is never written. Raises the errors of ggufmill."""
        # Q8_0 needs no importance and is accepted for every tensor that any type is.
        outputs = [{"gguf": scratch, "quantize": "Q8_0"}]
        # The tokenizer does not matter here, so one that ggufmill does not know is no reason to fail.
        source = {"path": checkpoint.folder, "pre": "default"}
        if architectures:
            source["architectures"] = architectures
        made = plan_of({"version": 1, "source": {"huggingface": source}, "outputs": outputs})
        written = json.loads(made.written())
        self.nodes = written["expressions"]
        self._sources = [source["path"] for source in written["sources"]]
        self._checkpoint = checkpoint
        self.uses, self.targets, self.names, self.expressions = {}, {}, {}, {}
        for step in written["steps"]:
            number, name = step["expression"], step["name"]
            for key in self._keys_below(number, set()):
                self.names.setdefault(key, set()).add(name)
            shape = self.nodes[number]["shape"]
            types = {encoding["type"] for encoding in step["encodings"]}
            if len(shape) < 2 or types <= _FLOATS:
                continue
            self.targets[name] = Target(shape[0], shape[2] if len(shape) > 2 else 1)
            self.expressions[name] = number
            self._follow(name, number, 0, 2 if len(shape) > 2 else None, 0)

    def digest(self):
        """Return a digest of uses, targets and names, in hexadecimal: it differs if any tensor becomes another one."""
        uses = {key: sorted(map(dataclasses.astuple, each)) for key, each in self.uses.items()}
        targets = {name: dataclasses.astuple(target) for name, target in self.targets.items()}
        names = {key: sorted(each) for key, each in self.names.items()}
        return hashlib.sha256(json.dumps([uses, targets, names], sort_keys=True).encode()).hexdigest()

    def _keys_below(self, number, seen):
        """Yield the names of the checkpoint tensors that an expression reads."""
        if number in seen:
            return
        seen.add(number)
        node = self.nodes[number]
        if "extent" in node:
            found = self.tensor_at(node)
            if found is not None:
                yield found[0]
        for each in node.get("inputs", ()):
            yield from self._keys_below(each, seen)

    def tensor_at(self, node):
        """Return name, shape and the offset in its bytes of the checkpoint tensor in which an extent is; else None."""
        extent = node["extent"]
        return self._checkpoint.tensor_at(self._sources[extent["source"]], extent["offset"], extent["bytes"])

    def _follow(self, name, number, column, stacked, expert):
        """Follow the columns, which are dimension `column` of a node, and the experts, dimension `stacked` if not None,
        of which the first is `expert`. Dimensions are numbered as in GGUF, the fastest first. Uses are found only
        where all columns stay together and in order."""
        node = self.nodes[number]
        operation, inputs = node["operation"], node.get("inputs", [])
        if operation == "extent":
            self._add_use(name, node, column, stacked, expert)
        elif operation in _ELEMENTWISE or (operation == "reorder_rows" and column != 1 and stacked != 1):
            if inputs and self.nodes[inputs[0]]["shape"] == node["shape"]:
                self._follow(name, inputs[0], column, stacked, expert)
        elif operation == "stack":
            last = len(node["shape"]) - 1
            for i, each in enumerate(inputs if column != last else ()):
                self._follow(name, each, column, None if stacked == last else stacked, expert + (i if stacked == last else 0))
        elif operation == "concat" and node["axis"] != column:
            for each in inputs:
                self._follow(name, each, column, stacked, expert)
                expert += self.nodes[each]["shape"][stacked] if node["axis"] == stacked else 0
        elif operation == "slice":
            if node["axis"] != column or node["shape"] == self.nodes[inputs[0]]["shape"]:
                self._follow(name, inputs[0], column, stacked, expert - (node["first"] if node["axis"] == stacked else 0))
        elif operation == "transpose":
            order = node["order"]
            self._follow(name, inputs[0], order[column], None if stacked is None else order[stacked], expert)
        elif operation == "reshape":
            before, after = self.nodes[inputs[0]]["shape"], node["shape"]
            leading = _same(before, after)
            if stacked is not None and stacked >= leading:
                from_end = len(after) - stacked
                stacked = len(before) - from_end if _same(before[::-1], after[::-1]) >= from_end else -1
            if column < leading and stacked != -1:
                self._follow(name, inputs[0], column, stacked, expert)

    def _add_use(self, name, node, column, stacked, expert):
        found = self.tensor_at(node)
        if found is None or column > 1:
            return
        key, shape, inside = found
        dims = node["shape"]
        if len(shape) < 2 or dims[0] != shape[-1] or (column == 1 and (len(dims) < 2 or dims[1] != shape[-2])):
            return
        # A checkpoint tensor of three axes holds several matrices, of which the extent may be some.
        matrices = 1
        for length in shape[:-2]:
            matrices *= length
        matrix_bytes = self._checkpoint.bytes_of(key) // matrices
        count = dims[stacked] if stacked is not None else 1
        if matrices == 1 and count > 1:
            return
        self.uses.setdefault(key, []).append(Use(name, -1 - column, inside // matrix_bytes, count, expert))
