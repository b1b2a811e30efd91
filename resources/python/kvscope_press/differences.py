"""Where the lists of a press and of a policy differ, and why.

Each reason is a test that can fail: the lists become equal under it (another count, tensors rotated otherwise, another
parameter, a wider type), or the scores differ in one way only (ties, edges, 16 bits, what the last key changes).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from kvscope_capture.errors import CaptureError
from kvscope_capture.self_check import Rotation, find_rotation, inverse_frequencies, rotation_difference
from kvscope_press.layer_inputs import Choice, LayerInput, Numbers, choice_of
from kvscope_press.policy_lists import PolicyLists, Tensors, policy_lists, policy_parameters, write_layers

NOISE = 2.0**-16  # of a head's largest score: sums in float32 in another order
MOST_ROUNDINGS = 8  # a press rounds not only what it is given but also products and sums
MOST_FUTURE, LARGE_KEY = 0.05, 30.0


@dataclasses.dataclass(frozen=True)
class Parting:
    """One head whose lists differ: what only the press and only the policy keeps."""

    layer: int
    head: int
    press: list[int]
    policy: list[int]


@dataclasses.dataclass(frozen=True)
class Reason:
    """A name from the list in the manual, and the sentence with its numbers."""

    name: str
    sentence: str


def _largest(scores: Numbers) -> float:
    return float(np.abs(scores[np.isfinite(scores)]).max(initial=0.0))


def gap(parting: Parting, scores: Numbers) -> float:
    """How far apart the policy's scores of the exchanged tokens are, as a fraction of the head's largest score."""
    row = scores[parting.head]
    apart = float(row[parting.policy].max() - row[parting.press].min())
    return 0.0 if apart == 0 else abs(apart) / _largest(row)


def partings(press: Sequence[Choice], policy: Sequence[Choice], noise: float = -1.0) -> list[Parting]:
    """Heads whose lists differ, by more than `noise` of the policy's scores where these are known."""
    found = []
    for layer, (own, other) in enumerate(zip(press, policy, strict=True)):
        for head, (a, b) in enumerate(zip(own.kept, other.kept, strict=True)):
            parting = Parting(layer, head, sorted(set(a) - set(b)), sorted(set(b) - set(a)))
            if not parting.press and not parting.policy:
                continue
            scored = other.scores is not None and parting.press and parting.policy and len(a) == len(b)
            if not scored or gap(parting, np.asarray(other.scores)) > noise:
                found.append(parting)
    return found


def always_kept(choices: Sequence[Choice], tokens: int) -> tuple[int, int]:
    """How many first and how many last tokens every head of every layer keeps."""
    kept = np.zeros((sum(len(choice.kept) for choice in choices), tokens), bool)
    for row, tokens_of in enumerate(itertools.chain.from_iterable(choice.kept for choice in choices)):
        kept[row, tokens_of] = True
    evicted = np.flatnonzero(~np.all(kept, axis=0))
    return (tokens, tokens) if evicted.size == 0 else (int(evicted[0]), tokens - 1 - int(evicted[-1]))


