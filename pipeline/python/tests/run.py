"""run.py NAME: NAME_test.py of this folder. Exit code 77, which ctest takes for skipped, where numpy is missing."""

import os
import runpy
import sys

try:
    import numpy
except ImportError:
    print(f"skipped: {sys.executable} has no numpy (apt-get install python3-numpy)")
    sys.exit(77)

name = sys.argv.pop(1)
runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}_test.py"), run_name="__main__")
