"""Tests of ./dev follow without a source of llama.cpp: tables, differences, descriptions, nearest maps, the pin."""
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import gguf_text  # noqa: E402
import pin  # noqa: E402
import quantizer  # noqa: E402
import static  # noqa: E402
import table  # noqa: E402
import versions  # noqa: E402

CONSTANTS = """
from enum import IntEnum, auto
class MODEL_ARCH(IntEnum):
    LLAMA = auto()
    {new}
class MODEL_TENSOR(IntEnum):
    Q = auto()
    K = auto()
    SINKS = auto()
TENSOR_NAMES = {{MODEL_TENSOR.Q: "blk.{{bid}}.attn_q", MODEL_TENSOR.K: "blk.{{bid}}.attn_k"}}
MODEL_ARCH_NAMES = {{MODEL_ARCH.LLAMA: "llama"{name}}}
MODEL_TENSORS = {{MODEL_ARCH.LLAMA: [MODEL_TENSOR.Q, MODEL_TENSOR.K]{tensors}}}
class Keys:
    class General:
        NAME = "general.name"
        {key}
class GGMLQuantizationType(IntEnum):
    F32 = 0
GGML_QUANT_SIZES = {{GGMLQuantizationType.F32: (1, 4)}}
"""
OLD_CLASSES = """
@ModelBase.register("LlamaForCausalLM")
class LlamaModel(TextModel):
    model_arch = gguf.MODEL_ARCH.LLAMA
"""
NEW_CLASSES = OLD_CLASSES + """
@ModelBase.register("MapleForCausalLM", "OldMaple")
@ModelBase.example("x")
class MapleModel(LlamaModel):
    model_arch = gguf.MODEL_ARCH.MAPLE
@ModelBase.register("MapleForCausalLM")
class MapleVision(MmprojModel):
    pass
"""


def source(folder, new):
    """A tree with what static.py reads of llama.cpp."""
    (folder / "gguf-py/gguf").mkdir(parents=True)
    (folder / "conversion").mkdir()
    values = {"new": "MAPLE = auto()", "name": ', MODEL_ARCH.MAPLE: "maple"', "key": 'EXTRA = "general.extra"',
              "tensors": ", MODEL_ARCH.MAPLE: [MODEL_TENSOR.Q, MODEL_TENSOR.SINKS]"} if new else dict.fromkeys(
                  ("new", "name", "key", "tensors"), "")
    (folder / "gguf-py/gguf/constants.py").write_text(CONSTANTS.format(**values))
    (folder / "conversion/llama.py").write_text(NEW_CLASSES if new else OLD_CLASSES)
    hash_line = 'if chkhsh == "' + "ab" * 32 + '":\n    # ref: x\n    res = "maple"\n'
    (folder / "conversion/base.py").write_text(hash_line if new else "")
    (folder / "convert_hf_to_gguf.py").write_text('parser.add_argument("--fuse-qkv")\n' if new else "")
    return folder


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def gguf(path, keys, data):
    """A GGUF file with u32 keys, an array, and one tensor of 4 float32."""
    body = b"".join(text(k) + struct.pack("<II", 4, v) for k, v in keys)
    body += text("list") + struct.pack("<IIQ", 9, 5, 2) + struct.pack("<ii", 1, -1)
    body += text("weight") + struct.pack("<IQIQ", 1, 4, 0, 0)
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, len(keys) + 1) + body
    path.write_bytes(head + b"\0" * (-len(head) % 32) + struct.pack("<4f", *data))
    return gguf_text.describe(path, {0: ("F32", 1, 4)})


