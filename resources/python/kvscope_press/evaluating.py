"""What recorded selections cost the model: the checks, the runs, the table and the rows of `kvscope-evaluate`."""

from __future__ import annotations

import argparse
import csv
import dataclasses
import itertools
import json
import math
import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from kvscope_capture.attention import AttentionCall, attending_layers, head_sizes, require_prunable
from kvscope_capture.command import DTYPES, check_device, load_model, read_config, revision_of, without_weights
from kvscope_capture.console import TimeLeft, check_output, clear, show
from kvscope_capture.errors import CaptureError
from kvscope_capture.locking import replaced
from kvscope_capture.prompt import SegmentKind
from kvscope_capture.self_check import TOLERANCES, SelfCheck
from kvscope_press.calibration import Row, Setting, add_rows, check_settings
from kvscope_press.measuring import Losses, answer_loss, end_tokens, full_nll, generate
from kvscope_press.pruned_context import PrunedContext, ReadContext, model_heads, without_queries
from kvscope_press.recorded_selection import RecordedSelection, read_selection, refuse_reassigned
from kvscope_press.scores import CaptureHead, model_name, opened_capture, same_model

FIELDS = ["policy", "variant", "retention", "nll_full", "nll_compressed", "right_tokens", "right_answers", "answers"]
FIELDS += ["simulated"]  # evicts while the prompt is read, on tensors of full attention
FIELDS += ["arithmetic", "capture_warning", "list", "cut_token", "seed", "context", "nll_context"]
FEW_TOKENS = 20  # answer tokens; of fewer, an interval is printed
MOST_LOSS = (0.01, TOLERANCES["loss"][1])  # mean difference of losses, nat a token: 32 bits, 16 bits
FEW_ROWS = 5  # of a calibration, as in kvscope calibrate


@dataclasses.dataclass(frozen=True)
class CapturedTokens:
    """Tokens of a capture, its hash, its answers as half-open ranges, and the losses of the model that was captured.

    `nll` [n] is None where the capture holds no loss; `model_dtype` is the type that the model ran in, "" if unknown.
    """

    ids: list[int]
    capture_hash: str
    answers: list[tuple[int, int]]
    nll: Losses | None = None
    model_dtype: str = ""

    def target(self, cut: int) -> list[tuple[int, int]]:
        """Answers behind the cut, else everything behind it; token `cut` is predicted before pruning and left out."""
        ranges = self.answers or [(cut, len(self.ids))]
        return [(max(begin, cut + 1), end) for begin, end in ranges if end > cut + 1]


def read_tokens(path: pathlib.Path) -> CapturedTokens:
    """Errors (CaptureError): as opened_capture."""
    with opened_capture(path) as file:
        segments = file["tokens/segments"][()].tolist() if "tokens/segments" in file else []
        answers = [(b, e) for b, e, kind in segments if kind == SegmentKind.ANSWER]
        nll = np.asarray(file["tokens/nll"][()], np.float64) if "tokens/nll" in file else None
        return CapturedTokens(
            file["tokens/ids"][()].tolist(),
            str(file.attrs.get("capture_hash", "")),
            answers,
            nll if nll is not None and np.isfinite(nll[1:]).any() else None,
            json.loads(file.attrs.get("self_check", "{}")).get("model_dtype", ""),
        )


def check(selection: RecordedSelection, tokens: CapturedTokens, layers: list[int], kv_heads: int) -> None:
    """Errors (CaptureError): a list of another capture, of a part of a layer, with nothing behind its cut, or of a
    policy that re-assigns positions."""
    refuse_reassigned(selection)
    if selection.capture_hash and tokens.capture_hash and selection.capture_hash != tokens.capture_hash:
        raise CaptureError("the list was made from another capture", selection.path, "Evict from this capture")
    named = {layer for layer, _ in selection.heads}
    whole = {(layer, head) for layer in named & set(layers) for head in range(kv_heads)}
    if set(selection.heads) != whole or not whole:
        raise CaptureError(
            f"the list covers {len(selection.heads)} heads, which are no whole layers of the model",
            selection.path,
            "Evict without --kv-heads",
        )
    if selection.cut > len(tokens.ids) or not tokens.target(selection.cut):
        raise CaptureError("nothing behind the cut can be measured", selection.path, "Cut earlier")


def require_losses(full: Losses, tokens: CapturedTokens, compute_dtype: str, path: pathlib.Path) -> None:
    """Errors (CaptureError): the losses are not those of the model that was captured.

    Two runs in 32 bits agree to some 1e-5 nat; where one ran in 16 bits or in an unknown type, more is allowed.
    """
    if tokens.nll is None:
        return
    most = MOST_LOSS[0 if compute_dtype == "fp32" and tokens.model_dtype == "float32" else 1]
    difference = float(np.nanmean(np.abs(full[1:] - tokens.nll[1:])))
    if difference > most:
        raise CaptureError(
            f"the model's losses are not those of the capture: they differ by {difference:.2g} nat per token, "
            f"at most {most:g} are allowed",
            str(path),
            same_model(tokens.model_dtype, DTYPES[compute_dtype]),
        )


