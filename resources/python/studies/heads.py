"""In which heads the needle's digits are needed: right answers when nothing but they is evicted, in some heads only."""

from __future__ import annotations

import argparse
import pathlib
import sys
from typing import Any

import numpy as np
import torch
from prompts import needle
from retrieval import Asked
from tables import write

from kvscope_capture import Prompt, SegmentKind
from kvscope_capture.command import load_model
from kvscope_capture.console import run_command
from kvscope_capture.version import add_version
from kvscope_press import HeadSelection, RecordedSelection, answer_loss

Head = tuple[int, int]
DEPTHS = (0.1, 0.5, 0.9)
FIELDS = ("heads", "prompts", "right", "nll")


def digits_of(tokenizer: Any, prompt: Prompt, wanted: list[int]) -> set[int]:
    """The tokens with the digits of the code that is asked for, inside its needle in the context."""
    code = tokenizer.decode([prompt.ids[token] for token in wanted]).strip()
    (place,) = (
        (begin, end)
        for begin, end, kind in prompt.segments
        if kind == SegmentKind.NEEDLE and code in tokenizer.decode(prompt.ids[begin:end])
    )
    return {token for token in range(*place) if tokenizer.decode([prompt.ids[token]]).strip().isdigit()}


def without(tokens: set[int], where: set[Head], every: set[Head], cut: int) -> RecordedSelection:
    """The full cache, except that the heads `where` evict `tokens`."""
    heads = {}
    for head in every:
        gone = tokens if head in where else set()
        kept = np.array([token for token in range(cut) if token not in gone], np.int64)
        ones = np.ones(kept.size, np.float32)
        heads[head] = HeadSelection(kept, ones, ones)
    return RecordedSelection("", "without", "", {}, "", cut, "", False, heads)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(prog="heads.py", description=__doc__)
    add_version(p)
    p.add_argument("model", help="a folder or a name")
    p.add_argument("--heads", nargs="+", default=["3.1", "4.1"], help="LAYER.KV_HEAD, from 0")
    p.add_argument("--tokens", type=int, default=1024)
    p.add_argument("--prompts", type=int, default=6, help="at each of three depths (default: 6)")
    p.add_argument("--out", type=pathlib.Path, required=True, help="FILE.csv")
    return p


def write_table(arguments: argparse.Namespace) -> None:
    """Measures every case on every prompt, then writes the table."""
    model, tokenizer = load_model(arguments.model, None, "fp32", "cpu")
    named = {(int(layer), int(head)) for layer, _, head in (name.partition(".") for name in arguments.heads)}
    prompts = [needle(tokenizer, arguments.tokens, depth, i) for depth in DEPTHS for i in range(arguments.prompts)]
    found: dict[str, list[tuple[bool, float]]] = {}
    for prompt in prompts:
        asked = Asked(model, prompt)
        every = {(call.layer, head) for call in asked.read.calls for head in range(call.key.shape[0])}
        digits = digits_of(tokenizer, prompt, asked.wanted)
        cases: dict[str, set[Head]] = {"none": set(), " and ".join(arguments.heads): named, "all others": every - named}
        cases |= {f"{layer}.{head} alone": {(layer, head)} for layer, head in sorted(named)}
        for name, where in cases.items():
            loss = answer_loss(
                model, prompt.ids, without(digits, where, every, asked.read.cut), asked.wanted, asked.read
            )
            found.setdefault(name, []).append((bool(loss.right.all()), loss.mean()))
    rows = [
        dict(
            zip(
                FIELDS,
                (name, str(len(of)), str(sum(r for r, _ in of)), f"{np.mean([x for _, x in of]):.4f}"),
                strict=True,
            )
        )
        for name, of in found.items()
    ]
    origin = f"# studies/heads.py: {pathlib.Path(arguments.model).resolve().name}, {arguments.tokens} tokens"
    write(arguments.out, origin, FIELDS, rows)


def main(argv: list[str] | None = None) -> int:
    """Exit code 0, or 2 with one sentence on stderr."""
    arguments = parser().parse_args(argv)
    torch.set_num_threads(1)
    return run_command("heads.py", lambda: write_table(arguments))


if __name__ == "__main__":
    sys.exit(main())
