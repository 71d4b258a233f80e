"""python_bench.py GGUF_PY [OPTIONS]: the Python module beside gguf-py's gguf.quants, type by type. See --help."""

import argparse
import importlib
import os
import statistics
import sys
import time
import types

import ggufmill
import numpy as np

parser = argparse.ArgumentParser(
    prog="./dev bench python",
    description="Times ggufmill.quantize and dequantize beside gguf-py's, both as a program calls them, in turn, medians; and "
    "compares the bytes. `Mw/s` is millions of weights a second; `1 thread` and `all` are times faster than gguf-py, "
    "which has one thread.",
)
parser.add_argument("gguf_py", help="the folder gguf-py of llama.cpp's source, or one that holds the package gguf")
parser.add_argument("--rows", type=int, default=1024, help="of 4096 weights each (default: 1024)")
parser.add_argument("--rounds", type=int, default=5, help="the median of so many (default: 5)")
parser.add_argument("--types", default="", help="these alone: Q4_K,Q8_0")


def load_quants(folder):
    """gguf.quants without what else gguf-py imports, which needs packages that are of no use here."""
    path = os.path.join(folder, "gguf")
    if not os.path.exists(os.path.join(path, "quants.py")):
        sys.exit(f"python_bench.py: {folder} holds no gguf/quants.py")
    package = types.ModuleType("gguf")
    package.__path__ = [path]
    sys.modules["gguf"] = package
    return importlib.import_module("gguf.quants")


def seconds(calls, rounds):
    """The median time of each call. They take turns, so that all meet the same machine."""
    times = [[] for _ in calls]
    for _ in range(rounds):
        for call, taken in zip(calls, times):
            start = time.perf_counter()
            call()
            taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in times]


class Table:
    def __init__(self):
        self.differing = []
        print(f"{'type':8} {'':6} {'gguf-py':>9} {'1 thread':>9} {'all':>9}   {'':7}{'':4} {'':9}")
        print(f"{'':8} {'':6} {'Mw/s':>9} {'Mw/s':>9} {'Mw/s':>9}   {'1 thread':>8} {'all':>7}  bytes")

    def add(self, name, what, weights, calls, is_same, rounds):
        rates = [weights / taken / 1e6 for taken in seconds(calls, rounds)]
        times = [rate / rates[0] for rate in rates[1:]]
        same = "same" if is_same else "DIFFER"
        print(f"{name:8} {what:6} {rates[0]:9.1f} {rates[1]:9.1f} {rates[2]:9.1f}   ", end="")
        print(f"{times[0]:7.1f}x {times[1]:6.1f}x  {same}", flush=True)
        if not is_same:
            self.differing.append(f"{name} {what}")


def main():
    arguments = parser.parse_args()
    quants = load_quants(arguments.gguf_py)
    known = {each.name: each for each in quants.GGMLQuantizationType}
    wanted = arguments.types.split(",") if arguments.types else [each["name"] for each in ggufmill.types()]
    values = np.random.default_rng(1).standard_normal((arguments.rows, 4096)).astype(np.float32)
    importance = np.ones(values.shape[-1], np.float32)
    table = Table()
    for info in ggufmill.types():
        name = info["name"]
        if name not in wanted or not info["write"] or name == "F32" or name not in known:
            continue
        kind = known[name]
        need = importance if info["importance"] == "needed" else None
        rows = ggufmill.quantize(values, name, need)
        try:
            theirs = quants.quantize(values, kind)
        except NotImplementedError:
            theirs = None
        if theirs is not None:
            calls = [
                lambda: quants.quantize(values, kind),
                lambda: ggufmill.quantize(values, name, threads=1),
                lambda: ggufmill.quantize(values, name),
            ]
            is_same = theirs.tobytes() == rows.tobytes()
            table.add(name, "encode", values.size, calls, is_same, arguments.rounds)
        packed = rows.view(np.float16) if name == "F16" else rows
        try:
            decoded = quants.dequantize(packed, kind)
        except NotImplementedError:
            continue
        calls = [
            lambda: quants.dequantize(packed, kind),
            lambda: ggufmill.dequantize(rows, name, threads=1),
            lambda: ggufmill.dequantize(rows, name),
        ]
        is_same = decoded.astype(np.float32, copy=False).tobytes() == ggufmill.dequantize(rows, name).tobytes()
        table.add(name, "decode", values.size, calls, is_same, arguments.rounds)
    if table.differing:
        sys.exit("other bytes: " + ", ".join(table.differing))


main()
