"""Three threads between the client and the work: one reads, one writes, the main thread computes.

The reader acts on a cancel, on a newer generation and on the end of the stream at once, whatever the main thread does.
The writer gives a sign of life every two seconds. Work asks at every layer and token whether it should stop.
"""

from __future__ import annotations

import collections
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

from kvscope_live import errors
from kvscope_live.errors import LiveError, Stopped
from kvscope_live.frames import GREETING, FrameError, encode_frame, parse_json, read_frame
from kvscope_live.requests import Parameters, Request

ALIVE_SECONDS, PARENT_SECONDS, PROGRESS_SECONDS = 2.0, 0.3, 0.1
WAITING_BYTES, WAITING_REQUESTS = 256 << 20, 4096  # limits of the queue
UNSENT_BYTES = 8 << 20  # beyond this a stream of tensors waits
FIRST_CREDIT = 32 << 20


class Channel:
    """The client, as the work sees it. One request runs at a time."""

    def __init__(self, source: BinaryIO, sink: BinaryIO, methods: Callable[[], set[str]]) -> None:
        """`methods` are the names that the work answers. Nothing runs before `start`."""
        self._source, self._sink, self._methods = source, sink, methods
        self._lock = threading.Condition()
        self._waiting: collections.deque[Request] = collections.deque()
        self._running: Request | None = None
        self._newest: dict[str, int] = {}
        self._unsent: collections.deque[Sequence[bytes | memoryview]] = collections.deque()
        self._unsent_bytes, self._credit = 0, FIRST_CREDIT
        self._initialized = self._ending = False
        self._progress_at = 0.0
        self.memory: Callable[[], int] = lambda: 0
        self.status: dict[str, Any] = {"stage": "idle", "layer": 0, "token": 0}

    def start(self) -> None:
        """Starts reading and writing."""
        for work in (self._read, self._write):
            threading.Thread(target=work, daemon=True).start()

    def watch_parent(self, process: int | None) -> None:
        """Ends the worker when `process`, or the process that started it, is gone."""
        first = os.getppid()

        def watch() -> None:
            while os.getppid() == first and _is_there(process):
                time.sleep(PARENT_SECONDS)
            end(0)

        threading.Thread(target=watch, daemon=True).start()

    def next(self) -> Request:
        """Waits for the next request and makes it the running one."""
        with self._lock:
            self._lock.wait_for(lambda: self._waiting)
            self._running = self._waiting.popleft()
            return self._running

    def answer(self, result: dict[str, Any] | None, error: LiveError | None, blobs: Sequence[bytes] = ()) -> None:
        """Answers the running request."""
        with self._lock:
            request, self._running = self._running, None
            self.status = {"stage": "idle", "layer": 0, "token": 0}
        if request:
            self._reply(request.id, result, error, blobs)

    def checkpoint(self, **status: Any) -> None:
        """Errors (Stopped): the running request should end. `status` is sent with the next sign of life."""
        self.status |= status
        if self._running and self._running.stop:
            raise Stopped

    def progress(self, stage: str, done: int, total: int, seconds_left: float | None = None) -> None:
        """Says how far the running request is, ten times a second at most; a checkpoint too."""
        self.checkpoint(stage=stage)
        now = time.monotonic()
        if now - self._progress_at < PROGRESS_SECONDS and done < total:
            return
        self._progress_at = now
        left = None if seconds_left is None else round(seconds_left, 1)
        numbers = {"stage": stage, "done": done, "total": total, "seconds_left": left}
        self.notify("$/progress", {"id": self._running.id if self._running else None} | numbers)

    def notify(self, method: str, params: dict[str, Any], blobs: Sequence[bytes | memoryview] = ()) -> None:
        """Sends a notification."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params}, blobs)

    def spend(self, count: int) -> None:
        """Waits until the client has given credit for `count` bytes. Errors (Stopped)."""
        with self._lock:
            while self._credit < count or self._unsent_bytes > UNSENT_BYTES:
                self._lock.wait()
                self.checkpoint()
            self._credit -= count

    def _send(self, message: dict[str, Any], blobs: Sequence[bytes | memoryview] = ()) -> None:
        pieces = encode_frame(message, blobs)
        with self._lock:
            self._unsent.append(pieces)
            self._unsent_bytes += _size(pieces)
            self._lock.notify_all()

    def _reply(
        self,
        number: int | str | None,
        result: dict[str, Any] | None,
        error: LiveError | None,
        blobs: Sequence[bytes] = (),
    ) -> None:
        """Sends an answer, or an error that says why there is none: the client waits for one of the two."""
        about = {"jsonrpc": "2.0", "id": number}
        try:
            self._send(about | ({"error": error.as_json()} if error else {"result": result or {}}), blobs)
        except Exception as failure:  # NaN, or more than a frame takes
            print(f"kvscope_live: the answer to {number} cannot be sent ({failure})", file=sys.stderr, flush=True)
            why = LiveError(errors.FAILED, f"the answer cannot be sent ({failure})")
            self._send(about | {"error": why.as_json()})

    def _write(self) -> None:
        try:
            self._sink.write(GREETING)
            self._sink.flush()
            alive = time.monotonic() + ALIVE_SECONDS
            while True:
                with self._lock:
                    self._lock.wait_for(lambda: self._unsent or self._ending, max(0.0, alive - time.monotonic()))
                    pieces = self._unsent.popleft() if self._unsent else []
                    ending = self._ending and not pieces
                for piece in pieces:
                    self._sink.write(piece)
                self._sink.flush()
                if ending:
                    end(0)
                if time.monotonic() >= alive:
                    alive = time.monotonic() + ALIVE_SECONDS
                    self.notify("$/alive", self.status | {"memory_used": self.memory()})
                with self._lock:
                    self._unsent_bytes -= _size(pieces)
                    self._lock.notify_all()
        except OSError:  # the client is gone
            end(0)

    def _read(self) -> None:
        try:
            while (frame := read_frame(self._source)) is not None:
                self._take(*frame)
        except FrameError as error:
            print(f"kvscope_live: {error}; the worker ends.", file=sys.stderr, flush=True)
            end(2)
        end(0)

    def _take(self, text: bytes, blobs: list[bytes]) -> None:
        try:
            message = parse_json(text)
        except (ValueError, RecursionError) as error:
            self._reply(None, None, LiveError(errors.PARSE_ERROR, f"the message cannot be read ({error})"))
            return
        number = message.get("id") if isinstance(message, dict) else None
        number = number if isinstance(number, int | str) else None
        try:
            method, params = _parts(message)
            if number is None:
                self._hear(method, params)
            else:
                self._accept(Request(number, method, Parameters(params), blobs))
        except LiveError as error:
            self._reply(number, None, error)

    def _hear(self, method: str, params: dict[str, Any]) -> None:
        """Acts on a notification; unknown ones are ignored."""
        with self._lock:
            if method == "$/cancel":
                self._stop(lambda request: request.id == params.get("id"), errors.CANCELLED)
            elif method == "stream/credit":
                count = params.get("bytes")
                self._credit += count if type(count) is int and count > 0 else 0
            elif method == "exit":
                self._ending = True
                self._stop(lambda _: True, errors.CANCELLED)
            self._lock.notify_all()

    def _accept(self, request: Request) -> None:
        """Queues a request. Errors (LiveError): the request will not run."""
        if not self._initialized and request.method != "initialize":
            raise LiveError(errors.NOT_INITIALIZED, "the worker was not initialized", "", "Send initialize first")
        if request.method not in self._methods():
            raise LiveError(errors.UNKNOWN_METHOD, f"there is no method {request.method}")
        self._initialized = True
        with self._lock:
            if request.generation is not None:
                newest = self._newest.get(request.context, request.generation)
                if request.generation < newest:
                    raise outdated()
                self._newest[request.context] = request.generation
                self._stop(lambda other: _is_older(other, request), errors.OUTDATED)
            if len(self._waiting) >= WAITING_REQUESTS or sum(r.size() for r in self._waiting) > WAITING_BYTES:
                raise LiveError(errors.BUSY, "too many requests wait", "", "Wait for answers")
            self._waiting.append(request)
            self._lock.notify_all()

    def _stop(self, which: Callable[[Request], bool], code: int) -> None:
        """Of the requests that `which` selects, answers the waiting and stops the running one. The lock is held."""
        for request in [request for request in self._waiting if which(request)]:
            self._waiting.remove(request)
            self._reply(request.id, None, stopped(code))
        if self._running and not self._running.stop and which(self._running):
            self._running.stop = code


def _size(pieces: Sequence[bytes | memoryview]) -> int:
    return sum(memoryview(piece).nbytes for piece in pieces)


def stopped(code: int) -> LiveError:
    """The answer to a request that was stopped."""
    return outdated() if code == errors.OUTDATED else LiveError(errors.CANCELLED, "the request was cancelled")


def outdated() -> LiveError:
    """The answer to a request of an older generation."""
    return LiveError(errors.OUTDATED, "a newer request took its place")


def end(code: int) -> None:
    """Ends the process at once: the main thread may be inside a long product."""
    sys.stderr.flush()
    os._exit(code)


def _is_older(request: Request, newer: Request) -> bool:
    same = request.context == newer.context and request.generation is not None and newer.generation is not None
    return same and (request.generation or 0) < (newer.generation or 0)


def _is_there(process: int | None) -> bool:
    if not process:
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def _parts(message: Any) -> tuple[str, dict[str, Any]]:
    """Method and parameters. Errors (LiveError): it is no request."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise LiveError(errors.INVALID_REQUEST, "the message is no request of JSON-RPC 2.0")
    method, params = message.get("method"), message.get("params") or {}
    if not isinstance(method, str) or not isinstance(params, dict):
        raise LiveError(errors.INVALID_REQUEST, "the request has no method, or parameters without names")
    return method, params
