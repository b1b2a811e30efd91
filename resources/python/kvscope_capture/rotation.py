"""What the rotary embedding of a model does to its keys: frequencies from its module, the layout from rotated keys."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import torch

from kvscope_capture.attention import rotary_of
from kvscope_capture.errors import CaptureError
from kvscope_capture.self_check import Rotation

FAR = 1 << 24  # a prompt beyond every trained length
ROUNDING = 1e-4  # float32 sines of float32 angles, relative to the largest component


@dataclasses.dataclass(frozen=True)
class RotaryTable:
    """One set of frequencies [pairs] (float32) and the magnitude that multiplies rotated queries and keys."""

    inv_freq: torch.Tensor
    attention_scaling: float


@dataclasses.dataclass(frozen=True)
class LayerRotation:
    """How a layer rotates: by the frequencies of table `table`."""

    table: str
    form: Rotation


def depends_on_length(decoder: Any) -> bool:
    """Whether the frequencies differ between short prompts and very long ones."""
    near, far = rotary_tables(decoder, 1), rotary_tables(decoder, FAR)
    return any(not torch.equal(near[name].inv_freq, far[name].inv_freq) for name in near)


def rotary_tables(decoder: Any, tokens: int) -> dict[str, RotaryTable]:
    """Tables of a prompt of `tokens` tokens, by layer type; "all" where layers share one."""
    rotary = rotary_of(decoder)
    if rotary is None:
        return {}
    fresh = type(rotary)(rotary.config)
    suffix = "_inv_freq"
    buffers = [n for n, _ in fresh.named_buffers() if n.endswith("inv_freq") and "original" not in n]
    tables = {}
    for name in sorted("" if n == "inv_freq" else n.removesuffix(suffix) for n in buffers):
        fresh(torch.zeros(1), torch.tensor([[tokens - 1]]), *([name] if name else []))
        scaling = getattr(fresh, f"{name}_attention_scaling" if name else "attention_scaling", 1.0)
        frequencies = getattr(fresh, name + suffix if name else "inv_freq").float().clone()
        tables[name or "all"] = RotaryTable(frequencies, float(scaling))
    return tables


def fit_rotation(rows: torch.Tensor, tables: dict[str, RotaryTable]) -> LayerRotation | None:
    """The rotation that turns the first of the rows [H, n, d] into the others; None: all rows are equal.

    The rows are those of equal tokens at positions 0 .. n - 1. Errors (CaptureError): no table fits.
    """
    first, positions = rows[:, :1].repeat(1, rows.shape[1], 1), torch.arange(rows.shape[1])
    tolerance = ROUNDING * float(rows.abs().max())
    if float((rows - first).abs().max()) < tolerance:
        return None
    for name, table in tables.items():
        rest = rows.shape[2] - 2 * len(table.inv_freq)
        for begin, layout in itertools.product({0, rest} if rest >= 0 else (), ("half", "interleaved")):
            form = Rotation(layout, begin)
            if float((form.rotated(first, positions, table.inv_freq, 1.0) - rows).abs().max()) < tolerance:
                return LayerRotation(name, form)
    raise CaptureError("the keys or queries change with the position by no rotation that is known", "RoPE")
