"""Frames: a header with sizes, JSON, raw blobs. Every size is checked before anything of that size is allocated.

Content-Length: 412\r\n
Kvscope-Blobs: 4194304 16\r\n        (optional)
\r\n
{"jsonrpc":"2.0", ...}<blob 0><blob 1>
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, BinaryIO, NoReturn

GREETING = b"\nKVSCOPE 1\n"  # a line of its own, even behind a prompt or a title that a login shell printed
HEADER_BYTES, JSON_BYTES, JSON_DEPTH = 1024, 16 << 20, 32
BLOB_BYTES, BLOBS = 4 << 20, 8
_FIELD = re.compile(rb"(Content-Length|Kvscope-Blobs): (\d{1,9}(?: \d{1,9})*)\r\n")
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)


class FrameError(Exception):
    """What came is no frame; nothing behind it can be trusted."""


def read_frame(stream: BinaryIO) -> tuple[bytes, list[bytes]] | None:
    """JSON text and blobs of the next frame; None where the stream ended before it.

    Errors (FrameError): anything else than a whole frame within the limits.
    """
    header = _read_header(stream)
    if header is None:
        return None
    length, sizes = header
    text = _read_exactly(stream, length)
    return text, [_read_exactly(stream, size) for size in sizes]


def _read_header(stream: BinaryIO) -> tuple[int, list[int]] | None:
    found: dict[bytes, list[int]] = {}
    used = 0
    while True:
        line = stream.readline(HEADER_BYTES - used)
        used += len(line)
        if not line and not used:
            return None
        if line == b"\r\n":
            break
        field = _FIELD.fullmatch(line)
        if field is None or field[1] in found:
            raise FrameError(f"this is no header of a frame: {(line or b'(end)')[:200]!r}")
        found[field[1]] = [int(number) for number in field[2].split(b" ")]
    length, sizes = found.get(b"Content-Length", []), found.get(b"Kvscope-Blobs", [])
    if len(length) != 1 or length[0] > JSON_BYTES:
        raise FrameError(f"a frame has no Content-Length of at most {JSON_BYTES}")
    if len(sizes) > BLOBS or max(sizes, default=0) > BLOB_BYTES:
        raise FrameError(f"a frame has more than {BLOBS} blobs, or one of more than {BLOB_BYTES} bytes")
    return length[0], sizes


def _read_exactly(stream: BinaryIO, count: int) -> bytes:
    data = stream.read(count) if count else b""
    if len(data) < count:
        raise FrameError(f"the stream ended {count - len(data)} bytes before the end of a frame")
    return data


def parse_json(text: bytes) -> Any:
    """Errors (ValueError): no JSON, deeper than the limit, NaN or infinity."""
    depth = 0
    for match in _BRACKETS.finditer(text):
        if match[0] in b"[{":
            depth += 1
            if depth > JSON_DEPTH:
                raise ValueError(f"the JSON is deeper than {JSON_DEPTH}")
        elif match[0] in b"]}":
            depth -= 1

    def refuse(name: str) -> NoReturn:
        raise ValueError(f"{name} is no number of JSON")

    return json.loads(text, parse_constant=refuse)


def encode_frame(message: dict[str, Any], blobs: Sequence[bytes | memoryview] = ()) -> list[bytes | memoryview]:
    """The pieces of a frame, in order. Errors (ValueError): it is larger than a reader accepts, or holds NaN.

    The JSON ends with a newline, because srun without -u passes on whole lines only.
    """
    text = json.dumps(message, separators=(",", ":"), allow_nan=False).encode() + b"\n"
    sizes = [memoryview(blob).nbytes for blob in blobs]
    if len(text) > JSON_BYTES or len(sizes) > BLOBS or max(sizes, default=0) > BLOB_BYTES:
        raise ValueError(f"a message of {len(text)} bytes with {len(sizes)} blobs is over the limits")
    header = f"Content-Length: {len(text)}\r\n"
    if sizes:
        header += f"Kvscope-Blobs: {' '.join(map(str, sizes))}\r\n"
    return [header.encode() + b"\r\n" + text, *blobs]
