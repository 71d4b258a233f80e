"""numpy arrays quantized and decoded: the bytes of a run, no copies, clear errors."""

import os
import subprocess
import tempfile
import threading
import time
import unittest

import ggufmill
import numpy as np

PROGRAM = os.environ["GGUFMILL"]
ACTIVATIONS = ["Q8_1", "Q8_K"]  # types of quantized activations
INTEGERS = ["I8", "I16", "I32", "I64"]
ROWS, COLUMNS = 96, 512


def numbers(*shape, seed=7):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def encoders():
    """The types that weights can be quantized to."""
    return [each for each in ggufmill.types() if each["write"] and each["name"] not in ACTIVATIONS + INTEGERS]


class SameBytesAsARun(unittest.TestCase):
    """One model of one tensor, run into every type by the program."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        path = cls.folder.name
        cls.values = numbers(ROWS, COLUMNS)
        cls.importance = np.abs(numbers(COLUMNS, seed=8)) + np.float32(0.01)
        np.save(f"{path}/blk.0.ffn_down.weight.npy", cls.values)
        write_importance(f"{path}/imatrix.dat", "blk.0.ffn_down.weight", cls.importance)
        outputs = "".join(
            f"  - {{gguf: '{path}/{each['name']}.gguf', quantize: {{type: {each['name']}}}}}\n" for each in encoders()
        )
        job = f"""version: 1
