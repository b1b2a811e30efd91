"""Errors as the client sees them: a code, one sentence, and what else helps."""

from __future__ import annotations

from typing import Any

PARSE_ERROR, INVALID_REQUEST, UNKNOWN_METHOD, BAD_PARAMETERS, INTERNAL = -32700, -32600, -32601, -32602, -32603
FAILED, NOT_INITIALIZED, CANCELLED, OUTDATED = -32000, -32002, -32800, -32801
OUT_OF_MEMORY, UNSUPPORTED_MODEL, NOT_DOWNLOADED = -32050, -32051, -32052
TEMPLATE_MISSING, GONE, BUSY = -32053, -32054, -32055


class LiveError(Exception):
    """`data` goes to the client beside `place` and `remedy`, where they are given."""

    def __init__(self, code: int, sentence: str, place: str = "", remedy: str = "", **data: Any) -> None:
        """`sentence` has no full stop; `place` is a parameter, a file or a layer; `remedy` an imperative clause."""
        self.code, self.sentence = code, sentence
        self.data = {"place": place, "remedy": remedy} | data
        super().__init__(sentence)

    def as_json(self) -> dict[str, Any]:
        """The error of a JSON-RPC answer."""
        return {"code": self.code, "message": self.sentence, "data": {k: v for k, v in self.data.items() if v != ""}}


def not_finite(what: str, place: str = "") -> LiveError:
    """`what` is NaN or infinite; the usual cause is fp16 in a model that was trained in bf16."""
    remedy = "Load the model in bf16 or fp32: fp16 overflows where they do not"
    return LiveError(FAILED, f"{what} is NaN or infinite", place, remedy)


class Stopped(BaseException):
    """The running request was cancelled or is outdated; raised where work asks (`Channel.checkpoint`).

    Not an Exception, so that handlers of a model's own errors do not catch it.
    """
