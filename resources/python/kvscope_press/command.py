"""`kvscope-evaluate CAPTURE MODEL --selections LIST.json ...`: what recorded selections cost the model."""

from __future__ import annotations

import argparse
import csv
import dataclasses
import math
import os
import pathlib
import sys
from typing import Any

import h5py
import numpy as np

from kvscope_capture.command import DTYPES, load_model, show
from kvscope_capture.errors import CaptureError
from kvscope_capture.prompt import SegmentKind
from kvscope_capture.self_check import SelfCheck
from kvscope_capture.version import add_version
from kvscope_press.calibration import Row, Setting, add_rows
from kvscope_press.measuring import Losses, answer_loss, full_nll, generate
from kvscope_press.pruned_context import PrunedContext, model_heads
from kvscope_press.recorded_selection import RecordedSelection, read_selection

FIELDS = ["policy", "variant", "retention", "nll_full", "nll_compressed", "right_tokens", "right_answers", "answers"]


@dataclasses.dataclass(frozen=True)
class CapturedTokens:
    """Tokens of a capture, its hash and its answers as half-open ranges."""

    ids: list[int]
    capture_hash: str
    answers: list[tuple[int, int]]

    def target(self, cut: int) -> list[tuple[int, int]]:
        """Answers behind the cut, else everything behind it; token `cut` is predicted before pruning and left out."""
        ranges = self.answers or [(cut, len(self.ids))]
        return [(max(begin, cut + 1), end) for begin, end in ranges if end > cut + 1]


def read_tokens(path: pathlib.Path) -> CapturedTokens:
    """Errors (CaptureError): not a capture."""
    try:
        with h5py.File(path, "r") as file:
            if file.attrs.get("format") != "kvscope-capture":
                raise CaptureError("is no capture", str(path), "Write captures with kvscope-capture")
            segments = file["tokens/segments"][()].tolist() if "tokens/segments" in file else []
            answers = [(b, e) for b, e, kind in segments if kind == SegmentKind.ANSWER]
            return CapturedTokens(file["tokens/ids"][()].tolist(), str(file.attrs.get("capture_hash", "")), answers)
    except (OSError, KeyError) as error:
        raise CaptureError(f"cannot be read ({error})", str(path), "Name a capture") from error


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(prog="kvscope-evaluate", description=__doc__)
    add_version(p)
    p.add_argument("capture", type=pathlib.Path, help="the capture that the lists were made from")
    p.add_argument("model", help="the model that was captured: a folder or a name")
    p.add_argument("--selections", type=pathlib.Path, nargs="+", required=True, help="lists of kvscope evict (.json)")
    p.add_argument("--cut", type=int, help="first token not pruned, for lists that do not say it")
    p.add_argument("--context-id", type=int, default=0, help="number of this context in the rows (default: 0)")
    p.add_argument("--revision", help="branch, tag or commit of the model")
    p.add_argument("--compute-dtype", choices=DTYPES, default="fp32", help="type the model runs in (default: fp32)")
    p.add_argument("--device", default="cpu", help="torch device (default: cpu)")
    p.add_argument("--generate", type=int, default=0, metavar="N", help="print N tokens behind the first question")
    p.add_argument("--replace", action="store_true", help="drop rows that were measured with another setting")
    p.add_argument("--dry-run", action="store_true", help="leave the capture as it is")
    p.add_argument("--out", type=pathlib.Path, help="the table as CSV, with the share of answer tokens that are right")
    return p


def check(selection: RecordedSelection, tokens: CapturedTokens, layers: int, kv_heads: int) -> None:
    """Errors (CaptureError): a list of another capture, of a part of a layer, or with nothing behind its cut."""
    if selection.capture_hash and tokens.capture_hash and selection.capture_hash != tokens.capture_hash:
        raise CaptureError("the list was made from another capture", selection.path, "Evict from this capture")
    named = {layer for layer, _ in selection.heads}
    if set(selection.heads) != {(layer, head) for layer in named for head in range(kv_heads)} or max(named) >= layers:
        raise CaptureError(
            f"the list covers {len(selection.heads)} heads, which are no whole layers of the model",
            selection.path,
            "Evict without --kv-heads",
        )
    if selection.cut > len(tokens.ids) or not tokens.target(selection.cut):
        raise CaptureError("nothing behind the cut can be measured", selection.path, "Cut earlier")