class Tables(unittest.TestCase):
    def test_a_written_table_is_read_back(self):
        with tempfile.TemporaryDirectory() as folder:
            rows = {"plan m Q4_0": (0, "ab"), "convert hf/x auto": (1, "-")}
            table.write(f"{folder}/t.tsv", rows, "comment")
            self.assertEqual(table.read(f"{folder}/t.tsv"), rows)

    def test_the_bytes_of_an_output_differ(self):
        self.assertEqual(table.differences({"a > f": (0, "1"), "b > f": (0, "1")}, {"a > f": (0, "2"), "b > f": (0, "1")}),
                         [("a > f", "bytes")])

    def test_a_refusal_of_what_was_converted(self):
        self.assertEqual(table.differences({"a > f": (0, "1")}, {"a": (1, "-")}), [("a", "refused now: exit 1")])

    def test_a_conversion_of_what_was_refused(self):
        self.assertEqual(table.differences({"a": (1, "-")}, {"a > f": (0, "1")}), [("a", "converted now")])

    def test_another_name_of_the_output(self):
        self.assertEqual([what for _, what in table.differences({"a > f": (0, "1")}, {"a > g": (0, "1")})],
                         ["another output: only in OLD", "another output: only in NEW"])

    def test_a_case_that_one_table_does_not_have(self):
        self.assertEqual(table.differences({"a > f": (0, "1")}, {}), [("a > f", "only in OLD")])

    def test_two_ways_to_refuse(self):
        self.assertEqual(table.differences({"a": (1, "-")}, {"a": (-6, "-")}), [("a", "exit 1 -> -6")])


