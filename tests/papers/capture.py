"""Reads a capture with h5py, by the description of the format alone: no code of the program takes part."""

import dataclasses
import functools
import pathlib

import h5py
import numpy as np

SAMPLE = pathlib.Path(__file__).resolve().parents[2] / "sample_data" / "needle-1k.h5"
CONTEXT, QUESTION, ANSWER = 1, 3, 4  # kinds of segments


@dataclasses.dataclass(frozen=True)
class Layer:
    """The tensors of one layer [heads, tokens, numbers] in double."""

    number: int
    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    k_pre: np.ndarray  # before RoPE
    scaling: float  # the factor on q.k, 1 / sqrt(d) of the papers
    kv_of_q: list[int]
    dtype_bytes: int

    @property
    def kv_heads(self) -> int:
        """The number of KV heads."""
        return len(self.k)

    def group(self, kv_head: int) -> list[int]:
        """Query heads that read a KV head."""
        return [h for h, g in enumerate(self.kv_of_q) if g == kv_head]


@dataclasses.dataclass(frozen=True)
class Capture:
    """One prompt through one model."""

    path: pathlib.Path
    tokens: int
    segments: list[tuple[int, int, int]]  # begin, end, kind
    layers: list[Layer]

    def cut(self, text: str) -> int:
        """The token that a cut names: what lies before it is seen, the queries from it on evaluate."""
        if text.startswith("last:"):
            return self.tokens - int(text.removeprefix("last:"))
        if text == "none":
            return self.tokens
        assert text == "default"
        question = min(begin for begin, _, kind in self.segments if kind == QUESTION)
        return max(end for begin, end, kind in self.segments if kind == CONTEXT and begin < question)

    def prompt_tokens(self) -> int:
        """Tokens before the answer."""
        return min((begin for begin, _, kind in self.segments if kind == ANSWER), default=self.tokens)


def _tensor(dataset: h5py.Dataset) -> np.ndarray:
    raw = dataset[:]
    if raw.dtype == np.uint16:
        assert dataset.attrs["dtype"] == "bfloat16"
        raw = (raw.astype(np.uint32) << 16).view(np.float32)
    return raw.astype(np.float64)


def _unrotated(k: np.ndarray, positions: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
    """Keys before RoPE: halves (x, y) were rotated to (x cos - y sin, y cos + x sin)."""
    angles = (positions.astype(np.float32)[:, None] * frequencies.astype(np.float32)).astype(np.float64)
    half = k.shape[2] // 2
    x, y = k[..., :half], k[..., half:]
    return np.concatenate((x * np.cos(angles) + y * np.sin(angles), y * np.cos(angles) - x * np.sin(angles)), axis=2)


@functools.cache
def sample() -> Capture:
    """The sample capture; these loops need no softcap, window, sinks or other layout of RoPE."""
    with h5py.File(SAMPLE) as file:
        positions, frequencies = file["tokens/position_ids"][:], file["rope/inv_freq"][:]
        assert '"half"' in file.attrs["rope"]
        layers = []
        for name, group in sorted(file["layers"].items()):
            assert group.attrs["softcap"] == 0 and group.attrs["sliding_window"] == 0
            assert "k_pre" not in group and "sinks" not in group
            q, k, v = (_tensor(group[role]) for role in "qkv")
            k_pre = _unrotated(k, positions, frequencies)
            scaling, kv_of_q = float(group.attrs["scaling"]), [int(g) for g in group.attrs["kv_of_q"]]
            layers.append(Layer(int(name), q, k, v, k_pre, scaling, kv_of_q, group["k"].dtype.itemsize))
        segments = [(int(b), int(e), int(kind)) for b, e, kind in file["tokens/segments"][:]]
    return Capture(SAMPLE, layers[0].k.shape[1], segments, layers)
