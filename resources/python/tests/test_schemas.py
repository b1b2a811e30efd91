"""The schemas against what the program writes, and against what it must not write."""

from __future__ import annotations

import copy
import json
import os
import pathlib
import subprocess
from typing import Any

import jsonschema
import pytest

from kvscope_press import read_selection

ROOT = pathlib.Path(__file__).parents[3]
SCHEMAS = sorted((ROOT / "resources/schemas").glob("*.schema.json"))
SAMPLE = str(ROOT / "sample_data/needle-1k.h5")
PROGRAM = os.environ.get("KVSCOPE_PROGRAM", "")
needs_program = pytest.mark.skipif(not PROGRAM, reason="KVSCOPE_PROGRAM does not name the built kvscope")


def schema_of(kind: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((ROOT / f"resources/schemas/{kind}.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(data)
    return data


def closed(schema: Any) -> Any:
    """The schema without further keys: all that the program writes must be described, unlike what others add."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: closed(part) for key, part in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        result.setdefault("additionalProperties", False)
    return result


def program(*words: str, folder: pathlib.Path | None = None) -> str:
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def errors(kind: str, data: Any) -> list[str]:
    return [error.message for error in jsonschema.Draft202012Validator(closed(schema_of(kind))).iter_errors(data)]


@needs_program
def test_the_program_prints_them() -> None:
    for path in SCHEMAS:
        kind = path.name.removesuffix(".schema.json")
        assert program("schema", kind) == path.read_text(encoding="utf-8")
        assert kind in program("schema", "--help")


LISTS = {
    "plain": ("keydiff@0.1",),
    "tokens": ("snapkv,window=16@64t",),
    "flags and texts": ("score:z(snapkv) + 0.3*z(leverage)*vnorm@0.25", "--scores"),
    "weights": ("balancekv@0.25", "--seed", "18446744073709551615"),
    "query heads": ("snapkv:minference@0.2", "--scores"),
    "stored rows": ("subgen_kcenter@0.5",),
    "simulated": ("keydiff,prompt_block=128@0.2",),
    "quality": ("snapkv@tau=0.6:proxy",),
    "no budget": ("exact",),
}


@needs_program
@pytest.mark.parametrize("name", LISTS)
def test_lists(name: str, tmp_path: pathlib.Path) -> None:
    text = program("evict", SAMPLE, "--layers", "3", "--policy", *LISTS[name], "--out", "-")
    data = json.loads(text)
    assert errors("list", data) == []
    texts = [value for value in data["parameters"].values() if isinstance(value, str)]
    assert not any(value.isdigit() or value in ("true", "false") for value in texts)
    (tmp_path / "l.json").write_text(text)  # the Python reader gives texts as typed
    read = read_selection(tmp_path / "l.json")
    assert {type(value) for value in read.parameters.values()} <= {str}
    texts_of = {key: v if isinstance(v, str) else json.dumps(v) for key, v in data["parameters"].items()}
    assert read.parameters == texts_of


@needs_program
def test_sweeps() -> None:
    words = ["sweep", SAMPLE, "--layers", "3", "--policy", "exact", "snapkv", "keydiff@64t", "--retention", "0.1,0.25"]
    more = ["--vary", "window=8,16", "--work", "--metrics", "retained_mass,sink_mass,sink_mass"]
    data = json.loads(program(*words, *more, "--out", "-.json"))
    described = closed(schema_of("sweep"))
    described["properties"]["rows"]["items"]["properties"] |= {
        "window": {"type": ["integer", "null"]},
        "sink_mass": {"type": "number"},
    }
    described["properties"]["rows"]["items"]["additionalProperties"] = False
    jsonschema.Draft202012Validator(described).validate(data)
    assert [row["budget"] for row in data["rows"]] == [None, 0.1, 0.25, 0.1, 0.25, "64t"]
    assert [row["window"] for row in data["rows"]] == [None, 8, 8, 16, 16, None]
    lines = program(*words, *more, "--out", "-").splitlines()  # CSV has the same columns and values
    assert lines[0].split(",") == [*data["rows"][0], "command"]
    assert len(lines) == 1 + len(data["rows"])


@pytest.mark.parametrize("path", sorted((ROOT / "resources/lessons").glob("*.kvscope")), ids=lambda path: path.stem)
def test_lessons_are_sessions(path: pathlib.Path) -> None:
    assert errors("session", json.loads(path.read_text(encoding="utf-8"))) == []


LIST = {"format": "kvscope-selection", "version": 1, "heads": [{"layer": 0, "kv_head": 0, "kept": [0, 2]}]}
SESSION = {"format": "kvscope-session", "version": 1, "panes": [{"policy": "keydiff"}], "look": {"theme": "dark"}}
WRONG = [
    ("list", LIST, lambda d: d.pop("heads")),
    ("list", LIST, lambda d: d.update(version=2)),
    ("list", LIST, lambda d: d["heads"][0].pop("kept")),
    ("list", LIST, lambda d: d["heads"][0].update(kept=[0, 0])),
    ("list", LIST, lambda d: d["heads"][0].update(kept=[-1])),
    ("list", LIST, lambda d: d.update(seed=-1)),
    ("list", LIST, lambda d: d.update(parameters={"a": []})),
    ("session", SESSION, lambda d: d.update(panes=[{}])),
    ("session", SESSION, lambda d: d.update(panes=[{"policy": "exact"}] * 5)),
    ("session", SESSION, lambda d: d["look"].update(theme="pink")),
    ("session", SESSION, lambda d: d.update(selected=[[1]])),
]


@pytest.mark.parametrize(("kind", "data", "spoil"), WRONG)
def test_wrong_files_do_not_pass(kind: str, data: dict[str, Any], spoil: Any) -> None:
    changed = copy.deepcopy(data)
    assert errors(kind, changed) == []
    spoil(changed)
    assert errors(kind, changed) != []
