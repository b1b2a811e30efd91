"""Where the program `kvscope` is."""

from __future__ import annotations

import os
import shutil

from kvscope_capture.errors import CaptureError


def find_program() -> str:
    """`kvscope`: KVSCOPE_PROGRAM, or the one on the PATH. Errors (CaptureError): neither."""
    program = os.environ.get("KVSCOPE_PROGRAM") or shutil.which("kvscope")
    if not program:
        raise CaptureError("the program kvscope is not on the PATH", "KVSCOPE_PROGRAM", "Name it there")
    return program
