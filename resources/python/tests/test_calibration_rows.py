"""Which rows a capture gets from kvscope-evaluate, and which stay."""

from __future__ import annotations

import csv
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import threading
from typing import Any

import h5py
import numpy as np
import pytest
from measured_lists import lists_of, other_seed, rows_of

from kvscope_capture import CaptureError
from kvscope_press import calibration, evaluating
from kvscope_press.calibration import Row, Setting, add_rows
from kvscope_press.command import main
from kvscope_press.measuring import AnswerLoss
from kvscope_press.recorded_selection import whole_selection


def test_rows_are_merged_by_retention_and_context(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "c.h5"
    h5py.File(path, "w").close()
    selection = dataclasses.replace(whole_selection(1, 1, 6), policy="p", variant="v")
    setting = Setting.of(selection, 3)
    add_rows(path, [(selection, setting, Row(0.5, 1, 2, 3)), (selection, setting, Row(0.1, 1, 2, 9))])
    add_rows(path, [(selection, setting, Row(0.5, 1, 2, 4)), (selection, setting, Row(0.1, 1, 2, 8, 1))])
    assert rows_of(path, "p/v") == [[0.1, 1, 2, 9, 0], [0.5, 1, 2, 4, 0], [0.1, 1, 2, 8, 1]]
    other = Setting.of(dataclasses.replace(selection, cut=5), 3)
    before = path.read_bytes()
    with pytest.raises(CaptureError, match="another cut, target, parameters, model, arithmetic or tool"):
        add_rows(path, [(selection, setting, Row(0.7, 1, 2, 4)), (selection, other, Row(0.2, 1, 2, 4))])
    assert path.read_bytes() == before
    add_rows(path, [(selection, other, Row(0.2, 1, 2, 4)), (selection, other, Row(0.3, 1, 2, 4))], replace=True)
    assert rows_of(path, "p/v") == [[0.2, 1, 2, 4, 0], [0.3, 1, 2, 4, 0]]
    with pytest.raises(CaptureError, match="--replace, or evaluate lists of one setting"):
        add_rows(path, [(selection, setting, Row(1, 1, 1, 1)), (selection, other, Row(1, 1, 1, 1))], replace=True)
    assert list(tmp_path.iterdir()) == [path]


def test_rows_of_an_earlier_version_stay(tmp_path: pathlib.Path) -> None:
    """Such rows state neither arithmetic nor lists, nor a revision where it was not known."""
    path = tmp_path / "c.h5"
    h5py.File(path, "w").close()
    selection = dataclasses.replace(whole_selection(1, 1, 6), policy="p", variant="v")
    setting = Setting.of(selection, 3)
    add_rows(path, [(selection, setting, Row(0.5, 1, 2, 3)), (selection, setting, Row(0.1, 1, 2, 9))])
    with h5py.File(path, "r+") as file:
        for name in ("arithmetic", "lists"):
            del file["calibration/p/v"].attrs[name]
    known = Setting.of(selection, 3, ("", "0123abc", ""))
    add_rows(path, [(selection, known, Row(0.5, 1, 2, 4))])
    assert rows_of(path, "p/v") == [[0.1, 1, 2, 9, 0], [0.5, 1, 2, 4, 0]]
    fast = dataclasses.replace(setting, arithmetic="fast float")
    with pytest.raises(CaptureError, match="arithmetic"):
        add_rows(path, [(selection, fast, Row(0.7, 1, 2, 4))])


def test_a_list_replaces_its_own_row_only(captured: pathlib.Path, tmp_path: pathlib.Path, capsys: Any) -> None:
    """A list of another seed keeps as many tokens; without the check its row would replace that of the first."""
    out, (first, second) = tmp_path / "c.h5", other_seed(captured, tmp_path)
    out.write_bytes((captured / "c.h5").read_bytes())
    arguments = [str(out), str(captured / "model"), "--selections"]
    assert main([*arguments, first]) == 0
    before = rows_of(out, "p/v")
    capsys.readouterr()
    assert main([*arguments, second]) == 2
    assert "the row of another list (another seed?) is there" in capsys.readouterr().err.splitlines()[-1]
    assert main([*arguments, *lists_of(captured, tmp_path, [0.1])]) == 0  # its row comes first
    assert main([*arguments, first]) == 0
    assert rows_of(out, "p/v")[1:] == before
    assert main([*arguments, second, "--context-id", "1"]) == 0
    (_, one, two) = rows_of(out, "p/v")
    assert [one] == before and two[4] == 1
    assert main([*arguments, first, "--context-id", "1"]) == 2
    assert main([*arguments, first, "--context-id", "1", "--replace"]) == 0
    assert rows_of(out, "p/v")[1:] == [*before, [*before[0][:4], 1]]
    assert main([*arguments, second, "--context-id", "1"]) == 2


def test_equal_lists_have_one_row(captured: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """streaming_llm@0.001 and @1t may keep the same tokens."""
    out, (first,) = tmp_path / "c.h5", lists_of(captured, tmp_path, [0.3])
    out.write_bytes((captured / "c.h5").read_bytes())
    again = shutil.copyfile(first, tmp_path / "again.json")
    assert main([str(out), str(captured / "model"), "--selections", first, str(again)]) == 0
    assert len(rows_of(out, "p/v")) == 1


def test_a_linked_capture_stays_linked(captured: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (tmp_path / "data").mkdir()
    out, link = tmp_path / "data" / "c.h5", tmp_path / "link.h5"
    out.write_bytes((captured / "c.h5").read_bytes())
    link.symlink_to(out)
    assert main([str(link), str(captured / "model"), "--selections", *lists_of(captured, tmp_path, [0.3])]) == 0
    assert link.is_symlink() and len(rows_of(out, "p/v")) == 1


def test_two_lists_with_one_row_are_refused(captured: pathlib.Path, tmp_path: pathlib.Path, capsys: Any) -> None:
    """Two seeds of one policy keep as many tokens; the second row would replace the first."""
    out, (first, second) = tmp_path / "c.h5", other_seed(captured, tmp_path)
    out.write_bytes((captured / "c.h5").read_bytes())
    arguments = [str(out), str(captured / "model"), "--selections", first, second]
    assert main(arguments) == 2
    assert f"keeps as much as {first} by the same policy" in capsys.readouterr().err.splitlines()[-1]
    assert out.read_bytes() == (captured / "c.h5").read_bytes()
    assert main([*arguments, "--dry-run"]) == 0


def test_a_loss_that_is_no_number_makes_no_row(
    captured: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    out = tmp_path / "c.h5"
    out.write_bytes((captured / "c.h5").read_bytes())
    bad = AnswerLoss(np.array([np.nan]), np.array([False]))
    monkeypatch.setattr(evaluating, "answer_loss", lambda *_: bad)
    arguments = ["--selections", *lists_of(captured, tmp_path, [0.3])]
    assert main([str(out), str(captured / "model"), *arguments]) == 2
    assert "behind the pruned cache is NaN or infinite" in capsys.readouterr().err.splitlines()[-1]
    assert out.read_bytes() == (captured / "c.h5").read_bytes()


@pytest.mark.parametrize("cut", [1, None])
def test_what_no_calibration_can_read_makes_no_row(
    cut: int | None, captured: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """A context of one token has no loss; a model that is sure of every token has the loss 0 in 32 bits."""
    out, table, (plain,) = tmp_path / "c.h5", tmp_path / "t.csv", lists_of(captured, tmp_path, [0.3])
    out.write_bytes((captured / "c.h5").read_bytes())
    if cut:
        data = json.loads(pathlib.Path(plain).read_text())
        heads = [head | {"kept": [0]} for head in data["heads"]]
        pathlib.Path(plain).write_text(json.dumps(data | {"cut_token": cut, "heads": heads}))
    else:
        sure = lambda *given: AnswerLoss(np.zeros(len(given[3])), np.ones(len(given[3]), bool))  # noqa: E731
        monkeypatch.setattr(evaluating, "answer_loss", sure)
    assert main([str(out), str(captured / "model"), "--selections", plain, "--out", str(table)]) == 0
    why = "no token before the cut has a loss" if cut else "a mean loss is 0, the model is sure of every token"
    assert f"{why}; no row is stored for calibration" in capsys.readouterr().out
    assert len(list(csv.DictReader(table.open()))) == 1
    assert out.read_bytes() == (captured / "c.h5").read_bytes()


@pytest.mark.parametrize("stopped", [False, True])
def test_a_run_that_ends_early_keeps_what_it_measured(
    stopped: bool, captured: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    out, table, lists = tmp_path / "c.h5", tmp_path / "t.csv", lists_of(captured, tmp_path, [0.8, 0.5, 0.3])
    out.write_bytes((captured / "c.h5").read_bytes())
    loss, calls = evaluating.answer_loss, []

    def second_fails(*given: Any) -> AnswerLoss:
        calls.append(given)
        if len(calls) == 2 and stopped:
            os.kill(os.getpid(), signal.SIGINT)
        return AnswerLoss(np.array([np.nan]), np.array([False])) if len(calls) == 2 else loss(*given)

    monkeypatch.setattr(evaluating, "answer_loss", second_fails)
    code = main([str(out), str(captured / "model"), "--selections", *lists, "--out", str(table)])
    assert code == (130 if stopped else 2)
    said = capsys.readouterr()
    kept = "The results of 1 of 3 lists are written"
    assert kept in said.out and (f"stopped. {kept}." if stopped else "NaN or infinite") in said.err.splitlines()[-1]
    assert [line["list"] for line in csv.DictReader(table.open())] == lists[:1]
    assert len(rows_of(out, "p/v")) == 1


def list_of(policy: str) -> tuple[Any, Setting, Row]:
    selection = dataclasses.replace(whole_selection(1, 1, 6), policy=policy, variant="v")
    return selection, Setting.of(selection, 3), Row(0.5, 1, 2, 3)


@pytest.mark.parametrize("copied", [True, False])
def test_two_runs_on_one_capture_add_their_rows_one_after_the_other(
    copied: bool, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, put = tmp_path / "c.h5", calibration._put
    with h5py.File(path, "w") as file:
        file["tokens/ids"] = [1, 2]
    errors: list[BaseException] = []

    def second() -> None:
        try:
            add_rows(path, [list_of("second")])
        except BaseException as error:
            errors.append(error)

    other = threading.Thread(target=second)

    def while_the_other_begins(*given: Any) -> None:
        monkeypatch.setattr(calibration, "_put", put)
        other.start()
        other.join(0.5)
        put(*given)

    monkeypatch.setattr(calibration, "COPIED_BYTES", 2 << 30 if copied else 0)
    monkeypatch.setattr(calibration, "_put", while_the_other_begins)
    add_rows(path, [list_of("first")])
    other.join()
    with h5py.File(path) as file:
        assert not errors and sorted(file["calibration"]) == ["first", "second"] and "tokens" in file
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_run_that_fails_while_it_writes_rows_leaves_the_capture(
    error: type[BaseException], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.h5"
    h5py.File(path, "w").close()
    before = path.read_bytes()

    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(calibration, "_put", fail)
    with pytest.raises(CaptureError if error is OSError else error):
        add_rows(path, [list_of("p")])
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]
