"""Results that golden data holds: kernels.tsv, files.tsv, and plans of DIR/golden, expected.tsv and refused.tsv of DIR/hf*.
They stand in for a version that is not run here, and give the descriptions of its outputs."""
import csv
import hashlib
import json
import re

import converter
import gguf_text
import quantizer


def rows(path):
    if not path.exists():
        return []
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def quantized(data):
    """{case: (exit status, SHA-256)}; a refusal has the status 1, since the tables do not tell which."""
    table = {}
    for row in rows(data / "golden/kernels.tsv"):
        table[quantizer.kernel_case(row)] = (0, row["quantized_sha256"])
        table[quantizer.kernel_case(row) + " > decoded"] = (0, row["dequantized_sha256"])
    for row in rows(data / "golden/files.tsv"):
        case = quantizer.file_case(row)
        if row["result"] == "ok":
            table[case + " > out.gguf"] = (0, row["output_sha256"])
        else:
            table[case] = (1, "-")
    for path in sorted((data / "golden/plans").glob("*.tsv")):
        types = rows(path)
        for recipe in [name for name in types[0] if name != "tensor"]:
            table[f"plan {path.stem} {recipe}"] = (0, quantizer.plan_digest({r["tensor"]: r[recipe] for r in types}))
    return table


def converted(data):
    """{case: (exit status, SHA-256)}, {case: file with the description}"""
    table, texts = {}, {}
    sets, runs = {}, {}
    for name, path in converter.specs(data, re.compile("")):
        sets[path.stem] = name
        runs[path.stem] = json.loads(path.read_text(encoding="utf-8")).get("runs", [])
    for folder in sorted(data.glob("hf*")):
        per_run = {}
        for row in rows(folder / "expected.tsv"):
            per_run.setdefault((row["case"], row["run"]), []).append(row)
        for (case, run), files in per_run.items():
            if case not in sets:
                continue
            for number, row in enumerate(files, 1):
                name = converter.case_name(sets[case], case, row.get("tool", "convert"), run) + " > " + row["file"]
                table[name] = (0, row["sha256"])
                tail = f".{number}" if len(files) > 1 else ""
                text = folder / "expected" / f"{case}.{run}{tail}.json.xz"
                texts[name] = text if text.exists() else texts.get(name, text)
        for row in rows(folder / "refused.tsv"):
            for run in runs.get(row["case"], []):
                tool = run.get("tool", "convert")
                wanted = row.get("tool", tool), row.get("outtype"), row.get("args")
                if wanted == (tool, run["outtype"], " ".join(run.get("args", []))) and row["exit"] != "0":
                    table[converter.case_name(sets[row["case"]], row["case"], tool, run["label"])] = (int(row["exit"]), "-")
    return table, texts


def results(data):
    """All of them: {case: (exit status, SHA-256)}, {case: file with the description of the output}"""
    table, texts = converted(data)
    return {**quantized(data), **table}, texts
