"""A context whose cache holds, in every layer and KV head, only what a selection kept.

The context runs through the model once, with the model's own attention; from each layer's keys and values the kept
rows are gathered as they pass. Heads may keep different numbers of tokens: short ones are padded, and the padding is
masked. Tokens behind the cut live in an ordinary Transformers cache of their own, so that its masks stay right even
where layers keep different numbers.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

import torch
from transformers import AttentionInterface, DynamicCache
from transformers.masking_utils import AttentionMaskInterface

from kvscope_capture.attention import (
    AttentionCall,
    attention_implementation,
    decoder_of,
    layers_of,
    logits_of,
    observed_attention,
)
from kvscope_capture.errors import CaptureError
from kvscope_press.recorded_selection import HeadSelection, RecordedSelection

NAME = "kvscope_press"


@dataclasses.dataclass(frozen=True)
class PrunedLayer:
    """Kept rows of one layer, heads padded to the longest: keys [H, m, d], values [H, m, dv], the rest [H, m].

    H is Hkv, or Hq where query heads keep sets of their own. `numerator` and `denominator` are 0 for padding.
    `stored` rows are what the heads keep, padding and repeated sets not counted.
    """

    keys: torch.Tensor
    values: torch.Tensor
    positions: torch.Tensor
    numerator: torch.Tensor
    denominator: torch.Tensor
    stored: int

    def shares_one_set(self) -> bool:
        """Both sums run over the same tokens: then the weights are a logit bias and a value scale."""
        return bool(((self.numerator > 0) == (self.denominator > 0)).all())


def prune(call: AttentionCall, heads: list[HeadSelection | None]) -> PrunedLayer:
    """Gathers what `heads` [Hkv] keep; None keeps everything.

    Errors (ValueError): sets of query heads that are not those of the group.
    """
    tokens, group = call.key.shape[1], call.query.shape[0] // len(heads)
    stored = sum(tokens if head is None else head.stored() for head in heads)
    sources = list(range(len(heads)))
    if any(head and head.query_heads for head in heads):
        sources = [query_head // group for query_head in range(call.query.shape[0])]
        for kv, head in enumerate(heads):
            if head and head.query_heads and sorted(head.query_heads) != list(range(kv * group, (kv + 1) * group)):
                raise ValueError(f"sets of query heads {sorted(head.query_heads)} are not those of KV head {kv}")
        every = [heads[kv] for kv in sources]
        heads = [head and head.of_query_head(query_head) for query_head, head in enumerate(every)]
    longest = max(tokens if head is None else head.kept.size for head in heads)
    size = (len(heads), longest)
    rows = torch.zeros(size, dtype=torch.int64)
    numerator, denominator = torch.zeros(size), torch.zeros(size)
    for index, head in enumerate(heads):
        count = tokens if head is None else head.kept.size
        rows[index, :count] = torch.arange(tokens) if head is None else torch.from_numpy(head.kept)
        numerator[index, :count] = 1.0 if head is None else torch.from_numpy(head.numerator)
        denominator[index, :count] = 1.0 if head is None else torch.from_numpy(head.denominator)
    device = call.key.device
    rows = rows.to(device)
    keys, values = (torch.take_along_dim(t[sources], rows[..., None], dim=1) for t in (call.key, call.value))
    return PrunedLayer(keys, values, rows, numerator.to(device), denominator.to(device), stored)


def weighted_attention(
    logits: torch.Tensor, values: torch.Tensor, numerator: torch.Tensor, denominator: torch.Tensor, one_set: bool
) -> torch.Tensor:
    """sum num e^l v / sum den e^l, [H, q, dv], from logits [H, q, m] (-inf: hidden), values [H, m, dv], weights [H, m].

    With one set: softmax(l + log den) (num / den) v, which any attention kernel can do; else both sums explicitly.
    Where numerator and denominator are different samples the estimator is not a mean of values (BalanceKV, SubGen).
    """
    if one_set:
        bias = torch.log(denominator)
        scale = torch.where(denominator > 0, numerator / denominator, 0.0)
        return torch.softmax(logits + bias[:, None], dim=-1) @ (scale[..., None] * values)
    taken = (numerator + denominator > 0)[:, None]
    logits = logits.masked_fill(~taken, -torch.inf)
    weights = torch.exp(logits - logits.amax(-1, keepdim=True))
    above = (weights * numerator[:, None]) @ values
    return above / (weights * denominator[:, None]).sum(-1, keepdim=True)


def decode(model: Any, ids: list[int], begin: int, **kwargs: Any) -> torch.Tensor:
    """Last hidden states [len(ids), hidden] of tokens that stand from position `begin` on."""
    positions = torch.arange(begin, begin + len(ids), device=model.device)[None]
    out = decoder_of(model)(input_ids=torch.tensor([ids], device=model.device), position_ids=positions, **kwargs)
    hidden: torch.Tensor = out.last_hidden_state[0]
    return hidden


class ReadContext:
    """The tokens before a cut after one pass through the model, unpruned: what many selections are tried on."""

    def __init__(self, model: Any, ids: list[int], cut: int, queries: bool = True) -> None:
        """Runs ids[0:cut] through the model; keeps every layer's keys and values, and with `queries` those too."""
        self.model, self.cut = model, cut
        self.calls: list[AttentionCall] = []

        def keep(call: AttentionCall) -> None:
            less = dataclasses.replace(call, query=call.query[:, :0].clone(), unrotated=None)
            self.calls.append(call if queries else less)

        with torch.no_grad(), observed_attention(model, keep):
            hidden = decode(model, ids[:cut], 0, use_cache=False)
            self.last_logits = logits_of(model, hidden[-1:])[0]


