"""Scorer presses of the installed kvpress: their names and parameters, and the scores they give a prompt."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
from importlib.metadata import version
from typing import Any

import torch

from kvscope_capture.attention import decoder_of, head_sizes, require_prunable
from kvscope_capture.attention import named as named_layers
from kvscope_capture.errors import CaptureError

SAME_SCORES = {"RestoreKVPress": "KVzipPress"}  # appends its own tokens to the cache, scores like KVzipPress
NEED_WEIGHTS = ("ObservedAttentionPress",)  # attention weights, which only eager attention returns
STAND_IN_RATIO = 0.5  # some presses score only when something is to be removed


@dataclasses.dataclass(frozen=True)
class NamedPress:
    """A press as asked for: `SnapKVPress,window_size=16`."""

    name: str
    parameters: dict[str, str]
    press: Any

    def dataset(self) -> str:
        """Its name in a file of scores: `SnapKVPress-window_size-16`."""
        parts = [self.name, *(f"{field}-{value}" for field, value in self.parameters.items())]
        return "-".join(parts).replace("/", "_").replace(",", "_")


def _kvpress() -> Any:
    try:
        import kvpress
    except ImportError as error:
        raise CaptureError("kvpress cannot be imported", str(error), "pip install kvpress==0.5.5") from error
    return kvpress


def kvpress_version() -> str:
    """The version of the installed kvpress."""
    return version("kvpress")


def scorer_presses() -> dict[str, type]:
    """Classes of the installed kvpress that give every token of every KV head a score, by name."""
    kvpress = _kvpress()
    found = {}
    for name in sorted(kvpress.__all__):
        kind = getattr(kvpress, name)
        scores = inspect.isclass(kind) and (issubclass(kind, kvpress.ScorerPress) or hasattr(kind, "compress_post"))
        if scores and kind is not kvpress.ScorerPress and name not in SAME_SCORES:
            found[name] = kind
    return found


def fields_of(kind: type) -> list[str]:
    """Parameters that a press is made with."""
    return [name for name in inspect.signature(kind).parameters if not name.startswith("_")]


def described_presses() -> str:
    """One line for each scorer press with its parameters."""
    lines = [f"{name}({', '.join(fields_of(kind))})" for name, kind in scorer_presses().items()]
    return "\n".join([f"Scorer presses of kvpress {kvpress_version()}:", *lines])


def _value(text: str, known: dict[str, type]) -> Any:
    if text in known:
        return known[text]()
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def named_press(text: str) -> NamedPress:
    """`NAME[,parameter=value]...`; a value may be the name of another press, which is taken at its defaults.

    Errors (CaptureError): unknown press or parameter, a value that the press refuses, a score that depends on a ratio
    that is not given.
    """
    known = scorer_presses()
    name, *rest = text.split(",")
    if name in SAME_SCORES:
        raise CaptureError(f"{name} scores as {SAME_SCORES[name]} does", "--press", f"Name {SAME_SCORES[name]}")
    if name not in known:
        raise CaptureError(
            f"{name!r} is no scorer press of kvpress {kvpress_version()}", "--press", f"It has {', '.join(known)}"
        )
    given = dict(part.partition("=")[::2] for part in rest)
    fields = {*fields_of(known[name]), "compression_ratio"}  # presses that wrap another pass the ratio on
    wrong = [field for field in given if field not in fields]
    if wrong:
        raise CaptureError(f"{name} has no parameter {wrong[0]!r}", "--press", f"It has {', '.join(sorted(fields))}")
    try:
        values = {field: _value(value, known) for field, value in given.items()}
        ratio = values.pop("compression_ratio", None)
        if "compression_ratio" in fields_of(known[name]) and ratio is not None:
            values["compression_ratio"] = ratio  # whose range the press checks itself
        press: Any = known[name](**values)
        if ratio is not None:
            press.compression_ratio = ratio
    except Exception as error:  # a press may refuse its parameters with any exception
        raise CaptureError(f"{name} cannot be made ({_sentence(error)})", "--press") from error
    inner = getattr(press, "press", None)
    if inner is not None and not isinstance(inner, tuple(known.values())):
        raise CaptureError(f"{inner!r} is no scorer press", f"--press {name},press=...", f"It has {', '.join(known)}")
    if not getattr(press, "compression_ratio", 0):
        if _score_reads_ratio(press):
            remedy = f"Write {text},compression_ratio=0.75"
            raise CaptureError("its scores depend on the fraction removed", f"--press {name}", remedy)
        press.compression_ratio = STAND_IN_RATIO
    return NamedPress(name, given, press)


def _score_reads_ratio(press: Any) -> bool:
    score = getattr(type(press), "score", None)
    reads = score is not None and "compression_ratio" in inspect.getsource(score)
    return reads and getattr(press, "blending", None) is None


def _sentence(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0] or type(error).__name__


def require_pressable(model: Any) -> None:
    """Errors (CaptureError): those of `require_prunable`; no self_attn for kvpress. The model needs no weights."""
    require_prunable(model)
    layers = getattr(getattr(model, "model", None), "layers", None)
    lacking = [index for index, layer in enumerate(layers or []) if not hasattr(layer, "self_attn")]
    if layers is None or lacking:
        where = f"in {named_layers(lacking)}" if lacking else "in model.layers"
        raise CaptureError(
            f"kvpress finds no self_attn {where}",
            str(decoder_of(model).config.model_type),
            "Capture the prompt with kvscope-capture, and compare KVScope's own policies with kvscope measure",
        )


def attention_for(press: Any, config: Any) -> str:
    """The implementation of attention that a press runs under: kvpress's default, or eager where it must be."""
    inner = getattr(press, "press", press)
    weights = type(inner).__name__ in NEED_WEIGHTS or getattr(config, "attn_logit_softcapping", None)
    return "eager" if weights else "sdpa"


