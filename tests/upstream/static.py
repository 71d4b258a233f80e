"""Static differences of two versions of llama.cpp, and the maps nearest to new classes. Reads sources only: nothing is
built or imported but gguf-py's constants, which need the standard library alone."""
import ast
import difflib
import re
from pathlib import Path

import pin
from quantizer import constants

# Files that decide the bytes of outputs, in the order in which to read them.
FILES = ("src/llama-quant.cpp", "ggml/src/ggml-quants.c", "ggml/src/gguf.cpp", "tools/quantize/quantize.cpp",
         "tools/gguf-split/gguf-split.cpp", "tools/imatrix/imatrix.cpp", "common/imatrix-loader.cpp", "gguf-py/gguf",
         "gguf-py/gguf/scripts", "conversion", "convert_hf_to_gguf.py", "convert_lora_to_gguf.py", "src/llama-model-loader.cpp",
         "src/llama-vocab.cpp", "models/templates")
OPTIONS = ("convert_hf_to_gguf.py", "convert_lora_to_gguf.py", "tools/quantize/quantize.cpp",
           "tools/gguf-split/gguf-split.cpp", "tools/imatrix/imatrix.cpp")
PINS = ("requirements/requirements-convert_legacy_llama.txt", "requirements/requirements-convert_hf_to_gguf.txt",
        "gguf-py/pyproject.toml")
ENUMS = ("LlamaFileType", "GGMLQuantizationType", "VisionProjectorType", "PoolingType", "TokenType", "RopeScalingType",
         "GGUFValueType", "ExpertGatingFuncType", "DecisionType")


def text(root, name):
    path = Path(root) / name
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def texts_in(group):
    """The strings of a class of constants, and of the classes in it."""
    found = []
    for name, value in vars(group).items():
        if isinstance(value, type):
            found += texts_in(value)
        elif isinstance(value, str) and not name.startswith("__"):
            found.append(value)
    return found


def enum(module, name):
    group = getattr(module, name, None)
    if group is None:
        return []
    members = {m.name: m.value for m in group} if hasattr(group, "__members__") else vars(group)
    return [f"{name}.{key} = {value}" for key, value in members.items() if not key.startswith("__")]


def tensors(module):
    """{architecture: its kinds of tensors}"""
    return {module.MODEL_ARCH_NAMES[arch]: {module.TENSOR_NAMES.get(t, getattr(t, "name", str(t))) for t in kinds}
            for arch, kinds in module.MODEL_TENSORS.items()}


class Class:
    """A class of the converter. serves: names in config.json; arch: its MODEL_ARCH member, or None."""

    def __init__(self, name, file, bases, serves, arch):
        self.name, self.file, self.bases, self.serves, self.arch = name, file, bases, serves, arch


