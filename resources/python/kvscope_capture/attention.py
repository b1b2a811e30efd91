"""Looks at attention from inside the model: q, k and v exactly as the attention function receives them.

Hooks on `q_proj` or `k_proj` would be wrong for models that normalise queries and keys afterwards (Qwen3, Gemma 3)
or that project all three at once (Phi-3), and would miss RoPE. Transformers calls a registered attention function
after all of that; ours writes down its arguments and hands them to the usual kernel. The mask function is registered
with it: without one, Transformers drops causality silently.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

from kvscope_capture.errors import CaptureError

NAME = "kvscope_capture"
SOFTCAP_ROWS = 512


@dataclasses.dataclass(frozen=True)
class AttentionCall:
    """One call of attention. `query` [Hq, n, d], `key` [Hkv, n, d], `value` [Hkv, n, dv]; unscaled.

    `sliding_window` 0: all earlier tokens; w: token i sees i - w < j <= i. `softcap` 0: none.
    `unrotated`: query and key before RoPE, None for models without.
    """

    module: torch.nn.Module
    layer: int
    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    scaling: float
    sliding_window: int
    softcap: float
    unrotated: tuple[torch.Tensor, torch.Tensor] | None


def decoder_of(model: Any) -> Any:
    """The module that holds embedding, layers and final norm."""
    return model.get_decoder()


def layers_of(model: Any) -> torch.nn.ModuleList:
    """The decoder layers; GPT-2 calls them `h`."""
    decoder = decoder_of(model)
    layers = getattr(decoder, "layers", None)
    found: torch.nn.ModuleList = decoder.h if layers is None else layers
    return found


def attention_of(layer: torch.nn.Module) -> Any:
    """The attention module of a decoder layer; GPT-2 calls it `attn`."""
    return getattr(layer, "self_attn", None) or layer.attn


def resolve_scaling(module: Any, scaling: float | None, head_dim: int) -> float:
    """The factor on q.k; 1/sqrt(d) where the model passes none.

    GPT-2 of Transformers 5.2 passes none whatever its configuration says. Errors: that configuration says otherwise.
    """
    if scaling is not None:
        return float(scaling)
    config = module.config
    if getattr(config, "scale_attn_by_inverse_layer_idx", False) or not getattr(config, "scale_attn_weights", True):
        raise CaptureError(
            "this version of Transformers ignores the model's own attention scaling",
            f"layer {module.layer_idx}",
            "Use Transformers 5.23",
        )
    return float(head_dim**-0.5)


def softcapped_attention(call: AttentionCall) -> torch.Tensor:
    """softmax(cap tanh(s q.k / cap)) v with the causal (and sliding) mask, in blocks of rows; [Hq, n, dv].

    The fused kernels have no soft cap, and the plain one needs n x n logits for all heads at once.
    """
    heads, n, _ = call.query.shape
    group = heads // call.key.shape[0]
    key, value = call.key.repeat_interleave(group, 0), call.value.repeat_interleave(group, 0)
    out = torch.empty((heads, n, value.shape[2]), dtype=value.dtype, device=value.device)
    columns = torch.arange(n, device=key.device)
    for begin in range(0, n, SOFTCAP_ROWS):
        rows = columns[begin : begin + SOFTCAP_ROWS, None]
        logits = torch.matmul(call.query[:, begin : begin + SOFTCAP_ROWS], key.transpose(1, 2)) * call.scaling
        logits = torch.tanh(logits / call.softcap) * call.softcap
        hidden = columns > rows
        if call.sliding_window:
            hidden = hidden | (columns <= rows - call.sliding_window)
        weights = torch.softmax(logits.masked_fill(hidden, -torch.inf), dim=-1, dtype=torch.float32)
        out[:, begin : begin + SOFTCAP_ROWS] = torch.matmul(weights.to(value.dtype), value)
    return out


@contextlib.contextmanager
def _unrotated_inputs(model: Any) -> Iterator[dict[str, tuple[torch.Tensor, torch.Tensor]]]:
    """Keeps the arguments of the latest `apply_rotary_pos_emb` call under "latest"."""
    module = sys.modules[type(attention_of(layers_of(model)[0])).__module__]
    original = getattr(module, "apply_rotary_pos_emb", None)
    seen: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}
    if original is None:
        yield seen
        return

    def rotate(q: torch.Tensor, k: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        seen["latest"] = (q[0], k[0])
        return original(q, k, *args, **kwargs)

    module.apply_rotary_pos_emb = rotate  # type: ignore[attr-defined]
    try:
        yield seen
    finally:
        module.apply_rotary_pos_emb = original  # type: ignore[attr-defined]


@contextlib.contextmanager
def attention_implementation(model: Any, name: str) -> Iterator[None]:
    """Runs the model with another registered attention function and restores its own afterwards."""
    config = decoder_of(model).config
    before = config._attn_implementation
    config._attn_implementation = name
    try:
        yield
    finally:
        config._attn_implementation = before


@contextlib.contextmanager
def observed_attention(model: Any, observe: Callable[[AttentionCall], None]) -> Iterator[None]:
    """While open, every attention layer of `model` (batch 1, whole prompt, no cache) shows its inputs to `observe`."""
    with _unrotated_inputs(model) as unrotated:

        def attend(
            module: Any,
            query: Any,
            key: Any,
            value: Any,
            attention_mask: Any,
            scaling: Any = None,
            **kwargs: Any,
        ) -> tuple[torch.Tensor, None]:
            call = AttentionCall(
                module=module,
                layer=int(module.layer_idx),
                query=query[0],
                key=key[0],
                value=value[0],
                scaling=resolve_scaling(module, scaling, query.shape[-1]),
                sliding_window=int(kwargs.get("sliding_window") or 0),
                softcap=float(kwargs.get("softcap") or 0.0),
                unrotated=unrotated.pop("latest", None),
            )
            observe(call)
            if call.softcap:
                return softcapped_attention(call).transpose(0, 1)[None].contiguous(), None
            kwargs.pop("softcap", None)
            out, _ = sdpa_attention_forward(module, query, key, value, attention_mask, scaling=call.scaling, **kwargs)
            return out, None

        AttentionInterface.register(NAME, attend)
        AttentionMaskInterface.register(NAME, sdpa_mask)
        with attention_implementation(model, NAME):
            yield
