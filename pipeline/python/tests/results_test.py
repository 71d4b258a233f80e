"""Results of operations: as dictionaries, as text, and in notebooks."""

import ast
import asyncio
import copy
import html
import inspect
import json
import os
import pathlib
import pickle
import re
import unittest

import ggufmill
from folder_case import ModelCase



class Results(ModelCase):
    def test_a_result_is_a_dictionary_with_attributes(self):
        result = ggufmill.hash(self.model)
        self.assertIsInstance(result, ggufmill.Result)
        self.assertEqual(result.hashes, result["hashes"])
        self.assertEqual(json.loads(json.dumps(result)), result)
        for twin in (copy.copy(result), pickle.loads(pickle.dumps(result))):
            self.assertEqual(twin, result)
        with self.assertRaisesRegex(AttributeError, "no member 'hash': it has model, hashes, warnings"):
            result.hash
        with self.assertRaisesRegex(AttributeError, r"result\['model'\] = "):
            result.model = "other.gguf"

    def test_its_text_has_the_first_items_of_each_list(self):
        result = ggufmill.Result(None, {"name": "a", "list": [{"x": 1, "y": [1, 2]}] * 7, "none": None, "empty": [], "o": {"p": "q"}})
        item = "  - x: 1\n    y: [1, 2]\n"
        self.assertEqual(repr(result), "name: a\nlist:\n" + item * 5 + "  … 2 more\nnone: null\nempty: []\no:\n  p: q")
        self.assertEqual(repr(ggufmill.Result(None, {})), "{}")

    def test_a_notebook_shows_a_table_of_markup_free_text(self):
        shown = ggufmill.Result(None, {"name": "<b>", "list": [{"x": 1}, {"x": 2}], "mixed": [1, {"y": 2}]})._repr_html_()
        self.assertIn("<tr><th>name</th><td>&lt;b&gt;</td></tr>", shown)
        self.assertIn("<summary>2 items</summary><table><tr><th>x</th></tr><tr><td>1</td></tr><tr><td>2</td></tr></table>", shown)

    def test_a_notebook_shows_the_page_of_a_report(self):
        out, page = self.folder / "out.gguf", self.folder / "page.html"
        job = {"version": 1, "source": {"gguf": self.model}, "outputs": [{"gguf": out, "quantize": "Q8_0"}]}
        report = ggufmill.run({**job, "report": {"html": page}})
        shown = html.unescape(re.fullmatch(r'<iframe srcdoc="([^"]*)".*</iframe>', report._repr_html_(), re.S).group(1))
        data = re.compile(r'(<script type="application/json"[^>]*>)(.*?)</script>', re.S)
        written = page.read_text()
        self.assertEqual(data.sub("", shown), data.sub("", written))
        mine, theirs = (json.loads(data.search(each).group(2)) for each in (shown, written))
        self.assertEqual(mine["outputs"], theirs["outputs"])

    def test_the_example_notebook(self):
        notebook = json.loads((pathlib.Path(__file__).parents[1] / "examples" / "quantize.ipynb").read_text(encoding="utf-8"))
        names, before = {}, os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)
        shown = [run_cell("".join(cell["source"]), names) for cell in notebook["cells"] if cell["cell_type"] == "code"]
        self.assertLessEqual({"model-Q4_K_M.gguf", "model-Q8_0.gguf"}, set(os.listdir("out")))
        self.assertTrue(any("_repr_html_" in dir(each) and "iframe" in each._repr_html_() for each in shown))


def run_cell(source, names):
    """Run a cell as a notebook does, with `await` at its top level. Return the value of its last line."""
    tree = ast.parse(source)
    value = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    exec(compile(tree, "cell", "exec", flags), names)
    if value is None:
        return None
    result = eval(compile(ast.Expression(value.value), "cell", "eval", flags), names)
    return asyncio.run(result) if inspect.iscoroutine(result) else result


if __name__ == "__main__":
    unittest.main()
