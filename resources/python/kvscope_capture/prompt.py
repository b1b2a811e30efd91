"""A prompt is a list of tokens and the segments they fall into.

Every piece of text is tokenised on its own, so that a segment begins and ends at a token boundary: a needle is
never half of a token. The price is that a token never spans two pieces.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Iterable
from typing import Any

from kvscope_capture.errors import CaptureError


class SegmentKind(enum.IntEnum):
    """What a segment is, by the numbers of `/tokens/segments`."""

    SYSTEM = 0
    CONTEXT = 1
    NEEDLE = 2
    QUESTION = 3
    ANSWER = 4


Segment = tuple[int, int, SegmentKind]


class Prompt:
    """Token ids and half-open segments (begin, end, kind) over them."""

    def __init__(self, tokenizer: Any, bos: bool = False) -> None:
        """Starts with the special tokens that the tokenizer writes before a text; `bos` asks for BOS in any case.

        Errors: `bos` and a tokenizer without a BOS token.
        """
        self.tokenizer = tokenizer
        self.ids: list[int] = leading_special_tokens(tokenizer)
        if bos and not self.ids:
            if getattr(tokenizer, "bos_token_id", None) is None:
                raise CaptureError("the tokenizer has no BOS token", "--bos", "Leave it out")
            self.ids = [tokenizer.bos_token_id]
        self.segments: list[Segment] = []

    def add(self, text: str, kind: SegmentKind | None = None) -> Prompt:
        """Appends a piece of text; a piece with a kind becomes a segment unless it has no tokens."""
        begin = len(self.ids)
        self.ids += self.tokenizer.encode(text, add_special_tokens=False)
        if kind is not None and len(self.ids) > begin:
            self.segments.append((begin, len(self.ids), kind))
        return self

    def add_context(self, pieces: Iterable[tuple[str, SegmentKind | None]]) -> Prompt:
        """Appends pieces and marks them together as context, before the segments inside it."""
        begin, first = len(self.ids), len(self.segments)
        for text, kind in pieces:
            self.add(text, kind)
        self.segments.insert(first, (begin, len(self.ids), SegmentKind.CONTEXT))
        return self

    def truncate(self, tokens: int) -> Prompt:
        """Keeps the first `tokens` tokens; segments end there, those behind it vanish."""
        self.ids = self.ids[:tokens]
        self.segments = [(b, min(e, tokens), kind) for b, e, kind in self.segments if b < tokens]
        return self


def leading_special_tokens(tokenizer: Any) -> list[int]:
    """What the tokenizer writes before any text: BOS for most models, nothing for GPT-2 and Qwen."""
    with_special = list(tokenizer.encode("a"))
    plain = list(tokenizer.encode("a", add_special_tokens=False))
    for begin in range(len(with_special) - len(plain) + 1):
        if with_special[begin : begin + len(plain)] == plain:
            return with_special[:begin]
    return []


def question_prompt(
    tokenizer: Any,
    text: str,
    max_tokens: int,
    needles: list[str],
    question: str = "",
    answer: str = "",
    bos: bool = False,
) -> Prompt:
    """Context, question and answer in at most `max_tokens` tokens; the end of the context gives way.

    Errors: a needle that is not in the text or would be cut off; a question and answer that leave no room.
    """
    tail = Prompt(tokenizer)
    tail.ids = []
    tail.add(question, SegmentKind.QUESTION).add(answer, SegmentKind.ANSWER)
    prompt = Prompt(tokenizer, bos)
    room = max_tokens - len(prompt.ids) - len(tail.ids)
    if room < 1:
        raise CaptureError(f"question and answer fill all {max_tokens} tokens", "--max-tokens", "Ask for more tokens")
    end = len(prompt.ids) + room
    prompt.add_context(split_at_needles(text, needles))
    if any(last > end for _, last, kind in prompt.segments if kind == SegmentKind.NEEDLE):
        raise CaptureError(
            f"a needle lies behind the {room} tokens that the context may have",
            "--needle",
            "Ask for more tokens or move the needle forward",
        )
    return append(prompt.truncate(end), tail)


def append(prompt: Prompt, tail: Prompt) -> Prompt:
    """`tail` (without special tokens) behind `prompt`, segments shifted."""
    shift = len(prompt.ids)
    prompt.ids += tail.ids
    prompt.segments += [(b + shift, e + shift, kind) for b, e, kind in tail.segments]
    return prompt


def split_at_needles(text: str, needles: list[str]) -> list[tuple[str, SegmentKind | None]]:
    """The text in pieces, each needle (its first occurrence) a piece of its own."""
    spans: list[tuple[int, int]] = []
    for needle in needles:
        at = text.find(needle) if needle else -1
        if at < 0:
            raise CaptureError(f"the text does not contain {needle!r}", "--needle", "Quote it exactly")
        spans.append((at, at + len(needle)))
    pieces: list[tuple[str, SegmentKind | None]] = []
    done = 0
    for begin, end in sorted(spans):
        if begin < done:
            raise CaptureError("two needles overlap", "--needle", "Name each needle once")
        pieces += [(text[done:begin], None), (text[begin:end], SegmentKind.NEEDLE)]
        done = end
    return pieces + [(text[done:], None)]


class TokenBytes:
    """The exact bytes of single tokens: byte-level BPE, SentencePiece with byte fallback, or plain text."""

    def __init__(self, tokenizer: Any) -> None:
        """Reads the kind of vocabulary from the tokenizer's decoder."""
        self._tokenizer = tokenizer
        self._special = set(tokenizer.all_special_tokens)
        self._byte_level = _is_byte_level(tokenizer)
        self._alphabet = _byte_level_alphabet()

    def __call__(self, token_id: int) -> bytes:
        """Bytes of one token; a token may be a part of a UTF-8 sequence."""
        token: str | None = self._tokenizer.convert_ids_to_tokens(token_id)
        if token is None:
            return b""
        if token in self._special:
            return token.encode()
        if self._byte_level and all(c in self._alphabet for c in token):
            return bytes(self._alphabet[c] for c in token)
        if match := re.fullmatch(r"<0x([0-9A-Fa-f]{2})>", token):
            return bytes([int(match.group(1), 16)])
        return token.replace("\u2581", " ").encode()


def _is_byte_level(tokenizer: Any) -> bool:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return "\u0120" in " ".join(list(tokenizer.get_vocab())[:2000])
    state = json.loads(backend.to_str())
    return "ByteLevel" in json.dumps([state.get("decoder"), state.get("pre_tokenizer")])


def _byte_level_alphabet() -> dict[str, int]:
    """Inverse of GPT-2's table: printable bytes stand for themselves, the others for 256, 257, ..."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {chr(byte): byte for byte in plain}
    others = (byte for byte in range(256) if byte not in plain)
    return table | {chr(256 + i): byte for i, byte in enumerate(others)}