def measure(
    model: Any,
    tokens: CapturedTokens,
    selection: RecordedSelection,
    full: Losses,
    context_id: int,
    read: ReadContext | None = None,
) -> tuple[Row, dict[str, Any]]:
    """The calibration row of one list and its line in the table."""
    ranges = tokens.target(selection.cut)
    wanted = wanted_of(tokens, selection)
    loss = answer_loss(model, tokens.ids, selection, wanted, read)
    if not np.isfinite(loss.nll).all():
        token = wanted[int(np.flatnonzero(~np.isfinite(loss.nll))[0])]
        raise CaptureError(
            f"the loss of token {token} behind the pruned cache is NaN or infinite",
            selection.path,
            "Run the model in a wider type (--compute-dtype fp32)",
        )
    right = dict(zip(wanted, loss.right.tolist(), strict=True))
    row = Row(
        selection.retention(math.prod(model_heads(model))),
        float(full[1 : selection.cut].mean()) if selection.cut > 1 else math.nan,  # the first token has no loss
        float(full[wanted].mean()),
        loss.mean(),
        context_id,
    )
    line = dict(zip(FIELDS, (selection.policy, selection.variant, *dataclasses.astuple(row)[:1]), strict=False))
    line |= {"nll_full": row.nll_full, "nll_compressed": row.nll_compressed, "answers": len(tokens.answers and ranges)}
    line |= {
        "simulated": "true" if selection.simulated else "false",
        "list": selection.path,
        "cut_token": selection.cut,
    }
    line |= {name: getattr(selection, name) for name in ("arithmetic", "capture_warning", "seed")}
    line |= {"nll_context": row.nll_context if math.isfinite(row.nll_context) else ""}
    if tokens.answers:
        whole = sum(all(right[token] for token in range(begin, end)) for begin, end in ranges)
        line |= {"right_tokens": float(loss.right.mean()), "right_answers": whole}
    return row, line


def why_not_stored(row: Row, whole: int) -> str:
    """Why a measurement becomes no row for calibration; empty where it becomes one.

    The program divides losses, and refuses all rows of a capture if one loss is not finite or not above 0.
    """
    if whole:
        return f"{whole} heads are not in the list and keep everything"
    if not math.isfinite(row.nll_context):
        return "no token before the cut has a loss"
    return "" if min(row.nll_full, row.nll_compressed) > 0 else "a mean loss is 0, the model is sure of every token"


def wanted_of(tokens: CapturedTokens, selection: RecordedSelection) -> list[int]:
    """The tokens whose losses are measured."""
    return [token for begin, end in tokens.target(selection.cut) for token in range(begin, end)]


def wilson_interval(right: int, count: int) -> tuple[float, float]:
    """95 % interval of a share, right of count, as if the tokens were independent (Wilson 1927)."""
    z = 1.959964
    centre = (right + z * z / 2) / (count + z * z)
    half = z / (count + z * z) * math.sqrt(right * (count - right) / count + z * z / 4)
    return centre - half, centre + half


def sentence(line: dict[str, Any], count: int) -> str:
    """What the command prints of a list; `count` tokens were measured."""
    marks = ["simulated"] * (line["simulated"] == "true") + [line["arithmetic"], line["capture_warning"]]
    mark = "; ".join(filter(None, marks))
    mark = f" ({mark})" if mark else ""
    text = "{policy}:{variant} kept {retention:.1%}{mark}  NLL {nll_compressed:.4f} (full {nll_full:.4f})".format(
        mark=mark, **line
    )
    if not line["answers"]:
        return f"{text} of {count} tokens behind the cut; the capture marks no answer"
    right = round(line["right_tokens"] * count)
    text += f", {right} of {count} answer tokens right ({right / count:.0%}"
    if count >= FEW_TOKENS:
        return f"{text})"
    low, high = wilson_interval(right, count)
    return f"{text}; few: 95% interval {low:.0%} to {high:.0%})"


def continuation(
    model: Any, tokenizer: Any, tokens: CapturedTokens, selection: RecordedSelection, most: int, read: ReadContext
) -> str:
    """Greedy text behind the tokens between the cut and the first answer."""
    answers = [begin for begin, _ in tokens.answers if begin >= selection.cut]
    question = tokens.ids[selection.cut : min(answers)] if answers else []
    context = PrunedContext(model, tokens.ids, selection, read)
    text: str = tokenizer.decode(generate(context, question, most, end_tokens(model, tokenizer)))
    return text


