"""The worker's process at work on TinyLM: it answers while it computes, stops when asked, and ends with its client."""

from __future__ import annotations

import os
import pathlib
import pty
import subprocess
import tty
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from live_client import COMMAND, ROOT, Worker, texts_of

from kvscope_live.frames import encode_frame

TINYLM = pathlib.Path(__file__).resolve().parents[3] / "sample_data/tinylm"
NEEDLE = "The secret code of Sidon is 4713. "
QUESTION = "\nQuestion: what is the secret code of Sidon? Answer: The secret code of Sidon is"
TEXT = "And the evening and the morning were the first day. "


class Opened(Worker):
    """With TinyLM open and a short context read."""

    def __init__(self) -> None:
        super().__init__()
        about = {"protocol": [1, 0], "client": {"name": "test", "version": "0"}, "parent_pid": None, "locale": "C"}
        self.about = self.ask("initialize", about)["result"]
        path = {"path": str(TINYLM), "revision": None}
        self.model = self.ask("model/open", path | {"device": "cpu", "dtype": "f32"})["result"]["model_id"]
        words = {"context": TEXT * 6 + NEEDLE + TEXT * 6, "question": QUESTION, "answer": " 4713."}
        segments = [{"kind": kind, "text": text} for kind, text in words.items()]
        self.prompt = self.ask("text/tokenize", {"segments": segments, "chat": False, "bos": True})["result"]
        given = {key: self.prompt[key] for key in ("ids", "segments", "cut")}
        self.context = self.ask("context/read", given)["result"]

    def question(self) -> dict[str, Any]:
        begin = next(b for b, _, kind in self.prompt["segments"] if kind == "answer")
        ids, cut = self.prompt["ids"], self.prompt["cut"]
        return {"context_id": self.context["context_id"], "question_ids": ids[cut:begin], "answer_ids": ids[begin:]}

    def until(self, *notices: str) -> dict[str, Any]:
        """The next notification of one of these methods; messages before it are kept in `notes`."""
        while (message := self.message()).get("method") not in notices:
            self.notes.append(message)
        return message


@pytest.fixture(scope="module")
def worker() -> Iterator[Opened]:
    opened = Opened()
    yield opened
    assert opened.close() == 0


LONG = {"ids": [0] + [7 + i % 4000 for i in range(3999)], "segments": [], "cut": 3900}


def test_the_full_cache_finds_the_needle(worker: Opened) -> None:
    assert worker.about["protocol"] == [1, 6] and worker.about["devices"][0]["name"] == "cpu"
    assert b"".join(texts_of(worker.prompt)).startswith(b"<|bos|>And the evening")
    row = worker.ask("answer/score", worker.question() | {"selection_ids": [None]})["result"]["rows"][0]
    given = worker.question() | {"selection_ids": [None], "max_new": 12}
    written = worker.ask("answer/generate", given)["result"]["full"]["text"]
    assert "4713" in written and row["flip_rate"] == 0


def test_work_stops_when_it_is_cancelled(worker: Opened) -> None:
    """While it reads, while it waits, and while it writes."""
    worker.send("context/read", LONG, 100)
    worker.send("context/read", LONG, 101)
    worker.until("$/progress")
    worker.send("$/cancel", {"id": 101})
    assert worker.answer(101)["error"]["code"] == -32800
    worker.send("$/cancel", {"id": 100})
    assert worker.answer(100)["error"]["code"] == -32800
    worker.send("answer/generate", worker.question() | {"selection_ids": [None], "max_new": 4000}, 102)
    worker.send("$/cancel", {"id": 102})
    assert worker.answer(102)["error"]["code"] == -32800
    worker.send("$/cancel", {"id": 102})
    assert "result" in worker.ask("answer/score", worker.question() | {"selection_ids": [None]})


def test_the_latest_generation_wins(worker: Opened) -> None:
    """Older ones that wait or run are answered as outdated; one that comes late, too; other contexts go on."""
    given = worker.question() | {"selection_ids": [None]}
    worker.send("answer/generate", given | {"max_new": 4000, "seed": 1, "generation": 3}, 200)
    worker.send("answer/score", given | {"generation": 3}, 201)
    worker.send("answer/score", {"context_id": "other", "selection_ids": [], "generation": 1}, 202)
    worker.send("answer/score", given | {"generation": 4}, 203)
    worker.send("answer/score", given | {"generation": 3}, 204)
    answers: dict[int, dict[str, Any]] = {}
    while len(answers) < 5:
        message = worker.message()
        if "method" not in message:
            answers[message["id"]] = message
    assert {n: a["error"]["code"] for n, a in answers.items() if "error" in a} == {
        **dict.fromkeys((200, 201, 204), -32801),
        202: -32054,
    }
    assert answers[203]["result"]["generation"] == 4


