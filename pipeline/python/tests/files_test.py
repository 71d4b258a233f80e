"""Files beside jobs: measurements, curves, verification, importance matrices, metadata; progress bars and errors."""

import importlib.util
import json
import os
import pickle
import subprocess
import sys
import textwrap
import types
import unittest
import unittest.mock

import ggufmill
import numpy as np
from folder_case import ModelCase

PROGRAM = os.environ["GGUFMILL"]
MAKE_GGUF = os.environ["GGUFMILL_MAKE_GGUF"]


class Folder(ModelCase):
    def target(self, bits=8):
        out = {"gguf": self.folder / "out.gguf", "quantize": {"target": {"bits": bits}, "candidates": ["Q4_0", "Q8_0"]}}
        return {"version": 1, "source": {"gguf": self.model}, "outputs": [out]}


class Measurements(Folder):
    def test_a_measurement_is_that_of_the_program(self):
        file, page = self.folder / "m.json", self.folder / "m.html"
        seen = []
        measured = ggufmill.measure(self.target(), output=file, html=page, progress=seen.append)
        self.assertEqual(json.loads(file.read_text()), measured)
        self.assertTrue(measured["tensors"])
        self.assertEqual([each["type"] for each in measured["tensors"][0]["types"]], ["Q4_0", "Q8_0"])
        self.assertEqual(seen[-1].bytes_read, seen[-1].bytes_to_read)
        self.assertIn("<html", page.read_text())
        job = self.folder / "job.yaml"
        job.write_text(
            "version: 1\nsource: {gguf: model.gguf}\noutputs:\n"
            "  - {gguf: out.gguf, quantize: {target: {bits: 8}, candidates: [Q4_0, Q8_0]}}\n"
        )
        subprocess.run([PROGRAM, "measure", "--quiet", "job.yaml", "-o", "told.json"], cwd=self.folder, check=True)
        told = json.loads((self.folder / "told.json").read_text())
        self.assertEqual(told["tensors"], measured["tensors"])
        self.assertEqual(sorted(os.listdir(self.folder)), ["job.yaml", "m.html", "m.json", "model.gguf", "told.json"])

    def test_what_the_program_has_measured_is_not_measured_again(self):
        seen = []
        with unittest.mock.patch.dict(os.environ, GGUFMILL_CACHE=str(self.folder / "cache")):
            self.assertIn("not measured", str(ggufmill.plan(self.target()).problems[0]))
            job = self.folder / "job.yaml"
            job.write_text(json.dumps(self.target(), default=os.fspath))
            subprocess.run([PROGRAM, "measure", "--quiet", "job.yaml"], cwd=self.folder, check=True)
            self.assertEqual(ggufmill.plan(self.target()).problems, [])
            ggufmill.measure(self.target(), progress=seen.append)
        self.assertEqual(seen, [])

    def test_files_that_are_there_stay(self):
        file = self.folder / "m.json"
        file.write_text("mine")
        with self.assertRaises(ggufmill.FileError) as caught:
            ggufmill.measure(self.target(), output=file)
        self.assertEqual(caught.exception.help, "pass overwrite=True to replace it")
        self.assertEqual(file.read_text(), "mine")
        ggufmill.measure(self.target(), output=file, overwrite=True)
        self.assertTrue(json.loads(file.read_text()))

    def test_a_curve(self):
        points = ggufmill.curve(self.target(), points=5)
        best = [each for each in points if each["recipe"] is None and not each["target"]]
        self.assertGreaterEqual(len(best), 2)
        self.assertTrue(all(a["bytes"] < b["bytes"] and a["loss"] > b["loss"] for a, b in zip(best, best[1:])))
        self.assertEqual(sum(each["target"] for each in points), 1)
        with self.assertRaises(ggufmill.UsageError) as caught:
            ggufmill.curve(self.target(), output=3)
        self.assertEqual(caught.exception.what, "output 3 does not exist")


