"""Losses and text behind a context, with the full cache and under policies, which share every pass of the model."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from kvscope_capture.attention import logits_of
from kvscope_live.contexts import LiveContext
from kvscope_live.selections import Selection, kept_bytes, pruned_layer
from kvscope_press.pruned_context import CachedContext

Numbers = npt.NDArray[np.float64]
REMEMBERED = 64  # results of the full cache
Told = Callable[[int, int, int, str], None]  # row, index, token, text


@dataclasses.dataclass(frozen=True)
class Scored:
    """Of each answer token: loss, KL to the full cache, another first choice; NaN where predicted before pruning."""

    losses: Numbers
    kl: Numbers
    flips: npt.NDArray[np.bool_]

    def as_json(self) -> dict[str, Any]:
        """As `answer/score` answers; means over the tokens behind the first one behind the cut."""
        counted = ~np.isnan(self.losses)
        return {
            "nll": _mean(self.losses[counted]),
            "losses": _listed(self.losses),
            "kl": _listed(self.kl),
            "kl_mean": _mean(self.kl[counted]),
            "flips": [bool(flip) if known else None for flip, known in zip(self.flips, counted, strict=True)],
            "flip_rate": _mean(self.flips[counted].astype(float)),
        }


def _mean(values: Numbers) -> float | None:
    return float(values.mean()) if values.size else None


def _listed(values: Numbers) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


class Answers:
    """Answers of one context; what the full cache says is remembered."""

    def __init__(self, context: LiveContext) -> None:
        """Nothing is computed yet."""
        self.context, self.model = context, context.opened.model
        self._full_logits: collections.OrderedDict[str, torch.Tensor] = collections.OrderedDict()
        self._full_text: collections.OrderedDict[str, list[int]] = collections.OrderedDict()

    def bytes_of(self, selection: Selection | None) -> int:
        """Bytes of the keys and values that stay."""
        whole = Selection("", {}, self.context.shape())
        return kept_bytes(selection or whole, self.context.calls[0])

    def batch(self, selections: Sequence[Selection]) -> CachedContext:
        """The selections' caches, with nothing behind the cut."""
        layers = {call.layer: pruned_layer(call, selections) for call in self.context.calls}
        return CachedContext(self.model, self.context.cut, layers, self.context.last_logits)

    def score(
        self, selections: Sequence[Selection | None], question: list[int], answer: list[int]
    ) -> tuple[list[Scored], Scored]:
        """Rows in the order of `selections` (None: the full cache), and the full cache's.

        Teacher forcing: the answer's own tokens are given. The first token behind the cut is predicted from the
        unpruned context, because pruning happens after the context was read, and counts nowhere.
        """
        full = self._full(question, answer)
        skip = 0 if question else 1
        own = self._scored(full, full, answer, skip)
        pruned = [s for s in selections if s is not None and not s.is_whole()]
        rows: dict[str, Scored] = {}
        if pruned and len(answer) > skip:
            cache = self.batch(pruned)
            hidden = cache.extend_rows([question + answer[:-1]] * len(pruned))[:, max(0, len(question) - 1) :]
            for selection, states in zip(pruned, hidden, strict=True):
                with torch.no_grad():
                    rows[selection.id] = self._scored(logits_of(self.model, states), full, answer, skip)
        elif pruned:
            rows = {selection.id: own for selection in pruned}
        return [own if s is None or s.is_whole() else rows[s.id] for s in selections], own

    def _full(self, question: list[int], answer: list[int]) -> torch.Tensor:
        """Logits [answer tokens that count, vocabulary] of the full cache."""
        key = repr((question, answer))
        if key not in self._full_logits:
            tokens = question + answer[:-1] if answer else []
            logits = self.context.last_logits[None][:0]
            if tokens:
                hidden = self.context.whole_cache().extend_rows([tokens])[0, max(0, len(question) - 1) :]
                with torch.no_grad():
                    logits = logits_of(self.model, hidden)
            _remember(self._full_logits, key, logits)
        return self._full_logits[key]

    def _scored(self, logits: torch.Tensor, full: torch.Tensor, answer: list[int], skip: int) -> Scored:
        count = len(answer)
        losses, kl, flips = np.full(count, np.nan), np.full(count, np.nan), np.zeros(count, bool)
        if count > skip:
            target = torch.tensor(answer[skip:], device=logits.device)
            losses[skip:] = torch.nn.functional.cross_entropy(logits, target, reduction="none").cpu().numpy()
            p, s = torch.log_softmax(full, -1), torch.log_softmax(logits, -1)
            kl[skip:] = (p.exp() * (p - s)).nan_to_num(0.0).double().sum(-1).clamp_min(0).cpu().numpy()
            flips[skip:] = (logits.argmax(-1) != full.argmax(-1)).cpu().numpy()
        return Scored(losses, kl, flips)

    def generate(
        self, selections: Sequence[Selection | None], question: list[int], sampling: Sampling, most: int, told: Told
    ) -> tuple[list[list[int]], list[int]]:
        """Tokens of each row and of the full cache, ending before the model's end of text.

        All rows advance in step and draw with the same random numbers: they part only where the model does.
        """
        key = repr((question, sampling, most))
        if key not in self._full_text:
            _remember(
                self._full_text, key, self._continue(self.context.whole_cache(), 1, question, sampling, most, None)[0]
            )
        full = self._full_text[key]
        pruned = [i for i, s in enumerate(selections) if s is not None and not s.is_whole()]
        rows: list[list[int]] = [full] * len(selections)
        for row in range(len(selections)):
            if row not in pruned:
                for index, token in enumerate(full):
                    told(row, index, token, self._text(full, index))
        if pruned:
            caches = self.batch([s for s in (selections[i] for i in pruned) if s is not None])
            found = self._continue(
                caches, len(pruned), question, sampling, most, lambda row, *rest: told(pruned[row], *rest)
            )
            for row, ids in zip(pruned, found, strict=True):
                rows[row] = ids
        return rows, full

    def _continue(
        self, cache: CachedContext, rows: int, question: list[int], sampling: Sampling, most: int, told: Told | None
    ) -> list[list[int]]:
        ends = end_tokens(self.model, self.context.opened.tokenizer)
        written: list[list[int]] = [[] for _ in range(rows)]
        open_rows = set(range(rows))
        logits = self._last(cache, [question] * rows) if question else cache.last_logits.expand(rows, -1)
        draws = sampling.draws(most)
        for index in range(most):
            tokens = [sampling.choose(row, draws[index]) for row in logits]
            open_rows -= {row for row in open_rows if tokens[row] in ends}
            for row in sorted(open_rows):
                written[row].append(tokens[row])
                if told:
                    told(row, index, tokens[row], self._text(written[row], index))
            if not open_rows or index + 1 == most:
                break
            logits = self._last(cache, [[token] for token in tokens])
        return written

    def _last(self, cache: CachedContext, ids: list[list[int]]) -> torch.Tensor:
        with torch.no_grad():
            return logits_of(self.model, cache.extend_rows(ids)[:, -1])

    def _text(self, ids: list[int], index: int) -> str:
        """What token `index` adds; a character that is not whole yet comes with the token that ends it."""
        decode = self.context.opened.tokenizer.decode
        before, now = str(decode(ids[:index])).rstrip("\ufffd"), str(decode(ids[: index + 1]))
        return now[len(before) :] if not now.endswith("\ufffd") else ""


