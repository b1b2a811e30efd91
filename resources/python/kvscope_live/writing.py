"""Text of several rows that advance in step, greedy or sampled; drafts let one pass of the model check many tokens."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from kvscope_capture.attention import logits_of
from kvscope_live.contexts import LiveContext
from kvscope_live.errors import LiveError, not_finite
from kvscope_press.measuring import end_tokens
from kvscope_press.pruned_context import CachedContext, rotates_by_length

Told = Callable[[int, int, int, str], None]  # row, index, token, text
DRAFT = 32  # tokens in one pass
LOOKED_UP = 3  # tokens that are guessed from the prompt and from other texts
MARGIN, MARGIN_16 = 1e-3, 0.5  # a smaller lead of the likeliest logit may be rounding, which depends on a pass's length


@dataclasses.dataclass(frozen=True)
class Sampling:
    """Temperature 0 takes the most probable token, the first of several equal ones."""

    temperature: float = 0.0
    seed: int = 0

    def draws(self, count: int) -> list[float]:
        """A number in [0, 1) for each token, the same for all rows."""
        generator = torch.Generator().manual_seed(self.seed)
        numbers: list[float] = torch.rand(count, generator=generator, dtype=torch.float64).tolist()
        return numbers

    def choose(self, logits: torch.Tensor, draw: float) -> int:
        """The token at which the cumulative probability passes `draw`.

        Errors (LiveError): the largest logit is not finite, so that no choice has a meaning.
        """
        best = int(logits.argmax())
        if not math.isfinite(logits[best]):
            raise not_finite("a logit of the model")
        if self.temperature <= 0:
            return best
        below = logits.double().cpu() - float(logits[best])  # first, as logits / temperature could overflow
        chances = torch.softmax(below / self.temperature, -1).cumsum(-1)
        return min(int((chances <= draw * float(chances[-1])).sum()), len(chances) - 1)


def first_divergence(ids: list[int], full: list[int]) -> int | None:
    """The first index at which two texts differ, where one of them may end; None where they are equal."""
    pairs = zip(ids, full, strict=False)
    differing = next((i for i, (own, other) in enumerate(pairs) if own != other), min(len(ids), len(full)))
    return None if ids == full else differing


def decoder(tokenizer: Any) -> Callable[[list[int], int], str]:
    """A function of `ids` and `index`: the text that this token adds. A character comes with its last token."""

    @functools.lru_cache(maxsize=64)
    def decoded(*ids: int) -> str:
        return str(tokenizer.decode(list(ids)))

    def text(ids: list[int], index: int) -> str:
        before, now = (decoded(*ids[:end]) for end in (index, index + 1))
        return now[len(before.rstrip("\ufffd")) :] if not now.endswith("\ufffd") else ""

    return text


def logits_at(model: Any, hidden: torch.Tensor) -> torch.Tensor:
    """Logits [P, T, vocabulary] of hidden states [P, T, hidden]."""
    with torch.no_grad():
        return logits_of(model, hidden.flatten(0, 1)).view(*hidden.shape[:2], -1)


class Writer:
    """Writes at most `most` tokens in each row behind a question that `cache` has read."""

    def __init__(
        self, context: LiveContext, cache: CachedContext, question: list[int], sampling: Sampling, most: int
    ) -> None:
        """All rows draw with the same random numbers, so that they differ only where their logits do."""
        self.cache, self.sampling, self.most, self.begin = cache, sampling, most, len(question)
        self.model, self.decode = context.opened.model, decoder(context.opened.tokenizer)
        self.ends = end_tokens(self.model, context.opened.tokenizer)
        self.draws = sampling.draws(most)
        self.seen = np.array(context.ids + question, np.int64)
        self.margin = MARGIN if self.model.dtype.itemsize > 2 else MARGIN_16
        self.longest = 1 if rotates_by_length(self.model) else DRAFT  # tokens in one pass

    def see(self, texts: Sequence[list[int]]) -> None:
        """Adds texts that the rows may repeat, the likeliest last."""
        self.seen = np.append(self.seen, np.array(sum(texts, []), self.seen.dtype))

    def write(
        self, logits: torch.Tensor, drafts: Sequence[list[int]], told: Told | None
    ) -> list[list[int] | LiveError]:
        """Rows of tokens, ending before the end of text; `logits` [P, vocabulary] behind the question.

        A row whose logits are not finite ends, and the others go on. A draft is a guess at the row's text. Greedy rows
        feed it to the model with their own tokens, up to the first token that the model chooses otherwise. Where the
        two likeliest tokens are too close for a pass over many tokens, a pass over one token decides.
        """
        known: list[list[int]] = [[] for _ in logits]  # an end token may be the last
        written: list[list[int]] = [[] for _ in known]
        failed: dict[int, LiveError] = {}
        for row, own in enumerate(logits):
            try:
                known[row].append(self.sampling.choose(own, self.draws[0]))
            except LiveError as error:
                failed[row] = error

        def goes_on(row: int) -> bool:
            return row not in failed and self._tell(row, known[row], written[row], told)

        drafts = drafts if self.sampling.temperature <= 0 and drafts else [[]] * len(known)
        fed, most = 0, self.longest
        while waiting := [row for row in range(len(known)) if goes_on(row)]:
            fed = min(len(known[row]) for row in waiting) - 1
            self.cache.keep(self.begin + fed)
            blocks = [self._block(tokens, draft, fed)[:most] for tokens, draft in zip(known, drafts, strict=True)]
            size = max(len(blocks[row]) for row in waiting if len(known[row]) == fed + 1)  # those ahead wait
            hidden = self.cache.extend_rows([(block + [0] * size)[:size] for block in blocks])
            logits = logits_at(self.model, hidden)
            sure = (logits.topk(2).values.diff().abs()[..., 0] > self.margin) | (size == 1)
            most = self.longest
            for row in waiting:
                try:
                    if not self._accept(known[row], blocks[row], fed, logits[row], sure[row].tolist()):
                        most = 1
                except LiveError as error:
                    failed[row] = error
        return [failed.get(row, text) for row, text in enumerate(written)]

    def _tell(self, row: int, known: list[int], written: list[int], told: Told | None) -> bool:
        """Writes what is known, and says whether the row goes on."""
        for token in known[len(written) : self.most]:
            if token in self.ends:
                return False
            written.append(token)
            if told:
                told(row, len(written) - 1, token, self.decode(written, len(written) - 1))
        return len(written) < self.most

    def _block(self, known: list[int], draft: list[int], fed: int) -> list[int]:
        """The next tokens of a row: what is known, and the draft if it begins like that, or else a guess."""
        guess = draft[len(known) :] if draft[: len(known)] == known else self._guess(known)
        return known[fed:] + guess[: self.most - 1 - len(known)]

    def _guess(self, known: list[int]) -> list[int]:
        """What followed the row's last two tokens where they last occurred, in the prompt, another text or the row.

        Where the two occur nowhere, the last token alone is looked up (prompt lookup decoding).
        """
        if self.sampling.temperature > 0:
            return []
        text = np.append(self.seen, known)
        places = np.flatnonzero(text[1:-1] == text[-1]) + 1
        both = places[text[places - 1] == text[-2]]
        last = both[-1:] if both.size else places[-1:]
        found: list[int] = text[int(last[0]) + 1 :][:LOOKED_UP].tolist() if last.size else []
        return found

    def _accept(self, known: list[int], block: list[int], fed: int, logits: torch.Tensor, sure: list[bool]) -> bool:
        """Adds the model's choices behind the block's tokens, up to the first it did not choose; whether it was sure.

        Errors (LiveError): a logit is not finite.
        """
        for at in range(len(known) - 1 - fed, len(sure)):
            if not sure[at]:
                return False
            known.append(self.sampling.choose(logits[at], self.draws[len(known)]))
            if block[at + 1 : at + 2] != known[-1:]:
                break
        return True
