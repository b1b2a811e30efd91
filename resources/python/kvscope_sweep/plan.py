"""What a sweep is made of: one run of the program for every capture, layer, policy and seed."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kvscope_capture.errors import CaptureError

Row = dict[str, Any]
SEPARATORS = re.compile(r'[,=@":]')  # of a policy, its parameters, its budget, and a file and a data set inside it


@dataclasses.dataclass(frozen=True)
class Options:
    """What the user asks for; names as those of `kvscope sweep`."""

    captures: list[pathlib.Path]
    policies: list[str]
    layers: list[int] | None = None  # None: all of each capture
    seeds: list[int] = dataclasses.field(default_factory=lambda: [0])
    varied: list[str] = dataclasses.field(default_factory=list)  # "parameter=v1,v2"
    words: list[str] = dataclasses.field(default_factory=list)  # other options of kvscope sweep, as typed


@dataclasses.dataclass(frozen=True)
class Task:
    """One run of the program: one capture, layer, policy and seed, with all budgets and parameter values."""

    program: str
    words: tuple[str, ...]  # arguments of the program, without --out
    key: str  # SHA-256 of the arguments, the files that they name, the capture's hash and the program's version
    reads: int  # bytes: the capture's size, divided by its layers

    def run(self) -> Done:
        """Errors: CaptureError with the program's sentence; RuntimeError when a signal ended it, which may be tried
        again."""
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "rows.json"
            result = _said(self.program, [*self.words, "--out", str(out)])
            if result.returncode < 0 or result.returncode > 128:  # 128 + signal where it handled the signal
                number = -result.returncode if result.returncode < 0 else result.returncode - 128
                raise RuntimeError(f"signal {number} ended kvscope {' '.join(self.words)}")
            if result.returncode:
                raise _error_of(result)
            return Done(json.loads(out.read_text(encoding="utf-8"))["rows"], time.monotonic() - begin)


@dataclasses.dataclass(frozen=True)
class Done:
    """What a task gave: its rows in the program's order, and how long it took."""

    rows: list[Row]
    seconds: float


@dataclasses.dataclass(frozen=True)
class Plan:
    """All tasks in the order of `kvscope sweep`. Tasks of a group differ in the seed, which varies fastest in a table,
    so their rows alternate."""

    groups: list[list[Task]]
    varied: list[str] = dataclasses.field(default_factory=list)  # parameters; each has a column behind `spec`

    def tasks(self) -> list[Task]:
        """One after the other."""
        return [task for group in self.groups for task in group]

    def table(self, done: dict[str, Done]) -> list[Row]:
        """The rows of all tasks in the order of `kvscope sweep`, each with all columns."""
        rows = [row for group in self.groups for turn in _turns(done, group) for row in turn]
        own = [name for name in (rows[0] if rows else {}) if name not in self.varied]
        at = own.index("spec") + 1 if "spec" in own else 0
        columns = own[:at] + self.varied + own[at:]  # a policy that lacks a varied parameter has no such column
        return [{name: row.get(name) for name in columns} for row in rows]


def _turns(done: dict[str, Done], group: list[Task]) -> Iterator[tuple[Row, ...]]:
    return zip(*(done[task.key].rows for task in group), strict=True)


def numbers(text: str) -> list[int]:
    """0,2-3 as [0, 2, 3]: rising and each once, as the program reads them. Errors (CaptureError): other texts."""
    found = set[int]()
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part.strip())
        if not match or int(match[2] or match[1]) < int(match[1]):
            raise CaptureError(f"{part!r} is not a number or a range of numbers", text, "Write, for example, 0,2-3")
        found |= set(range(int(match[1]), int(match[2] or match[1]) + 1))
    return sorted(found)


def make_plan(program: str, options: Options) -> Plan:
    """Errors (CaptureError): a capture that the program refuses, an unknown policy or parameter, a layer that is not
    there, random numbers of a file for several runs."""
    _check_replayed(options)
    _stamps_in.cache_clear()
    policies = {card["id"]: card for card in _json_of(program, ["policies", "--json"])}
    version = _checked(_said(program, ["--version"])).strip()
    cards = [_card_of(policies, spec) for spec in options.policies]
    _check_varied(options.varied, cards)
    groups = []
    for path in options.captures:
        capture = _json_of(program, ["inspect", str(path), "--json"])
        there = [layer["layer"] for layer in capture["layers"]]
        for layer in there if options.layers is None else options.layers:
            if layer not in there:
                raise CaptureError(
                    f"layer {layer} is not in the capture", str(path), "kvscope inspect lists its layers"
                )
            for spec, card in zip(options.policies, cards, strict=True):
                task = functools.partial(_task, program, version, capture, layer, spec, card, options)
                groups.append([task(seed) for seed in (options.seeds if card["uses_seed"] else options.seeds[:1])])
    return Plan(groups, [text.partition("=")[0] for text in options.varied])


