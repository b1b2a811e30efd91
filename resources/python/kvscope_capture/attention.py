"""Looks at attention from inside the model: q, k and v exactly as the attention function receives them.

Hooks on `q_proj` or `k_proj` would be wrong for models that normalise queries and keys afterwards (Qwen3, Gemma 3)
or that project all three at once (Phi-3), and would miss RoPE. Transformers calls a registered attention function
after all of that; ours writes down its arguments and hands them to the usual kernel. The mask function is registered
with it: without one, Transformers drops causality silently.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, eager_mask, sdpa_mask
from transformers.modeling_outputs import BaseModelOutputWithPast

from kvscope_capture.errors import CaptureError

NAME = "kvscope_capture"
OWN = "kvscope_own"
BLOCK_ROWS = 512
RECURRENT = ("linear_attention", "mamba", "recurrent", "conv")  # kinds of layers with a state in place of keys
FEED_FORWARD = ("mlp", "moe")  # kinds of layers with neither state nor keys (Nemotron-H)
QUERY_NORMS = ("q_norm", "q_layernorm", "query_layernorm", "qk_norm")  # the norms in an attention module
HARMLESS = ("position_ids", "cache_position", "s_aux")  # tensors that attention may be given beside q, k, v and mask


@dataclasses.dataclass
class Running:
    """The decoder layer that is running, and the queries and keys that its rotation (RoPE) was last given, if any."""

    layer: int
    unrotated: tuple[torch.Tensor, torch.Tensor] | None = None


@dataclasses.dataclass(frozen=True)
class AttentionCall:
    """One call of attention. `query` [Hq, n, d], `key` [Hkv, n, d], `value` [Hkv, n, dv]; unscaled.

    `sliding_window` 0: all earlier tokens; w: token i sees i - w < j <= i. `softcap` 0: none.
    `sinks` [Hq]: logits of a further term of each head's softmax denominator, None for models without.
    `unrotated`: the arguments of the rotation (RoPE), None for a layer that does not rotate.
    """

    module: torch.nn.Module
    layer: int
    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    scaling: float
    sliding_window: int
    softcap: float
    sinks: torch.Tensor | None
    unrotated: tuple[torch.Tensor, torch.Tensor] | None

    @classmethod
    def of(
        cls, module: Any, query: Any, key: Any, value: Any, running: Running | None, scaling: Any, kwargs: Any
    ) -> AttentionCall:
        """From the arguments of an attention function; tensors as they are given, with a batch axis or without.

        Without `running`, the layer number is the module's own, and `unrotated` is None.
        """
        return cls(
            module=module,
            layer=running.layer if running else int(module.layer_idx),
            query=query,
            key=key,
            value=value,
            scaling=resolve_scaling(module, scaling, query.shape[-1]),
            sliding_window=int(kwargs.get("sliding_window") or 0),
            softcap=float(kwargs.get("softcap") or 0.0),
            sinks=None if kwargs.get("s_aux") is None else kwargs["s_aux"].reshape(-1),
            unrotated=running.unrotated if running else None,
        )

    def in_double(self) -> AttentionCall:
        """The same call in float64, for a comparison."""
        wide = {name: getattr(self, name).double() for name in ("query", "key", "value")}
        return dataclasses.replace(self, sinks=None if self.sinks is None else self.sinks.double(), **wide)


def decoder_of(model: Any) -> Any:
    """The module with embedding, layers and final norm; ModernBERT's `get_decoder()` gives its output embedding."""
    decoder = model.get_decoder()
    return decoder if hasattr(decoder, "config") else model.base_model


def layers_of(model: Any) -> torch.nn.ModuleList:
    """The decoder layers; GPT-2 calls them `h`. Errors (CaptureError): they have another name (MPT, BERT)."""
    decoder = decoder_of(model)
    for name in ("layers", "h"):
        layers: torch.nn.ModuleList | None = getattr(decoder, name, None)
        if layers is not None:
            return layers
    raise CaptureError(
        f"{type(decoder).__name__} has no layers where they are looked for (layers, h)",
        str(decoder.config.model_type),
        "This architecture cannot be captured",
    )


def rotary_of(decoder: Any) -> Any:
    """The module of the rotary embedding, None for a decoder that has none.

    LFM2-MoE calls it `pos_emb`, RecurrentGemma has one in each attention.
    """
    of_kind = (module for module in decoder.modules() if "RotaryEmbedding" in type(module).__name__)
    return getattr(decoder, "rotary_emb", None) or next(of_kind, None)


def attention_of(layer: torch.nn.Module) -> Any:
    """The attention module of a decoder layer; GPT-2 calls it `attn`, GPT-NeoX `attention`."""
    return _first_of(layer, ("self_attn", "attn", "attention"))


