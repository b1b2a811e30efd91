"""What every attention layer hands to a press for one prompt, and what a press keeps of it."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers import DynamicCache

from kvscope_capture.attention import (
    AttentionCall,
    attention_of,
    decoder_of,
    layers_of,
    observed_attention,
    require_prunable,
    require_watchable,
    rotary_of,
)
from kvscope_capture.errors import CaptureError

Numbers = npt.NDArray[np.float64]
INSTEAD = "Capture the prompt with kvscope-capture, and compare policies with kvscope measure"
ROTARY = ("position_embeddings", "rotary_emb", "NoneType")  # words in the errors of presses that find no RoPE


@dataclasses.dataclass(frozen=True)
class LayerInput:
    """The arguments of a press's `compress` in one layer, batch 1, and what attention saw there."""

    module: Any
    hidden: torch.Tensor
    keys: torch.Tensor
    values: torch.Tensor
    attentions: torch.Tensor | None
    kwargs: dict[str, Any]
    call: AttentionCall
    decoder: Any


@dataclasses.dataclass(frozen=True)
class Choice:
    """What is kept in one layer: ascending tokens of every KV head, and scores [Hkv, n] where there are any."""

    kept: list[list[int]]
    scores: Numbers | None


def read_layers(model: Any, ids: Sequence[int], eager: bool = False) -> list[LayerInput]:
    """One pass over the prompt with nothing evicted. `eager` gives presses the attention weights.

    Errors (CaptureError): those of `require_prunable` and `require_watchable`; attention modules that are not where
    presses look for them, or that are not given their hidden states by name; a cache that holds latents (MLA).
    """
    require_prunable(model)
    require_watchable(model)
    modules = _attention_modules(model)
    calls: list[AttentionCall] = []
    with torch.no_grad(), observed_attention(model, lambda call: calls.append(_detached(call))):
        decoder_of(model)(input_ids=_row(model, ids), use_cache=False)
    seen: list[dict[str, Any]] = []
    cache = DynamicCache()

    def note(module: Any, _: Any, kwargs: dict[str, Any], output: Any) -> None:
        if "hidden_states" not in kwargs:  # Whisper
            raise CaptureError(
                f"{type(module).__name__} is not given its hidden states by name, where presses look for them",
                str(decoder_of(model).config.model_type),
                INSTEAD,
            )
        layer = cache.layers[int(module.layer_idx)]
        weights = output[1] if eager else None
        given = {"hidden": kwargs["hidden_states"], "keys": layer.keys, "values": layer.values, "attentions": weights}
        seen.append(given | {"module": module, "kwargs": kwargs})

    eager_only = any(call.softcap or call.sinks is not None for call in calls)  # what sdpa cannot do
    with torch.no_grad(), attention(model, "eager" if eager or eager_only else "sdpa"), _hooks(model, modules, note):
        decoder_of(model)(input_ids=_row(model, ids), past_key_values=cache, use_cache=True)
    decoder = decoder_of(model)
    for row, call in zip(seen, calls, strict=True):
        if row["keys"].shape[1::2] != call.key.shape[::2]:
            (_, heads, _, cached), width = row["keys"].shape, call.key.shape[2]
            raise CaptureError(
                f"the cache of layer {call.layer} holds {heads} x {cached} numbers a token, from which attention makes "
                f"the keys of {call.key.shape[0]} heads of width {width} (MLA): a press is given no keys",
                str(decoder.config.model_type),
                INSTEAD,
            )
    return [LayerInput(call=call, decoder=decoder, **row) for row, call in zip(seen, calls, strict=True)]


def _attention_modules(model: Any) -> list[Any]:
    layers = layers_of(model)
    try:
        return [attention_of(layer) for layer in layers]
    except CaptureError as error:  # CTRL
        kind = type(layers[0]).__name__
        raise CaptureError(
            f"{kind} has no attention module where presses look for it (self_attn, attn, attention)",
            str(decoder_of(model).config.model_type),
            INSTEAD,
        ) from error