@dataclasses.dataclass
class Comparison:
    """A press against a policy on the layers of one prompt; `folder` holds captures that are made on the way."""

    press: Any
    spec: str
    budget: str
    ids: list[int]
    layers: list[LayerInput]
    folder: pathlib.Path
    own: list[Choice] = dataclasses.field(init=False)
    reference: PolicyLists = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        """Runs both."""
        self.own = [choice_of(self.press, layer) for layer in self.layers]
        self.reference = self.policy([Tensors.of(layer) for layer in self.layers])
        self.tokens = len(self.ids)

    def policy(self, tensors: list[Tensors], more: str = "", budget: str = "") -> PolicyLists:
        """The policy's lists for other tensors, further parameters or another budget."""
        capture = self.folder / "prompt.h5"
        write_layers(capture, self.ids, self.layers, tensors)
        return policy_lists(capture, f"{self.spec}{more}@{budget or self.budget}")

    def partings(self, noise: float = NOISE) -> list[Parting]:
        """Heads whose lists differ by more than rounding."""
        return partings(self.own, self.reference.layers, noise)

    def equal_under(self, tensors: list[Tensors], more: str = "") -> bool:
        """Whether the lists are equal for these tensors and parameters; false where the policy refuses them."""
        try:
            return not partings(self.own, self.policy(tensors, more).layers, NOISE)
        except CaptureError:
            return False

    def reasons(self) -> list[Reason]:
        """Why the lists differ, most certain first; empty where they are equal but for rounding."""
        found = []
        if not self.partings(-1.0):
            return []
        counted = self._count()
        if counted:
            found.append(counted)
        if not self.partings():  # within rounding: only equal scores are a reason
            tie = self._tie() if self.partings(-1.0) else None
            return [*found, tie] if tie else found
        tests = (self._protection, self._rope, self._parameter, self._future, self._edge, self._narrow)
        for test in tests:
            reason = test()
            if reason:
                return [*found, reason]
        return [*found, Reason("other", "none of the known reasons makes the lists equal")]

    def _count(self) -> Reason | None:
        """Another number of tokens; the policy is then asked for the press's own number."""
        pairs = [
            (len(a), len(b))
            for own, other in zip(self.own, self.reference.layers, strict=True)
            for a, b in zip(own.kept, other.kept, strict=True)
        ]
        counts, theirs = {a for a, _ in pairs}, {b for _, b in pairs}
        if all(a == b for a, b in pairs):
            return None
        if len(counts) > 1:
            low, high = min(counts), max(counts)
            return Reason("count", f"the press keeps {low} to {high} tokens a head, the policy {_span(theirs)}")
        (count,) = counts
        wanted = (1 - float(getattr(self.press, "compression_ratio", 0))) * self.tokens
        self.reference = self.policy([Tensors.of(layer) for layer in self.layers], budget=f"{count}t")
        rules = {"down": math.floor(wanted), "up": math.ceil(wanted - 1e-9), "to the nearest": round(wanted)}
        rule = next((f", {wanted:.2f} rounded {rule}" for rule, kept in rules.items() if kept == count), "")
        name = "rounding of the count" if rule else "count"
        return Reason(name, f"the press keeps {count} tokens a head{rule}; the policy {_span(theirs)}")

    def _protection(self) -> Reason | None:
        """One of the two always keeps the first a and last b tokens; outside, the press keeps the policy's best."""
        press, policy = always_kept(self.own, self.tokens), always_kept(self.reference.layers, self.tokens)
        firsts, lasts = {0, press[0], policy[0]}, {0, press[1], policy[1]}
        for first, last in sorted(itertools.product(firsts, lasts), key=sum):
            if 0 < first + last < self.tokens and self._best_outside(first, last):
                zone = [f"the first {first}"] * bool(first) + [f"the last {last}"] * bool(last)
                who = "the press keeps" if sum(press) > sum(policy) else "the policy keeps"
                other = "the policy" if sum(press) > sum(policy) else "the press"
                sentence = f"{who} {' and '.join(zone)} tokens in every head whatever they score, {other} does not"
                return Reason("protection of sinks or recent tokens", f"{sentence}; the rest agrees")
        return None

    def _best_outside(self, first: int, last: int) -> bool:
        inside = set(range(first)) | set(range(self.tokens - last, self.tokens))
        differs = False
        for own, other in zip(self.own, self.reference.layers, strict=True):
            if other.scores is None:
                return False
            for head, (a, b) in enumerate(zip(own.kept, other.kept, strict=True)):
                differs = differs or bool((set(a) ^ set(b)) & inside)
                row = other.scores[head]
                kept, evicted = sorted(set(a) - inside), sorted(set(range(self.tokens)) - set(a) - inside)
                if kept and evicted and row[kept].min() < row[evicted].max() - NOISE * _largest(row):
                    return False
        return differs

    def _tie(self) -> Reason | None:
        """Every token that changed places has the same score for the policy."""
        for parting in self.partings(-1.0):
            scores = self.reference.layers[parting.layer].scores
            if scores is None or not parting.press or not parting.policy or gap(parting, scores) > 0:
                return None
        places = sum(len(parting.press) for parting in self.partings(-1.0))
        return Reason("tie", f"the {places} tokens that change places have equal scores: torch.topk promises no order")

    def _rope(self) -> Reason | None:
        window = int(self.reference.parameters.get("window", 1))
        for words, tensors in _rotations(self.layers, window):
            if self.equal_under(tensors):
                return Reason("RoPE", f"the lists are equal where the policy is given {words}")
        return None

    def _future(self) -> Reason | None:
        """Only the last query may see the last key: where enlarging it moves many scores, earlier queries see it."""
        if any(own.scores is None or other.scores is None for own, other in self._pairs()):
            return None
        enlarged = [_last_key_enlarged(layer.keys) for layer in self.layers]
        changed = [choice_of(self.press, layer, keys) for layer, keys in zip(self.layers, enlarged, strict=True)]
        tensors = [
            dataclasses.replace(Tensors.of(layer), k=keys[0]) for layer, keys in zip(self.layers, enlarged, strict=True)
        ]
        theirs = self.policy(tensors).layers
        recent = always_kept(self.reference.layers, self.tokens)[1] + 1
        by_press = _change(self.own, changed, recent)
        by_policy = _change(self.reference.layers, theirs, recent)
        if by_press < 3 * by_policy + MOST_FUTURE:
            return None
        return Reason(
            "a look at the future",
            f"another last key changes {by_press:.0%} of the press's scores of earlier tokens and {by_policy:.0%} of "
            "the policy's: queries see keys behind them (causal mask)",
        )

    def _edge(self) -> Reason | None:
        """Scores agree, up to one factor for all heads, except a few tokens from an edge of what is pooled."""
        if "pool_width" not in self.reference.parameters or any(own.scores is None for own, _ in self._pairs()):
            return None
        reach = max(2, int(self.reference.parameters["pool_width"]))
        ends = {self.tokens, self.tokens - int(self.reference.parameters.get("window", 0))}
        edges = {t for end in ends for t in range(end - reach, end)} | set(range(reach))
        recent = self.tokens - min(ends)
        away = set()
        for own, other in self._pairs():
            off = _deviation(own.scores, other.scores, self.tokens - recent)
            away |= {int(token) for token in np.nonzero((off > 64 * NOISE).any(0))[0]}
        if not away or away - edges:
            return None
        return Reason(
            "pooling edge", f"the scores differ at tokens {_some(sorted(away))} alone, where the pooled profile ends"
        )

    def _narrow(self) -> Reason | None:
        """Scores that are off by about as much as the policy's are for tensors rounded to bfloat16."""
        if any(own.scores is None or other.scores is None for own, other in self._pairs()):
            return None
        rounded = [
            dataclasses.replace(t, q=_rounded(t.q), k=_rounded(t.k), v=_rounded(t.v))
            for t in (Tensors.of(layer) for layer in self.layers)
        ]
        narrow = self.policy(rounded).layers
        before = self.tokens - always_kept(self.reference.layers, self.tokens)[1]

        def off(choices: Sequence[Choice]) -> float:
            pairs = zip(choices, self.reference.layers, strict=True)
            return float(np.mean([_deviation(a.scores, b.scores, before).mean() for a, b in pairs]))

        by_press, by_rounding = off(self.own), off(narrow)
        if by_press > MOST_ROUNDINGS * by_rounding:
            return None
        few = all(_has_16_bits(own.scores) for own, _ in self._pairs())
        return Reason(
            "up-cast",
            f"its scores are off by {by_press:.1e} of the largest, those of tensors in bfloat16 by {by_rounding:.1e}"
            + ("; its scores have 16 bits" if few else ""),
        )

    def _parameter(self) -> Reason | None:
        """Another value of one parameter of the policy makes the lists equal."""
        tensors = [Tensors.of(layer) for layer in self.layers]
        for row in policy_parameters(self.spec.partition(":")[0].partition(",")[0]):
            if f",{row['id']}=" in self.spec or row["id"] in ("whole_layers", "file"):
                continue
            for value in row["choices"]:
                if value != self.reference.parameters.get(row["id"]) and self.equal_under(
                    tensors, f",{row['id']}={value}"
                ):
                    return Reason("another parameter", f"the lists are equal under {row['id']}={value}")
        return None

    def _pairs(self) -> Iterator[tuple[Choice, Choice]]:
        return iter(zip(self.own, self.reference.layers, strict=True))


