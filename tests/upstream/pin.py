"""The pinned version of llama.cpp: configs/upstream.yaml, which has one `key: value` per line."""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "configs/upstream.yaml"


def read(path=FILE):
    """{"version", "date", "package", "libraries": {name: version}}"""
    pin = {"libraries": {}}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        found = re.fullmatch(r"( *)([a-z-]+): (.+)", line)
        if found:
            (pin["libraries"] if found[1] else pin)[found[2]] = found[3]
    return pin
