"""Finds the row of a checkpoint tensor that each row of a GGUF tensor is, according to ggufmill's own plan.

The expression of a GGUF tensor is evaluated on the places of its rows instead of their values. This covers every order
of rows that ggufmill makes: the permutation of query heads, parts of fused matrices, stacked experts.
"""

import dataclasses

import torch

from .._numpy import np

_PLACE_BITS = 44  # of a place within a checkpoint tensor; the bits above are the number of the tensor


@dataclasses.dataclass(frozen=True)
class Part:
    """Rows of a GGUF tensor that are rows of one checkpoint tensor.

    key    name of the checkpoint tensor
    axis   its axis that holds the columns: -1 or -2
    rows   numbers of rows of the GGUF tensor, counted over all experts, ascending; an int64 tensor
    taken  the rows of the checkpoint tensor that these are, counted over all of its matrices
    """

    key: str
    axis: int
    rows: torch.Tensor
    taken: torch.Tensor


def matrix_of(value, axis):
    """Return a checkpoint tensor as a matrix whose columns are along an axis: a view if possible."""
    return (value if axis == -1 else value.mT).reshape(-1, value.shape[axis])


def parts_of(mapping, tensor):
    """Return the list of Part of a GGUF tensor that can be quantized; None if its values are computed from others."""
    return _Places(mapping).parts(mapping.expressions[tensor], mapping.targets[tensor].columns)


class _Places:
    def __init__(self, mapping):
        self._mapping, self._keys = mapping, []

    def parts(self, number, columns):
        places = self._of(number, 0)
        if places is None:
            return None
        places = places.reshape(-1)
        made = []
        for index, (key, shape, axis) in enumerate(self._keys):
            rows = np.flatnonzero(places >> _PLACE_BITS == index)
            if len(rows) == 0:
                continue
            inside = places[rows] & ((1 << _PLACE_BITS) - 1)
            if axis == -1:
                taken, rest = np.divmod(inside, columns)
                if rest.any():
                    return None
            else:
                matrix, taken = np.divmod(inside, columns * shape[-1])
                if (taken >= shape[-1]).any():
                    return None
                taken += matrix * shape[-1]
            made.append(Part(key, axis, torch.from_numpy(rows), torch.from_numpy(taken)))
        return made

    def _of(self, number, column):
        """Return the places of the first elements of a node's rows, int64 in numpy's order of axes, with one element along
        the columns, which are dimension `column` as GGUF counts them. None if the values are not those of a checkpoint."""
        node = self._mapping.nodes[number]
        operation, inputs, shape = node["operation"], node.get("inputs", ()), list(node["shape"])
        if column >= len(shape):
            return None
        if operation == "extent":
            return self._of_extent(node, column)
        if operation == "cast":
            return self._of(inputs[0], column)
        if operation == "stack":
            return _joined(np.stack, [self._of(each, column) for each in inputs], 0) if column != len(shape) - 1 else None
        if operation == "concat" and node["axis"] != column:
            return _joined(np.concatenate, [self._of(each, column) for each in inputs], len(shape) - 1 - node["axis"])
        before = self._mapping.nodes[inputs[0]]["shape"] if inputs else []
        if operation == "slice" and (node["axis"] != column or shape == before):
            places, axis = self._of(inputs[0], column), node["axis"]
            if places is None or axis == column:
                return places
            return np.take(places, range(node["first"], node["first"] + shape[axis]), len(shape) - 1 - axis)
        if operation == "reorder_rows" and column != 1:
            places, factors, order = self._of(inputs[0], column), node["factors"], node["order"]
            if places is None:
                return None
            count, at = len(factors), places.ndim - 2  # the axis of dimension 1
            grid = places.reshape(*places.shape[:at], *reversed(factors), *places.shape[at + 1 :])
            axes = [at + count - 1 - each for each in reversed(order)]
            return grid.transpose(*range(at), *axes, *range(at + count, grid.ndim)).reshape(places.shape)
        if operation == "transpose":
            order = node["order"]
            places = self._of(inputs[0], order[column])
            return None if places is None else places.transpose([len(shape) - 1 - each for each in reversed(order)])
        if operation == "reshape" and before[: column + 1] == shape[: column + 1]:
            places = self._of(inputs[0], column)
            shape[column] = 1
            return None if places is None else places.reshape(shape[::-1])
        return None

    def _of_extent(self, node, column):
        found, dims = self._mapping.tensor_at(node), list(node["shape"])
        if found is None or column > 1:
            return None
        key, shape, inside = found
        if len(shape) < 2 or dims[0] != shape[-1] or (column == 1 and dims[1] != shape[-2]):
            return None
        size = node["extent"]["bytes"]
        elements = np.prod(dims, dtype=np.int64)
        if size % elements:
            return None
        if (key, shape, -1 - column) not in self._keys:
            self._keys.append((key, shape, -1 - column))
        base = (self._keys.index((key, shape, -1 - column)) << _PLACE_BITS) + inside // (size // int(elements))
        strides = np.cumprod([1, *dims[:-1]], dtype=np.int64)
        places = np.full((1,) * len(dims), base, np.int64)
        for dimension, (count, stride) in enumerate(zip(dims, strides)):
            if dimension != column:
                axis = [1] * len(dims)
                axis[len(dims) - 1 - dimension] = count
                places = places + (np.arange(count, dtype=np.int64) * stride).reshape(axis)
        return places


def _joined(join, parts, axis):
    return None if any(each is None for each in parts) else join(parts, axis)