class PrunedContext:
    """The tokens before the cut, pruned. Feed what follows with `extend`; `fork` starts again behind the cut."""

    def __init__(
        self, model: Any, ids: list[int], selection: RecordedSelection, read: ReadContext | None = None
    ) -> None:
        """Runs ids[0:cut] through the model, or takes what `read` has. Heads not in the selection keep everything.

        Errors (CaptureError): a cut outside `ids`, a layer or head that the model does not have.
        """
        if not 0 < selection.cut <= len(ids):
            raise CaptureError(f"the cut {selection.cut} lies outside {len(ids)} tokens", selection.path or "cut")
        if read and read.cut != selection.cut:
            raise ValueError(f"the context was read up to {read.cut}, the selection's cut is {selection.cut}")
        self.model, self.cut = model, selection.cut
        self._layers: dict[int, PrunedLayer] = {}
        self._tail = DynamicCache()
        unused = set(selection.heads)

        def observe(call: AttentionCall) -> None:
            names = [(call.layer, head) for head in range(call.key.shape[0])]
            unused.difference_update(names)
            self._layers[call.layer] = prune(call, [selection.heads.get(name) for name in names])

        if read:
            for call in read.calls:
                observe(call)
            self.last_logits = read.last_logits
        else:
            with torch.no_grad(), observed_attention(model, observe):
                hidden = decode(model, ids[: self.cut], 0, use_cache=False)
                self.last_logits = logits_of(model, hidden[-1:])[0]
        if unused:
            layer, head = min(unused)
            raise CaptureError(f"the model has no KV head {head} in layer {layer}", selection.path)

    def fork(self) -> PrunedContext:
        """The same pruned context without anything behind the cut; tensors are shared."""
        other = object.__new__(PrunedContext)
        other.__dict__.update(self.__dict__)
        other._tail = DynamicCache()
        return other

    def bytes_kept(self) -> int:
        """Bytes of the kept keys and values, padding not counted."""
        return sum(x.stored * _row_bytes(x) for x in self._layers.values())

    def extend(self, ids: list[int]) -> torch.Tensor:
        """Logits [len(ids), vocabulary] behind each of the next tokens, which stay in the cache."""
        begin = self.cut + int(self._tail.get_seq_length())
        with torch.no_grad(), self._attending():
            hidden = decode(self.model, ids, begin, past_key_values=self._tail, use_cache=True)
            return logits_of(self.model, hidden)

    @contextlib.contextmanager
    def _attending(self) -> Iterator[None]:
        """The model attends to the pruned rows and then to its own cache of the tokens behind the cut."""

        def attend(
            module: Any, query: Any, key: Any, value: Any, attention_mask: Any, scaling: Any = None, **kwargs: Any
        ) -> tuple[torch.Tensor, None]:
            call = AttentionCall.of(module, query, key, value, None, scaling, kwargs)
            out = attend_behind(self._layers[call.layer], call, self.cut)
            return out.transpose(0, 1)[None].to(query.dtype).contiguous(), None

        AttentionInterface.register(NAME, attend)
        AttentionMaskInterface.register(NAME, lambda *args, **kwargs: None)  # attend_behind masks by positions
        with attention_implementation(self.model, NAME):
            yield


def attend_behind(layer: PrunedLayer, call: AttentionCall, cut: int) -> torch.Tensor:
    """Attention of the last q tokens to the pruned context and to the t tokens behind the cut; [Hq, q, dv], float32.

    `call.query` [Hq, q, d]; `call.key`, `call.value` [Hkv, t, ...] are the tokens cut .. cut + t - 1.
    """
    queries, tail = call.query.shape[1], call.key.shape[1]
    here = torch.arange(cut, cut + tail, device=call.key.device).expand(call.key.shape[0], tail)
    ones = torch.ones(here.shape, device=here.device)

    def whole(kept: torch.Tensor, behind: torch.Tensor) -> torch.Tensor:
        per_head = (t.repeat_interleave(call.query.shape[0] // t.shape[0], 0) for t in (kept, behind))
        return torch.cat(list(per_head), dim=1)

    keys, values = whole(layer.keys, call.key).float(), whole(layer.values, call.value).float()
    positions = whole(layer.positions, here)
    numerator, denominator = whole(layer.numerator, ones), whole(layer.denominator, ones)
    logits = call.query.float() @ keys.transpose(1, 2) * call.scaling
    if call.softcap:
        logits = torch.tanh(logits / call.softcap) * call.softcap
    now = torch.arange(cut + tail - queries, cut + tail, device=keys.device)[None, :, None]
    hidden = positions[:, None] > now
    if call.sliding_window:
        hidden = hidden | (positions[:, None] <= now - call.sliding_window)
    logits = logits.masked_fill(hidden, -torch.inf)
    if call.sinks is not None:  # a sink is a token of value 0 and weight 1 that nothing evicts
        sinks = call.sinks.to(logits)[:, None, None].expand(-1, queries, 1)
        logits, values = torch.cat([logits, sinks], -1), torch.nn.functional.pad(values, (0, 0, 0, 1))
        numerator, denominator = (torch.nn.functional.pad(w, (0, 1), value=1.0) for w in (numerator, denominator))
    return weighted_attention(logits, values, numerator, denominator, layer.shares_one_set())


def _row_bytes(layer: PrunedLayer) -> int:
    return layer.keys.element_size() * (layer.keys.shape[2] + layer.values.shape[2])


def model_heads(model: Any) -> tuple[int, int]:
    """Layers and KV heads of the model."""
    config = decoder_of(model).config
    return len(layers_of(model)), getattr(config, "num_key_value_heads", None) or config.num_attention_heads
