"""Build the wheel from the CMake build with setuptools. GGUFMILL_BUILD_DIR names a build folder to use."""

import os
import re
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.join(HERE, "../..")
if not os.path.exists(os.path.join(TREE, "CMakeLists.txt")):
    sys.exit("ggufmill: the wheel is built from the source tree: `python3 -m build --wheel --no-isolation` in pipeline/python")
os.makedirs(os.path.join(TREE, "build/wheel"), exist_ok=True)


def version():
    with open(os.path.join(TREE, "CMakeLists.txt"), encoding="utf-8") as file:
        return re.search(r"^project\(ggufmill VERSION ([0-9.]+)", file.read(), re.MULTILINE)[1]


class BuildWithCMake(build_ext):
    """Build the extension and the kernel modules into the package."""

    def run(self):
        build = os.environ.get("GGUFMILL_BUILD_DIR")
        if not build:
            build = os.path.join(TREE, "build/wheel/cmake")
            options = ["-DCMAKE_BUILD_TYPE=Release", f"-DPython3_EXECUTABLE={sys.executable}"]
            subprocess.run(["cmake", "-S", TREE, "-B", build, *options], check=True)
        jobs = str(len(os.sched_getaffinity(0)))
        subprocess.run(["cmake", "--build", build, "--target", "ggufmill_python", "-j", jobs], check=True)
        target = os.path.dirname(self.get_ext_fullpath("ggufmill._native"))
        install = ["cmake", "--install", build, "--component", "wheel", "--strip", "--prefix", target]
        subprocess.run(install, check=True)

    def get_outputs(self):
        package = os.path.dirname(self.get_ext_fullpath("ggufmill._native"))
        return [os.path.join(folder, name) for folder, _, names in os.walk(package) for name in names]


setup(
    version=version(),
    packages=["ggufmill"],
    package_data={"ggufmill": ["py.typed", "__init__.pyi"]},
    ext_modules=[Extension("ggufmill._native", [])],
    cmdclass={"build_ext": BuildWithCMake},
)
