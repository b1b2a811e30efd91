"""Compares a capture with the model that it comes from: a capture must not hide what the format cannot hold.

Before anything is written, the first tokens run through the model's own code, attention and masks included, and three
things are compared with it. *attention*: softmax(cap(s q.k)) v computed from the captured tensors and attributes,
against what the model's attention function returns; an attention sink, a bias or a mask that the capture does not hold
shows here. A gate or a norm behind attention (Qwen3-Next) is no part of a capture; the check's note mentions it.
*rotation*: keys before RoPE, rotated by the stored frequencies and layout, against the keys. *loss*: the capture's
losses against those of the model's own logits. While the capture is made, attention and rotation are compared again, at
rows of the whole prompt and with the output that the model went on with, because a sliding window may be longer than
the first tokens. Tensors are compared as the model made them, before they are rounded to the stored type. The model's
output itself cannot be computed from the captured tensors: the loss is that of the same run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from kvscope_capture.attention import (
    AttentionCall,
    attending_layers,
    attention_rows,
    decoder_of,
    named,
    own_attention,
    rotary_of,
)
from kvscope_capture.errors import CaptureError

TOKENS = 512  # the first tokens, which run through the model's own code: its attention needs n x n numbers a head
ROWS = 16  # queries at which attention is compared in every layer
# In 32 bits, in 16 bits: relative to a head's largest number; the loss in nats a token. bf16 rounds to 8 bits.
TOLERANCES = {"attention": (1e-3, 5e-2), "rotation": (1e-3, 3e-2), "loss": (1e-3, 1e-1)}
NO_NUMBER = 1e9  # stands in the file for an infinite difference
SMALL_HEAD = 0.05  # differences are relative to at least this fraction of the layer's largest number


@dataclasses.dataclass(frozen=True)
class Rotation:
    """How the model rotates keys: the coordinates begin .. begin + 2 len(inv_freq) - 1, paired as `layout` says.

    `deinterleaved`: the model separates neighbouring coordinates before it rotates halves (DeepSeek).
    """

    layout: str = "half"
    begin: int = 0
    deinterleaved: bool = False

    def before(self, call: AttentionCall, which: int) -> torch.Tensor:
        """Queries (0) or keys (1) before the rotation as they are stored: [H, n, d], what is not rotated included."""
        assert call.unrotated is not None
        after = (call.query, call.key)[which]
        part = call.unrotated[which].expand(after.shape[0], -1, -1)
        if self.deinterleaved:
            part = part.reshape(*part.shape[:-1], -1, 2).transpose(-1, -2).flatten(-2)
        whole = after.clone()
        whole[..., self.begin : self.begin + part.shape[2]] = part
        return whole

    def rotated(self, before: torch.Tensor, positions: torch.Tensor, inv_freq: torch.Tensor, scale: float) -> Any:
        """`before` [H, r, d], rotated to `positions` [r]; angles in float32, sums in double."""
        angle = (positions[:, None].float() * inv_freq.float()).double()
        cos, sin, half = angle.cos() * scale, angle.sin() * scale, len(inv_freq)
        out = before.double()
        part = out[..., self.begin : self.begin + 2 * half].clone()
        first, second = (
            (slice(0, half), slice(half, None)) if self.layout == "half" else (slice(0, None, 2), slice(1, None, 2))
        )
        a, b = part[..., first].clone(), part[..., second].clone()
        part[..., first], part[..., second] = a * cos - b * sin, b * cos + a * sin
        out[..., self.begin : self.begin + 2 * half] = part
        return out


def relative_difference(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """Largest |found - wanted| of each head [H, ...] over the head's largest |wanted|; the largest of these."""
    difference = (found.double() - wanted.double()).abs().flatten(1).amax(1)
    size = wanted.double().abs().flatten(1).amax(1)
    ratio = difference / torch.maximum(size, SMALL_HEAD * size.max()).clamp_min(1e-30)
    return float(ratio.nan_to_num(torch.inf).max())


def spread_rows(n: int, device: Any) -> torch.Tensor:
    """Up to ROWS rows of n, the last one among them."""
    return torch.linspace(0, n - 1, min(n, ROWS), device=device).long()


def inverse_frequencies(decoder: Any, layer: int) -> tuple[torch.Tensor, float] | None:
    """Frequencies that the layer's rotation used last, and the factor on rotated rows; None where there are none."""
    rotary = rotary_of(decoder)
    kinds = getattr(decoder.config, "layer_types", None)
    for prefix in ([f"{kinds[layer]}_"] if kinds else []) + [""]:
        frequencies = getattr(rotary, f"{prefix}inv_freq", None)
        if frequencies is not None:
            return frequencies, float(getattr(rotary, f"{prefix}attention_scaling", 1.0))
    return None


def attention_difference(call: AttentionCall, output: torch.Tensor) -> float:
    """Relative difference of `output` [n, Hq, dv] or [n, Hq dv] from attention computed from the call's numbers."""
    rows = spread_rows(call.query.shape[1], call.query.device)
    found = attention_rows(dataclasses.replace(call, query=call.query[:, rows]).in_double(), rows)
    wanted = output[rows].reshape(len(rows), call.query.shape[0], -1).transpose(0, 1)
    return relative_difference(found, wanted) if found.shape == wanted.shape else float("inf")


