"""A model's attention as `kvscope convert --config FILE.json` reads it; `describe_command.py` is the command.

Transformers resolves the configuration (defaults, old names, patterns of layers) and runs the model's own code, without
weights; what its layers pass to attention is recorded. Nothing is downloaded but the configuration.
"""

from __future__ import annotations

from typing import Any

import transformers
from transformers import AutoConfig

from kvscope_capture.attention import attending_layers, layer_count, layers_of, named
from kvscope_capture.errors import CaptureError
from kvscope_capture.probe import POSITIONS, ProbedLayer, build_decoder, probe_layers
from kvscope_capture.rotation import LayerRotation, RotaryTable, depends_on_length, fit_rotation, rotary_tables

FORMAT, VERSION = "kvscope-described-model", 1


def describe(config: Any, model_id: str = "", prompt_tokens: int | None = None) -> dict[str, Any]:
    """The described model (`resources/schemas/described_model.schema.json`) of a resolved configuration.

    Errors (CaptureError): attention that a capture cannot hold, or that Transformers' own code does not show.
    """
    text = config.get_text_config(decoder=True)
    attending = attending_layers(text)
    if others := sorted(set(range(layer_count(text))) - set(attending)):
        raise CaptureError(
            f"there are no keys and values in {named(others)} of {layer_count(text)}",
            text.model_type,
            "Capture the prompt with kvscope-capture",
        )
    try:
        decoder = build_decoder(text)
        probed = probe_layers(decoder)
        of_run, depends = rotary_tables(decoder, POSITIONS), depends_on_length(decoder)
        tables = rotary_tables(decoder, prompt_tokens or POSITIONS)
    except CaptureError:
        raise
    except Exception as error:  # whatever a model's own code raises when it runs without weights
        raise CaptureError(
            f"the model's code cannot be run without weights ({type(error).__name__}: {_first_line(error)})",
            text.model_type,
            "Capture the prompt with kvscope-capture",
        ) from error
    if depends and prompt_tokens is None:
        raise CaptureError(
            "the rotation depends on the length of the prompt", "RoPE", "Give the length with --tokens N"
        )
    rotations = [_rotation(layer, index, of_run, _layer_type(text, index, layer)) for index, layer in enumerate(probed)]
    return {
        "format": FORMAT,
        "version": VERSION,
        "model_id": model_id,
        "model_type": text.model_type,
        "config_class": type(text).__name__,
        "transformers_version": transformers.__version__,
        "prompt_tokens": prompt_tokens if depends else None,
        "num_layers": len(layers_of(decoder)),
        **_heads(probed),
        "ropes": _ropes(text, tables, rotations),
        "layers": [
            {
                "attn_type": _layer_type(text, index, layer),
                "scaling": layer.scaling,
                "softcap": layer.softcap,
                "sliding_window": layer.sliding_window,
                "sinks": layer.sinks,
                "rope": rotation.table if rotation else None,
            }
            for index, (layer, rotation) in enumerate(zip(probed, rotations, strict=True))
        ],
    }


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or ["no message"])[0]


def _layer_type(config: Any, index: int, layer: ProbedLayer) -> str:
    types = getattr(config, "layer_types", None)
    return str(types[index]) if types else ("sliding" if layer.sliding_window else "full") + "_attention"


def _heads(probed: list[ProbedLayer]) -> dict[str, int]:
    names = ("num_q_heads", "num_kv_heads", "head_dim", "value_dim")
    sizes = {(layer.query.shape[0], layer.key.shape[0], layer.key.shape[2], layer.value_dim) for layer in probed}
    if len(sizes) != 1:
        raise CaptureError("layers differ in their heads, which no capture holds", ", ".join(names))
    return dict(zip(names, sizes.pop(), strict=True))


def _rotation(layer: ProbedLayer, index: int, tables: dict[str, RotaryTable], kind: str) -> LayerRotation | None:
    """The layer's rotation; the table of its own layer type is tried first. Errors: keys and queries differ in it."""
    own = {name: tables[name] for name in sorted(tables, key=lambda name: name != kind)}
    try:
        of_keys, of_queries = fit_rotation(layer.key, own), fit_rotation(layer.query, own)
    except CaptureError as error:
        raise CaptureError(error.sentence, f"layer {index}") from error
    if of_keys != of_queries:
        raise CaptureError("keys and queries are rotated differently", f"layer {index}")
    return of_keys


def _ropes(config: Any, tables: dict[str, RotaryTable], rotations: list[LayerRotation | None]) -> dict[str, Any]:
    parameters = getattr(config, "rope_parameters", None) or {}
    ropes: dict[str, Any] = {}
    for rotation in rotations:
        if rotation is None:
            continue
        table, own = tables[rotation.table], parameters.get(rotation.table, parameters)
        rope = {
            "type": own.get("rope_type", "default"),
            "theta": float(own.get("rope_theta", 0.0)),
            "attention_scaling": table.attention_scaling,
            "rotary_dim": 2 * len(table.inv_freq),
            "rotary_begin": rotation.form.begin,
            "layout": rotation.form.layout,
            "inv_freq": table.inv_freq.tolist(),
        }
        if ropes.setdefault(rotation.table, rope) != rope:
            raise CaptureError("layers rotate different components of a head", "RoPE")
    return ropes


def resolve_config(model: str, revision: str | None = None) -> Any:
    """The configuration of a folder, a config.json or a Hugging Face model. Errors: unknown or unreadable."""
    try:
        return AutoConfig.from_pretrained(model, revision=revision, trust_remote_code=False)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CaptureError(
            f"the configuration cannot be read ({_first_line(error)})",
            model,
            "Name a model folder, config.json or Hugging Face model",
        ) from error
