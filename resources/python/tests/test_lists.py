"""Reading lists in their three forms."""

from __future__ import annotations

import os
import pathlib
import subprocess
from typing import Any

import h5py
import pytest
from measured_lists import HEAD, write_list

from kvscope_capture import CaptureError
from kvscope_press import read_selection

OWN = {"query_head": 2, "kept": [0, 3]}


def test_a_list_is_read_with_its_weights(tmp_path: pathlib.Path) -> None:
    weighted = HEAD | {"weights": {"numerator": [1, 2.5, 0], "denominator": [1, 1, 3]}}
    selection = read_selection(write_list(tmp_path / "l.json", heads=[weighted, HEAD | {"kv_head": 0}]))
    assert (selection.policy, selection.variant, selection.cut, selection.budget) == ("p", "v", 6, "0.5")
    assert selection.heads[0, 1].numerator.tolist() == [1, 2.5, 0]
    assert selection.heads[0, 1].denominator.tolist() == [1, 1, 3]
    assert selection.heads[0, 0].numerator.tolist() == [1, 1, 1]
    assert selection.retention() == 0.5


def test_a_column_stands_once(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "l.csv"
    path.write_text("# format: kvscope-selection\nlayer,kv_head,position,position\n0,0,1,2\n")
    with pytest.raises(CaptureError, match="column 'position' is there twice"):
        read_selection(path)


def test_a_list_is_read_with_the_sets_of_query_heads(tmp_path: pathlib.Path) -> None:
    both = HEAD | {"query_heads": [OWN, {"query_head": 3, "kept": [4], "margin": 0.5}]}
    head = read_selection(write_list(tmp_path / "l.json", heads=[both])).heads[0, 1]
    assert {q: own.tolist() for q, own in head.query_heads.items()} == {2: [0, 3], 3: [4]}
    assert (head.attended(), head.stored(), head.of_query_head(3).kept.tolist()) == (1.5, 3, [4])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "other"}, "no kvscope-selection of version 1"),
        ({"version": 2}, "no kvscope-selection of version 1"),
        ({"cut_token": None}, "does not say before which token"),
        ({"heads": []}, "names no heads"),
        ({"heads": [{"layer": 0}]}, "a head cannot be read"),
        ({"heads": [HEAD | {"kept": [3, 3]}]}, "kept does not rise"),
        ({"heads": [HEAD | {"kept": [0, 6]}]}, "outside the 6 before the cut"),
        ({"heads": [HEAD | {"kept": [-1, 2]}]}, "outside the 6 before the cut"),
        ({"heads": [HEAD | {"weights": {"numerator": [1]}}]}, "one number of at least 0"),
        ({"heads": [HEAD | {"query_heads": [OWN, OWN]}]}, "a query head has two sets"),
        ({"heads": [HEAD | {"query_heads": [OWN]}]}, "not the union"),
        ({"heads": [HEAD | {"query_heads": [OWN | {"kept": [3, 0]}]}]}, "kept does not rise"),
        ({"heads": [HEAD | {"query_heads": [OWN], "weights": {"numerator": [1, 1, 1]}}]}, "beside weights"),
        ({"heads": [HEAD | {"weights": {"denominator": [1, -1, 1]}}]}, "one number of at least 0"),
    ],
)
def test_lists_that_contradict_themselves(changes: dict[str, Any], message: str, tmp_path: pathlib.Path) -> None:
    with pytest.raises(CaptureError, match=message):
        read_selection(write_list(tmp_path / "l.json", **changes))


def list_that_says(simulated: Any, folder: pathlib.Path, form: str) -> pathlib.Path:
    path = folder / f"l.{form}"
    if form == "json":
        return write_list(path, simulated=simulated)
    if form == "csv":
        comments = f"# format: kvscope-selection\n# cut_token: 6\n# simulated: {simulated}\n"
        path.write_text(comments + "layer,kv_head,position\n0,1,2\n")
        return path
    with h5py.File(path, "w") as file:
        file.attrs.update({"format": "kvscope-selection", "cut_token": 6, "simulated": simulated})
        for name, numbers in {"heads/offsets": [0, 1], "heads/layer": [0], "heads/kv_head": [1]}.items():
            file[name] = numbers
        file["kept/position"] = [2]
    return path


