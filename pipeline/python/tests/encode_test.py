"""Encodings of small models block by block, in comparison with the formula on whole passes of transformers."""

import os
import re
import signal
import subprocess
import sys
import types
import unittest

import ggufmill
import numpy as np
import safetensors.torch
import torch
import transformers
from calibrate_test import CHUNK, make_checkpoint, write_text
from folder_case import FolderCase
from ggufmill.calibrate import sequential
from ggufmill.calibrate.checkpoint import Checkpoint
from ggufmill.calibrate.encoded import EncodedCheckpoint
from ggufmill.calibrate.mapping import Mapping

TOKENS = 120 * CHUNK


def shrunk(matrix):
    return 0.7 * matrix + 0.3 * np.diag(np.diag(matrix))


class Pass:
    """A complete pass through a model: inputs and results of its linear modules and of its layers, float64."""

    def __init__(self, model, ids):
        self.inputs, self.results = {}, {}
        for name, module in model.named_modules():
            if isinstance(module, torch.nn.Linear) or name.count(".") == 2:
                module.register_forward_hook(lambda module, given, result, name=name: self._keep(name, given, result), with_kwargs=False)
        with torch.no_grad():
            model(ids)

    def _keep(self, name, given, result):
        flat = lambda x: x.reshape(-1, x.shape[-1]).double().numpy()
        self.inputs[name] = flat(given[0])
        self.results[name] = flat(result[0] if isinstance(result, tuple) else result)