def _require_keys_cached(model: Any, layer: int, keys: torch.Tensor) -> None:
    """Errors (CaptureError): the cache's `keys` [1, heads, n, d] are latents (MLA), which attention expands."""
    config = decoder_of(model).config
    if getattr(config, "kv_lora_rank", None) and keys.shape[1] != head_sizes(config)[1]:
        raise CaptureError(
            f"the cache of layer {layer} holds latents (MLA), from which attention makes the keys of "
            f"{head_sizes(config)[1]} heads: a press is given no keys to score",
            str(config.model_type),
            "Compare KVScope's own policies with kvscope measure",
        )


def press_scores(model: Any, named: NamedPress, ids: list[int]) -> tuple[dict[int, torch.Tensor], Any]:
    """The press's own scores by layer, [Hkv, n] float32, and the model's whole cache of the prompt.

    Layers that the press skips are missing. Errors (CaptureError): whatever stops the press; a cache of latents (MLA).
    """
    from transformers import DynamicCache

    press, found, cache = named.press, {}, DynamicCache()

    def scored(module: Any, hidden: Any, keys: Any, values: Any, attentions: Any, kwargs: Any) -> Any:
        _require_keys_cached(model, int(module.layer_idx), keys)
        found[int(module.layer_idx)] = press.score(module, hidden, keys, values, attentions, kwargs)[0].float().cpu()
        return keys, values

    def after(whole: Any) -> None:
        finish(whole)
        for layer in range(len(press.score_val)):
            found[layer] = press.score_val[layer][0].detach().float().cpu()
        for block in whole.model.layers:  # where kvpress stores what is evicted
            block.self_attn.masked_key_indices = None

    if hasattr(press, "compress_post"):
        finish, press.compress_post = press.compress_post, after
    else:
        press.compress = scored
    before = model.config._attn_implementation
    try:
        model.set_attn_implementation(attention_for(press, model.config))
        with torch.no_grad(), press(model):
            model.model(input_ids=torch.tensor([ids], device=model.device), past_key_values=cache)
    except CaptureError:
        raise
    except Exception as error:  # other people's code may stop with anything
        raise CaptureError(f"{named.name} stopped ({type(error).__name__}: {_sentence(error)})", "--press") from error
    finally:
        model.set_attn_implementation(before)
    return found, cache


def parameters_json(named: NamedPress) -> str:
    """Every parameter that the press ran with, as JSON."""
    press = named.press
    kept = {name: getattr(press, name) for name in fields_of(type(press)) if hasattr(press, name)}
    kept = {name: type(value).__name__ if name == "press" else value for name, value in kept.items()}
    if not _score_reads_ratio(press):
        kept.pop("compression_ratio", None)
    return json.dumps(kept, default=str, sort_keys=True)
