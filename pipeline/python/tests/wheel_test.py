"""A wheel of the build, installed into an empty folder. That of ./dev dist, with all libraries, is tested by tests/dist."""

import glob
import importlib.util
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
MAKER = os.path.join(HERE, "../../packages/wheel.py")
BUILD = os.environ["GGUFMILL_BUILD_DIR"]


class Wheel(unittest.TestCase):
    def test_it_installs_and_runs(self):
        if importlib.util.find_spec("pip") is None:
            self.skipTest(f"{sys.executable} has no pip (apt-get install python3-pip)")
        with open(os.path.join(BUILD, "CMakeCache.txt"), encoding="utf-8") as file:
            (version,) = [line.split("=")[1].strip() for line in file if line.startswith("CMAKE_PROJECT_VERSION:")]
        for wheel in glob.glob(f"{BUILD}/ggufmill-*-linux_*.whl"):
            os.remove(wheel)
        with tempfile.TemporaryDirectory() as folder:
            self.run_in(folder, sys.executable, MAKER, BUILD, version, "--unbundled")
            (wheel,) = glob.glob(f"{BUILD}/ggufmill-*-linux_*.whl")
            self.assertRegex(os.path.basename(wheel), r"^ggufmill-\d+\.\d+\.\d+-py3-none-linux_\w+\.whl$")
            pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
            self.run_in(folder, *pip, "install", "--no-deps", "--no-index", "--target", f"{folder}/site", wheel)
            code = """
                import os, sys
                import numpy as np
                import ggufmill
                here = os.path.dirname(ggufmill.__file__)
                assert here.startswith(sys.argv[1]), here
                with open("/proc/self/maps") as maps:
                    libraries = {line.split()[-1] for line in maps if "ggufmill" in line}
                assert libraries and all(each.startswith(here) for each in libraries), libraries
                assert ggufmill.Context().isa != "reference"
                rows = ggufmill.quantize(np.ones((2, 256), np.float32), "Q4_K")
                assert ggufmill.dequantize(rows, "Q4_K").shape == (2, 256)
                assert os.path.exists(os.path.join(here, "py.typed"))
                """
            environment = {**os.environ, "PYTHONPATH": f"{folder}/site"}
            self.run_in(folder, sys.executable, "-c", textwrap.dedent(code), f"{folder}/site", env=environment)
            printed = self.run_in(folder, sys.executable, "-m", "ggufmill", "kernels", env=environment)
            self.assertIn(f"{folder}/site/ggufmill/lib/ggufmill/reference.so", printed)
            self.assertIn(version, self.run_in(folder, f"{folder}/site/bin/ggufmill", "--version", env=environment))

    def run_in(self, folder, *command, env=None):
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout


if __name__ == "__main__":
    unittest.main()
