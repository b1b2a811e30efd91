"""KVScope's lists as a press of NVIDIA's kvpress, so that they run in its pipelines and benchmarks.

    with RecordedPress(read_selection(path))(model):
        model(context_ids, past_key_values=cache)

kvpress keeps a rectangular cache: every head of a layer holds the same number of tokens, each with weight 1; and
Transformers counts a sliding window by the slots of that cache, not by the positions of its tokens. Lists with ragged
heads or weights, and models with a window, need `PrunedContext` instead, and are refused here. Needs kvpress
(`pip install kvpress`).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import torch
from kvpress.presses.base_press import BasePress

from kvscope_capture.errors import CaptureError
from kvscope_press.recorded_selection import HeadSelection, RecordedSelection, refuse_reassigned, refuse_window


def _heads_of_layer(selection: RecordedSelection, layer: int, heads: int) -> list[HeadSelection]:
    missing = [head for head in range(heads) if (layer, head) not in selection.heads]
    if missing:
        raise CaptureError(
            f"says nothing about KV heads {missing} of layer {layer}", selection.path, "Evict without --layers"
        )
    return [selection.heads[layer, head] for head in range(heads)]


def rectangular_rows(selection: RecordedSelection, layer: int, heads: int) -> torch.Tensor:
    """Kept tokens of a layer, [Hkv, m].

    Errors (CaptureError): heads that keep different numbers, sets of query heads, weights other than 1, missing heads.
    """
    chosen = _heads_of_layer(selection, layer, heads)
    remedy = "Use kvscope_press.PrunedContext, which masks and weighs"
    if any(head.query_heads for head in chosen):
        raise CaptureError(f"the query heads of layer {layer} keep sets of their own", selection.path, remedy)
    if len({head.kept.size for head in chosen}) != 1:
        raise CaptureError(f"the heads of layer {layer} keep different numbers of tokens", selection.path, remedy)
    if any((w != 1).any() for head in chosen for w in (head.numerator, head.denominator)):
        raise CaptureError(f"layer {layer} weighs its tokens", selection.path, remedy)
    return torch.from_numpy(np.stack([head.kept for head in chosen]))


@dataclasses.dataclass
class RecordedPress(BasePress):  # type: ignore[misc]
    """Keeps what `selection` keeps. The prompt that is read must be the tokens before the selection's cut."""

    selection: RecordedSelection

    @property
    def compression_ratio(self) -> float:
        """Fraction removed, as kvpress counts it."""
        return 1 - self.selection.retention()

    def compress(
        self,
        module: torch.nn.Module,
        hidden_states: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        attentions: torch.Tensor,
        kwargs: dict[str, Any],
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values [1, Hkv, m, d] in the order of time.

        Errors (CaptureError): a prompt of another length than the selection's cut, a batch of several prompts, a layer
        with a sliding window, a policy that re-assigns positions.
        """
        refuse_reassigned(self.selection)
        batch, heads, tokens, _ = keys.shape
        if tokens != self.selection.cut or batch != 1:
            raise CaptureError(
                f"was made for one prompt of {self.selection.cut} tokens, the model reads {batch} of {tokens}",
                self.selection.path,
                "Feed the tokens before the cut",
            )
        layer = int(module.layer_idx)  # type: ignore[arg-type]
        rows = rectangular_rows(self.selection, layer, heads).to(keys.device)[None, :, :, None]
        refuse_window(module.config, layer, self.selection.path)
        return torch.take_along_dim(keys, rows, dim=2), torch.take_along_dim(values, rows, dim=2)
