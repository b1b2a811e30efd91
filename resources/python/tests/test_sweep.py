"""kvscope-sweep on a Dask cluster gives the table of kvscope sweep, also when a worker dies or the sweep is stopped."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import stat
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from kvscope_capture.console import Stopped
from kvscope_capture.errors import CaptureError
from kvscope_sweep import command
from kvscope_sweep.plan import Done, Options, Plan, Task, _stamps, make_plan, numbers
from kvscope_sweep.sweep import Finished

distributed = pytest.importorskip("distributed")
SAMPLES = pathlib.Path(__file__).parents[3] / "sample_data"
CAPTURE = str(SAMPLES / "needle-1k.h5")
SWEEP = ["--policy", "uniform", "snapkv,protect_first=2", "keydiff@64t", "--layers", "0,2", "--seeds", "3-4"]
SWEEP += ["--retention", "0.1,0.3", "--vary", "window=8,16", "--metrics", "entropy"]
TASKS = 2 * (2 + 1 + 1)  # layers x (uniform with two seeds, the others draw nothing)


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> str:
    if "KVSCOPE_PROGRAM" not in os.environ:
        pytest.skip("KVSCOPE_PROGRAM does not name the built kvscope")
    return os.environ["KVSCOPE_PROGRAM"]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    with distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as two:
        yield ["--scheduler", two.scheduler_address]


def script(path: pathlib.Path, lines: str) -> str:
    """A program that takes the place of kvscope."""
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def lines_of(path: pathlib.Path) -> list[bytes]:
    """The rows as bytes, in their order, without the times."""
    rows = json.loads(path.read_text())["rows"]
    return [json.dumps({k: v for k, v in row.items() if not k.endswith("_ms")}).encode() for row in rows]


def test_a_worker_that_dies_is_replaced(
    program: str, cluster: list[str], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, out = tmp_path / "expected.json", tmp_path / "t.json"
    subprocess.run([program, "sweep", CAPTURE, *SWEEP, "--out", str(expected)], check=True)
    marker = tmp_path / "killed"  # made by the first task, which kills its worker
    kills = f'case "$1" in sweep) mkdir {marker} 2>/dev/null && kill -9 $PPID;; esac; exec {program} "$@"'
    monkeypatch.setenv("KVSCOPE_PROGRAM", script(tmp_path / "kvscope", kills))
    assert command.main([CAPTURE, *SWEEP, *cluster, "--out", str(out)]) == 0
    assert marker.is_dir()
    assert lines_of(out) == lines_of(expected)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["expected.json", "killed", "kvscope", "t.json"]


def test_a_stopped_sweep_goes_on(
    program: str,
    cluster: list[str],
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from pyarrow import parquet

    out = tmp_path / "t.parquet"
    bad = 'case "$*" in *snapkv*"--layers 2"*) echo "kvscope: no memory. Close something" >&2; exit 2;; esac;'
    monkeypatch.setenv("KVSCOPE_PROGRAM", script(tmp_path / "bad", f'{bad} exec {program} "$@"'))
    words = [CAPTURE, *SWEEP, *cluster, "--out", str(out)]
    assert command.main(words) == 2
    assert capsys.readouterr().err.splitlines()[-1] == "kvscope-sweep: no memory. Close something"
    assert not out.exists()
    finished = len(list((tmp_path / "t.parquet.parts").glob("*.json")))
    assert finished > 0
    log = tmp_path / "log"  # of this program alone: a task of the stopped sweep may end late
    counts = f'case "$1" in sweep) echo >> {log};; esac;'
    monkeypatch.setenv("KVSCOPE_PROGRAM", script(tmp_path / "good", f'{counts} exec {program} "$@"'))
    assert command.main(words) == 0
    assert len(log.read_text().splitlines()) == TASKS - finished
    assert not (tmp_path / "t.parquet.parts").exists()
    table = parquet.read_table(out)
    assert table.num_rows == 2 * (
        2 * 2 + 2 * 2 + 1
    )  # layers x (uniform: budgets x seeds, SnapKV: windows x budgets, KeyDiff)
    assert json.loads(table.schema.metadata[b"kvscope"])["command"].startswith("kvscope-sweep ")


def test_a_dry_run_says_tasks_bytes_and_hours(
    program: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [CAPTURE, *SWEEP, "--processes", "2", "--dry-run", "--out", str(tmp_path / "t.json")]
    assert command.main(words) == 0
    said = capsys.readouterr().out
    gib = os.path.getsize(CAPTURE) // 6 * TASKS / 2**30
    assert said.startswith(f"{TASKS} tasks (the first took ") and f", {gib:.2f} GiB to read, " in said
    assert said.endswith(" h on 2 processes\n")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([CAPTURE, "--policy", "uniform", "--seeds", "0-1", "--uniforms", "u.h5:/u"], "--uniforms: random numbers of"),
        ([CAPTURE, CAPTURE, "--policy", "subgen", "--sketch", "s.h5:/s"], "--sketch: random numbers of a file belong"),
        (["nothing.h5", "--policy", "keydiff"], "nothing.h5"),
        ([CAPTURE, "--policy", "keydif"], "'keydif' is no policy"),
        ([CAPTURE, "--policy", "keydiff", "--layers", "9"], "layer 9 is not in the capture"),
        ([CAPTURE, "--policy", "keydiff", "--layers", "1-"], "'1-' is not a number or a range"),
        ([CAPTURE, "--policy", "keydiff", "--vary", "window=3"], "no policy of the sweep has the parameter 'window'"),
        ([CAPTURE, "--policy", "keydiff", "--scheduler", "tcp://nobody"], "no cluster"),
        ([CAPTURE, "--policy", "keydiff", "--cluster", "nobody.Cluster"], "no cluster"),
    ],
)
def test_mistakes_are_said_in_a_line(
    words: list[str], says: str, program: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main([*words, "--retention", "0.2", "--out", str(tmp_path / "t.json")]) == 2
    said = capsys.readouterr().err
    assert said.startswith("kvscope-sweep: ") and says in said and said.count("\n") == 1
    assert not any(tmp_path.iterdir())


def test_seeds_vary_fastest() -> None:
    tasks = [Task("", (), key, 0) for key in "ab"]
    done: dict[str, Done] = {key: Done([{"budget": b, "seed": key} for b in (1, 2)], 0.0) for key in "ab"}
    rows: list[dict[str, Any]] = Plan([tasks]).table(done)
    assert [(row["budget"], row["seed"]) for row in rows] == [(1, "a"), (1, "b"), (2, "a"), (2, "b")]


def test_every_varied_parameter_has_its_column() -> None:
    """Each policy has one of the two parameters, so that no row has both columns."""
    tasks = [Task("", (), key, 0) for key in "ab"]
    done = {
        "a": Done([{"spec": "a", "sinks": 4, "cut": 9}], 0.0),
        "b": Done([{"spec": "b", "window": 8, "cut": 9}], 0.0),
    }
    rows = Plan([[tasks[0]], [tasks[1]]], ["sinks", "window"]).table(done)
    assert [list(row.items()) for row in rows] == [
        [("spec", "a"), ("sinks", 4), ("window", None), ("cut", 9)],
        [("spec", "b"), ("sinks", None), ("window", 8), ("cut", 9)],
    ]


def test_a_signal_is_tried_again_and_another_file_is_another_task(program: str, tmp_path: pathlib.Path) -> None:
    with pytest.raises(RuntimeError, match="signal 15"):
        Task(script(tmp_path / "ended", "exit 143"), ("sweep",), "", 0).run()
    file = tmp_path / "u.h5"
    file.write_text("a")
    options = Options([pathlib.Path(CAPTURE)], ["uniform@0.1"], [0], words=["--uniforms", f"{file}:/u"])
    first = make_plan(program, options).tasks()[0].key
    assert make_plan(program, options).tasks()[0].key == first
    file.write_text("ab")
    assert make_plan(program, options).tasks()[0].key != first


@pytest.mark.parametrize("name", ["run=1@2.scores.h5", "a, b.h5", 'q"x.h5', "tau=1:x.h5"])
def test_another_file_of_scores_is_another_task(name: str, tmp_path: pathlib.Path) -> None:
    """The path may hold separators of a policy; a data set inside the file is named behind the path."""
    folder = tmp_path / "x=1"
    folder.mkdir()
    path = folder / name
    path.write_text("1")
    text = str(path).replace('"', '\\"')
    for policy in (
        f'imported,"file={text}:/Press"@0.25',
        f'imported,file="{text}:/Press"@0.25',
        f'balance,"file={text}"',
        *([] if '"' in name else [f"imported,file={path}:/Press@0.25", f"snapkv@tau=0.9:{path}"]),
    ):
        assert [stamp[0] for stamp in _stamps(["sweep", "c.h5", "--policy", policy])] == [str(path)]


def test_another_calibration_of_the_capture_is_another_task(program: str, tmp_path: pathlib.Path) -> None:
    """Its rows are not part of the capture's hash."""
    capture = tmp_path / "c.h5"
    shutil.copyfile(CAPTURE, capture)

    def key_of(policy: str) -> str:
        return make_plan(program, Options([capture], [policy], [0])).tasks()[0].key

    policies = ("keydiff@tau=0.9", "keydiff@0.1")
    in_quality, plain = map(key_of, policies)
    os.utime(capture, ns=(1, 1))
    assert key_of(policies[0]) != in_quality and key_of(policies[1]) == plain


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b"[]", b'{"columns": []}'])
def test_a_part_that_cannot_be_read_is_not_there(text: bytes, tmp_path: pathlib.Path) -> None:
    finished, tasks = Finished(tmp_path / "t.json"), [Task("", (), key, 0) for key in "ab"]
    finished.write(tasks[0], Done([{"seed": 1}], 0.5))
    (tmp_path / "t.json.parts/b.json").write_bytes(text)
    assert finished.read(Plan([tasks])) == {"a": Done([{"seed": 1}], 0.5)}