def _row(model: Any, ids: Sequence[int]) -> torch.Tensor:
    return torch.tensor([list(ids)], device=model.device)


def _detached(call: AttentionCall) -> AttentionCall:
    unrotated = None if call.unrotated is None else (call.unrotated[0].clone(), call.unrotated[1].clone())
    return dataclasses.replace(call, query=call.query.clone(), unrotated=unrotated)


@contextlib.contextmanager
def attention(model: Any, implementation: str) -> Iterator[None]:
    """Runs the model under one of Transformers' own implementations of attention."""
    before = model.config._attn_implementation
    model.set_attn_implementation(implementation)
    try:
        yield
    finally:
        model.set_attn_implementation(before)


@contextlib.contextmanager
def _hooks(model: Any, modules: list[Any], note: Any) -> Iterator[None]:
    rotary = rotary_of(decoder_of(model))
    with contextlib.ExitStack() as stack:
        for module in modules:
            if rotary is not None:
                module.rotary_emb = rotary  # as kvpress does
            stack.callback(module.register_forward_hook(note, with_kwargs=True).remove)
        yield


def choice_of(press: Any, layer: LayerInput, keys: torch.Tensor | None = None) -> Choice:
    """What the press keeps of one layer; `keys` replace the layer's own where they are given.

    Tokens that the press masks (`masked_key_indices`) are not kept. Errors (CaptureError): it stops, or changes keys.
    """
    given, scores = layer.keys if keys is None else keys, []
    score = getattr(press, "score", None)

    def listen(*args: Any, **kwargs: Any) -> Any:
        scores.append(score(*args, **kwargs))  # type: ignore[misc]
        return scores[-1]

    if score is not None:
        press.score = listen
    layer.module.masked_key_indices = None
    try:
        with torch.no_grad():
            kept, _ = press.compress(
                layer.module, layer.hidden, given.clone(), layer.values.clone(), layer.attentions, layer.kwargs
            )
        masked = layer.module.masked_key_indices
    except Exception as error:  # other people's code may stop with anything
        sentence = (str(error).splitlines() or [""])[0]
        place = f"layer {layer.call.layer}"
        stopped = f"the press stopped ({type(error).__name__}: {sentence})"
        if layer.kwargs.get("position_embeddings") is None and any(word in sentence for word in ROTARY):
            raise CaptureError(
                f"{stopped}: it looks for a rotary embedding, and this model hands its attention none",
                place,
                "Check this press on a model that does, like Llama, or here one that rotates nothing",
            ) from error
        raise CaptureError(stopped, place) from error
    finally:
        layer.module.masked_key_indices = None
        if score is not None:
            del press.score
    rows = [_places(kept[0, head], given[0, head], layer.call.layer) for head in range(given.shape[1])]
    if masked is not None:
        for head, token in zip(masked[1].tolist(), masked[2].tolist(), strict=True):
            rows[head].remove(token)
    table = scores[-1][0].double().cpu().numpy() if scores and scores[-1].shape[-1] == given.shape[2] else None
    return Choice(rows, table)


def _places(kept: torch.Tensor, keys: torch.Tensor, layer: int) -> list[int]:
    """Which rows of `keys` [n, d] the rows of `kept` [m, d] are, ascending; equal rows count from the first."""
    free: dict[bytes, list[int]] = {}
    for index, row in enumerate(_bytes(keys)):
        free.setdefault(row, []).append(index)
    found = []
    for row in _bytes(kept):
        if not free.get(row):
            raise CaptureError(
                "the press returns keys that are not the cache's", f"layer {layer}", "Keep keys as they are"
            )
        found.append(free[row].pop(0))
    return sorted(found)


def _bytes(rows: torch.Tensor) -> list[bytes]:
    bits = rows.contiguous().cpu().view(torch.uint8).reshape(rows.shape[0], -1).numpy()
    return [row.tobytes() for row in bits]
