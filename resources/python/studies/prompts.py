"""Prompts of the studies: the samples' tasks (sample_data/make_samples.py) at any length, depth and seed."""

from __future__ import annotations

import pathlib
import random
import sys
from typing import Any

from kvscope_capture import Prompt, SegmentKind

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "sample_data"))
from make_samples import TEXT, Piece, digits, words  # noqa: E402

SECRETS = ("river", "garden", "stone")
BEHIND = 40  # tokens that question and answer take, about


def _sentences(rng: random.Random) -> list[str]:
    start = rng.randrange(len(TEXT) // 2)
    text = TEXT[start : start + 40000].replace("\n", " ")
    return [s.strip() + ". " for s in text.split(". ")[1:]]


def needle(tokenizer: Any, tokens: int, depth: float, seed: int) -> Prompt:
    """A narrative of about `tokens` tokens with three secrets; the one at `depth` (0: first, 1: last) is asked for."""
    rng = random.Random(f"needle {tokens} {depth} {seed}")
    asked, *others = rng.sample(SECRETS, 3)
    codes = {word: digits(rng, 5) for word in SECRETS}
    places = {asked: depth, others[0]: rng.random(), others[1]: rng.random()}
    secret = {word: f"The secret code of {word} is {codes[word]}. " for word in SECRETS}
    length = {text: len(tokenizer.encode(text, add_special_tokens=False)) for text in secret.values()}
    room = tokens - BEHIND - sum(length.values())
    waiting = sorted(SECRETS, key=lambda word: (places[word], word))
    pieces: list[Piece] = []
    used = 0
    for sentence in _sentences(rng):
        while waiting and used >= places[waiting[0]] * room:
            pieces.append((secret[waiting.pop(0)], SegmentKind.NEEDLE))
        size = len(tokenizer.encode(sentence, add_special_tokens=False))
        if used + size > room:
            break
        pieces.append((sentence, None))
        used += size
    pieces += [(secret[word], SegmentKind.NEEDLE) for word in waiting]
    prompt = Prompt(tokenizer, bos=True)
    prompt.add_context(pieces)
    question = f"\nQuestion: what is the secret code of {asked}? Answer: The secret code of {asked} is"
    return prompt.add(question, SegmentKind.QUESTION).add(f" {codes[asked]}", SegmentKind.ANSWER)


def lines(tokenizer: Any, tokens: int, depth: float, seed: int) -> Prompt:
    """Lines with random registers, about `tokens` tokens of them; the one at `depth` is asked for."""
    rng = random.Random(f"lines {tokens} {depth} {seed}")
    choices = words()
    names = list(dict.fromkeys(f"{rng.choice(choices)}-{rng.choice(choices)}" for _ in range(tokens // 8)))
    values = {name: digits(rng, 5) for name in names}
    prompt = Prompt(tokenizer, bos=True)
    used = len(prompt.ids) + BEHIND
    taken: list[str] = []
    for name in names:
        used += len(tokenizer.encode(_line(name, values), add_special_tokens=False))
        if used > tokens:
            break
        taken.append(name)
    prompt.add_context([(_line(name, values), None) for name in taken])
    asked = taken[min(int(depth * len(taken)), len(taken) - 1)]
    prompt.add(f"The REGISTER_CONTENT in line {asked} is <", SegmentKind.QUESTION)
    return prompt.add(values[asked], SegmentKind.ANSWER)


def _line(name: str, values: dict[str, str]) -> str:
    return f"line {name}: REGISTER_CONTENT is <{values[name]}>\n"


def story(tokenizer: Any, tokens: int, depth: float, seed: int) -> Prompt:
    """A narrative of `tokens` tokens, whose last eighth is the answer; `depth` is ignored."""
    prompt = Prompt(tokenizer, bos=True)
    prompt.add("".join(_sentences(random.Random(f"story {seed}")))[: 8 * tokens]).truncate(tokens)
    return _last_part(prompt, tokens - tokens // 8)


def copy(tokenizer: Any, tokens: int, depth: float, seed: int) -> Prompt:
    """Random words, then the first of them again: an eighth of `tokens`, the answer. `depth` is ignored."""
    rng = random.Random(f"copy {seed}")
    choices = words()
    prompt = Prompt(tokenizer, bos=True).add("".join(f" {rng.choice(choices)}" for _ in range(tokens)))
    cut = tokens - tokens // 8
    prompt.truncate(cut).ids += prompt.ids[1 : 1 + tokens // 8]
    return _last_part(prompt, cut)


def _last_part(prompt: Prompt, cut: int) -> Prompt:
    """Context before the cut, an answer behind it."""
    prompt.segments = [(1, cut, SegmentKind.CONTEXT), (cut, len(prompt.ids), SegmentKind.ANSWER)]
    return prompt


TASKS = {"needle": needle, "lines": lines, "story": story, "copy": copy}
