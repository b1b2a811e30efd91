"""The manual's notebook runs and prints what it holds. KVSCOPE_UPDATE_GOLDEN=1 writes what it prints: read it.

With --jupyter its cells run in Jupyter's own kernel (nbclient, ipykernel) instead of in this process.
"""

import ast
import contextlib
import io
import json
import os
import pathlib
import sys
import unittest
from typing import Any

MANUAL = pathlib.Path(__file__).resolve().parents[2] / "resources" / "manual"
NOTEBOOK = MANUAL / "python.ipynb"


def result_of(source: str, names: dict[str, Any]) -> Any:
    """Runs a cell as a notebook does; the value of a last line that is an expression."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), str(NOTEBOOK), "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names)


def outputs_of(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        value = result_of(source, names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": lines(printed.getvalue())})
    if value is not None:
        data = {"text/plain": lines(repr(value))}
        if hasattr(value, "_repr_svg_"):
            data = {"image/svg+xml": lines(value._repr_svg_()), **data}
        outputs.append({"data": data, "execution_count": None, "metadata": {}, "output_type": "execute_result"})
    return outputs


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def plain(outputs: list[dict[str, Any]]) -> list[Any]:
    """What a reader sees as text, and that there is a picture; one string is the same as lines."""
    joined = [output.get("text") or output["data"] for output in outputs]
    whole = [{"text": part} if isinstance(part, (str, list)) else part for part in joined]
    return [{key: key == "image/svg+xml" or "".join(value) for key, value in part.items()} for part in whole]


class NotebookTest(unittest.TestCase):
    maxDiff = 2000

    def setUp(self) -> None:
        self.notebook = json.loads(NOTEBOOK.read_text())
        self.cells = [cell for cell in self.notebook["cells"] if cell["cell_type"] == "code"]

    def in_jupyter(self) -> list[list[dict[str, Any]]]:
        import nbclient
        import nbformat

        notebook = nbformat.read(NOTEBOOK, as_version=4)
        nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(MANUAL)}}).execute()
        return [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]

    def in_this_process(self) -> list[list[dict[str, Any]]]:
        names: dict[str, Any] = {}
        before = pathlib.Path.cwd()
        os.chdir(MANUAL)
        try:
            return [outputs_of("".join(cell["source"]), names) for cell in self.cells]
        finally:
            os.chdir(before)

    def test_it_prints_what_it_holds(self) -> None:
        made = self.in_jupyter() if JUPYTER else self.in_this_process()
        if os.environ.get("KVSCOPE_UPDATE_GOLDEN") == "1":
            for cell, outputs in zip(self.cells, made, strict=True):
                cell["outputs"] = outputs
            NOTEBOOK.write_text(json.dumps(self.notebook, indent=1, ensure_ascii=False) + "\n")
        self.assertGreater(len(made), 5)
        for cell, outputs in zip(self.cells, made, strict=True):
            with self.subTest(cell="".join(cell["source"])):
                self.assertEqual(plain(outputs), plain(cell["outputs"]))


JUPYTER = "--jupyter" in sys.argv
if __name__ == "__main__":
    unittest.main(argv=[word for word in sys.argv if word != "--jupyter"])
