"""A model of transformers whose layers are in memory one at a time.

The model is created without values. A layer's parameters are read from the checkpoint before it runs; what is outside of
the layers (embeddings, norms before the first layer) is read when it is first used, so that vision towers and the head,
which are not, are never read. To run layer N, the model is called as usual: the layers before it hand on what they get,
layer N gets the stored hidden states in place of that, and the call ends after it. So masks and positions are those of
the model itself, and nothing here depends on the kind of model.

What is outside of the layers is found by calling the model until no module that it uses has parameters without values:
code that looks at a parameter before it uses its module would otherwise take its missing values for those of the model.
"""

import contextlib
import inspect
import re

import torch
import transformers

from .._error import InputError, UsageError
from .checkpoint import error
from .sources import Source, sources_of

_BLOCK = re.compile(r"blk\.(\d+)\.")


class _Finished(Exception):
    """Ends a call of the model after one layer."""


@contextlib.contextmanager
def _without_values():
    """Within this, parameters have shapes but no values. Buffers do have values: no checkpoint contains all of them."""
    original = torch.nn.Module.register_parameter

    def register(module, name, parameter):
        original(module, name, parameter)
        if parameter is not None:
            module._parameters[name] = torch.nn.Parameter(parameter.to("meta"), requires_grad=False)

    torch.nn.Module.register_parameter = register
    try:
        yield
    finally:
        torch.nn.Module.register_parameter = original


def _created(folder, config, dtype):
    name = (config.architectures or [""])[0]
    kind = getattr(transformers, name, None)
    default = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with _without_values():
            return kind(config) if kind else transformers.AutoModelForCausalLM.from_config(config, dtype=dtype)
    except (ValueError, KeyError, AttributeError, ImportError, TypeError) as e:
        help = f"install a version of transformers that knows the class {name!r}; this one is {transformers.__version__}"
        raise error(InputError, folder, f"transformers cannot create the model: {_one_line(e)}", help) from e
    finally:
        torch.set_default_dtype(default)


def _one_line(e):
    return " ".join(str(e).split())[:300]


