"""The worker's frames, its limits, and when it ends; nothing here needs torch."""

from __future__ import annotations

import io
import json
import os
import pathlib
import subprocess
import sys
import time
from typing import Any

import pytest
from live_client import COMMAND, ROOT, Worker

from kvscope_live.frames import BLOB_BYTES, JSON_BYTES, FrameError, encode_frame, parse_json, read_frame


def frame(message: Any, *blobs: bytes) -> bytes:
    return b"".join(bytes(piece) for piece in encode_frame(message, blobs))


def test_frames_are_read_as_they_were_written() -> None:
    stream = io.BytesIO(frame({"a": "ü{["}, b"", b"12") + frame({"b": 1}))
    first, second, end = read_frame(stream), read_frame(stream), read_frame(stream)
    assert first is not None and second is not None and end is None
    assert json.loads(first[0]) == {"a": "ü{["} and first[1] == [b"", b"12"]
    assert json.loads(second[0]) == {"b": 1} and second[1] == []
    assert frame({"b": 1}).endswith(b"\n")  # a relay that passes on whole lines passes on the frame


class Counting(io.BytesIO):
    """Records the largest size that was asked for."""

    largest = 0

    def read(self, size: int | None = -1) -> bytes:
        self.largest = max(self.largest, size or 0)
        return super().read(size)


@pytest.mark.parametrize(
    "data",
    [
        b"hello\r\n\r\n",
        b"Content-Length: 9223372036854775808\r\n\r\n{}",
        b"Content-Length: -1\r\n\r\n{}",
        b"Content-Length: 0x2\r\n\r\n{}",
        f"Content-Length: {JSON_BYTES + 1}\r\n\r\n".encode() + b"{}",
        b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        b"Content-Length: 2 2\r\n\r\n{}",
        b"Kvscope-Blobs: 1\r\n\r\n{}x",
        b"Content-Length: 2\n\n{}",
        b"Content-Length: 2\r\n" + b"x" * 2000,
        b"Content-Length: 2\r\n" + b"Kvscope-Blobs:" + b" 1" * 9 + b"\r\n\r\n{}",
        f"Content-Length: 2\r\nKvscope-Blobs: {BLOB_BYTES + 1}\r\n\r\n".encode() + b"{}",
        b"Content-Length: 2\r\n",
        b"Content-Length: 9\r\n\r\n{}",
        b"Content-Length: 2\r\nKvscope-Blobs: 5\r\n\r\n{}abc",
        bytes(range(256)),
    ],
)
def test_what_is_no_frame_is_refused_before_it_takes_room(data: bytes) -> None:
    stream = Counting(data)
    with pytest.raises(FrameError):
        read_frame(stream)
    assert stream.largest < 16


def test_json_has_a_depth_and_no_infinity() -> None:
    assert parse_json(b"[" * 32 + b"]" * 32)
    assert parse_json(b'"' + b"[" * 99 + b'\\""') == "[" * 99 + '"'
    for text in (b"[" * 33 + b"]" * 33, b'{"a":NaN}', b"[-Infinity]", b"{", b"[[1", b"\xff"):
        with pytest.raises(ValueError):
            parse_json(text)
    with pytest.raises(ValueError):
        encode_frame({"a": float("nan")})
    with pytest.raises(ValueError):
        encode_frame({}, [b"x" * (BLOB_BYTES + 1)])


def test_nothing_is_answered_before_initialize_and_unknown_methods_never() -> None:
    worker = Worker()
    assert worker.ask("model/inspect", {"path": "x"})["error"]["code"] == -32002
    worker.send("unknown/notification", {})
    worker.write(frame({"jsonrpc": "1.0", "id": 70, "method": "shutdown"}))
    assert worker.answer(70)["error"]["code"] == -32600
    worker.write(frame([1]))
    assert worker.answer(None)["error"]["code"] == -32600
    worker.write(b"Content-Length: 1\r\n\r\n{")
    assert worker.answer(None)["error"]["code"] == -32700
    error = worker.ask("initialize", {"protocol": [9, 0]})["error"]
    assert error["code"] == -32602 and error["data"]["place"] == "protocol" and error["data"]["remedy"]
    assert worker.ask("no/such", {})["error"]["code"] == -32601
    assert "result" in worker.ask("shutdown", {})
    assert worker.close() == 0


def test_the_end_of_the_stream_and_exit_end_the_worker() -> None:
    for leave in (lambda w: w.send("exit", {}), lambda w: w.stdin.close()):
        worker = Worker()
        leave(worker)
        assert worker.process.wait(timeout=60) == 0
        worker.stdout.close()


@pytest.mark.parametrize("data", [b"bash: hello\n", b"Content-Length: 9223372036854775808\r\n\r\n"])
def test_garbage_ends_the_worker_with_one_sentence(data: bytes) -> None:
    worker = Worker()
    worker.write(data)
    assert worker.process.wait(timeout=60) == 2
    said = worker.stderr.read().decode()
    assert said.startswith("kvscope_live: ") and said.endswith("; the worker ends.\n") and said.count("\n") == 1
    worker.close()