def measure(
    model: Any, tokens: CapturedTokens, selection: RecordedSelection, full: Losses, context_id: int
) -> tuple[Setting, Row, dict[str, Any]]:
    """The calibration row of one list and its line in the table."""
    ranges = tokens.target(selection.cut)
    wanted = [token for begin, end in ranges for token in range(begin, end)]
    loss = answer_loss(model, tokens.ids, selection, wanted)
    right = dict(zip(wanted, loss.right.tolist(), strict=True))
    whole = sum(all(right[token] for token in range(begin, end)) for begin, end in ranges)
    row = Row(
        selection.retention(math.prod(model_heads(model))),
        float(np.nanmean(full[: selection.cut])),
        float(full[wanted].mean()),
        loss.mean(),
        context_id,
    )
    line = dict(zip(FIELDS, (selection.policy, selection.variant, *dataclasses.astuple(row)[:1]), strict=False))
    line |= {"nll_full": row.nll_full, "nll_compressed": row.nll_compressed}
    line |= {"right_tokens": float(loss.right.mean()), "right_answers": whole, "answers": len(tokens.answers)}
    return Setting.of(selection, len(wanted)), row, line


def continuation(model: Any, tokenizer: Any, tokens: CapturedTokens, selection: RecordedSelection, most: int) -> str:
    """Greedy text behind what stands between the cut and the first answer."""
    answers = [begin for begin, _ in tokens.answers if begin >= selection.cut]
    question = tokens.ids[selection.cut : min(answers)] if answers else []
    context = PrunedContext(model, tokens.ids, selection)
    text: str = tokenizer.decode(generate(context, question, most, getattr(tokenizer, "eos_token_id", None)))
    return text


def write_table(path: pathlib.Path, lines: list[dict[str, Any]]) -> None:
    """CSV, atomically."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        with temporary.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, FIELDS)
            writer.writeheader()
            writer.writerows(lines)
        os.replace(temporary, path)
    except OSError as error:
        raise CaptureError(f"cannot be written ({error})", str(path), "Name another file") from error


def run(arguments: argparse.Namespace) -> None:
    """Everything that can be wrong with the lists is found before anything is measured."""
    tokens = read_tokens(arguments.capture)
    selections = [read_selection(path, arguments.cut) for path in arguments.selections]
    show("loading the model")
    model, tokenizer = load_model(arguments.model, arguments.revision, arguments.compute_dtype, arguments.device)
    for selection in selections:
        check(selection, tokens, *model_heads(model))
    model_check = SelfCheck(model, tokens.ids)
    full = full_nll(model, tokens.ids)
    model_check.compare_loss(full)
    if sentence := model_check.failure():
        raise CaptureError(sentence, arguments.model, "Lists cannot be measured on this architecture")
    measured, lines = [], []
    for index, selection in enumerate(selections):
        show(f"list {index + 1} of {len(selections)}")
        setting, row, line = measure(model, tokens, selection, full, arguments.context_id)
        whole = math.prod(model_heads(model)) - len(selection.heads)
        if not whole:
            measured.append((selection, setting, row))
        lines.append(line)
        print("{policy}:{variant} kept {retention:.1%}  NLL {nll_compressed:.4f} (full {nll_full:.4f})  "
              "{right_tokens:.0%} of answer tokens right".format(**line))  # fmt: skip
        if whole:
            print(f"  {whole} heads are not in the list and keep everything; no row is stored for calibration")
        if arguments.generate:
            print("  " + repr(continuation(model, tokenizer, tokens, selection, arguments.generate)))
    if arguments.out:
        write_table(arguments.out, lines)
    if measured and not arguments.dry_run:
        add_rows(arguments.capture, measured, arguments.replace)


def main(argv: list[str] | None = None) -> int:
    """Exit code 0, or 2 with one sentence on stderr."""
    arguments = parser().parse_args(argv)
    try:
        run(arguments)
    except CaptureError as error:
        print(f"kvscope-evaluate: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
