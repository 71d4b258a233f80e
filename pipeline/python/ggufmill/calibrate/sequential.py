"""Encoding block by block, with the inputs of what is already encoded.

Two models run side by side: the original, and the one whose weights are those of the GGUF file, which begins as a file
that is encoded with the covariance of the original's inputs. In each layer, matrices are taken in the order in which they
are used; those with the same input together. Let X be their input in the original, X^ that in the encoded model, over all
tokens, and W the weights. The levels are chosen for

  W' = W + [W D + Z] H^-1,   D = (X - X^)^T X^,   H = X^^T X^,   Z = (R - R^)^T X^,

with H, so that W' makes of X^ what W makes of X. Z is for matrices whose product is added to something, R in the original
and R^ in the encoded model: the residual stream, as a rule. It makes the sum what it is in the original, and so takes over
what the matrices before have left of their errors. Elements of H and D beside the diagonal, and Z, are multiplied with a
factor below 1, because tokens that are not in the text have other correlations. Scales and minimums of blocks remain.

The first two terms of W' are those of GPTAQ (arXiv 2504.02692).

The factor is the one of _SHRINKS with which the products with the inputs of held-out tokens come closest to what they are in
the original, on that half of these tokens where they are farther away. A matrix for which they were closer before remains as it was.

Experts get other tokens in the encoded model, so the rows of X and X^ do not belong together: they have W' = W.
"""

import dataclasses
import os

import torch

from .. import dequantize, quantize
from .._error import InputError, UsageError
from .._numpy import np
from .checkpoint import error
from .collect import say
from .covariance_file import rename
from .encoded import EncodedCheckpoint
from .model import LayeredModel
from .products import Observer, place_of, spread
from .work import Work

_SHRINK, _DAMP, _SWEEPS = 0.7, 0.01, 2  # as of the encoder `covariance`; _SHRINK without held-out tokens
_SHRINKS = (0.3, 0.5, 0.7, 0.85)
_TRIAL_ROWS = 64  # of each matrix, with which the factor is chosen
_FEW_TOKENS = 256  # an expert with fewer keeps its levels
_KINDS = ("states", "encoded")  # of hidden states: of the original, and of the encoded model
_ADDITIONS = (torch.ops.aten.add.Tensor, torch.ops.aten.add_.Tensor)


class _Stopped(Exception):
    """Ends the pass of a layer."""


class _Watch(Observer):
    """Keeps the vectors of some products of one pass, and what their results are added to.

    is_wanted  is_wanted(name, matrix, axis)
    ends_at    likewise: the first product after which nothing of interest follows; it ends the pass with _Stopped
    sums_of    the members (name, matrix, axis) to whose results something is added, as far as that is known; None: all

    order    the members, in the order of their products
    vectors  {member: vectors}, float32 [n, columns]
    added    {member: what was added to its result, alone}, float32 [n, rows]
    often    members that were used more than once
    """

    def __init__(self, parameters, is_wanted, ends_at=lambda *member: False, sums_of=None):
        super().__init__(parameters)
        self._is_wanted, self._ends_at, self._sums_of = is_wanted, ends_at, sums_of
        self.order, self.vectors, self.places, self.added, self.often = [], {}, {}, {}, set()
        self._current, self._results, self._kept = None, {}, []

    def seen(self, name, matrix, axis, vectors):
        member = (name, matrix, axis)
        if not self._is_wanted(*member):
            if self._ends_at(*member) and not self._misses_a_sum():
                raise _Stopped
            return
        if vectors.numel() == 0:
            return
        if member in self.vectors:
            self.often.add(member)
            return
        self.order.append(member)
        self._kept.append(vectors)  # keeps its place
        self.places[member] = place_of(vectors)
        same = next((other for other in self.order[:-1] if self.places[other] == self.places[member]), None)
        self.vectors[member] = self.vectors[same] if same else vectors.reshape(-1, vectors.shape[-1]).float()
        self._current = member

    def _misses_a_sum(self):
        return self._sums_of is not None and any(member not in self.added for member in self._sums_of)

    def seen_result(self, function, args, kwargs, result):
        member, self._current = self._current, None
        if member is not None and (self._sums_of is None or member in self._sums_of):
            self._results[result.data_ptr()] = (member, result)
        if function in _ADDITIONS and kwargs.get("alpha", 1) == 1 and all(isinstance(each, torch.Tensor) for each in args[:2]):
            is_in_place = function is not _ADDITIONS[0]
            self._add_sum(args[0], args[1], False)
            self._add_sum(args[1], args[0], is_in_place)

    def _add_sum(self, own, other, is_sum):
        """`other` was added to `own`, if that is the result of a product. `is_sum`: it has become the sum."""
        member, product = self._results.get(own.data_ptr(), (None, None))
        if member is None or own.shape != other.shape or own.numel() != product.numel() or member in self.added:
            return
        added = other.reshape(-1, product.shape[-1]).float()
        self.added[member] = added - product.reshape(added.shape).float() if is_sum else added.clone()
        del self._results[own.data_ptr()]


