"""Writes what a language model's attention sees as a KVScope capture (format `kvscope-capture`, version 1)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from kvscope_capture.errors import CaptureError
from kvscope_capture.prompt import Prompt, SegmentKind

if TYPE_CHECKING:
    from kvscope_capture.capture_file import CaptureOptions, hash_of_capture
    from kvscope_capture.streaming import capture_prompt

__all__ = ["CaptureError", "CaptureOptions", "Prompt", "SegmentKind", "capture_prompt", "hash_of_capture"]

_SLOW = {"CaptureOptions": "capture_file", "hash_of_capture": "capture_file", "capture_prompt": "streaming"}


def __getattr__(name: str) -> Any:
    """Imports what needs torch only when it is asked for, so that the commands answer `--help` without torch."""
    if name not in _SLOW:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_SLOW[name]}"), name)
