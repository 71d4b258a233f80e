"""Tests of the files that pip gets: the wheel of the build and the sources, made from pyproject.toml. tests/dist tests those of ./dev dist."""

import email
import glob
import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import unittest
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.normpath(os.path.join(HERE, "../../.."))
BUILD = os.environ["GGUFMILL_BUILD_DIR"]
TOOLS = os.path.join(SOURCE, "build/python-tools/bin/python")


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def make(kind, folder, *options):
    """Make the distribution; return its path."""
    run(TOOLS, "-m", "build", f"--{kind}", "--no-isolation", "--skip-dependency-check", "--outdir", folder, *options, SOURCE)
    (made,) = glob.glob(f"{folder}/*")
    return made


def setting(pattern, path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return re.search(pattern, file.read())[1]


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.wheel = make("wheel", f"{cls.folder.name}/wheel", f"-Ccmake.define.GGUFMILL_BUILD={BUILD}")
        cls.version = setting(r"project\(ggufmill VERSION ([0-9.]+)", "CMakeLists.txt")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_it_has_the_package_the_library_the_program_and_the_modules(self):
        self.assertRegex(os.path.basename(self.wheel), rf"^ggufmill-{self.version}-py3-none-linux_\w+\.whl$")
        with zipfile.ZipFile(self.wheel) as file:
            entries = {entry.filename: entry for entry in file.infolist() if not entry.is_dir()}
        folders = {os.path.dirname(name) for name in entries}
        info = f"ggufmill-{self.version}.dist-info"
        self.assertEqual(folders, {"ggufmill", "ggufmill/bin", "ggufmill/calibrate", "ggufmill/lib", "ggufmill/lib/ggufmill", info, f"{info}/licenses"})
        for folder in ("ggufmill", "ggufmill/calibrate"):
            for name in os.listdir(f"{SOURCE}/pipeline/python/{folder}"):
                if name.endswith((".in", ".jsonl", ".py", ".pyi", ".typed")):
                    self.assertIn(f"{folder}/{name.removesuffix('.in')}", entries)
        self.assertTrue(entries["ggufmill/bin/ggufmill"].external_attr >> 16 & 0o100, "is not executable")
        modules = {name for name in entries if name.startswith("ggufmill/lib/ggufmill/")}
        self.assertEqual({os.path.basename(name) for name in modules}, set(os.listdir(f"{BUILD}/lib/ggufmill")))
        self.assertLessEqual({f"{info}/licenses/LICENSE", f"{info}/licenses/NOTICE"}, set(entries))

    def test_its_metadata(self):
        info = f"ggufmill-{self.version}.dist-info"
        with zipfile.ZipFile(self.wheel) as file:
            metadata = email.message_from_bytes(file.read(f"{info}/METADATA"))
            self.assertIn("ggufmill = ggufmill.__main__:main", file.read(f"{info}/entry_points.txt").decode())
        self.assertEqual((metadata["Name"], metadata["Version"]), ("ggufmill", self.version))
        self.assertEqual(metadata["License-Expression"], "MIT")
        self.assertEqual(metadata["Requires-Python"], ">=" + setting(r"GGUFMILL_PYTHON_MINIMUM ([0-9.]+)", "CMakeLists.txt"))
        self.assertEqual(metadata.get_all("Provides-Extra"), ["arrays", "calibrate", "hub"])
        self.assertIn("Typing :: Typed", metadata.get_all("Classifier"))
        self.assertTrue(all("; extra ==" in each for each in metadata.get_all("Requires-Dist")), "needs nothing by itself")
        self.assertIn("# ggufmill in Python", metadata.get_payload())
        run(TOOLS, "-m", "twine", "check", "--strict", self.wheel)
        run(TOOLS, "-m", "check_wheel_contents", "--config", f"{SOURCE}/pyproject.toml", self.wheel)

    def test_it_installs_and_runs(self):
        folder = self.folder.name
        run(TOOLS, "-m", "pip", "--disable-pip-version-check", "install", "--no-deps", "--no-index", "--target", f"{folder}/site", self.wheel)
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
            """
        options = {"cwd": folder, "env": {**os.environ, "PYTHONPATH": f"{folder}/site"}}
        run(sys.executable, "-c", textwrap.dedent(code), f"{folder}/site", **options)
        printed = run(sys.executable, "-m", "ggufmill", "kernels", **options)
        self.assertIn(f"{folder}/site/ggufmill/lib/ggufmill/reference.so", printed)
        self.assertIn(self.version, run(f"{folder}/site/bin/ggufmill", "--version", **options))


class Sources(unittest.TestCase):
    def test_they_are_complete(self):
        with tempfile.TemporaryDirectory() as folder:
            sdist = make("sdist", folder)
            run(TOOLS, "-m", "twine", "check", "--strict", sdist)
            with tarfile.open(sdist) as file:
                packed = {name.partition("/")[2] for name in file.getnames()}
        self.assertFalse({name for name in packed if name.startswith("build/")})
        if not os.path.isdir(f"{SOURCE}/.git"):
            self.skipTest("no git checkout to compare the sources with")
        tracked = run("git", "-C", SOURCE, "ls-files").splitlines()
        self.assertEqual({name for name in tracked if os.path.exists(f"{SOURCE}/{name}")} - packed, set())


if __name__ == "__main__":
    if not os.path.exists(TOOLS) or importlib.util.find_spec("numpy") is None:
        print("skipped: no build/python-tools, which ./dev test installs from PyPI")
        sys.exit(77)
    unittest.main()
