"""Tables of the program as Parquet: types, texts, what cannot be read."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest
from pyarrow import parquet

from kvscope_capture.parquet import main, one_type

ROWS: list[dict[str, Any]] = [
    {"policy": "keydiff", "seed": 2**63 - 1, "budget": 0.25, "error": 0.5, "bound": "inf", "met": True, "none": None},
    {"policy": "snapkv", "seed": 0, "budget": "512t", "error": 1, "bound": 2.5, "met": None, "none": None},
]


def write(path: pathlib.Path, rows: Any = ROWS) -> pathlib.Path:
    path.write_text(json.dumps({"format": "kvscope-sweep", "version": 1, "command": "kvscope sweep", "rows": rows}))
    return path


def test_columns_have_one_type_each(tmp_path: pathlib.Path) -> None:
    out = tmp_path / "t.parquet"
    assert main([str(write(tmp_path / "t.json")), "--out", str(out)]) == 0
    table = parquet.read_table(out)
    types = {field.name: str(field.type) for field in table.schema}
    assert types == {"policy": "string", "seed": "int64", "budget": "string", "error": "double", "bound": "double",
                     "met": "bool", "none": "null"}  # fmt: skip
    rows = table.to_pylist()
    assert rows[0] == ROWS[0] | {"budget": "0.25", "bound": float("inf")}
    assert rows[1] == ROWS[1] | {"error": 1.0}
    assert json.loads(table.schema.metadata[b"kvscope"])["command"] == "kvscope sweep"
    assert [path.name for path in tmp_path.iterdir()] == ["t.json", "t.parquet"] or len(list(tmp_path.iterdir())) == 2


def test_large_whole_numbers_stay_whole(tmp_path: pathlib.Path) -> None:
    out = tmp_path / "t.parquet"
    rows = [{"seed": 2**64 - 1, "mixed": 2**64 - 1, "larger": 2**64}, {"seed": None, "mixed": -1, "larger": 0}]
    assert main([str(write(tmp_path / "t.json", rows)), "--out", str(out)]) == 0
    table = parquet.read_table(out)
    assert [str(field.type) for field in table.schema] == ["uint64", "string", "string"]
    assert table["seed"].to_pylist() == [2**64 - 1, None]
    assert table["mixed"].to_pylist() == [str(2**64 - 1), "-1"]


def test_texts_stay_texts() -> None:
    assert one_type(["1", "2"]) == ["1", "2"]
    assert one_type(["inf", "a"]) == ["inf", "a"]
    assert one_type([True, 1]) == ["true", "1"]
    assert one_type([1, None, 3]) == [1, None, 3]


@pytest.mark.parametrize(
    ("text", "says"), [("[1]", "holds no rows"), ("{", "cannot be read"), ('{"rows": [1]}', "rows")]
)
def test_other_files_are_refused(
    text: str, says: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.json").write_text(text)
    assert main([str(tmp_path / "t.json"), "--out", str(tmp_path / "t.parquet")]) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "t.parquet").exists()
    assert main([str(write(tmp_path / "t.json")), "--out", str(tmp_path / "no/t.parquet")]) == 2
    assert "no/t.parquet: the folder does not exist" in capsys.readouterr().err
    before = (tmp_path / "t.json").read_bytes()
    assert main([str(tmp_path / "t.json"), "--out", str(tmp_path / "t.json")]) == 2
    assert "would replace what is read" in capsys.readouterr().err
    assert (tmp_path / "t.json").read_bytes() == before
