"""Is a port of a policy right, and if not, why? `check_press_command.py` is the command."""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import pathlib
import sys
import tempfile
from typing import Any

import torch

from kvscope_capture.attention import decoder_of, layers_of
from kvscope_capture.command import load_model
from kvscope_capture.console import show
from kvscope_capture.errors import CaptureError
from kvscope_capture.program import find_program
from kvscope_press.battery import Battery, Row
from kvscope_press.differences import Comparison, Reason
from kvscope_press.layer_inputs import choice_of, read_layers


def load_press(text: str) -> Any:
    """`MODULE:CLASS[,parameter=value]...`, looked for in the working directory too.

    Errors (CaptureError): no such module or class, parameters that it refuses, a class without compress().
    """
    name, *rest = text.split(",")
    module, colon, kind = name.partition(":")
    if not colon:
        raise CaptureError(f"{text!r} is not MODULE:CLASS", "--press", "Write for example my_press:MyPress")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    given = {field: _value(value) for field, _, value in (part.partition("=") for part in rest)}
    try:
        press = getattr(importlib.import_module(module), kind)(**given)
    except Exception as error:  # the press is other people's code
        sentence = (str(error).splitlines() or [""])[0]
        raise CaptureError(f"{name} cannot be made ({type(error).__name__}: {sentence})", "--press") from error
    if not hasattr(press, "compress"):
        raise CaptureError(f"{kind} has no compress()", "--press", "Derive it from kvpress's BasePress")
    return press


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def budget_of(press: Any, policy: str) -> tuple[str, str]:
    """The policy and its budget: what stands behind @, else the fraction that the press keeps."""
    spec, at, budget = policy.rpartition("@")
    if at:
        return spec, budget
    ratio = getattr(press, "compression_ratio", 0)
    if not ratio:
        raise CaptureError(
            "nothing says how much is kept", "--press", "Give the press compression_ratio=0.75, or --policy an @budget"
        )
    return policy, repr(1 - float(ratio))


def prompt_ids(arguments: argparse.Namespace, tokenizer: Any, vocabulary: int) -> list[int]:
    """The text's tokens, at most --tokens; without a text random ones, the same in every run."""
    if arguments.text is None:
        generator = torch.Generator().manual_seed(21)
        return [int(x) for x in torch.randint(3, vocabulary, (arguments.tokens,), generator=generator)]
    try:
        ids = [int(x) for x in tokenizer(arguments.text.read_text(encoding="utf-8-sig"))["input_ids"]]
    except (OSError, UnicodeDecodeError) as error:
        raise CaptureError(f"cannot be read ({error})", str(arguments.text), "Name a UTF-8 text file") from error
    return ids[: arguments.tokens]


def right_in_double(
    model: Any, press: Any, arguments: argparse.Namespace, ids: list[int], spec: str, kept: str
) -> bool:
    """Whether the lists are equal where the press computes in float64."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            wide = Comparison(
                press, spec, kept, ids, read_layers(model.double(), ids, arguments.eager), pathlib.Path(folder)
            )
            return not wide.partings()
    except CaptureError:
        return False


def compared(lines: list[str], comparison: Comparison) -> list[Reason]:
    """Adds lines on what was compared and on the first difference; returns why the lists differ."""
    every = comparison.partings(-1.0)
    heads = sum(len(choice.kept) for choice in comparison.own)
    lines.append(f"lists    {heads - len(every)} of {heads} heads keep the same tokens")
    if not every:
        return []
    reasons = comparison.reasons()
    first = every[0]
    lines.append(
        f"first    layer {first.layer}, KV head {first.head}: only the press keeps {_tokens(first.press)}, only the "
        f"policy {_tokens(first.policy)}"
    )
    if not reasons:
        lines.append("why      within float rounding: the scores are closer than 2^-16 of the largest")
    return reasons


def _tokens(tokens: list[int]) -> str:
    shown = ", ".join(map(str, tokens[:6])) + (" ..." if len(tokens) > 6 else "")
    return f"{shown} ({len(tokens)})" if tokens else "none"


def table(rows: list[Row]) -> list[str]:
    """The battery as lines of equal columns."""
    wide = max(len(row.name) for row in rows)
    return ["battery", *(f"  {row.name:<{wide}}  {row.outcome:<9}  {row.words}" for row in rows)]


def run(arguments: argparse.Namespace) -> int:
    """Prints the comparison; 0 where all heads agree but for ties and float rounding, else 1."""
    press = load_press(arguments.press)
    spec, budget = budget_of(press, arguments.policy)
    find_program()
    if arguments.tokens < 16:
        raise CaptureError("must be at least 16", "--tokens")
    show("loading the model")
    model, tokenizer = load_model(arguments.model, arguments.revision, arguments.compute_dtype, arguments.device)
    ids = prompt_ids(arguments, tokenizer, decoder_of(model).config.vocab_size)
    if len(ids) < 16:
        raise CaptureError(f"the prompt has {len(ids)} tokens", "--text", "Give it at least 16")
    show("comparing")
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        layers = read_layers(model, ids, arguments.eager)
        comparison = Comparison(press, spec, budget, ids, layers, pathlib.Path(folder))
        lines = [
            f"press    {arguments.press}",
            f"policy   {spec}@{budget}",
            f"prompt   {len(ids)} tokens, {len(layers_of(model))} layers, {arguments.compute_dtype}",
        ]
        reasons = compared(lines, comparison)
        own = [choice_of(press, layer) for layer in layers]
    rows = [] if arguments.no_battery else Battery(model, press, ids, own, arguments.eager).rows()
    wrong = any(reason.name != "tie" for reason in reasons)
    if wrong and right_in_double(model, press, arguments, ids, spec, budget):
        reasons = [Reason("up-cast", f"in float64 the lists are equal, in {arguments.compute_dtype} they are not")]
    lines += [f"why      {reason.name}: {reason.sentence}" for reason in reasons]
    print("\n".join(lines + (table(rows) if rows else [])))
    return 1 if wrong else 0