def rotation_difference(call: AttentionCall, decoder: Any, rotation: Rotation, which: int = 1) -> float:
    """Relative difference of the call's keys (queries where `which` is 0) from those before RoPE, rotated."""
    facts = inverse_frequencies(decoder, call.layer)
    if facts is None or call.unrotated is None:
        return float("inf")
    inv_freq, scale = facts
    after = (call.query, call.key)[which]
    rows = spread_rows(after.shape[1], after.device)
    try:
        before = rotation.before(call, which)
        return relative_difference(rotation.rotated(before[:, rows], rows, inv_freq, scale), after[:, rows])
    except (RuntimeError, IndexError):  # shapes that no stored rotation fits
        return float("inf")


def find_rotation(call: AttentionCall, decoder: Any) -> Rotation:
    """The rotation that comes closest to the call's keys."""
    assert call.unrotated is not None
    last = max(0, call.key.shape[2] - call.unrotated[1].shape[2])
    candidates = [
        Rotation(layout, begin, apart)
        for begin in sorted({0, last})
        for layout, apart in (("half", False), ("interleaved", False), ("half", True))
    ]
    return min(candidates, key=lambda rotation: rotation_difference(call, decoder, rotation))


class SelfCheck:
    """The differences found so far, by check and layer."""

    def __init__(self, model: Any, ids: list[int]) -> None:
        """Runs the first tokens of `ids` through the model's own code.

        Errors (CaptureError): a model whose attention cannot be watched or is sparse, or whose layers differ in heads.
        """
        self.model, self.decoder = model, decoder_of(model)
        self.layers = attending_layers(self.decoder.config)
        self.rotation: Rotation | None = None
        self.rotates: set[int] = set()
        self.shapes: dict[str, int] = {}
        self.causes: dict[int, str] = {}  # by layer, what no capture holds of its attention, or ""
        self.differences: dict[str, dict[int, float]] = {"attention": {}, "rotation": {}}
        self.ids = torch.tensor([ids[:TOKENS]], device=model.device)
        self._loss: tuple[float | None, str] | None = None  # difference (None: not compared), note
        try:
            with torch.no_grad(), own_attention(model, self._observe_own) as plain:
                logits = model(input_ids=self.ids, use_cache=False).logits[0].float()
        except CaptureError:
            raise
        except Exception as error:  # whatever a model of unknown build raises
            what = (str(error).splitlines() or ["no message"])[0]
            raise CaptureError(
                f"the model's attention cannot be watched ({type(error).__name__}: {what})",
                "model",
                "This architecture cannot be captured",
            ) from error
        if (seen := sorted(self.causes)) != self.layers:
            raise CaptureError(
                f"attention was seen in {named(seen)}, keys and values should be in {named(self.layers)}",
                "model",
                "This architecture cannot be captured",
            )
        self.followed = sorted(set(self.layers) - plain)  # layers with a gate or a norm behind attention
        self.own_nll = torch.nn.functional.cross_entropy(logits[:-1], self.ids[0, 1:], reduction="none").cpu()
        self.own_frequencies = self._frequencies()

    def _observe_own(self, call: AttentionCall, output: torch.Tensor, cause: str) -> None:
        shapes = {
            "head_dim": call.key.shape[2],
            "value_dim": call.value.shape[2],
            "heads": call.query.shape[0],
            "kv_heads": call.key.shape[0],
        }
        if self.shapes not in ({}, shapes):
            raise CaptureError(
                "the layers differ in their heads, which no capture holds",
                f"layer {call.layer}",
                "This architecture cannot be captured",
            )
        if call.layer in self.causes:
            raise CaptureError("attends more than once", f"layer {call.layer}", "This architecture cannot be captured")
        self.shapes = shapes
        self.causes[call.layer] = cause
        if call.unrotated is not None:
            self.rotates.add(call.layer)
            if self.rotation is None:
                self.rotation = find_rotation(call, self.decoder)
        self.add(call, output)

    def add(self, call: AttentionCall, output: torch.Tensor) -> None:
        """Compares one layer of a run; `output` as in `attention_difference`."""
        self._note("attention", call.layer, attention_difference(call, output))
        if call.unrotated is not None and self.rotation is not None:
            self._note("rotation", call.layer, rotation_difference(call, self.decoder, self.rotation))

    def before_rotation(self, call: AttentionCall) -> dict[str, torch.Tensor]:
        """`q_pre` and `k_pre` of a layer that rotates; empty for others.

        Errors (CaptureError): queries that are not only rotated (Ministral 3 scales late ones). Where the keys
        failed the check, too (and `force` was given), the queries may differ as much.
        """
        if call.unrotated is None or self.rotation is None:
            return {}
        limit = max(self._tolerance("rotation"), self.differences["rotation"].get(call.layer, 0.0))
        if rotation_difference(call, self.decoder, self.rotation, 0) > limit:
            raise CaptureError(
                "the model changes queries behind their rotation, which those before it do not show",
                f"layer {call.layer}",
                "Leave out --pre-rope",
            )
        return {"q_pre": self.rotation.before(call, 0), "k_pre": self.rotation.before(call, 1)}

    def require_projection(self) -> None:
        """Errors (CaptureError): what attention returns is not what the output projection is given."""
        if self.followed:
            raise CaptureError(
                "a gate or a norm lies between attention and the output projection, which no capture holds",
                named(self.followed),
                "Leave out --o-proj: errors are then stated before it",
            )

    def of_layer(self, layer: int) -> dict[str, float]:
        """The differences of one layer, stored so that a resumed run can `take` them."""
        return {name: layers[layer] for name, layers in self.differences.items() if layer in layers}

    def take(self, layer: int, differences: Mapping[str, float]) -> None:
        """Takes what `of_layer` gave in an earlier run."""
        for name, difference in differences.items():
            self._note(name, layer, float(difference))

    def _note(self, name: str, layer: int, difference: float) -> None:
        layers = self.differences[name]
        layers[layer] = max(difference, layers.get(layer, 0.0))

    def _frequencies(self) -> list[torch.Tensor]:
        rotary = rotary_of(self.decoder)
        return [b.clone() for name, b in rotary.named_buffers() if "original" not in name] if rotary else []

    def compare_loss(self, nll: Any) -> None:
        """Compares `nll` [n] of the capture, the first NaN; not where the angles depend on the prompt's length.

        A loss that is not finite fails the check: fp16 overflows in models that were trained in bf16.
        """
        bad = np.flatnonzero(~np.isfinite(np.asarray(nll[1:], np.float32)))
        if bad.size:
            self._loss = (float("inf"), f"the loss of token {bad[0] + 1} is NaN or infinite")
            return
        now = self._frequencies()
        same = len(now) == len(self.own_frequencies) and all(map(torch.equal, now, self.own_frequencies))
        if not same and len(nll) > self.ids.shape[1]:
            self._loss = (None, "the rotation of the model depends on the length of the prompt")
            return
        found = torch.from_numpy(np.asarray(nll[1 : self.ids.shape[1]], np.float32))
        difference = float((found - self.own_nll).abs().mean())
        self._loss = (float("inf") if np.isnan(difference) else difference, "mean over the first tokens")

    def checks(self) -> list[dict[str, Any]]:
        """Each check as the file holds it."""
        rotates = "nothing rotates in this model"
        if rotary_of(self.decoder) is not None and not self.rotates:
            rotates = ""
            self.differences["rotation"] = {0: float("inf")}
        found = [self._check("attention", "relative"), self._check("rotation", "relative", rotates)]
        if self._loss is not None:
            difference, note = self._loss
            outcome = "not made" if difference is None else self._outcome("loss", difference)
            found.append(self._entry("loss", outcome, difference or 0.0, "nat per token", self.ids.shape[1] - 1, note))
        return found

    def failure(self) -> str:
        """One sentence about the first check that failed; empty when none did."""
        for check in self.checks():
            if check["outcome"] == "failed":
                size = f"differs by {check['difference']:.2g}, at most {check['tolerance']:.2g} {check['unit']}; "
                return (
                    f"the {check['name']} computed from the captured tensors is not the model's "
                    f"({size if check['difference'] < NO_NUMBER else ''}{check['note']})"
                )
        return ""

    def _tolerance(self, name: str) -> float:
        return TOLERANCES[name][0 if self.model.dtype in (torch.float32, torch.float64) else 1]

    def _outcome(self, name: str, difference: float) -> str:
        return "passed" if difference <= self._tolerance(name) else "failed"

    def _check(self, name: str, unit: str, absent: str = "") -> dict[str, Any]:
        layers = self.differences[name]
        if not layers:
            return self._entry(name, "not made", float("nan"), unit, 0, absent)
        worst = max(layers, key=lambda layer: layers[layer])
        found = "largest" if layers[worst] < float("inf") else "cannot be compared"
        outcome, note = self._outcome(name, layers[worst]), f"{found} in layer {worst}"
        if (name, outcome) == ("attention", "failed") and self.causes.get(worst):
            note += f": {self.causes[worst]}, which no capture holds"
        elif name == "attention" and self.followed:
            note += f"; compared before the gate or the norm that follows attention in {named(self.followed)}"
        return self._entry(name, outcome, layers[worst], unit, ROWS, note)

    def _entry(self, name: str, outcome: str, difference: float, unit: str, rows: int, note: str) -> dict[str, Any]:
        made = outcome != "not made"
        return {
            "name": name,
            "outcome": outcome,
            "difference": min(difference, NO_NUMBER) if made else 0.0,
            "tolerance": self._tolerance(name),
            "unit": unit,
            "rows": min(rows, self.ids.shape[1]),
            "note": note,
        }


def require(check: SelfCheck, force: bool, abandon: Callable[[], None] = lambda: None) -> None:
    """Errors (CaptureError): a check failed and `force` is false; `abandon` is called before."""
    sentence = check.failure()
    if sentence and not force:
        abandon()
        raise CaptureError(
            sentence, "self-check", "Nothing was written; --force writes the capture and marks it for good"
        )
