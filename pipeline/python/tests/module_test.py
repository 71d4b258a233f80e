"""Tests of the examples in the module's README, its type stubs, and Ctrl-C."""

import ast
import inspect
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest

import ggufmill

HERE = os.path.dirname(os.path.abspath(__file__))
MAKE_GGUF = os.environ["GGUFMILL_MAKE_GGUF"]


class Readme(unittest.TestCase):
    def test_its_examples_run(self):
        """Each block of Python in a process of its own, in a folder with the files that they name."""
        with open(os.path.join(HERE, "../README.md"), encoding="utf-8") as file:
            blocks = re.findall(r"^```python\n(.*?)^```", file.read(), re.MULTILINE | re.DOTALL)
        self.assertGreaterEqual(len(blocks), 2)
        for i, block in enumerate(blocks):
            with self.subTest(block=i), tempfile.TemporaryDirectory() as folder:
                os.mkdir(f"{folder}/out")
                subprocess.run([MAKE_GGUF, f"{folder}/model.gguf", "tiny"], check=True)
                done = subprocess.run([sys.executable, "-c", block], cwd=folder, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stderr, "")
                for line in re.findall(r"print\(error\.\w+\) +# (.*)", block):
                    self.assertIn(line, done.stdout)


class Stubs(unittest.TestCase):
    """__init__.pyi, and the class in _operations.py for operations, have what the module has, with the same parameters."""

    def setUp(self):
        folder = os.path.dirname(ggufmill.__file__)
        self.assertTrue(os.path.exists(os.path.join(folder, "py.typed")))
        with open(os.path.join(folder, "__init__.pyi"), encoding="utf-8") as file:
            self.stub = {each.name: each for each in ast.parse(file.read()).body if hasattr(each, "name")}
        with open(os.path.join(folder, "_operations.py"), encoding="utf-8") as file:
            methods = next(each for each in ast.parse(file.read()).body if isinstance(each, ast.ClassDef)).body
        for method in methods:
            if isinstance(method, ast.FunctionDef):
                method.args.args.pop(0)  # the functions of the module have no self
                self.stub[method.name] = method

    def test_names(self):
        self.assertEqual(sorted(self.stub), sorted(ggufmill.__all__))

    def test_parameters(self):
        for name, node in self.stub.items():
            thing = getattr(ggufmill, name)
            self.assertTrue(thing.__doc__, f"{name} has no description")
            if isinstance(node, ast.FunctionDef):
                self.assert_same(node, thing)
                continue
            for each in node.body:
                if not isinstance(each, ast.FunctionDef):
                    continue
                self.assertTrue(hasattr(thing, each.name), f"{name}.{each.name}")
                if not any(isinstance(it, ast.Name) and it.id == "property" for it in each.decorator_list):
                    self.assert_same(each, getattr(thing, each.name))

    def assert_same(self, node, function):
        if not inspect.isfunction(function):
            return  # functions of the extension do not expose their parameters
        arguments = node.args
        rest = [arguments.vararg] if arguments.vararg else []
        named = [arguments.kwarg] if arguments.kwarg else []
        places = [*arguments.posonlyargs, *arguments.args, *rest, *arguments.kwonlyargs, *named]
        names = [each.arg for each in places]
        self.assertEqual(names, list(inspect.signature(function).parameters), node.name)


class CtrlC(unittest.TestCase):
    def assert_interrupted(self, work):
        """`work` goes on for a minute or more; it is ended a moment after it has begun."""
        code = textwrap.dedent(
            """
            import os, signal, threading, time
            import numpy as np
            import ggufmill
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
            """
        ) + textwrap.indent(textwrap.dedent(work), "    ")
        code += "\nexcept KeyboardInterrupt:\n    print('interrupted')\n"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)
        self.assertEqual((done.stdout.strip(), done.stderr), ("interrupted", ""))

    def test_quantize(self):
        self.assert_interrupted(
            """
            values = np.ones((20000, 4096), np.float32)
            ggufmill.Context(isa="reference").quantize(values, "IQ2_XXS", np.ones(4096), threads=1)
            """
        )

    def test_the_library_keeps_its_control_wherever_it_comes(self):
        """Raises it at each line that the caller's thread executes; the operation may still run then."""
        code = textwrap.dedent(
            """
            import gc, sys, time
            from ggufmill import _library
            free = _library._control_free

            def interrupted_at(number):
                events, left = [], [number]
                def work(control):
                    events.append("begin")
                    time.sleep(0.02)
                    events.append("end")
                def freed(control):
                    events.append("free")
                    free(control)
                def trace(frame, event, _):
                    if not frame.f_code.co_filename.endswith("_library.py") or frame.f_code.co_name == "__del__":
                        return None
                    left[0] -= event == "line"
                    if event == "line" and left[0] == 0:
                        raise KeyboardInterrupt
                    return trace
                _library._control_free = freed
                try:
                    sys.settrace(trace)
                    _library.interruptible(work)
                except KeyboardInterrupt:
                    pass
                finally:
                    sys.settrace(None)
                time.sleep(0.04)
                gc.collect()
                return events, left[0] > 0

            number, is_complete = 0, False
            while not is_complete:
                number += 1
                events, is_complete = interrupted_at(number)
                if events not in ([], ["free"], ["begin", "end", "free"]):
                    print(number, events)
            assert number > 10
            """
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)
        self.assertEqual((done.stdout, done.stderr), ("", ""))

    def test_the_handler_of_a_program_is_asked(self):
        code = textwrap.dedent(
            """
            import os, signal, threading
            import numpy as np
            import ggufmill
            seen = []
            signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1)).start()
            while not seen:
                rows = ggufmill.quantize(np.ones((2000, 4096), np.float32), "Q4_K")
            assert rows.shape == (2000, 2304)
            """
        )
        subprocess.run([sys.executable, "-c", code], check=True, timeout=50)


if __name__ == "__main__":
    unittest.main()
