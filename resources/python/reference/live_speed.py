"""Speed of the live worker on TinyLM, beside kvpress, which reads the context anew for every press.

From resources/python: `PYTHONPATH=.:tests PYTHON reference/live_speed.py [THREADS]`. Each line shows the minimum over
several runs of wall and CPU milliseconds; on a machine with other work the CPU time is the one to compare.
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from live_client import Local, Worker
from transformers import DynamicCache

from kvscope_live.frames import encode_frame

ROOT = pathlib.Path(__file__).resolve().parents[3]
TOKENS, QUESTION, ANSWER, KEPT, RUNS = 1024, 16, 16, 102, 7
PRESSES = ("KnormPress", "SnapKVPress", "StreamingLLMPress", "KeyDiffPress")


def least(work: Callable[[], Any], before: Callable[[], Any] = lambda: None, runs: int = RUNS) -> tuple[float, float]:
    """Wall and CPU milliseconds; `before` is not counted."""
    walls, cpus = [], []
    for _ in range(runs):
        before()
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return min(walls) * 1e3, min(cpus) * 1e3


def show(what: str, times: tuple[float, float], ratio: str = "") -> None:
    """One line of the table."""
    print(f"{what:<58} {times[0]:8.1f} {times[1]:8.1f}  {ratio}", flush=True)


class Live:
    """The worker's session in this process, with a context read; `forget` clears its cached losses."""

    def __init__(self) -> None:
        """Opens TinyLM."""
        self.local, self.rng = Local(), np.random.default_rng(1)
        self.local.ask("model/open", {"path": str(ROOT / "sample_data/tinylm"), "device": "cpu", "dtype": "f32"})
        self.model = self.local.session.models["m1"].model
        text = (ROOT / "sample_data/genesis.txt").read_text(encoding="utf-8")
        segments = [{"kind": "context", "text": text[:60_000]}]
        self.text = self.local.ask("text/tokenize", {"segments": segments, "bos": True})["ids"]
        self.ids = self.text[: TOKENS + QUESTION + ANSWER]
        given = {"ids": self.ids, "segments": [], "cut": TOKENS}
        self.context = self.local.ask("context/read", given)["context_id"]
        self.answers: Any = self.local.session.contexts[self.context].answers
        self.kept: list[Any] = [None] * 8
        self.other(8)
        self.asked: dict[str, Any] = {"context_id": self.context, "question_ids": self.ids[TOKENS : TOKENS + QUESTION]}

    def forget(self) -> None:
        """Makes the next `score` compute all losses anew."""
        self.answers._scores.clear()
        self.answers._asked = None

    def select(self, count: int) -> list[str]:
        """Sends the selections of `count` panes."""
        rows = [[layer, head] for layer in range(6) for head in range(2)]
        return [str(self.local.select(self.context, rows, k)["selection_id"]) for k in self.kept[:count]]

    def score(self, chosen: list[str]) -> None:
        """Losses of the answer."""
        answer = self.ids[TOKENS + QUESTION :]
        self.local.ask("answer/score", self.asked | {"selection_ids": chosen, "answer_ids": answer})

    def round(self, count: int = 4) -> None:
        """From a moved slider to losses and texts."""
        chosen = self.select(count)
        self.score(chosen)
        self.local.ask("answer/generate", self.asked | {"selection_ids": chosen, "max_new": ANSWER})

    def other(self, panes: int = 4) -> None:
        """Gives each of the first panes new random tokens to keep."""
        self.kept[:panes] = [self.rng.random((12, TOKENS)).argsort(1).argsort(1) < KEPT for _ in range(panes)]

    def move(self, panes: int) -> None:
        """Each of the first panes keeps another token in every head."""
        for kept in self.kept[:panes]:
            for row in kept:
                row[self.rng.choice(np.flatnonzero(row))] = False
                row[self.rng.choice(np.flatnonzero(~row))] = True


