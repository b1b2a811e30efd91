"""Takes KVScope's selections back to the model: a pruned cache, the loss of an answer, generated text."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_MODULES = {
    "measuring": ("AnswerLoss", "answer_loss", "full_nll", "generate"),
    "pruned_context": ("PrunedContext", "ReadContext"),
    "recorded_selection": ("HeadSelection", "RecordedSelection", "read_selection"),
}


def __getattr__(name: str) -> Any:
    """Imports a name when it is asked for, so that the commands answer `--help` without torch."""
    for module, names in _MODULES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
