"""Runs the quantizer of a version over the golden data's kernels, files, and plans (DATA/golden)."""
import csv
import ctypes
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import gguf_text
import versions
from converter import keep_text


def rows(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def constants(source):
    """gguf/constants.py of a version, as a module; it imports nothing but the standard library."""
    name = "constants_" + hashlib.sha256(str(source).encode()).hexdigest()[:8]
    spec = importlib.util.spec_from_file_location(name, f"{source}/gguf-py/gguf/constants.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    write, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    spec.loader.exec_module(module)
    sys.dont_write_bytecode = write
    return module


def type_numbers(source):
    return {kind.name: kind.value for kind in constants(source).GGMLQuantizationType}


def tensor_types(source):
    """{number: (name, elements of a block, its bytes)}, as gguf_text.describe takes them."""
    return {kind.value: (kind.name, *size) for kind, size in constants(source).GGML_QUANT_SIZES.items()}


# ---- kernels ----

class Traits(ctypes.Structure):
    """The first members of ggml.h's ggml_type_traits."""
    _fields_ = [("name", ctypes.c_char_p), ("block", ctypes.c_int64), ("interleave", ctypes.c_int64),
                ("bytes", ctypes.c_size_t), ("quantized", ctypes.c_bool), ("decode", ctypes.c_void_p)]


def kernel_worker(library, synth_file, numbers, cases):
    """In a process of its own, because the library may abort: yields (case, SHA-256 of the codes, of what they decode to)."""
    import numpy
    spec = importlib.util.spec_from_file_location("synth", synth_file)
    synth = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(synth)
    ggml = ctypes.CDLL(library)
    ggml.ggml_quantize_chunk.restype = ctypes.c_size_t
    ggml.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
                                         ctypes.c_int64, ctypes.c_void_p]
    ggml.ggml_row_size.restype, ggml.ggml_row_size.argtypes = ctypes.c_size_t, [ctypes.c_int, ctypes.c_int64]
    ggml.ggml_get_type_traits.restype = ctypes.POINTER(Traits)
    decode_type = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    for kind, distribution, importance, count, columns, seed in cases:
        number, count, columns, seed = numbers[kind], int(count), int(columns), int(seed)
        values = numpy.ascontiguousarray(synth.values(distribution, seed, 0, count * columns), numpy.float32)
        weights = None
        if importance != "no":
            weights = numpy.ascontiguousarray(synth.importance(seed + 1, columns, importance), numpy.float32)
        codes = numpy.zeros(ggml.ggml_row_size(number, columns) * count, numpy.uint8)
        ggml.ggml_quantize_chunk(number, values.ctypes.data, codes.ctypes.data, 0, count, columns,
                                 weights.ctypes.data if weights is not None else None)
        decoded = numpy.zeros(count * columns, numpy.float32)
        traits = ggml.ggml_get_type_traits(number).contents
        if traits.decode:
            decode_type(traits.decode)(codes.ctypes.data, decoded.ctypes.data, decoded.size)
        else:  # float32
            decoded = codes.view(numpy.float32)
        yield hashlib.sha256(codes.tobytes()).hexdigest(), hashlib.sha256(decoded.tobytes()).hexdigest()


def kernel_case(row):
    return f"kernel {row['type']} {row['distribution']} {row['importance']} {row['rows']}x{row['cols']} {row['seed']}"


def run_kernels(version, python, data, pattern, table, save, say):
    numbers = type_numbers(version.source)
    todo = [r for r in rows(data / "golden/kernels.tsv") if kernel_case(r) not in table and pattern.search(kernel_case(r))]
    for row in [r for r in todo if r["type"] not in numbers]:
        table[kernel_case(row)] = (1, "-")
    todo = [r for r in todo if r["type"] in numbers]
    while todo:
        todo = kernels_until_it_aborts(version, python, data, numbers, todo, table, save)
        if todo:
            say(f"{version.name}: aborts in {kernel_case(todo[0])}")
            table[kernel_case(todo.pop(0))] = (-1, "-")
    save()


def kernels_until_it_aborts(version, python, data, numbers, todo, table, save):
    """Adds results to the table; returns the rows that are left: none, or the one in which the library aborts and the rest."""
    request = {"library": str(version.library()), "synth": str(data / "golden/synth.py"), "numbers": numbers,
               "cases": [[r[k] for k in ("type", "distribution", "importance", "rows", "cols", "seed")] for r in todo]}
    worker = subprocess.Popen([str(python), __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env={"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"})
    worker.stdin.write(json.dumps(request))
    worker.stdin.close()
    count = 0
    for count, (row, line) in enumerate(zip(todo, worker.stdout), 1):
        codes, decoded = line.split()
        table[kernel_case(row)] = (0, codes)
        table[kernel_case(row) + " > decoded"] = (0, decoded)
        if count % 50 == 0:
            save()
    if worker.wait() > 0:  # a signal is negative
        raise versions.Unavailable(f"the library's functions cannot be called by {python}, see above")
    return todo[count:]


# ---- files and plans ----

def synth(python, data, *arguments):
    subprocess.run([str(python), str(data / "golden/synth.py"), *map(str, arguments)], check=True,
                   env={"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"})


def split_arguments(text):
    """Arguments before the type and from the type on, as files.tsv writes them: options first, then `TYPE`."""
    words = text.split()
    return words[:-1], words[-1]


def quantize(version, folder, options, kind, log):
    command = [str(version.program()), *options, "model.gguf", "out.gguf", kind, "2"]
    with open(log, "w", encoding="utf-8") as out:
        try:
            return subprocess.run(command, cwd=folder, stdout=out, stderr=subprocess.STDOUT, timeout=900).returncode
        except subprocess.TimeoutExpired:
            return -1


def file_case(row):
    return f"quantize {row['model']} {row['imatrix']} {row['arguments']}"


def run_files(version, python, data, pattern, table, save, say):
    types = tensor_types(version.source)
    work = version.cache / "files"
    todo = {}
    for row in rows(data / "golden/files.tsv"):
        case = file_case(row)
        if case not in table and case + " > out.gguf" not in table and pattern.search(case):
            todo.setdefault((row["model"], row["imatrix"]), []).append((case, row["arguments"]))
    for count, ((model, imatrix), cases) in enumerate(todo.items(), 1):
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        base, _, first = model.partition("+")
        spec = data / "golden/models" / f"{base}.json"
        synth(python, data, "model", spec, work / "model.gguf")
        if first:  # the model is what the quantizer makes of another
            quantize(version, work, [], first, version.cache / "files.log")
            (work / "out.gguf").rename(work / "model.gguf")
        matrix = []
        if imatrix != "none":
            matrix = ["--imatrix", f"imatrix.{imatrix}"]
            synth(python, data, "imatrix", spec, 70, work / f"imatrix.{imatrix}")
        for case, arguments in cases:
            for old in work.glob("out*"):
                old.unlink()
            options, kind = split_arguments(arguments)
            status = quantize(version, work, [*matrix, *options], kind, version.cache / "files.log")
            outputs = sorted(work.glob("out*"))
            if status or not outputs:
                table[case] = (status or 1, "-")
            for path in outputs if not status else []:
                table[f"{case} > {path.name}"] = (0, hashlib.sha256(path.read_bytes()).hexdigest())
                keep_text(version, f"{case} > {path.name}", gguf_text.describe(path, types))
        save()
    shutil.rmtree(work, ignore_errors=True)


def planned_types(text):
    """{tensor: type} from what `llama-quantize --dry-run` prints."""
    types = {}
    for line in text.splitlines():
        found = re.match(r"\[ *\d+/ *\d+\] +(\S+) +- \[.*?\], +type = +(\S+), +size = +.*?(?:-> +[\d.]+ \S+ \((\S+)\))?$",
                         line.strip())
        if found:
            types[found[1]] = (found[3] or found[2]).upper()
    return types


def plan_digest(types):
    """The digest of {tensor: type}; "-" if there is none."""
    text = "".join(f"{name}\t{kind}\n" for name, kind in types.items())
    return hashlib.sha256(text.encode()).hexdigest() if types else "-"


def run_plans(version, python, data, pattern, table, save, say):
    work = version.cache / "plans"
    for path in sorted((data / "golden/plans").glob("*.tsv")):
        recipes = path.open(encoding="utf-8").readline().rstrip("\n").split("\t")[1:]
        todo = [r for r in recipes if f"plan {path.stem} {r}" not in table and pattern.search(f"plan {path.stem} {r}")]
        if not todo:
            continue
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        spec = data / "golden/full" / f"{path.stem}.json"
        synth(python, data, "model", spec, work / "model.gguf", "--sparse")
        # Only whether there is a matrix matters: one unrelated tensor.
        (work / "one.json").write_text(json.dumps({"tensors": [{"name": "unrelated.weight", "dims": [256, 1]}]}))
        synth(python, data, "imatrix", work / "one.json", 70, work / "imatrix.gguf")
        for recipe in todo:
            kind, _, with_matrix = recipe.partition("+")
            options = ["--dry-run", *(["--imatrix", "imatrix.gguf"] if with_matrix else [])]
            status = quantize(version, work, options, kind, version.cache / "plan.log")
            types = planned_types((version.cache / "plan.log").read_text(errors="replace"))
            table[f"plan {path.stem} {recipe}"] = (status, "-" if status else plan_digest(types))
            if types:
                keep_text(version, f"plan {path.stem} {recipe}", [["tensor", n, t, "", ""] for n, t in types.items()])
        save()
    shutil.rmtree(work, ignore_errors=True)


def main():
    request = json.load(sys.stdin)
    for codes, decoded in kernel_worker(request["library"], request["synth"], request["numbers"], request["cases"]):
        print(codes, decoded, flush=True)


if __name__ == "__main__":
    main()
