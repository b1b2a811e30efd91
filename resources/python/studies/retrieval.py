"""Loss and accuracy of what a model must look up, against policy, retention, length and depth; one CSV row a trial.

A run that was stopped goes on where it ended: rows that FILE.csv holds are not measured again.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import os
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import kvscope
import numpy as np
import torch
import transformers
from prompts import TASKS

from kvscope_capture import CaptureError, Prompt, SegmentKind
from kvscope_capture.command import load_model, show
from kvscope_capture.console import run_command
from kvscope_capture.version import add_version
from kvscope_press import HeadSelection, ReadContext, RecordedSelection, answer_loss, full_nll
from kvscope_press.recorded_selection import whole_selection

# Defaults, except where a prompt of 1,000 tokens has no room for them: BalanceKV protects 256 + 256, SubGen stores 256.
POLICIES = (
    "keydiff",
    "compactor",
    "leverage",
    "snapkv",
    "pyramidkv",
    "h2o",
    "tova",
    "key_norm",
    "streaming_llm",
    "balancekv:longbench,sink=4,recent=16",
    "balancekv:needle_paper,sink=4,recent=16",
    "subgen_kcenter",
    "subgen:searched,value_slots=16",
    "uniform",
)
KEY = ("task", "tokens", "depth", "prompt", "question_seen", "policy", "retention")
FIELDS = (*KEY, "kept", "right", "nll", "nll_full", "nll_context")
Row = dict[str, str]


class Asked:
    """A prompt whose context the model has read; with `seen`, the question too.

    The token at the cut is predicted before anything is pruned and does not count: with `seen`, the first of the
    answer.
    """

    def __init__(self, model: Any, prompt: Prompt, seen: bool = False) -> None:
        """Reads up to the cut, and measures the unpruned model."""
        ranges = {kind: (begin, end) for begin, end, kind in prompt.segments}
        self.model, self.ids = model, prompt.ids
        begin, end = ranges[SegmentKind.ANSWER]
        cut = begin if seen else ranges[SegmentKind.CONTEXT][1]
        self.wanted = list(range(max(begin, cut + 1), end))
        self.read = ReadContext(model, prompt.ids, cut)
        full = full_nll(model, prompt.ids)
        self.nll_full, self.nll_context = float(full[self.wanted].mean()), float(np.nanmean(full[:cut]))

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
                softcap=call.softcap,
                sliding_window=call.sliding_window,
                sinks=None if call.sinks is None else call.sinks.detach().float().cpu().numpy(),
                k_pre=call.unrotated[1] if call.unrotated else None,
                layer=call.layer,
                num_layers=len(self.read.calls),
                seed=seed,
                threads=1,
            )
            own, group = chosen.query_heads, call.query.shape[0] // call.key.shape[0]
            for head, kept in enumerate(chosen.kept):
                weights = (chosen.numerator_weights, chosen.denominator_weights)
                numerator, denominator = (np.array(w[head] if w else np.ones(kept.size), np.float32) for w in weights)
                mine = dict(enumerate(own[head * group : (head + 1) * group], head * group)) if own else {}
                sets = {query_head: np.array(chosen_here, np.int64) for query_head, chosen_here in mine.items()}
                heads[call.layer, head] = HeadSelection(np.array(kept, np.int64), numerator, denominator, sets)
        return RecordedSelection("", policy, "", {}, "", self.read.cut, "", False, heads)

    def trial(self, policy: str, retention: str, seed: int) -> Row:
        """One row, without its key. `right`: every token of the answer."""
        if policy == "exact":
            layers, kv_heads = len(self.read.calls), self.read.calls[0].key.shape[0]
            selection = whole_selection(layers, kv_heads, self.read.cut)
        else:
            selection = self.select(f"{policy}@{retention}", seed)
        loss = answer_loss(self.model, self.ids, selection, self.wanted, self.read)
        numbers = (loss.mean(), self.nll_full, self.nll_context)
        nll, nll_full, nll_context = (f"{number:.5f}" for number in numbers)
        return {
            "kept": f"{selection.retention():.4f}",
            "right": str(int(loss.right.all())),
            "nll": nll,
            "nll_full": nll_full,
            "nll_context": nll_context,
        }


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(prog="retrieval.py", description=__doc__)
    add_version(p)
    p.add_argument("model", help="a folder or a name")
    p.add_argument("--task", choices=TASKS, default="needle")
    p.add_argument("--lengths", nargs="+", default=["512", "1024", "1536"], help="tokens of the prompts")
    p.add_argument("--depths", nargs="+", default=["0.1", "0.5", "0.9"], help="where the answer stands, 0 to 1")
    p.add_argument("--retentions", nargs="+", default=["0.05", "0.1", "0.25", "0.5"], help="fractions kept")
    p.add_argument("--policies", nargs="+", default=POLICIES, help="as kvscope has them, without budget")
    p.add_argument("--prompts", type=int, default=10, help="for each length and depth (default: 10)")
    p.add_argument("--question-seen", action="store_true", help="policies see the question too")
    p.add_argument("--out", type=pathlib.Path, required=True, help="FILE.csv; more rows are added to it")
    return p


def keys(arguments: argparse.Namespace) -> Iterator[list[Row]]:
    """What is to be measured, prompt by prompt; every cell has its first prompt before any has its second."""
    trials = [("exact", "1"), *itertools.product(arguments.policies, arguments.retentions)]
    for number in range(arguments.prompts):
        for tokens, depth in itertools.product(arguments.lengths, arguments.depths):
            place = (arguments.task, tokens, depth, str(number), str(int(arguments.question_seen)))
            yield [dict(zip(KEY, (*place, *trial), strict=True)) for trial in trials]


def there(path: pathlib.Path, origin: str) -> set[tuple[str, ...]]:
    """Keys of the rows in FILE.csv, which is begun if need be. Errors (CaptureError): rows of another origin.

    A row that a killed run has left half-written is removed.
    """
    head, found = f"{origin}\n{','.join(FIELDS)}\n".encode(), path.read_bytes() if path.exists() else b""
    if head.startswith(found):
        path.write_bytes(head)
    elif not found.startswith(f"{origin}\n".encode()):
        raise CaptureError("holds rows of another model or version", str(path), "Name another file")
    else:
        os.truncate(path, found.rfind(b"\n") + 1)
    with path.open(newline="", encoding="utf-8") as file:
        file.readline()
        return {tuple(row[name] for name in KEY) for row in csv.DictReader(file) if row["nll_context"]}


def measure(model: Any, tokenizer: Any, arguments: argparse.Namespace, done: set[tuple[str, ...]]) -> Iterator[Row]:
    """Rows that are not there yet; a trial that its policy refuses (budget below the protected tokens) is left out."""
    for group in keys(arguments):
        group = [key for key in group if tuple(key.values()) not in done]
        if not group:
            continue
        tokens, depth, number = int(group[0]["tokens"]), float(group[0]["depth"]), int(group[0]["prompt"])
        show(f"{arguments.task} {number + 1} of {arguments.prompts}, {tokens} tokens, depth {depth:g}")
        asked = Asked(model, TASKS[arguments.task](tokenizer, tokens, depth, number), arguments.question_seen)
        for key in group:
            try:
                yield key | asked.trial(key["policy"], key["retention"], number)
            except kvscope.Error as error:
                print(f"left out: {key['policy']}@{key['retention']} at {tokens} tokens: {error}", file=sys.stderr)


def add_rows(arguments: argparse.Namespace) -> None:
    """Appends the rows that the file lacks, each as soon as it is measured."""
    name = pathlib.Path(arguments.model).resolve().name
    origin = f"# studies/retrieval.py: {name}, float32, transformers {transformers.__version__}"
    model, tokenizer = load_model(arguments.model, None, "fp32", "cpu")
    done = there(arguments.out, origin)
    with arguments.out.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        for row in measure(model, tokenizer, arguments, done):
            writer.writerow(row)
            file.flush()


def main(argv: list[str] | None = None) -> int:
    """Exit code 0, or 2 with one sentence on stderr."""
    arguments = parser().parse_args(argv)
    torch.set_num_threads(1)
    finished = f"The rows in {arguments.out} stay; the same command goes on behind them"
    return run_command("retrieval.py", lambda: add_rows(arguments), lambda: finished)


if __name__ == "__main__":
    sys.exit(main())