class Descriptions(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = Path(self.folder.name) / "f.gguf"

    def difference(self, one, other, data=((1, 2, 3, 4), (1, 2, 3, 4))):
        return gguf_text.first_difference(gguf(self.path, one, data[0]), gguf(self.path, other, data[1]))

    def test_files_that_agree(self):
        self.assertEqual(self.difference([("a", 1)], [("a", 1)]), "")

    def test_the_first_key_that_differs(self):
        self.assertEqual(self.difference([("a", 1), ("b", 1)], [("a", 2), ("b", 2)]), "key a: u32 1 -> u32 2 (and 1 more)")

    def test_a_new_key(self):
        self.assertEqual(self.difference([("a", 1)], [("a", 1), ("b", 2)]), "key b: new: u32 2")

    def test_a_key_that_is_gone(self):
        self.assertEqual(self.difference([("a", 1), ("b", 2)], [("a", 1)]), "key b: gone: u32 2")

    def test_all_that_differs(self):
        one, other = ([["key", "a", "u32", n], ["tensor", f"blk.{n}.q", "F32", [1], "x"]] for n in (1, 2))
        self.assertEqual(gguf_text.differing(one, other), ["key a: changed", "tensor blk.N.q: gone", "tensor blk.N.q: new"])

    def test_another_order(self):
        self.assertEqual(self.difference([("a", 1), ("b", 2)], [("b", 2), ("a", 1)]), "order, from key a")

    def test_the_data_of_a_tensor(self):
        self.assertRegex(self.difference([], [], ((1, 2, 3, 4), (1, 2, 3, 5))), r"^tensor weight: F32 \[4\] \w{8} -> F32 \[4\] \w{8}$")

    def test_padding_is_no_data(self):
        one = gguf(self.path, [], (1, 2, 3, 4))
        with self.path.open("ab") as file:
            file.write(b"\0" * 16)
        other = gguf_text.describe(self.path, {0: ("F32", 1, 4)})
        self.assertEqual(one, other)

    def test_an_array(self):
        items = gguf(self.path, [], (1, 2, 3, 4))
        self.assertEqual((items[0][2], items[0][3]["count"], items[0][3]["first"]), ("arr[i32]", 2, [1, -1]))


class Static(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.old, self.new = source(self.root / "old", False), source(self.root / "new", True)
        (self.root / "maps").mkdir()
        (self.root / "maps/llama.yaml").write_text("name: llama\nserves: [LlamaForCausalLM,\n  Other]\n")

    def test_differences(self):
        found = static.differences(self.old, self.new)
        for each in (("architecture", "+", "maple"), ("key", "+", "general.extra"), ("tensor", "+", "maple: SINKS"),
                     ("class", "+", "OldMaple (MapleModel in llama.py)"), ("pre-tokenizer", "+", "ab" * 32 + " maple"),
                     ("option of convert_hf_to_gguf.py", "+", "--fuse-qkv")):
            with self.subTest(each):
                self.assertIn(each, found)

    def test_equal_versions_have_no_differences(self):
        self.assertEqual(static.differences(self.old, self.old), [])

    def test_the_map_of_the_class_inherited_from(self):
        found = {(c["class"], c["what"]): c for c in static.new_classes(self.old, self.new, self.root / "maps")}
        self.assertEqual(found["MapleForCausalLM", "maple"]["inherits"], ["llama"])

    def test_a_projector_has_no_map_of_a_text_model(self):
        found = {(c["class"], c["what"]): c for c in static.new_classes(self.old, self.new, self.root / "maps")}
        self.assertEqual(found["MapleForCausalLM", "projector"]["inherits"], [])

    def test_the_architecture_with_the_most_tensors_in_common(self):
        self.assertEqual(static.nearest({"q", "k", "s"}, {"a": {"q"}, "b": {"q", "k"}}), (["b"], 2 / 3))

    def test_architectures_that_are_equally_near(self):
        self.assertEqual(static.nearest({"q"}, {"b": {"q"}, "a": {"q"}}), (["a", "b"], 1))

    def test_files_to_read(self):
        self.assertEqual(static.changed_files(self.old, self.new)[-1], (1, "convert_hf_to_gguf.py"))


class Quantizer(unittest.TestCase):
    def test_types_that_a_dry_run_prints(self):
        printed = ("[   1/   3] token_embd.weight - [   64,    32,     1,     1], type =    f16, size =   0.50 MiB -> "
                   "0.20 MiB (q4_K)\n[   2/   3] output_norm.weight - [   64,     1,     1,     1], type =    f32, size =    "
                   "0.003 MiB\nother\n")
        self.assertEqual(quantizer.planned_types(printed), {"token_embd.weight": "Q4_K", "output_norm.weight": "F32"})


class Pin(unittest.TestCase):
    def test_the_package_holds_the_version(self):
        read = pin.read()
        self.assertEqual(versions.build_number(read["package"].partition("==")[2]), read["version"])

    def test_the_table_is_that_of_the_version(self):
        path = Path(__file__).with_name("table.tsv")
        self.assertIn(pin.read()["version"], path.read_text(encoding="utf-8").partition("\n")[0])
        self.assertGreater(len(table.read(path)), 1000)

    def test_no_other_file_names_another_version(self):
        """Builds of llama.cpp (b and five digits), its versions by date, and of transformers, in any file but those of
        history. To name the version, refer to configs/upstream.yaml or to `ggufmill --version --verbose`."""
        read = pin.read()
        builds = re.compile(r"(?<![\w.#/])b1\d{4}(?![\w-])")
        dates = re.compile(r"(?<!ik_)llama\.cpp[` ]*(?:of|\(?master of) (?:20\d\d-|January|February|March|April|May|June|July|August|"
                           r"September|October|November|December)")
        library = re.compile(r"transformers[` ]*(?:==|[, ]) ?(4\.\d+(?:\.\d+)?)")
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=pin.ROOT, capture_output=True, text=True)
        if listed.returncode:
            self.skipTest("no git checkout")
        for name in listed.stdout.splitlines():
            if name in ("CHANGELOG.md", "tests/upstream/follow_test.py") or not name.endswith(
                    (".md", ".tsv", ".yaml", ".cpp", ".h", ".py", ".txt", "dev", "NOTICE")) or os.path.islink(pin.ROOT / name):
                continue
            content = (pin.ROOT / name).read_text(encoding="utf-8", errors="replace")
            found = [m[0] for m in builds.finditer(content) if m[0] != read["version"]] + dates.findall(content)
            found += [m[0] for m in library.finditer(content) if not read["libraries"]["transformers"].startswith(m[1])]
            if name.endswith("unserved_classes.tsv"):  # names versions to come
                found = []
            self.assertEqual(found, [], f"{name}: the pin is {read['version']}")


if __name__ == "__main__":
    unittest.main()