source: {{arrays: '{path}/arrays.yaml'}}
stages: [{{importance: {{file: '{path}/imatrix.dat'}}}}]
outputs:
{outputs}"""
        with open(f"{path}/job.yaml", "w", encoding="utf-8") as file:
            file.write(job)
        with open(f"{path}/arrays.yaml", "w", encoding="utf-8") as file:
            file.write(
                "metadata: {general.architecture: llama}\n"
                "tensors: [{name: blk.0.ffn_down.weight, npy: blk.0.ffn_down.weight.npy}]\n"
            )
        run = subprocess.run([PROGRAM, "run", f"{path}/job.yaml", "--quiet"], capture_output=True, text=True)
        if run.returncode != 0:
            raise RuntimeError(run.stderr)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_every_type(self):
        for each in encoders():
            with self.subTest(each["name"]):
                made = ggufmill.quantize(self.values, each["name"], self.importance)
                tensor = ggufmill.open(f"{self.folder.name}/{each['name']}.gguf").tensors["blk.0.ffn_down.weight"]
                self.assertEqual(tensor.type, each["name"])
                self.assertEqual(made.shape, (ROWS, COLUMNS // each["block_elements"] * each["block_bytes"]))
                np.testing.assert_array_equal(made, tensor.raw)
                decoded = ggufmill.dequantize(tensor.raw, each["name"], (ROWS, COLUMNS))
                np.testing.assert_array_equal(decoded, np.asarray(tensor))


class RowsWithAHeader(unittest.TestCase):
    """A type of a module whose rows begin with a scale of four bytes."""

    def test_there_and_back(self):
        build = os.environ["GGUFMILL_BUILD_DIR"]
        context = ggufmill.Context(kernel_dirs=f"{build}/tests/modules/row_header")
        values = numbers(ROWS, COLUMNS)
        made = context.quantize(values, "X8_ROW")
        self.assertEqual(made.shape, (ROWS, 4 + COLUMNS))
        scales = np.ascontiguousarray(made[:, :4]).view("<f4")
        np.testing.assert_array_equal(scales, np.abs(values).max(axis=1, keepdims=True) / np.float32(127))
        back = context.dequantize(made, "X8_ROW")
        self.assertEqual(back.shape, (ROWS, COLUMNS))
        self.assertTrue((np.abs(back - values) <= scales * 0.51).all())


def write_importance(path, name, weights):
    """A legacy file: entries of a name, calls and sums; weights are sums divided by calls."""
    with open(path, "wb") as file:
        encoded = name.encode()
        file.write(np.array([1, len(encoded)], "<i4").tobytes() + encoded)
        file.write(np.array([1, len(weights)], "<i4").tobytes() + weights.astype("<f4").tobytes())


class Arrays(unittest.TestCase):
    def test_leading_axes_are_rows(self):
        values = numbers(3, 5, 7, 256)
        made = ggufmill.quantize(values, "Q4_K")
        self.assertEqual(made.shape, (3, 5, 7, 144))
        np.testing.assert_array_equal(made.reshape(105, 144), ggufmill.quantize(values.reshape(105, 256), "Q4_K"))
        self.assertEqual(ggufmill.dequantize(made, "Q4_K").shape, values.shape)
        self.assertEqual(ggufmill.quantize(values[0, 0, 0], "Q4_K").shape, (144,))
        self.assertEqual(ggufmill.quantize(values[:0], "Q4_K").shape, (0, 5, 7, 144))
        self.assertEqual(ggufmill.dequantize(b"", "Q4_K", (0, 256)).shape, (0, 256))

    def test_levels_are_chosen_with_a_covariance(self):
        values, inputs = numbers(3, 5, 256), numbers(1000, 256).astype(np.float64)
        inputs[:, 1:] += inputs[:, :-1]
        matrix = inputs.T @ inputs
        error = lambda rows: np.square((ggufmill.dequantize(rows, "Q4_K") - values) @ inputs.T).sum()
        start = ggufmill.quantize(values, "Q4_K")
        made = ggufmill.quantize(values, "Q4_K", covariance=matrix)
        self.assertLess(error(made), 0.8 * error(start))
        np.testing.assert_array_equal(made[..., :16], start[..., :16])  # scales and minimums
        out = np.empty_like(start)
        self.assertIs(ggufmill.quantize(values, "Q4_K", covariance=matrix, start=start, out=out), out)
        np.testing.assert_array_equal(out, made)
        halves = values.astype(np.float16)
        np.testing.assert_array_equal(
            ggufmill.quantize(halves, "Q4_K", covariance=matrix), ggufmill.quantize(halves.astype(np.float32), "Q4_K", covariance=matrix)
        )
        for options, expected in (
            ({"covariance": matrix[:5]}, "a covariance of shape (5, 256) does not fit an array of shape (3, 5, 256)"),
            ({"covariance": matrix, "start": start[:2]}, "`start` is an array of uint8 (2, 5, 144), but the result is of uint8 (3, 5, 144)"),
            ({"start": start}, "`start` has no effect without `covariance`"),
        ):
            with self.assertRaises(ggufmill.UsageError) as caught:
                ggufmill.quantize(values, "Q4_K", **options)
            self.assertEqual(caught.exception.what, expected)

    def test_importance_of_each_matrix(self):
        values, importance = numbers(3, 5, 256), np.abs(numbers(3, 256))
        made = ggufmill.quantize(values, "Q4_K", importance)
        for i in range(3):
            np.testing.assert_array_equal(made[i], ggufmill.quantize(values[i], "Q4_K", importance[i]))
        shared = ggufmill.quantize(values, "Q4_K", importance[0].tolist())
        np.testing.assert_array_equal(shared[2], ggufmill.quantize(values[2], "Q4_K", importance[0]))
        layers = ggufmill.quantize(np.stack([values, values]), "Q4_K", importance)
        np.testing.assert_array_equal(layers[1], made)

    def test_what_activations_become(self):
        values = np.zeros((1, 256), np.float32)
        values[0, :4] = [-127, 64, 1, -2]
        blocks = ggufmill.quantize(values, "Q8_K")[0]
        self.assertEqual(blocks[:4].view("<f4")[0], 1)
        np.testing.assert_array_equal(blocks[4:8].view(np.int8), [-127, 64, 1, -2])
        self.assertEqual(blocks[260:262].view("<i2")[0], -64)
        np.testing.assert_array_equal(ggufmill.dequantize(blocks, "Q8_K"), values[0])
        blocks = ggufmill.quantize(values, "Q8_1")[0]
        np.testing.assert_array_equal(blocks[:4].view("<f2"), [1, -64])
        np.testing.assert_array_equal(ggufmill.dequantize(blocks, "Q8_1"), values[0])

    def test_integers(self):
        values = np.array([-128, -0.5, 0.5, 1.5, 127], np.float32)
        for type_, dtype in zip(INTEGERS, ("<i1", "<i2", "<i4", "<i8")):
            made = ggufmill.quantize(values, type_).view(dtype)
            np.testing.assert_array_equal(made, [-128, 0, 0, 2, 127])
            np.testing.assert_array_equal(ggufmill.dequantize(made.view(np.uint8), type_), made)
        with self.assertRaises(ggufmill.Error) as caught:
            ggufmill.quantize(values + 1, "I8")
        self.assertIn("too large for I8", str(caught.exception))

    def test_numbers_of_other_types(self):
        values = numbers(4, 256)
        half = values.astype(np.float16)
        expected = ggufmill.quantize(half.astype(np.float32), "Q4_K")
        np.testing.assert_array_equal(ggufmill.quantize(half, "Q4_K"), expected)
        np.testing.assert_array_equal(ggufmill.quantize(half.astype(np.float64), "Q4_K"), expected)
        np.testing.assert_array_equal(ggufmill.quantize(half.astype(">f4"), "Q4_K"), expected)
        np.testing.assert_array_equal(ggufmill.quantize(half, "F16").view(np.float16), half)

    def test_however_an_array_lies_in_memory(self):
        values = numbers(8, 512)
        expected = ggufmill.quantize(values[::2, 256:].copy(), "Q4_K")
        np.testing.assert_array_equal(ggufmill.quantize(values[::2, 256:], "Q4_K"), expected)
        np.testing.assert_array_equal(ggufmill.quantize(np.asfortranarray(values[::2, 256:]), "Q4_K"), expected)
        unaligned = np.frombuffer(b"x" + values.tobytes(), np.uint8)[1:].view(np.float32).reshape(8, 512)
        np.testing.assert_array_equal(ggufmill.quantize(unaligned, "Q4_K"), ggufmill.quantize(values, "Q4_K"))
        read_only = values.copy()
        read_only.flags.writeable = False
        ggufmill.quantize(read_only, "Q4_K")
        half = ggufmill.quantize(values, "F16")
        np.testing.assert_array_equal(
            ggufmill.dequantize(memoryview(b"x" + half.tobytes())[1:], "F16", (8, 512)),
            ggufmill.dequantize(half, "F16"),
        )

    def test_any_buffer(self):
        rows = ggufmill.quantize(numbers(4, 256), "Q6_K")
        expected = ggufmill.dequantize(rows, "Q6_K")
        for buffer in (rows.tobytes(), bytearray(rows.tobytes()), memoryview(rows), rows.view(np.int8)):
            np.testing.assert_array_equal(ggufmill.dequantize(buffer, "Q6_K", (4, 256)), expected)
        np.testing.assert_array_equal(ggufmill.dequantize(rows, "q6_k", 1024), expected.reshape(-1))

    def test_nothing_is_copied_on_the_way(self):
        """Nothing but the result is allocated: numpy's memory is traced."""
        import tracemalloc

        values = numbers(1024, 4096)  # 16 MiB
        result = values.size // 256 * 144
        tracemalloc.start()
        rows = ggufmill.quantize(values, "Q4_K")
        peak = tracemalloc.get_traced_memory()[1]
        self.assertLess(peak, result + (64 << 10))
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        ggufmill.dequantize(rows, "Q4_K")
        peak = tracemalloc.get_traced_memory()[1] - before
        tracemalloc.stop()
        self.assertLess(peak, values.nbytes + (64 << 10))

    def test_results_go_where_they_are_wanted(self):
        values = numbers(6, 512)
        rows, again = np.zeros((6, 288), np.uint8), np.zeros((6, 512), np.float32)
        self.assertTrue(np.shares_memory(ggufmill.quantize(values, "Q4_K", out=rows), rows))
        np.testing.assert_array_equal(rows, ggufmill.quantize(values, "Q4_K"))
        self.assertTrue(np.shares_memory(ggufmill.dequantize(rows, "Q4_K", out=again), again))
        np.testing.assert_array_equal(again, ggufmill.dequantize(rows.tobytes(), "Q4_K", (6, 512)))
        ggufmill.dequantize(rows.tobytes(), "Q4_K", (6, 512), out=again)
        read_only = rows.copy()
        read_only.flags.writeable = False
        for out in (rows[:5], rows.view(np.int8), np.zeros((6, 576), np.uint8)[:, ::2], read_only, bytearray(6 * 288)):
            with self.assertRaises(ggufmill.Error) as caught:
                ggufmill.quantize(values, "Q4_K", out=out)
            self.assertEqual(caught.exception.exit_code, 2)
        with self.assertRaises(ggufmill.Error):
            ggufmill.quantize(values, "F32", out=values.view(np.uint8))
        with self.assertRaises(ggufmill.Error):
            buffer = bytearray(12288)
            ggufmill.dequantize(buffer, "F32", (6, 512), out=np.frombuffer(buffer, np.float32).reshape(6, 512))

    def test_other_threads_of_python_run_meanwhile(self):
        values = numbers(2048, 4096)
        turns, is_over = 0, threading.Event()

        def count():
            nonlocal turns
            while not is_over.wait(0.001):
                turns += 1

        other = threading.Thread(target=count)
        other.start()
        start = time.monotonic()
        while time.monotonic() - start < 0.3:
            ggufmill.quantize(values, "Q5_K", threads=1)
        is_over.set()
        other.join()
        self.assertGreater(turns, 5)

    def test_threads_do_not_change_the_bytes(self):
        values = numbers(64, 4096)
        self.assertEqual(
            ggufmill.quantize(values, "Q3_K", threads=1).tobytes(), ggufmill.quantize(values, "Q3_K").tobytes()
        )