def _span(counts: set[int]) -> str:
    return str(min(counts)) if len(counts) == 1 else f"{min(counts)} to {max(counts)}"


def _some(tokens: list[int]) -> str:
    return ", ".join(map(str, tokens[:8])) + (" ..." if len(tokens) > 8 else "")


def _last_key_enlarged(keys: torch.Tensor) -> torch.Tensor:
    enlarged = keys.clone()
    enlarged[..., -1, :] *= LARGE_KEY
    return enlarged


def _change(before: Sequence[Choice], after: Sequence[Choice], recent: int) -> float:
    """Sum of the changes of a head's scores before the recent tokens, relative to their sum; mean over heads."""
    shares = []
    for one, other in zip(before, after, strict=True):
        assert one.scores is not None and other.scores is not None
        a, b = one.scores[:, :-recent], other.scores[:, :-recent]
        shares += (np.abs(a - b).sum(1) / np.maximum(np.abs(a).sum(1), 1e-30)).tolist()
    return float(np.mean(shares))


def _deviation(own: Numbers | None, other: Numbers | None, tokens: int) -> Numbers:
    """|own - c other| / largest, [Hkv, tokens], where c is the median of own / other."""
    assert own is not None and other is not None
    a, b = own[:, :tokens], other[:, :tokens]
    usable = np.abs(b) > NOISE * max(_largest(b), 1e-30)
    factor = float(np.median(a[usable] / b[usable])) if usable.any() else 1.0
    largest = np.maximum(np.abs(factor * b).max(1, keepdims=True), 1e-30)
    return np.asarray(np.abs(a - factor * b) / largest)