def test_signs_of_life_come_while_it_computes(worker: Opened) -> None:
    """A sign comes every two seconds; a quick machine may finish the first of these reads in that time."""
    reads = range(300, 304)
    for number in reads:
        worker.send("context/read", LONG, number)
    alive = worker.until("$/alive")["params"]
    for number in reads:
        worker.send("$/cancel", {"id": number})
    assert alive["memory_used"] > 0 and {"stage", "layer", "token"} <= alive.keys()
    assert all(worker.answer(number) for number in reads)


def test_the_end_of_the_stream_ends_it_at_work() -> None:
    worker = Opened()
    worker.send("context/read", LONG, 400)
    worker.until("$/progress")
    assert worker.close() == 0


@pytest.mark.parametrize("is_raw", [False, True])
def test_a_terminal_is_refused(is_raw: bool) -> None:
    """docker exec -t keeps the terminal open when its client is gone: the worker would wait forever."""
    control, terminal = pty.openpty()
    if is_raw:
        tty.setraw(terminal)
    worker = subprocess.Popen(COMMAND, stdin=terminal, stdout=terminal, stderr=subprocess.PIPE, cwd=ROOT)
    try:
        assert worker.wait(60) == 2 and worker.stderr
        assert b"standard output is a terminal" in worker.stderr.read()
        greeting = os.read(control, 100)
        assert b"\nKVSCOPE 1\r" in greeting and greeting.endswith(b"\r\n")
    finally:
        worker.kill()
        os.close(control)
        os.close(terminal)


def used(process: int) -> tuple[int, int]:
    """Resident bytes and open files of a process."""
    resident = pathlib.Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]
    return int(resident) * os.sysconf("SC_PAGE_SIZE"), len(os.listdir(f"/proc/{process}/fd"))


def test_a_slider_that_moves_for_long_leaves_nothing_behind(worker: Opened) -> None:
    """Each of KVSCOPE_SLIDER_MOVES rounds keeps other tokens; every fourth is abandoned for the next one."""
    rounds = min(int(os.environ.get("KVSCOPE_SLIDER_MOVES", "24")), 10_000)
    cut, rng = worker.prompt["cut"], np.random.default_rng(1)
    asked = worker.question()
    question = {key: asked[key] for key in ("context_id", "question_ids")}
    rows = [[layer, head] for layer in range(6) for head in range(2)]
    first, late = (0, 0), 0
    for move in range(rounds):
        kept = np.packbits(rng.random((12, cut)) < 0.3, axis=1, bitorder="little").tobytes()
        about = {"context_id": asked["context_id"], "name": "pane", "generation": 10 + move, "rows": rows}
        params = about | {"blobs": [{"name": "kept", "dtype": "bits", "shape": [12, cut]}]}
        worker.count += 1
        message = {"jsonrpc": "2.0", "id": worker.count, "method": "selection/set", "params": params}
        worker.write(b"".join(bytes(piece) for piece in encode_frame(message, [kept])))
        chosen = {"selection_ids": [worker.answer(worker.count)["result"]["selection_id"]], "generation": 10 + move}
        worker.ask("answer/score", asked | chosen)
        if move % 4 == 3:
            worker.count += 1
            worker.send("answer/generate", question | chosen | {"max_new": 400, "seed": move}, worker.count)
            newer = worker.count + 1
            worker.ask("answer/score", asked | {"selection_ids": [None], "generation": 11 + move})
            late += sum(note.get("id") == newer - 1 and "error" in note for note in worker.notes)
        else:
            assert worker.ask("answer/generate", question | chosen | {"max_new": 2})["result"]["rows"][0]["ids"]
        worker.notes.clear()
        if move == rounds // 2:
            first = used(worker.process.pid)
    last = used(worker.process.pid)
    assert late == rounds // 4 and last[1] == first[1]
    assert last[0] - first[0] < 32 << 20, f"{(last[0] - first[0]) >> 10} KiB more"
