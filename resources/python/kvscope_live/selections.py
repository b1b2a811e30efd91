"""What policies keep: a bit for each token, a row of bits for each KV head or query head, and weights."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from kvscope_capture.attention import AttentionCall
from kvscope_live.requests import Parameters, bad
from kvscope_press.attend_behind import PrunedLayer, head_weights, row_bytes

Bits = npt.NDArray[np.uint8]
Weights = npt.NDArray[np.float32]
ROOM = 64  # free rows behind the gathered ones, for tokens behind the cut
MOST_ROWS = 2  # gathered rows may take this many times the cache; beyond that, evicted rows are masked in place


@dataclasses.dataclass(frozen=True)
class Shape:
    """The sizes of a context: layers, KV heads, query heads and the tokens that may be evicted."""

    layers: int
    kv_heads: int
    query_heads: int
    tokens: int


@dataclasses.dataclass(frozen=True)
class HeadBits:
    """Which tokens a head keeps: `bits` [ceil(n / 8)], least significant first; weights of the kept ones, None: 1."""

    bits: Bits
    numerator: Weights | None = None
    denominator: Weights | None = None

    def count(self) -> int:
        """Kept tokens."""
        return int.from_bytes(self.bits.tobytes()).bit_count()

    def kept(self, tokens: int) -> npt.NDArray[np.int64]:
        """Indices of the kept tokens, of `tokens`."""
        return np.flatnonzero(np.unpackbits(self.bits, count=tokens, bitorder="little").view(np.bool_))

    def dense(self, tokens: int) -> tuple[Weights, Weights]:
        """Weights of every token, 0 where it is evicted."""
        kept, (numerator, denominator) = self.kept(tokens), np.zeros((2, tokens), np.float32)
        numerator[kept] = 1.0 if self.numerator is None else self.numerator
        denominator[kept] = 1.0 if self.denominator is None else self.denominator
        return numerator, denominator


@dataclasses.dataclass(frozen=True)
class Selection:
    """Heads by layer, KV head and query head (-1: the whole group). Heads that are not named keep everything."""

    id: str
    heads: dict[tuple[int, int, int], HeadBits]
    shape: Shape

    @functools.cached_property
    def stored(self) -> int:
        """Rows that stay in the cache."""
        named = {(layer, kv) for layer, kv, _ in self.heads}
        whole = self.shape.layers * self.shape.kv_heads - len(named)
        return sum(head.count() for head in self.heads.values()) + whole * self.shape.tokens

    @functools.cached_property
    def is_whole(self) -> bool:
        """Whether nothing is evicted and nothing weighted."""
        return all(h.numerator is None and h.count() == self.shape.tokens for h in self.heads.values())

    def distance(self, other: Selection) -> int:
        """Tokens that one keeps and the other does not, over the heads that both name."""
        both = [place for place in self.heads if place in other.heads]
        own, theirs = (int.from_bytes(b"".join(s.heads[place].bits.tobytes() for place in both)) for s in (self, other))
        return (own ^ theirs).bit_count()

    def size(self) -> int:
        """Bytes that it takes here."""
        arrays = (a for h in self.heads.values() for a in (h.bits, h.numerator, h.denominator) if a is not None)
        return sum(array.nbytes for array in arrays)


class Parts:
    """Rows of one selection that come in several messages."""

    def __init__(self, shape: Shape) -> None:
        """Nothing has come."""
        self.shape = shape
        self.heads: dict[tuple[int, int, int], HeadBits] = {}
        self.digest = hashlib.sha256()
        self.next = 0

    def add(self, given: Parameters, blobs: list[bytes]) -> None:
        """Rows and blobs of the next part. Errors (LiveError): they contradict each other or the model."""
        places = [self._place(row) for row in given.items("rows")]
        named = {str(b.get("name")): data for b, data in zip(_described(given, blobs), blobs, strict=True)}
        width = (self.shape.tokens + 7) // 8
        packed = np.frombuffer(named.get("kept", b""), np.uint8)
        if packed.size != len(places) * width:
            raise bad("blobs", f"kept has {packed.size} bytes, not {width} for each of {len(places)} rows")
        packed = packed.reshape(len(places), width)
        if self.shape.tokens % 8 and (packed[:, -1] >> (self.shape.tokens % 8)).any():
            raise bad("blobs", f"kept names tokens behind the {self.shape.tokens} before the cut")
        counts = [int.from_bytes(row.tobytes()).bit_count() for row in packed]
        numerator = self._weights(named, "numerator", sum(counts))
        denominator = self._weights(named, "denominator", sum(counts))
        denominator = numerator if denominator is None else denominator
        if numerator is None and denominator is not None:
            numerator = np.ones_like(denominator)
        done = 0
        for place, row, count in zip(places, packed, counts, strict=True):
            own = slice(done, done + count)
            done += count
            if place in self.heads or (place[0], place[1], -1) in self.heads:
                raise bad("rows", f"layer {place[0]}, KV head {place[1]} is named twice")
            self.heads[place] = HeadBits(row, *(None if w is None else w[own] for w in (numerator, denominator)))
        self.digest.update(repr([places, sorted((name, len(data)) for name, data in named.items())]).encode())
        for name in sorted(named):
            self.digest.update(named[name])
        self.next += 1

    def finish(self) -> Selection:
        """The selection. Errors (LiveError): sets of some query heads of a group, but not of all."""
        group = self.shape.query_heads // self.shape.kv_heads
        own: dict[tuple[int, int], set[int]] = {}
        for layer, kv, query in self.heads:
            own.setdefault((layer, kv), set()).add(query)
        for (layer, kv), queries in own.items():
            if queries != {-1} and queries != set(range(kv * group, (kv + 1) * group)):
                raise bad("rows", f"layer {layer}, KV head {kv} has sets of query heads {sorted(queries)}")
        return Selection("s" + self.digest.hexdigest()[:20], self.heads, self.shape)

    def _place(self, row: Any) -> tuple[int, int, int]:
        limits = (self.shape.layers, self.shape.kv_heads, self.shape.query_heads)
        good = isinstance(row, list) and 2 <= len(row) <= 3
        if not good or not all(type(x) is int and 0 <= x < most for x, most in zip(row, limits, strict=False)):
            raise bad("rows", f"{row!r} is no [layer, kv_head] or [layer, kv_head, query_head] of the model")
        return row[0], row[1], row[2] if len(row) == 3 else -1

    def _weights(self, named: dict[str, bytes], name: str, count: int) -> Weights | None:
        if name not in named:
            return None
        if len(named[name]) != 4 * count:
            raise bad("blobs", f"{name} has {len(named[name])} bytes for {count} kept tokens")
        values = np.frombuffer(named[name], "<f4").astype(np.float32)
        if not (np.isfinite(values) & (values >= 0)).all():
            raise bad("blobs", f"{name} has a weight that is negative or not finite")
        return values


def _described(given: Parameters, blobs: list[bytes]) -> list[dict[str, Any]]:
    """The description of each blob. Errors (LiveError): not one for each blob."""
    described = given.items("blobs")
    if len(described) != len(blobs) or not all(isinstance(entry, dict) for entry in described):
        raise bad("blobs", f"{len(described)} are described, {len(blobs)} came")
    return described


def pruned_layer(call: AttentionCall, selections: Sequence[Selection]) -> PrunedLayer:
    """One layer under P selections: gathered rows for each where they keep little, else all rows, masked."""
    shape = selections[0].shape
    group = shape.query_heads // shape.kv_heads
    rows = [{place: s.heads[place] for place in s.heads if place[0] == call.layer} for s in selections]
    places = [(kv, -1) for kv in range(shape.kv_heads)]
    if any(query >= 0 for own in rows for _, _, query in own):
        places = [(query // group, query) for query in range(shape.query_heads)]
    everything = HeadBits(np.full((shape.tokens + 7) // 8, 255, np.uint8))
    heads = [
        own.get((call.layer, kv, query)) or own.get((call.layer, kv, -1)) or everything
        for own in rows
        for kv, query in places
    ]
    kept = [head.kept(shape.tokens) for head in heads]
    if all(head.numerator is None and own.size == shape.tokens for head, own in zip(heads, kept, strict=True)):
        return PrunedLayer.whole(call)  # the policies share its rows
    stored, longest = sum(own.size for own in kept), max(own.size for own in kept)
    if longest * len(heads) <= MOST_ROWS * shape.kv_heads * shape.tokens:
        sources = [kv for kv, _ in places] * len(rows)
        return _gathered(call, heads, kept, sources, stored)
    device = call.key.device
    weights = np.stack([head.dense(shape.tokens) for head in heads], 1).reshape(2, len(rows), len(places), -1)
    above, below = torch.from_numpy(weights)
    masked = head_weights(above, below, call.key.shape[0], device)
    return PrunedLayer(call.key, call.value, torch.arange(shape.tokens, device=device), *masked, stored)


def _gathered(
    call: AttentionCall, heads: list[HeadBits], kept: list[npt.NDArray[np.int64]], sources: list[int], stored: int
) -> PrunedLayer:
    """The kept rows alone, padded to the longest; those of `heads[i]` come from the KV head `sources[i]`."""
    longest = max(own.size for own in kept)
    rows = np.zeros((len(heads), longest + ROOM), np.int64)
    weights = np.zeros((2, 1, len(heads), longest), np.float32)
    for index, (head, own) in enumerate(zip(heads, kept, strict=True)):
        rows[index, : own.size] = own
        for array, given in zip(weights[:, 0], (head.numerator, head.denominator), strict=True):
            array[index, : own.size] = 1.0 if given is None else given
    positions = torch.from_numpy(rows).to(call.key.device)
    places = positions + torch.tensor(sources, device=positions.device)[:, None] * call.key.shape[1]
    room = [torch.nn.functional.embedding(places, t.flatten(0, 1)) for t in (call.key, call.value)]
    above, below = torch.from_numpy(weights)
    spread = head_weights(above, below, len(heads), call.key.device)
    keys, values = (rows[:, :longest] for rows in room)
    return PrunedLayer(keys, values, positions[:, :longest], *spread, stored, (room[0], room[1]))


def kept_bytes(selection: Selection, call: AttentionCall) -> int:
    """Bytes of the kept keys and values of all layers."""
    return selection.stored * row_bytes(call.key, call.value)
