"""A calibration: runs a model layer by layer and writes the covariance file."""

import dataclasses
import hashlib
import os
import sys

import torch

from .. import __version__
from .._error import InputError, UsageError
from .._numpy import np
from . import covariance_file
from .checkpoint import error
from .mapping import Mapping
from .model import LayeredModel
from .products import Products
from .work import Work

_BATCH_TOKENS = 2048  # computed together: enough to use all cores, and small beside a layer
_FEW_TOKENS = 256  # an expert with fewer is reported
_HELD_OUT = 8  # of so many chunks, one is held out
_INCLUDED_CHUNKS = 16  # of the included text, which are held out
_MOST_INCLUDED = 1 << 30  # tokens: more than it has


def say(text):
    sys.stderr.write(f"{text}\n")


def _groups(products, model, targets):
    """Return the inputs of a layer: a list of (tensors, experts, {expert: Sums}).

    Tensors with the same input in all of their experts are one entry."""
    owners = {}  # tensor -> {expert: set of keys}
    for member, key in products.inputs.items():
        if key not in products.sums:  # only held-out tokens had it
            continue
        for tensor, expert in model.tensors_of(*member):
            owners.setdefault(tensor, {}).setdefault(expert, set()).add(None if member in products.mixed else key)
    groups = {}
    for tensor, keys in owners.items():
        # A tensor that is made from parameters with different inputs has no covariance of its own.
        if tensor in targets and all(len(each) == 1 and None not in each for each in keys.values()):
            identity = (targets[tensor], tuple(sorted((expert, *each) for expert, each in keys.items())))
            groups.setdefault(identity, []).append(tensor)
    made = []
    for (target, keys), tensors in groups.items():
        sums = {expert: products.sums[key] for expert, key in keys}
        if all(len(each.squares) == target.columns for each in sums.values()):
            made.append((sorted(tensors, key=os.fsencode), target.experts, sums))
    return sorted(made, key=lambda each: os.fsencode(each[0][0]))


def _warn_of_experts(layer, inputs):
    for tensors, experts, sums in inputs:
        counts = [sums[expert].count if expert in sums else 0 for expert in range(experts)]
        few = sum(count < _FEW_TOKENS for count in counts)
        if experts > 1 and few:
            least = counts.index(min(counts))
            say(
                f"warning: {tensors[0]}: {few} of {experts} experts got fewer than {_FEW_TOKENS} tokens (expert {least}: {counts[least]}); "
                f"those without tokens are encoded without covariance\n  help: use more --tokens"
            )


def _warn_of_held_out(layer, inputs):
    for tensors, experts, sums in inputs:
        without = sum(expert in sums and not sums[expert].held_out for expert in range(experts))
        if experts > 1 and without:
            say(f"warning: {tensors[0]}: {without} of {experts} experts got no held-out token, so they are encoded without covariance\n  help: use more --tokens")


def _run_layer(layer, model, mapping, block, work, batches, keep, progress):
    """Run one layer on all chunks, and store its inputs and the hidden states after it."""
    shape = work.shape_before(layer) if layer else None
    before = work.states(layer, shape, model.dtype) if layer else None
    with model.loaded(layer) as parameters:
        wanted = lambda *member: any(tensor in mapping.targets for tensor, _ in model.tensors_of(*member))
        products = Products(parameters, wanted, block)
        after, first = None, 0
        for ids, products.keep in zip(batches, keep):
            stored = before[first : first + len(ids)].to(model.device) if layer else None
            with products:
                result = model.run(layer, ids.to(model.device), stored)
            products.end_batch()
            if not torch.isfinite(result).all():
                what = f"the hidden states after layer {layer} are not finite numbers in {str(model.dtype).removeprefix('torch.')}"
                raise error(InputError, model.checkpoint.folder, what, "use --dtype float32 (or bfloat16)")
            if after is None and layer + 1 < len(model.layers):
                after = work.states(layer + 1, (sum(map(len, batches)), *result.shape[1:]), model.dtype, create=True)
            if after is not None:
                after[first : first + len(ids)] = result.cpu()
            first += len(ids)
            progress.step()
        inputs = _groups(products, model, mapping.targets)
    if products.dense:
        say(f"warning: layer {layer}: {type(model.model).__name__} multiplies all experts with all tokens on this device, so the inputs of an expert are not only those of its own tokens")
    _warn_of_experts(layer, inputs)
    if any(each is not None for each in keep):
        _warn_of_held_out(layer, inputs)
    work.finish(layer, inputs, after.shape if after is not None else ())


@dataclasses.dataclass
class Setup:
    """The inputs that a calibration and an encoding share.

    model   prepared to run its layers
    tokens  token numbers [chunks, tokens of a chunk], and the same in batches; those that are held out are the last: of the
            user's text, and then of the included text
    keep    for each batch, how many vectors of an input are kept of held-out chunks; None: its chunks are not held out
    job     what decides the result, for Work
    """

    checkpoint: object
    mapping: Mapping
    model: LayeredModel
    tokens: torch.Tensor
    batches: list
    keep: list
    job: dict

    def say_start(self, options, finished):
        if not options.quiet:
            chunks, chunk = self.tokens.shape
            again = f", resuming after layer {finished}" if finished else ""
            dtype = str(self.model.dtype).removeprefix("torch.")
            say(f"{chunks} chunks of {chunk} tokens, {len(self.model.layers)} layers, {self.model.device}, {dtype}{again}")


