"""Figures. The program `kvscope` draws them in a process of its own, because Python may have loaded another Qt."""

from __future__ import annotations

import os
import pathlib
import reprlib
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from os import PathLike
from typing import Any

from kvscope import _core, arguments
from kvscope.captures import Capture


@dataclass(frozen=True)
class Figure:
    """A figure as SVG; notebooks show it."""

    svg: str
    finding: str  #: the view's finding in words
    words: tuple[str, ...]  #: the program's arguments
    folder: str  #: the folder in which the program ran

    def save(self, path: str | PathLike[str]) -> None:
        """Writes FILE.svg, FILE.png or FILE.pdf, as the name says."""
        name = arguments.path(path, "path")
        if pathlib.Path(name).suffix.lower() == ".svg":
            _core.write(name, self.svg)
        else:
            _run((*self.words, "--out", os.path.abspath(name)), self.folder)

    def _repr_svg_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        """The finding."""
        return self.finding

    def __repr__(self) -> str:
        """The view and its finding."""
        return f"<kvscope.Figure {self.words[1]}: {self.finding.strip()}>"


def _program() -> str:
    """The program that KVSCOPE_PROGRAM names, else the one that the module was built with, else the one on the path."""
    if named := os.environ.get("KVSCOPE_PROGRAM"):
        return named
    beside = pathlib.Path(__file__).parents[2] / "bin" / "kvscope"
    found = str(beside) if beside.is_file() else shutil.which("kvscope")
    if not found:
        arguments.fail(
            "the program kvscope, which draws figures, is not beside the module and not on the path",
            "plot",
            "Build it, or set KVSCOPE_PROGRAM",
        )
    return found


def _run(words: tuple[str, ...], folder: str) -> str:
    """What the program prints. Its error message, without its name, becomes the error's sentence."""
    try:
        done = subprocess.run([_program(), *words], cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        arguments.fail(f"the program cannot be run ({error})", "plot", "Build it, or set KVSCOPE_PROGRAM to its path")
    if done.returncode != 0:
        arguments.fail(done.stderr.removeprefix("kvscope: ").rstrip(" .\n"), "", "")
    return done.stdout


def _option(name: str, value: Any) -> list[str]:
    """`value` as an option of the command line; several values repeat it."""
    if isinstance(value, bool):
        return [name] if value else []
    if isinstance(value, (list, tuple)):
        return [word for one in value for word in _option(name, one)]
    return [name, str(value)]


def plot(view: str, capture: Capture | str | PathLike[str], **options: Any) -> Figure:
    """Draws a view. Keywords are the options of `kvscope plot`: policy, layer, kv_head, size ..."""
    if "out" in options:
        arguments.fail("plot returns the figure", "out", "Save it with plot(...).save(FILE)")
    if not isinstance(capture, (Capture, str, PathLike)):
        remedy = "Give a kvscope.Capture or the path of one; arrays have no prompt to draw"
        arguments.fail(f"{reprlib.repr(capture)} is no capture", "capture", remedy)
    path = capture.path if isinstance(capture, Capture) else os.fspath(capture)
    words = ["plot", arguments.text(view, "view", "Give the id of a view; `kvscope views` lists them"), path]
    for name, value in options.items():
        words += _option("--" + name.replace("_", "-"), value)
    folder = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="kvscope") as drawn:
        file = pathlib.Path(drawn) / "figure.svg"
        finding = _run((*words, "--out", str(file)), folder)
        svg = file.read_text(encoding="utf-8").replace(str(file), file.name)
    return Figure(svg, finding, tuple(words), folder)