class Verified(Folder):
    def test_a_file_and_its_manifest(self):
        found = ggufmill.verify(self.model)
        self.assertEqual((found["files"], found["manifest"]), ([str(self.model)], None))
        self.assertEqual(found["bytes"], self.model.stat().st_size)
        out = self.folder / "out.gguf"
        job = {"version": 1, "source": {"gguf": self.model}, "outputs": [{"gguf": out, "quantize": "Q8_0"}], "manifest": True}
        ggufmill.run(job)
        seen = []
        self.assertEqual(ggufmill.verify(out, progress=seen.append)["manifest"], f"{out}.manifest.json")
        self.assertTrue(seen)
        whole = out.read_bytes()
        out.write_bytes(whole[:-40] + bytes([whole[-40] ^ 1]) + whole[-39:])
        with self.assertRaises(ggufmill.VerificationError):
            ggufmill.verify(out)
        out.write_bytes(b"no model")
        with self.assertRaises(ggufmill.InputError):
            ggufmill.verify(out)


    def test_its_header(self):
        found = ggufmill.verify(self.model, spec=True)
        self.assertEqual(found["file"], str(self.model))
        self.assertTrue({"level", "where", "what", "rule"} <= set(found["findings"][0]))

    def test_errors_name_parameters(self):
        with self.assertRaises(ggufmill.UsageError) as caught:
            ggufmill.verify(self.model, spec=True, threads=4)
        self.assertEqual(caught.exception.what, "threads= and spec= cannot be used together")
        with self.assertRaises(ggufmill.UsageError) as caught:
            ggufmill.verify(self.model, threads=-1)
        self.assertEqual(caught.exception.where, "threads=")
        self.assertIn("threads=-1", caught.exception.detail)
        with self.assertRaises(ggufmill.UsageError) as caught:
            ggufmill.compare(self.model, self.model, memory=1)
        self.assertRegex(caught.exception.help, "memory=[0-9]+ or more")
        with self.assertRaises(TypeError):
            ggufmill.verify(self.model, thread=1)


class Inspected(Folder):
    def test_a_model_and_a_tensor(self):
        self.assertEqual(ggufmill.inspect(self.model)["files"][0]["path"], str(self.model))
        name = ggufmill.inspect(self.model)["tensors"][0]["name"]
        self.assertEqual(len(ggufmill.inspect(self.model, tensor=name, bins=5)["histogram"]), 5)
        values = ggufmill.inspect(self.model, tensor=name, values=True, rows="0:1")["values"]
        with ggufmill.open(self.model) as model:
            np.testing.assert_array_equal(np.array(values, np.float32), model.tensors[name][:1])

    def test_a_page(self):
        page = self.folder / "page.html"
        self.assertEqual(ggufmill.models_page([self.model, self.model], page)["html"], str(page))
        with self.assertRaises(ggufmill.UsageError) as caught:
            ggufmill.models_page([self.model], page)
        self.assertIn("overwrite=True", caught.exception.help)

    def test_types_are_a_list(self):
        lines = subprocess.run([PROGRAM, "types", "--json"], capture_output=True, check=True, text=True).stdout
        self.assertEqual(ggufmill.types(), json.loads(lines))


class BuiltIn(Folder):
    def test_recipes(self):
        self.assertIn("Q4_K_M", [each["name"] for each in ggufmill.recipes()])
        self.assertIn("extends: mix", ggufmill.recipe("Q4_K"))
        self.assertIn("type: F32", ggufmill.recipe_from(self.model))
        self.assertGreater(ggufmill.recipe_diff("Q8_0", "Q4_0", model=self.model)["bytes_a"], 0)
        name = ggufmill.objectives()[0]["name"]
        self.assertIn("formula", ggufmill.objectives(name))
        with self.assertRaises(TypeError):
            ggufmill.recipe_check("Q8_0")

    def test_maps_and_schemas(self):
        self.assertIn("llama", [each["map"] for each in ggufmill.architectures()])
        self.assertIn("serves", ggufmill.architecture("llama"))
        self.assertEqual(json.loads(ggufmill.schema("recipe"))["type"], "object")
        with self.assertRaises(ggufmill.UsageError) as caught:
            ggufmill.schema("operations")
        self.assertEqual(caught.exception.help, "give either reference= or python=")

    def test_names(self):
        self.assertEqual(ggufmill.name("Mine-7B-Chat-v1.0-LoRA.gguf")["finetune"], "Chat")
        self.assertTrue(ggufmill.name_of(self.model, encoding="Q2_K").endswith("-Q2_K.gguf"))
        with self.assertRaises(ggufmill.VerificationError):
            ggufmill.name("mine.gguf")

    def test_kernels(self):
        self.assertEqual(ggufmill.kernels()["isa"], ggufmill.Context().isa)


