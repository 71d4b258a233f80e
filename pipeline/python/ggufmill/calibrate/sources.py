"""Finds the tensors of a checkpoint that make up each parameter of a model, as transformers loads them."""

import copy
import re


class Source:
    """A parameter that is one tensor of the checkpoint: `keys` is its name."""

    def __init__(self, key):
        self.keys = [key]

    def read(self, checkpoint):
        return checkpoint.read(self.keys[0])

    def tensors_of(self, matrix, axis, mapping):
        """Return the set of (GGUF tensor, expert) made from a matrix whose columns are along an axis, -1 or -2."""
        uses = (use for use in mapping.uses.get(self.keys[0], ()) if use.axis == axis)
        return {(use.tensor, use.expert + matrix - use.first) for use in uses if use.first <= matrix < use.first + use.count}


class ConvertedSource:
    """A parameter that transformers 5 assembles from several tensors, such as all experts of a layer.

    patterns  {pattern of names: names of tensors, in order}
    """

    def __init__(self, parameter, patterns, converter, model):
        self._parameter, self._patterns, self._converter, self._model = parameter, patterns, converter, model
        self.keys = [key for keys in patterns.values() for key in keys]

    def read(self, checkpoint):
        converter = copy.deepcopy(self._converter)
        for pattern, keys in self._patterns.items():
            for key in keys:
                converter.add_tensor(self._parameter, key, pattern, checkpoint.read(key))
        value = converter.convert(self._parameter, model=self._model, config=self._model.config)[self._parameter]
        return value[0] if isinstance(value, (list, tuple)) else value

    def tensors_of(self, matrix, axis, mapping):
        tensors = set()
        for keys in self._patterns.values():  # one tensor for all matrices, or one for each
            key, inside = (keys[0], matrix) if len(keys) == 1 else (keys[min(matrix, len(keys) - 1)], 0)
            tensors |= Source(key).tensors_of(inside, axis, mapping)
        return tensors


def _by_class(model, keys):
    """Map names as transformers 4 does: by patterns of the class, and with or without the prefix of its base model."""
    known = {name for name, _ in model.named_parameters(remove_duplicate=False)} | {name for name, _ in model.named_buffers()}
    patterns = getattr(model, "_checkpoint_conversion_mapping", None) or {}
    prefix = f"{model.base_model_prefix}."
    made = {}
    for key in keys:
        name = key
        for pattern, replacement in patterns.items():
            name, count = re.subn(pattern, replacement, name)
            if count:
                break
        forms = (name, prefix + name, name.removeprefix(prefix), key)
        found = next((form for form in forms if form in known), None)
        if found is not None:
            made[found] = Source(key)
    return made


def _by_conversion(model, keys):
    """Map names as transformers 5 does: its renamings, and converters that join tensors."""
    from transformers import conversion_mapping, core_model_loading as loading

    transforms = conversion_mapping.get_model_conversion_mapping(model)
    converters = [each for each in transforms if isinstance(each, loading.WeightConverter)]
    renamings = [each for each in transforms if not isinstance(each, loading.WeightConverter)]
    by_pattern = {pattern: each for each in converters for pattern in each.source_patterns}
    known = {**dict(model.named_parameters(remove_duplicate=False)), **dict(model.named_buffers())}
    made, joined = {}, {}
    for key in sorted(keys, key=loading.dot_natural_key):
        name, pattern = loading.rename_source_key(key, renamings, converters, model.base_model_prefix, known)
        if pattern is None:
            if name in known:
                made[name] = Source(key)
        else:
            joined.setdefault(name, (by_pattern[pattern], {}))[1].setdefault(pattern, []).append(key)
    for name, (converter, patterns) in joined.items():
        ordered = {pattern: patterns[pattern] for pattern in converter.source_patterns if pattern in patterns}
        first, *others = converter.target_patterns
        for parameter in [name, *(name.replace(first, other) for other in others)]:
            if parameter in known:
                made[parameter] = ConvertedSource(parameter, ordered, converter, model)
    return made


def sources_of(model, checkpoint):
    """Return {name of a parameter or buffer of the model: Source}. A tied parameter may be missing."""
    try:
        return _by_conversion(model, checkpoint.names())
    except ImportError:
        return _by_class(model, checkpoint.names())
