"""run.py NAME: NAME_test.py of this folder. Exit code 77, which ctest takes for skipped, where packages are missing."""

import importlib.util
import os
import runpy
import sys

NEEDED = {"numpy": "apt-get install python3-numpy"}
if sys.argv[1] in ("calibrate", "encode"):
    NEEDED.update({each: f"pip install {each}" for each in ("torch", "transformers", "safetensors")})
for package, how in NEEDED.items():
    if importlib.util.find_spec(package) is None:
        print(f"skipped: {sys.executable} has no {package} ({how})")
        sys.exit(77)

name = sys.argv.pop(1)
runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}_test.py"), run_name="__main__")
