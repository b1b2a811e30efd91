"""Writes what a language model's attention sees as a KVScope capture (format `kvscope-capture`, version 1)."""

from kvscope_capture.capture_file import CaptureOptions, hash_of_capture
from kvscope_capture.errors import CaptureError
from kvscope_capture.prompt import Prompt, SegmentKind
from kvscope_capture.streaming import capture_prompt

__all__ = ["CaptureError", "CaptureOptions", "Prompt", "SegmentKind", "capture_prompt", "hash_of_capture"]
