"""Files of the hub of tests/remote that are sent and read with Xet, by the program with the real hf_xet; huggingface_hub is the other reader."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from space_test import BUILD, SOURCE, TOKEN, find_python

COMMIT = "f" * 40
READ = "import sys, huggingface_hub; print(huggingface_hub.hf_hub_download('org/model', sys.argv[1], local_dir=sys.argv[2]))"


def sum_of(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


class Xet(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder, self.root = temporary.name, f"{temporary.name}/server"
        os.makedirs(f"{self.root}/xet")
        os.makedirs(f"{self.root}/hub/org/model/{COMMIT}")
        with open(f"{self.root}/hub/org/model/refs.json", "w", encoding="utf-8") as file:
            json.dump({"main": COMMIT}, file)
        server = subprocess.Popen([sys.executable, "-B", f"{SOURCE}/tests/remote/server.py", self.root], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        self.addCleanup(server.stdin.close)
        self.environment = {**os.environ, "HF_ENDPOINT": f"http://127.0.0.1:{server.stdout.readline().split()[0]}", "HF_TOKEN": TOKEN,
                            "HF_HOME": f"{self.folder}/hf", "HOME": self.folder, "GGUFMILL_CACHE": f"{self.folder}/cache", "GGUFMILL_PYTHON": PYTHON}
        self.write_model(1)
        self.write_job("source: {gguf: model.gguf}\noutputs: [{gguf: out/a.gguf}, {gguf: out/q.gguf, quantize: Q8_0}]\n"
                       "card: {path: out/README.md, base_model: org/base}\nupload: {to: 'hf://org/model'}\n")

    def write_model(self, seed, rows=512):
        spec = {"metadata": [], "tensors": [{"name": f"blk.{layer}.ffn_up.weight", "type": "F16", "dims": [1024, rows], "dist": "normal",
                                             "seed": seed if layer == 3 else layer + 10} for layer in range(4)]}
        with open(f"{self.folder}/spec.json", "w", encoding="utf-8") as file:
            json.dump(spec, file)
        subprocess.run([f"{BUILD}/bin/ggufmill-synth", "model", "spec.json", "model.gguf"], cwd=self.folder, check=True)

    def write_job(self, text):
        with open(f"{self.folder}/job.yaml", "w", encoding="utf-8") as file:
            file.write("version: 1\n" + text)

    def run_job(self, code=0, *options, **variables):
        done = subprocess.run([f"{BUILD}/bin/ggufmill", "run", "job.yaml", *options], cwd=self.folder, capture_output=True, text=True,
                              env={**self.environment, **variables}, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertNotIn(variables.get("HF_TOKEN", TOKEN), done.stdout + done.stderr)
        return done.stderr

    def requests(self, start):
        with open(f"{self.root}/log.jsonl", encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        return [line for line in lines if line.get("path", "").startswith(start)]

    def sent_bytes(self):
        return sum(int(each["headers"]["content-length"]) for each in self.requests("/xet/v1/xorbs"))

    def read(self, name):
        """Returns the path of a file of the repository that huggingface_hub has fetched."""
        folder = tempfile.mkdtemp(dir=self.folder)
        done = subprocess.run([PYTHON, "-c", READ, name, folder], env=self.environment, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return f"{folder}/{name}"

    def test_files_are_sent_with_xet_and_read_by_huggingface_hub(self):
        self.run_job()
        self.assertTrue(self.requests("/xet/v1/xorbs"))
        self.assertFalse(self.requests("/lfs/"))
        for name in ("a.gguf", "q.gguf"):
            self.assertEqual(sum_of(self.read(name)), sum_of(f"{self.folder}/out/{name}"))
        first = self.sent_bytes()
        self.assertIn("nothing to do", self.run_job())
        self.assertEqual(self.sent_bytes(), first)
        # Another version, of which three quarters are the same.
        self.write_model(2)
        self.run_job(0, "--overwrite")
        self.assertEqual(sum_of(self.read("a.gguf")), sum_of(f"{self.folder}/out/a.gguf"))
        self.assertLess(self.sent_bytes() - first, 0.6 * first)

    def test_lfs_is_used_where_the_hub_or_the_user_wants_it(self):
        self.run_job(HF_HUB_DISABLE_XET="1")
        self.assertTrue(self.requests("/lfs/"))
        self.assertFalse(self.requests("/xet/"))
        shutil.rmtree(f"{self.root}/xet")
        self.write_model(3)
        self.run_job(0, "--overwrite")
        self.assertFalse(self.requests("/xet/"))

    def test_a_file_that_is_too_large_for_lfs_is_sent(self):
        self.write_model(1, 6 << 10)  # 48 MiB, and LFS takes 40
        self.assertIn("the hub refuses 'a.gguf'", self.run_job(6, HF_HUB_DISABLE_XET="1"))
        self.run_job()
        self.assertEqual(sum_of(self.read("a.gguf")), sum_of(f"{self.folder}/out/a.gguf"))

    def test_outputs_on_the_hub_are_sent(self):
        self.write_job("source: {gguf: model.gguf}\noutputs: [{gguf: 'hf://org/model/a.gguf'}, {gguf: 'hf://org/model/q.gguf', quantize: Q8_0}]\n")
        self.run_job()
        self.assertTrue(self.requests("/xet/v1/xorbs"))
        self.assertFalse(self.requests("/lfs/"))
        self.write_job("source: {gguf: model.gguf}\noutputs: [{gguf: a.gguf}, {gguf: q.gguf, quantize: Q8_0}]\n")
        self.run_job()
        for name in ("a.gguf", "q.gguf"):
            self.assertEqual(sum_of(self.read(name)), sum_of(f"{self.folder}/{name}"))

    def read_back(self, code=0, **variables):
        """A run whose source is on the hub. Returns what it printed."""
        self.write_job("source: {gguf: 'hf://org/model/a.gguf'}\noutputs: [{gguf: again.gguf}]\n")
        said = self.run_job(code, "--overwrite", **variables)
        if code == 0:
            self.assertEqual(sum_of(f"{self.folder}/again.gguf"), sum_of(f"{self.folder}/out/a.gguf"))
        return said

    def test_sources_are_read_where_the_hub_redirects_to(self):
        self.run_job()
        self.read_back(HF_HUB_DISABLE_XET="1")
        self.assertTrue(self.requests("/bridge/"))
        self.assertFalse(self.requests("/xet/v1/reconstructions/"))

    def test_sources_are_read_with_xet_where_the_hub_redirects_to_nothing(self):
        self.run_job()
        with open(f"{self.root}/xet/no-bridge", "w", encoding="utf-8"):
            pass
        self.read_back()
        self.assertTrue(self.requests("/xet/v1/reconstructions/"))
        said = self.read_back(6, HF_HUB_DISABLE_XET="1")
        self.assertIn("hf://org/model@", said)
        self.assertIn("the hub offers the file by Xet only", said)
        self.assertIn("HF_HUB_DISABLE_XET is set", said)
        self.assertFalse([line for line in self.requests("/nowhere/") if "authorization" in line["headers"]])

    def test_the_library_is_found_where_the_user_has_it_and_not_in_the_current_folder(self):
        with open(f"{SOURCE}/pipeline/io/remote/xet_upload.py", encoding="utf-8") as file:
            command = [sys.executable, "-E", "-c", file.read()]
        evil = f"{self.folder}/evil"
        os.makedirs(evil)
        with open(f"{evil}/hf_xet.py", "w", encoding="utf-8") as file:
            file.write("raise SystemExit(9)")
        variables = {**os.environ, "PYTHONPATH": evil, "HOME": self.folder}
        self.assertNotEqual(subprocess.run(command, cwd=evil, env=variables, check=False).returncode, 9)
        if sys.prefix == sys.base_prefix:  # a virtual environment has no packages of the user
            asked = [sys.executable, "-c", "import site; print(site.getusersitepackages())"]
            own = subprocess.run(asked, env=variables, check=True, capture_output=True, text=True).stdout.strip()
            os.makedirs(own)
            shutil.copy(f"{evil}/hf_xet.py", own)
            self.assertEqual(subprocess.run(command, cwd=self.folder, env=variables, check=False).returncode, 9)

    def test_a_store_that_refuses_is_an_error_and_the_next_run_continues(self):
        with open(f"{self.root}/fault", "w", encoding="utf-8") as file:
            file.write("denied 1 1000 xet")
        said = self.run_job(6)
        self.assertIn("could not be sent by Xet", said)
        self.assertIn("HF_HUB_DISABLE_XET=1", said)
        os.remove(f"{self.root}/fault")
        self.run_job()
        self.assertEqual(sum_of(self.read("a.gguf")), sum_of(f"{self.folder}/out/a.gguf"))


if __name__ == "__main__":
    PYTHON = find_python()
    unittest.main()
