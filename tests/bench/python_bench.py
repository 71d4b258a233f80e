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
    description="Times ggufmill.quantize and dequantize beside gguf-py's, in turn, medians; and "
    "compares the bytes. `Mw/s` is millions of weights a second of CPU time, but for `all` threads by the clock; then how "
    "many times faster than gguf-py, which has one thread. `out`: one thread, into an array that is there: the rest of the "
    "difference is the system's, which gives new memory.",
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
    """The median times of each call: of the CPU, and by the clock. They take turns, so that all meet the same machine."""
    times = [([], []) for _ in calls]
    for _ in range(rounds):
        for call, taken in zip(calls, times):
            start = time.process_time(), time.perf_counter()
            call()
            for each, now, before in zip(taken, (time.process_time(), time.perf_counter()), start):
                each.append(now - before)
    return [tuple(statistics.median(each) for each in taken) for taken in times]


class Table:
    def __init__(self):
        self.differing = []
        heads = ("gguf-py", "1 thread", "out", "all", "1 thread", "out", "all")
        print(f"{'':15} " + " ".join(f"{each:>9}" for each in heads))
        print(f"{'type':15} " + " ".join(f"{each:>9}" for each in 4 * ["Mw/s"] + 3 * ["faster"]) + "  bytes")

    def add(self, name, what, weights, calls, is_same, rounds):
        theirs, alone, into, all_threads = seconds(calls, rounds)
        rates = [weights / each / 1e6 for each in (theirs[0], alone[0], into[0], all_threads[1])]
        times = theirs[0] / alone[0], theirs[0] / into[0], theirs[1] / all_threads[1]
        print(f"{name:8} {what:6} " + " ".join(f"{each:9.1f}" for each in rates), end=" ")
        print(" ".join(f"{each:8.1f}x" for each in times), "same" if is_same else "DIFFER", sep=" ", flush=True)
        if not is_same:
            self.differing.append(f"{name} {what}")


def main():
    arguments = parser.parse_args()
    quants = load_quants(arguments.gguf_py)
    known = {each.name: each for each in quants.GGMLQuantizationType}
    wanted = arguments.types.split(",") if arguments.types else [each["name"] for each in ggufmill.types()]
    values = np.random.default_rng(1).standard_normal((arguments.rows, 4096)).astype(np.float32)
    importance = np.ones(values.shape[-1], np.float32)
    again = np.empty_like(values)
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
                lambda: ggufmill.quantize(values, name, out=rows, threads=1),
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
            lambda: ggufmill.dequantize(rows, name, out=again, threads=1),
            lambda: ggufmill.dequantize(rows, name),
        ]
        is_same = decoded.astype(np.float32, copy=False).tobytes() == ggufmill.dequantize(rows, name).tobytes()
        table.add(name, "decode", values.size, calls, is_same, arguments.rounds)
    if table.differing:
        sys.exit("other bytes: " + ", ".join(table.differing))


main()