def _divided(chunks, others, vectors, batch):
    """Divide chunks into batches of `batch`, after those that are held out have been moved to the end.

    Return all chunks, the batches, and Setup.keep. Every _HELD_OUT-th chunk is held out, at least one of two. Together, they
    keep `vectors` of each input; half as many if there are `others`, chunks of another text, which keep the other half."""
    count = len(chunks)
    held_out = [i for i in range(count) if i % _HELD_OUT == _HELD_OUT // 2] or [count // 2] * (count > 1)
    if vectors == 0:
        held_out = []
    used = [i for i in range(count) if i not in set(held_out)]
    batches, keep = list(chunks[used].split(batch)), []
    keep += [None] * len(batches)
    own = vectors - vectors // 2 if held_out and len(others) else vectors
    for part, most in ((chunks[held_out], own), (others, vectors - own if held_out else vectors)):
        done = 0
        for each in part.split(batch) if len(part) else ():
            last = done + len(each)
            batches.append(each)
            keep.append(last * most // len(part) - done * most // len(part))
            done = last
    return torch.cat(batches), batches, keep


def set_up(checkpoint, tokenizer, options, device, text, included, chunks_of):
    """`included`: the text that comes with ggufmill, whose chunks are held out beside those of another `text`."""
    torch.set_grad_enabled(False)
    torch.backends.cuda.matmul.allow_tf32 = False  # sums of up to millions of products
    dtype = options.dtype or ("float32" if device.type == "cpu" else None)
    mapping = Mapping(checkpoint, f"{os.path.abspath(options.output)}.gguf", options.architectures)
    model = LayeredModel(checkpoint, mapping, device, getattr(torch, dtype) if dtype else None)
    context = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if context and options.chunk and options.chunk > context:
        raise error(UsageError, "", f"--chunk {options.chunk} is longer than the context of the model, {context}", "use at most that")
    chunk = options.chunk or min(512, context or 512)
    chunks = chunks_of(tokenizer, text, options.tokens, chunk)
    if chunks.size < options.tokens and not options.quiet:
        say(f"warning: the text has only {chunks.size} of {options.tokens} tokens")
    others = np.zeros((0, chunk), np.int64)
    if options.held_out and text != [included]:
        others = chunks_of(tokenizer, [included], _MOST_INCLUDED, chunk)
        others = others[[i * len(others) // _INCLUDED_CHUNKS for i in range(min(_INCLUDED_CHUNKS, len(others)))]]
    job = {
        "version": 1,
        "the checkpoint": checkpoint.identity(),
        "config.json": checkpoint.config_digest(),
        "the names of tensors (--architectures)": mapping.digest(),
        "the text or --tokens": hashlib.sha256(chunks.tobytes()).hexdigest(),
        "--chunk": chunk,
        "--held-out": options.held_out,
        "--dtype": str(model.dtype),
        "--device": device.type,
        "the version of ggufmill": __version__,
        "the version of torch": torch.__version__,
        "the version of transformers": sys.modules["transformers"].__version__,
    }
    tokens, batches, keep = _divided(torch.from_numpy(chunks), torch.from_numpy(others), options.held_out, max(_BATCH_TOKENS // chunk, 1))
    model.prepare(batches[0][:1].to(device))
    return Setup(checkpoint, mapping, model, tokens, batches, keep, job)


def collect(setup, options, output, block, text, progress_of):
    """Write the covariance file `output`, an absolute path. `block`: columns of a diagonal block, 0 for all."""
    model, mapping = setup.model, setup.mapping
    work = Work(output, {**setup.job, "--form": options.form}, options.overwrite)
    finished = work.finished()
    setup.say_start(options, finished)
    progress = progress_of(len(model.layers), finished, len(setup.batches), options.quiet)
    for layer in range(finished, len(model.layers)):
        _run_layer(layer, model, mapping, block, work, setup.batches, setup.keep, progress)
    inputs = work.inputs(len(model.layers))
    if not inputs:
        raise error(InputError, setup.checkpoint.folder, "no product of the model could be matched with a GGUF tensor")
    chunks = sum(len(batch) for batch, keep in zip(setup.batches, setup.keep) if keep is None)
    covariance_file.write(output, inputs, block, [os.path.basename(path) for path in text], chunks, setup.tokens.shape[1])
    work.remove()
    if not options.quiet:
        _report(output, inputs, mapping, model)


def _report(output, inputs, mapping, model):
    known = {tensor for each in inputs for tensor in each.tensors}
    blocks = tuple(f"blk.{number}." for number, _ in model.layers)
    missing = sorted(tensor for tensor in mapping.targets if tensor.startswith(blocks) and tensor not in known)
    say(f"{output}: {len(inputs)} inputs of {len(known)} tensors, {os.path.getsize(output) / 1e6:.1f} MB")
    if missing:
        some = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
        say(f"note: {len(missing)} tensors of the layers have no input of their own and are encoded without covariance: {some}")