def normalises_queries(attention: torch.nn.Module) -> bool:
    """Whether an attention module normalises queries and keys before it compares them."""
    return any(getattr(attention, name, None) is not None for name in QUERY_NORMS)


def projection_of(attention: torch.nn.Module) -> Any:
    """The output projection W_o of an attention module; Moshi wraps it."""
    projection = _first_of(attention, ("o_proj", "c_proj", "dense", "out_proj", "Wo"))
    return getattr(projection, "linear", projection)


def own_kernel(module: torch.nn.Module) -> Any:
    """The eager attention function of a module's own code. Errors (CaptureError): it has none (GPT-J, CodeGen)."""
    own = getattr(sys.modules[type(module).__module__], "eager_attention_forward", None)
    if own is None:
        raise CaptureError(
            f"{type(module).__name__} does not call attention by Transformers' interface",
            "model",
            "This architecture cannot be captured",
        )
    return own


def require_watchable(model: Any) -> None:
    """Errors (CaptureError): the attention of `model` cannot be watched, as far as this shows without running it."""
    layers_of(model)
    attending_layers(decoder_of(model).config)
    own_kernel(decoder_of(model))


def require_prunable(model: Any) -> None:
    """Errors (CaptureError): `model` would be wrong behind a cache that lacks tokens.

    Either it takes positions from the cache's length, or it carries a state, from which no token can be evicted.
    """
    decoder = decoder_of(model)
    kinds = layer_kinds(decoder.config)
    beside = [i for i, kind in enumerate(kinds) if any(name in kind for name in (*RECURRENT, "hybrid"))]
    # Some sizes of Granite 4 have no recurrent layer. Transformers 5.2 calls their layers "attention" and gives them a
    # kind of cache of their own.
    if getattr(model, "_is_stateful", False) and not all(kind.endswith("_attention") for kind in kinds):
        beside = beside or attending_layers(decoder.config)
    if beside:
        verb = "carry" if len(beside) > 1 else "carries"
        sentence = f"{named(beside)} {verb} a state beside keys and values, from which no token can be evicted"
    elif "position_ids" not in inspect.signature(decoder.forward).parameters:
        sentence = "the model takes a token's position from the length of its cache, which eviction shortens"
    else:
        return
    raise CaptureError(
        sentence,
        str(decoder.config.model_type),
        "Capture the prompt with kvscope-capture, and compare policies with kvscope measure",
    )


def _first_of(module: torch.nn.Module, names: tuple[str, ...]) -> Any:
    for name in names:
        if hasattr(module, name):
            return getattr(module, name)
    raise CaptureError(
        f"{type(module).__name__} has none of {', '.join(names)}", "model", "This architecture cannot be captured"
    )


class _DecoderResult(BaseModelOutputWithPast):  # type: ignore[misc]
    """The last hidden states; any other field that a model reads (router logits, cross attentions) is None."""

    def __getattr__(self, name: str) -> None:
        return None


def logits_of(model: Any, hidden: torch.Tensor) -> torch.Tensor:
    """Logits [n, vocabulary], float32, of last hidden states [n, hidden], by the model's own code.

    The decoder is made to return `hidden`, so that whatever the model does to its logits (cap, scale) is in them.
    """
    decoder = decoder_of(model)
    result = _DecoderResult(last_hidden_state=hidden[None])
    before = vars(decoder).get("forward")
    decoder.forward = lambda *args, **kwargs: result
    try:
        ids = torch.zeros((1, hidden.shape[0]), dtype=torch.int64, device=hidden.device)
        logits: torch.Tensor = model(input_ids=ids, use_cache=False).logits[0]
    finally:
        del decoder.forward
        if before is not None:
            decoder.forward = before
    return logits.float()


def layer_kinds(config: Any) -> list[str]:
    """What each layer is, in the configuration's own words; empty strings where it does not say."""
    kinds = getattr(config, "layer_types", None) or getattr(config, "layers_block_type", None)
    return list(map(str, kinds or [""] * layer_count(config)))


def named(layers: list[int]) -> str:
    """Ascending layer numbers as text: `layers 0-2, 5`."""
    runs: list[list[int]] = []
    for layer in layers:
        if runs and layer == runs[-1][-1] + 1:
            runs[-1].append(layer)
        else:
            runs.append([layer])
    parts = [f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]
    return f"layer{'s' * (len(layers) != 1)} {', '.join(parts) or 'none'}"


def layer_count(config: Any) -> int:
    """Number of decoder layers; where there is an encoder (Whisper, BART), `num_hidden_layers` counts its layers."""
    return int(getattr(config, "decoder_layers", None) or config.num_hidden_layers)