class Piped(Worker):
    """A worker process, asked over its pipes as the window asks it."""

    def __init__(self, live: Live) -> None:
        """Reads the same context."""
        super().__init__()
        about = {"protocol": [1, 0], "client": {"name": "speed", "version": "0"}, "parent_pid": None, "locale": "C"}
        self.ask("initialize", about)
        self.ask("model/open", {"path": str(ROOT / "sample_data/tinylm"), "device": "cpu", "dtype": "f32"})
        given = {"ids": live.ids, "segments": [], "cut": TOKENS}
        name = self.ask("context/read", given)["result"]["context_id"]
        self.live, self.asked = live, live.asked | {"context_id": name}

    def select(self, kept: Any) -> str:
        """One selection, as bits."""
        blob = np.packbits(kept, axis=1, bitorder="little").tobytes()
        rows = [[layer, head] for layer in range(6) for head in range(2)]
        about = {"name": "p", "rows": rows, "blobs": [{"name": "kept", "dtype": "bits", "shape": [12, TOKENS]}]}
        self.count += 1
        params = about | {"context_id": self.asked["context_id"]}
        message = {"jsonrpc": "2.0", "id": self.count, "method": "selection/set", "params": params}
        self.write(b"".join(bytes(piece) for piece in encode_frame(message, [blob])))
        return str(self.answer(self.count)["result"]["selection_id"])

    def round(self) -> None:
        """From a moved slider until losses and texts have arrived."""
        chosen = self.asked | {"selection_ids": [self.select(kept) for kept in self.live.kept[:4]]}
        self.ask("answer/score", chosen | {"answer_ids": self.live.ids[TOKENS + QUESTION :]})
        self.ask("answer/generate", chosen | {"max_new": ANSWER})

    def seconds(self) -> float:
        """CPU seconds of the worker and of this client."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") + time.process_time()


def piped(live: Live) -> None:
    """The round over pipes: least wall time, mean CPU time of both processes."""
    worker, walls = Piped(live), []
    worker.round()
    before, own = worker.seconds(), 0.0
    for _ in range(2 * RUNS):
        mark = time.process_time()
        live.other()
        own += time.process_time() - mark
        begun = time.perf_counter()
        worker.round()
        walls.append(time.perf_counter() - begun)
    cpu = (worker.seconds() - before - own) / len(walls)
    show("round over pipes: 4 panes keep other tokens", (min(walls) * 1e3, cpu * 1e3))
    worker.close()


def presses(live: Live) -> None:
    """kvpress: reads the context under each press, then answers."""
    import kvpress

    def one(name: str) -> None:
        press = getattr(kvpress, name)(compression_ratio=1 - KEPT / TOKENS)
        cache, ids = DynamicCache(), torch.tensor([live.ids])
        with torch.no_grad(), press(live.model):
            live.model.model(input_ids=ids[:, :TOKENS], past_key_values=cache)
        with torch.no_grad():
            token, begin = ids[:, TOKENS : TOKENS + QUESTION], TOKENS
            for _ in range(ANSWER):
                at = torch.arange(begin, begin + token.shape[1])[None]
                out = live.model(input_ids=token, past_key_values=cache, position_ids=at, logits_to_keep=1)
                begin += token.shape[1]
                token = out.logits[:, -1:].argmax(-1)

    live.model.set_attn_implementation("sdpa")
    show("kvpress: 4 presses, one after the other, texts alone", least(lambda: [one(name) for name in PRESSES]))


def prefill(live: Live, tokens: int, runs: int) -> None:
    """Reading a context and writing an answer's first token, beside the model's own prefill."""
    ids = (live.text * (1 + tokens // len(live.text)))[:tokens]

    def own() -> None:
        with torch.no_grad():
            live.model(input_ids=torch.tensor([ids]), past_key_values=DynamicCache(), logits_to_keep=1)

    def read() -> None:
        name = live.local.ask("context/read", {"ids": ids, "segments": [], "cut": tokens - 32})["context_id"]
        asked = {"context_id": name, "question_ids": ids[tokens - 32 :], "selection_ids": [None], "max_new": 1}
        live.local.ask("answer/generate", asked)
        live.local.ask("context/close", {"context_id": name})

    live.model.set_attn_implementation("sdpa")
    base, found = least(own, runs=runs), least(read, runs=runs)
    show(f"the model's own prefill of {tokens} tokens", base)
    show(f"context/read of {tokens} tokens, first token", found, f"x{found[1] / base[1]:.2f}")


def main() -> None:
    """Prints the table."""
    torch.set_num_threads(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
    live = Live()
    print(f"{'TinyLM, 1,024 tokens, 10 % kept, question 16, answer 16':<58} {'wall ms':>8} {'CPU ms':>8}")
    one = (0.0, 0.0)
    for count in (1, 2, 4, 8):
        chosen = live.select(count)
        found = least(lambda chosen=chosen: live.score(chosen), live.forget)  # type: ignore[misc]
        one = found if count == 1 else one
        show(f"losses of {count} policies in one pass", found, f"x{found[1] / one[1]:.2f}")
    live.round()
    show("round: 4 panes move, texts stay", least(live.round, lambda: live.move(4)))
    show("round: 4 panes keep other tokens throughout", least(live.round, live.other, 2 * RUNS))
    show("round: 1 pane of 4 moves", least(live.round, lambda: live.move(1)))
    show("round: nothing moves", least(live.round))
    piped(live)
    for tokens, runs in ((1024, 3), (8192, 1), *([(32_768, 1)] if "32k" in sys.argv else [])):
        prefill(live, tokens, runs)
    if importlib.util.find_spec("kvpress"):
        presses(live)  # last, because kvpress wraps the attention of the whole process


if __name__ == "__main__":
    main()