class Hashed(Folder):
    def test_kinds(self):
        found = ggufmill.hash(self.model, kinds=("sha256", "uuid"), tensors=False)
        self.assertEqual([each["kind"] for each in found["hashes"]], ["sha256", "uuid"])
        lines = subprocess.run([PROGRAM, "hash", self.model], capture_output=True, check=True, text=True).stdout
        self.assertEqual([line.split()[1] for line in lines.splitlines()], [each["hash"] for each in ggufmill.hash(self.model)["hashes"]])

    def test_a_list_that_differs(self):
        known = self.folder / "hashes"
        known.write_text(f"sha1  {'0' * 40}  {self.model}\n")
        with self.assertRaises(ggufmill.VerificationError) as caught:
            ggufmill.hash(self.model, check=known, tensors=False)
        self.assertEqual(caught.exception.result["hashes"][0]["state"], "Mismatch")

    def test_a_path_that_is_not_utf8(self):
        path = os.fsencode(self.folder) + b"/\xff.gguf"
        with open(path, "wb") as file:
            file.write(self.model.read_bytes())
        self.assertTrue(ggufmill.hash(os.fsdecode(path))["hashes"])


class Shards(Folder):
    def test_split_and_merge(self):
        planned = ggufmill.split(self.model, self.folder / "part", split_max_tensors=1, dry_run=True)
        self.assertGreater(len(planned["files"]), 1)
        self.assertFalse(os.path.exists(planned["files"][0]["path"]))
        seen = []
        made = ggufmill.split(self.model, self.folder / "part", split_max_tensors=1, progress=seen.append)
        self.assertEqual(made["files"], planned["files"])
        self.assertIn("outputs", made["report"])
        self.assertTrue(seen)
        with self.assertRaises(ggufmill.UsageError) as caught:
            ggufmill.split(self.model, self.folder / "part", split_max_tensors=1, split_max_size="1G")
        self.assertEqual(caught.exception.what, "split_max_size= and split_max_tensors= cannot be used together")
        out = self.folder / "out.gguf"
        ggufmill.merge(made["files"][0]["path"], out, clean=True, delete_splits=True)
        self.assertFalse(os.path.exists(made["files"][0]["path"]))
        self.assertEqual(*(ggufmill.hash(path, tensors=False)["hashes"][0]["hash"] for path in (self.model, out)))

    def test_the_pipeline_file(self):
        made = ggufmill.split("a.gguf", "b", split_max_size="20G", emit_pipeline=True)
        self.assertIn("shard_size: '20G'", made["pipeline"])
        with self.assertRaises(ggufmill.UsageError) as caught:
            ggufmill.merge(self.model, self.folder / "out.gguf")
        self.assertEqual(caught.exception.help, "to copy it all the same: clean=True")


class Converted(Folder):
    def test_the_pipeline_file(self):
        made = ggufmill.convert(self.folder, outfile="a.gguf", split_max_size="5M", emit_pipeline=True)
        self.assertIn("shard_size: 5000000", made["pipeline"])
        made = ggufmill.convert_lora("adapter", base="base", outfile="a.gguf", emit_pipeline=True)
        self.assertIn("base: 'base'", made["pipeline"])

    def test_errors_name_parameters(self):
        with self.assertRaises(ggufmill.UsageError) as caught:
            ggufmill.convert(self.folder, mtp=True, no_mtp=True)
        self.assertEqual(caught.exception.what, "mtp= and no_mtp= cannot be used together")
        with self.assertRaises(TypeError):
            ggufmill.convert(self.folder, no_lazy=True)


class Recipes(unittest.TestCase):
    def test_they_are_those_of_the_program(self):
        recipes = {each["name"]: each for each in ggufmill.recipes()}
        told = json.loads(subprocess.run([PROGRAM, "recipe", "list", "--json"], capture_output=True, check=True).stdout)
        self.assertEqual(list(recipes), [each["recipe"] for each in told])
        self.assertEqual((recipes["Q4_K_M"]["type"], recipes["Q4_K_M"]["file_type"]), ("Q4_K", 15))


