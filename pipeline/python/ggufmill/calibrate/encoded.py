"""A checkpoint whose weights are those of a GGUF file that is made of it, as far as its tensors are quantized."""

import torch

from .. import dequantize
from .. import open as open_model
from .._numpy import np
from .rows import matrix_of, parts_of


class EncodedTensor:
    """A tensor of the GGUF file that consists of rows of the checkpoint.

    name, type, columns, experts
    parts    list of Part
    encoded  its bytes, a row for each row of values; writing to it writes to the file
    """

    def __init__(self, tensor, target, parts, encoded):
        self.name, self.type, self.columns, self.experts = tensor.name, tensor.type, target.columns, target.experts
        self.parts, self.encoded = parts, encoded

    def values(self, checkpoint, first, count):
        """Return rows [first, first + count) as they are in the checkpoint, float32."""
        made = torch.empty(count, self.columns, dtype=torch.float32)
        for part in self.parts:
            chosen = (part.rows >= first) & (part.rows < first + count)
            if chosen.any():
                made[part.rows[chosen] - first] = matrix_of(checkpoint.read(part.key), part.axis)[part.taken[chosen]].float()
        return made


class EncodedCheckpoint:
    """The interface of Checkpoint. `tensors`: {name: EncodedTensor}, all that can be read with their encoded values."""

    def __init__(self, checkpoint, mapping, path):
        self.folder, self.config_digest = checkpoint.folder, checkpoint.config_digest
        self.names, self.shape, self.bytes_of, self.tensor_at = checkpoint.names, checkpoint.shape, checkpoint.bytes_of, checkpoint.tensor_at
        self._checkpoint, self.tensors, self._of_key = checkpoint, {}, {}
        self._file = np.memmap(path, np.uint8, "r+")
        for name, tensor in open_model(path).tensors.items():
            target = mapping.targets.get(name)
            parts = parts_of(mapping, name) if target and tensor.is_mapped else None
            if parts is None:
                continue
            rows = sum(len(part.rows) for part in parts)
            _, offset, _ = tensor._extent()
            encoded = self._file[offset : offset + tensor.nbytes].reshape(rows, -1)
            self.tensors[name] = EncodedTensor(tensor, target, parts, encoded)
            for part in parts:
                self._of_key.setdefault(part.key, []).append((name, part))

    def read(self, key):
        value = self._checkpoint.read(key)
        if key in self._of_key:
            value = value.to(torch.float32, copy=True)
        for name, part in self._of_key.get(key, ()):
            tensor = self.tensors[name]
            encoded = np.ascontiguousarray(tensor.encoded[part.rows.numpy()])
            decoded = dequantize(encoded, tensor.type, (len(encoded), tensor.columns))
            if part.axis == -2:
                value = value.mT.contiguous()
            value.view(-1, tensor.columns)[part.taken] = torch.from_numpy(decoded)
            if part.axis == -2:
                value = value.mT.contiguous()
        return value

    def flush(self):
        """Wait until all that was written is on disk."""
        self._file.flush()