class Encoding(FolderCase):
    def setUp(self):
        super().setUp()
        write_text(self.path("text.txt"), TOKENS, 1)

    def command(self, kind, recipe, name, *arguments):
        known = ("--text", self.path("text.txt"), "--tokens", TOKENS, "--chunk", CHUNK, "--pre", "default")
        given = (self.path(kind), recipe, "-o", self.path(name), *known, *arguments)
        return [sys.executable, "-m", "ggufmill.calibrate.encode", *map(str, given)]

    def encoded(self, kind, recipe, name, *arguments, code=0):
        made = subprocess.run(self.command(kind, recipe, name, *arguments), capture_output=True, text=True)
        self.assertEqual(made.returncode, code, made.stderr)
        return made.stderr

    def checkpoint(self, kind, **options):
        os.mkdir(self.path(kind))
        make_checkpoint(self.path(kind), kind, **options)

    def decoded(self, kind, name):
        """Write a checkpoint with the values of a GGUF file, and return the interface to it."""
        checkpoint = Checkpoint(self.path(kind))
        file = EncodedCheckpoint(checkpoint, Mapping(checkpoint, self.path("none.gguf")), self.path(name))
        os.mkdir(self.path("decoded"))
        for each in os.listdir(self.path(kind)):
            if not each.endswith(".safetensors"):
                os.symlink(self.path(f"{kind}/{each}"), self.path(f"decoded/{each}"))
        tensors = {key: file.read(key).contiguous() for key in checkpoint.names()}
        safetensors.torch.save_file(tensors, self.path("decoded/model.safetensors"), {"format": "pt"})
        return checkpoint, file

    def test_levels_are_those_of_the_formula(self):
        self.checkpoint("Llama")
        self.encoded("Llama", "Q4_0", "out.gguf", "--held-out", 0)
        checkpoint, file = self.decoded("Llama", "out.gguf")
        with open(self.path("text.txt"), encoding="utf-8") as text:
            tokenizer = transformers.AutoTokenizer.from_pretrained(self.path("Llama"))
            ids = torch.tensor(tokenizer(text.read(), add_special_tokens=False).input_ids[:TOKENS]).view(-1, CHUNK)
        models = [transformers.AutoModelForCausalLM.from_pretrained(self.path(each), dtype=torch.float32).eval() for each in ("Llama", "decoded")]
        original, encoded = (Pass(model, ids) for model in models)
        for layer in range(2):
            prefix = f"model.layers.{layer}"
            for name, module in (("attn_v", "self_attn.v_proj"), ("attn_q", "self_attn.q_proj"), ("attn_output", "self_attn.o_proj"),
                                 ("ffn_up", "mlp.up_proj"), ("ffn_down", "mlp.down_proj")):  # fmt: skip
                x, y = (each.inputs[f"{prefix}.{module}"] for each in (original, encoded))
                metric = shrunk(y.T @ y) + np.diag(np.full(y.shape[1], 0.01 * (y * y).sum() / y.shape[1]))
                tensor = file.tensors[f"blk.{layer}.{name}.weight"]
                weights = tensor.values(checkpoint, 0, len(tensor.encoded)).double().numpy()
                wanted = weights @ shrunk((x - y).T @ y)
                if name == "attn_output":
                    before = [each.inputs[prefix] for each in (original, encoded)]
                elif name == "ffn_down":
                    before = [each.results[prefix] - each.results[f"{prefix}.mlp.down_proj"] for each in (original, encoded)]
                if name in ("attn_output", "ffn_down"):
                    wanted = wanted + 0.7 * (before[0] - before[1]).T @ y
                values = (weights + np.linalg.solve(metric, wanted.T).T).astype(np.float32)
                found = np.array(tensor.encoded)
                expected = ggufmill.quantize(values, "Q4_0", covariance=metric, start=found)
                other = ggufmill.quantize(weights.astype(np.float32), "Q4_0", covariance=metric, start=found)
                self.assertLess(np.mean(found != expected), 0.01, (layer, name))
                self.assertGreater(np.mean(found != other), 0.02, (layer, name))  # the correction matters

    def divergence(self, kind, name):
        """Return the mean squared error of the logits with the values of a GGUF file."""
        self.decoded(kind, name)
        ids = torch.randint(0, 200, (8, CHUNK), generator=torch.Generator().manual_seed(2))
        with torch.no_grad():
            made = [transformers.AutoModelForCausalLM.from_pretrained(self.path(each), dtype=torch.float32).eval()(ids).logits for each in (kind, "decoded")]
        for each in os.listdir(self.path("decoded")):
            os.unlink(self.path(f"decoded/{each}"))
        os.rmdir(self.path("decoded"))
        return float((made[0] - made[1]).square().mean())

    def test_experts_and_other_models(self):
        for kind, options in {"Qwen3Moe": {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64, "head_dim": 16},
                              "Gemma3": {"head_dim": 16}}.items():  # fmt: skip
            with self.subTest(kind):
                self.checkpoint(kind, **options)
                said = self.encoded(kind, "Q4_0", f"{kind}.gguf")
                self.assertRegex(said, r"14 tensors encoded with the inputs of the encoded model")
                self.assertNotIn("note:", said)
                self.assertLess(self.divergence(kind, f"{kind}.gguf"), 1)

    def test_held_out_tokens_decide_how_much_is_changed(self):
        self.checkpoint("Llama")
        said = self.encoded("Llama", "Q4_0", "out.gguf")
        found = re.search(r"products of held-out inputs miss (\d\.\d\d) of what they missed before \(median of tensors; (\S+) to (\S+)\)", said)
        self.assertIsNotNone(found, said)
        self.assertLess(float(found[1]), 1)
        self.assertLessEqual(float(found[3]), 1)
        self.encoded("Llama", "Q4_0", "same.gguf")
        with open(self.path("out.gguf"), "rb") as a, open(self.path("same.gguf"), "rb") as b:
            self.assertEqual(a.read(), b.read())

    def test_a_correction_that_is_not_finite_is_the_worst_of_a_trial(self):
        matrix = types.SimpleNamespace(weights=torch.full((4, 32), float("inf")), start=np.zeros((4, 34), np.uint8), losses=lambda *_: [1.0, 1.0])
        sums = sequential._Sums(gram=torch.eye(32), paired=False)
        self.assertEqual(sequential.Encoding._trial(None, sums, [matrix], 0.7, torch.device("cpu")), float("inf"))

    def test_what_is_left_as_it_was_is_reported(self):
        self.checkpoint("Qwen3Moe", num_experts=64, num_experts_per_tok=2, moe_intermediate_size=64, head_dim=16)
        said = self.encoded("Qwen3Moe", "Q4_0", "out.gguf")
        self.assertRegex(said, r"note: 6 tensors .*, because experts got fewer than 256 tokens: blk.0.ffn_down_exps.weight, ")
        self.checkpoint("Llama")
        said = self.encoded("Llama", "Q8_0", "out8.gguf", "--dtype", "bfloat16")
        self.assertNotIn("note:", said)
        said = self.encoded("Llama", "F16", "out16.gguf")
        self.assertIn("because F16 has no levels that can be chosen: blk.0.", said)

    def test_a_killed_run_resumes_to_the_same_bytes(self):
        self.checkpoint("Llama")
        self.encoded("Llama", "Q4_0", "whole.gguf", "-q")
        process = subprocess.Popen(self.command("Llama", "Q4_0", "killed.gguf"), stderr=subprocess.PIPE, text=True)
        seen = 0
        for line in process.stderr:
            seen += line.startswith("layer 1 of 2")
            if seen == 2:  # of the calibration, and of the encoding
                process.send_signal(signal.SIGKILL)
                break
        process.communicate()
        self.assertFalse(os.path.exists(self.path("killed.gguf")))
        self.assertIn("resuming after layer 1", self.encoded("Llama", "Q4_0", "killed.gguf"))
        with open(self.path("whole.gguf"), "rb") as a, open(self.path("killed.gguf"), "rb") as b:
            self.assertEqual(a.read(), b.read())
        self.assertEqual([each for each in os.listdir(self.folder) if each.startswith(".")], [])

    def test_errors_come_before_the_work(self):
        self.checkpoint("Llama")
        self.assertIn("error: RECIPE 'Q4_O': unknown recipe 'Q4_O'\n  help: did you mean", self.encoded("Llama", "Q4_O", "out.gguf", code=2))
        said = self.encoded("Llama", "Q4_0", "out.gguf", "--covariance", self.path("none"), code=6)
        self.assertIn("none: error: no such file, which --covariance names", said)
        command = [each for each in self.command("Llama", "Q4_0", "out.gguf") if each not in ("--pre", "default")]
        said = subprocess.run(command, capture_output=True, text=True).stderr
        self.assertIn("  help: use --pre NAME", said)
        self.assertEqual([each for each in os.listdir(self.folder) if each.startswith(".")], [])


if __name__ == "__main__":
    unittest.main()
