"""`--version` of every command is the version of the program: one source."""

from __future__ import annotations

import importlib
import os
import pathlib
import re
import subprocess
import tomllib

import pytest

from kvscope_capture.version import VERSION

TOOLS = pathlib.Path(__file__).parents[1]
PROJECT = tomllib.loads((TOOLS / "pyproject.toml").read_text(encoding="utf-8"))
MODULES = [entry.partition(":")[0] for entry in PROJECT["project"]["scripts"].values()] + ["kvscope_capture.unpickle"]


@pytest.mark.parametrize("module", MODULES)
def test_every_command_says_its_version(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        importlib.import_module(module).main(["--version"])
    assert done.value.code == 0
    assert re.fullmatch(rf"\S+ {re.escape(VERSION)}\n", capsys.readouterr().out)


def test_no_other_file_names_the_version() -> None:
    files = [*TOOLS.rglob("*.py"), TOOLS / "pyproject.toml", TOOLS.parents[1] / "CMakeLists.txt"]
    named = [path.name for path in files if re.search(rf"\b{re.escape(VERSION)}\b", path.read_text(encoding="utf-8"))]
    assert named == ["version.py"]


@pytest.mark.skipif("KVSCOPE_PROGRAM" not in os.environ, reason="KVSCOPE_PROGRAM does not name the built kvscope")
def test_the_program_has_this_version() -> None:
    done = subprocess.run([os.environ["KVSCOPE_PROGRAM"], "--version"], capture_output=True, text=True)
    assert done.stdout == f"kvscope {VERSION}\n"