@pytest.mark.parametrize("form", ["json", "csv", "h5"])
@pytest.mark.parametrize(
    ("said", "simulated"),
    [("true", True), ("True", True), ("1", True), (True, True), (1, True)]
    + [("false", False), ("False", False), ("0", False), (False, False), (0, False)],
)
def test_lists_of_others_may_write_simulated_their_way(
    said: Any, simulated: bool, form: str, tmp_path: pathlib.Path
) -> None:
    assert read_selection(list_that_says(said, tmp_path, form)).simulated is simulated


@pytest.mark.parametrize("form", ["json", "csv", "h5"])
@pytest.mark.parametrize("said", ["yes", "", 2])
def test_simulated_that_is_no_truth_value_is_refused(said: Any, form: str, tmp_path: pathlib.Path) -> None:
    with pytest.raises(CaptureError, match=f"l.{form}: simulated: '{said}' is neither true nor false. Write true or"):
        read_selection(list_that_says(said, tmp_path, form))


def test_a_cut_from_outside_serves_lists_without_one(tmp_path: pathlib.Path) -> None:
    assert read_selection(write_list(tmp_path / "l.json", cut_token=None), cut=8).cut == 8
    assert read_selection(write_list(tmp_path / "l.json"), cut=8).cut == 6


@pytest.mark.skipif("KVSCOPE_PROGRAM" not in os.environ, reason="KVSCOPE_PROGRAM does not name the built kvscope")
@pytest.mark.parametrize(
    "policy", ["keydiff@0.1", "snapkv:original_class@0.1", "balancekv:longbench,sink=4,recent=16@0.25", "subgen@0.3"]
)
def test_every_form_of_a_list_is_read_alike(policy: str, tmp_path: pathlib.Path) -> None:
    """With weights and with sets of query heads, too."""
    sample = pathlib.Path(__file__).parents[3] / "sample_data/needle-1k.h5"
    read = []
    for form in ("json", "csv", "h5"):
        path = tmp_path / f"list.{form}"
        command = [os.environ["KVSCOPE_PROGRAM"], "evict", str(sample), "--policy", policy, "--layers", "0,3"]
        subprocess.run([*command, "--out", str(path)], check=True, capture_output=True)
        read.append(read_selection(path))
    expected, *others = read
    assert expected.cut == 995 and expected.parameters and len(expected.heads) == 4
    for other in others:
        assert other.digest() == expected.digest()
        for field in (
            *("policy", "variant", "parameters", "budget", "cut", "capture_hash", "simulated", "seed", "arithmetic"),
        ):
            assert getattr(other, field) == getattr(expected, field), field
        assert other.heads.keys() == expected.heads.keys()
        for place, head in expected.heads.items():
            found = other.heads[place]
            assert found.kept.tolist() == head.kept.tolist()
            assert found.numerator == pytest.approx(head.numerator, rel=1e-6)
            assert found.denominator == pytest.approx(head.denominator, rel=1e-6)
            assert {q: own.tolist() for q, own in found.query_heads.items()} == {
                q: own.tolist() for q, own in head.query_heads.items()
            }


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0c", "\r", "\n"])
def test_texts_of_tokens_end_no_line(separator: str, tmp_path: pathlib.Path) -> None:
    """The program writes the text of a kept token as it is, in quotes where it holds \\r or \\n."""
    quote = '"' if separator in "\r\n" else ""
    comments = "# format: kvscope-selection\n# version: 1\n# cut_token: 6\n# policy: p\n"
    rows = f"0,1,2,{quote}a{separator}# b{quote}\n# a comment between rows\n0,1,3,#\n0,1,4,c\n"
    table = f"{comments}layer,kv_head,position,text\n{rows}"
    for name, whole in (("unix.csv", table), ("dos.csv", table.replace("\n", "\r\n"))):
        (tmp_path / name).write_bytes(whole.encode())
        assert read_selection(tmp_path / name).heads[0, 1].kept.tolist() == [2, 3, 4]


def test_files_that_are_no_list(tmp_path: pathlib.Path) -> None:
    h5py.File(tmp_path / "empty.h5", "w").close()
    (tmp_path / "bytes.json").write_bytes(b"\xff\x00")
    (tmp_path / "half.csv").write_text("# format: kvscope-selection\n# cut_token: 6\nlayer,kv_head\n0,1\n")
    (tmp_path / "short.csv").write_text("# cut_token: 6\nlayer,kv_head,position\n0,1,2\n0,1\n")
    for name in ("empty.h5", "bytes.json", "half.csv", "short.csv"):
        with pytest.raises(CaptureError, match=f"{name}: cannot be read .* --out FILE.json, .csv or .h5"):
            read_selection(tmp_path / name)