def classes(root):
    """{Python class: Class}"""
    found = {}
    paths = sorted(Path(root).glob("conversion/*.py")) + [Path(root) / "convert_hf_to_gguf.py"]
    for path in paths:
        if not path.is_file():
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ClassDef):
                continue
            serves = [a.value for d in node.decorator_list if isinstance(d, ast.Call) and ast.unparse(d.func).endswith(".register")
                      for a in d.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            arch = next((ast.unparse(s.value).rpartition(".")[2] for s in node.body if isinstance(s, ast.Assign) and
                         any(isinstance(t, ast.Name) and t.id == "model_arch" for t in s.targets)), None)
            found[node.name] = Class(node.name, path.name, [ast.unparse(b).rpartition(".")[2] for b in node.bases], serves, arch)
    return found


def hashes(root):
    """{check hash: pre-tokenizer}"""
    found = {}
    for path in [*sorted(Path(root).glob("conversion/*.py")), Path(root) / "convert_hf_to_gguf.py"]:
        found.update(re.findall(r'chkhsh == "([0-9a-f]{64})":\s*(?:#[^\n]*\s*)*res = "([^"]+)"', text("", path)))
    return found


def differences(old, new):
    """[(kind, "+" or "-", what)]"""
    a, b = constants(old), constants(new)
    pairs = [("architecture", a.MODEL_ARCH_NAMES.values(), b.MODEL_ARCH_NAMES.values()),
             ("key", texts_in(a.Keys), texts_in(b.Keys))]
    ta, tb = tensors(a), tensors(b)
    pairs.append(("tensor", [f"{arch}: {t}" for arch in ta for t in ta[arch]], [f"{arch}: {t}" for arch in tb for t in tb[arch]]))
    pairs.append(("type size", *([f"{k.name}: {v[0]} elements in {v[1]} bytes" for k, v in m.GGML_QUANT_SIZES.items()] for m in (a, b))))
    pairs += [("constant", enum(a, name), enum(b, name)) for name in ENUMS]
    pairs.append(("class", *([f"{s} ({c.name} in {c.file})" for c in classes(r).values() for s in c.serves] for r in (old, new))))
    pairs.append(("pre-tokenizer", *([f"{h} {n}" for h, n in hashes(r).items()] for r in (old, new))))
    for file in OPTIONS:
        pairs.append((f"option of {Path(file).name}", *(re.findall(r'"(--[a-z][a-z0-9-]+)"', text(r, file)) for r in (old, new))))
    pairs += [("pin", *([f"{file}: {line.strip()}" for line in text(r, file).splitlines() if re.search(r"[=<>~]", line)]
                        for r in (old, new))) for file in PINS]
    found = []
    for kind, one, other in pairs:
        one, other = set(one), set(other)
        found += [(kind, "+", x) for x in sorted(other - one)] + [(kind, "-", x) for x in sorted(one - other)]
    return found


def summarized(found, most=6):
    """The differences as lines; many tensors of one architecture become one line."""
    lines, groups = [], {}
    for kind, sign, what in found:
        if kind == "tensor":
            arch, _, tensor = what.partition(": ")
            groups.setdefault((kind, sign, arch), []).append(tensor)
        else:
            lines.append(f"{sign} {kind} {what}")
    by_tensors = {}
    for (kind, sign, arch), names in groups.items():
        by_tensors.setdefault((sign, tuple(names)), []).append(arch)
    for (sign, names), archs in by_tensors.items():
        shown = ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
        arch = archs[0] if len(archs) == 1 else f"{len(archs)} architectures ({', '.join(archs[:4])}, ...)" if len(archs) > 4 else ", ".join(archs)
        lines.append(f"{sign} tensor of {arch}: {shown}")
    return lines


def changed_files(old, new):
    """[(changed lines, file)] of FILES, without empty ones; a folder counts the files in it."""
    found = []
    for name in FILES:
        one, other = Path(old) / name, Path(new) / name
        if one.is_file() or other.is_file():
            names = [name]
        else:
            names = sorted({f"{name}/{p.name}" for root in (one, other) for p in (root.glob("*") if root.is_dir() else [])
                            if p.is_file() and p.suffix in (".py", ".jinja", ".cpp")})
        for each in names:
            a, b = text(old, each).splitlines(), text(new, each).splitlines()
            count = sum(line[:1] in "+-" and line[:3] not in ("+++", "---") for line in difflib.unified_diff(a, b, n=0)) if a != b else 0
            if count:
                found.append((count, each))
    return found


# ---- new classes and the maps nearest to them ----

def maps(folder):
    """{class in config.json: [maps]}, [map] of configs/architectures, without a YAML library: `serves` is a list in brackets."""
    served, names = {}, []
    for path in sorted(Path(folder).glob("*.yaml")):
        listed = re.search(r"^serves(?:_whole)?: \[(.*?)\]", path.read_text(encoding="utf-8"), re.M | re.S)
        for name in re.findall(r"\w+", listed[1]) if listed else []:
            served.setdefault(name, []).append(path.stem)
        names.append(path.stem)
    return served, names


def ancestors(name, found):
    """The classes that a class inherits from, nearest first."""
    queue, seen = list(found[name].bases), []
    while queue:
        base = queue.pop(0)
        if base in found and base not in seen:
            seen.append(base)
            queue += found[base].bases
    return seen


def is_projector(name, found):
    return any(base == "MmprojModel" for base in [name, *ancestors(name, found), *found[name].bases])


def nearest(kind, known):
    """([architecture], share) of the known ones with the most tensors in common, by the size of the intersection over that of
    the union; at most three."""
    scores = {name: len(kind & other) / len(kind | other) for name, other in known.items() if kind | other}
    share = max(scores.values(), default=0)
    return sorted(name for name, score in scores.items() if score == share)[:3], share


def new_classes(old, new, maps_folder):
    """[{class in config.json, file, what: "projector" or architecture, maps that serve it, maps by inheritance, nearest
    architectures, share}] of classes that NEW serves and OLD does not."""
    before, after = classes(old), classes(new)
    served, names = maps(maps_folder)
    constants_new = constants(new)
    known = {arch: kinds for arch, kinds in tensors(constants(old)).items() if arch in names}
    arch_of = {member.name: constants_new.MODEL_ARCH_NAMES[member] for member in constants_new.MODEL_ARCH}
    kinds = tensors(constants_new)
    seen = {(s, is_projector(c.name, before)) for c in before.values() for s in c.serves}
    found = []
    for each in after.values():
        projector = is_projector(each.name, after)
        for name in each.serves:
            if (name, projector) in seen:
                continue
            line = [each.name, *ancestors(each.name, after)]
            arch = next((arch_of.get(after[c].arch) for c in line if after[c].arch), None)
            inherited = []
            for base in line:
                inherited += [m for s in after[base].serves for m in served.get(s, []) if m.startswith("clip") == projector]
            closest, share = nearest(kinds.get(arch, set()), known) if arch and not projector else ([], 0)
            found.append({"class": name, "file": each.file, "what": "projector" if projector else arch,
                          "has_map": [m for m in served.get(name, []) if m.startswith("clip") == projector],
                          "inherits": list(dict.fromkeys(inherited))[:2], "base": line[1] if len(line) > 1 else "",
                          "nearest": closest, "share": share})
    return found


def default_maps():
    return pin.ROOT / "configs/architectures"
