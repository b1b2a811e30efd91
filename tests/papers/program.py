"""What the program writes: its lists, tables and kept tokens, read from the files that its commands write."""

import concurrent.futures
import csv
import dataclasses
import functools
import json
import os
import pathlib
import re
import subprocess
import tempfile

import h5py
import numpy as np
from capture import sample

PROGRAM = os.environ["KVSCOPE_PROGRAM"]


@dataclasses.dataclass(frozen=True)
class Kept:
    """What a KV head keeps: tokens with their weights in numerator and denominator, and what it stores."""

    tokens: np.ndarray
    numerator: np.ndarray
    denominator: np.ndarray
    stored_keys: int
    stored_values: int


@dataclasses.dataclass(frozen=True)
class Table:
    """A CSV file: rows by column, and the comment lines above them."""

    rows: list[dict[str, str]]
    notes: list[str]

    def note(self, beginning: str) -> str:
        """What follows the beginning of the one note that has it."""
        (found,) = [note for note in self.notes if note.startswith(beginning)]
        return found.removeprefix(beginning).strip()

    def policies(self) -> list[str]:
        """The policies that were run, as they are typed on the command line."""
        return [note.removeprefix("policy: ") for note in self.notes if note.startswith("policy: ")]


def run(*words: object, files: tuple[str, ...] = ()) -> tuple[str, list[str]]:
    """Runs the program in an empty folder: what it prints, and the text of the files that it wrote."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([PROGRAM, *map(str, words)], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout, [(pathlib.Path(folder) / name).read_text() for name in files]


@functools.cache
def listed() -> dict[str, str]:
    """What `reproduce --list` names: id and the rest of its line."""
    printed, _ = run("reproduce", "--list")
    return {line.split()[0]: line.split(maxsplit=1)[1] for line in printed.splitlines() if line and line[0].isalnum()}


def is_elsewhere(line: str) -> bool:
    """Whether a line of the list ends with the place where the item is found instead."""
    return bool(re.search(r"\[[^\]]+\]$", line))


@functools.cache
def reproduced(name: str) -> Table:
    """The numbers of one reproduction on the sample."""
    _, (text,) = run("reproduce", name, sample().path, "--csv", "out.csv", files=("out.csv",))
    notes = [line[2:] for line in text.splitlines() if line.startswith("# ")]
    body = [line for line in text.splitlines() if not line.startswith("#")]
    return Table(list(csv.DictReader(body)), notes)


@functools.cache
def theory(policy: str, cut: str = "default") -> list[dict]:
    """The theory rows of a policy on all layers and heads."""
    words = ["theory", sample().path, "--policy", policy, "--cut", cut, "--out", "out.json"]
    _, (text,) = run(*words, files=("out.json",))
    return json.loads(text)["rows"]


@functools.cache
def steps(policy: str, cut: str = "default", seed: int = 0) -> list[dict]:
    """What a policy wrote down while it decided, per layer."""
    words = ["evict", sample().path, "--policy", policy, "--cut", cut, "--seed", seed]
    _, (text, _) = run(*words, "--steps", "s.json", "--out", "k.json", files=("s.json", "k.json"))
    return [layer["log"] for layer in json.loads(text)]


@functools.cache
def sketches(policy: str) -> np.ndarray:
    """The sketching matrices [layers, KV heads, d, k] that a policy drew."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "drawn.h5"
        run("evict", sample().path, "--policy", policy, "--record", path, "--out", "kept.json")
        with h5py.File(path) as file:
            return file["sketch"][:]


def _head(head: dict) -> Kept:
    assert "query_heads" not in head  # the papers' comparisons keep one set per KV head
    tokens = np.array(head["kept"], dtype=int)
    weights, stored = head.get("weights", {}), head.get("stored", {})
    numerator = np.array(weights.get("numerator", np.ones(len(tokens))), dtype=float)
    denominator = np.array(weights.get("denominator", np.ones(len(tokens))), dtype=float)
    return Kept(tokens, numerator, denominator, stored.get("keys", len(tokens)), stored.get("values", len(tokens)))


@functools.cache
def kept(policy: str, cut: str = "default", seed: int = 0) -> list[list[Kept]]:
    """The kept lists [layers][KV heads] that `evict` writes."""
    words = [
        "evict",
        sample().path,
        "--policy",
        policy,
        "--cut",
        cut,
        "--seed",
        seed,
        "--threads",
        1,
        "--out",
        "kept.json",
    ]
    _, (text,) = run(*words, files=("kept.json",))
    heads = json.loads(text)["heads"]
    layers = sorted({head["layer"] for head in heads})
    return [[_head(head) for head in heads if head["layer"] == layer] for layer in layers]


@functools.cache
def scores(policy: str) -> list[list[list[float]]]:
    """The scores [layers][KV heads] of all tokens."""
    words = ["evict", sample().path, "--policy", policy, "--scores", "--out", "k.json"]
    _, (text,) = run(*words, files=("k.json",))
    heads = json.loads(text)["heads"]
    layers = sorted({head["layer"] for head in heads})
    return [[head["scores"] for head in heads if head["layer"] == layer] for layer in layers]


@functools.cache
def calibration(policy: str, tau: float) -> dict:
    """The curve that `calibrate` fits to the measured rows of the sample."""
    words = ["calibrate", sample().path, "--policy", policy, "--tau", tau, "--out", "c.json"]
    _, (text,) = run(*words, files=("c.json",))
    return json.loads(text)


@functools.cache
def parameters(policy: str) -> dict[str, str]:
    """All parameters of a policy as texts, as its list states them."""
    _, (text,) = run("evict", sample().path, "--policy", policy, "--layers", 0, "--out", "k.json", files=("k.json",))
    read = json.loads(text)["parameters"]
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in read.items()}


def fetch(runs: list[tuple[str, str, int]]) -> None:
    """Fetches kept lists ahead, two at a time."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda one: kept(*one), dict.fromkeys(runs)))
