"""Attention over what policies keep of a context and over all tokens behind its cut.

Keys and values stay in the model's type and are shared by all policies: the query heads of a GQA group, the policies
and the queries are rows of one product with a head's keys. Sums run in float32 (float64 for a model in float64).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from kvscope_capture.attention import AttentionCall, own_kernel

LOGITS = 1 << 25  # at once in one layer; more queries are taken in parts
BLOCK_TOKENS = 4096  # of keys and values that are converted at once, where the model's type is narrower than float32


@dataclasses.dataclass(frozen=True)
class PrunedLayer:
    """What P policies keep of one layer: keys [H, m, d], values [H, m, dv], positions [m] or [H, m].

    H is Hkv, or Hq where rows were gathered for every query head, times P where they were gathered for every policy;
    policies then count as heads, and P is 1 in what follows. `hidden`, `numerator` and `denominator` are
    [H, P, 1 or g, 1, m], with g query heads a row of keys: `hidden` is true for what is evicted or padding, None where
    nothing is; the weights are None where all are 1. `stored` counts the rows that the heads keep, without padding.
    `room` is given where rows were gathered for every policy: `keys` and `values` are the first m rows of its tensors,
    and their other rows may be overwritten.
    """

    keys: torch.Tensor
    values: torch.Tensor
    positions: torch.Tensor
    hidden: torch.Tensor | None
    numerator: torch.Tensor | None
    denominator: torch.Tensor | None
    stored: int
    room: tuple[torch.Tensor, torch.Tensor] | None = None

    @classmethod
    def whole(cls, call: AttentionCall) -> PrunedLayer:
        """Every row of every head."""
        tokens = call.key.shape[1]
        positions = torch.arange(tokens, device=call.key.device)
        return cls(call.key, call.value, positions, None, None, None, tokens * call.key.shape[0])

    def is_whole(self, tokens: int) -> bool:
        """Whether all `tokens` of the context are here, so that attention over these rows is the model's own."""
        return self.hidden is None and self.numerator is None and self.keys.shape[1] == tokens


def head_weights(
    numerator: torch.Tensor, denominator: torch.Tensor, heads: int, device: Any
) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:
    """`hidden`, `numerator` and `denominator` of a layer with `heads` rows of keys, from weights [P, W, m].

    W is `heads` or a multiple; a token with both weights 0 is hidden.
    """
    policies, _, tokens = numerator.shape
    hidden = (numerator == 0) & (denominator == 0)
    unweighted = bool(((numerator == denominator) & (hidden | (numerator == 1))).all())

    def spread(given: torch.Tensor) -> torch.Tensor:
        return given.to(device).view(policies, heads, -1, 1, tokens).transpose(0, 1)

    weights = (None, None) if unweighted else (spread(numerator), spread(denominator))
    return spread(hidden) if bool(hidden.any()) else None, *weights


def row_bytes(keys: torch.Tensor, values: torch.Tensor) -> int:
    """Bytes of a head's key and value of one token."""
    return keys.element_size() * (keys.shape[-1] + values.shape[-1])


