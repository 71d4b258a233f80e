"""Descriptions of GGUF files, and the first difference of two. A description is a list of items in the file's order:
["key", name, type, value] and ["tensor", name, type, shape, SHA-256]. The value of an array is its count and the SHA-256
of its encoded elements, with its first elements. Offsets are not part of it."""
import hashlib
import json
import lzma
import math
import mmap
import re
import struct

SCALARS = {0: ("u8", "B"), 1: ("i8", "b"), 2: ("u16", "H"), 3: ("i16", "h"), 4: ("u32", "I"), 5: ("i32", "i"),
           6: ("f32", "f"), 7: ("bool", "?"), 10: ("u64", "Q"), 11: ("i64", "q"), 12: ("f64", "d")}


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0
        self.order = "<" if data[4] else ">"

    def number(self, form):
        value = struct.unpack_from(self.order + form, self.data, self.at)[0]
        self.at += struct.calcsize(self.order + form)
        return value

    def text(self):
        count = self.number("Q")
        self.at += count
        return bytes(self.data[self.at - count:self.at])


def shown(raw):
    text = raw.decode("utf-8", "backslashreplace")
    return text if len(raw) <= 200 else {"bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest(), "start": text[:80]}


def value(reader, kind):
    if kind == 8:
        return "str", shown(reader.text())
    if kind != 9:
        return SCALARS[kind][0], reader.number(SCALARS[kind][1])
    item, count = reader.number("I"), reader.number("Q")
    begin, first = reader.at, []
    for index in range(count):
        element = value(reader, item)[1]
        if index < 4:
            first.append(element)
    digest = hashlib.sha256(reader.data[begin:reader.at]).hexdigest()
    return f"arr[{'str' if item == 8 else SCALARS[item][0] if item in SCALARS else item}]", {
        "count": count, "sha256": digest, "first": first}


def describe(path, types):
    """The description of a file; types: {number: (name, elements of a block, its bytes)} of tensor types."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        reader = Reader(data)
        reader.at = 8
        tensors, keys = reader.number("Q"), reader.number("Q")
        items, alignment, infos = [], 32, []
        for _ in range(keys):
            name = reader.text().decode()
            kind, content = value(reader, reader.number("I"))
            alignment = content if name == "general.alignment" else alignment
            items.append(["key", name, kind, content])
        for _ in range(tensors):
            name = reader.text().decode()
            shape = [reader.number("Q") for _ in range(reader.number("I"))]
            infos.append((name, reader.number("I"), shape, reader.number("Q")))
        start = (reader.at + alignment - 1) // alignment * alignment
        ends = sorted({info[3] for info in infos}) + [len(data) - start]
        for name, kind, shape, offset in infos:
            text, block, size = types.get(kind, (str(kind), 0, 0))
            if block:
                end = offset + math.prod(shape) // block * size
            else:  # up to the next tensor
                end = next(e for e in ends if e > offset or e == ends[-1])
            digest = hashlib.sha256(data[start + offset:start + end]).hexdigest()
            items.append(["tensor", name, text, shape, digest])
    return items


def from_record(path, digest):
    """The description in a recorded file (expected/*.json.xz of the golden data); None if it is of another output than that
    with the digest."""
    with lzma.open(path, "rt", encoding="utf-8") as file:
        record = json.load(file)
    if record["sha256"] != digest:
        return None
    items = []
    for name, kind, content in record["kv"]:
        if isinstance(content, dict) and "count" in content:
            content = {"count": content["count"], "sha256": content["sha256"],
                       "first": content.get("items", content.get("first"))[:4]}
        items.append(["key", name, kind, content])
    for tensor in record["tensors"]:
        items.append(["tensor", tensor[0], tensor[1], tensor[2], tensor[5]])
    return items


def brief(item):
    content = item[3]
    if item[0] == "tensor":
        return f"{item[2]} {content} {item[4][:8]}"
    if isinstance(content, dict):
        content = f"{content['count']} x {content['first']}" if "count" in content else content["start"]
    return f"{item[2]} {content}"[:90]


def differing(old, new):
    """["key NAME: new", "tensor NAME: changed", ...], layer numbers as N: all keys and tensors that differ."""
    a, b = ({(i[0], i[1]): i for i in items} for items in (old, new))
    found = [(k, "new" if k not in a else "gone" if k not in b else "changed") for k in {**a, **b} if a.get(k) != b.get(k)]
    return list(dict.fromkeys(re.sub(r"\.\d+\.", ".N.", f"{kind} {name}: {how}") for (kind, name), how in found))


def first_difference(old, new):
    """One line: the first key or tensor that differs, and how many differ; "" if none."""
    a, b = ({(i[0], i[1]): i for i in items} for items in (old, new))
    differing = [k for k in {**a, **b} if a.get(k) != b.get(k)]
    if not differing:
        order = [(i[0], i[1]) for i in old], [(i[0], i[1]) for i in new]
        place = next((x for x, y in zip(*order) if x != y), None)
        return f"order, from {place[0]} {place[1]}" if place else ""
    order = {k: n for n, k in enumerate([(i[0], i[1]) for i in new])}
    first = min(differing, key=lambda k: (order.get(k, len(order)), k))
    rest = f" (and {len(differing) - 1} more)" if len(differing) > 1 else ""
    if first not in a:
        what = f"new: {brief(b[first])}"
    elif first not in b:
        what = f"gone: {brief(a[first])}"
    else:
        what = f"{brief(a[first])} -> {brief(b[first])}"
    return f"{first[0]} {first[1]}: {what}{rest}"