class Importance(Folder):
    def matrix(self):
        """As llama-imatrix writes it: sums of squares, and the tokens of each expert."""
        path = self.folder / "imatrix.gguf"
        meta = ["meta", "general.type", "string", "imatrix", "meta", "imatrix.datasets", "string[]", "wiki"]
        meta += ["meta", "imatrix.chunk_count", "uint32", "7", "meta", "imatrix.chunk_size", "uint32", "512"]
        tensors = ["tensor", "a.weight.in_sum2", "F32", "32x1", "tensor", "a.weight.counts", "F32", "1x1"]
        tensors += ["tensor", "e.weight.in_sum2", "F32", "32x4", "tensor", "e.weight.counts", "F32", "1x4"]
        subprocess.run([MAKE_GGUF, path, *meta, *tensors], check=True)
        return path

    def test_names_and_weights(self):
        path = self.matrix()
        sums = {name: np.abs(np.asarray(tensor)) for name, tensor in ggufmill.open(path).tensors.items()}
        sums["a.weight.counts"][:] = 3
        sums["e.weight.counts"][:, 0] = [1, 2, 3, 4]
        patch(path, sums)
        matrix = ggufmill.imatrix(path)
        self.assertEqual((list(matrix), matrix.chunks, matrix.datasets), (["a.weight", "e.weight"], 7, ["wiki"]))
        self.assertEqual((matrix["a.weight"].shape, matrix["e.weight"].shape), ((32,), (4, 32)))
        np.testing.assert_allclose(
            matrix["e.weight"], sums["e.weight.in_sum2"] / sums["e.weight.counts"].reshape(4, 1), rtol=1e-6
        )
        self.assertNotIn("b.weight", matrix)
        with self.assertRaises(KeyError):
            matrix["b.weight"]
        self.assertEqual(repr(matrix), f"<ggufmill.ImportanceMatrix {str(path)!r}: 2 tensors, 7 chunks>")
        rows = ggufmill.quantize(np.ones((4, 8, 32), np.float32), "Q4_0", matrix["e.weight"])
        self.assertEqual(rows.shape, (4, 8, 18))

    def test_what_is_none(self):
        with self.assertRaises(ggufmill.InputError):
            ggufmill.imatrix(self.model)


def patch(path, values):
    """Writes values of tensors of float32 where they are."""
    with open(path, "r+b") as file, ggufmill.open(path) as model:
        for name, tensor in model.tensors.items():
            _, offset, _ = tensor._extent()
            file.seek(offset)
            file.write(values[name].astype("<f4").tobytes())


class Metadata(Folder):
    def test_edit(self):
        weights = np.array(ggufmill.open(self.model).tensors["blk.0.ffn_down.weight"])
        changes = {"a.text": "7", "a.number": 7, "a.big:uint64": 7, "a.yes": True, "a.half": 0.5, "a.list": [1, -2]}
        edited = ggufmill.edit(self.model, set=changes, rename={"general.name": "general.old_name"})
        self.assertEqual(sorted(set(edited["keys"]) & set(key.split(":")[0] for key in changes)), sorted(key.split(":")[0] for key in changes))
        with ggufmill.open(self.model) as model:
            got = [model.metadata[f"a.{key}"] for key in ("text", "number", "big", "yes", "half")]
            self.assertEqual(got, ["7", 7, 7, True, 0.5])
            self.assertEqual(model.metadata.type("a.big"), "uint64")
            self.assertEqual(list(model.metadata["a.list"]), [1, -2])
        ggufmill.edit(self.model, set=types.MappingProxyType({"a.whole": 1.0, "a.wholes": [1.0, 2.0]}))
        with ggufmill.open(self.model) as model:
            self.assertEqual(model.metadata.type("a.whole"), "float32")
            self.assertEqual(list(model.metadata["a.wholes"]), [1.0, 2.0])
            np.testing.assert_array_equal(model.tensors["blk.0.ffn_down.weight"][:], weights)
        before = self.model.read_bytes()
        self.assertEqual(ggufmill.edit(self.model, remove=["a.text"], dry_run=True)["keys"], ["a.text"])
        self.assertEqual(self.model.read_bytes(), before)
        ggufmill.edit(self.model, remove=["a.text"], output=self.folder / "new.gguf")
        self.assertNotIn("a.text", ggufmill.open(self.folder / "new.gguf").metadata)
        self.assertEqual(self.model.read_bytes(), before)

    def test_tensors(self):
        other = self.folder / "other.gguf"
        subprocess.run([MAKE_GGUF, other, "tensor", "more.weight", "F32", "32x2"], check=True)
        take = {"more.weight": f"{other}:more.weight"}
        edited = ggufmill.edit(self.model, drop=["ffn_down"], rename={"output_norm.weight": "norm.weight"}, take=take)
        self.assertIn("blk.0.ffn_down.weight", edited.tensors)
        names = list(ggufmill.open(self.model).tensors)
        self.assertIn("norm.weight", names)
        self.assertEqual(names[-1], "more.weight")
        self.assertNotIn("blk.0.ffn_down.weight", names)
        with self.assertRaisesRegex(ggufmill.UsageError, "drop=.* matches no tensor"):
            ggufmill.edit(self.model, drop=["ffn_down"])

    def test_templates(self):
        if importlib.util.find_spec("jinja2") is None:
            self.skipTest("no module jinja2")
        ggufmill.edit(self.model, chat_template="{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}")
        chat = self.folder / "chat.json"
        chat.write_text('[{"role": "user", "content": "Hi"}]')
        found = ggufmill.inspect(self.model, template=True, conversation=chat)
        self.assertEqual([each["text"] for each in found["templates"]], ["<user>Hi"])
        self.assertTrue(any("add_generation_prompt adds nothing" in each for each in found["warnings"]))

    def test_what_cannot_be_set(self):
        for changes in ({"a": object()}, {"a:uint8": 300}, {}):
            with self.subTest(changes=changes), self.assertRaises(ggufmill.UsageError):
                ggufmill.edit(self.model, set=changes)
        for value in (float("nan"), [1.0, float("inf")]):
            with self.subTest(value=value), self.assertRaisesRegex(ggufmill.UsageError, "^error: a.b: (nan|infinity) is not a finite number"):
                ggufmill.edit(self.model, set={"a.b": value})


