"""What a model's attention does, observed by running its own code without weights.

The decoder is built on the meta device; its rotary embedding and small parameters are then made on the CPU, and every
projection answers with one fixed random row. All tokens of the run are alike, so what differs between the keys of two
positions is the rotation and nothing else. Each layer stops where it calls attention: experts are never run.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import torch
from transformers import AutoModel
from transformers.pytorch_utils import Conv1D

from kvscope_capture.attention import HARMLESS, layers_of, replaced_attention, resolve_scaling
from kvscope_capture.errors import CaptureError

NAME = "kvscope_describe"
POSITIONS = 64
FARTHEST = 1 << 22  # beyond every window


@dataclasses.dataclass(frozen=True)
class ProbedLayer:
    """One call of attention: `query` [Hq, POSITIONS, d] and `key` [Hkv, POSITIONS, d] of POSITIONS equal tokens."""

    query: torch.Tensor
    key: torch.Tensor
    value_dim: int
    scaling: float
    softcap: float
    sliding_window: int
    sinks: bool


class _LayerSeen(Exception):
    """A layer has called attention; the rest of it is not run."""


class _Finished(Exception):
    """All layers are seen."""


def visible_window(mask_function: Callable[..., torch.Tensor]) -> int:
    """How many tokens a query sees, itself included, by the model's own mask function; 0: all before it.

    Errors: the visible tokens are no window that ends with the query (chunks, prefixes, both directions).
    """
    windows = set()
    for row in (FARTHEST, FARTHEST - 1, FARTHEST - 12345):
        columns = torch.arange(row + 64)
        seen = mask_function(0, 0, torch.tensor(row), columns).expand(columns.shape)
        count = int(seen.sum())
        if count == 0 or not bool(seen[row + 1 - count : row + 1].all()):
            raise CaptureError("the visible tokens of a query are no window that ends with it", "attention mask")
        windows.add(0 if count == row + 1 else count)
    if len(windows) != 1:
        raise CaptureError("the visible tokens are not as many for every query (chunked attention)", "attention mask")
    return windows.pop()


def build_decoder(config: Any) -> Any:
    """The decoder of a text configuration: big tensors on the meta device, rotary embedding and norms on the CPU."""
    with torch.device("meta"):
        decoder = AutoModel.from_config(config, dtype=torch.float32).eval()
    for name, module in list(decoder.named_modules()):
        if "RotaryEmbedding" in type(module).__name__:
            decoder.set_submodule(name, type(module)(getattr(module, "config", config)))
        for parameter, value in module._parameters.items():
            if value is not None and (value.dim() <= 1 or "Norm" in type(module).__name__):
                random = torch.rand(value.shape) + 0.5
                module._parameters[parameter] = torch.nn.Parameter(random, requires_grad=False)
    return decoder


@contextlib.contextmanager
def _projections_without_weights() -> Iterator[None]:
    """Linear layers and embeddings answer every row with one random row of their width."""
    generator = torch.Generator().manual_seed(1)
    rows: dict[int, torch.Tensor] = {}

    def answer(module: Any, leading: Any, width: int) -> torch.Tensor:
        if id(module) not in rows:
            rows[id(module)] = torch.randn(width, generator=generator)
        return rows[id(module)].expand(*leading, width)

    stubs = {
        torch.nn.Linear: lambda self, x: answer(self, x.shape[:-1], self.out_features),
        torch.nn.Embedding: lambda self, ids: answer(self, ids.shape, self.embedding_dim),
        Conv1D: lambda self, x: answer(self, x.shape[:-1], self.nf),
    }
    originals = {kind: kind.forward for kind in stubs}
    for kind, stub in stubs.items():
        kind.forward = stub
    try:
        yield
    finally:
        for kind, original in originals.items():
            kind.forward = original


def _probed(module: Any, query: Any, key: Any, value: Any, mask: Any, scaling: Any, others: dict[str, Any]) -> Any:
    """One layer's call. Errors (CaptureError): scaling, soft cap, window and sinks do not describe it fully."""
    place = f"layer {module.layer_idx}"
    window = getattr(mask, "kvscope_window", None)
    if isinstance(window, CaptureError):
        raise CaptureError(window.sentence, place)
    if window is None or not getattr(module, "is_causal", True):
        raise CaptureError("attention does not use the causal mask of Transformers", place)
    if others.get("sliding_window") and others["sliding_window"] != window:
        raise CaptureError("the window of the mask is not the one that attention is told", place)
    unknown = [n for n, v in others.items() if isinstance(v, torch.Tensor) and n not in HARMLESS]
    if unknown:
        raise CaptureError(f"attention is given {', '.join(unknown)}, which no capture holds", place)
    return ProbedLayer(
        query=query[0],
        key=key[0],
        value_dim=value.shape[-1],
        scaling=resolve_scaling(module, scaling, query.shape[-1]),
        softcap=float(others.get("softcap") or 0.0),
        sliding_window=window,
        sinks=others.get("s_aux") is not None,
    )


def probe_layers(decoder: Any) -> list[ProbedLayer]:
    """Every layer's attention. Errors: a layer without attention, or one that does not call Transformers' interface."""
    found: list[ProbedLayer] = []
    hidden = torch.randn(decoder.config.hidden_size, generator=torch.Generator().manual_seed(2))
    hidden = hidden.expand(1, POSITIONS, -1)
    layers = layers_of(decoder)

    def attend(
        module: Any, query: Any, key: Any, value: Any, attention_mask: Any, scaling: Any = None, **others: Any
    ) -> Any:
        found.append(_probed(module, query, key, value, attention_mask, scaling, others))
        raise _LayerSeen

    def make_mask(mask_function: Any, **_: Any) -> torch.Tensor:
        mask = torch.zeros(1, 1, POSITIONS, POSITIONS)
        try:
            mask.kvscope_window = visible_window(mask_function)  # type: ignore[attr-defined]
        except CaptureError as error:  # some models make masks that no layer uses
            mask.kvscope_window = error  # type: ignore[attr-defined]
        return mask

    def visit(index: int, forward: Any) -> Any:
        def run(*args: Any, **kwargs: Any) -> torch.Tensor:
            if "hidden_states" in kwargs:
                kwargs["hidden_states"] = hidden
            with contextlib.suppress(_LayerSeen):
                forward(*((hidden,) + args[1:] if args else ()), **kwargs)
            if len(found) != index + 1:
                raise CaptureError("does not call attention by Transformers' interface", f"layer {index}")
            if index + 1 == len(layers):
                raise _Finished
            return hidden

        return run

    for index, layer in enumerate(layers):
        layer.forward = visit(index, layer.forward)
    probed = replaced_attention(decoder, NAME, attend, make_mask)
    with torch.no_grad(), _projections_without_weights(), probed, contextlib.suppress(_Finished):
        decoder(inputs_embeds=hidden, use_cache=False)
    return found
