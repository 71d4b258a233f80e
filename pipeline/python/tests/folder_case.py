"""Test cases with a folder of their own."""

import os
import pathlib
import subprocess
import tempfile
import unittest


class FolderCase(unittest.TestCase):
    """A test case with an empty folder, as text."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)


class ModelCase(FolderCase):
    """A test case with a folder that contains a small model, both as pathlib.Path."""

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.folder)
        self.model = self.folder / "model.gguf"
        subprocess.run([os.environ["GGUFMILL_MAKE_GGUF"], self.model, "tiny"], check=True)