@dataclasses.dataclass
class _Sums:
    """Sums over the tokens so far, float32: H, D, and {member: Z}. `paired`: X and X^ have the same tokens.

    held_out  of held-out tokens: lists of X and X^, and {member: list of R - R^}, of at most some vectors of each batch. X is X^
              unless they are paired
    """

    gram: torch.Tensor = None
    difference: torch.Tensor = None
    rest: dict = dataclasses.field(default_factory=dict)
    tokens: int = 0
    paired: bool = True
    held_out: tuple = dataclasses.field(default_factory=lambda: ([], [], {}))


@dataclasses.dataclass
class _Stage:
    """Tensors that are encoded together, and the members (name, matrix, axis) to whose results something is added."""

    tensors: list
    sums_of: set


class Encoding:
    """`original`: the model, prepared. `path`: the GGUF file to improve, which changes layer by layer."""

    def __init__(self, checkpoint, mapping, original, path, tokens):
        self._checkpoint, self._mapping, self._original = checkpoint, mapping, original
        self._file = EncodedCheckpoint(checkpoint, mapping, path)
        self._encoded = LayeredModel(self._file, mapping, original.device, original.dtype)
        self._encoded.prepare(tokens[:1].to(original.device))
        self._choosable = {type: _has_levels(type) for type in {tensor.type for tensor in self._file.tensors.values()}}
        self._often = set()  # tensors that a layer uses more than once
        self._changed, self._left, self._losses = {}, {}, {}  # see facts()
        self._experts = {}  # {tensor: experts that were looked at}

    def facts(self, layer):
        """Return what was done in a layer: "changed", {tensor: greatest |W' - W| / |W|}; "left", {why: tensors that are
        as they were, or experts of which are}; and "losses", {tensor: sums of squares of what products with held-out inputs
        miss, [before, after]}. Forget it."""
        prefix = f"blk.{self._original.layers[layer][0]}."
        named = {*self._changed, *(name for names in self._left.values() for name in names)}
        for name, target in self._mapping.targets.items():
            if not name.startswith(prefix):
                continue
            if target.experts > 1 and self._experts.get(name, 0) < target.experts:
                self._leave(name, f"experts got fewer than {_FEW_TOKENS} tokens")
            elif name not in named:
                self._leave(name, "no product of the model could be matched with them")
        made = {"changed": self._changed, "left": {why: sorted(names) for why, names in self._left.items()}, "losses": self._losses}
        self._changed, self._left, self._losses, self._experts = {}, {}, {}, {}
        return made

    def _leave(self, name, why):
        self._left.setdefault(why, set()).add(name)

    def encode_layer(self, layer, batches, keep, before, after):
        """Encode the matrices of a layer, and run it.

        batches, keep  those of Setup
        before  before(batch) returns the hidden states of the original and of the encoded model; None for the first layer
        after   after(batch, original, encoded) stores those after the layer
        """
        device = self._original.device
        with self._original.loaded(layer) as parameters, self._encoded.loaded(layer) as replaced:
            inputs = lambda number: (batches[number].to(device), *before(number))
            for stage, later in self._stages(layer, parameters, *inputs(0)[:2]):
                self._encode_stage(layer, (parameters, replaced), stage, later, keep, inputs)
            for number in range(len(batches)):
                ids, original, encoded = inputs(number)
                after(number, self._original.run(layer, ids, original), self._encoded.run(layer, ids, encoded))

    def flush(self):
        """Wait until the layers so far are on disk."""
        self._file.flush()

    def _tensors_of(self, member):
        """Return [(tensor, expert)] of a member, of tensors whose levels can be chosen."""
        return [(name, expert) for name, expert in self._original.tensors_of(*member) if name in self._file.tensors]

    def _stages(self, layer, parameters, ids, states):
        """Return the stages of a layer in order, each with a set of tensors that are used only after all of its own."""
        watch = _Watch(parameters, lambda *member: bool(self._tensors_of(member)))
        with watch:
            self._original.run(layer, ids, states)
        groups = {}  # tensor -> list of tensors, shared
        at = {}
        for member in watch.order:
            names = [name for name, _ in self._tensors_of(member)]
            known = at.setdefault(watch.places[member], names[0])
            for name in [known, *names]:
                groups.setdefault(name, [name])
            for name in names:
                if groups[name] is not groups[known]:
                    joined = groups[known] + groups[name]
                    groups.update((each, joined) for each in joined)
        stages = []
        for tensors in groups.values():
            if not any(tensors is stage.tensors for stage in stages):
                sums_of = {member for member in watch.added if any(name in tensors for name, _ in self._tensors_of(member))}
                stages.append(_Stage(tensors, sums_of))
        self._often = {name for member in watch.often for name, _ in self._tensors_of(member)}
        first, last = {}, {}  # uses of tensors
        for use, member in enumerate(watch.order):
            for name, _ in self._tensors_of(member):
                first.setdefault(name, use)
                last[name] = use
        made = []
        for stage in stages:
            # Experts take turns, in an order that depends on the tokens.
            has_experts = any(self._file.tensors[name].experts > 1 for name in stage.tensors)
            end = max(last[name] for name in stage.tensors)
            made.append((stage, set() if has_experts else {name for name in first if first[name] > end}))
        return made

    def _encode_stage(self, layer, parameters, stage, later, keep, inputs):
        wanted = lambda *member: any(name in stage.tensors for name, _ in self._tensors_of(member))
        ends_at = lambda *member: any(name in later for name, _ in self._tensors_of(member))
        sums, used, names = {}, {}, set()  # key -> _Sums; (tensor, expert) -> set of keys; parameters
        for number, kept in enumerate(keep):
            ids, original, encoded = inputs(number)
            watches = []
            for model, values, states in zip((self._original, self._encoded), parameters, (original, encoded)):
                watches.append(_Watch(values, wanted, ends_at, stage.sums_of))
                try:
                    with watches[-1]:
                        model.run(layer, ids, states)
                except _Stopped:
                    pass
            if kept is None:
                self._add_batch(ids.numel(), *watches, sums, used)
            else:
                self._hold_out(ids.numel(), kept, *watches, sums, used)
            names |= {name for name, _, _ in watches[1].order}
        by_key = {}
        for (name, expert), keys in used.items():
            if len(keys) == 1:
                by_key.setdefault(next(iter(keys)), []).append((name, expert))
            else:
                self._leave(name, "they consist of parameters with different inputs")
        for key, members in by_key.items():
            self._encode(sums[key], members)
        for name in names:
            self._encoded.read_again(name)

    def _add_batch(self, tokens, original, encoded, sums, used):
        """Add the products of a batch. Members that share an input in the encoded model share its sums."""
        keys = {}
        for member in encoded.order:
            place = encoded.places[member]
            is_first = place not in keys
            known = {key for each in self._tensors_of(member) for key in used.get(each, ())}
            key = keys.setdefault(place, next(iter(known)) if known else member)
            for each in self._tensors_of(member):
                used.setdefault(each, set()).add(key)
            own = sums.setdefault(key, _Sums())
            x = encoded.vectors[member]
            other = original.vectors.get(member)
            paired = other is not None and len(x) == len(other) == tokens and own.paired
            if is_first:
                own.tokens += len(x)
                own.gram = _added(own.gram, x, x)
                own.paired = paired
                if paired:
                    own.difference = _added(own.difference, other - x, x)
            if paired and member in original.added and member in encoded.added:
                own.rest[member] = _added(own.rest.get(member), original.added[member] - encoded.added[member], x)

    def _hold_out(self, tokens, kept, original, encoded, sums, used):
        """Keep `kept` vectors of each input of a batch of held-out tokens."""
        done = set()
        for member in encoded.order:
            keys = {key for each in self._tensors_of(member) for key in used.get(each, ())}
            own = sums.get(next(iter(keys))) if len(keys) == 1 else None
            if own is None:
                continue
            x, other = encoded.vectors[member], original.vectors.get(member)
            paired = own.paired and other is not None and len(x) == len(other) == tokens
            if id(own) not in done:
                done.add(id(own))
                own.held_out[0].append(spread(other if paired else x, kept))
                own.held_out[1].append(spread(x, kept))
            if paired and member in own.rest and member in original.added and member in encoded.added:
                own.held_out[2].setdefault(member, []).append(spread(original.added[member] - encoded.added[member], kept))

    def _encode(self, sums, members):
        """Choose the levels of tensors with one input. `members`: list of (tensor, expert)."""
        members = [each for each in members if self._can_encode(each[0], sums)]
        if not members:
            return
        # Devices without numbers of 64 bits leave this to the CPU.
        device = torch.device("cpu") if sums.gram.device.type == "mps" else sums.gram.device
        matrices = [_Matrix(self, name, expert, sums, device) for name, expert in members]
        shrink = _SHRINK
        if sums.held_out[0]:
            losses = {each: self._trial(sums, matrices, each, device) for each in _SHRINKS}
            shrink = min(_SHRINKS, key=losses.get)
        correction = _Correction(sums, shrink, device)
        for matrix in matrices:
            tensor, name = matrix.tensor, matrix.tensor.name
            if correction.factor is None:
                self._leave(name, "the covariance of their inputs is not positive definite")
                continue
            wanted = correction.of(matrix)
            if not torch.isfinite(wanted).all():
                self._leave(name, "their corrected values are not finite")
                continue
            self._experts[name] = self._experts.get(name, 0) + 1
            encoded = correction.levels(wanted, tensor.type, matrix.start)
            if sums.held_out[0]:
                before, after = matrix.losses(matrix.start), matrix.losses(encoded)
                is_better = _worst_share(after, before) < 1
                known = self._losses.get(name, [0.0, 0.0])
                self._losses[name] = [known[0] + sum(before), known[1] + sum(after if is_better else before)]
                if not is_better:
                    self._leave(name, "they would be no closer to the original on held-out tokens")
                    continue
            own = float((wanted - matrix.weights).norm() / matrix.weights.norm().clamp_min(1e-30))
            self._changed[name] = max(own, self._changed.get(name, 0.0))
            tensor.encoded[matrix.rows] = encoded

    def _trial(self, sums, matrices, shrink, device):
        """Return the sum over matrices of the loss with a factor, as a share of that before, of some rows."""
        correction, all = _Correction(sums, shrink, device), 0.0
        for matrix in matrices:
            count = min(_TRIAL_ROWS, len(matrix.weights))
            rows = [(2 * i + 1) * len(matrix.weights) // (2 * count) for i in range(count)]
            before = matrix.losses(matrix.start[rows], rows)
            if correction.factor is None:
                return float("inf")
            wanted = correction.of(matrix, rows)
            if not torch.isfinite(wanted).all():
                return float("inf")
            all += _worst_share(matrix.losses(correction.levels(wanted, matrix.tensor.type, matrix.start[rows]), rows), before)
        return all

    def _can_encode(self, name, sums):
        tensor = self._file.tensors[name]
        if not self._choosable[tensor.type]:
            self._leave(name, f"{tensor.type} has no levels that can be chosen")
        elif name in self._often:
            self._leave(name, "the model multiplies with them more than once")
        else:
            return tensor.experts == 1 or sums.tokens >= _FEW_TOKENS
        return False

    def rest_of(self, tensor, rests):
        """Return Z for the rows of a tensor, or what else `rests` has for each row; None if its product is not added to anything, or not known for all rows."""
        if tensor.experts != 1 or not rests:
            return None
        made = None
        for part in tensor.parts:
            for (name, _, axis), rest in rests.items():
                if self._original.is_tensor(name, part.key) and axis == part.axis:
                    made = torch.zeros(len(tensor.encoded), rest.shape[1], device=rest.device) if made is None else made
                    made[part.rows.to(rest.device)] = rest[part.taken.to(rest.device)]
        return made


class _Matrix:
    """A tensor, or an expert of it, whose levels are to be chosen. `weights`, `start`: its values and its encoded rows so far."""

    def __init__(self, encoding, name, expert, sums, device):
        self.tensor = encoding._file.tensors[name]
        count = len(self.tensor.encoded) // self.tensor.experts
        self.rows = slice(expert * count, (expert + 1) * count)
        self.weights = self.tensor.values(encoding._checkpoint, self.rows.start, count).to(device)
        self.start = np.ascontiguousarray(self.tensor.encoded[self.rows])
        rest = encoding.rest_of(self.tensor, sums.rest) if sums.paired else None
        self.rest = None if rest is None else rest.to(device)
        self._original, self._encoded, self._missed = None, None, None
        if sums.held_out[0]:
            self._original, self._encoded = (torch.cat(each).to(device) for each in sums.held_out[:2])
            missed = {member: torch.cat(each).T for member, each in sums.held_out[2].items()}
            missed = {member: each for member, each in missed.items() if each.shape[1] == len(self._original)}
            missed = encoding.rest_of(self.tensor, missed)
            self._missed = None if missed is None else missed.to(device)

    def losses(self, encoded, rows=slice(None)):
        """Return the sums of squares of what the products of rows with the first and the second half of held-out inputs, which
        can be of different texts, miss if the rows are encoded so."""
        weights = self.weights[rows]
        decoded = dequantize(np.ascontiguousarray(encoded), self.tensor.type, tuple(weights.shape))
        missed = weights @ self._original.T - torch.from_numpy(decoded).to(weights.device) @ self._encoded.T
        if self._missed is not None:
            missed += self._missed[rows]
        squares = missed.double().square().sum(0)
        half = len(squares) // 2
        return [float(squares[:half].sum()), float(squares[half:].sum())]


class _Correction:
    """H with a factor, and what makes W' of W. `factor`: of H; None if it is not positive definite."""

    def __init__(self, sums, shrink, device):
        gram = sums.gram.to(device).double()
        metric = _shrunk(gram, shrink)
        metric.diagonal().add_(_DAMP * gram.diagonal().mean())
        factor, failed = torch.linalg.cholesky_ex(metric)
        self._shrink, self._metric = shrink, metric.cpu().numpy()
        self.factor = None if failed.item() else factor
        self._change = None
        if sums.paired and self.factor is not None:
            difference = _shrunk(sums.difference.to(device).double(), shrink)
            self._change = torch.cholesky_solve(difference.T.contiguous(), factor).T

    def of(self, matrix, rows=slice(None)):
        """Return W' for rows of a matrix, float64."""
        wanted = matrix.weights[rows].double()
        if self._change is None:
            return wanted
        wanted = wanted + wanted @ self._change
        if matrix.rest is not None:
            wanted = wanted + torch.cholesky_solve(self._shrink * matrix.rest[rows].double().T, self.factor).T
        return wanted

    def levels(self, wanted, type, start):
        """Return encoded rows whose scales are those of `start`."""
        return quantize(wanted.float().cpu().numpy(), type, covariance=self._metric, start=np.ascontiguousarray(start), sweeps=_SWEEPS)


def _worst_share(after, before):
    """Return the greater of the shares of the losses before; 1 if there were none."""
    return max([a / b for a, b in zip(after, before) if b > 0], default=1.0)


def _has_levels(type):
    try:
        quantize(np.zeros((1, 256), np.float32), type, covariance=np.eye(256))
        return True
    except UsageError:
        return False


def _added(sums, a, b):
    """Return sums + a^T b."""
    return a.T @ b if sums is None else sums.addmm_(a.T, b)


def _shrunk(matrix, shrink):
    made = matrix * shrink
    made.diagonal().copy_(matrix.diagonal())
    return made


def _identity(path):
    """Return what identifies a file without reading it."""
    return [os.path.abspath(path), os.path.getsize(path), os.stat(path).st_mtime_ns] if path else None


def encode_all(setup, options, start_of, progress_of):
    """Write options.output. start_of(work) returns the path of the file in the working folder from which to start."""
    output, model = os.path.abspath(options.output), setup.model
    job = {**setup.job, "RECIPE": options.recipe, "--pre": options.pre, "--covariance": _identity(options.covariance)}
    work = Work(output, job, options.overwrite, "encoding")
    if not os.path.exists(work.path("start.gguf")):  # it has become the output, and the run was killed then
        work.forget_layers()
    path = start_of(work)
    encoding = Encoding(setup.checkpoint, setup.mapping, model, path, setup.tokens)
    finished = work.finished()
    setup.say_start(options, finished)
    first = [sum(map(len, setup.batches[:number])) for number in range(len(setup.batches))]
    progress = progress_of(len(model.layers), finished, 1, options.quiet)
    for layer in range(finished, len(model.layers)):
        shape = work.read_layer(layer - 1)["states"] if layer else None
        before = {kind: work.states(layer, shape, model.dtype, kind=kind) if layer else None for kind in _KINDS}
        after = {}

        def states(number, before=before):
            rows = slice(first[number], first[number] + len(setup.batches[number]))
            return [None if each is None else each[rows].to(model.device) for each in before.values()]

        def store(number, *results, layer=layer, after=after):
            for kind, result in zip(_KINDS, results):
                if not torch.isfinite(result).all():
                    what = f"the hidden states after layer {layer} are not finite numbers in {str(model.dtype).removeprefix('torch.')}"
                    raise error(InputError, setup.checkpoint.folder, what, "use --dtype float32 (or bfloat16)")
                if kind not in after:
                    after[kind] = work.states(layer + 1, (len(setup.tokens), *result.shape[1:]), model.dtype, create=True, kind=kind)
                after[kind][first[number] : first[number] + len(result)] = result.cpu()

        encoding.encode_layer(layer, setup.batches, setup.keep, states, store)
        encoding.flush()
        shape = next(iter(after.values())).shape
        work.publish(layer, {"states": list(shape), **encoding.facts(layer)})
        progress.step()
    facts = [work.read_layer(layer) for layer in range(len(model.layers))]
    rename(path, output)
    work.remove()
    if not options.quiet:
        _report(output, facts)


def _report(output, facts):
    changed = sum(len(layer["changed"]) for layer in facts)
    say(f"{output}: {changed} tensors encoded with the inputs of the encoded model, {os.path.getsize(output) / 1e6:.1f} MB")
    losses = sorted(after / before for layer in facts for before, after in layer["losses"].values() if before > 0)
    if losses:
        middle = losses[len(losses) // 2]
        say(f"products of held-out inputs miss {middle:.2f} of what they missed before (median of tensors; {losses[0]:.2f} to {losses[-1]:.2f})")
    reasons = {}
    for layer in facts:
        for why, names in layer["left"].items():
            reasons.setdefault(why, []).extend(names)
    for why, names in reasons.items():
        some = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        say(f"note: {len(names)} tensors of the layers are wholly or partly encoded with the covariance alone, because {why}: {some}")
