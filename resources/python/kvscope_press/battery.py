"""The battery: published bugs of eviction, each tried on a press that runs in a model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache

from kvscope_capture.attention import decoder_of, logits_of
from kvscope_capture.errors import CaptureError
from kvscope_press.differences import always_kept
from kvscope_press.layer_inputs import Choice, attention, choice_of, read_layers
from kvscope_press.pruned_context import PrunedContext
from kvscope_press.recorded_selection import HeadSelection, RecordedSelection, whole_selection

LENGTHS = (1, 2, 31, 33)
BEHIND = 5  # tokens fed behind the prompt
CLOSE = 1e-3  # of the largest logit, in float32


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of the table: `outcome` is passed, FAILED, note or not tried."""

    name: str
    outcome: str
    words: str


class Battery:
    """A press, a model and a prompt, whose last tokens are fed behind the cache that the press leaves."""

    def __init__(self, model: Any, press: Any, ids: list[int], own: list[Choice], eager: bool) -> None:
        """`own` is what the press keeps of the whole prompt, layer by layer."""
        self.model, self.press, self.ids, self.own, self.eager = model, press, ids, own, eager
        self.cut = len(ids) - BEHIND

    def rows(self) -> list[Row]:
        """All lines, in the order of the manual."""
        tests: list[tuple[str, Callable[[], tuple[str, str]]]] = [
            ("nothing removed changes nothing", self._nothing),
            ("evicted equals hidden, at the same positions", self._hidden),
            ("a budget below one token", self._smallest),
            (f"prompts of {', '.join(map(str, LENGTHS[:-1]))} and {LENGTHS[-1]} tokens", self._lengths),
            ("layers keep equal numbers", self._layers),
            ("the cache shrinks to what is kept", self._bytes),
            ("prompt in two chunks", self._chunks),
            ("first token of an answer", self._first),
            ("protected tokens", self._protected),
            ("ties", self._ties),
            ("two prompts at once", self._batch),
            ("attention sinks of the model", self._sinks),
        ]
        return [Row(name, *self._tried(test)) for name, test in tests]

    def _tried(self, test: Callable[[], tuple[str, str]]) -> tuple[str, str]:
        try:
            return test()
        except CaptureError as error:
            return "FAILED", error.sentence
        except Exception as error:  # the press is other people's code
            return "FAILED", f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"

    def _pruned(self, ratio: float | None, ids: torch.Tensor) -> DynamicCache:
        """The cache that the press leaves of `ids` [batch, n], run as kvpress runs it."""
        cache, press = DynamicCache(), self.press
        before = getattr(press, "compression_ratio", None)
        if ratio is not None:
            press.compression_ratio = ratio
        try:
            with torch.no_grad(), attention(self.model, "eager" if self.eager else "sdpa"), press(self.model):
                decoder_of(self.model)(input_ids=ids, past_key_values=cache, use_cache=True)
        finally:
            if ratio is not None:
                press.compression_ratio = before
        return cache

    def _logits(self, cache: DynamicCache, tokens: list[int], begin: int) -> torch.Tensor:
        ids = torch.tensor([tokens], device=self.model.device)
        positions = torch.arange(begin, begin + len(tokens), device=self.model.device)[None]
        with torch.no_grad(), attention(self.model, "eager" if self.eager else "sdpa"):
            out = decoder_of(self.model)(input_ids=ids, position_ids=positions, past_key_values=cache, use_cache=True)
            return logits_of(self.model, out.last_hidden_state[0])

    def _row(self, ids: list[int]) -> torch.Tensor:
        return torch.tensor([ids], device=self.model.device)

    def _runs(self) -> bool:
        return callable(self.press)

    def _ratio_can_be_set(self) -> bool:
        try:
            self.press.compression_ratio = self.press.compression_ratio
        except AttributeError:  # it has none, or one that can be read only
            return False
        return True

    def _nothing(self) -> tuple[str, str]:
        if not self._runs() or not self._ratio_can_be_set():
            return "not tried", "the press is no context manager with a compression_ratio that can be set"
        context, rest, plain = self._row(self.ids[: self.cut]), self.ids[self.cut :], DynamicCache()
        with torch.no_grad(), attention(self.model, "eager" if self.eager else "sdpa"):
            decoder_of(self.model)(input_ids=context, past_key_values=plain, use_cache=True)
        pruned = self._pruned(0.0, context)
        same = torch.equal(self._logits(plain, rest, self.cut), self._logits(pruned, rest, self.cut))
        return ("passed", "logits equal bit for bit") if same else ("FAILED", "logits differ at compression_ratio 0")

    def _hidden(self) -> tuple[str, str]:
        if not self._runs():
            return "not tried", "the press is no context manager"
        context = self.ids[: self.cut]
        kept = [choice_of(self.press, layer) for layer in read_layers(self.model, context, self.eager)]
        got = self._logits(self._pruned(None, self._row(context)), self.ids[self.cut :], self.cut)
        want = PrunedContext(self.model, self.ids, _selection(kept, self.cut)).extend(self.ids[self.cut :])
        apart = float((got - want).abs().max() / want.abs().max())
        wide = self.model.dtype in (torch.float32, torch.float64)
        if apart < (CLOSE if wide else 0.05):
            return "passed", f"logits of {BEHIND} tokens differ by {apart:.0e} of the largest"
        return "FAILED", f"logits differ by {apart:.1%} of the largest: other positions, or other tokens than it says"

    def _smallest(self) -> tuple[str, str]:
        if not self._ratio_can_be_set():
            return "not tried", "the press has no compression_ratio that can be set"
        ratio = 1 - 0.5 / len(self.ids)
        before, self.press.compression_ratio = self.press.compression_ratio, ratio
        try:
            layers = read_layers(self.model, self.ids, self.eager)
            counts = {len(head) for layer in layers for head in choice_of(self.press, layer).kept}
        finally:
            self.press.compression_ratio = before
        return ("passed" if min(counts) else "FAILED"), f"keeps {min(counts)} to {max(counts)} of {len(self.ids)}"

    def _lengths(self) -> tuple[str, str]:
        stopped, words = [], ""
        for length in LENGTHS:
            try:
                for layer in read_layers(self.model, self.ids[:length], self.eager):
                    if not all(choice_of(self.press, layer).kept):
                        raise CaptureError("nothing is kept")
            except CaptureError as error:
                stopped.append(length)
                words = error.sentence
        if not stopped:
            return "passed", "runs and keeps something at each"
        return "note", f"stops at {', '.join(map(str, stopped))} tokens ({words})"

    def _layers(self) -> tuple[str, str]:
        counts = {len(head) for choice in self.own for head in choice.kept}
        if len(counts) == 1:
            return "passed", f"{min(counts)} tokens in every layer and head"
        return "note", (
            f"{min(counts)} to {max(counts)} tokens: Transformers makes one mask for all layers, so a question of more "
            "than one token needs kvscope_press.PrunedContext"
        )

    def _bytes(self) -> tuple[str, str]:
        if not self._runs():
            return "not tried", "the press is no context manager"
        cache = self._pruned(None, self._row(self.ids))
        held = sum(layer.keys.shape[1] * layer.keys.shape[2] for layer in cache.layers)
        kept = sum(len(head) for choice in self.own for head in choice.kept)
        if held == kept:
            return "passed", f"{held} rows of keys"
        return "note", f"the cache holds {held} rows, {kept} are kept: no memory is saved by what is only masked"

    def _chunks(self) -> tuple[str, str]:
        if not self._runs():
            return "not tried", "the press is no context manager"
        cache, middle = DynamicCache(), len(self.ids) // 2
        with torch.no_grad(), attention(self.model, "eager" if self.eager else "sdpa"), self.press(self.model):
            for part in (self.ids[:middle], self.ids[middle:]):
                decoder_of(self.model)(input_ids=self._row(part), past_key_values=cache, use_cache=True)
        held = max(layer.keys.shape[2] for layer in cache.layers)
        whole = max(len(head) for choice in self.own for head in choice.kept)
        if held <= whole:
            return "note", "pruned after each chunk: scores of the first never saw later queries (simulated)"
        return "note", f"holds {held} tokens where the prompt in one piece leaves {whole}: read prompts in one piece"

    def _first(self) -> tuple[str, str]:
        return "note", "predicted before anything is evicted if the cut lies behind the question: count from the second"

    def _protected(self) -> tuple[str, str]:
        first, last = always_kept(self.own, len(self.ids))
        return "note", f"the first {first} and the last {last} tokens in every head; a system prompt behind them can go"

    def _ties(self) -> tuple[str, str]:
        tables = [choice.scores for choice in self.own]
        if any(table is None for table in tables):
            return "not tried", "the press has no score()"
        share = {kind: _tied(tables, kind) for kind in (torch.float32, torch.bfloat16)}
        return "note", f"{share[torch.float32]:.0%} of the scores tie, {share[torch.bfloat16]:.0%} rounded to bfloat16"

    def _batch(self) -> tuple[str, str]:
        if not self._runs():
            return "not tried", "the press is no context manager"
        alone = self._pruned(None, self._row(self.ids))
        both = self._pruned(None, torch.tensor([self.ids, self.ids[::-1]], device=self.model.device))
        for one, two in zip(alone.layers, both.layers, strict=True):
            kept, wanted = (_row_set(cache.keys[0]) for cache in (two, one))
            if kept != wanted:
                return "FAILED", "the first of two prompts keeps other tokens than alone: feed one prompt at a time"
        return "passed", "the first of two prompts of equal length keeps what it keeps alone; padding was not tried"

    def _sinks(self) -> tuple[str, str]:
        sinks = any(layer.call.sinks is not None for layer in read_layers(self.model, self.ids[:2], self.eager))
        return "note", "softmax has a further term that the press must count" if sinks else "the model has none"


def _row_set(keys: torch.Tensor) -> list[set[tuple[float, ...]]]:
    """Keys of every head, rounded, because a batch sums in another order."""
    return [{tuple(np.round(row, 2).tolist()) for row in head.float().cpu().numpy()} for head in keys]


def _tied(tables: list[Any], kind: torch.dtype) -> float:
    tied, count = 0, 0
    for table in tables:
        for row in torch.from_numpy(table).to(kind).float():
            _, counts = torch.unique(row, return_counts=True)
            tied, count = tied + int(counts[counts > 1].sum()), count + len(row)
    return tied / count


def _selection(choices: list[Choice], cut: int) -> RecordedSelection:
    heads = {}
    for layer, choice in enumerate(choices):
        for head, kept in enumerate(choice.kept):
            ones = np.ones(len(kept), np.float32)
            heads[layer, head] = HeadSelection(np.asarray(kept, np.int64), ones, ones)
    return dataclasses.replace(whole_selection(len(choices), len(choices[0].kept), cut), heads=heads)