class Models(Folder):
    def test_with(self):
        with ggufmill.open(self.model) as model:
            tensor = model.tensors["blk.0.ffn_down.weight"]
            view = tensor.raw
            first = view[0].copy()
        np.testing.assert_array_equal(view[0], first)
        for use in (lambda: tensor[:1], lambda: tensor.raw, lambda: np.asarray(tensor)):
            with self.assertRaises(ggufmill.UsageError) as caught:
                use()
            self.assertEqual(caught.exception.what, "the model is closed")
        self.assertTrue(model.metadata["general.architecture"])

    def test_reprs(self):
        job = {"version": 1, "source": {"gguf": self.model}, "outputs": [{"gguf": self.folder / "o.gguf", "quantize": "Q8_0"}]}
        seen = []
        plan = ggufmill.plan(job)
        ggufmill.run(plan, progress=seen.append)
        self.assertRegex(repr(plan), r"^<ggufmill.Plan of 'job': 1 output, [\d.]+ \w+ to read, [\d.]+ \w+ to write>$")
        self.assertRegex(repr(seen[-1]), r"^<ggufmill.Progress [\d.]+ \w+ of [\d.]+ \w+ read, .* written, [\d.]+ s>$")
        context = ggufmill.Context()
        self.assertEqual(repr(context), f"<ggufmill.Context with kernels for {context.isa}>")


class Bar:
    """As much of a bar of tqdm as is used."""

    def __init__(self):
        self.total, self.n, self.seen, self.is_closed = None, 0, [], False

    def refresh(self):
        self.seen.append((self.n, self.total))

    def close(self):
        self.is_closed = True


class Progress(Folder):
    def test_a_bar_moves(self):
        bar = Bar()
        job = {"version": 1, "source": {"gguf": self.model}, "outputs": [{"gguf": self.folder / "o.gguf", "quantize": "Q8_0"}]}
        with ggufmill.ProgressBar(bar) as progress:
            ggufmill.run(job, progress=progress)
        read = ggufmill.plan(job).bytes_read
        self.assertEqual(bar.seen[-1], (read, read))
        self.assertTrue(bar.is_closed)


class Errors(Folder):
    def test_kinds(self):
        kinds = {2: "UsageError", 3: "VerificationError", 4: "InputError", 5: "KernelError", 6: "FileError", 75: "TransientError"}
        for code, name in kinds.items():
            kind = getattr(ggufmill, name)
            self.assertTrue(issubclass(kind, ggufmill.Error))
            error = kind("error: x", "f", "x", "", "", code)
            again = pickle.loads(pickle.dumps(error))
            self.assertEqual((type(again), again.exit_code, repr(again)), (kind, code, f"<ggufmill.{name} f: x>"))
        with self.assertRaises(ggufmill.InputError):
            ggufmill.open(self.folder / "none.gguf")
        with self.assertRaises(ValueError):
            ggufmill.quantize(np.ones(32, np.float32), "Q9")
        with self.assertRaises(ggufmill.KernelError):
            ggufmill.Context(isa="x86-64-v9")

    def test_no_thread_can_be_started(self):
        """Limits of processes do not hold for root, so a child becomes nobody."""
        code = textwrap.dedent(
            """
            import os, resource
            import numpy as np
            import ggufmill
            values = np.ones((4, 256), np.float32)
            ggufmill.types()
            if os.getuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
            try:
                ggufmill.quantize(values, "Q4_K")
            except ggufmill.TransientError as error:
                print(error.what.split(":")[0])
                print(error.help)
            """
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)
        self.assertEqual(done.stderr, "")
        self.assertEqual(
            done.stdout, "cannot start a thread\nallow more processes and threads (ulimit -u), or try again later\n"
        )


if __name__ == "__main__":
    unittest.main()
