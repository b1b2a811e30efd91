"""Losses and text behind a context, with the full cache and under policies, which share every pass of the model."""

from __future__ import annotations

import collections
import dataclasses
import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from kvscope_live.contexts import LiveContext
from kvscope_live.errors import LiveError, not_finite
from kvscope_live.remembered import Remembered
from kvscope_live.selections import Selection, kept_bytes, pruned_layer
from kvscope_live.writing import Sampling, Told, Writer, decoder, logits_at
from kvscope_press.pruned_context import CachedContext

Numbers = npt.NDArray[np.float64]
REMEMBERED, FULL, DRAFTS = 1024, 2, 16  # cached: row results, logits of the full cache, drafts
LOGITS = 1 << 25  # in memory at once; more policies are scored in groups


@dataclasses.dataclass(frozen=True)
class Scored:
    """Of each answer token: loss, KL divergence from the full cache, whether the most probable token is another.

    Loss and KL are NaN where the token was predicted before pruning.
    """

    losses: Numbers
    kl: Numbers
    flips: npt.NDArray[np.bool_]

    def is_finite(self, skip: int) -> bool:
        """Whether all numbers behind the first `skip` are finite; NaN there would read as predicted before pruning."""
        return bool(np.isfinite(self.losses[skip:]).all() and np.isfinite(self.kl[skip:]).all())

    def as_json(self) -> dict[str, Any]:
        """The row of `answer/score`; means leave out a token that was predicted before pruning."""
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


@dataclasses.dataclass
class Asked:
    """The caches of P policies that have read a question; `logits` [P, vocabulary] behind it."""

    key: str
    cache: CachedContext
    logits: torch.Tensor