def _rounded(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.bfloat16).to(tensor.dtype)


def _has_16_bits(scores: Numbers | None) -> bool:
    assert scores is not None
    numbers = torch.from_numpy(np.asarray(scores, np.float32))
    return any(bool((numbers == numbers.to(kind).float()).all()) for kind in (torch.bfloat16, torch.float16))


def _rotations(layers: list[LayerInput], window: int) -> Iterator[tuple[str, list[Tensors]]]:
    """Tensors as a port with wrong angles would have them, each with its description."""
    plain = [Tensors.of(layer) for layer in layers]
    if any(layer.call.unrotated is None for layer in layers):
        return
    before = [layer.call.unrotated for layer in layers if layer.call.unrotated is not None]
    replace = dataclasses.replace
    yield "queries before RoPE", [replace(t, q=q) for t, (q, _) in zip(plain, before, strict=True)]
    yield "keys before RoPE", [replace(t, k=k) for t, (_, k) in zip(plain, before, strict=True)]
    yield (
        "queries and keys before RoPE",
        [replace(t, q=q, k=k) for t, (q, k) in zip(plain, before, strict=True)],
    )
    yield "keys after RoPE for keys before it", [replace(t, k_pre=t.k) for t in plain]
    rotations = [find_rotation(layer.call, layer.decoder) for layer in layers]
    if any(map(math.isinf, map(_rotation_error, layers, rotations))):
        return  # angles cannot be shifted where no known rotation fits
    tokens = plain[0].q.shape[1]
    shifts = {-1: "queries one position early", 1: "queries one position late"}
    shifts[window - tokens] = f"queries at positions that begin at the window, {tokens - window} early"
    for shift, words in shifts.items():
        shifted = [_shifted(layer, rotation, shift) for layer, rotation in zip(layers, rotations, strict=True)]
        yield words, [replace(t, q=q) for t, q in zip(plain, shifted, strict=True)]


def _rotation_error(layer: LayerInput, rotation: Rotation) -> float:
    return rotation_difference(layer.call, layer.decoder, rotation, 0)


def _shifted(layer: LayerInput, rotation: Rotation, shift: int) -> torch.Tensor:
    """The layer's queries, rotated to the positions shift .. shift + n - 1, [Hq, n, d]."""
    facts = inverse_frequencies(layer.decoder, layer.call.layer)
    assert facts is not None
    before = rotation.before(layer.call, 0)
    positions = torch.arange(before.shape[1], device=before.device) + shift
    shifted: torch.Tensor = rotation.rotated(before, positions, *facts).to(before.dtype)
    return shifted
