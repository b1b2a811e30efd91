"""What a model's rotary embedding did, read from the module itself after it ran.

The configuration alone is not enough: long-context variants choose their frequencies by the length of the prompt, YaRN
multiplies by a magnitude, Gemma 3 has two bases. The module's buffers hold what was really used.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from kvscope_capture.attention import rotary_of
from kvscope_capture.errors import CaptureError
from kvscope_capture.self_check import Rotation


@dataclasses.dataclass(frozen=True)
class RopeFacts:
    """`inv_freq` by layer type, each [rotary_dim / 2]; the key is "" when all layers share one.

    `attribute` is the root attribute `rope` of the capture, stored there as JSON.
    """

    inv_freq: dict[str, npt.NDArray[np.float32]]
    attribute: dict[str, Any]


def read_rope(decoder: Any, rotation: Rotation) -> RopeFacts | None:
    """Facts of the decoder's rotary embedding; None for a model that does not rotate.

    Errors: layer types with different magnitudes or rotary dims, which the format cannot hold.
    """
    rotary = rotary_of(decoder)
    if rotary is None:
        return None
    suffix = "_inv_freq"
    buffers = {name: b for name, b in rotary.named_buffers() if name.endswith("inv_freq") and "original" not in name}
    names = sorted("" if name == "inv_freq" else name.removesuffix(suffix) for name in buffers)
    frequencies = {n: buffers[n + suffix if n else "inv_freq"].float().cpu().numpy().copy() for n in names}
    scalings = {float(getattr(rotary, f"{n}_attention_scaling" if n else "attention_scaling", 1.0)) for n in names}
    if len(scalings) != 1 or len({f.size for f in frequencies.values()}) != 1:
        raise CaptureError(
            "layer types differ in rotary dim or attention scaling, which no capture holds",
            "rope",
            "This model cannot be captured",
        )
    parameters = getattr(decoder.config, "rope_parameters", None) or {}
    if names == [""]:
        main = parameters
    else:  # Beam states none for its full layers, ZAYA has other names for layer types
        main = next((parameters[name] for name in ("full_attention", *names) if parameters.get(name)), {})
    attribute = {
        "type": main.get("rope_type", "default"),
        "theta": float(main.get("rope_theta", 0.0)),
        "attention_scaling": scalings.pop(),
        "rotary_dim": 2 * next(iter(frequencies.values())).size,
        "layout": rotation.layout,
    }
    if rotation.begin:
        attribute["rotary_begin"] = rotation.begin
    for key in ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"):
        if main.get(key) is not None:
            attribute[key] = main[key]
    if names != [""]:
        attribute["layer_types"] = {name: parameters.get(name) for name in names}
    return RopeFacts(frequencies, attribute)