class Answers:
    """Answers of one context. Each row is computed once: when a slider moves, the other rows come from a cache."""

    def __init__(self, context: LiveContext) -> None:
        """Nothing is computed yet."""
        self.context, self.model = context, context.opened.model
        self._full_logits, self._scores, self._texts = Remembered(FULL), Remembered(REMEMBERED), Remembered(REMEMBERED)
        self._drafts: collections.deque[tuple[str, Selection, list[int]]] = collections.deque(maxlen=DRAFTS)
        self._asked: Asked | None = None  # the latest batch

    def bytes_of(self, selection: Selection | None) -> int:
        """Bytes of the keys and values that stay."""
        whole = Selection("", {}, self.context.shape())
        return kept_bytes(selection or whole, self.context.calls[0])

    def batch(self, selections: Sequence[Selection]) -> CachedContext:
        """The selections' caches, with nothing behind the cut."""
        return self.context.cache({call.layer: pruned_layer(call, selections) for call in self.context.calls})

    def score(
        self, selections: Sequence[Selection | None], question: list[int], answer: list[int]
    ) -> tuple[list[Scored | LiveError], Scored]:
        """Rows in the order of `selections` (None: the full cache), or why one has no numbers; the full cache's row.

        Teacher forcing: the answer's own tokens are given. The first token behind the cut is predicted from the
        unpruned context, because pruning happens after the context was read, and is left out.
        Errors (LiveError): the full cache's numbers are not finite.
        """
        full = self._full(question, answer)
        skip = 0 if question else 1
        own = self._scored(full[None], full, answer, skip)[0]
        if not own.is_finite(skip):
            raise not_finite("the loss of the expected answer behind the full cache")
        key = _key(question, answer)
        counts = len(answer) > skip
        missing = {s.id: s for s in selections if s and not s.is_whole and not self._scores.has(key + s.id)}
        if missing and counts:
            self._asked = None  # frees its rows before others are gathered
            cache = self.batch(list(missing.values()))
            hidden = cache.extend_rows([question + answer[:-1]] * len(missing))[:, max(0, len(question) - 1) :]
            firsts, scored = [], []
            for group in torch.split(hidden, max(1, LOGITS // full.numel())):
                logits = logits_at(self.model, group)
                firsts.append(logits[:, 0].clone())
                scored += self._scored(logits, full, answer, skip)
            for name, row in zip(missing, scored, strict=True):
                if row.is_finite(skip):
                    self._scores.put(key + name, row)
            if question:
                self._asked = Asked(_key(question, list(missing)), cache, torch.cat(firsts))
        names = ["" if s is None or s.is_whole or not counts else key + s.id for s in selections]
        bad = not_finite("the loss of the expected answer")
        return [self._scores.get(name, bad) if name else own for name in names], own

    def _full(self, question: list[int], answer: list[int]) -> torch.Tensor:
        """Logits [answer tokens that count, vocabulary] of the full cache."""
        key = _key(question, answer)
        if not self._full_logits.has(key):
            tokens = question + answer[:-1] if answer else []
            logits = self.context.last_logits[None][:0]
            if tokens:
                hidden = self.context.whole_cache().extend_rows([tokens])[:, max(0, len(question) - 1) :]
                logits = logits_at(self.model, hidden)[0]
            self._full_logits.put(key, logits)
        found: torch.Tensor = self._full_logits[key]
        return found

    def _scored(self, logits: torch.Tensor, full: torch.Tensor, answer: list[int], skip: int) -> list[Scored]:
        """Of each row of `logits` [P, tokens that count, vocabulary]."""
        losses, kl = np.full((2, len(logits), len(answer)), np.nan)
        flips = np.zeros(losses.shape, bool)
        if len(answer) > skip:
            target = torch.tensor(answer[skip:], device=logits.device)
            p, s = torch.log_softmax(full, -1), torch.log_softmax(logits, -1)
            losses[:, skip:] = -s[:, torch.arange(len(target)), target].cpu().numpy()
            chances = p.exp()
            rises = torch.sub(p, s, out=s).mul_(chances)  # in place: these are the largest tensors
            if (never := chances == 0).any():
                rises.masked_fill_(never, 0.0)  # 0 log 0 is 0
            kl[:, skip:] = rises.sum(-1, dtype=torch.float64).clamp_min(0).cpu().numpy()
            flips[:, skip:] = (logits.argmax(-1) != full.argmax(-1)).cpu().numpy()
        return [Scored(*row) for row in zip(losses, kl, flips, strict=True)]

    def generate(
        self, selections: Sequence[Selection | None], question: list[int], sampling: Sampling, most: int, told: Told
    ) -> tuple[list[list[int] | LiveError], list[int]]:
        """Tokens of each row, or why it has none, and of the full cache, ending before the model's end of text.

        The draft of a row is the text written behind the most similar selection, if both share half of what they
        keep; before any such text, that of the full cache. Recent texts also serve for guesses.
        Errors (LiveError): the full cache's logits are not finite.
        """
        key = _key(question, sampling, most)
        if not self._texts.has(key):
            whole = Writer(self.context, self.context.whole_cache(), question, sampling, most)
            text = whole.write(self._read(whole.cache, question, 1), [], None)[0]
            if isinstance(text, LiveError):
                raise text
            self._texts.put(key, text)
        full: list[int] = self._texts[key]
        names = [s.id if s and not s.is_whole else "" for s in selections]
        missing = {s.id: s for s in selections if s and s.id in names and not self._texts.has(key + s.id)}
        places = [[row for row, name in enumerate(names) if name == one] for one in missing]
        decode = decoder(self.context.opened.tokenizer)
        for row, name in enumerate(names):
            for index in range(len(self._texts[key + name]) if name not in missing else 0):
                told(row, index, self._texts[key + name][index], decode(self._texts[key + name], index))

        def tell(one: int, index: int, token: int, text: str) -> None:
            for row in places[one]:
                told(row, index, token, text)

        failed: dict[str, LiveError] = {}
        if missing:
            drafts = [self._draft(key, selection, full) for selection in missing.values()]
            asked = self._ask(missing, question)
            writer = Writer(self.context, asked.cache, question, sampling, most)
            writer.see([full, *(ids for _, _, ids in self._drafts)])
            for selection, ids in zip(missing.values(), writer.write(asked.logits, drafts, tell), strict=True):
                if isinstance(ids, LiveError):
                    failed[selection.id] = ids
                    continue
                self._texts.put(key + selection.id, ids)
                self._drafts.append((key, selection, ids))
        return [failed[name] if name in failed else self._texts[key + name] for name in names], full

    def _draft(self, key: str, selection: Selection, full: list[int]) -> list[int]:
        near = [(selection.distance(other), ids) for asked, other, ids in self._drafts if asked == key]
        distance, draft = min(near, key=lambda pair: pair[0], default=(0, full))
        return draft if distance <= selection.stored else []

    def _ask(self, selections: dict[str, Selection], question: list[int]) -> Asked:
        """The selections' caches behind the question; those of `score`, if it was asked for the same."""
        key = _key(question, list(selections))
        if self._asked is None or self._asked.key != key:
            self._asked = None
            cache = self.batch(list(selections.values()))
            self._asked = Asked(key, cache, self._read(cache, question, len(selections)))
        return self._asked

    def _read(self, cache: CachedContext, question: list[int], rows: int) -> torch.Tensor:
        """Logits [P, vocabulary] behind the question."""
        if not question:
            return cache.last_logits.expand(rows, -1)
        return logits_at(self.model, cache.extend_rows([question] * rows)[:, -1:])[:, 0]


def _key(*parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()