def test_numbers() -> None:
    assert numbers("0,2-4") == [0, 2, 3, 4]
    assert numbers("3,0-1,3") == [0, 1, 3]  # as kvscope sweep reads them
    for text in ("", "a", "3-2", "1,,2"):
        with pytest.raises(CaptureError):
            numbers(text)


@pytest.mark.parametrize("option", ["--processes", "--jobs"])
def test_no_processes_are_refused(option: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [CAPTURE, "--policy", "keydiff@0.1", "--dry-run", "--out", str(tmp_path / "t.json"), option]
    for text in ("0", "-3", "x"):
        with pytest.raises(SystemExit):
            command.main([*words, text])
        assert "is not a whole number from 1 on" in capsys.readouterr().err


@pytest.mark.parametrize(("finished", "says"), [(False, "Nothing was written."), (True, "Finished tasks stay in ")])
def test_a_stopped_sweep_says_what_is_left(
    finished: bool,
    says: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def stopped(*_: object) -> None:
        raise Stopped(15)

    monkeypatch.setattr(command, "sweep", stopped)
    if finished:
        Finished(tmp_path / "t.json").write(Task("", (), "a", 0), Done([], 0.5))
    assert command.main([CAPTURE, "--policy", "keydiff@0.1", "--out", str(tmp_path / "t.json")]) == 143
    assert says in capsys.readouterr().err


def test_every_option_of_the_program_is_taken(program: str) -> None:
    words = subprocess.run([program, "sweep", "--help"], capture_output=True, text=True, check=True).stdout.split()
    theirs = {word for word in words if word.startswith("--") and word.isascii()}
    ours = {option for action in command.parser()._actions for option in action.option_strings}
    assert {option.split("=")[0].rstrip(",;") for option in theirs} - ours == {"--seed"}  # --seeds says it
