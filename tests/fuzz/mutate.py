#!/usr/bin/env python3
"""Runs the program on mutated files and command lines, and counts what it must never do.

    tests/fuzz/mutate.py PROGRAM --captures 3000 --texts 3000 --words 3000 [--seed 1] [--keep FOLDER]

A run is wrong when the program crashes, runs longer than --seconds, exits with another code than 0 or 2, says several
lines (or none, or more than 1,100 bytes) when it fails, or leaves a file that it did not write whole. Each wrong run is
printed as one line of JSON: what is wrong, the command, the seed and number that make it again, the changed bytes.
The same seed gives the same runs; Ctrl+C or SIGTERM ends them with the counts so far. --only NUMBER makes one run of
its kind again and keeps its files.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from pathlib import Path

SAMPLES = Path(__file__).resolve().parents[2] / "sample_data"
LESSONS = SAMPLES.parent / "resources" / "lessons"
POLICY = ["--policy", "keydiff@0.5"]

NASTY = [
    "", " ", "-", "--", "-1", "0", "1e999", "nan", "inf", "-inf", "0.5", "1", "99999999999999999999", "0x10", "1e-300",
    "0,1", "0-1", "3-1", ",", "a\nb", "\r", "\t", "\x1b[31m", "\u202eabc", "é", "x" * 4096, "'", '"', "$(id)", "%s%n",
    "/", "/dev/null", "/dev/zero", "/dev/tty", ".", "..", "missing.h5", "/proc/self/mem", b"\xff\xfe.h5", b"a\x80",
    "keydiff", "keydiff@0.5", "snapkv:kvpress@0.2", "none", "keydiff@tau=0.9:proxy", "keydiff@tau=0.9:k=1",
    "imported,file=good.h5:/layers/00/k@0.5", "score,formula=k@0.5", "keydiff,x=1@0.5", "keydiff@0", "keydiff@2t",
    "keydiff@@", "keydiff@1e9t", ":", "=", "@", "last:0", "last:99999999999", "segment:context", "default", "good.h5",
    "good.h5:/layers/00/k", "good.h5:/", "good.h5:/nothing", "list.json", "session.kvscope", "FIFO", "FIFO.json",
    "FIFO.npz", "FIFO.h5", "SOCKET", "SOCKET.csv", "FOLDER", "FOLDER.json", "-dash.h5", "a\nb.h5", "output_error",
    "retained_mass", "token_strip", "attention_map", "curves", "600x400", "0x0", "1000000x1000000", "1,2,3,4", "paper",
]  # fmt: skip

OPTIONS = {
    "inspect": ["--verify", "--json"],
    "evict": ["--policy", "--retention", "--budget", "--cut", "--seed", "--uniforms", "--sketch", "--layers",
              "--kv-heads", "--scores", "--threads", "--arithmetic", "--out"],
    "measure": ["--policy", "--retention", "--cut", "--seed", "--selection", "--layers", "--kv-heads", "--metrics",
                "--seeds", "--uniforms", "--sketch", "--out"],
    "sweep": ["--policy", "--retention", "--budget", "--vary", "--seeds", "--layers", "--metrics", "--work", "--out"],
    "report": ["--policy", "--retention", "--budget", "--layer", "--kv-head", "--views", "--compare-with", "--engine",
               "--arithmetic", "--out"],
    "handout": ["--arithmetic", "--engine", "--threads", "--out"],
    "calibrate": ["--policy", "--triples", "--proxy", "--k", "--tau", "--weight", "--cut", "--out"],
    "plot": ["--policy", "--retention", "--layer", "--kv-head", "--q-head", "--selection", "--select", "--range",
             "--first-token", "--cursor", "--view-set", "--session", "--pane", "--active", "--size", "--scale", "--theme",
             "--out"],
    "theory": ["--policy", "--layers", "--kv-heads", "--epsilon", "--delta", "--out"],
    "convert": ["--pattern", "--layout", "--config", "--tokens", "--deflate", "--out"],
    "reproduce": ["--list", "--layers", "--csv", "--out"],
    "synth": ["--tokens", "--layers", "--q-heads", "--kv-heads", "--head-dim", "--seed", "--clusters", "--sinks",
              "--needle-begin", "--needle-length", "--collinearity", "--q-window", "--dtype", "--deflate", "--sparse",
              "--out"],
    "schema": [], "completion": [], "man": [], "views": ["--json"], "policies": ["--json"], "measures": ["--json"],
}  # fmt: skip


def mutated(data: bytes, rng: random.Random) -> tuple[bytes, list]:
    """One to four changes, and what they are."""
    data = bytearray(data)
    changes: list = []
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        at = rng.randrange(len(data)) if data else 0
        kind = rng.choice(["byte", "byte", "byte", "bit", "edge", "run", "cut", "copy"])
        if not data or kind == "cut" and rng.random() < 0.8:
            kind = "insert"
        if kind == "byte":
            data[at] = rng.randrange(256)
            changes.append([at, data[at]])
        elif kind == "bit":
            data[at] ^= 1 << rng.randrange(8)
            changes.append([at, data[at]])
        elif kind == "edge":
            data[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF])
            changes.append([at, data[at]])
        elif kind == "run":
            length = rng.choice([2, 4, 8, 16])
            value = rng.choice([0, 0xFF, 0x7F])
            data[at : at + length] = bytes([value]) * len(data[at : at + length])
            changes.append(["run", at, length, value])
        elif kind == "cut":
            del data[at:]
            changes.append(["cut", at])
        elif kind == "insert":
            piece = rng.choice([b"0", b"-", b"[", b"]", b"{", b"}", b'"', b",", b"1e999", b"null", b"\xff", b"\n", b"["
                                * 100000])  # fmt: skip
            data[at:at] = piece
            changes.append(["insert", at, piece[:8].decode("latin1"), len(piece)])
        else:
            length = rng.choice([1, 8, 64])
            source = rng.randrange(len(data))
            piece = data[source : source + length]
            data[at : at + len(piece)] = piece
            changes.append(["copy", source, at, length])
    return bytes(data), changes


class Runner:
    def __init__(self, program: str, seconds: float, keep: Path | None):
        self.program = os.path.abspath(program)
        self.seconds = seconds
        self.keep = keep
        self.wrong: Counter = Counter()
        self.codes: Counter = Counter()
        self.runs = 0
        self.environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}

    def run(self, folder: Path, words: list, number: str, changes: object) -> None:
        before = sorted(folder.iterdir())
        self.runs += 1
        code: int | str
        try:
            done = subprocess.run([self.program, *words], cwd=folder, env=self.environment, capture_output=True,
                                  stdin=subprocess.DEVNULL, timeout=self.seconds)  # fmt: skip
            code, error = done.returncode, done.stderr
        except subprocess.TimeoutExpired as late:
            code, error = "hang", late.stderr or b""
        self.codes[code] += 1
        problems = []
        if code == "hang":
            problems.append("hang")
        elif code < 0:
            problems.append("crash")
        elif code not in (0, 2):
            problems.append("code")
        if code == 2 and (error.count(b"\n") != 1 or not error.startswith(b"kvscope: ") or len(error) > 1100):
            problems.append("message")
        left = [path for path in sorted(folder.iterdir()) if path not in before]
        if any(path.name.startswith(".") for path in left) or (code != 0 and left):
            problems.append("left")
        for problem in problems:
            self.wrong[problem] += 1
        if problems:
            shown = [w.decode("latin1") if isinstance(w, bytes) else w[:80] for w in words]
            print(json.dumps({"wrong": problems, "run": number, "code": code, "words": shown, "changes": changes,
                              "error": error[-300:].decode("latin1")}), flush=True)  # fmt: skip
            if self.keep:
                shutil.copytree(folder, self.keep / number.replace("/", "_"), dirs_exist_ok=True,
                                ignore=shutil.ignore_patterns("FIFO*", "SOCKET*"))  # fmt: skip
        for path in left:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def captures(runner: Runner, folder: Path, rng: random.Random, number: str) -> None:
    source = rng.choice([SAMPLES / "broken" / "sound.h5"] * 3 + [folder / "list.h5"])
    data, changes = mutated(source.read_bytes(), rng)
    (folder / "bad.h5").write_bytes(data)
    asked = rng.choice([["inspect", "bad.h5"], ["inspect", "bad.h5", "--verify"],
                        ["measure", "bad.h5", *POLICY, "--out", "out.csv"],
                        ["evict", "bad.h5", *POLICY, "--out", "out.h5"]])  # fmt: skip
    if source.name == "list.h5":
        asked = ["measure", "good.h5", "--selection", "bad.h5", "--out", "out.json"]
        if rng.random() < 0.3:
            asked = ["evict", "good.h5", "--policy", "imported,file=bad.h5:/kept/token@0.5", "--out", "out.json"]
    runner.run(folder, asked, number, changes)


def texts(runner: Runner, folder: Path, rng: random.Random, number: str) -> None:
    name, asked = rng.choice([
        ("session.kvscope", ["plot", "token_strip", "--session", "bad.kvscope", "--out", "out.svg"]),
        ("session.kvscope", ["report", "bad.kvscope", "--views", "token_strip", "--out", "out.html"]),
        ("session.kvscope", ["handout", "bad.kvscope", "--out", "out.pdf"]),
        ("list.json", ["measure", "good.h5", "--selection", "bad.json", "--out", "out.csv"]),
        ("list.csv", ["measure", "good.h5", "--selection", "bad.csv", "--out", "out.csv"]),
        ("calibration.json", ["evict", "good.h5", "--policy", "keydiff@tau=0.9:bad.json", "--out", "out.json"]),
        ("triples.csv", ["calibrate", "--policy", "keydiff", "--triples", "bad.csv", "--out", "out.json"]),
        ("tensors.npz", ["convert", "bad.npz", "--out", "out.h5"]),
        ("tensors.safetensors", ["convert", "bad.safetensors", "--out", "out.h5"]),
        ("config.json", ["convert", "tensors.npz", "--config", "bad.json", "--out", "out.h5"]),
        ("tokens.json", ["convert", "tensors.npz", "--tokens", "bad.json", "--out", "out.h5"]),
    ])  # fmt: skip
    data, changes = mutated((folder / name).read_bytes(), rng)
    bad = folder / ("bad" + Path(name).suffix)
    bad.write_bytes(data)
    runner.run(folder, asked, number, [name, changes])
    bad.unlink()


def words(runner: Runner, folder: Path, rng: random.Random, number: str) -> None:
    command = rng.choice(list(OPTIONS))
    line: list = [command]
    if command == "plot":
        line += [rng.choice(["token_strip", "curves", "attention_map", "token_profile", "nothing", ""])]
    if OPTIONS[command] and command not in ("views", "policies", "measures", "synth"):
        line.append("good.h5" if rng.random() < 0.7 else rng.choice(NASTY))
    if rng.random() < 0.6 and "--policy" in OPTIONS[command]:
        line += POLICY
    if rng.random() < 0.6 and "--out" in OPTIONS[command]:
        line += ["--out", "out" + rng.choice([".json", ".csv", ".svg", ".h5", ".png", ".html", ".pdf"])]
    if command == "synth":
        line += ["--tokens", "64"]
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        if OPTIONS[command]:
            line.append(rng.choice(OPTIONS[command]))
        if rng.random() < 0.9:
            line.append(rng.choice(NASTY))
    if rng.random() < 0.1:
        line.insert(rng.randrange(len(line) + 1), rng.choice(NASTY))
    if len(line) == 1 and line[0] not in OPTIONS or line[0] not in OPTIONS:
        line = ["inspect", *line[1:]]  # anything else would open a window
    for program_text in ("%s%n", "$(id)"):
        assert program_text in NASTY
    runner.run(folder, line, number, None)


def npz(path: Path) -> None:
    """Keys and values of one layer, two heads, 16 tokens, 4 numbers each, as numpy would write them."""
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 16, 4), }"
    header += b" " * (64 - (10 + len(header) + 1) % 64) + b"\n"
    array = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(2 * 16 * 4 * 4)
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("k_0", "v_0"):
            archive.writestr(name + ".npy", array)


def prepare(runner: Runner, folder: Path) -> None:
    shutil.copy(SAMPLES / "broken" / "sound.h5", folder / "good.h5")
    shutil.copy(SAMPLES / "broken" / "sound.h5", folder / "-dash.h5")
    for name in ("list.json", "list.csv", "list.h5"):
        subprocess.run([runner.program, "evict", "good.h5", *POLICY, "--out", name], cwd=folder, check=True)
    subprocess.run([runner.program, "calibrate", "--policy", "keydiff", "--k", "-5", "--out", "calibration.json"],
                   cwd=folder, check=True, capture_output=True)  # fmt: skip
    session = json.loads((LESSONS / "halving.kvscope").read_text())
    session["capture"] = "good.h5"
    (folder / "session.kvscope").write_text(json.dumps(session))
    (folder / "triples.csv").write_text("retention,quality\n" + "".join(f"0.{i},0.{i + 3}\n" for i in range(1, 7)))
    npz(folder / "tensors.npz")
    spans = {f"{r}_0": {"dtype": "F32", "shape": [2, 16, 4], "data_offsets": [512 * i, 512 * i + 512]}
             for i, r in enumerate("kv")}  # fmt: skip
    header = json.dumps(spans).encode()
    (folder / "tensors.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(1024))
    (folder / "config.json").write_text(json.dumps(
        {"model_type": "llama", "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2,
         "hidden_size": 8, "head_dim": 4, "rope_theta": 10000.0, "max_position_embeddings": 64}))  # fmt: skip
    (folder / "tokens.json").write_text(json.dumps({"ids": list(range(16)), "texts": ["a"] * 16}))
    for name in ("FIFO", "FIFO.json", "FIFO.npz", "FIFO.h5"):
        os.mkfifo(folder / name)
    for name in ("FOLDER", "FOLDER.json"):
        (folder / name).mkdir()
    (folder / "a\nb.h5").write_bytes(b"no capture")
    import socket

    for name in ("SOCKET", "SOCKET.csv"):
        here = os.getcwd()
        os.chdir(folder)  # a socket's path is short
        socket.socket(socket.AF_UNIX).bind(name)
        os.chdir(here)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    kinds = {"captures": captures, "texts": texts, "words": words}
    for kind in kinds:
        parser.add_argument(f"--{kind}", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--keep", type=Path, help="a folder for the files of wrong runs")
    parser.add_argument("--only", type=int)
    asked = parser.parse_args()
    for ending in (signal.SIGINT, signal.SIGTERM):  # also in the background of a shell, which ignores the first
        signal.signal(ending, signal.default_int_handler)
    runner = Runner(asked.program, asked.seconds, asked.keep)
    with contextlib.suppress(KeyboardInterrupt), tempfile.TemporaryDirectory(prefix="kvscope-mutate-") as name:
        folder = Path(name)
        prepare(runner, folder)
        for kind, one in kinds.items():
            for i in range(getattr(asked, kind)):
                if asked.only in (None, i):
                    one(runner, folder, random.Random(f"{asked.seed}/{kind}/{i}"), f"{asked.seed}/{kind}/{i}")
    print(json.dumps({"runs": runner.runs, "wrong": runner.wrong, "codes": {str(k): v for k, v in runner.codes.items()}}))
    return 1 if runner.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
