"""Text, question and answer as the tokens of one prompt."""

from __future__ import annotations

from typing import Any

from kvscope_capture.prompt import Frame, Prompt, SegmentKind, append, chat_frame
from kvscope_live.errors import TEMPLATE_MISSING, LiveError
from kvscope_live.requests import bad


def build_prompt(tokenizer: Any, texts: list[tuple[SegmentKind, str]], chat: bool, bos: bool) -> Prompt:
    """Pieces in the order system, context and needles, question, answer, in the chat template if `chat`.

    Errors (LiveError): no usable template, pieces in another order.
    """
    inside = (SegmentKind.CONTEXT, SegmentKind.NEEDLE)
    order = [0 if kind == SegmentKind.SYSTEM else 1 if kind in inside else int(kind) for kind, _ in texts]
    if order != sorted(order) or 1 not in order:
        raise bad("segments", "stand in another order than system, context and needle, question, answer")
    system, question, answer = (
        "".join(text for kind, text in texts if kind == wanted)
        for wanted in (SegmentKind.SYSTEM, SegmentKind.QUESTION, SegmentKind.ANSWER)
    )
    pieces = [(text, kind) for kind, text in texts if kind in inside]
    frame = Frame()
    if chat:
        pieces, question = _stripped(pieces, question)
        try:
            frame = chat_frame(tokenizer, system, "".join(text for text, _ in pieces), question)
        except Exception as error:
            raise LiveError(TEMPLATE_MISSING, getattr(error, "sentence", str(error)), "chat", "Leave it out") from error
    elif system:
        raise bad("segments", "have a system's message, which needs the chat template")
    prompt, tail = Prompt(tokenizer, bos and not chat), Prompt(tokenizer)
    prompt.ids, tail.ids = [] if frame.complete else prompt.ids, []
    tail.begun = True
    for piece, kind in frame.before:
        prompt.add(piece, kind)
    prompt.add_context([(text, kind if kind == SegmentKind.NEEDLE else None) for text, kind in pieces])
    tail.add(question, SegmentKind.QUESTION).add(frame.behind).add(answer, SegmentKind.ANSWER)
    return append(prompt, tail)


def _stripped(pieces: list[tuple[str, SegmentKind]], question: str) -> tuple[list[tuple[str, SegmentKind]], str]:
    """Pieces and question without the spaces at both ends of the message, which templates strip."""
    own = [*pieces]
    own[0] = (own[0][0].lstrip(), own[0][1])
    if not question.strip():
        own[-1] = (own[-1][0].rstrip(), own[-1][1])
    return own, question.rstrip()