def attending_layers(config: Any) -> list[int]:
    """The layers that have keys and values: in hybrid models, those that are not recurrent or convolutions.

    Errors (CaptureError): no layer has them, or the model chooses the tokens that each query attends to (DeepSeek-V3.2,
    MiniMax-M3, Qwen4).
    """
    kinds = layer_kinds(config)
    attending = [i for i, kind in enumerate(kinds) if not any(name in kind for name in RECURRENT + FEED_FORWARD)]
    if not attending:
        raise CaptureError(
            f"layers of the kind {kinds[0]} have no keys and values",
            str(config.model_type),
            "This architecture cannot be captured",
        )
    chosen = [name for name in ("index_topk", "index_topk_blocks") if getattr(config, name, None)]
    if chosen := [*chosen, *(kind for kind in kinds if "indexed" in kind)]:
        raise CaptureError(
            f"the model attends to chosen tokens only ({chosen[0]}), and no capture holds which",
            str(config.model_type),
            "This architecture cannot be captured",
        )
    return attending


def head_sizes(config: Any) -> tuple[int, int, int, int]:
    """Query heads, KV heads, dimensions of a key and of a value, as attention sees them.

    Errors (CaptureError): a configuration that does not say them (Mamba), or not for all layers at once (Gemma 4).
    """
    try:
        if of_decoder := getattr(config, "decoder_attention_heads", None):  # the other names are the encoder's
            return of_decoder, of_decoder, config.hidden_size // of_decoder, config.hidden_size // of_decoder
        heads = config.num_attention_heads
        if getattr(config, "kv_lora_rank", None):  # MLA: keys and values are expanded to all heads
            return heads, heads, config.qk_nope_head_dim + config.qk_rope_head_dim, config.v_head_dim
        width = getattr(config, "head_dim", None) or config.hidden_size // heads
        return heads, getattr(config, "num_key_value_heads", None) or heads, width, width
    except Exception as error:  # whatever a configuration of another kind raises
        raise CaptureError(
            "the configuration does not state heads that all layers have",
            str(config.model_type),
            "This architecture cannot be captured",
        ) from error


def sliding_window_of(config: Any, layer: int) -> int:
    """The window of a layer as its configuration states it; 0: none."""
    kinds = getattr(config, "layer_types", None)
    slides = kinds[layer] in ("sliding_attention", "chunked_attention") if kinds else True
    window = getattr(config, "sliding_window", None) or getattr(config, "attention_chunk_size", None)
    return int(window) if window and slides else 0


