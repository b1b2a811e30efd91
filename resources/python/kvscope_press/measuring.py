"""What a selection costs: the loss of a given answer after the cut, whether greedy decoding gets it right, and text."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from kvscope_capture.attention import AttentionCall, decoder_of, observed_attention
from kvscope_capture.streaming import token_nll
from kvscope_press.pruned_context import PrunedContext, ReadContext
from kvscope_press.recorded_selection import RecordedSelection

BLOCK = 256
Losses = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class AnswerLoss:
    """NLL (nats) of each wanted token, and whether the greedy choice was right; both [len(wanted)]."""

    nll: Losses
    right: npt.NDArray[np.bool_]

    def mean(self) -> float:
        """Mean NLL a token."""
        return float(self.nll.mean())


def full_nll(model: Any, ids: list[int], observe: Callable[[AttentionCall], None] = lambda _: None) -> Losses:
    """-log p of every token under the unpruned model, [n], the first NaN; `observe` sees every layer's attention."""
    with torch.no_grad(), observed_attention(model, observe):
        tensor = torch.tensor([ids], device=model.device)
        hidden = decoder_of(model)(input_ids=tensor, use_cache=False).last_hidden_state[0]
        return np.asarray(token_nll(model, hidden, tensor[0]), np.float64)


def answer_loss(
    model: Any, ids: list[int], selection: RecordedSelection, wanted: list[int], read: ReadContext | None = None
) -> AnswerLoss:
    """Losses of the tokens `wanted` (indices into `ids`, all behind the cut) with the context pruned.

    The tokens between are given (teacher forcing). Token `cut` itself is predicted from the unpruned context, because
    pruning happens after the context was read; it can therefore not be asked for. `read`: the context, if it was read.
    """
    cut = selection.cut
    if not wanted or min(wanted) <= cut or max(wanted) >= len(ids):
        raise ValueError(f"wanted tokens must lie in {cut + 1} .. {len(ids) - 1}")
    context = PrunedContext(model, ids, selection, read)
    nll = np.full(len(ids), np.nan)
    right = np.zeros(len(ids), bool)
    for begin in range(cut, len(ids) - 1, BLOCK):
        end = min(begin + BLOCK, len(ids) - 1)
        logits = context.extend(ids[begin:end])
        target = torch.tensor(ids[begin + 1 : end + 1], device=logits.device)
        nll[begin + 1 : end + 1] = torch.nn.functional.cross_entropy(logits, target, reduction="none").cpu().numpy()
        right[begin + 1 : end + 1] = (logits.argmax(-1) == target).cpu().numpy()
    return AnswerLoss(nll[wanted], right[wanted])


def end_tokens(model: Any, tokenizer: Any) -> set[int]:
    """Tokens at which the model's own `generate` ends."""
    given = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    if given is None:
        given = getattr(tokenizer, "eos_token_id", None)
    return {int(token) for token in (given if isinstance(given, list | tuple) else [given]) if token is not None}


def generate(
    context: PrunedContext, question: list[int], most: int, stop: int | Collection[int] | None = None
) -> list[int]:
    """Greedy continuation behind `question` (may be empty), at most `most` tokens, ending before `stop`."""
    ends = stop if isinstance(stop, Collection) else {stop}
    logits = context.extend(question)[-1] if question else context.last_logits
    written: list[int] = []
    while len(written) < most:
        token = int(logits.argmax())
        if token in ends:
            break
        written.append(token)
        if len(written) < most:
            logits = context.extend([token])[-1]
    return written
