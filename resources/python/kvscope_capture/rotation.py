"""What the rotary embedding of a model does to its keys: frequencies from its module, the layout from rotated keys."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

from kvscope_capture.errors import CaptureError

FAR = 1 << 24  # a prompt beyond every trained length
ROUNDING = 1e-4  # float32 sines of float32 angles, relative to the largest component


@dataclasses.dataclass(frozen=True)
class RotaryTable:
    """One set of frequencies [pairs] (float32) and the magnitude that multiplies rotated queries and keys."""

    inv_freq: torch.Tensor
    attention_scaling: float


@dataclasses.dataclass(frozen=True)
class Rotation:
    """Where a head is rotated: components begin .. begin + 2 pairs, of table `table`, `half` or `interleaved`."""

    table: str
    begin: int
    layout: str


def depends_on_length(decoder: Any) -> bool:
    """Whether the frequencies differ between short prompts and very long ones."""
    near, far = rotary_tables(decoder, 1), rotary_tables(decoder, FAR)
    return any(not torch.equal(near[name].inv_freq, far[name].inv_freq) for name in near)


def rotary_tables(decoder: Any, tokens: int) -> dict[str, RotaryTable]:
    """Tables of a prompt of so many tokens, by layer type; "all" where layers share one."""
    rotary = getattr(decoder, "rotary_emb", None)
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


def fit_rotation(rows: torch.Tensor, tables: dict[str, RotaryTable]) -> Rotation | None:
    """The rotation that makes rows [H, n, d] of equal tokens at positions 0 .. n - 1 out of the first; None: none.

    Errors: none of the tables does it.
    """
    rows = rows.double()
    tolerance = ROUNDING * float(rows.abs().max())
    if float((rows - rows[:, :1]).abs().max()) < tolerance:
        return None
    width = rows.shape[2]
    for name, table in tables.items():
        span = 2 * len(table.inv_freq)
        for begin in {0, width - span} if span <= width else ():
            for layout in ("half", "interleaved"):
                if (
                    float((rotated(rows[:, 0], table.inv_freq, begin, layout, rows.shape[1]) - rows).abs().max())
                    < tolerance
                ):
                    return Rotation(name, begin, layout)
    raise CaptureError("the keys or queries change with the position by no rotation that is known", "RoPE")


def rotated(first: torch.Tensor, inv_freq: torch.Tensor, begin: int, layout: str, positions: int) -> torch.Tensor:
    """Rows [H, d] turned by 0 .. positions - 1: [H, positions, d]."""
    pairs = len(inv_freq)
    angle = (torch.arange(positions, dtype=torch.float32)[:, None] * inv_freq).double()
    one = torch.arange(pairs) * (2 if layout == "interleaved" else 1) + begin
    two = one + (1 if layout == "interleaved" else pairs)
    out = first[:, None].repeat(1, positions, 1)
    a, b = first[:, None, one], first[:, None, two]
    out[..., one], out[..., two] = a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()
    return out
