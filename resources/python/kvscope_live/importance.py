"""What the expected answer needs of the context: its loss when a chunk is hidden, and the gradients of its loss.

Both are about one question and answer. `chunk_losses` measures: every chunk is a row of one pass of the model.
`TokenScores` estimates: a few passes forwards and backwards attribute the loss to the tokens of every head.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint

from kvscope_capture.attention import AttentionCall, logits_of, replaced_attention
from kvscope_live.contexts import LiveContext
from kvscope_live.errors import LiveError, not_finite
from kvscope_press.attend_behind import PrunedLayer
from kvscope_press.pruned_context import decode, require_rotated_alike

NAME = "kvscope_gradient"
LOG_SPAN = 24.0  # the weights of the context fall from 1 to e^-24


@dataclasses.dataclass(frozen=True)
class Expected:
    """Tokens between the cut and the answer, and the answer's own. The first one behind the cut has no loss."""

    question: list[int]
    answer: list[int]

    def tokens(self) -> list[int]:
        """What the model reads behind the cut."""
        return self.question + self.answer[:-1]

    def target(self) -> list[int]:
        """Tokens whose loss counts; the last hidden states of `tokens` predict them."""
        return self.answer if self.question else self.answer[1:]

    def loss(self, model: Any, hidden: torch.Tensor) -> torch.Tensor:
        """Mean loss in nat, from last hidden states [len(tokens()), hidden]."""
        target = torch.tensor(self.target(), device=hidden.device)
        return torch.nn.functional.cross_entropy(logits_of(model, hidden[-len(target) :]), target)


def chunk_losses(
    context: LiveContext, expected: Expected, chunks: Sequence[tuple[int, int]]
) -> list[float | LiveError]:
    """For each chunk, tokens begin .. end - 1, the loss with it hidden in all layers and heads; all in one pass.

    A LiveError in place of a loss that is not finite.
    """
    model = context.opened.model
    hidden = torch.zeros((len(chunks), context.cut), dtype=torch.bool)
    for row, (begin, end) in zip(hidden, chunks, strict=True):
        row[begin:end] = True
    layers = {call.layer: _hiding(call, hidden) for call in context.calls}
    states = context.cache(layers).extend_rows([expected.tokens()] * len(chunks))
    with torch.no_grad():
        losses = [float(expected.loss(model, row)) for row in states]
    return [
        loss if math.isfinite(loss) else not_finite(f"the answer's loss without the tokens {begin} to {end - 1}")
        for (begin, end), loss in zip(chunks, losses, strict=True)
    ]


def _hiding(call: AttentionCall, hidden: torch.Tensor) -> PrunedLayer:
    """A layer in which row p evicts the tokens that are true in `hidden` [P, n]."""
    heads, device = call.key.shape[0], call.key.device
    mask = hidden.to(device)[None, :, None, None].expand(heads, -1, -1, -1, -1)
    positions = torch.arange(hidden.shape[1], device=device)
    return PrunedLayer(call.key, call.value, positions, mask, None, None, int((~hidden).sum()) * heads)


