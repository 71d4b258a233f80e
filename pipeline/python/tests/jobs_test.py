"""Jobs from Python: dictionaries and files, planned, checked, run and ended; models compared."""

import asyncio
import concurrent.futures
import json
import os
import subprocess
import sys
import textwrap
import threading
import unittest
import unittest.mock

import ggufmill
import numpy as np
from folder_case import ModelCase

PROGRAM = os.environ["GGUFMILL"]
MAKE_GGUF = os.environ["GGUFMILL_MAKE_GGUF"]


class Jobs(ModelCase):
    def setUp(self):
        super().setUp()
        self.out = self.folder / "out.gguf"

    def job(self, **more):
        return {"version": 1, "source": {"gguf": self.model}, "outputs": [{"gguf": self.out, "quantize": "Q8_0"}], **more}

    def names(self):
        return sorted(os.listdir(self.folder))

    def test_a_dictionary_is_a_pipeline_file(self):
        report = ggufmill.run(self.job())
        written = self.out.read_bytes()
        file = self.folder / "job.yaml"
        file.write_text(
            f"version: 1\nsource: {{gguf: {self.model}}}\noutputs: [{{gguf: {self.folder}/file.gguf, quantize: Q8_0}}]\n"
        )
        subprocess.run([PROGRAM, "run", "--quiet", file], check=True)
        self.assertEqual((self.folder / "file.gguf").read_bytes(), written)
        self.assertEqual(report["kind"], "run")
        self.assertEqual(report["outputs"][0]["files"], [{"path": str(self.out), "bytes": len(written)}])
        self.assertEqual(report["warnings"], [])
        again = ggufmill.run(file, set={"outputs.0.gguf": self.folder / "set.gguf", "outputs.0.quantize": "Q4_0"})
        self.assertEqual(again["outputs"][0]["recipe"], "Q4_0")
        self.assertTrue((self.folder / "set.gguf").exists())

    def test_what_a_dictionary_can_hold(self):
        text = 'a "quoted" text: {x} # \\ \n\t\u0001 grüß 🦙 ${NAME}'.replace("${NAME}", "")
        stages = [{"metadata": {"set": {"a.text": text, "a.number": np.int64(7), "a.half": 0.5, "a.yes": True}}}]
        ggufmill.run(self.job(stages=stages, limits={"memory": "64MiB", "threads": 1}))
        metadata = ggufmill.open(self.out).metadata
        self.assertEqual([metadata["a." + key] for key in ("text", "number", "half", "yes")], [text, 7, 0.5, True])
        with self.assertRaises(ggufmill.Error) as caught:
            ggufmill.plan(self.job(stages=[{"metadata": {"set": {"a": object()}}}]))
        self.assertIn("which is of type object", caught.exception.what)

    def test_parameters(self):
        job = self.job(parameters={"TYPE": {"default": "Q8_0"}})
        job["outputs"][0]["quantize"] = "${TYPE}"
        self.assertEqual(ggufmill.plan(job, parameters={"TYPE": "Q4_0"}).outputs[0]["recipe"], "Q4_0")

    def test_a_plan(self):
        plan = ggufmill.plan(self.job())
        self.assertEqual((plan.source["name"], plan.source["architecture"], plan.source["tensors"]), ("tiny", "llama", 11))
        tensor = next(each for each in plan.outputs[0]["tensors"] if each["name"] == "blk.0.ffn_down.weight")
        self.assertEqual(tensor["shape"], (4, 256))
        self.assertEqual((tensor["from"], tensor["to"], tensor["bytes"]), ("F32", "Q8_0", 4 * 272))
        self.assertEqual((plan.problems, plan.warnings, self.names()), ([], [], ["model.gguf"]))
        self.assertGreater(plan.bytes_read, plan.bytes_written)
        self.assertEqual(json.loads(plan.written())["format"], "ggufmill plan")
        report = ggufmill.run(plan)
        self.assertEqual(report["outputs"][0]["tensors"][0]["type"], "Q8_0")
        with self.assertRaises(ggufmill.Error):
            ggufmill.run(plan, set={"outputs.0.gguf": "x"})

    def test_problems(self):
        self.assertEqual(ggufmill.check(self.job()), [])
        job = self.job()
        job["outputs"][0]["quantize"] = "IQ1_S"
        problems = ggufmill.plan(job).problems
        self.assertTrue(problems)
        self.assertTrue(all(each.exit_code == 2 for each in problems))
        self.assertEqual([str(each) for each in ggufmill.check(job)], [str(each) for each in problems])
        with self.assertRaises(ggufmill.Error):
            ggufmill.run(job)
        self.out.write_text("there already")
        self.assertEqual([each.where for each in ggufmill.check(self.job())], [str(self.out)])
        self.assertEqual(ggufmill.check(self.job(), overwrite=True), [])
        with self.assertRaises(ggufmill.Error) as caught:
            ggufmill.run(self.job())
        self.assertEqual(caught.exception.help, "give overwrite=True to replace it, or choose another output")
        self.assertEqual(self.out.read_text(), "there already")

    def test_what_is_wrong_in_a_dictionary_is_shown(self):
        job = self.job()
        job["outputs"].append({"gguf": "x.gguf", "quantise": "Q8_0"})
        job["limits"] = {"thread": 1}
        with self.assertRaises(ggufmill.Error) as caught:
            ggufmill.plan(job)
        error = caught.exception
        self.assertEqual((error.exit_code, len(error.also)), (2, 1))
        self.assertRegex(error.where, r"^job:\d+:\d+$")
        self.assertIn('"quantise": "Q8_0"', error.detail)
        self.assertIn("^", error.detail)
        self.assertEqual(error.help, "did you mean 'quantize'?")
        self.assertIn("thread", str(error))
        found = ggufmill.check(job)
        self.assertEqual([each.also for each in found], [[], []])
        self.assertEqual("\n".join(str(each) for each in found), str(error))

    def test_progress(self):
        seen = []
        ggufmill.run(self.job(), progress=seen.append)
        self.assertTrue(seen)
        self.assertTrue(all(each.bytes_read <= each.bytes_to_read for each in seen))
        self.assertEqual(seen[-1].bytes_read, ggufmill.plan(self.job()).bytes_read)
        self.assertEqual(seen[-1].bytes_written, seen[-1].bytes_to_write)
        self.assertGreaterEqual(seen[-1].seconds, 0)

    def test_an_exception_of_progress_ends_the_run(self):
        def refuse(now):
            raise RuntimeError("enough")

        with self.assertRaisesRegex(RuntimeError, "enough"):
            ggufmill.run(large_job(self.folder), progress=refuse)
        self.assertNotIn("large-out.gguf", self.names())

    def test_runs_at_once(self):
        errors = []

        def run(name):
            try:
                ggufmill.run(self.job(), set={"outputs.0.gguf": self.folder / name})
            except BaseException as error:  # pylint: disable=broad-except
                errors.append(error)

        names = [f"{i}.gguf" for i in range(4)]
        threads = [threading.Thread(target=run, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])
        self.assertEqual(len({(self.folder / name).read_bytes() for name in names}), 1)

    def test_batches(self):
        other = self.folder / "other.gguf"
        subprocess.run([MAKE_GGUF, other, "tiny"], check=True)
        batch = {
            "version": 1,
            "matrix": {"sources": [self.model, other], "recipes": ["Q8_0", "F16"]},
            "outputs": [{"gguf": self.folder / "{name}-{recipe}.gguf", "quantize": "{recipe}"}],
        }
        self.assertEqual(ggufmill.check(batch), [])
        report = ggufmill.run(batch)
        self.assertEqual((report["written"], report["failed"]), (4, 0))
        self.assertTrue((self.folder / "other-F16.gguf").exists())
        with self.assertRaises(ggufmill.Error):
            ggufmill.plan(batch)
        batch["matrix"]["recipes"] = ["Q8_0", "IQ1_S"]
        with self.assertRaises(ggufmill.Error):
            ggufmill.run(batch, overwrite=True)

    def test_a_job_with_steps_is_done_once(self):
        calls = self.folder / "calls"
        cache = unittest.mock.patch.dict(os.environ, GGUFMILL_CACHE=str(self.folder / "cache"))
        job = self.job(after={"command": ["sh", "-c", f"echo x >> '{calls}'"]})
        with cache:
            self.assertEqual(ggufmill.check(job), [])
            self.assertEqual(ggufmill.run(job)["written"], 1)
            self.assertEqual(ggufmill.run(job)["cells"], [])
        self.assertEqual(calls.read_text(), "x\n")
        self.assertIn("missing", str(ggufmill.check(self.job(after={"command": ["./missing"]}), overwrite=True)[0]))

    def test_targets_are_measured(self):
        job = self.job()
        job["outputs"][0]["quantize"] = {"target": {"bits": 6}}
        report = ggufmill.run(job)
        self.assertLessEqual(report["outputs"][0]["bits_per_weight"], 6.01)

    def test_a_model_is_quantized_as_by_the_program(self):
        arguments = [self.model, self.folder / "program.gguf", "Q8_0", "1"]
        subprocess.run([PROGRAM, "quantize", "--quiet", *arguments], check=True)
        types = self.folder / "types.txt"
        types.write_text("ffn_down=Q4_0")
        made = ggufmill.quantize_model(self.model, "Q8_0", self.out, 1)
        self.assertEqual([each["path"] for each in made["files"]], [str(self.out)])
        self.assertEqual(self.out.read_bytes(), (self.folder / "program.gguf").read_bytes())
        pipeline = ggufmill.quantize_model(
            self.model, "Q8_0", self.out, tensor_type=["ffn_down=Q5_0", {"file": types}], emit_pipeline=True
        )["pipeline"]
        self.assertLess(pipeline.index("type: Q5_0"), pipeline.index("type: Q4_0"))
        rows = ggufmill.quantize(np.zeros((2, 32), np.float32), "Q8_0")  # an array
        self.assertEqual(rows.shape, (2, 34))
        with self.assertRaises(ggufmill.UsageError) as caught:
            ggufmill.quantize_model(self.model, "Q8_0", self.out, repack_pattern=["x"])
        self.assertEqual(caught.exception.what, "repack_pattern= needs repack=True")

    def test_the_identity_of_a_plan(self):
        job = self.folder / "job.yaml"
        text = f"version: 1\nsource: {{gguf: '{self.model}'}}\noutputs: [{{gguf: '{self.out}', quantize: TYPE}}]\n"
        job.write_text(text.replace("TYPE", "Q8_0"))
        plan = ggufmill.plan(job)
        job.write_text(text.replace("TYPE", "Q4_0"))
        with self.assertRaises(ggufmill.InputError):
            ggufmill.run(plan)
        self.assertFalse(self.out.exists())
        self.assertEqual(ggufmill.run(ggufmill.plan(job))["outputs"][0]["recipe"], "Q4_0")

    def test_a_job_in_parts(self):
        job = self.job(cluster={"engine": "none", "parts": 2})
        folder = self.folder / "job.job"
        submitted = ggufmill.submit(job, folder=folder)
        self.assertEqual((submitted["parts"], submitted["submitted"]), (2, None))
        self.assertEqual(ggufmill.status(folder)["state"], "needs resume")
        with self.assertRaises(ggufmill.TransientError):
            ggufmill.seal(plan=folder)
        for part in range(2):
            self.assertFalse(ggufmill.part(plan=folder, part=part)["was_done"])
        self.assertEqual([each["was_sealed"] for each in ggufmill.seal(plan=folder)["jobs"]], [False])
        self.assertEqual(ggufmill.status(folder)["state"], "sealed")
        self.assertTrue(ggufmill.status(job)["outputs"][0]["there"])
        self.assertTrue(ggufmill.cancel(folder, discard=True)["was_sealed"])
        self.assertFalse(folder.exists())
        sealed = self.out.read_bytes()
        ggufmill.run(job, overwrite=True)
        self.assertEqual(self.out.read_bytes(), sealed)

    def test_compare(self):
        ggufmill.run(self.job())
        seen = []
        report = ggufmill.compare(self.model, self.out, html=self.folder / "page.html", progress=seen.append)
        self.assertEqual((report["kind"], report["measured"]), ("compare", True))
        down = next(each for each in report["outputs"][0]["tensors"] if each["name"] == "blk.0.ffn_down.weight")
        a, b = (ggufmill.open(path).tensors["blk.0.ffn_down.weight"] for path in (self.model, self.out))
        self.assertAlmostEqual(down["error"]["rmse"], float(np.sqrt(np.mean((a[:] - b[:]) ** 2))), places=7)
        self.assertTrue((self.folder / "page.html").exists())
        with self.assertRaises(ggufmill.Error):
            ggufmill.compare(self.model, self.folder / "none.gguf")

    def test_ctrl_c_ends_a_run_and_the_next_goes_on(self):
        job = large_job(self.folder)
        code = textwrap.dedent(
            f"""
            import os, signal, ggufmill
            sent = []
            def progress(now):
                if now.bytes_written and not sent:
                    sent.append(os.kill(os.getpid(), signal.SIGINT))
            try:
                ggufmill.run({job!r}, progress=progress)
            except KeyboardInterrupt:
                print("interrupted")
            """
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
        self.assertEqual((done.stdout, done.stderr), ("interrupted\n", ""))
        self.assertNotIn("large-out.gguf", self.names())
        report = ggufmill.run(job)
        self.assertIn("large-out.gguf", self.names())
        whole = (self.folder / "large-out.gguf").read_bytes()
        ggufmill.run(job, overwrite=True, resume=False)
        self.assertEqual((self.folder / "large-out.gguf").read_bytes(), whole)
        self.assertEqual(report["kind"], "run")

    def test_a_cancelled_task_ends_its_run_and_the_next_goes_on(self):
        job, seen = large_job(self.folder), []

        async def run_and_cancel():
            task = asyncio.ensure_future(ggufmill.aio.run(job, progress=seen.append))
            while not any(each.bytes_written for each in seen):
                await asyncio.sleep(0.01)
            task.cancel()
            await task

        with self.assertRaises(asyncio.CancelledError):
            asyncio.run(run_and_cancel())
        self.assertNotIn("large-out.gguf", self.names())
        report = asyncio.run(ggufmill.aio.run(job))
        self.assertTrue(report.outputs[0]["tensors"])
        self.assertIn("large-out.gguf", self.names())

    def test_coroutines_return_and_raise_what_the_functions_do(self):
        async def both():
            return await asyncio.gather(
                ggufmill.aio.hash(self.model), ggufmill.aio.inspect(self.folder / "none"), return_exceptions=True
            )

        hashes, error = asyncio.run(both())
        self.assertEqual(hashes, ggufmill.hash(self.model))
        self.assertIsInstance(error, ggufmill.InputError)
        with self.assertRaises(AttributeError):
            ggufmill.aio.nothing  # noqa: B018

    def test_an_exception_of_progress_ends_a_coroutine(self):
        def progress(now):
            raise RuntimeError("enough")

        with self.assertRaisesRegex(RuntimeError, "enough"):
            asyncio.run(ggufmill.aio.run(large_job(self.folder), progress=progress))
        self.assertNotIn("large-out.gguf", self.names())

    def test_a_coroutine_that_is_cancelled_before_it_begins_does_nothing(self):
        called = []

        async def cancel_while_the_thread_is_busy():
            loop, let_go = asyncio.get_running_loop(), threading.Event()
            loop.set_default_executor(concurrent.futures.ThreadPoolExecutor(1))
            loop.run_in_executor(None, let_go.wait)
            task = asyncio.ensure_future(ggufmill.aio.call(called.append, 1))
            await asyncio.sleep(0.05)
            task.cancel()
            loop.call_later(0.1, let_go.set)
            await task

        with self.assertRaises(asyncio.CancelledError):
            asyncio.run(cancel_while_the_thread_is_busy())
        self.assertEqual(called, [])

    def test_progress_true_is_a_bar(self):
        bar = unittest.mock.Mock(total=None, n=0)
        tqdm = unittest.mock.Mock(return_value=bar)
        with unittest.mock.patch.dict(sys.modules, {"tqdm": unittest.mock.Mock(), "tqdm.auto": unittest.mock.Mock(tqdm=tqdm)}):
            ggufmill.run(self.job(), progress=True)
        self.assertEqual(tqdm.call_args.kwargs["desc"], "run")
        bar.close.assert_called_once()
        ggufmill.compare(self.model, self.out, progress=False)
        with unittest.mock.patch.dict(sys.modules, {"tqdm.auto": None}), self.assertRaisesRegex(ggufmill.UsageError, "needs tqdm"):
            ggufmill.compare(self.model, self.out, progress=True)


def large_job(folder):
    """Seconds of work for one thread: 16 Mi weights to a type that takes long."""
    model = str(folder / "large.gguf")
    items = [word for i in range(4) for word in ("tensor", f"blk.{i}.ffn_down.weight", "F32", "4096x1024")]
    subprocess.run([MAKE_GGUF, model, "meta", "general.architecture", "string", "llama", *items], check=True)
    out = {"gguf": str(folder / "large-out.gguf"), "quantize": {"type": "IQ3_S"}}
    return {"version": 1, "source": {"gguf": model}, "outputs": [out], "limits": {"threads": 1, "memory": "64MiB"}}


if __name__ == "__main__":
    unittest.main()
