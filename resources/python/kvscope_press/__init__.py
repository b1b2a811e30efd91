"""Takes KVScope's selections back to the model: a pruned cache, the loss of an answer, generated text."""

from kvscope_press.measuring import AnswerLoss, answer_loss, full_nll, generate
from kvscope_press.pruned_context import PrunedContext, ReadContext
from kvscope_press.recorded_selection import HeadSelection, RecordedSelection, read_selection

__all__ = [
    "AnswerLoss",
    "HeadSelection",
    "PrunedContext",
    "ReadContext",
    "RecordedSelection",
    "answer_loss",
    "full_nll",
    "generate",
    "read_selection",
]
