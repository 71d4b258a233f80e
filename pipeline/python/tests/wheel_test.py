"""A wheel of the build, installed into an empty folder: it has all that it needs, and nothing is made in the tree."""

import glob
import importlib.util
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")


class Wheel(unittest.TestCase):
    def test_it_installs_and_runs(self):
        for needed in ("pip", "setuptools", "wheel"):
            if importlib.util.find_spec(needed) is None:
                self.skipTest(f"{sys.executable} has no {needed} (apt-get install python3-{needed})")
        before = sorted(os.listdir(SOURCE))
        with tempfile.TemporaryDirectory() as folder:
            pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
            self.run_in(folder, *pip, "wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", folder, SOURCE)
            (wheel,) = glob.glob(f"{folder}/ggufmill-*.whl")
            self.assertRegex(os.path.basename(wheel), r"^ggufmill-\d+\.\d+\.\d+-cp3\d+-cp3\d+-linux_\w+\.whl$")
            self.run_in(folder, *pip, "install", "--no-deps", "--no-index", "--target", f"{folder}/site", wheel)
            code = """
                import os, sys
                import numpy as np
                import ggufmill
                here = os.path.dirname(ggufmill.__file__)
                assert here.startswith(sys.argv[1]), here
                with open("/proc/self/maps") as maps:
                    libraries = {line.split()[-1] for line in maps if "ggufmill" in line}
                assert all(each.startswith(here) for each in libraries), libraries
                with_modules = ggufmill.Context()
                assert len(os.listdir(os.path.join(here, "lib/ggufmill"))) > 1
                assert with_modules.isa != "reference"
                rows = ggufmill.quantize(np.ones((2, 256), np.float32), "Q4_K")
                assert ggufmill.dequantize(rows, "Q4_K").shape == (2, 256)
                assert os.path.exists(os.path.join(here, "py.typed"))
                """
            environment = {**os.environ, "PYTHONPATH": f"{folder}/site"}
            self.run_in(folder, sys.executable, "-c", textwrap.dedent(code), f"{folder}/site", env=environment)
        self.assertEqual(sorted(os.listdir(SOURCE)), before)

    def run_in(self, folder, *command, env=None):
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
