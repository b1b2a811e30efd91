"""Accuracy and loss of looked-up answers against policy, retention, length and depth; one CSV row per combination."""

from __future__ import annotations

import argparse
import csv
import os
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import kvscope
import numpy as np
import transformers
from prompts import TASKS

from kvscope_capture import CaptureError, Prompt, SegmentKind
from kvscope_capture.command import load_model, show
from kvscope_press import HeadSelection, ReadContext, RecordedSelection, answer_loss

BALANCED = "balancekv:longbench,balancekv:needle_paper"  # 32 sinks and recents: the paper's 256 exceed small budgets
POLICIES = {
    "needle": f"keydiff,compactor,snapkv,pyramidkv,tova,h2o,key_norm,{BALANCED},uniform,streaming_llm,subgen_kcenter",
    "lines": f"subgen_kcenter,h2o,streaming_llm,keydiff,compactor,snapkv,{BALANCED}",
}
FIELDS = ["task", "policy", "retention", "kept", "tokens", "depth", "prompts", "right", "nll", "nll_full"]


class Asked:
    """A prompt whose context the model has read."""

    def __init__(self, model: Any, prompt: Prompt) -> None:
        """Reads the context; the answer's tokens are what is asked for."""
        (self.cut,) = (end for _, end, kind in prompt.segments if kind == SegmentKind.CONTEXT)
        ((begin, end),) = ((b, e) for b, e, kind in prompt.segments if kind == SegmentKind.ANSWER)
        self.model, self.ids, self.wanted = model, prompt.ids, list(range(begin, end))
        self.read = ReadContext(model, prompt.ids, self.cut)

    def select(self, policy: str, seed: int) -> RecordedSelection:
        """What the policy keeps of the context, layer by layer. Errors (kvscope.Error): it cannot be met."""
        heads: dict[tuple[int, int], HeadSelection] = {}
        for call in self.read.calls:
            chosen = kvscope.evict(
                call.key,
                call.value,
                call.query,
                policy,
                scaling=call.scaling,
                k_pre=call.unrotated[1] if call.unrotated else None,
                layer=call.layer,
                num_layers=len(self.read.calls),
                seed=seed,
            )
            for head, kept in enumerate(chosen.kept):
                ones = np.ones(kept.size, np.float32)
                weights = (chosen.numerator_weights, chosen.denominator_weights)
                numerator, denominator = (w[head] if w else ones for w in weights)
                heads[call.layer, head] = HeadSelection(kept.astype(np.int64), numerator, denominator)
        return RecordedSelection("", policy, "", {}, "", self.cut, "", False, heads)

    def answer(self, policy: str, seed: int) -> tuple[float, bool, float]:
        """Share kept, whether every token of the answer is right, mean NLL."""
        selection = self.select(policy, seed)
        loss = answer_loss(self.model, self.ids, selection, self.wanted, self.read)
        return selection.retention(), bool(loss.right.all()), loss.mean()


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(prog="retrieval.py", description=__doc__)
    p.add_argument("model", help="a folder or a name")
    p.add_argument("--task", choices=TASKS, default="needle")
    p.add_argument("--lengths", default="512,1024,2048", help="tokens of the prompts")
    p.add_argument("--depths", default="0.1,0.5,0.9", help="where the answer stands, 0 to 1")
    p.add_argument("--retentions", default="0.1,0.25,0.5", help="fractions kept")
    p.add_argument("--policies", help="as kvscope has them, without budget; all by default")
    p.add_argument("--prompts", type=int, default=4, help="for each length and depth (default: 4)")
    p.add_argument("--out", type=pathlib.Path, required=True, help="FILE.csv")
    return p


def numbers(text: str) -> list[float]:
    """A comma-separated list."""
    return [float(part) for part in text.split(",")]


def measured(model: Any, tokenizer: Any, arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Rows; combinations that a policy cannot meet (protected tokens beyond the budget) are left out and named."""
    policies = (arguments.policies or POLICIES[arguments.task]).split(",")
    for tokens in numbers(arguments.lengths):
        for depth in numbers(arguments.depths):
            show(f"{arguments.task}, {tokens:.0f} tokens, depth {depth:g}")
            make = TASKS[arguments.task]
            asked = [Asked(model, make(tokenizer, int(tokens), depth, seed)) for seed in range(arguments.prompts)]
            full = [a.answer("exact", 0) for a in asked]
            base = {"task": arguments.task, "tokens": int(tokens), "depth": depth, "prompts": len(asked)}
            base["nll_full"] = round(float(np.mean([loss for _, _, loss in full])), 4)
            yield base | result("exact", 1.0, full)
            for policy in policies:
                for retention in numbers(arguments.retentions):
                    try:
                        answers = [a.answer(f"{policy}@{retention:g}", seed) for seed, a in enumerate(asked)]
                    except kvscope.Error as error:
                        print(f"left out: {policy}@{retention:g} at {tokens:.0f} tokens: {error}", file=sys.stderr)
                        continue
                    yield base | result(policy, retention, answers)


def result(policy: str, retention: float, answers: list[tuple[float, bool, float]]) -> dict[str, Any]:
    """Means over the prompts."""
    kept, right, nll = (float(np.mean(column)) for column in zip(*answers, strict=True))
    return {
        "policy": policy,
        "retention": retention,
        "kept": round(kept, 4),
        "right": round(right, 4),
        "nll": round(nll, 4),
    }


def write(path: pathlib.Path, rows: list[dict[str, Any]], origin: str) -> None:
    """CSV with a line about its origin, atomically."""
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("w", newline="", encoding="utf-8") as file:
        file.write(f"# {origin}\n")
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    os.replace(temporary, path)


def main(argv: list[str] | None = None) -> int:
    """Exit code 0, or 2 with one sentence on stderr."""
    arguments = parser().parse_args(argv)
    try:
        model, tokenizer = load_model(arguments.model, None, "fp32", "cpu")
    except CaptureError as error:
        print(f"retrieval.py: {error}", file=sys.stderr)
        return 2
    rows = list(measured(model, tokenizer, arguments))
    name = pathlib.Path(arguments.model).name
    origin = (
        f"studies/retrieval.py --task {arguments.task}: model {name}, float32, transformers {transformers.__version__}"
    )
    write(arguments.out, rows, origin)
    return 0


if __name__ == "__main__":
    sys.exit(main())
