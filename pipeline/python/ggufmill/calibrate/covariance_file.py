"""Covariance files: GGUF files with an importance matrix and the correlations of the columns of each input.

For each input of C columns, of E experts (1 for a matrix): ``T.in_sum2``, F32 [E, C], the sums of squares, and
``T.counts``, F32 [E, 1], the numbers of vectors, for each tensor T with that input; and ``O.in_corr``, F16 [E, P], for
the first of these tensors, O: the strict upper triangles of the diagonal blocks, row by row. ``O.in_rows``, BF16 [E, N, C],
has held-out vectors, of text that the sums do not cover: the longest ones, and a sample of the others, multiplied so that it
stands for all of them; those of an expert that got fewer than N are followed by zeros. The
keys ``covariance.tensors`` and ``covariance.inputs`` list T and O in pairs.
"""

import dataclasses
import os
import struct

from .._numpy import np

VERSION = 1
MOST_HELD_OUT = 1024  # vectors of an expert
_F32, _F16, _BF16 = 0, 1, 30  # tensor types of GGUF
_UINT32, _STRING, _ARRAY = 4, 8, 9  # types of its metadata
_ALIGNMENT = 32


@dataclasses.dataclass
class Input:
    """An input of one or several tensors.

    tensors  names, in the order of their bytes
    columns  of the tensors
    experts  1 for matrices
    packed   elements of the correlations of an expert
    held_out held-out vectors of an expert; 0: none are stored
    copy_to  copy_to(file, kind) writes the "sums", "counts", "correlations" or "vectors" of all experts
    """

    tensors: list
    columns: int
    experts: int
    packed: int
    held_out: int
    copy_to: object

    def parts(self):
        """Yield (name, type, dimensions as GGUF counts them, bytes, kind) of each tensor of the file, in its order."""
        for tensor in self.tensors:
            yield f"{tensor}.in_sum2", _F32, (self.columns, self.experts), 4 * self.columns * self.experts, "sums"
            yield f"{tensor}.counts", _F32, (1, self.experts), 4 * self.experts, "counts"
        size = 2 * self.packed * self.experts
        yield f"{self.tensors[0]}.in_corr", _F16, (self.packed, self.experts), size, "correlations"
        if self.held_out:
            dimensions = (self.columns, self.held_out, self.experts)
            yield f"{self.tensors[0]}.in_rows", _BF16, dimensions, 2 * int(np.prod(dimensions)), "vectors"


def packed_rows(gram):
    """Yield the correlations of each column with those after it, float16, from sums of products, float32 [n, n]."""
    root = np.sqrt(np.diag(gram).astype(np.float64))
    inverse = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
    for row in range(len(gram)):
        products = gram[row, row + 1 :].astype(np.float64) * inverse[row] * inverse[row + 1 :]
        yield np.clip(products, -1, 1).astype(np.float16)


def _string(text):
    data = os.fsencode(text)
    return struct.pack("<Q", len(data)) + data


def _key(name, kind, value):
    return _string(name) + struct.pack("<I", kind) + value


def _strings(texts):
    return struct.pack("<IQ", _STRING, len(texts)) + b"".join(map(_string, texts))


def _aligned(size):
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _header(inputs, block, datasets, chunks, chunk):
    keys = [
        _key("general.type", _STRING, _string("imatrix")),
        _key("imatrix.datasets", _ARRAY, _strings(datasets)),
        _key("imatrix.chunk_count", _UINT32, struct.pack("<I", chunks)),
        _key("imatrix.chunk_size", _UINT32, struct.pack("<I", chunk)),
        _key("covariance.version", _UINT32, struct.pack("<I", VERSION)),
        _key("covariance.block", _UINT32, struct.pack("<I", block)),
        _key("covariance.tensors", _ARRAY, _strings([tensor for each in inputs for tensor in each.tensors])),
        _key("covariance.inputs", _ARRAY, _strings([each.tensors[0] for each in inputs for _ in each.tensors])),
    ]
    tensors, at = [], 0
    for each in inputs:
        for name, kind, dimensions, size, _ in each.parts():
            count = len(dimensions)
            tensors.append(_string(name) + struct.pack(f"<I{count}QIQ", count, *dimensions, kind, at))
            at += _aligned(size)
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)) + b"".join(keys + tensors)
    return header.ljust(_aligned(len(header)), b"\0")


def rename(part, path):
    """Rename a file of the same folder, and wait until the new name is on disk."""
    os.replace(part, path)
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write(path, inputs, block, datasets, chunks, chunk):
    """Write a file under a temporary name and rename it when it is complete; it is on disk when this returns.
    `path` is absolute. `inputs`: list of Input."""
    part = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.ggufmill-calibrate")
    try:
        with open(part, "wb") as file:
            file.write(_header(inputs, block, datasets, chunks, chunk))
            for each in inputs:
                for _, _, _, size, kind in each.parts():
                    each.copy_to(file, kind)
                    file.write(bytes(_aligned(size) - size))
            file.flush()
            os.fsync(file.fileno())
        rename(part, path)
    except BaseException:
        if os.path.exists(part):
            os.unlink(part)
        raise
