"""The inputs that a layer multiplies with its weights: the vectors x, and sums of x x^T over all of them.

The products are observed where torch computes them: a matrix product one of whose operands lies in the memory of a
parameter. So this works for every module, for experts in one array as for experts that are modules, whatever a model
calls them. Parameters that get the same tensor share an input, which is found by its place in memory.
"""

import bisect
import dataclasses

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_aten = torch.ops.aten
# The operands of each product: (vectors, weights).
_PRODUCTS = {
    _aten.mm.default: (0, 1),
    _aten.bmm.default: (0, 1),
    _aten.addmm.default: (1, 2),
    _aten.baddbmm.default: (1, 2),
    _aten.linear.default: (0, 1),
}


def blocks_of(columns, block):
    """Return (first column, count) of each diagonal block; a block of 0 columns is one of all."""
    block = block or columns
    return [(first, min(block, columns - first)) for first in range(0, columns, block)]


@dataclasses.dataclass
class Sums:
    """Sums of one input: `grams`, a float32 matrix for each diagonal block, `squares`, float64, and `count` of vectors; and
    `held_out`, vectors that are not part of them, a list of bfloat16 [n, columns]."""

    grams: list
    squares: torch.Tensor
    count: int = 0
    held_out: list = dataclasses.field(default_factory=list)


