"""Runs kvpress's own presses in double precision on the tensors of a capture, and writes that capture."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import h5py
import kvpress.presses.leverage_press
import kvpress.presses.non_causal_attention_press
import kvpress.presses.random_press
import kvpress.presses.snapkv_press
import numpy as np
import torch

from kvscope_capture.attention import AttentionCall, decoder_of, observed_attention
from kvscope_capture.capture_file import CaptureFile, CaptureOptions, LayerRecord


class DoubleTorch:
    """The module `torch` as a press sees it: float32 means float64, and the numbers drawn are recorded."""

    float32 = torch.float64

    def __init__(self) -> None:
        self.drawn: list[torch.Tensor] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    def randn(self, *shape: int, **kwargs: Any) -> torch.Tensor:
        """Standard normal numbers, recorded."""
        self.drawn.append(torch.randn(*shape, **kwargs))
        return self.drawn[-1]

    def rand(self, *shape: int, **kwargs: Any) -> torch.Tensor:
        """Uniform numbers, recorded."""
        self.drawn.append(torch.rand(*shape, **kwargs))
        return self.drawn[-1]


@dataclasses.dataclass(frozen=True)
class Layer:
    """What attention saw, float32: q [Hq, n, d], k and v [Hkv, n, d] after RoPE, k_pre before it."""

    module: Any
    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    k_pre: torch.Tensor
    scaling: float

    def states(self) -> torch.Tensor:
        """What stands in for the hidden states: a token's q and k_pre in one row, [1, n, Hq d + Hkv d]."""
        rows = [t.double().transpose(0, 1).flatten(1) for t in (self.q, self.k_pre)]
        return torch.cat(rows, dim=1)[None]

    def attention(self) -> torch.Tensor:
        """Causal attention weights in double, [1, Hq, n, n]."""
        group = self.q.shape[0] // self.k.shape[0]
        logits = self.q.double() @ self.k.double().repeat_interleave(group, 0).transpose(1, 2) * self.scaling
        n = logits.shape[-1]
        return torch.softmax(logits.masked_fill(torch.ones(n, n).triu(1).bool(), -torch.inf), dim=-1)[None]


def observe(model: Any, ids: list[int]) -> list[Layer]:
    """The prompt's layers, from a run of `model` in its own precision."""
    layers: list[Layer] = []

    def keep(call: AttentionCall) -> None:
        assert call.unrotated is not None
        tensors = (call.query, call.key, call.value, call.unrotated[1])
        q, k, v, k_pre = (t.detach().float().clone() for t in tensors)
        layers.append(Layer(call.module, q, k, v, k_pre, call.scaling))

    with torch.no_grad(), observed_attention(model, keep):
        decoder_of(model)(input_ids=torch.tensor([ids]), use_cache=False)
    return layers


def write_capture(path: pathlib.Path, layers: list[Layer], ids: list[int]) -> None:
    """The layers as a capture of float32."""
    hq, _, d = layers[0].q.shape
    hkv = layers[0].k.shape[0]
    file = CaptureFile(path, CaptureOptions(dtype="float32"), "reference")
    sizes = {"num_q_heads": hq, "num_kv_heads": hkv, "head_dim": d, "value_dim": d, "num_layers": len(layers)}
    file.write_ids("kvpress reference test", ids, sizes)
    for index, layer in enumerate(layers):
        tensors = {"q": layer.q, "k": layer.k, "v": layer.v, "k_pre": layer.k_pre}
        kv_of_q = np.arange(hq, dtype=np.int32) // (hq // hkv)
        attributes = {"scaling": layer.scaling, "has_rope": 1, "kv_of_q": kv_of_q, "attn_type": "full_attention"}
        file.write_layer(LayerRecord(index, tensors, attributes))
    file.finish(lambda _: None)


@contextlib.contextmanager
def _in_double(layer: Layer, double: DoubleTorch) -> Iterator[None]:
    presses = kvpress.presses
    hq, d = layer.q.shape[0], layer.q.shape[2]

    def queries(module: Any, states: torch.Tensor) -> torch.Tensor:
        return states[..., : hq * d].unflatten(-1, (hq, d)).transpose(1, 2)

    def keys(module: Any, states: torch.Tensor) -> torch.Tensor:
        return states[..., hq * d :].unflatten(-1, (-1, d)).transpose(1, 2)

    modules = (presses.leverage_press, presses.non_causal_attention_press, presses.random_press, presses.snapkv_press)
    with contextlib.ExitStack() as stack:
        for module in modules:
            stack.enter_context(mock.patch.object(module, "torch", double))
        for module in (presses.non_causal_attention_press, presses.snapkv_press):
            stack.enter_context(mock.patch.object(module, "get_prerope_query_states", queries))
        stack.enter_context(mock.patch.object(presses.leverage_press, "get_prerope_key_states", keys))
        yield


@dataclasses.dataclass(frozen=True)
class Choice:
    """What a press keeps of one layer, ascending, [Hkv, m]; its final scores [Hkv, n]; the numbers it drew."""

    kept: np.ndarray
    scores: np.ndarray
    drawn: list[np.ndarray]


def run_press(press: Any, layer: Layer, with_attention: bool) -> Choice:
    """The press's own `compress` on one layer. Its queries are rotated already; it is given a rotation by 0."""
    double, n, d = DoubleTorch(), layer.k.shape[1], layer.k.shape[2]
    keys, values = layer.k.double()[None], layer.v.double()[None]
    rotation = (torch.ones(1, n, d, dtype=torch.float64), torch.zeros(1, n, d, dtype=torch.float64))
    seen: list[torch.Tensor] = []
    scorer = getattr(press, "press", press)
    score = scorer.score

    def listen(*args: Any, **kwargs: Any) -> torch.Tensor:
        seen.append(score(*args, **kwargs))
        return seen[-1]

    with torch.no_grad(), _in_double(layer, double), mock.patch.object(scorer, "score", listen):
        attentions = layer.attention() if with_attention else None
        kwargs = {"position_embeddings": rotation}
        kept, _ = press.compress(layer.module, layer.states(), keys, values, attentions, kwargs)
    rows = _rows_of(kept[0], layer.k.double())
    return Choice(rows, seen[-1][0].numpy(), [t.numpy() for t in double.drawn])


def _rows_of(kept: torch.Tensor, keys: torch.Tensor) -> np.ndarray:
    """Which rows of `keys` [Hkv, n, d] the rows of `kept` [Hkv, m, d] are; keys after RoPE are all different."""
    found = []
    for head in range(keys.shape[0]):
        places = {row.numpy().tobytes(): index for index, row in enumerate(keys[head])}
        assert len(places) == keys.shape[1], "two tokens have the same key"
        found.append(sorted(places[row.numpy().tobytes()] for row in kept[head]))
    return np.asarray(found)


def write_random(path: pathlib.Path, name: str, drawn: list[np.ndarray]) -> str:
    """Numbers of all layers as a data set [layers, ...] for --uniforms or --sketch."""
    with h5py.File(path, "a") as file:
        file.create_dataset(name, data=np.stack(drawn))
    return f"{path}:/{name}"
