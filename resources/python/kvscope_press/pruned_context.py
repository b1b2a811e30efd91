"""A context whose cache holds, in every layer and KV head, only what a selection kept.

The context runs through the model once, with the model's own attention; from each layer's keys and values the kept
rows are gathered as they pass. Heads may keep different numbers of tokens: short ones are padded, and the padding is
masked. Tokens behind the cut live in an ordinary Transformers cache of their own, so that its masks stay right even
where layers keep different numbers.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from transformers import DynamicCache

from kvscope_capture.attention import (
    AttentionCall,
    attending_layers,
    decoder_of,
    head_sizes,
    logits_of,
    observed_attention,
    replaced_attention,
    require_prunable,
    rotary_of,
)
from kvscope_capture.errors import CaptureError
from kvscope_capture.streaming import token_nll
from kvscope_press.attend_behind import PrunedLayer, attend_behind, head_weights, row_bytes
from kvscope_press.recorded_selection import HeadSelection, RecordedSelection, refuse_reassigned

NAME = "kvscope_press"
LONG = "original_max_position_embeddings"


def prune(call: AttentionCall, heads: list[HeadSelection | None]) -> PrunedLayer:
    """Gathers what `heads` [Hkv] keep; None keeps everything.

    Errors (ValueError): sets of query heads that are not those of the group.
    """
    tokens, group = call.key.shape[1], call.query.shape[0] // len(heads)
    if all(head is None or head.is_whole(tokens) for head in heads):
        return PrunedLayer.whole(call)
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
    return PrunedLayer(
        keys, values, rows, *head_weights(numerator[None], denominator[None], len(heads), device), stored
    )


@contextlib.contextmanager
def rotating_for(model: Any, tokens: int) -> Iterator[None]:
    """Every pass rotates as one over `tokens` tokens would: LongRoPE and dynamic RoPE depend on a pass's length."""
    rotary: Any = rotary_of(decoder_of(model))
    if not any(kind in str(getattr(rotary, "rope_type", "")) for kind in ("longrope", "dynamic")):
        yield
        return
    own = rotary.forward

    def rotate(x: Any, position_ids: Any, *args: Any, **kwargs: Any) -> Any:
        first = position_ids[:, :1]
        own(x, torch.zeros_like(first), *args, **kwargs)  # resets what longer passes have set
        angles = own(x, torch.cat([position_ids, torch.full_like(first, tokens - 1)], 1), *args, **kwargs)
        if isinstance(angles, torch.Tensor):  # DeepSeek-V2 has complex numbers
            return angles[:, :-1]
        cos, sin = angles
        return cos[:, :-1], sin[:, :-1]

    rotary.forward = rotate
    try:
        yield
    finally:
        del rotary.forward


def decode(model: Any, ids: list[int], begin: int, tokens: int, **kwargs: Any) -> torch.Tensor:
    """Last hidden states [len(ids), hidden] of tokens that stand from position `begin` on, in a text of `tokens`."""
    return decode_rows(model, [ids], begin, tokens, **kwargs)[0]


def decode_rows(model: Any, ids: list[list[int]], begin: int, tokens: int, **kwargs: Any) -> torch.Tensor:
    """Last hidden states [P, T, hidden] of P rows of T tokens, all at the positions from `begin` on."""
    given = torch.tensor(ids, device=model.device)
    positions = torch.arange(begin, begin + given.shape[1], device=model.device).expand(given.shape)
    with rotating_for(model, max(tokens, begin + given.shape[1])):
        hidden: torch.Tensor = decoder_of(model)(input_ids=given, position_ids=positions, **kwargs).last_hidden_state
    return hidden


def rotates_by_length(model: Any) -> bool:
    """Whether a longer pass rotates its tokens differently (dynamic RoPE): keys then depend on the pass's length."""
    return "dynamic" in str(getattr(rotary_of(decoder_of(model)), "rope_type", ""))


def longest_alike(model: Any) -> int:
    """The most tokens that a model with LongRoPE rotates by its short frequencies; 0 for other models."""
    rotary: Any = rotary_of(decoder_of(model))
    if "longrope" not in str(getattr(rotary, "rope_type", "")):
        return 0
    parameters = rotary.config.rope_parameters
    return int(next(p for p in (parameters, *parameters.values()) if isinstance(p, dict) and LONG in p)[LONG])


def require_rotated_alike(model: Any, tokens: int, begin: int, more: int) -> None:
    """Errors (CaptureError): with `more` tokens from `begin` on, LongRoPE would have rotated the context differently.

    The context was read as the beginning of a text of `tokens` tokens.
    """
    if tokens <= longest_alike(model) < begin + more:
        raise CaptureError(
            f"beyond {longest_alike(model)} tokens the model rotates all of them otherwise",
            f"token {begin}",
            "Ask for fewer tokens, or read a longer text",
        )


def without_queries(call: AttentionCall) -> AttentionCall:
    """The keys and values of a call, which is what a selection prunes."""
    return dataclasses.replace(call, query=call.query[:, :0].clone(), unrotated=None)