def _task(
    program: str, version: str, capture: dict[str, Any], layer: int, spec: str, card: Row, options: Options, seed: int
) -> Task:
    path = pathlib.Path(capture["file"]).resolve()  # a worker has another working folder
    words = ["sweep", str(path), "--policy", spec, "--layers", str(layer), "--seeds", str(seed), *options.words]
    for varied in options.varied:
        if varied.partition("=")[0] in _parameters(card):
            words += ["--vary", varied]
    key = hashlib.sha256(json.dumps([version, capture["hash"], words, _stamps(words)]).encode()).hexdigest()
    return Task(program, tuple(words), key, capture["bytes"] // max(1, len(capture["layers"])))


def _stamps(words: Sequence[str]) -> list[list[str | int]]:
    """Size and time of the files that the arguments name: uniforms, sketches, scores, calibrations.

    A budget in quality (tau=) may depend on the calibration rows of the capture, which its hash leaves out.
    """
    named = [*words[2:], *(words[1:2] if any("tau=" in word for word in words[2:]) else [])]
    return sorted({stamp[0]: stamp for word in named for stamp in _stamps_in(word)}.values())


@functools.cache  # the tasks of a plan share most of their words
def _stamps_in(word: str) -> list[list[str | int]]:
    """Those of every part of the word that is a file; its path may hold separators, in quotes or without them."""
    quoted = re.findall(r'"(?:[^"\\]|\\.)*"', word)
    names = set[str]()
    for text in (word, *(re.sub(r"\\(.)", r"\1", text[1:-1]) for text in quoted)):
        at = [found.start() for found in SEPARATORS.finditer(text)]
        names |= {text[begin:end] for begin in (0, *(i + 1 for i in at)) for end in (*at, len(text)) if begin < end}
    files = [(name, os.stat(name)) for name in names if os.path.isfile(name)]
    return [[name, status.st_size, status.st_mtime_ns] for name, status in files]


def _check_replayed(options: Options) -> None:
    """The program refuses this, too, but here each of its runs has one capture and one seed.

    Errors (CaptureError): random numbers of a file for several captures or seeds.
    """
    replays = [word for word in options.words if word.partition("=")[0] in ("--uniforms", "--sketch")]
    if replays and (len(options.seeds) > 1 or len(options.captures) > 1):
        raise CaptureError(
            "random numbers of a file belong to one capture and one seed, and there are several",
            replays[0],
            "Sweep one capture with one seed, or leave the option out",
        )


def _card_of(policies: dict[str, Row], spec: str) -> Row:
    name = re.split("[:,@]", spec, maxsplit=1)[0]
    if name not in policies:
        raise CaptureError(f"{name!r} is no policy", "--policy", "kvscope policies lists them")
    return policies[name]


def _parameters(card: Row) -> set[str]:
    return {parameter["id"] for parameter in card["parameters"]}


def _check_varied(varied: Sequence[str], cards: Iterable[Row]) -> None:
    known = set[str]().union(*map(_parameters, cards))
    for text in varied:
        if (name := text.partition("=")[0]) not in known:
            raise CaptureError(
                f"no policy of the sweep has the parameter {name!r}",
                "--vary",
                "kvscope policies lists the parameters of each",
            )


def _said(program: str, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run([program, *words], capture_output=True, text=True, check=False)
    except OSError as error:
        raise CaptureError(f"cannot be started ({error.strerror})", program, "Name it with KVSCOPE_PROGRAM") from error


def _error_of(result: subprocess.CompletedProcess[str]) -> CaptureError:
    lines = result.stderr.strip().splitlines() or [f"kvscope: exit code {result.returncode}"]
    return CaptureError(lines[-1].removeprefix("kvscope: "))


def _checked(result: subprocess.CompletedProcess[str]) -> str:
    if result.returncode:
        raise _error_of(result)
    return result.stdout


def _json_of(program: str, words: Sequence[str]) -> Any:
    return json.loads(_checked(_said(program, words)))
