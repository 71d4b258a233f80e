"""Calibrations of small models, in comparison with sums over a whole pass of transformers."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
import unittest
import unittest.mock

import ggufmill
import numpy as np
import safetensors.torch
import tokenizers
import torch
import transformers
from folder_case import FolderCase
from ggufmill.calibrate import covariance_file
from ggufmill.calibrate import text as calibration_text
from ggufmill.calibrate.products import Sums, sample
from ggufmill.calibrate.work import Work

PROGRAM = os.environ["GGUFMILL"]
CHUNK = 32


def calibrate(*arguments, **options):
    command = [sys.executable, "-m", "ggufmill.calibrate", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, **options)


def calibrate_where(change, *arguments):
    """Calibrate after a change of Python's modules, as a statement."""
    code = f"import os, sys; {change}; from ggufmill.calibrate.command import main; sys.exit(main(sys.argv[1:]))"
    return subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True)


def make_tokenizer(folder):
    """Write a tokenizer with one token for each byte, so that the tokens of a text can be counted."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate([*alphabet, "ÿÿ", "<|end|>"])}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, [("ÿ", "ÿ")]))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|end|>")
    fast.chat_template = "{% for m in messages %}[{{ m.role }}]{{ m.content }}<|end|>{% endfor %}"
    fast.save_pretrained(folder)
    return len(vocabulary)


def make_checkpoint(folder, kind, **options):
    """Write a model with random weights, of two layers."""
    torch.manual_seed(5)
    names = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = (getattr(transformers, f"{kind}TextConfig", None) or getattr(transformers, f"{kind}Config"))(
        **{
            **{**names, "num_key_value_heads": 2, "max_position_embeddings": 64, "vocab_size": make_tokenizer(folder)},
            **{"bos_token_id": None, "eos_token_id": 257, "pad_token_id": None, **options},
        }
    )
    model = getattr(transformers, f"{kind}ForCausalLM")(config).to(torch.float32)
    for name, parameter in model.named_parameters():
        if "norm" in name:  # otherwise many inputs are the same
            torch.nn.init.uniform_(parameter, 0.5, 1.5)
    model.save_pretrained(folder)


def write_text(path, size, seed):
    """Write a text of `size` bytes: words that repeat."""
    generator = random.Random(seed)
    words = ["".join(generator.choices("abcdefghij", k=generator.randint(1, 7))) for _ in range(50)]
    text = ""
    while len(text) < size:
        text += generator.choice(words) + " "
    with open(path, "w", encoding="utf-8") as file:
        file.write(text[:size])


class Covariance:
    """A covariance file, read with the module."""

    def __init__(self, path):
        model = ggufmill.open(path)
        self.tensors, self.metadata = model.tensors, model.metadata
        self.owners = dict(zip(self.metadata["covariance.tensors"], self.metadata["covariance.inputs"]))

    def matrix(self, tensor, expert=0):
        """Return sum(x x^T), float64, and the number of vectors."""
        sums = np.asarray(self.tensors[f"{tensor}.in_sum2"]).reshape(-1, self.tensors[f"{tensor}.in_sum2"].shape[-1])[expert].astype(np.float64)
        correlations = np.asarray(self.tensors[f"{self.owners[tensor]}.in_corr"])
        packed = correlations.reshape(-1, correlations.shape[-1])[expert].astype(np.float64)
        columns, at = len(sums), 0
        made = np.diag(np.ones(columns))
        block = int(self.metadata["covariance.block"]) or columns
        for first in range(0, columns, block):
            for row in range(first, min(first + block, columns)):
                count = min(first + block, columns) - row - 1
                made[row, row + 1 : row + 1 + count] = made[row + 1 : row + 1 + count, row] = packed[at : at + count]
                at += count
        root = np.sqrt(sums)
        return made * root * root[:, None], int(np.asarray(self.tensors[f"{tensor}.counts"]).reshape(-1)[expert])


def inputs_of(folder, text):
    """Return {name of a linear module: (sum of x x^T, number of vectors)} over one pass of the whole model."""
    torch.set_grad_enabled(False)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    with open(text, encoding="utf-8") as file:
        numbers = tokenizer(file.read(), add_special_tokens=False).input_ids
    sums = {}

    def hook(name):
        def add(_, arguments):
            x = arguments[0].reshape(-1, arguments[0].shape[-1]).double()
            total, count = sums.get(name, (0, 0))
            sums[name] = (total + (x.T @ x).numpy(), count + len(x))

        return add

    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear):
            module.register_forward_pre_hook(hook(name))
    model(torch.tensor(numbers[: len(numbers) // CHUNK * CHUNK]).view(-1, CHUNK))
    return sums


class Calibration(FolderCase):
    def setUp(self):
        super().setUp()
        self.text = self.path("text.txt")
        write_text(self.text, 40 * CHUNK, 1)

    def checkpoint(self, kind="Llama", **options):
        os.makedirs(self.path("model"))
        make_checkpoint(self.path("model"), kind, **options)
        return self.path("model")

    def calibrated(self, name, *arguments):
        arguments = arguments if "--held-out" in arguments else ("--held-out", 0, *arguments)
        done = calibrate(self.path("model"), "-o", self.path(name), "--chunk", CHUNK, "--tokens", 1 << 20, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([each for each in os.listdir(self.folder) if each.startswith(".")], [])
        return self.path(name)

    def assert_same(self, found, expected):
        matrix, count = found
        self.assertEqual(count, expected[1])
        root = np.sqrt(np.diag(expected[0]))
        np.testing.assert_allclose(np.sqrt(np.diag(matrix)), root, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(matrix / np.outer(root, root), expected[0] / np.outer(root, root), atol=2**-11)

    def test_it_is_that_of_a_whole_pass(self):
        self.checkpoint()
        found = Covariance(self.calibrated("all.gguf", "--text", self.text))
        expected = inputs_of(self.path("model"), self.text)
        modules = {"attn_q": "self_attn.q_proj", "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_down": "mlp.down_proj"}
        for layer in range(2):
            for tensor, module in modules.items():
                self.assert_same(found.matrix(f"blk.{layer}.{tensor}.weight"), expected[f"model.layers.{layer}.{module}"])
        self.assertEqual(len(found.owners), 14)
        self.assertEqual(len(set(found.owners.values())), 8)
        self.assertEqual(found.owners["blk.1.attn_v.weight"], "blk.1.attn_k.weight")
        self.assertEqual(found.owners["blk.1.ffn_up.weight"], "blk.1.ffn_gate.weight")
        self.assertEqual(found.metadata["imatrix.datasets"], ["text.txt"])
        self.assertEqual((found.metadata["imatrix.chunk_count"], found.metadata["imatrix.chunk_size"]), (40, CHUNK))
        # It is an importance matrix, too.
        importance = ggufmill.imatrix(self.path("all.gguf"))
        self.assertEqual(len(importance), 14)
        self.assertEqual(importance["blk.0.ffn_down.weight"].shape, (96,))

    def test_held_out_chunks_are_not_in_the_sums(self):
        self.checkpoint()
        found = Covariance(self.calibrated("all.gguf", "--text", self.text, "--held-out", 10))
        with open(self.text, encoding="utf-8") as file:
            chunks = [file.read(CHUNK) for _ in range(40)]
        held_out = [chunk for i, chunk in enumerate(chunks) if i % 8 == 4]
        with open(self.path("used.txt"), "w", encoding="utf-8") as file:
            file.write("".join(chunk for i, chunk in enumerate(chunks) if i % 8 != 4))
        expected = Covariance(self.calibrated("used.gguf", "--text", self.path("used.txt")))
        self.assertEqual(found.metadata["imatrix.chunk_count"], 35)
        for tensor in ("blk.0.attn_q.weight", "blk.1.ffn_down.weight"):
            self.assert_same(found.matrix(tensor), expected.matrix(tensor))
        vectors = self.vectors(found, "blk.1.ffn_down.weight")
        self.assertEqual(vectors.shape, (1, 10, 96))
        seen = self.inputs_of_text("".join(held_out), "model.layers.1.mlp.down_proj")
        for i, vector in enumerate(vectors[0, :5]):
            stands_for = seen[(2 * i + 1) * len(seen) // 10] * (len(seen) / 5) ** 0.5
            np.testing.assert_allclose(vector, stands_for, rtol=0.01, atol=1e-3)
        self.assertTrue(vectors[0, 5:].any(-1).all())  # of the text that comes with ggufmill
        self.assertGreater(len({vector.tobytes() for vector in vectors[0]}), 9)
        self.assertNotIn("blk.1.ffn_down.weight.in_rows", expected.tensors)

    def test_the_longest_vectors_are_kept_and_others_stand_for_all(self):
        vectors = torch.from_numpy(np.random.default_rng(1).standard_normal((1000, 8), np.float32))
        vectors[333] *= 1000
        kept = sample(vectors, 80)
        self.assertEqual(kept.shape, (80, 8))
        self.assertEqual((kept == vectors[333]).all(1).sum(), 1)
        others = vectors.square().sum() - vectors[333].square().sum()
        self.assertLess(abs((kept.square().sum() - vectors[333].square().sum()) / others - 1), 0.1)
        self.assertTrue(torch.equal(sample(vectors, 1000), vectors))

    def test_each_expert_keeps_vectors_of_its_own(self):
        self.checkpoint("Mixtral", num_local_experts=4, num_experts_per_tok=2)
        found = Covariance(self.calibrated("all.gguf", "--text", self.text, "--held-out", 16))
        vectors = self.vectors(found, "blk.0.ffn_down_exps.weight")
        self.assertEqual(vectors.shape, (4, 16, 96))
        self.assertTrue(vectors.any(-1).any(-1).all())
        self.assertFalse(np.array_equal(vectors[0], vectors[1]))
        self.assertEqual(int(np.asarray(found.tensors["blk.0.ffn_down_exps.weight.counts"]).sum()), 2 * 35 * CHUNK)

    def test_of_two_chunks_one_is_held_out(self):
        self.checkpoint()
        for count, used in ((1, 1), (2, 1), (4, 3)):
            write_text(self.path("few.txt"), count * CHUNK, 1)
            found = Covariance(self.calibrated(f"{count}.gguf", "--text", self.path("few.txt"), "--held-out", 256))
            self.assertEqual(found.metadata["imatrix.chunk_count"], used)
            self.assertIn("blk.0.attn_k.weight.in_rows", found.tensors)  # of one chunk, all are of the included text

    def test_an_input_keeps_no_more_vectors_than_the_format_has(self):
        work = Work(self.path("o.gguf"), {}, False)
        self.addCleanup(work.remove)
        held_out = [torch.arange(1, 801).bfloat16()[:, None].expand(-1, 32)] * 2  # of a parameter that is used twice
        work.finish(0, [(["a"], 1, {0: Sums([torch.eye(32)], torch.ones(32, dtype=torch.float64), 3, held_out)})], (1,))
        (found,) = work.inputs(1)
        self.assertEqual(found.held_out, 1024)

    def vectors(self, found, tensor):
        """Return the held-out vectors of an input, float32 [experts, number, columns]."""
        held = found.tensors[f"{found.owners[tensor]}.in_rows"]
        bits = np.array(held.raw).reshape(-1).view(np.uint16).astype(np.uint32) << 16
        return bits.view(np.float32).reshape(held.shape if len(held.shape) == 3 else (1, *held.shape))

    def inputs_of_text(self, text, module):
        """Return the vectors that a module gets in one pass of the whole model, float32 [tokens, columns]."""
        torch.set_grad_enabled(False)
        model = transformers.AutoModelForCausalLM.from_pretrained(self.path("model"), dtype=torch.float32).eval()
        tokenizer = transformers.AutoTokenizer.from_pretrained(self.path("model"))
        seen = []
        model.get_submodule(module).register_forward_pre_hook(lambda _, given: seen.append(given[0]))
        model(torch.tensor(tokenizer(text, add_special_tokens=False).input_ids).view(-1, CHUNK))
        return seen[0].reshape(-1, seen[0].shape[-1]).numpy()

    def test_each_expert_has_its_own(self):
        self.checkpoint("Mixtral", num_local_experts=4, num_experts_per_tok=2)
        found = Covariance(self.calibrated("all.gguf", "--text", self.text))
        counts = np.asarray(found.tensors["blk.0.ffn_gate_exps.weight.counts"]).reshape(-1)
        self.assertEqual(counts.sum(), 2 * 40 * CHUNK)
        self.assertEqual(found.owners["blk.0.ffn_up_exps.weight"], "blk.0.ffn_gate_exps.weight")
        expected = inputs_of(self.path("model"), self.text)
        experts = [name for name in expected if "experts.0.w1" in name]
        if not experts:
            self.skipTest(f"transformers {transformers.__version__} has experts without modules, which cannot be hooked")
        for expert in range(4):
            module = f"model.layers.0.block_sparse_moe.experts.{expert}"
            self.assert_same(found.matrix("blk.0.ffn_gate_exps.weight", expert), expected[f"{module}.w1"])
            self.assert_same(found.matrix("blk.0.ffn_down_exps.weight", expert), expected[f"{module}.w2"])

    def test_a_model_may_look_at_parameters_before_it_uses_them(self):
        # It moves the token numbers to the device of the embedding, which is that of no values until the embedding is read.
        self.checkpoint("Llama4", intermediate_size_mlp=96, num_local_experts=2, interleave_moe_layer_step=2, head_dim=16)
        found = Covariance(self.calibrated("all.gguf", "--text", self.text))
        expected = inputs_of(self.path("model"), self.text)
        self.assert_same(found.matrix("blk.0.attn_q.weight"), expected["model.layers.0.self_attn.q_proj"])
        self.assert_same(found.matrix("blk.1.ffn_down_shexp.weight"), expected["model.layers.1.feed_forward.shared_expert.down_proj"])
        self.assertIn("blk.1.ffn_down_exps.weight", found.owners)

    def test_few_tokens_of_an_expert_are_reported(self):
        self.checkpoint("Mixtral", num_local_experts=8, num_experts_per_tok=1)
        done = calibrate(self.path("model"), "-o", self.path("few.gguf"), "--chunk", CHUNK, "--tokens", 64, "--text", self.text)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"warning: blk\.0\.ffn_gate_exps\.weight: 8 of 8 experts got fewer than 256 tokens \(expert \d: \d+\)")

    def test_blocks_are_parts_of_the_whole(self):
        self.checkpoint()
        whole = Covariance(self.calibrated("whole.gguf", "--text", self.text))
        blocks = Covariance(self.calibrated("blocks.gguf", "--text", self.text, "--form", "block40"))
        for tensor, columns in (("blk.1.ffn_down.weight", 96), ("blk.0.attn_q.weight", 64)):
            mask = np.equal.outer(np.arange(columns) // 40, np.arange(columns) // 40)
            np.testing.assert_allclose(blocks.matrix(tensor)[0], whole.matrix(tensor)[0] * mask, rtol=2e-3, atol=1e-3)

    def interrupted(self, name, number, layer):
        """Send a signal to a calibration after a layer of four, counted from 0. Returns its process and its arguments."""
        arguments = [self.path("model"), "-o", self.path(name), "--chunk", str(CHUNK), "--tokens", str(1 << 20), "--text", self.text, "--held-out", "0"]
        running = subprocess.Popen([sys.executable, "-m", "ggufmill.calibrate", *arguments], stderr=subprocess.DEVNULL)
        finished = self.path(f".{name}.ggufmill-calibration/layer-{layer}.json")
        while running.poll() is None and not os.path.exists(finished):
            time.sleep(0.002)
        running.send_signal(number)
        if number == signal.SIGKILL:
            running.wait()
        self.assertFalse(os.path.exists(self.path(name)), "it was too fast for the signal")
        return running, arguments

    def assert_refused(self, code, expected, *arguments):
        done = calibrate(*arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(expected, done.stderr)

    def assert_same_bytes(self, a, b):
        with open(a, "rb") as x, open(b, "rb") as y:
            self.assertEqual(x.read(), y.read())

    def test_a_killed_run_resumes_to_the_same_bytes(self):
        self.checkpoint(num_hidden_layers=4)
        write_text(self.text, 600 * CHUNK, 2)
        whole = self.calibrated("whole.gguf", "--text", self.text)
        _, arguments = self.interrupted("killed.gguf", signal.SIGKILL, 1)
        self.assert_refused(2, "an unfinished calibration with this output differs in: --form\n", *arguments, "--form", "block32")
        resumed = calibrate(*arguments)
        self.assertEqual(resumed.returncode, 0, resumed.stderr)
        self.assertRegex(resumed.stderr, r"resuming after layer \d")
        self.assert_same_bytes(whole, self.path("killed.gguf"))

    def test_a_run_is_not_resumed_as_another_job(self):
        self.checkpoint(num_hidden_layers=4)
        write_text(self.text, 600 * CHUNK, 2)
        _, arguments = self.interrupted("killed.gguf", signal.SIGKILL, 0)
        # A map that exchanges the names of two tensors
        shown = subprocess.run([PROGRAM, "architectures", "show", "llama"], capture_output=True, text=True)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        swapped = {"attn_norm": "ffn_norm", "ffn_norm": "attn_norm"}
        changed = re.sub(r"(?<=to: 'blk\.\{layer\}\.)\w+", lambda name: swapped.get(name[0], name[0]), shown.stdout)
        self.assertNotEqual(changed, shown.stdout)
        with open(self.path("llama.yaml"), "w", encoding="utf-8") as file:
            file.write(changed)
        expected = "an unfinished calibration with this output differs in: the names of tensors (--architectures)\n"
        self.assert_refused(2, expected, *arguments, "--architectures", self.path("llama.yaml"))
        # A key that changes what the model computes
        with open(self.path("model/config.json"), encoding="utf-8") as file:
            config = json.load(file)
        with open(self.path("model/config.json"), "w", encoding="utf-8") as file:
            json.dump({**config, "rms_norm_eps": 1e-3}, file)
        self.assert_refused(2, "an unfinished calibration with this output differs in: config.json\n", *arguments)
        done = calibrate(*arguments, "--overwrite")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("resuming", done.stderr)
        self.assert_same_bytes(self.path("killed.gguf"), self.calibrated("anew.gguf", "--text", self.text))

    def test_what_a_removal_left_is_not_resumed(self):
        self.checkpoint(num_hidden_layers=4)
        write_text(self.text, 600 * CHUNK, 2)
        _, arguments = self.interrupted("killed.gguf", signal.SIGKILL, 0)
        os.unlink(self.path(".killed.gguf.ggufmill-calibration/job.json"))
        done = calibrate(*arguments, "--form", "block32")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_same_bytes(self.path("killed.gguf"), self.calibrated("anew.gguf", "--text", self.text, "--form", "block32"))

    def test_one_run_at_a_time_writes_an_output(self):
        self.checkpoint(num_hidden_layers=4)
        write_text(self.text, 600 * CHUNK, 2)
        whole = self.calibrated("whole.gguf", "--text", self.text)
        running, arguments = self.interrupted("busy.gguf", signal.SIGSTOP, 0)
        expected = "busy.gguf: error: another calibration is writing this output\n  help: wait until it has finished, or use another path with -o"
        try:
            self.assert_refused(75, expected, *arguments)
            self.assert_refused(75, expected, *arguments, "--form", "block32", "--overwrite")
        finally:
            running.send_signal(signal.SIGCONT)
        self.assertEqual(running.wait(), 0)
        self.assert_same_bytes(whole, self.path("busy.gguf"))
        self.assertEqual([each for each in os.listdir(self.folder) if each.startswith(".")], [])

    def test_it_needs_no_posix_fallocate(self):
        self.checkpoint()
        whole = self.calibrated("whole.gguf", "--text", self.text)
        arguments = (self.path("model"), "-o", self.path("o.gguf"), "--chunk", CHUNK, "--text", self.text, "--held-out", 0)
        done = calibrate_where("del os.posix_fallocate", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_same_bytes(whole, self.path("o.gguf"))

    def test_the_name_of_the_output_is_on_disk_before_the_rest_is_removed(self):
        synced = []
        with unittest.mock.patch("os.fsync", lambda file: synced.append((os.fstat(file), os.path.exists(self.path("o.gguf"))))):
            covariance_file.write(self.path("o.gguf"), [], 0, [], 0, 0)
        (file, before), (folder, after) = synced
        self.assertTrue(os.path.samestat(file, os.stat(self.path("o.gguf"))))
        self.assertTrue(os.path.samestat(folder, os.stat(self.folder)))
        self.assertEqual((before, after), (False, True))

    def test_halves_merge_to_the_whole(self):
        self.checkpoint()
        write_text(self.path("a.txt"), 20 * CHUNK, 3)
        write_text(self.path("b.txt"), 30 * CHUNK, 4)
        whole = Covariance(self.calibrated("whole.gguf", "--text", self.path("a.txt"), self.path("b.txt")))
        halves = [self.calibrated(f"{name}.gguf", "--text", self.path(f"{name}.txt")) for name in "ab"]
        done = subprocess.run([PROGRAM, "imatrix", "merge", *halves, "-o", self.path("merged.gguf")], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        merged = Covariance(self.path("merged.gguf"))
        self.assertEqual(merged.owners, whole.owners)
        self.assertEqual(merged.metadata["imatrix.chunk_count"], 50)
        for tensor in whole.owners:
            (a, count), (b, same) = whole.matrix(tensor), merged.matrix(tensor)
            self.assertEqual(count, same)
            root = np.sqrt(np.diag(a))
            np.testing.assert_allclose(a / np.outer(root, root), b / np.outer(root, root), atol=2**-10)

    def test_conversations_take_the_form_of_the_template(self):
        self.checkpoint()
        messages = [{"role": "user", "content": "x" * 40}, {"role": "assistant", "content": "y" * 40}]
        with open(self.path("chat.jsonl"), "w", encoding="utf-8") as file:
            file.write(json.dumps({"messages": messages}) + "\n" + json.dumps({"text": "z" * 60}) + "\n")
        found = Covariance(self.calibrated("chat.gguf", "--text", self.path("chat.jsonl")))
        # [user] and [assistant], two ends of one token each, and two line feeds after the text
        self.assertEqual(found.metadata["imatrix.chunk_count"], (6 + 11 + 2 + 80 + 62) // CHUNK)

    def test_text_is_read_as_far_as_it_is_needed(self):
        self.checkpoint()
        with open(self.path("bad.jsonl"), "w", encoding="utf-8") as file:
            file.write("no document\n")
        arguments = ("-o", self.path("o.gguf"), "--chunk", CHUNK, "--text", self.text, self.path("bad.jsonl"))
        done = calibrate(self.path("model"), *arguments, "--tokens", 40 * CHUNK)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_refused(4, "bad.jsonl:1: error: not a document", self.path("model"), *arguments, "--overwrite", "--tokens", 41 * CHUNK)
        for text in ("", "ä€𝄞" * 1000000, "ä€𝄞\n" * 1000000, "a" * 1000 + "\n" + "b" * (1 << 22)):
            with open(self.path("long.txt"), "w", encoding="utf-8") as file:
                file.write(text)
            parts = list(calibration_text._documents(self.path("long.txt")))
            self.assertEqual("".join(parts), text)
            self.assertLessEqual(max(map(len, parts), default=0), 1 << 21)
            if text.endswith("\n"):
                self.assertTrue(all(part.endswith("\n") for part in parts))

    def test_the_included_text_has_enough_for_the_default(self):
        folder = os.path.dirname(ggufmill.__file__)
        with open(os.path.join(folder, "calibrate", "text.jsonl"), encoding="utf-8") as file:
            documents = [json.loads(line) for line in file]
        self.assertGreater(sum("messages" in document for document in documents), 50)
        self.assertGreater(sum(len(document.get("text", "")) for document in documents), 5e5)
        self.checkpoint()
        done = calibrate(self.path("model"), "-o", self.path("all.gguf"), "--tokens", 256)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(Covariance(self.path("all.gguf")).metadata["imatrix.datasets"], ["text.jsonl"])


class Errors(FolderCase):
    def assert_fails(self, code, expected, *arguments, **options):
        done = calibrate(*arguments, **options)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(expected, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        return done.stderr

    def test_wrong_options(self):
        output = ("-o", self.path("o.gguf"))
        self.assert_fails(2, "error: the following arguments are required", self.folder)
        self.assert_fails(2, "error: unknown form 'blok256'\n  help: use --form full", self.folder, *output, "--form", "blok256")
        self.assert_fails(2, "error: --tokens 0 is too small", self.folder, *output, "--tokens", 0)
        self.assert_fails(2, "error: --held-out -1 is too small", self.folder, *output, "--held-out", -1)
        self.assert_fails(2, "error: --held-out 1025 is too large\n  help: use at most 1024", self.folder, *output, "--held-out", 1025)
        self.assert_fails(2, "nothing: error: no such folder", self.path("nothing"), *output)
        self.assert_fails(4, "contains no *.safetensors", self.folder, *output)
        self.assert_fails(6, "no.txt: error: no such file, which --text names", self.folder, *output, "--text", self.path("no.txt"))
        self.assert_fails(6, "no such folder, for the output", self.folder, "-o", self.path("no/o.gguf"))
        with open(self.path("o.gguf"), "w", encoding="utf-8"):
            pass
        self.assert_fails(6, "o.gguf: error: already exists\n  help: use --overwrite", self.folder, *output)

    def test_without_torch(self):
        with open(self.path("torch.py"), "w", encoding="utf-8") as file:
            file.write("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([self.folder, os.environ["PYTHONPATH"]])}
        printed = self.assert_fails(5, "error: cannot import torch", self.folder, "-o", self.path("o.gguf"), env=environment)
        self.assertIn("pip install ggufmill[calibrate]", printed)
        code = "import ggufmill, sys; assert not {'torch', 'transformers', 'ggufmill.calibrate'} & set(sys.modules)"
        self.assertEqual(subprocess.run([sys.executable, "-c", code], env=environment).returncode, 0)

    def test_without_file_locks(self):
        done = calibrate_where("sys.modules['fcntl'] = None", self.folder, "-o", self.path("o.gguf"))
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn("error: a calibration needs file locks of POSIX, which this system does not have\n  help: on Windows, run it in WSL\n", done.stderr)

    def test_checkpoints_that_cannot_be_calibrated(self):
        make_checkpoint(self.folder, "Llama")
        write_text(self.path("text.txt"), 20, 1)
        arguments = (self.folder, "-o", self.path("o.gguf"), "--text", self.path("text.txt"))
        self.assert_fails(2, "the text has 20 tokens, fewer than a chunk of 64", *arguments)
        self.assert_fails(2, "error: --chunk 65 is longer than the context of the model, 64", *arguments, "--chunk", 65)
        self.assert_fails(5, "cannot use --device cuda:77", *arguments, "--device", "cuda:77")
        path = self.path("model.safetensors")
        tensors = safetensors.torch.load_file(path)
        with open(self.path("config.json"), encoding="utf-8") as file:
            config = json.load(file)
        with open(self.path("config.json"), "w", encoding="utf-8") as file:
            json.dump({**config, "quantization_config": {"quant_method": "fp8"}}, file)
        self.assert_fails(4, "error: ", *arguments)
        with open(self.path("config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        tensors["model.layers.1.mlp.up_proj.weight"][0, 0] = float("inf")
        safetensors.torch.save_file(tensors, path)
        write_text(self.path("text.txt"), 200, 1)
        self.assert_fails(4, "the hidden states after layer 1 are not finite numbers in float32", *arguments)


if __name__ == "__main__":
    unittest.main()
