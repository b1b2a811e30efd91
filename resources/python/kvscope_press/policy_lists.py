"""The lists of a KVScope policy for the tensors that a press was given, computed by the program `kvscope`."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import subprocess
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from kvscope_capture.capture_file import CaptureFile, CaptureOptions, LayerRecord
from kvscope_capture.errors import CaptureError
from kvscope_capture.program import find_program
from kvscope_press.layer_inputs import Choice, LayerInput
from kvscope_press.recorded_selection import as_text

NAMES = {torch.bfloat16: "bfloat16", torch.float16: "float16"}


@dataclasses.dataclass(frozen=True)
class Tensors:
    """Of one layer: q [Hq, n, d], k and v [Hkv, n, d], k_pre or None."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    k_pre: torch.Tensor | None

    @classmethod
    def of(cls, layer: LayerInput) -> Tensors:
        """What attention saw, unchanged."""
        unrotated = layer.call.unrotated
        return cls(layer.call.query, layer.keys[0], layer.values[0], None if unrotated is None else unrotated[1])


def write_layers(path: pathlib.Path, ids: Sequence[int], layers: list[LayerInput], tensors: list[Tensors]) -> None:
    """A capture of the tensors, in their own type where it is a 16-bit one, else as float32."""
    dtype = NAMES.get(tensors[0].k.dtype, "float32")
    (hq, _, d), hkv, dv = tensors[0].q.shape, tensors[0].k.shape[0], tensors[0].v.shape[2]
    path.unlink(missing_ok=True)
    file = CaptureFile(path, CaptureOptions(dtype=dtype), "check")
    sizes = {"num_q_heads": hq, "num_kv_heads": hkv, "head_dim": d, "value_dim": dv, "num_layers": len(layers)}
    file.write_ids("kvscope-check-press", ids, sizes)
    for index, (layer, own) in enumerate(zip(layers, tensors, strict=True)):
        call = layer.call
        stored = {"q": own.q, "k": own.k, "v": own.v} | ({} if own.k_pre is None else {"k_pre": own.k_pre})
        if call.sinks is not None:
            stored["sinks"] = call.sinks
        attributes = {
            "scaling": call.scaling,
            "softcap": call.softcap,
            "sliding_window": call.sliding_window,
            "has_rope": int(own.k_pre is not None),
            "kv_of_q": np.arange(hq, dtype=np.int32) // (hq // hkv),
            "attn_type": "sliding_attention" if call.sliding_window else "full_attention",
        }
        file.write_layer(LayerRecord(index, stored, attributes))
    file.finish(lambda _: None)


@dataclasses.dataclass(frozen=True)
class PolicyLists:
    """One run of a policy on a capture, and the parameters that it ran with, as texts."""

    layers: list[Choice]
    parameters: dict[str, str]


def policy_lists(capture: pathlib.Path, spec: str) -> PolicyLists:
    """What `spec` keeps of the whole capture (cut none). Errors (CaptureError): the program's own sentence."""
    out = capture.with_suffix(".json")
    _program("evict", str(capture), "--policy", spec, "--cut", "none", "--scores", "--out", str(out))
    data = json.loads(out.read_text())
    parameters = {name: as_text(value) for name, value in data["parameters"].items()}
    layers: dict[int, list[dict[str, Any]]] = {}
    for head in data["heads"]:
        layers.setdefault(head["layer"], []).append(head)
    return PolicyLists([_choice(layers[index]) for index in sorted(layers)], parameters)


def _program(*words: str) -> str:
    """What `kvscope` prints. Errors (CaptureError): the program's own sentence."""
    done = subprocess.run([find_program(), *words], capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"kvscope ended with exit code {done.returncode}"]
        raise CaptureError(lines[-1].removeprefix("kvscope: "), "--policy")
    return done.stdout


def _choice(heads: list[dict[str, Any]]) -> Choice:
    scores = [head.get("scores") for head in heads]
    whole = all(row is not None and None not in row for row in scores)
    return Choice([head["kept"] for head in heads], np.asarray(scores, np.float64) if whole else None)


def policy_parameters(policy: str) -> list[dict[str, Any]]:
    """The parameter table of a policy, as `kvscope policies --json` prints it. Errors (CaptureError): as above."""
    cards = {card["id"]: card for card in json.loads(_program("policies", "--json"))}
    return list(cards[policy]["parameters"]) if policy in cards else []