@dataclasses.dataclass(frozen=True)
class Sampling:
    """Temperature 0 takes the most probable token, the first of several."""

    temperature: float = 0.0
    seed: int = 0

    def draws(self, count: int) -> list[float]:
        """A number in [0, 1) for each token, the same for all rows."""
        generator = torch.Generator().manual_seed(self.seed)
        numbers: list[float] = torch.rand(count, generator=generator, dtype=torch.float64).tolist()
        return numbers

    def choose(self, logits: torch.Tensor, draw: float) -> int:
        """The token at which the cumulative probability passes `draw`."""
        if self.temperature <= 0:
            return int(logits.argmax())
        chances = torch.softmax(logits.double().cpu() / self.temperature, -1).cumsum(-1)
        return min(int((chances <= draw * float(chances[-1])).sum()), len(chances) - 1)


def end_tokens(model: Any, tokenizer: Any) -> set[int]:
    """Tokens at which the model's own `generate` ends."""
    given = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    if given is None:
        given = getattr(tokenizer, "eos_token_id", None)
    return {int(token) for token in (given if isinstance(given, list | tuple) else [given]) if token is not None}


def first_divergence(ids: list[int], full: list[int]) -> int | None:
    """The first index at which two texts differ, one of them may end there; None where they are equal."""
    pairs = zip(ids, full, strict=False)
    differing = next((i for i, (own, other) in enumerate(pairs) if own != other), min(len(ids), len(full)))
    return None if ids == full else differing


def _remember(results: collections.OrderedDict[str, Any], key: str, value: Any) -> None:
    results[key] = value
    while len(results) > REMEMBERED:
        results.popitem(last=False)
