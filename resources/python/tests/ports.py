"""A right port of kvpress's SnapKV and wrong ones, each with one published kind of mistake."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch.nn import functional as F

from kvscope_capture.attention import attention_of, decoder_of, layers_of


class Port:
    """SnapKV as kvpress has it; `mistake` names what is wrong with it."""

    def __init__(self, compression_ratio: float = 0.75, window: int = 16, mistake: str = "", pool: str = "average"):
        self.compression_ratio, self.window, self.mistake, self.pool = compression_ratio, window, mistake, pool

    def score(self, module: Any, hidden: Any, keys: Any, values: Any, attentions: Any, kwargs: Any) -> torch.Tensor:
        w, n, d = self.window, keys.shape[2], keys.shape[3]
        assert n > w, "the prompt is not longer than the window"
        queries = module.q_proj(hidden[:, -w:]).unflatten(-1, (-1, d)).transpose(1, 2)
        queries = getattr(module, "q_norm", torch.nn.Identity())(queries)
        cos, sin = (
            t[:, :w] if self.mistake == "rope" else t[:, -w - 1 : -1] if self.mistake == "rope early" else t[:, -w:]
            for t in kwargs["position_embeddings"]
        )
        if self.mistake != "no rope":
            queries, _ = sys.modules[type(module).__module__].apply_rotary_pos_emb(queries, queries, cos, sin)
        group = queries.shape[1] // keys.shape[1]
        shared = keys.repeat_interleave(group, 1)
        if self.mistake == "upcast":
            queries, shared = queries.to(torch.bfloat16), shared.to(torch.bfloat16)
        logits = queries @ shared.transpose(2, 3) * module.scaling
        if self.mistake != "future":
            later = torch.arange(n)[None] > torch.arange(n - w, n)[:, None]
            logits = logits.masked_fill(later, -torch.inf)
        weights = torch.softmax(logits, -1).mean(2)[..., :-w]
        if self.pool == "max":
            weights = F.max_pool1d(weights, 5, 1, 2)
        else:
            weights = F.avg_pool1d(weights, 5, 1, 2, count_include_pad=self.mistake != "edge")
        weights = weights.unflatten(1, (-1, group))
        weights = weights.amax(2) if self.mistake == "group" else weights.mean(2)
        window = 0.0 if self.mistake == "unprotected" else float(weights.max()) + 1
        scores = F.pad(weights, (0, w), value=window)
        if self.mistake == "sinks":
            scores[..., :4] = scores.max()
        return scores

    def compress(
        self, module: Any, hidden: Any, keys: Any, values: Any, attentions: Any, kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if self.compression_ratio == 0 and self.mistake != "always":
            return keys, values
        scores, left = self.score(module, hidden, keys, values, attentions, kwargs), keys.shape[2]
        left *= 1 - self.compression_ratio
        count = math.ceil(left) if self.mistake == "count" else int(left) + 4 * (self.mistake == "on top")
        order = torch.sort(scores, descending=True, stable=True).indices
        if self.mistake == "ties":
            order = scores.shape[2] - 1 - torch.sort(scores.flip(-1), descending=True, stable=True).indices
        rows = order[..., : max(count, self.mistake != "none left")]
        if self.mistake == "first of batch":
            rows = rows[:1].expand_as(rows) if len(rows) == 1 else rows[1:].expand_as(rows)
        rows = rows[..., None].expand(-1, -1, -1, keys.shape[3])
        kept = keys.gather(2, rows), values.gather(2, rows)
        return (kept[0] * 1.001, kept[1]) if self.mistake == "other keys" else kept

    @contextlib.contextmanager
    def __call__(self, model: Any) -> Iterator[None]:
        def prune(module: Any, _: Any, kwargs: Any, output: Any) -> None:
            layer = kwargs["past_key_values"].layers[module.layer_idx]
            if layer.keys.shape[2] == kwargs["hidden_states"].shape[1]:
                layer.keys, layer.values = self.compress(
                    module, kwargs["hidden_states"], layer.keys, layer.values, None, kwargs
                )

        with contextlib.ExitStack() as stack:
            for layer in layers_of(model):
                attention_of(layer).rotary_emb = decoder_of(model).rotary_emb
                hook = attention_of(layer).register_forward_hook(prune, with_kwargs=True)
                stack.callback(hook.remove)
            yield