class ReadContext:
    """The tokens before a cut after one pass through the model, unpruned: what many selections are tried on."""

    def __init__(
        self,
        model: Any,
        ids: list[int],
        cut: int,
        keep: Callable[[AttentionCall], AttentionCall] = lambda call: call,
        outcome: Callable[[AttentionCall, Any], None] | None = None,
        losses: bool = False,
    ) -> None:
        """Runs ids[0:cut] through the model, rotated as all of `ids` are, and keeps of every layer what `keep` returns.

        `outcome` sees every layer's attention output too; `losses` gives `nll` [cut], the first NaN.
        """
        self.model, self.cut = model, cut
        self.calls: list[AttentionCall] = []
        with torch.no_grad(), observed_attention(model, lambda call: self.calls.append(keep(call)), outcome):
            hidden = decode(model, ids[:cut], 0, len(ids), use_cache=False)
            self.last_logits = logits_of(model, hidden[-1:])[0]
            self.nll = token_nll(model, hidden, torch.tensor(ids[:cut], device=hidden.device)) if losses else None


class CachedContext:
    """P caches of one context, whose tokens behind the cut advance together; policies share keys and values."""

    def __init__(
        self, model: Any, cut: int, tokens: int, layers: Mapping[int, PrunedLayer], last_logits: torch.Tensor
    ) -> None:
        """`layers` [P policies] of tokens 0 .. cut - 1; `last_logits` predict token `cut`, before pruning.

        The context was read as the beginning of a text of `tokens` tokens. Errors (CaptureError): `require_prunable`.
        """
        require_prunable(model)
        self.model, self.cut, self.tokens, self.last_logits = model, cut, tokens, last_logits
        self.watch: Callable[[AttentionCall], None] | None = None  # is given each layer's call, with a batch axis
        self._layers = layers
        self._tail = DynamicCache()

    def extend_rows(self, ids: list[list[int]]) -> torch.Tensor:
        """Last hidden states [P, T, hidden] of the next T tokens of every policy, which stay in the cache.

        Errors (CaptureError): so many tokens that LongRoPE would have rotated the context differently.
        """
        begin = self.cut + int(self._tail.get_seq_length())
        require_rotated_alike(self.model, self.tokens, begin, len(ids[0]))
        with torch.inference_mode(), self._attending():
            return decode_rows(self.model, ids, begin, self.tokens, past_key_values=self._tail, use_cache=True)

    def keep(self, count: int) -> None:
        """Drops all but the first `count` tokens behind the cut from the cache."""
        if count < self._tail.get_seq_length():
            layers, self._tail = self._tail.layers, DynamicCache()
            for index, layer in enumerate(layers if count else []):
                self._tail.update(layer.keys[:, :, :count], layer.values[:, :, :count], index)

    def extend(self, ids: list[int]) -> torch.Tensor:
        """Logits [len(ids), vocabulary] behind each of the next tokens of the first policy."""
        with torch.no_grad():
            return logits_of(self.model, self.extend_rows([ids])[0])

    @contextlib.contextmanager
    def _attending(self) -> Iterator[None]:
        """The model attends to the pruned rows and then to its own cache of the tokens behind the cut."""

        def attend(
            module: Any, query: Any, key: Any, value: Any, attention_mask: Any, scaling: Any = None, **kwargs: Any
        ) -> tuple[torch.Tensor, None]:
            call = AttentionCall.of(module, query, key, value, None, scaling, kwargs)
            if self.watch:
                self.watch(call)
            out = attend_behind(self._layers[call.layer], call, self.cut)
            return out.transpose(1, 2).to(query.dtype).contiguous(), None

        with replaced_attention(self.model, NAME, attend):  # attend_behind masks by positions
            yield


class PrunedContext(CachedContext):
    """The tokens before the cut, pruned. Feed what follows with `extend`; `fork` starts again behind the cut."""

    def __init__(
        self, model: Any, ids: list[int], selection: RecordedSelection, read: ReadContext | None = None
    ) -> None:
        """Runs ids[0:cut] through the model, or takes what `read` has. Heads not in the selection keep everything.

        Errors (CaptureError): a cut outside `ids`, a layer or head that the model does not have, a policy that
        re-assigns positions.
        """
        refuse_reassigned(selection)
        if not 0 < selection.cut <= len(ids):
            raise CaptureError(f"the cut {selection.cut} lies outside {len(ids)} tokens", selection.path or "cut")
        if read and read.cut != selection.cut:
            raise ValueError(f"the context was read up to {read.cut}, the selection's cut is {selection.cut}")
        layers: dict[int, PrunedLayer] = {}
        unused = set(selection.heads)

        def observe(call: AttentionCall) -> None:
            names = [(call.layer, head) for head in range(call.key.shape[0])]
            unused.difference_update(names)
            layers[call.layer] = prune(call, [selection.heads.get(name) for name in names])

        if read:
            for call in read.calls:
                observe(call)
        else:
            with torch.no_grad(), observed_attention(model, observe):
                hidden = decode(model, ids[: selection.cut], 0, len(ids), use_cache=False)
                last_logits = logits_of(model, hidden[-1:])[0]
        super().__init__(model, selection.cut, len(ids), layers, read.last_logits if read else last_logits)
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
        return sum(x.stored * row_bytes(x.keys, x.values) for x in self._layers.values())


def model_heads(model: Any) -> tuple[int, int]:
    """Layers that attend and KV heads of the model."""
    config = decoder_of(model).config
    return len(attending_layers(config)), head_sizes(config)[1]
