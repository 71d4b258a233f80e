"""The working folder of a calibration or an encoding, beside its output: what is needed to resume after a kill.

    lock             locked while a run uses the folder
    job.json         what decides the result; another job is refused
    states-N         hidden states after N layers: the input of layer N (counted from 0), mapped into memory
    encoded-N        of an encoding: those of the encoded model
    layer-N          of a calibration: sums, counts, correlations and held-out vectors of the inputs of layer N
    layer-N.json     written last, when layer N is finished: what layer-N and states-(N + 1) hold
    covariance.gguf, start.gguf   of an encoding: what it starts from; start.gguf becomes the output
"""

import fcntl
import json
import os
import shutil

import torch

from .._error import FileError, TransientError, UsageError
from .._numpy import np
from .checkpoint import error
from .covariance_file import MOST_HELD_OUT, Input, packed_rows, rename
from .products import spread


class Work:
    def __init__(self, output, job, overwrite, kind="calibration"):
        """`kind`: calibration or encoding. `job`: a dictionary that decides the result. Raises an error if the folder is that of another job, or if another
        run uses it. This run has it until remove(), or until the process ends."""
        self.folder = os.path.join(os.path.dirname(output), f".{os.path.basename(output)}.ggufmill-{kind}")
        self._kind = kind
        self._lock = self._locked(output)
        path = self.path("job.json")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                before = json.load(file)
            different = sorted(name for name in {*before, *job} if before.get(name) != job.get(name))
            if different and not overwrite:
                help = f"restore that to resume it, or use --overwrite to discard it ({self.folder})"
                what = f"an unfinished {self._kind} with this output differs in: {', '.join(different)}"
                raise error(UsageError, output, what, help)
            if different:
                os.unlink(path)
        if not os.path.exists(path):
            self._clear()
            self._publish(path, json.dumps(job))

    def _locked(self, output):
        """Create the folder, and return the open file `lock` in it, which this process has locked."""
        path = self.path("lock")
        while True:
            os.makedirs(self.folder, exist_ok=True)
            file = None
            try:
                file = open(path, "wb")
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                    return file
            except BlockingIOError:
                help = "wait until it has finished, or use another path with -o"
                raise error(TransientError, output, f"another {self._kind} is writing this output", help) from None
            except FileNotFoundError:
                pass  # the run that had it has removed it
            if file:
                file.close()

    def _clear(self):
        """Remove all files but the lock. job.json is the first, so that what is left after a kill is not resumed."""
        for name in sorted(os.listdir(self.folder), key=lambda name: name != "job.json"):
            if name != "lock":
                is_folder = os.path.isdir(self.path(name)) and not os.path.islink(self.path(name))
                (shutil.rmtree if is_folder else os.unlink)(self.path(name))

    def forget_layers(self):
        """Remove what says that layers are finished: those of a file that is no more."""
        for layer in reversed(range(self.finished())):
            os.unlink(self.path(f"layer-{layer}.json"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def _publish(self, path, text):
        with open(f"{path}.part", "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        rename(f"{path}.part", path)

    def finished(self):
        """Return the number of layers that are finished."""
        count = 0
        while os.path.exists(self.path(f"layer-{count}.json")):
            count += 1
        return count

    def states(self, layer, shape, dtype, create=False, kind="states"):
        """Return the hidden states before a layer, a tensor in the mapped file. `kind`: states or encoded."""
        path = self.path(f"{kind}-{layer}")
        count = int(np.prod(shape))
        if create:
            with open(path, "wb") as file:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, count * dtype.itemsize)
                else:  # macOS
                    file.truncate(count * dtype.itemsize)
        return torch.from_file(path, shared=True, size=count, dtype=dtype).view(shape)

    def shape_before(self, layer):
        """Return the shape of the hidden states before a layer, as the layer before it left them."""
        return self.read_layer(layer - 1)["states"]

    def read_layer(self, layer):
        with open(self.path(f"layer-{layer}.json"), encoding="utf-8") as file:
            return json.load(file)

    def finish(self, layer, inputs, states):
        """Store the inputs of a layer, a list of (tensors, experts, {expert: Sums}), and what shape the states after it
        have, which are in memory mapped by states(layer + 1, ...)."""
        listed = []
        with open(self.path(f"layer-{layer}"), "wb") as file:
            for tensors, experts, sums in inputs:
                columns = len(next(iter(sums.values())).squares)
                sizes = [len(gram) for gram in next(iter(sums.values())).grams]
                packed = sum(n * (n - 1) // 2 for n in sizes)
                # A model that uses a parameter several times has more of them.
                held_out = min(max(sum(map(len, each.held_out)) for each in sums.values()), MOST_HELD_OUT)
                squares, counts = np.zeros((experts, columns), np.float32), np.zeros(experts, np.float32)
                for expert, each in sums.items():
                    squares[expert], counts[expert] = each.squares.cpu().numpy(), each.count
                listed.append({"tensors": tensors, "columns": columns, "experts": experts, "packed": packed, "held_out": held_out, "at": file.tell()})
                file.write(squares.tobytes())
                file.write(counts.tobytes())
                for expert in range(experts):
                    if expert not in sums:
                        file.write(bytes(2 * packed))
                        continue
                    for gram in sums[expert].grams:
                        for row in packed_rows(gram.cpu().numpy()):
                            file.write(row.tobytes())
                for expert in range(experts):
                    vectors = np.zeros((held_out, columns), np.int16)
                    if expert in sums and sums[expert].held_out:
                        kept = spread(torch.cat(sums[expert].held_out), held_out).view(torch.int16).cpu().numpy()
                        vectors[: len(kept)] = kept
                    file.write(vectors.tobytes())
            file.flush()
            os.fsync(file.fileno())
        self.publish(layer, {"inputs": listed, "states": list(states)})

    def publish(self, layer, facts):
        """Record that a layer is finished, with facts for read_layer(): "states" is the shape of the hidden states after
        it. All that it left but the states is on disk."""
        for kind in ("states", "encoded"):
            after = self.path(f"{kind}-{layer + 1}")
            if os.path.exists(after):
                with open(after, "rb+") as file:
                    os.fsync(file.fileno())
        self._publish(self.path(f"layer-{layer}.json"), json.dumps(facts))
        for kind in ("states", "encoded"):
            if os.path.exists(self.path(f"{kind}-{layer}")):
                os.unlink(self.path(f"{kind}-{layer}"))

    def inputs(self, layers):
        """Return the inputs of all layers, a list of Input."""
        found = []
        for layer in range(layers):
            path = self.path(f"layer-{layer}")
            for each in self.read_layer(layer)["inputs"]:
                shape = {name: each[name] for name in ("columns", "experts", "packed", "held_out")}
                found.append(Input(each["tensors"], **shape, copy_to=_copier(path, each["at"], **shape)))
        return found

    def remove(self):
        """Remove the folder, and let other runs have it."""
        self._clear()
        os.unlink(self.path("lock"))
        try:
            os.rmdir(self.folder)
        except OSError:  # another run has a lock of its own in it by now
            pass
        self._lock.close()


def _copier(path, at, columns, experts, packed, held_out):
    """Return a function that copies a part of an input from the file of a layer."""
    sizes = {"sums": 4 * columns * experts, "counts": 4 * experts, "correlations": 2 * packed * experts}
    sizes["vectors"] = 2 * held_out * columns * experts

    def copy_to(file, kind):
        names = list(sizes)
        with open(path, "rb") as source:
            source.seek(at + sum(sizes[name] for name in names[: names.index(kind)]))
            left = sizes[kind]
            while left:
                data = source.read(min(left, 1 << 22))
                if not data:
                    raise error(FileError, path, "the file is shorter than it was written", "remove its folder and start over")
                file.write(data)
                left -= len(data)

    return copy_to