class LayeredModel:
    """config, tokenizer; layers: list of (number of the GGUF block, name of the module)."""

    def __init__(self, checkpoint, mapping, device, dtype):
        folder = checkpoint.folder
        try:
            self.config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
        except (ValueError, OSError, KeyError) as e:
            help = f"use a version of transformers that knows the model; this one is {transformers.__version__}"
            raise error(InputError, folder, f"transformers cannot read config.json: {_one_line(e)}", help) from e
        if getattr(self.config, "quantization_config", None):
            help = "calibrate the checkpoint that it was quantized from, or dequantize it: `model.dequantize()`, `save_pretrained(FOLDER)`"
            raise error(InputError, folder, "the weights of the checkpoint are quantized", help)
        self.checkpoint, self.mapping, self.device = checkpoint, mapping, device
        self.dtype = dtype or getattr(self.config.get_text_config(), "dtype", None) or torch.float32
        if hasattr(self.config, "_experts_implementation"):
            self.config._experts_implementation = "eager"  # others hide which vectors an expert gets
        self.model = _created(folder, self.config, self.dtype).eval()
        self._sources = sources_of(self.model, checkpoint)
        for module in self.model.modules():
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    module._buffers[name] = buffer.to(device)
        self.layers = self._find_layers()
        self._prepare()

    def _find_layers(self):
        """Find the list of modules each of which has the tensors of one GGUF block."""
        blocks = {}  # name of a module -> the blocks of its tensors
        for parameter, source in self._sources.items():
            found = {int(m[1]) for key in source.keys for name in self.mapping.names.get(key, ()) if (m := _BLOCK.match(name))}
            parts = parameter.split(".")
            for end in range(1, len(parts)):
                blocks.setdefault(".".join(parts[:end]), set()).update(found)
        best = []
        for path, module in self.model.named_modules():
            if not isinstance(module, torch.nn.ModuleList):
                continue
            children = [(f"{path}.{name}", blocks.get(f"{path}.{name}", set())) for name, _ in module.named_children()]
            numbers = [next(iter(found)) for _, found in children if len(found) == 1]
            if len(numbers) == len(children) == len(set(numbers)) > len(best):
                best = [(number, name) for number, (name, _) in zip(numbers, children)]
        if not best:
            help = "only models whose layers follow each other can be calibrated, such as decoders; not encoder-decoder models"
            raise error(InputError, self.checkpoint.folder, f"{type(self.model).__name__} has no list of layers that match GGUF blocks", help)
        return best

    def _prepare(self):
        self._current, self._stored, self._result, self._is_tuple = -1, None, None, False
        self._read_count = 0
        names = [name for _, name in self.layers]
        for i, name in enumerate(names):
            layer = self.model.get_submodule(name)
            layer.forward = self._replaced(i, layer.forward)
        for path, module in self.model.named_modules():
            if any(path == name or path.startswith(f"{name}.") for name in names):
                continue
            if any(parameter is not None for parameter in module._parameters.values()):
                prefix = f"{path}." if path else ""
                module.register_forward_pre_hook(lambda module, _, prefix=prefix: self._read_own(module, prefix))

    def _replaced(self, number, forward):
        def replaced(*args, **kwargs):
            if self._current < 0:
                raise _Finished
            hidden = args[0] if args else kwargs.get("hidden_states")
            if number < self._current:
                return (hidden,) if self._is_tuple else hidden
            if self._stored is not None:
                hidden = self._stored
            if args:
                result = forward(hidden, *args[1:], **kwargs)
            else:
                result = forward(**{**kwargs, "hidden_states": hidden})
            self._is_tuple = isinstance(result, tuple)
            self._result = result[0] if self._is_tuple else result
            raise _Finished

        return replaced

    def _read_own(self, module, prefix):
        """Read the parameters and buffers of a module itself, unless they are in memory."""
        for name, parameter in module._parameters.items():
            if parameter is not None and parameter.is_meta:
                self._read_count += 1
                value = self._read(prefix + name, parameter.shape)
                module._parameters[name] = torch.nn.Parameter(value, requires_grad=False)
        for name, buffer in module._buffers.items():
            if buffer is not None and prefix + name in self._sources:
                module._buffers[name] = self._read(prefix + name, buffer.shape, buffer.dtype)

    def _read(self, name, shape, dtype=None):
        source = self._sources.get(name)
        if source is None:
            help = "check that the checkpoint is complete, or use the version of transformers that wrote it"
            raise error(InputError, self.checkpoint.folder, f"no tensor of the checkpoint is the parameter {name!r}", help)
        value = source.read(self.checkpoint)
        if value.shape != shape:
            help = "use the config.json that belongs to the weights"
            what = f"parameter {name!r} has shape {tuple(value.shape)} in the files and {tuple(shape)} by config.json"
            raise error(InputError, self.checkpoint.folder, what, help)
        return value.to(device=self.device, dtype=dtype or self.dtype)

    @contextlib.contextmanager
    def loaded(self, index):
        """Within this, a layer is in memory. Returns its parameters by name."""
        name = self.layers[index][1]
        layer = self.model.get_submodule(name)
        for path, module in layer.named_modules(prefix=name):
            self._read_own(module, f"{path}.")
        try:
            yield {path: parameter.data for path, parameter in layer.named_parameters(prefix=name)}
        finally:
            for module in layer.modules():
                for own, parameter in module._parameters.items():
                    if parameter is not None:
                        module._parameters[own] = torch.nn.Parameter(parameter.to("meta"), requires_grad=False)

    def prepare(self, ids):
        """Read what the model uses before its first layer. `ids`: token numbers [chunks, tokens]."""
        self._current, before = -1, None
        while before != self._read_count:
            before = self._read_count
            try:
                self._call(ids)
            except _Finished:
                pass
            except (RuntimeError, NotImplementedError, IndexError, ValueError) as e:
                if before == self._read_count:
                    what = f"{type(self.model).__name__} cannot be run up to its layers: {_one_line(e)}"
                    help = f"try another version of transformers; this one is {transformers.__version__}"
                    raise error(InputError, self.checkpoint.folder, what, help) from e

    def _call(self, ids):
        known = inspect.signature(self.model.forward).parameters
        self.model(input_ids=ids, **({"use_cache": False} if "use_cache" in known else {}))

    def run(self, index, ids, stored):
        """Return the hidden states after a layer, of token numbers [chunks, tokens]. `stored`: those before it, or None
        for the first layer."""
        self._current, self._stored, self._result = index, stored, None
        try:
            self._call(ids)
        except _Finished:
            return self._result
        finally:
            self._stored = self._result = None
        raise error(InputError, self.checkpoint.folder, f"{type(self.model).__name__} did not run its layer {index}")

    def read_again(self, parameter):
        """Read a parameter of the loaded layer again, to the same place in memory."""
        value = self.model.get_parameter(parameter).data
        value.copy_(self._read(parameter, value.shape))

    def is_tensor(self, parameter, key):
        """Return whether a parameter is a tensor of the checkpoint, as it is."""
        source = self._sources.get(parameter)
        return isinstance(source, Source) and source.keys == [key]

    def tensors_of(self, parameter, matrix, axis):
        """Return the set of (GGUF tensor, expert) that a matrix of a parameter becomes, whose columns are along an axis."""
        return self._sources[parameter].tensors_of(matrix, axis, self.mapping) if parameter in self._sources else set()
