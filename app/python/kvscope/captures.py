"""Captures, kept lists and measures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from kvscope import _core, arguments

Floats = npt.NDArray[np.float32]
METRICS = ("output_error", "retained_mass")


@dataclass(frozen=True)
class Rope:
    """The rotation of a layer's keys and queries: component pair i is turned by position x inv_freq[i]."""

    inv_freq: npt.ArrayLike
    interleaved: bool = False  #: pairs are neighbours (2i, 2i + 1), else halves (i, i + rotated / 2)
    rotary_begin: int = 0  #: first rotated component
    attention_scaling: float = 1.0  #: magnitude factor on rotated rows (YaRN)


class Selection:
    """What a policy keeps of one layer. Arrays view the result and are read-only."""

    def __init__(self, core: _core.Selection) -> None:
        """Made by `evict`."""
        self._core = core

    @property
    def kept(self) -> list[npt.NDArray[np.int32]]:
        """For each KV head the kept tokens, rising; of query heads with sets of their own the union."""
        return self._core.kept

    @property
    def query_heads(self) -> list[npt.NDArray[np.int32]] | None:
        """For each query head its own kept tokens, rising, or None: those of a group share a set."""
        return self._core.query_heads

    @property
    def numerator_weights(self) -> list[Floats] | None:
        """Per kept token, or None: all 1."""
        return self._core.numerator_weights

    @property
    def denominator_weights(self) -> list[Floats] | None:
        """Per kept token, or None: all 1."""
        return self._core.denominator_weights

    @property
    def scores(self) -> Floats | None:
        """[KV heads, tokens before the cut], or None; the group's where query heads have sets of their own."""
        return self._core.scores

    @property
    def query_head_scores(self) -> Floats | None:
        """[query heads, tokens before the cut], or None: those of a group share a set."""
        return self._core.query_head_scores

    @property
    def margins(self) -> list[float]:
        """For each KV head how far the closest decision was from going the other way."""
        return self._core.margins

    @property
    def retention(self) -> float:
        """Share of the tokens before the cut that a query head keeps."""
        return self._core.retention

    @property
    def cut(self) -> int:
        """First token that the policy did not see."""
        return self._core.cut

    @property
    def policy(self) -> str:
        """The policy with its variant, parameters and budget."""
        return self._core.policy

    @property
    def notes(self) -> list[str]:
        """What the reader must know."""
        return self._core.notes

    @property
    def simulated(self) -> bool:
        """Whether the policy simulates what a real run would do."""
        return self._core.simulated

    def mask(self) -> npt.NDArray[np.bool_]:
        """[KV heads, tokens before the cut], true where kept."""
        return self._core.mask()

    def __repr__(self) -> str:
        """Policy, layer and share of tokens kept."""
        return repr(self._core)


class Capture:
    """An open capture; tensors are read when they are asked for."""

    def __init__(self, core: _core.Capture) -> None:
        """Made by `open`."""
        self._core = core

    @property
    def path(self) -> str:
        """The file."""
        return self._core.path

    @property
    def model_id(self) -> str:
        """The model that was captured."""
        return self._core.model_id

    @property
    def hash(self) -> str:
        """SHA-256 of the file's numbers, or its size and time where the file states none."""
        return self._core.hash

    @property
    def notes(self) -> str:
        """What the capturing tool noted."""
        return self._core.notes

    @property
    def num_tokens(self) -> int:
        """Tokens of the prompt."""
        return self._core.num_tokens

    @property
    def num_query_heads(self) -> int:
        """Query heads of a layer."""
        return self._core.num_query_heads

    @property
    def num_kv_heads(self) -> int:
        """KV heads of a layer."""
        return self._core.num_kv_heads

    @property
    def head_dim(self) -> int:
        """Components of a key."""
        return self._core.head_dim

    @property
    def layers(self) -> list[int]:
        """Layers in the file."""
        return self._core.layers

    @property
    def token_ids(self) -> list[int]:
        """Id of each token in the model's vocabulary."""
        return self._core.token_ids

    @property
    def positions(self) -> list[int]:
        """Position id of each token: what RoPE turns it by."""
        return self._core.positions

    @property
    def texts(self) -> list[str]:
        """Text of each token; a part of a character reads as U+FFFD."""
        return [text.decode("utf-8", "replace") for text in self._core.texts]

    @property
    def segments(self) -> list[tuple[int, int, str]]:
        """(begin, end, kind), half-open."""
        return self._core.segments

    def keys(self, layer: int) -> Floats:
        """[KV heads, tokens, head_dim], as attention reads them."""
        return self._core.keys(arguments.integer(layer, "layer"))

    def values(self, layer: int) -> Floats:
        """[KV heads, tokens, value_dim]."""
        return self._core.values(arguments.integer(layer, "layer"))

    def queries(self, layer: int) -> Floats:
        """[query heads, last tokens, head_dim], as attention reads them."""
        return self._core.queries(arguments.integer(layer, "layer"))

    def keys_pre_rope(self, layer: int) -> Floats:
        """[KV heads, tokens, head_dim], before RoPE: from the file, or rotated back."""
        return self._core.keys_pre_rope(arguments.integer(layer, "layer"))

    def rope(self, layer: int) -> Rope | None:
        """The layer's rotation, or None where it has none or the file does not state it."""
        rope = self._core.rope(arguments.integer(layer, "layer"))
        return rope and Rope(*rope)

    def evict(self, layer: int, policy: str, cut: str | int = "default", seed: int = 0) -> Selection:
        """What `policy` (with its @budget) keeps of a layer."""
        where = arguments.integer(layer, "layer")
        return Selection(self._core.evict(where, arguments.policy(policy), arguments.cut(cut), arguments.seed(seed)))

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
        return self._core.measure(where, arguments.policy(policy), wanted, arguments.cut(cut), arguments.seed(seed))

    def __repr__(self) -> str:
        """File, tokens and layers."""
        return f"<kvscope.Capture {self._core.file_name}, {self.num_tokens} tokens, {len(self.layers)} layers>"


def open(path: str | PathLike[str]) -> Capture:  # noqa: A001
    """Opens a capture, or tensors of other programs (.safetensors, .npz)."""
    return Capture(_core.open(arguments.path(path, "path")))


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
    return Selection(
        capture.evict(where, arguments.policy(policy), arguments.cut(cut), arguments.seed(seed), *replayed)
    )


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
    return capture.measure(where, arguments.policy(policy), wanted, arguments.cut(cut), arguments.seed(seed))
