"""The safetensors files of a checkpoint: where each tensor is, and its values as a torch tensor."""

import bisect
import glob
import hashlib
import json
import os

from .._error import FileError, InputError, KernelError, TransientError, UsageError

_CODES = {UsageError: 2, InputError: 4, KernelError: 5, FileError: 6, TransientError: 75}


def error(kind, where, what, help=""):
    """Return an exception in the format of the library."""
    text = f"{where}: error: {what}\n" if where else f"error: {what}\n"
    return kind(text + (f"  help: {help}\n" if help else ""), where, what, "", help, _CODES[kind])


class Checkpoint:
    """Names, places and shapes of all tensors, from the headers of the files."""

    def __init__(self, folder):
        self.folder = folder
        if not os.path.isdir(folder):
            help = "give the folder of a Hugging Face checkpoint: config.json, *.safetensors, and a tokenizer"
            if os.path.isfile(folder):
                raise error(UsageError, folder, "not a folder, and only checkpoints can be calibrated", help)
            raise error(UsageError, folder, "no such folder", help)
        self._entries = {}  # name -> (path, dtype, shape, first byte, end)
        paths = self._paths()
        if not paths:
            help = "convert the checkpoint with transformers: `model.save_pretrained(FOLDER)`"
            raise error(InputError, folder, "contains no *.safetensors, which are read one layer at a time", help)
        self._places = {}  # path -> sorted [(first byte, name)]
        for path in paths:
            self._read_header(path)

    def _paths(self):
        index = os.path.join(self.folder, "model.safetensors.index.json")
        if not os.path.exists(index):
            return sorted(glob.glob(os.path.join(glob.escape(self.folder), "*.safetensors")))
        try:
            with open(index, encoding="utf-8") as file:
                shards = sorted(set(json.load(file)["weight_map"].values()))
        except (ValueError, KeyError, AttributeError, TypeError):
            raise error(InputError, index, "not an index of safetensors files") from None
        missing = [name for name in shards if not os.path.exists(os.path.join(self.folder, name))]
        if missing:
            help = "download it again; each file of the index is needed"
            raise error(InputError, self.folder, f"{missing[0]!r} is missing, which {os.path.basename(index)} names", help)
        return [os.path.join(self.folder, name) for name in shards]

    def _read_header(self, path):
        try:
            with open(path, "rb") as file:
                length = int.from_bytes(file.read(8), "little")
                if length > min(os.path.getsize(path), 1 << 30):
                    raise ValueError
                header = json.loads(file.read(length))
            places = []
            for name, entry in header.items():
                if name == "__metadata__":
                    continue
                first, end = (8 + length + int(offset) for offset in entry["data_offsets"])
                self._entries[name] = (path, entry["dtype"], tuple(entry["shape"]), first, end)
                places.append((first, name))
        except (ValueError, KeyError, AttributeError, TypeError):
            raise error(InputError, path, "not a valid safetensors file", f"`ggufmill verify {path}` finds out more") from None
        self._places[os.path.realpath(path)] = sorted(places)

    def names(self):
        return list(self._entries)

    def shape(self, name):
        return self._entries[name][2]

    def bytes_of(self, name):
        return self._entries[name][4] - self._entries[name][3]

    def tensor_at(self, path, offset, size):
        """Return (name, shape, offset in its bytes) of the tensor that contains bytes of a file; None if none does."""
        places = self._places.get(os.path.realpath(path), [])
        found = bisect.bisect_right(places, (offset, "\U0010ffff")) - 1
        if found < 0:
            return None
        _, _, shape, first, end = self._entries[places[found][1]]
        return (places[found][1], shape, offset - first) if size and offset + size <= end else None

    def read(self, name):
        """Return the values as a torch tensor on the CPU, which may be a view of the file."""
        import safetensors

        with safetensors.safe_open(self._entries[name][0], "pt") as file:
            return file.get_tensor(name)

    def identity(self):
        """Return what identifies the contents without reading them: names, sizes and times of the files."""
        paths = sorted(self._places)
        return [[os.path.basename(path), os.path.getsize(path), os.stat(path).st_mtime_ns] for path in paths]

    def config_digest(self):
        """Return the SHA-256 of config.json, in hexadecimal."""
        with open(os.path.join(self.folder, "config.json"), "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