def write_table(path: pathlib.Path, lines: list[dict[str, Any]]) -> None:
    """CSV, atomically."""
    with replaced(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(lines)


def check_all(
    arguments: argparse.Namespace, tokens: CapturedTokens, selections: list[RecordedSelection]
) -> list[Setting]:
    """The setting of each list. Errors (CaptureError): whatever can be known to fail before the model is loaded."""
    if arguments.generate < 0:
        raise CaptureError("must not be negative", "--generate")
    config = read_config(arguments.model, arguments.revision)
    kv_heads, attending = head_sizes(config)[1], attending_layers(config)
    if max(tokens.ids) >= config.vocab_size:
        raise CaptureError("the capture has tokens that the model does not know", arguments.model, "Name its model")
    for selection in selections:
        check(selection, tokens, attending, kv_heads)
    if arguments.out:
        check_output(arguments.out, reads=[arguments.capture, *arguments.selections])
    revision = revision_of(arguments.model, arguments.revision)
    model = (model_name(arguments.model), revision, arguments.compute_dtype)
    settings = [Setting.of(s, len(wanted_of(tokens, s)), model) for s in selections]
    whole = len(attending) * kv_heads
    stored = [(s, setting) for s, setting in zip(selections, settings, strict=True) if len(s.heads) == whole]
    if stored and not arguments.dry_run:
        check_output(arguments.capture.resolve())
        wanted = [(selection, setting, arguments.context_id) for selection, setting in stored]
        check_settings(arguments.capture, wanted, arguments.replace)
    check_device(arguments.device)
    return settings


def run(arguments: argparse.Namespace, kept: list[str]) -> None:
    """Everything that can be wrong with the lists is found before the model is loaded.

    A run that ends early keeps what it has measured, and says so in `kept`.
    """
    tokens = read_tokens(arguments.capture)
    selections = [read_selection(path, arguments.cut) for path in arguments.selections]
    settings = dict(zip(map(id, selections), check_all(arguments, tokens, selections), strict=True))
    captured = CaptureHead(arguments.capture, None) if tokens.nll is None else None
    require_prunable(without_weights(read_config(arguments.model, arguments.revision)))
    show("loading the model")
    model, tokenizer = load_model(arguments.model, arguments.revision, arguments.compute_dtype, arguments.device)
    show("the full cache")
    model_check = SelfCheck(model, tokens.ids)

    def observe(call: AttentionCall) -> None:
        if captured and call.layer in captured.layers:
            captured.require_keys_of(call.layer, call.key)

    full = full_nll(model, tokens.ids, observe)
    model_check.compare_loss(full)
    if failure := model_check.failure():
        raise CaptureError(failure, arguments.model, "Lists cannot be measured on this architecture")
    require_losses(full, tokens, arguments.compute_dtype, arguments.capture)
    measured: list[tuple[RecordedSelection, Setting, Row]] = []
    lines: list[dict[str, Any]] = []
    time = TimeLeft(len(selections))
    try:
        for selection, read in with_contexts(model, tokens.ids, selections, bool(arguments.generate)):
            show(f"list {len(lines) + 1} of {len(selections)}{time.after(len(lines))}")
            setting = settings[id(selection)]
            row, line = measure(model, tokens, selection, full, arguments.context_id, read)
            line["context"] = f"{arguments.capture.name}#{arguments.context_id}"
            why = why_not_stored(row, math.prod(model_heads(model)) - len(selection.heads))
            if not why:
                measured.append((selection, setting, row))
            lines.append(line)
            clear()
            print(sentence(line, setting.target_tokens))
            if why:
                print(f"  {why}; no row is stored for calibration")
            if arguments.generate and read:
                print("  " + repr(continuation(model, tokenizer, tokens, selection, arguments.generate, read)))
    finally:
        if write_measured(arguments, lines, measured) and len(lines) < len(selections):
            kept.append(f"The results of {len(lines)} of {len(selections)} lists are written")
            print(*kept)


def write_measured(
    arguments: argparse.Namespace, lines: list[dict[str, Any]], measured: list[tuple[RecordedSelection, Setting, Row]]
) -> bool:
    """Writes the table, and the rows into the capture; false: there is nothing to write."""
    if arguments.out and lines:
        write_table(arguments.out, lines)
    if measured and not arguments.dry_run:
        for name, count in add_rows(arguments.capture, measured, arguments.replace).items():
            if count < FEW_ROWS:
                print(f"few rows: {count} of {name} between 0 and 1; kvscope calibrate wants at least {FEW_ROWS}")
    return bool((lines and arguments.out) or (measured and not arguments.dry_run))


def with_contexts(
    model: Any, ids: list[int], selections: list[RecordedSelection], always: bool
) -> Iterator[tuple[RecordedSelection, ReadContext | None]]:
    """Lists by cut, each with the context that all lists of its cut share.

    Such a context holds the whole cache. The only list of a cut has None, unless `always`: the rows that it keeps are
    gathered while the context is read.
    """
    for cut, group in itertools.groupby(sorted(selections, key=lambda s: s.cut), key=lambda s: s.cut):
        alike = list(group)
        read = ReadContext(model, ids, cut, without_queries) if always or len(alike) > 1 else None
        yield from ((selection, read) for selection in alike)