class TokenScores:
    """How much the answer's loss rises, to first order, when a KV head evicts one token.

    Each token before the cut has a weight w of its own in attention: o(w) = sum w_j e^l_j v_j / sum w_j e^l_j. With one
    step, the derivative with the full cache, w = 1, is extrapolated to w = 0. Where a model is sure of its answer, that
    derivative is almost 0, whatever the answer needs. With more steps, the derivatives by log w are summed while all w
    fall together from 1 to e^-24, where hardly anything is left of the context (integrated gradients, Sundararajan et
    al. 2017): up to the size of the steps, the scores add up to the rise of the loss without the context.
    """

    def __init__(self, context: LiveContext, expected: Expected, steps: int) -> None:
        """Nothing is computed yet."""
        self.context, self.expected, self.steps, self.done = context, expected, steps, 0
        self.values = torch.zeros((len(context.calls), context.calls[0].key.shape[0], context.cut))

    def step(self) -> None:
        """One pass forwards and one backwards. At most one layer's attention weights are in memory.

        A step that is stopped or fails leaves the sum as it was.
        """
        added = torch.zeros_like(self.values)
        width = LOG_SPAN / self.steps if self.steps > 1 else 1.0
        log_weight = -width * (self.done + 0.5) if self.steps > 1 else 0.0
        for call, output, gradient in self._gradients(log_weight):
            added[call.layer] = (
                width * _falling(call, self.context.calls[call.layer], output, gradient, log_weight)
            ).cpu()
        self.values += added
        self.done += 1

    def _gradients(self, log_weight: float) -> Iterator[tuple[AttentionCall, torch.Tensor, torch.Tensor]]:
        """Of each layer: the call of T queries behind the cut, its output and the loss's gradient by it [Hq, T, dv]."""
        context, model = self.context, self.context.opened.model
        require_rotated_alike(model, len(context.ids), context.cut, len(self.expected.tokens()))
        seen: list[tuple[AttentionCall, torch.Tensor, torch.Tensor]] = []

        def attend(
            module: Any, query: Any, key: Any, value: Any, attention_mask: Any, scaling: Any = None, **kwargs: Any
        ) -> tuple[torch.Tensor, None]:
            call = AttentionCall.of(module, query[0], key[0], value[0], None, scaling, kwargs)
            before = context.calls[call.layer]

            def whole(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
                return _attention(dataclasses.replace(call, query=query, key=key, value=value), before, log_weight)

            output = checkpoint(whole, call.query, call.key, call.value, use_reentrant=False)
            added = torch.zeros_like(output, requires_grad=True)
            fixed = {name: getattr(call, name).detach() for name in ("query", "key", "value")}
            seen.append((dataclasses.replace(call, **fixed), output.detach(), added))
            return (output + added).transpose(0, 1)[None].to(query.dtype).contiguous(), None

        with torch.enable_grad(), replaced_attention(model, NAME, attend):
            hidden = decode(model, self.expected.tokens(), context.cut, len(context.ids), use_cache=False)
            loss = self.expected.loss(model, hidden)
            gradients = torch.autograd.grad(loss, [added for _, _, added in seen])
        for (call, output, _), gradient in zip(seen, gradients, strict=True):
            yield call, output, gradient


def _falling(
    call: AttentionCall, before: AttentionCall, output: torch.Tensor, gradient: torch.Tensor, log_weight: float
) -> torch.Tensor:
    """-dL/dlog w_j of each KV head and token, [Hkv, cut]: sum of p_j g . (o - v_j) over queries and query heads."""
    weights = _weights(call, before, log_weight)[..., : before.key.shape[1]]
    shape = (*weights.shape[:3], gradient.shape[-1])
    along = (gradient * output).sum(-1).view(*shape[:3], 1)
    values = before.value.to(gradient.dtype)
    return (weights * (along - gradient.view(shape) @ values[:, None].transpose(2, 3))).sum((1, 2)).float()


def _weights(call: AttentionCall, before: AttentionCall, log_weight: float) -> torch.Tensor:
    """Attention weights [Hkv, g, T, n + T] of T tokens over the context, times e^log_weight, and over themselves."""
    tokens, cut = call.query.shape[1], before.key.shape[1]
    wide = torch.promote_types(call.query.dtype, torch.float32)
    key = torch.cat([before.key, call.key], 1).to(wide)
    query = call.query.to(wide).view(key.shape[0], -1, tokens, key.shape[2])
    logits = query @ key[:, None].transpose(2, 3) * call.scaling
    if call.softcap:
        logits = torch.tanh(logits / call.softcap) * call.softcap
    logits = torch.cat([logits[..., :cut] + log_weight, logits[..., cut:]], -1)
    columns = torch.arange(cut + tokens, device=key.device)
    now = columns[cut:, None]
    unseen = columns > now
    if call.sliding_window:
        unseen = unseen | (columns <= now - call.sliding_window)
    logits = logits.masked_fill(unseen, -torch.inf)
    if call.sinks is None:
        return torch.softmax(logits, -1)
    sinks = call.sinks.to(wide).view(*logits.shape[:2], 1, 1).expand(-1, -1, tokens, -1)
    return torch.softmax(torch.cat([logits, sinks], -1), -1)[..., :-1]


def _attention(call: AttentionCall, before: AttentionCall, log_weight: float) -> torch.Tensor:
    """Attention's output with these weights, [Hq, T, dv]."""
    weights = _weights(call, before, log_weight)
    value = torch.cat([before.value, call.value], 1).to(weights.dtype)
    return (weights @ value[:, None]).flatten(0, 1)