def test_half_a_frame_ends_the_worker() -> None:
    worker = Worker()
    worker.write(frame({"jsonrpc": "2.0", "id": 1, "method": "initialize"})[:-3])
    assert worker.close() == 2


def test_a_library_that_prints_does_not_reach_the_frames() -> None:
    code = (
        "import os, sys; from kvscope_live import session, __main__;"
        "say = lambda self, request: [print('banner'), os.system('echo child'), {}][2];"
        "session.Session._shutdown = say; __main__.main(['--stdio'])"
    )
    worker = Worker([sys.executable, "-c", code])
    assert "error" in worker.ask("initialize", {"protocol": [0]})
    assert "result" in worker.ask("shutdown", {})
    worker.stdin.close()
    assert worker.stderr.read().split() == [b"banner", b"child"]
    assert worker.close() == 0


@pytest.mark.parametrize(
    ("result", "why"), [("{'a': float('nan')}", "JSON compliant"), ("{'a': 'x' * 2**24}", "limits")]
)
def test_an_answer_that_cannot_be_sent_is_answered_with_an_error(result: str, why: str) -> None:
    """Also an answer larger than any reader accepts; the requests behind it are answered as ever."""
    code = (
        "from kvscope_live import session, __main__;"
        f"session.Session._shutdown = lambda self, request: {result};"
        "__main__.main(['--stdio'])"
    )
    worker = Worker([sys.executable, "-c", code])
    assert "error" in worker.ask("initialize", {"protocol": [0]})
    worker.send("shutdown", {}, 7)
    worker.send("context/close", {"context_id": "c1"}, 8)
    assert worker.answer(8)["result"] == {}
    (answer,) = (note for note in worker.notes if note.get("id") == 7)
    worker.stdin.close()
    assert "the answer to 7 cannot be sent" in worker.stderr.read().decode()
    assert worker.close() == 0
    assert answer["error"]["code"] == -32000 and answer["error"]["message"].startswith("the answer cannot be sent (")
    assert why in answer["error"]["message"]


def test_threads_that_wait_spin_briefly() -> None:
    """PyTorch reads the setting when it is imported: that must happen later, and the greeting needs no PyTorch."""
    code = (
        "import os, sys; from kvscope_live import session, __main__;"
        "say = lambda self, request: {'torch': 'torch' in sys.modules, 'wait': os.environ['GOMP_SPINCOUNT']};"
        "session.Session._shutdown = say; __main__.main(['--stdio'])"
    )
    worker = Worker([sys.executable, "-c", code])
    assert "error" in worker.ask("initialize", {"protocol": [0]})
    assert worker.ask("shutdown", {})["result"] == {"torch": False, "wait": "10000"}
    assert worker.close() == 0


def test_the_greeting_is_a_line_of_its_own_behind_a_prompt() -> None:
    behind = ["sh", "-c", "printf 'You have mail. '; exec \"$@\"", "sh", *COMMAND]
    with subprocess.Popen(behind, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as worker:
        assert worker.stdin and worker.stdout
        assert [worker.stdout.readline(), worker.stdout.readline()] == [b"You have mail. \n", b"KVSCOPE 1\n"]
        worker.stdin.close()


def test_the_worker_goes_with_the_process_that_started_it() -> None:
    """The worker's input stays open in another process, so that only the parent's death ends it."""
    read, write = os.pipe()
    code = (
        f"import subprocess, time; p = subprocess.Popen({COMMAND!r}, stdin={read}, stdout=subprocess.DEVNULL);"
        "print(p.pid, flush=True); time.sleep(600)"
    )
    starter = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, pass_fds=[read], cwd=ROOT)
    assert starter.stdout
    worker = pathlib.Path(f"/proc/{int(starter.stdout.readline())}/stat")
    request = {"protocol": [0], "parent_pid": starter.pid}
    os.write(write, frame({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": request}))
    starter.kill()
    starter.wait()
    starter.stdout.close()

    def is_running() -> bool:
        try:  # its new parent may reap it at any moment
            return worker.read_text().split(")")[1].split()[0] != "Z"
        except (FileNotFoundError, ProcessLookupError):
            return False

    deadline = time.monotonic() + 60
    while is_running():
        assert time.monotonic() < deadline, "the worker lives on"
        time.sleep(0.05)
    os.close(read)
    os.close(write)


def test_a_python_without_torch_is_told_what_to_install() -> None:
    program = "import sys; sys.modules['torch'] = None; from kvscope_live.__main__ import main; main(['--stdio'])"
    worker = Worker([sys.executable, "-c", program])
    error = worker.ask("initialize", {"protocol": [1, 0]})["error"]
    worker.close()
    assert error["message"] == "this Python has no module torch"
    assert error["data"]["remedy"] == f"Install it with `{sys.executable} -m pip install torch`"
