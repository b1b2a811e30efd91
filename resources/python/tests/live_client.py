"""A client of the worker for tests: over pipes, or with the session in this process."""

from __future__ import annotations

import base64
import io
import json
import pathlib
import subprocess
import sys
from typing import Any

import numpy as np

from kvscope_live.channel import Channel
from kvscope_live.errors import LiveError
from kvscope_live.frames import GREETING, encode_frame, read_frame
from kvscope_live.requests import Parameters, Request
from kvscope_live.session import Session

ROOT = pathlib.Path(__file__).parents[1]
COMMAND = [sys.executable, "-m", "kvscope_live", "--stdio"]


class Worker:
    """A worker process, and the messages that it sent."""

    def __init__(self, command: list[str] = COMMAND) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=ROOT)
        assert self.process.stdin and self.process.stdout and self.process.stderr
        self.stdin, self.stdout, self.stderr = self.process.stdin, self.process.stdout, self.process.stderr
        assert self.stdout.read(len(GREETING)) == GREETING
        self.count = 0
        self.notes: list[dict[str, Any]] = []

    def write(self, data: bytes) -> None:
        self.stdin.write(data)
        self.stdin.flush()

    def send(self, method: str, params: dict[str, Any], number: int | None = None) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        pieces = encode_frame(message if number is None else message | {"id": number})
        self.write(b"".join(bytes(piece) for piece in pieces))

    def message(self) -> dict[str, Any]:
        """The next message; its blobs are dropped."""
        frame = read_frame(self.stdout)
        assert frame is not None, self.stderr.read()
        message: dict[str, Any] = json.loads(frame[0])
        return message

    def answer(self, number: int | None) -> dict[str, Any]:
        """The answer to a request, which may have come already; other messages before it are kept in `notes`."""

        def is_it(message: dict[str, Any]) -> bool:
            return "method" not in message and message["id"] == number

        for place, noted in enumerate(self.notes):
            if is_it(noted):
                return self.notes.pop(place)
        while not is_it(message := self.message()):
            self.notes.append(message)
        return message

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.count += 1
        self.send(method, params, self.count)
        return self.answer(self.count)

    def close(self) -> int:
        """The exit code after the end of the stream."""
        self.stdin.close()
        code = self.process.wait(timeout=60)
        self.stdout.close()
        self.stderr.close()
        return code


class Recorder(Channel):
    """A channel without a client: messages are kept."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), io.BytesIO(), set)
        self.sent: list[tuple[dict[str, Any], list[bytes]]] = []

    def _send(self, message: dict[str, Any], blobs: Any = ()) -> None:
        encode_frame(message, blobs)
        self.sent.append((message, [bytes(blob) for blob in blobs]))


class Local:
    """A session in this process; errors are raised."""

    def __init__(self) -> None:
        self.channel = Recorder()
        self.session = Session(self.channel)
        self.count = 0

    def ask(self, method: str, params: dict[str, Any], blobs: tuple[bytes, ...] = ()) -> dict[str, Any]:
        self.count += 1
        sent = json.loads(json.dumps(params, allow_nan=False))
        return self.session.methods[method](Request(self.count, method, Parameters(sent), list(blobs)))

    def refused(self, method: str, params: dict[str, Any], blobs: tuple[bytes, ...] = ()) -> LiveError:
        try:
            self.ask(method, params, blobs)
        except LiveError as error:
            return error
        raise AssertionError(f"{method} was answered")

    def select(self, context: str, rows: list[list[int]], kept: Any, weights: Any = (), name: str = "p") -> Any:
        """`kept` [rows, n] bools; `weights` numerator and denominator of the kept ones, in order."""
        bits = np.packbits(np.asarray(kept, bool), axis=1, bitorder="little")
        blobs = [bits.tobytes(), *(np.asarray(w, "<f4").tobytes() for w in weights)]
        names = ("kept", "numerator", "denominator")
        described = [{"name": n, "dtype": "u8", "shape": [len(b)]} for n, b in zip(names, blobs, strict=False)]
        params = {"context_id": context, "name": name, "rows": rows, "blobs": described}
        return self.ask("selection/set", params, tuple(blobs))

    def tensor(self, context: str, layer: int, role: str, rows: list[int] | None = None) -> Any:
        """The tensor from its pieces."""
        first = len(self.channel.sent)
        params = {"context_id": context, "layer": layer, "role": role, "rows": rows}
        count = self.ask("tensors/get", params)["bytes"]
        notes = [(m["params"], blobs) for m, blobs in self.channel.sent[first:] if m["method"] == "tensors/data"]
        data = b"".join(blob for _, blobs in notes for blob in blobs)
        offsets = np.cumsum([0] + [len(blobs[0]) for _, blobs in notes])[:-1].tolist()
        assert [about["offset"] for about, _ in notes] == offsets and len(data) == count == notes[0][0]["of"]
        kinds = {"f32": "<f4", "f16": "<f2", "bf16": "<u2"}
        return np.frombuffer(data, kinds[notes[0][0]["dtype"]]).reshape(notes[0][0]["shape"])


def texts_of(answer: dict[str, Any]) -> list[bytes]:
    return [base64.b64decode(text) for text in answer["bytes"]]
