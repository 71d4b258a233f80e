"""Models opened: metadata, tensors as arrays, what is mapped and what is made."""

import json
import os
import pickle
import subprocess
import unittest

import ggufmill
import numpy as np
from folder_case import FolderCase

PROGRAM = os.environ["GGUFMILL"]
MAKE_GGUF = os.environ["GGUFMILL_MAKE_GGUF"]


def run(*arguments):
    done = subprocess.run([str(each) for each in arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)


def numbers(*shape, seed=7):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def write_safetensors(path, tensors):
    header, at, blobs = {}, 0, []
    for name, values in tensors.items():
        blob = values.tobytes()
        kinds = {"float32": "F32", "float16": "F16", "uint8": "U8"}
        header[name] = {"dtype": kinds[values.dtype.name], "shape": values.shape, "data_offsets": [at, at + len(blob)]}
        at += len(blob)
        blobs.append(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + b"".join(blobs))


class Folder(FolderCase):
    def gguf(self, *items):
        run(MAKE_GGUF, self.path("model.gguf"), *items)
        return self.path("model.gguf")


class MetadataOfGguf(Folder):
    def test_values(self):
        model = ggufmill.open(
            self.gguf(
                *("meta", "a.u8", "uint8", 255, "meta", "a.i64", "int64", -5, "meta", "a.u64", "uint64", 2**63 - 1),
                *("meta", "a.f32", "float32", 0.5, "meta", "a.bool", "bool", "true", "meta", "a.text", "string", "grüß"),
                *("meta", "a.words", "string[]", "one,two", "meta", "a.numbers", "int32[]", "1,-2,3"),
                *("meta", "a.floats", "float32[]", "0.5,1.5", "tensor", "t", "F32", "4x2"),
            )
        )
        metadata = model.metadata
        self.assertEqual(
            (metadata["a.u8"], metadata["a.i64"], metadata["a.u64"], metadata["a.f32"], metadata["a.text"]),
            (255, -5, 2**63 - 1, 0.5, "grüß"),
        )
        self.assertIs(metadata["a.bool"], True)
        self.assertEqual(metadata["a.words"], ["one", "two"])
        np.testing.assert_array_equal(metadata["a.numbers"], np.array([1, -2, 3], np.int32))
        self.assertEqual(metadata["a.floats"].dtype, np.float32)
        self.assertEqual(list(metadata)[:2], ["a.u8", "a.i64"])
        self.assertEqual(dict(metadata).keys(), set(metadata))
        self.assertEqual(len(metadata), len(list(metadata)))
        self.assertEqual(metadata.type("a.u8"), "uint8")
        self.assertEqual(metadata.type("a.words"), "array of string")
        self.assertNotIn("nothing", metadata)
        self.assertNotIn(5, metadata)
        self.assertIsNone(metadata.get("nothing"))
        with self.assertRaises(KeyError):
            metadata["nothing"]


class TensorsOfGguf(Folder):
    def test_a_view_of_the_file(self):
        path = self.gguf("tensor", "a", "F32", "256x6", "tensor", "b", "Q4_K", "512x3")
        model = ggufmill.open(path)
        self.assertEqual(model.files, [path])
        a, b = model.tensors["a"], model.tensors["b"]
        self.assertEqual(list(model.tensors), ["a", "b"])
        self.assertEqual((a.name, a.type, a.shape, a.nbytes, a.ndim, a.size), ("a", "F32", (6, 256), 6144, 2, 1536))
        self.assertEqual((b.type, b.shape, b.raw.shape, b.raw.dtype), ("Q4_K", (3, 512), (3, 288), np.uint8))
        self.assertTrue(a.is_mapped and b.is_mapped)
        self.assertTrue(np.shares_memory(a.raw, a.raw))
        self.assertTrue(np.shares_memory(np.asarray(a), a.raw), "float32 is looked at where it lies")
        self.assertTrue(np.shares_memory(a[2:4], a.raw))
        self.assertFalse(a.raw.flags.writeable or np.asarray(a).flags.writeable)
        with open(path, "rb") as file:
            self.assertIn(a.raw.tobytes(), file.read())

    def test_rows_are_decoded_where_they_are_looked_at(self):
        values = numbers(4, 6, 5, 256)
        np.save(self.path("t.npy"), values)
        with open(self.path("arrays.yaml"), "w", encoding="utf-8") as file:
            file.write("metadata: {general.architecture: llama}\ntensors: [{name: t, npy: t.npy}]\n")
        with open(self.path("job.yaml"), "w", encoding="utf-8") as file:
            file.write(
                f"version: 1\nsource: {{arrays: '{self.path('arrays.yaml')}'}}\n"
                f"outputs: [{{gguf: '{self.path('q.gguf')}', quantize: {{type: Q6_K}}}}]\n"
            )
        run(PROGRAM, "run", self.path("job.yaml"))
        tensor = ggufmill.open(self.path("q.gguf")).tensors["t"]
        all_values = np.asarray(tensor)
        np.testing.assert_array_equal(all_values, ggufmill.dequantize(tensor.raw, "Q6_K"))
        self.assertEqual(tensor.shape, values.shape)
        keys = (
            *(0, -1, slice(None), slice(1, 3), slice(3, 1, -1), slice(0, 4, 2), slice(2, 2), ..., None),
            *((1, 2), (1, 2, 3), (1, 2, 3, 4), (1, slice(2, 5)), (1, slice(None, None, -2), 3), (slice(1, 3), 2)),
            *((..., 7), (0, ..., slice(3, 9)), (slice(1, 2), [0, 3]), ([1, 3], 2), (2, 1, slice(0, 2), slice(0, 256, 3))),
            *((-1, -1, -1, -1), (np.int64(2), 1), all_values[..., 0] > 0, (slice(2, 3), None, 1), (0, None, 1)),
        )
        for key in keys:
            with self.subTest(str(key)[:60]):
                np.testing.assert_array_equal(tensor[key], all_values[key])
        for key in (4, -5, (0, 6), (0, 0, 0, 256), (0, 0, 0, 0, 0)):
            with self.subTest(str(key)), self.assertRaises(IndexError):
                tensor[key]
        self.assertEqual(len(tensor), 4)
        self.assertEqual(sum(1 for _ in tensor), 4)
        self.assertEqual(np.asarray(tensor, dtype=np.float64).dtype, np.float64)
        self.assertAlmostEqual(float(np.mean(tensor)), float(all_values.mean()), places=5)

    def test_only_what_is_looked_at_is_decoded(self):
        import tracemalloc

        path = self.gguf("tensor", "t", "Q4_K", "4096x4096")
        tensor = ggufmill.open(path).tensors["t"]
        tracemalloc.start()
        self.assertEqual(tensor[100:110].shape, (10, 4096))
        self.assertEqual(tensor.raw[5000 % 4096].nbytes, 2304)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        self.assertLess(peak, 1 << 20)

    def test_other_types_and_byte_orders(self):
        path = self.gguf("tensor", "i", "I32", "8x2", "tensor", "f", "F32", "8x2", "big-endian")
        model = ggufmill.open(path)
        np.testing.assert_array_equal(np.asarray(model.tensors["i"]), np.zeros((2, 8), np.float32))
        values = np.asarray(model.tensors["f"])
        np.testing.assert_array_equal(values.reshape(-1), model.tensors["f"].raw.reshape(-1).view(">f4"))

    def test_a_file_that_changes_is_noticed(self):
        path = self.gguf("tensor", "a", "F32", "256x2", "tensor", "b", "BF16", "256x2")
        model = ggufmill.open(path)
        os.utime(path, ns=(1, 1))
        for look in (lambda: model.tensors["a"].raw, lambda: np.asarray(model.tensors["b"])):
            with self.assertRaises(ggufmill.Error):
                look()

    def test_errors(self):
        with open(self.path("bad.gguf"), "wb") as file:
            file.write(b"GGUF\3\0\0\0" + b"\xff" * 100)
        for path in (self.path("bad.gguf"), self.path("none.gguf"), self.folder):
            with self.subTest(path), self.assertRaises(ggufmill.Error) as caught:
                ggufmill.open(path)
            self.assertEqual(caught.exception.exit_code, 4)
            self.assertTrue(caught.exception.where.startswith(path))
        with self.assertRaises(TypeError):
            ggufmill.open(5)
        with self.assertRaises(TypeError):
            pickle.dumps(ggufmill.Context())


class Checkpoints(Folder):
    def test_safetensors_as_they_stand(self):
        tensors = {"x": numbers(3, 64), "y": numbers(2, 4, 8).astype(np.float16), "z": np.arange(6, dtype=np.uint8)}
        write_safetensors(self.path("model.safetensors"), tensors)
        model = ggufmill.open(self.path("model.safetensors"))
        for name, values in tensors.items():
            self.assertEqual(model.tensors[name].shape, values.shape)
            np.testing.assert_array_equal(np.asarray(model.tensors[name]), values.astype(np.float32))
            self.assertTrue(model.tensors[name].is_mapped)

    def test_a_checkpoint_as_the_model_that_it_becomes(self):
        """Permuted rows are put together where they are looked at."""
        config = {"architectures": ["LlamaForCausalLM"], "hidden_size": 32, "num_attention_heads": 2}
        config |= {"num_hidden_layers": 1, "vocab_size": 5, "intermediate_size": 64, "rms_norm_eps": 1e-5}
        config |= {"max_position_embeddings": 16}
        query = "model.layers.0.self_attn.q_proj.weight"
        tensors = {"model.embed_tokens.weight": numbers(5, 32), "model.norm.weight": numbers(32), query: numbers(32, 32)}
        for name in ("input", "post_attention"):
            tensors[f"model.layers.0.{name}_layernorm.weight"] = numbers(32)
        for name in "kvo":
            tensors[f"model.layers.0.self_attn.{name}_proj.weight"] = numbers(32, 32)
        for name, shape in (("gate", (64, 32)), ("up", (64, 32)), ("down", (32, 64))):
            tensors[f"model.layers.0.mlp.{name}_proj.weight"] = numbers(*shape)
        write_safetensors(self.path("model.safetensors"), tensors)
        with open(self.path("config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        with open(self.path("tokenizer.model"), "wb") as file:
            pieces = (("<unk>", 2), ("<s>", 3), ("</s>", 3), ("a", 1), ("b", 1))
            file.write(b"".join(sentence_piece(*each) for each in pieces) + b"\x12\x02\x18\x02")
        run(PROGRAM, "convert", self.folder, "--outtype", "f16", "--outfile", self.path("model.gguf"))
        model, converted = ggufmill.open(self.folder), ggufmill.open(self.path("model.gguf"))
        self.assertEqual(model.metadata["tokenizer.ggml.tokens"], ["<unk>", "<s>", "</s>", "a", "b"])
        self.assertEqual(model.metadata.keys(), converted.metadata.keys())
        self.assertEqual(list(model.tensors), list(converted.tensors))
        query = model.tensors["blk.0.attn_q.weight"]
        self.assertFalse(query.is_mapped)
        self.assertFalse(query.raw.flags.writeable)
        np.testing.assert_array_equal(query.raw, converted.tensors["blk.0.attn_q.weight"].raw)
        np.testing.assert_array_equal(query[5:9], np.asarray(converted.tensors["blk.0.attn_q.weight"])[5:9])


def sentence_piece(text, kind):
    """An entry of a SentencePiece model: text, score 0 and type."""
    inner = b"\x0a" + bytes([len(text)]) + text.encode() + b"\x15\0\0\0\0\x18" + bytes([kind])
    return b"\x0a" + bytes([len(inner)]) + inner


if __name__ == "__main__":
    unittest.main()
