"""Reads a `kvscope-selection` that `kvscope evict` writes, or that anybody else wrote."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from kvscope_capture.attention import sliding_window_of
from kvscope_capture.errors import CaptureError
from kvscope_press.list_formats import read_fields

Indices = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float32]


@dataclasses.dataclass(frozen=True)
class HeadSelection:
    """Kept tokens [m] ascending, and their weights [m] in the numerator and denominator of the estimator.

    Weighted attention: sum_i num_i e^{l_i} v_i / sum_i den_i e^{l_i} (BalanceKV, SubGen). A token that takes no part in
    one of the sums has weight 0 there. Where query heads of the group keep sets of their own (SnapKV's original),
    `query_heads` has the set of every query head, without weights, and `kept` is their union.
    """

    kept: Indices
    numerator: Weights
    denominator: Weights
    query_heads: Mapping[int, Indices] = dataclasses.field(default_factory=dict)

    def attended(self) -> float:
        """Tokens that a query head attends to, mean over the group."""
        return float(np.mean([own.size for own in self.query_heads.values()])) if self.query_heads else self.kept.size

    def stored(self) -> int:
        """Rows in the cache: where query heads have sets of their own, each set is stored."""
        if self.query_heads:
            return sum(own.size for own in self.query_heads.values())
        return int(((self.numerator > 0) | (self.denominator > 0)).sum())

    def is_whole(self, tokens: int) -> bool:
        """Whether nothing is evicted and nothing weighted."""
        sets = [own.size for own in self.query_heads.values()] or [self.kept.size]
        return set(sets) == {tokens} and bool((self.numerator == 1).all() and (self.denominator == 1).all())

    def of_query_head(self, query_head: int) -> HeadSelection:
        """What one query head of the group attends to."""
        if not self.query_heads:
            return self
        own = self.query_heads[query_head]
        return HeadSelection(own, np.ones(own.size, np.float32), np.ones(own.size, np.float32))


@dataclasses.dataclass(frozen=True)
class RecordedSelection:
    """One policy's choice for the tokens before `cut`, by (layer, KV head)."""

    path: str
    policy: str
    variant: str
    parameters: Mapping[str, str]
    budget: str
    cut: int
    capture_hash: str
    simulated: bool
    heads: Mapping[tuple[int, int], HeadSelection]
    seed: str = ""
    arithmetic: str = ""  # how the policy's numbers were summed where that was not exact
    capture_warning: str = ""

    def digest(self) -> str:
        """16 hexadecimal digits of what every head keeps, with which weights; lists of two seeds differ in it."""
        digest = hashlib.sha256()
        for place, head in sorted(self.heads.items()):
            for part in (head.kept, head.numerator, head.denominator):
                digest.update(f"{place} {part.size} ".encode() + part.tobytes())
            for query_head, own in sorted(head.query_heads.items()):
                digest.update(f"{query_head} {own.size} ".encode() + own.tobytes())
        return digest.hexdigest()[:16]

    def retention(self, model_heads: int = 0) -> float:
        """Share of the tokens before the cut that a query head attends to, mean over the heads in the list.

        Over all `model_heads` where that is given: heads that the list does not name keep everything.
        """
        whole = max(0, model_heads - len(self.heads))
        attended = [head.attended() for head in self.heads.values()] + [float(self.cut)] * whole
        return float(np.mean(attended) / self.cut)


def refuse_reassigned(selection: RecordedSelection) -> None:
    """Errors (CaptureError): a list whose policy re-assigns positions inside the cache (L6), which the model keeps."""
    if selection.parameters.get("positions") == "rerotated":
        raise CaptureError(
            "the list's policy re-assigns positions inside the cache, and the model keeps them",
            selection.path,
            "Evict with positions=kept",
        )


def refuse_window(config: Any, layer: int, path: str) -> None:
    """Errors (CaptureError): a layer whose window is shorter than the model's longest prompt.

    In a shortened cache a token's slot is not its position, so that the window would include tokens outside of it.
    """
    window, longest = sliding_window_of(config, layer), getattr(config, "max_position_embeddings", None)
    if window and (longest is None or window < longest):
        raise CaptureError(
            f"layer {layer} has a sliding window of {window} tokens, which a shortened cache counts by its slots",
            path,
            "Use kvscope_press.PrunedContext, which masks by positions",
        )


def whole_selection(layers: int, kv_heads: int, cut: int) -> RecordedSelection:
    """Every token of every head: the full cache."""
    everything = HeadSelection(np.arange(cut), np.ones(cut, np.float32), np.ones(cut, np.float32))
    heads = {(layer, head): everything for layer in range(layers) for head in range(kv_heads)}
    return RecordedSelection("", "exact", "all", {}, "1", cut, "", False, heads)


def read_selection(path: pathlib.Path, cut: int | None = None) -> RecordedSelection:
    """Reads a list; `cut` serves lists that do not carry `cut_token`.

    Errors (CaptureError): neither JSON nor CSV nor HDF5, another format or version, no cut, indices that do not rise or
    lie behind the cut, weights of another length, `simulated` neither true nor false.
    """
    data = read_fields(path)
    if not isinstance(data, dict) or (data.get("format"), data.get("version")) != ("kvscope-selection", 1):
        raise CaptureError("is no kvscope-selection of version 1", str(path), "Write it with kvscope evict")
    cut = int(data.get("cut_token") or cut or 0)
    if cut < 1:
        raise CaptureError("does not say before which token it was made", f"{path}: cut_token", "Add --cut TOKEN")
    try:
        heads = {(int(h["layer"]), int(h["kv_head"])): _head(h, cut) for h in data["heads"]}
    except (KeyError, TypeError, ValueError) as error:
        raise CaptureError(f"a head cannot be read ({error})", f"{path}: heads", "Write the list again") from error
    if not heads:
        raise CaptureError("names no heads", f"{path}: heads", "Write the list again")
    arithmetic = str(data.get("arithmetic") or "")
    return RecordedSelection(
        path=str(path),
        policy=str(data.get("policy") or "recorded"),
        variant=str(data.get("variant") or "recorded"),
        parameters={str(k): as_text(v) for k, v in (data.get("parameters") or {}).items()},
        budget=as_text((data.get("budget") or {}).get("requested", "")),
        cut=cut,
        capture_hash=str((data.get("capture") or {}).get("hash", "")),
        simulated=_truth(data.get("simulated"), path, "simulated"),
        heads=heads,
        seed=as_text("" if data.get("seed") is None else data["seed"]),
        arithmetic="" if arithmetic.startswith("exact") else arithmetic,
        capture_warning=str((data.get("capture") or {}).get("warning") or ""),
    )


def _truth(value: Any, path: pathlib.Path, name: str) -> bool:
    """A truth value as programs write it into any form: true, True or 1, false, False or 0; false where it is missing.

    Errors (CaptureError): another value.
    """
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    if text not in ("true", "True", "1", "false", "False", "0", "None"):
        raise CaptureError(f"{text!r} is neither true nor false", f"{path}: {name}", "Write true or false")
    return text in ("true", "True", "1")


def as_text(value: Any) -> str:
    """A parameter as it is typed in a policy: lists hold 32 and true, those of earlier versions "32" and "true"."""
    return value if isinstance(value, str) else json.dumps(value)


def _indices(given: Any, cut: int) -> Indices:
    kept = np.asarray(given, np.int64)
    if kept.ndim != 1 or (np.diff(kept) <= 0).any():
        raise ValueError("kept does not rise")
    if kept.size and (kept[0] < 0 or kept[-1] >= cut):
        raise ValueError(f"kept names a token outside the {cut} before the cut")
    return kept


def _query_heads(data: Mapping[str, Any], kept: Indices, cut: int) -> dict[int, Indices]:
    listed = data.get("query_heads") or []
    sets = {int(own["query_head"]): _indices(own["kept"], cut) for own in listed}
    if len(sets) != len(listed):
        raise ValueError("a query head has two sets")
    if sets and data.get("weights"):
        raise ValueError("query heads have sets of their own beside weights")
    if sets and not np.array_equal(np.unique(np.concatenate(list(sets.values()))), kept):
        raise ValueError("kept is not the union of the query heads' sets")
    return sets


def _head(data: Mapping[str, Any], cut: int) -> HeadSelection:
    kept = _indices(data["kept"], cut)
    weights = data.get("weights") or {}
    numerator, denominator = (
        np.asarray(weights.get(name) or np.ones(kept.size), np.float32) for name in ("numerator", "denominator")
    )
    for values in (numerator, denominator):
        if values.shape != kept.shape or not np.isfinite(values).all() or (values < 0).any():
            raise ValueError("weights must be one number of at least 0 for each kept token")
    return HeadSelection(kept, numerator, denominator, _query_heads(data, kept, cut))