def resolve_scaling(module: Any, scaling: float | None, head_dim: int) -> float:
    """The factor on q.k; 1/sqrt(d) where the model passes none.

    GPT-2 passes none in Transformers 5.2. Errors (CaptureError): its configuration asks for another factor.
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


def attention_rows(call: AttentionCall, rows: torch.Tensor) -> torch.Tensor:
    """softmax(cap tanh(s q.k / cap)) v with the causal (and sliding) mask and the sinks; [Hq, r, dv].

    Uses only the numbers of `call`, which a capture holds; its queries [Hq, r, d] are those of the tokens `rows`.
    """
    heads, width = call.query.shape[0], call.query.shape[2]
    columns = torch.arange(call.key.shape[1], device=call.key.device)
    folded = call.query.reshape(call.key.shape[0], -1, width)  # the query heads of a group are rows of its KV head
    logits = (folded @ call.key.transpose(1, 2)).view(heads, len(rows), -1) * call.scaling
    if call.softcap:
        logits = torch.tanh(logits / call.softcap) * call.softcap
    hidden = columns > rows[:, None]
    if call.sliding_window:
        hidden = hidden | (columns <= rows[:, None] - call.sliding_window)
    logits = logits.masked_fill(hidden, -torch.inf)
    if call.sinks is not None:
        logits = torch.cat([logits, call.sinks.to(logits)[:, None, None].expand(-1, len(rows), 1)], dim=-1)
    wide = torch.promote_types(logits.dtype, torch.float32)
    weights = torch.softmax(logits, dim=-1, dtype=wide)[..., : len(columns)].to(call.value.dtype)
    return (weights.reshape(*folded.shape[:2], -1) @ call.value).view(heads, len(rows), -1)


def blockwise_attention(call: AttentionCall) -> torch.Tensor:
    """`attention_rows` of all tokens, [Hq, n, dv], in blocks.

    The fused kernels have no soft cap and no sinks, and the plain one needs n x n logits for all heads at once.
    """
    rows = torch.split(torch.arange(call.query.shape[1], device=call.query.device), BLOCK_ROWS)
    queries = torch.split(call.query, BLOCK_ROWS, 1)
    blocks = [attention_rows(dataclasses.replace(call, query=q), at) for q, at in zip(queries, rows, strict=True)]
    return torch.cat(blocks, dim=1)


@contextlib.contextmanager
def _running_layer(model: Any) -> Iterator[Running]:
    """Records which layer is running (Zamba's share one attention module) and what `apply_rotary_...` is given."""
    layers, module = layers_of(model), sys.modules[type(decoder_of(model)).__module__]
    originals = {name: f for name, f in vars(module).items() if name.startswith("apply_") and "rot" in name}
    running = Running(0)

    def enter(layer: int) -> None:
        running.layer, running.unrotated = layer, None

    def watched(original: Any) -> Any:
        def rotate(q: torch.Tensor, k: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            if q.dim() != k.dim():  # (x, cos, sin)
                raise CaptureError(
                    f"{original.__name__} rotates queries and keys one by one, which is not followed here",
                    "RoPE",
                    "This architecture cannot be captured",
                )
            running.unrotated = (q[0], k[0])
            return original(q, k, *args, **kwargs)

        return rotate

    for name, original in originals.items():
        setattr(module, name, watched(original))
    hooks = [
        layer.register_forward_pre_hook(lambda *_, index=index: enter(index)) for index, layer in enumerate(layers)
    ]
    try:
        yield running
    finally:
        for name, original in originals.items():
            setattr(module, name, original)
        for hook in hooks:
            hook.remove()


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
def replaced_attention(
    model: Any, name: str, attend: Callable[..., Any], make_mask: Callable[..., Any] = lambda *_, **__: None
) -> Iterator[None]:
    """Runs the model with `attend`, registered under `name`; by default `attend` is given no mask."""
    AttentionInterface.register(name, attend)
    AttentionMaskInterface.register(name, make_mask)
    with attention_implementation(model, name):
        yield


@contextlib.contextmanager
def observed_attention(
    model: Any, observe: Callable[[AttentionCall], None], outcome: Callable[[AttentionCall, Any], None] | None = None
) -> Iterator[None]:
    """While open, `observe` receives the inputs of every attention layer of `model` (batch 1, whole prompt, no cache).

    `outcome` receives them again with the attention output [n, Hq, dv].
    """
    with _running_layer(model) as running:

        def attend(
            module: Any,
            query: Any,
            key: Any,
            value: Any,
            attention_mask: Any,
            scaling: Any = None,
            **kwargs: Any,
        ) -> tuple[torch.Tensor, None]:
            call = AttentionCall.of(module, query[0], key[0], value[0], running, scaling, kwargs)
            observe(call)
            if call.softcap or call.sinks is not None:
                out = blockwise_attention(call).transpose(0, 1)[None].contiguous()
            else:
                plain = {name: value for name, value in kwargs.items() if name not in ("softcap", "s_aux")}
                plain["is_causal"] = True  # counts where there is no mask; BigBird-Pegasus does not set it
                out, _ = sdpa_attention_forward(
                    module, query, key, value, attention_mask, scaling=call.scaling, **plain
                )
            if outcome:
                outcome(call, out[0])
            return out, None

        with replaced_attention(model, NAME, attend, sdpa_mask):
            yield


def _unlike(call: AttentionCall, mask: torch.Tensor | None, given: dict[str, Any]) -> str:
    """What an attention function is given beyond what `call` holds; "" where that is nothing."""
    more = [name for name, value in given.items() if isinstance(value, torch.Tensor) and name not in HARMLESS]
    if more:
        return f"attention is given {', '.join(more)}"
    at = torch.arange(call.key.shape[1], device=call.key.device)
    back = at[:, None] - at  # how far a key lies behind a query
    seen = (back >= 0) & (back < (call.sliding_window or len(at)))
    same = mask is None or bool(((mask == 0) == seen).all())
    return "" if same else "the mask is not the causal one with the window that attention is told"


@contextlib.contextmanager
def own_attention(model: Any, observe: Callable[[AttentionCall, torch.Tensor, str], None]) -> Iterator[set[int]]:
    """While open, the model runs its own eager attention; `observe` receives what its attention function returns.

    Its second argument is that output, [n, Hq, dv]; the third names an input that no capture holds, "" where there is
    none. None of this tool's attention or masks is used. The yielded set collects the layers whose output projection is
    given exactly that output; in the others a gate or a norm lies between (Qwen3-Next, BitNet).
    """
    with _running_layer(model) as running:
        own, plain = own_kernel(decoder_of(model)), set[int]()

        def attend(module: Any, query: Any, key: Any, value: Any, attention_mask: Any, **kwargs: Any) -> Any:
            call = AttentionCall.of(module, query[0], key[0], value[0], running, kwargs.get("scaling"), kwargs)
            result = own(module, query, key, value, attention_mask, **kwargs)
            observe(call, result[0][0], _unlike(call, attention_mask, kwargs))

            def projected(_module: Any, inputs: Any) -> None:
                handle.remove()
                if torch.equal(inputs[0].reshape(-1), result[0].reshape(-1)):
                    plain.add(call.layer)

            handle = projection_of(module).register_forward_pre_hook(projected)
            return result

        with replaced_attention(model, OWN, attend, eager_mask):
            yield plain
