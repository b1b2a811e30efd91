"""Captures, kept lists and measures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from kvscope import _core, arguments
from kvscope._core import Selection

Floats = npt.NDArray[np.float32]
METRICS = ("output_error", "retained_mass")


@dataclass(frozen=True)
class Rope:
    """The rotation of a layer's keys and queries: component pair i is turned by position x inv_freq[i]."""

    inv_freq: npt.ArrayLike
    interleaved: bool = False  #: pairs are neighbours (2i, 2i + 1), else halves (i, i + rotated / 2)
    rotary_begin: int = 0  #: first rotated component
    attention_scaling: float = 1.0  #: magnitude factor on rotated rows (YaRN)


class Capture(_core.Capture):
    """An open capture; tensors are read when they are asked for."""

    def keys(self, layer: int) -> Floats:
        """[KV heads, tokens, head_dim], as attention reads them."""
        return super().keys(arguments.integer(layer, "layer"))

    def values(self, layer: int) -> Floats:
        """[KV heads, tokens, value_dim]."""
        return super().values(arguments.integer(layer, "layer"))

    def queries(self, layer: int) -> Floats:
        """[query heads, last tokens, head_dim], as attention reads them."""
        return super().queries(arguments.integer(layer, "layer"))

    def keys_pre_rope(self, layer: int) -> Floats:
        """[KV heads, tokens, head_dim], before RoPE: from the file, or rotated back."""
        return super().keys_pre_rope(arguments.integer(layer, "layer"))

    def rope(self, layer: int) -> Rope | None:
        """The layer's rotation, or None where it has none or the file does not state it."""
        rope = self._rope(arguments.integer(layer, "layer"))
        return rope and Rope(*rope)

    def evict(self, layer: int, policy: str, cut: str | int = "default", seed: int = 0) -> Selection:
        """What `policy` (with its @budget) keeps of a layer."""
        where = arguments.integer(layer, "layer")
        return self._evict(where, arguments.policy(policy), arguments.cut(cut), arguments.seed(seed))

    def measure(
        self,
        layer: int,
        policy: str,
        metrics: str | Iterable[str] = METRICS,
        cut: str | int = "default",
        seed: int = 0,
    ) -> dict[str, npt.NDArray[np.float64]]:
        """Measures per head, by their ids (`kvscope measures` lists them)."""
        where, wanted = arguments.integer(layer, "layer"), arguments.names(metrics, "metrics")
        return self._measure(where, arguments.policy(policy), wanted, arguments.cut(cut), arguments.seed(seed))

    def __repr__(self) -> str:
        """File, tokens and layers."""
        return f"<kvscope.Capture {self._file_name}, {self.num_tokens} tokens, {len(self.layers)} layers>"


def open(path: str | PathLike[str]) -> Capture:  # noqa: A001
    """Opens a capture, or tensors of other programs (.safetensors, .npz)."""
    return Capture(arguments.path(path, "path"))


def policies() -> list[str]:
    """Ids of all policies."""
    return _core.policies()


def _arrays(
    k: Any, v: Any, q: Any, k_pre: Any, sinks: Any, kv_of_q: Any, positions: Any, rope: Any, **numbers: Any
) -> _core.Capture:
    """The arrays as a capture of one layer."""
    if not isinstance(rope, Rope | None):
        arguments.fail("the argument is no kvscope.Rope", "rope", "Write rope=kvscope.Rope(inv_freq)")
    turned = rope or Rope(())
    scaling = numbers["scaling"]
    return _core.arrays(
        k=arguments.tensor(k, "k"),
        v=arguments.tensor(v, "v"),
        q=None if q is None else arguments.tensor(q, "q"),
        k_pre=None if k_pre is None else arguments.tensor(k_pre, "k_pre"),
        sinks=arguments.row(sinks, "sinks"),
        kv_of_q=arguments.row(kv_of_q, "kv_of_q", 2**31 - 1),
        positions=arguments.row(positions, "positions", 2**63 - 1),
        inv_freq=arguments.row(turned.inv_freq, "rope"),
        interleaved=bool(turned.interleaved),
        rotary_begin=arguments.integer(turned.rotary_begin, "rope"),
        attention_scaling=arguments.number(turned.attention_scaling, "rope"),
        scaling=None if scaling is None else arguments.number(scaling, "scaling"),
        softcap=arguments.number(numbers["softcap"], "softcap"),
        sliding_window=arguments.integer(numbers["sliding_window"], "sliding_window"),
        layer=arguments.integer(numbers["layer"], "layer"),
        num_layers=arguments.integer(numbers["num_layers"], "num_layers"),
        threads=arguments.integer(numbers["threads"], "threads", largest=1024),
    )