def spread(vectors, most):
    """Return at most `most` of vectors [n, columns], at equal distances."""
    count = min(len(vectors), most)
    return vectors[[(2 * i + 1) * len(vectors) // (2 * count) for i in range(count)]]


def sample(vectors, most):
    """Return at most `most` of vectors [n, columns], in their order, whose squares stand for those of all.

    A few vectors can be so long that nearly all of the squares is theirs, such as those of the first token of a chunk. An
    eighth of what is returned are the longest ones, as they are; the others lie at equal distances among the rest, and are
    multiplied so that each stands for as many as it was taken from."""
    if len(vectors) <= most:
        return vectors
    longest = vectors.square().sum(1).topk(most // 8).indices
    is_other = torch.ones(len(vectors), dtype=torch.bool, device=vectors.device)
    is_other[longest] = False
    others = is_other.nonzero().flatten()
    taken = spread(others, most - len(longest))
    factors = torch.ones(len(vectors), device=vectors.device)
    factors[taken] = (len(others) / len(taken)) ** 0.5
    kept = torch.cat([longest, taken]).sort().values
    return vectors[kept] * factors[kept, None]


class Observer(TorchDispatchMode):
    """While active, calls seen() for each product with a parameter of a layer, before it is computed.

    parameters  {name: tensor}, in memory for as long as this is in use
    """

    def __init__(self, parameters):
        super().__init__()
        places = sorted((tensor.data_ptr(), name, tensor) for name, tensor in parameters.items() if tensor.dim() in (2, 3))
        self._starts, self._places = [start for start, *_ in places], places

    def seen(self, name, matrix, axis, vectors):
        """`vectors` [..., n, columns] are multiplied with a matrix (0 unless the parameter has three axes) whose columns
        are along an axis (-1, or -2 for a parameter that is stored transposed)."""

    def seen_dense(self, name):
        """All matrices of a parameter are multiplied with every vector."""

    def seen_result(self, function, args, kwargs, result):
        """`result` was computed, of a product or anything else."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        places = _PRODUCTS.get(function)
        if places is not None:
            vectors, weights = args[places[0]], args[places[1]]
            if function is _aten.linear.default:
                weights = weights.t()
            if not self._observe(vectors, weights):  # x W^T may be computed as W x^T
                self._observe(vectors=weights.mT, weights=vectors.mT)
        result = function(*args, **(kwargs or {}))
        self.seen_result(function, args, kwargs or {}, result)
        return result

    def _parameter_at(self, tensor):
        """Return (name, parameter) in whose memory a tensor begins; None if there is none."""
        place = tensor.data_ptr()
        found = bisect.bisect_right(self._starts, place) - 1
        if found < 0:
            return None
        start, name, parameter = self._places[found]
        return (name, parameter) if place < start + parameter.numel() * parameter.element_size() else None

    def _observe(self, vectors, weights):
        """Add a product, of vectors [..., n, columns] and weights [..., columns, rows]. False if it is of no parameter."""
        found = self._parameter_at(weights)
        if found is None:
            return False
        name, parameter = found
        axis = next((axis for axis in (-1, -2) if weights.stride(-2) == parameter.stride(axis)), None)
        columns = weights.shape[-2]
        if axis is None or columns != parameter.shape[axis]:
            return True
        matrix = 0
        if parameter.dim() == 3:
            matrix = (weights.data_ptr() - parameter.data_ptr()) // (parameter.stride(0) * parameter.element_size())
        if weights.dim() == 2:
            self.seen(name, matrix, axis, vectors)
            return True
        if parameter.dim() == 3 and weights.stride(0) not in (0, parameter.stride(0)):
            return True
        for i in range(weights.shape[0]):
            rows = vectors[i]
            if parameter.dim() == 3 and weights.stride(0) and len(weights) > 1:
                # Every matrix gets all vectors, of which a model sets those to zero that it did not choose.
                chosen = rows.any(-1)
                if chosen.all() and len(rows):
                    self.seen_dense(name)
                rows = rows[chosen]
                self.seen(name, matrix + i, axis, rows)
            else:
                self.seen(name, matrix, axis, rows)
        return True


def place_of(vectors):
    """Return what two tensors have in common if they are the same vectors, as long as both exist."""
    return (vectors.data_ptr(), vectors.numel(), vectors.shape[-1], vectors.stride(-1), vectors._version, vectors.dtype)


class Products(Observer):
    """While active, adds up x x^T of every input of the parameters of a layer.

    parameters  as of Observer
    is_wanted   is_wanted(name, matrix, axis): whether a product is of interest, see Observer.seen()
    block       columns of a diagonal block; 0: all
    keep        of each input of the current batch, so many vectors are kept instead of added; None: all are added

    inputs   {(name, matrix, axis): key in sums}
    sums     {key: Sums}: a key is the first (name, matrix, axis) that had the input
    mixed    (name, matrix, axis) that shared an input in one batch and not in another: their sums are unknown
    dense    names of parameters all of whose matrices were multiplied with every vector
    """

    def __init__(self, parameters, is_wanted, block):
        super().__init__(parameters)
        self._is_wanted, self._block, self.keep = is_wanted, block, None
        self.inputs, self.sums, self.mixed, self.dense = {}, {}, set(), set()
        self._batch = {}  # place of a tensor -> (the tensor, which keeps its place; key in sums)

    def end_batch(self):
        """Forget the tensors of the batch."""
        self._batch = {}

    def seen_dense(self, name):
        self.dense.add(name)

    def seen(self, name, matrix, axis, vectors):
        if not self._is_wanted(name, matrix, axis) or vectors.numel() == 0:
            return
        columns = vectors.shape[-1]
        place = place_of(vectors)
        member = (name, matrix, axis)
        if place in self._batch and self._batch[place][1] == self.inputs.get(member, self._batch[place][1]):
            self.inputs[member] = self._batch[place][1]
            return
        key = self.inputs.setdefault(member, member)
        if key != member:
            self.mixed.add(member)
            return
        self._batch[place] = (vectors, key)
        x = vectors.reshape(-1, columns).float()
        if self.keep is not None:
            if key in self.sums:
                self.sums[key].held_out.append(sample(x, self.keep).bfloat16())
            return
        blocks = blocks_of(columns, self._block)
        if key not in self.sums:
            grams = [torch.zeros(count, count, dtype=torch.float32, device=x.device) for _, count in blocks]
            self.sums[key] = Sums(grams, torch.zeros(columns, dtype=torch.float64, device=x.device))
        sums = self.sums[key]
        for gram, (first, count) in zip(sums.grams, blocks):
            part = x[:, first : first + count]
            gram.addmm_(part.T, part)
        sums.squares += (x * x).sum(0, dtype=torch.float64)
        sums.count += len(x)
