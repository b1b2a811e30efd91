"""Makes the sample captures from TinyLM.

Usage: make_samples.py MODEL_FOLDER [--out FOLDER] [--only NAME]

The prompts are drawn with fixed seeds from `genesis.txt` (King James Bible, public domain) and from made-up codes. The
same machine and packages give the same data sets: a capture that is there already with the same hash is left alone,
with its calibration rows. Needs resources/python on the path (pip install resources/python).
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
import random
import sys
from collections.abc import Callable
from typing import Any

import h5py
import numpy as np

from kvscope_capture import CaptureOptions, Prompt, SegmentKind, capture_prompt
from kvscope_capture.command import load_model
from kvscope_capture.console import run_command

HERE = pathlib.Path(__file__).resolve().parent
TEXT = (HERE / "genesis.txt").read_text(encoding="utf-8")
LABELS = ("red", "green", "blue", "north", "south", "east", "west", "one", "two", "three")
Piece = tuple[str, SegmentKind | None]


def sentences(start: str) -> list[str]:
    """The narrative from `start` on, sentence by sentence."""
    return [s.strip() + ". " for s in TEXT[TEXT.index(start) :][:40000].replace("\n", " ").split(". ")]


def words() -> list[str]:
    """Short words in the order of the text, repeated as the text repeats them."""
    return [w for w in TEXT[:60000].lower().split() if w.isalpha() and 3 < len(w) < 8]


def digits(rng: random.Random, count: int) -> str:
    """A random code."""
    return "".join(rng.choice("0123456789") for _ in range(count))


def fill(prompt: Prompt, tokens: int, pieces: list[Piece]) -> int:
    """Adds a context of pieces until the prompt has `tokens` tokens; pieces with a kind are never left out.

    Returns how many pieces there are.
    """
    lengths = len(prompt.ids)
    taken: list[Piece] = []
    for text, kind in pieces:
        if lengths >= tokens and kind is None:
            break
        lengths += len(prompt.tokenizer.encode(text, add_special_tokens=False))
        taken.append((text, kind))
    prompt.add_context(taken)
    return len(taken)


def needle(tokenizer: Any, tokens: int) -> Prompt:
    """A narrative with three secrets in it; one of them is asked for."""
    rng = random.Random(7)
    body: list[Piece] = [(s, None) for s in sentences("And Jacob dwelt in the land")]
    secrets = [(word, digits(rng, 5)) for word in ("river", "garden", "stone")]
    for (word, code), share in zip(secrets, (0.2, 0.45, 0.7), strict=True):
        body.insert(int(share * tokens / 28), (f"The secret code of {word} is {code}. ", SegmentKind.NEEDLE))
    word, code = secrets[1]
    prompt = Prompt(tokenizer, bos=True)
    fill(prompt, tokens - 40, body)
    question = f"\nQuestion: what is the secret code of {word}? Answer: The secret code of {word} is"
    return prompt.add(question, SegmentKind.QUESTION).add(f" {code}.", SegmentKind.ANSWER)


def story(tokenizer: Any, tokens: int) -> Prompt:
    """A long narrative, nothing else."""
    body: list[Piece] = [(s, None) for s in sentences("In the beginning God created")]
    prompt = Prompt(tokenizer, bos=True)
    fill(prompt, tokens, body)
    return prompt.truncate(tokens)


def records(tokenizer: Any, tokens: int) -> Prompt:
    """Records with random contents; four of them are asked for."""
    rng = random.Random(3)
    choices = words()
    names = list(dict.fromkeys(f"{rng.choice(choices)}-{rng.choice(choices)}" for _ in range(400)))
    values = {name: digits(rng, 5) for name in names}
    lines: list[Piece] = [(f"line {name}: REGISTER_CONTENT is <{values[name]}>\n", None) for name in names]
    prompt = Prompt(tokenizer, bos=True)
    used = fill(prompt, tokens - 140, lines)
    for name in rng.sample(names[:used], 4):
        prompt.add(f"The REGISTER_CONTENT in line {name} is", SegmentKind.QUESTION)
        prompt.add(f" <{values[name]}>\n", SegmentKind.ANSWER)
    return prompt


def few_shot(tokenizer: Any, tokens: int) -> Prompt:
    """Words and their labels, shown again and again in another order; six labels are asked for at the end."""
    rng = random.Random(5)
    inputs = rng.sample(sorted(set(words())), 12)
    labels = {word: rng.choice(LABELS) for word in inputs}
    shown = inputs + [rng.choice(inputs) for _ in range(tokens)]
    examples: list[Piece] = [(f"input: {word} output: {labels[word]}\n", None) for word in shown]
    prompt = Prompt(tokenizer, bos=True)
    fill(prompt, tokens - 80, examples)
    for word in rng.sample(inputs, 6):
        prompt.add(f"input: {word} output:", SegmentKind.QUESTION).add(f" {labels[word]}\n", SegmentKind.ANSWER)
    return prompt


@dataclasses.dataclass(frozen=True)
class Sample:
    """One file: how its prompt is made, about how many tokens it has, how many queries are stored (0: all)."""

    make: Callable[[Any, int], Prompt]
    tokens: int
    q_window: int


SAMPLES = {
    "needle-1k": Sample(needle, 1024, 0),
    "story-2k": Sample(story, 2048, 256),
    "records-2k": Sample(records, 2048, 256),
    "fewshot-1k": Sample(few_shot, 1024, 256),
}


def stored_hash(path: pathlib.Path) -> str:
    """The hash that a capture states; empty if there is none."""
    if not path.exists():
        return ""
    with h5py.File(path, "r") as file:
        return str(file.attrs.get("capture_hash", ""))


def make(name: str, model: Any, tokenizer: Any, out: pathlib.Path) -> str:
    """Captures one sample; a file with the same data is left as it is. Returns a line of the report."""
    sample = SAMPLES[name]
    prompt = sample.make(tokenizer, sample.tokens)
    path, fresh = out / f"{name}.h5", out / f"{name}.new.h5"
    options = CaptureOptions(q_window=sample.q_window, compress=True, notes=sample.make.__doc__ or "")
    digest = capture_prompt(model, prompt, fresh, options, "kvscope/tinylm", "1")
    with h5py.File(fresh, "r") as file:
        loss = float(np.nanmean(file["tokens/nll"][()]))
    same = stored_hash(path) == digest
    fresh.unlink() if same else fresh.replace(path)
    size = path.stat().st_size / 1e6
    state = "unchanged" if same else "written"
    return f"{path.name}: {state}, {len(prompt.ids)} tokens, {size:.1f} MB, mean NLL {loss:.3f}, hash {digest}"


def make_all(arguments: argparse.Namespace) -> None:
    """Says each file when it is there."""
    model, tokenizer = load_model(arguments.model, None, "fp32", "cpu")
    for name in arguments.only or SAMPLES:
        print(make(name, model, tokenizer, arguments.out), flush=True)


def main(argv: list[str] | None = None) -> int:
    """Exit code 0, or 2 with one sentence on stderr."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model", help="TinyLM's folder")
    p.add_argument("--out", type=pathlib.Path, default=HERE, help="where the captures go (default: beside this file)")
    p.add_argument("--only", choices=SAMPLES, action="append", help="make this one only; may be repeated")
    arguments = p.parse_args(argv)
    return run_command("make_samples", lambda: make_all(arguments), lambda: "Finished captures stay")


if __name__ == "__main__":
    sys.exit(main())