class Errors(unittest.TestCase):
    def assert_error(self, code, what, help, call, *arguments):
        with self.assertRaises(ggufmill.Error) as caught:
            call(*arguments)
        self.assertEqual(caught.exception.what, what)
        self.assertEqual(caught.exception.help, help)
        self.assertEqual(caught.exception.exit_code, code)
        self.assertIn("error: " + what, str(caught.exception))

    def test_quantize(self):
        values = numbers(2, 256)
        self.assert_error(
            2, "unknown type 'Q5_M'", "did you mean 'Q5_K'? `ggufmill.types()` lists them", ggufmill.quantize, values, "Q5_M"
        )
        self.assert_error(
            2,
            "rows of 100 values are not a whole number of blocks of Q4_K",
            "Q4_K has blocks of 256: the last axis of the array must be a multiple of that",
            ggufmill.quantize,
            values[:, :100],
            "Q4_K",
        )
        self.assert_error(
            2,
            "IQ1_S needs importance weights",
            "give the weights of the columns, or choose another type",
            ggufmill.quantize,
            values,
            "IQ1_S",
        )
        self.assert_error(
            2,
            "importance of shape (3,) does not fit an array of shape (2, 256)",
            "it must be of shape (256,), for all rows, or (256,), for each matrix",
            ggufmill.quantize,
            values,
            "Q4_K",
            [1, 2, 3],
        )
        values[1, 7] = np.nan
        self.assert_error(4, "row 1, column 7: NaN", "Q4_K can hold only finite numbers", ggufmill.quantize, values, "Q4_K")
        self.assert_error(
            2,
            "an array of int64 cannot be quantized",
            "it must be of float32, float16, bfloat16, or float64: array.astype(numpy.float32)",
            ggufmill.quantize,
            np.zeros((2, 256), np.int64),
            "Q4_K",
        )
        self.assert_error(
            2, "'model.gguf' is text, not an array", "quantize_model() quantizes a file", ggufmill.quantize, "model.gguf", "Q4_K"
        )
        self.assert_error(
            2,
            "an array without dimensions cannot be quantized",
            "rows are along the last axis",
            ggufmill.quantize,
            np.float32(1),
            "F16",
        )

    def test_dequantize(self):
        self.assert_error(
            2,
            "the buffer has 3 bytes, but 256 values of Q4_K take 144",
            "`shape` must be the shape of the values: its last dimension counts values, not bytes",
            ggufmill.dequantize,
            b"abc",
            "Q4_K",
            (256,),
        )
        self.assert_error(
            2, "the shape (-1, 256) has a negative dimension", "", ggufmill.dequantize, b"", "Q4_K", (-1, 256)
        )
        self.assert_error(
            2,
            "the shape of the values is missing",
            "dequantize(buffer, type, shape)",
            ggufmill.dequantize,
            b"abc",
            "Q4_K",
        )
        with self.assertRaises(ggufmill.Error):  # exceeds 64 bits
            ggufmill.dequantize(b"", "Q4_K", (2**40, 2**40, 256))
        with self.assertRaises(ggufmill.Error):
            ggufmill.dequantize(np.zeros((2, 143), np.uint8), "Q4_K")
        with self.assertRaises(TypeError):
            ggufmill.dequantize([1, 2], "Q4_K", (256,))

    def test_an_error_can_be_pickled(self):
        import pickle

        with self.assertRaises(ggufmill.Error) as caught:
            ggufmill.open("/no/such/file.gguf")
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual(str(again), str(caught.exception))
        self.assertEqual((again.where, again.exit_code), ("/no/such/file.gguf", 4))

    def test_contexts(self):
        self.assertEqual(ggufmill.Context(isa="reference").isa, "reference")
        self.assertIn((True, "reference", ""), [(m["loaded"], m["isa"], m["why"]) for m in ggufmill.Context().modules()])
        with self.assertRaises(ggufmill.Error) as caught:
            ggufmill.Context(isa="x87")
        self.assertEqual(caught.exception.exit_code, 5)
        values = numbers(4, 256)
        reference = ggufmill.Context(isa="reference").quantize(values, "Q4_K")
        np.testing.assert_array_equal(reference, ggufmill.quantize(values, "Q4_K"))


if __name__ == "__main__":
    unittest.main()