def evict(
    k: npt.ArrayLike,
    v: npt.ArrayLike,
    q: npt.ArrayLike | None = None,
    policy: str = "keydiff@0.25",
    *,
    cut: str | int = "none",
    seed: int = 0,
    scaling: float | None = None,
    softcap: float = 0,
    sliding_window: int = 0,
    sinks: Sequence[float] | npt.ArrayLike | None = None,
    k_pre: npt.ArrayLike | None = None,
    positions: npt.ArrayLike | None = None,
    rope: Rope | None = None,
    kv_of_q: Sequence[int] | npt.ArrayLike | None = None,
    layer: int = 0,
    num_layers: int = 0,
    uniforms: str = "",
    sketch: str = "",
    threads: int = 0,
) -> Selection:
    """What `policy` keeps of one layer.

    k, v: [KV heads, tokens, head_dim]; q: [query heads, last tokens, head_dim]; numpy, torch or lists, each also with a
    leading batch of one. `softcap`, `sliding_window` and `sinks` (a logit for each query head) as the layer has them;
    `scaling` is 1/sqrt(head_dim) when left out. Keys before RoPE are `k_pre`, or `k` rotated back by `rope` from the
    tokens' `positions` (0, 1, 2 ... when left out); without either the keys count as never rotated.
    `kv_of_q`: the KV head that each query head reads. `uniforms`, `sketch`: random numbers to replay, FILE.h5:/path.
    """
    capture = _arrays(
        k, v, q, k_pre, sinks, kv_of_q, positions, rope, scaling=scaling, softcap=softcap,
        sliding_window=sliding_window, layer=layer, num_layers=num_layers, threads=threads,
    )  # fmt: skip
    remedy = "Write FILE.h5:/path"
    replayed = (arguments.text(uniforms, "uniforms", remedy), arguments.text(sketch, "sketch", remedy))
    where = capture.layers[0]
    return capture._evict(where, arguments.policy(policy), arguments.cut(cut), arguments.seed(seed), *replayed)


def measure(
    k: npt.ArrayLike,
    v: npt.ArrayLike,
    q: npt.ArrayLike,
    policy: str = "keydiff@0.25",
    metrics: str | Iterable[str] = METRICS,
    *,
    cut: str | int = "last:256",
    seed: int = 0,
    scaling: float | None = None,
    softcap: float = 0,
    sliding_window: int = 0,
    sinks: Sequence[float] | npt.ArrayLike | None = None,
    k_pre: npt.ArrayLike | None = None,
    positions: npt.ArrayLike | None = None,
    rope: Rope | None = None,
    kv_of_q: Sequence[int] | npt.ArrayLike | None = None,
    layer: int = 0,
    num_layers: int = 0,
    threads: int = 0,
) -> dict[str, npt.NDArray[np.float64]]:
    """What the selection costs: measures per head, by their ids. Other arguments are those of `evict`."""
    capture = _arrays(
        k, v, q, k_pre, sinks, kv_of_q, positions, rope, scaling=scaling, softcap=softcap,
        sliding_window=sliding_window, layer=layer, num_layers=num_layers, threads=threads,
    )  # fmt: skip
    where, wanted = capture.layers[0], arguments.names(metrics, "metrics")
    return capture._measure(where, arguments.policy(policy), wanted, arguments.cut(cut), arguments.seed(seed))
