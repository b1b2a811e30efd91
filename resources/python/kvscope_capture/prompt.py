"""A prompt is a list of tokens and the segments they fall into.

Every piece of text is tokenised on its own, so that a segment begins and ends at a token boundary: a needle is
never half of a token. The price is that a token never spans two pieces. SentencePiece tokenizers put a space before
every text that they are given; only the first piece of a prompt keeps it, so that the model reads the text as written.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import re
from collections.abc import Callable, Iterable, Sequence
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
Piece = tuple[str, SegmentKind | None]
SPACE = "\u2581"  # as SentencePiece writes it
SENTINELS = ("\n", "a", "|", "\u3002")
SENTENCE = 100  # tokens; an inserted needle moves back by at most so many, to the end of a sentence


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
        self.left_out = 0  # tokens of the context that had no room
        self.begun = False  # whether some text stands before what is added next

    def encode(self, text: str) -> list[int]:
        """Tokens of a piece of text. Errors: those of `encode_behind`."""
        if self.begun and text and _puts_space_before(self.tokenizer, text):
            return encode_behind(self.tokenizer, text)
        return list(self.tokenizer.encode(text, add_special_tokens=False))

    def add(self, text: str, kind: SegmentKind | None = None) -> Prompt:
        """Appends a piece of text; a piece with a kind becomes a segment unless it has no tokens."""
        return self.add_ids(self.encode(text), kind)

    def add_ids(self, ids: list[int], kind: SegmentKind | None = None) -> Prompt:
        """Appends tokens, as `add` does."""
        if kind is not None and ids:
            self.segments.append((len(self.ids), len(self.ids) + len(ids), kind))
        self.ids += ids
        self.begun = self.begun or bool(ids)
        return self

    def add_context(self, pieces: Iterable[tuple[str | list[int], SegmentKind | None]]) -> Prompt:
        """Appends pieces of text or tokens and marks them together as context, before the segments inside it."""
        begin, first = len(self.ids), len(self.segments)
        for piece, kind in pieces:
            self.add_ids(self.encode(piece) if isinstance(piece, str) else piece, kind)
        self.segments.insert(first, (begin, len(self.ids), SegmentKind.CONTEXT))
        return self

    def truncate(self, tokens: int) -> Prompt:
        """Keeps the first `tokens` tokens; segments end there, those behind it vanish."""
        self.ids = self.ids[:tokens]
        self.segments = [(b, min(e, tokens), kind) for b, e, kind in self.segments if b < tokens]
        return self


def default_cut(segments: Sequence[tuple[int, int, int]], tokens: int) -> int:
    """KVScope's default cut: the end of the context before the first question, else min(256, n/2) before the end."""
    questions = [begin for begin, _, kind in segments if kind == SegmentKind.QUESTION]
    contexts = [
        (begin, end)
        for begin, end, kind in segments
        if kind == SegmentKind.CONTEXT and (not questions or begin < min(questions))
    ]
    if contexts and max(contexts)[1] < tokens:
        return max(contexts)[1]
    return tokens - min(256, tokens // 2)


def leading_special_tokens(tokenizer: Any) -> list[int]:
    """What the tokenizer writes before any text: BOS for most models, nothing for GPT-2 and Qwen."""
    with_special = list(tokenizer.encode("a"))
    plain = list(tokenizer.encode("a", add_special_tokens=False))
    for begin in range(len(with_special) - len(plain) + 1):
        if with_special[begin : begin + len(plain)] == plain:
            return with_special[:begin]
    return []


def _puts_space_before(tokenizer: Any, text: str) -> bool:
    """Whether the tokenizer begins the tokens of `text` (not empty) with a space of its own (Llama 2, Mistral 7B)."""
    ids = tokenizer.encode("a" if text[0].isspace() else text, add_special_tokens=False)
    return bool(ids) and str(tokenizer.convert_ids_to_tokens(ids[0])).startswith(SPACE)


def encode_behind(tokenizer: Any, text: str) -> list[int]:
    """Tokens of `text` without the space that the tokenizer puts before a text: they are read behind a sentinel.

    Errors (CaptureError): a token spans `text` and the sentinel, whichever sentinel is tried.
    """
    for sentinel in SENTINELS:
        before = list(tokenizer.encode(sentinel, add_special_tokens=False))
        both = list(tokenizer.encode(sentinel + text, add_special_tokens=False))
        first = str(tokenizer.convert_ids_to_tokens(both[len(before)])) if len(both) > len(before) else ""
        if both[: len(before)] == before and first.startswith(SPACE) == text.startswith((" ", SPACE)):
            return both[len(before) :]
    raise CaptureError(
        f"the tokenizer puts a space before {text[:20]!r}",
        "segments",
        "Write this text and the one before it as one, without --question, --answer or --needle between them",
    )


@dataclasses.dataclass(frozen=True)
class Frame:
    """What stands around context and question: pieces before the context, text between question and answer."""

    before: Sequence[Piece] = ()
    behind: str = ""
    complete: bool = False  # the special tokens of a prompt's beginning are among the pieces


def chat_frame(tokenizer: Any, system: str, context: str, question: str) -> Frame:
    """The tokenizer's chat template around one user message, context and question; the answer is the model's.

    Errors: no template, one without system messages, one that changes the text (most strip spaces at its ends).
    """

    def render(*texts: str) -> str:
        messages = [{"role": "system", "content": texts[0]}] if system else []
        messages.append({"role": "user", "content": texts[1] + texts[2]})
        try:
            rendered: str = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        except Exception as error:  # a template may raise anything
            what = (str(error).splitlines() or ["no message"])[0]
            raise CaptureError(f"the chat template cannot be used ({what})", "--chat", "Leave it out") from error
        return rendered

    if not getattr(tokenizer, "chat_template", None):
        raise CaptureError("the tokenizer has no chat template", "--chat", "Leave it out")
    marks = ("\ue000", "\ue001", "\ue002")  # private characters, which no template knows
    found = re.fullmatch(f"(.*?)(?:{marks[0]}(.*?))?{marks[1]}{marks[2]}(.*)", render(*marks), re.DOTALL)
    if not found or bool(system) != (found[2] is not None) or any(mark in found[3] for mark in marks):
        raise CaptureError("the chat template does not hold each message once", "--chat", "Leave it out")
    before: list[Piece] = [(found[1], None)]
    if system:
        before += [(system, SegmentKind.SYSTEM), (found[2], None)]
    if render(system, context, question) != "".join(text for text, _ in before) + context + question + found[3]:
        raise CaptureError("the chat template changes the text", "--chat", "Leave it out")
    return Frame(before, found[3], complete=True)


def question_prompt(
    tokenizer: Any,
    text: str,
    max_tokens: int,
    needles: Sequence[str],
    question: str = "",
    answer: str = "",
    bos: bool = False,
    *,
    depths: Sequence[float] = (),
    frame: Frame | None = None,
) -> Prompt:
    """Context, question and answer in at most `max_tokens` tokens; the end of the context gives way.

    Needles are marked where they stand, or inserted at `depths`, 0 to 1, one for each. `frame` stands around context
    and question. Errors: a needle that is not in the text or would be cut off; question and answer leave no room.
    """
    frame = frame or Frame()
    prompt, tail = Prompt(tokenizer, bos), Prompt(tokenizer)
    tail.ids, tail.begun = [], True
    tail.add(question, SegmentKind.QUESTION).add(frame.behind).add(answer, SegmentKind.ANSWER)
    if frame.complete:
        prompt.ids = []
    for piece, kind in frame.before:
        prompt.add(piece, kind)
    room = max_tokens - len(prompt.ids) - len(tail.ids)
    if room < 1:
        raise CaptureError(f"question and answer fill all {max_tokens} tokens", "--max-tokens", "Ask for more tokens")
    end = len(prompt.ids) + room
    if depths:
        prompt.left_out = _insert_needles(prompt, text, room, needles, depths)
        return append(prompt, tail)
    prompt.add_context(split_at_needles(text, needles))
    if any(last > end for _, last, kind in prompt.segments if kind == SegmentKind.NEEDLE):
        raise CaptureError(
            f"a needle lies behind the {room} tokens that the context may have",
            "--needle",
            "Ask for more tokens or move the needle forward",
        )
    prompt.left_out = max(0, len(prompt.ids) - end)
    return append(prompt.truncate(end), tail)


def _insert_needles(prompt: Prompt, text: str, room: int, needles: Sequence[str], depths: Sequence[float]) -> int:
    """Adds the context with each needle behind the sentence that ends at its depth.

    A needle's depth is the fraction of the text's tokens before it, of those that have room. Spaces are put where words
    would touch. Returns how many tokens of the text were left out.
    """
    whole, token_bytes = prompt.encode(text), TokenBytes(prompt.tokenizer)
    spaced = [[f"{left}{needle}{right}" for left in ("", " ") for right in ("", " ")] for needle in needles]
    ids = whole[: max(0, room - sum(max(len(prompt.encode(text)) for text in texts) for texts in spaced))]
    if not ids:
        raise CaptureError(f"the needles fill the {room} tokens of the context", "--max-tokens", "Ask for more tokens")
    pieces: list[tuple[str | list[int], SegmentKind | None]] = []
    done = 0
    places = (_sentence_end(ids, round(depth * len(ids)), token_bytes) for depth in depths)
    for place, needle in sorted(zip(places, needles, strict=True), key=lambda pair: pair[0]):
        touches_before = place > 0 and not token_bytes(ids[place - 1])[-1:].isspace() and not needle[0].isspace()
        touches_behind = place < len(ids) and not token_bytes(ids[place])[:1].isspace() and not needle[-1].isspace()
        inserted = " " * touches_before + needle + " " * touches_behind
        pieces += [(ids[done:place], None), (inserted, SegmentKind.NEEDLE)]
        done = place
    prompt.add_context([*pieces, (ids[done:], None)])
    return len(whole) - len(ids)


def _sentence_end(ids: list[int], place: int, token_bytes: Callable[[int], bytes]) -> int:
    """The last end of a sentence among the SENTENCE tokens before `place`; `place` itself where there is none."""
    for end in range(place, max(0, place - SENTENCE), -1):
        if token_bytes(ids[end - 1]).rstrip(b" \"')]").endswith((b".", b"!", b"?", b"\n")):
            return end
    return place


def append(prompt: Prompt, tail: Prompt) -> Prompt:
    """`tail` (without special tokens) behind `prompt`, segments shifted."""
    shift = len(prompt.ids)
    prompt.ids += tail.ids
    prompt.segments += [(b + shift, e + shift, kind) for b, e, kind in tail.segments]
    return prompt


def split_at_needles(text: str, needles: Sequence[str]) -> list[Piece]:
    """The text in pieces, each needle (its first occurrence) a piece of its own."""
    spans: list[tuple[int, int]] = []
    for needle in needles:
        at = text.find(needle) if needle else -1
        if at < 0:
            raise CaptureError(
                f"the text does not contain {needle!r}", "--needle", "Quote it exactly, or insert it with --depth"
            )
        spans.append((at, at + len(needle)))
    pieces: list[Piece] = []
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
        if self._byte_level:  # added tokens are stored as plain text, not in the byte alphabet
            self._special.update(getattr(tokenizer, "get_added_vocab", dict)())
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
        return token.replace(SPACE, " ").encode()


def _is_byte_level(tokenizer: Any) -> bool:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return "\u0120" in " ".join(list(tokenizer.get_vocab())[:2000])
    state = json.loads(backend.to_str())
    return "ByteLevel" in json.dumps([state.get("decoder"), state.get("pre_tokenizer")])


def _byte_level_alphabet() -> dict[str, int]:
    """Inverse of GPT-2's table: printable bytes stand for themselves, characters 256, 257, ... for the others."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {chr(byte): byte for byte in plain}
    others = (byte for byte in range(256) if byte not in plain)
    return table | {chr(256 + i): byte for i, byte in enumerate(others)}