def attend_behind(layer: PrunedLayer, call: AttentionCall, cut: int) -> torch.Tensor:
    """Attention of the last q tokens to the pruned context and to the t tokens behind the cut; [P, Hq, q, dv].

    `call` has a batch axis in front: `query` [P, Hq, q, d]; `key` and `value` [P, Hkv, t, ...] are the tokens
    cut .. cut + t - 1. sum num e^l v / sum den e^l, where the tokens behind the cut have weights 1 (BalanceKV, SubGen:
    numerator and denominator may run over different tokens). With one policy that evicts nothing, the model's kernel
    runs, so that the output is the model's own.
    """
    if layer.keys.shape[0] == call.key.shape[1] and layer.is_whole(cut) and call.query.shape[0] == 1:
        return _whole_attention(layer, call, cut)
    policies, query_heads, queries, _ = call.query.shape
    if layer.room:
        return _as_heads(layer, call, cut)
    now = torch.arange(cut + call.key.shape[2] - queries, cut + call.key.shape[2], device=call.query.device)
    most = max(1, LOGITS // (policies * query_heads * (layer.keys.shape[1] + call.key.shape[2])))
    parts = zip(torch.split(call.query, most, 2), torch.split(now, most), strict=True)
    return torch.cat([_attend_rows(layer, call, query, at, cut) for query, at in parts], dim=2)


def _as_heads(layer: PrunedLayer, call: AttentionCall, cut: int) -> torch.Tensor:
    """Treats policies that have rows of their own as heads of one policy."""
    unweighted = layer.numerator is None and layer.denominator is None
    if unweighted and not call.softcap and call.sinks is None and call.query.dtype in (torch.float32, torch.float64):
        return _fused(layer, call, cut)
    query, key, value = (t.reshape(1, -1, *t.shape[2:]) for t in (call.query, call.key, call.value))
    sinks = None if call.sinks is None else call.sinks.repeat(call.query.shape[0])
    one = dataclasses.replace(call, query=query, key=key, value=value, sinks=sinks)
    return attend_behind(dataclasses.replace(layer, room=None), one, cut).view(*call.query.shape[:3], -1)


def _fused(layer: PrunedLayer, call: AttentionCall, cut: int) -> torch.Tensor:
    """By PyTorch's fused kernel, over the kept rows followed by those of the tokens behind the cut."""
    assert layer.room
    policies, query_heads, queries, width = call.query.shape
    heads, kept, tail = layer.keys.shape[0], layer.keys.shape[1], call.key.shape[2]
    keys, values = (
        _followed(rows, kept, new.repeat_interleave(heads // (policies * new.shape[1]), 1).flatten(0, 1))
        for rows, new in zip(layer.room, (call.key, call.value), strict=True)
    )
    rows = call.query.reshape(heads, -1, queries, width)  # the query heads that share a row of keys
    unseen = None
    if queries > 1 or call.sliding_window or layer.hidden is not None:
        columns = torch.arange(cut, cut + tail, device=keys.device)
        before = layer.positions if call.sliding_window else layer.positions[:1]
        positions = torch.cat([before, columns.expand(len(before), -1)], 1)
        unseen = _out_of_sight(positions, columns[tail - queries :], call.sliding_window)
        if layer.hidden is not None:
            unseen = unseen | torch.nn.functional.pad(layer.hidden.view(heads, 1, kept), (0, tail))
    most = max(1, LOGITS // (rows.shape[1] * heads * (kept + tail)))
    parts = []
    for begin in range(0, queries, most):
        query = rows[:, :, begin : begin + most]
        seen = None if unseen is None else ~unseen[:, begin : begin + most].repeat(1, rows.shape[1], 1)[None]
        given = (query.flatten(1, 2)[None], keys[None], values[None], seen)
        out = torch.nn.functional.scaled_dot_product_attention(*given, scale=call.scaling)
        parts.append(out.view(*query.shape[:3], -1))
    return torch.cat(parts, 2).view(policies, query_heads, queries, -1)


def _followed(rows: torch.Tensor, count: int, new: torch.Tensor) -> torch.Tensor:
    """The first `count` rows and the new ones, [H, count + t, d]; in place while there is room."""
    if count + new.shape[1] > rows.shape[1]:
        return torch.cat([rows[:, :count], new], 1)
    rows[:, count : count + new.shape[1]] = new
    return rows[:, : count + new.shape[1]]


def _whole_attention(layer: PrunedLayer, call: AttentionCall, cut: int) -> torch.Tensor:
    """As the model attends to a cache that holds everything, with its kernel and the same mask."""
    key, value = torch.cat([layer.keys[None], call.key], 2), torch.cat([layer.values[None], call.value], 2)
    queries, tokens = call.query.shape[2], key.shape[2]
    mask = None
    if queries > 1 or 0 < call.sliding_window < tokens:
        columns = torch.arange(tokens, device=key.device)
        mask = ~_out_of_sight(columns, columns[tokens - queries :], call.sliding_window)[None, None]
    if call.softcap or call.sinks is not None:  # which the fused kernels do not have
        if mask is not None:
            mask = torch.zeros_like(mask, dtype=key.dtype).masked_fill_(~mask, torch.finfo(key.dtype).min)
        given = {"scaling": call.scaling, "softcap": call.softcap or None}
        out, _ = own_kernel(call.module)(call.module, call.query, key, value, mask, **given)
    else:
        out, _ = sdpa_attention_forward(call.module, call.query, key, value, mask, scaling=call.scaling)
    attended: torch.Tensor = out.transpose(1, 2)
    return attended


def _out_of_sight(positions: torch.Tensor, now: torch.Tensor, window: int) -> torch.Tensor:
    """Which tokens at `positions` [..., m] the queries at `now` [q] do not see; [..., q, m]."""
    before, at = positions[..., None, :], now[:, None]
    return (before > at) | (before <= at - window) if window else before > at


def _attend_rows(
    layer: PrunedLayer, call: AttentionCall, query: torch.Tensor, now: torch.Tensor, cut: int
) -> torch.Tensor:
    policies, query_heads, queries, width = query.shape
    heads, tail = layer.keys.shape[0], call.key.shape[2]
    wide = torch.promote_types(query.dtype, torch.float32)
    scaled = query.to(wide) * call.scaling
    shape = (heads, policies, query_heads // heads, queries)  # rows of the logits
    folded = scaled.view(policies, heads, -1, queries, width).transpose(0, 1).reshape(heads, -1, width)
    before = _times_keys(folded, layer.keys).view(*shape, -1)
    grouped = scaled.reshape(policies, call.key.shape[1], -1, width)
    behind = (grouped @ call.key.to(wide).transpose(2, 3)).view(policies, *shape[:1], *shape[2:], tail).transpose(0, 1)
    if call.softcap:
        before, behind = (torch.tanh(logits / call.softcap) * call.softcap for logits in (before, behind))
    if queries > 1 or call.sliding_window:
        columns = torch.arange(cut, cut + tail, device=now.device)
        behind = behind.masked_fill(_out_of_sight(columns, now, call.sliding_window), -torch.inf)
    if layer.hidden is not None:
        before += torch.zeros_like(layer.hidden, dtype=wide).masked_fill_(layer.hidden, -torch.inf)
    if call.sliding_window:
        unseen = _out_of_sight(layer.positions, now, call.sliding_window)
        before.masked_fill_(unseen if unseen.dim() == 2 else unseen[:, None, None], -torch.inf)
    parts = [before, behind]
    if call.sinks is not None:  # a token of value 0 and weight 1 that nothing evicts
        parts.append(call.sinks.to(wide).view(heads, 1, -1, 1, 1).expand(*shape, 1))
    weights = torch.softmax(torch.cat(parts, -1), -1)
    before, behind = weights[..., : before.shape[-1]], weights[..., before.shape[-1] :]
    below = None if layer.denominator is None else (before * layer.denominator).sum(-1, True) + behind.sum(-1, True)
    before = before if layer.numerator is None else before * layer.numerator
    own = behind[..., :tail].transpose(0, 1).reshape(policies, call.key.shape[1], -1, tail) @ call.value.to(wide)
    above = own.view(policies, heads, -1, queries, own.shape[-1]).transpose(0, 1)
    above = above + _times_values(before.flatten(1, 3), layer.values).view(above.shape)
    return (above if below is None else above / below).transpose(0, 1).reshape(policies, query_heads, queries, -1)


def _times_keys(rows: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """rows [H, r, d] times keys [H, m, d] transposed, in the type of the rows."""
    if keys.dtype == rows.dtype:
        return rows @ keys.transpose(1, 2)
    return torch.cat([rows @ part.to(rows.dtype).transpose(1, 2) for part in torch.split(keys, BLOCK_TOKENS, 1)], -1)


def _times_values(weights: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """weights [H, r, m] times values [H, m, dv], in the type of the weights."""
    if values.dtype == weights.dtype:
        return weights @ values
    out = torch.zeros((*weights.shape[:2], values.shape[2]), dtype=weights.dtype, device=weights.device)
    for begin in range(0, values.shape[1], BLOCK_TOKENS):
        part = slice(begin, begin + BLOCK_TOKENS)
        out += weights[..., part] @ values[:, part].to(weights.dtype)
    return out
