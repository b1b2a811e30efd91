"""Locks of files that several runs write."""

from __future__ import annotations

import os
import pathlib
from typing import Any

import pytest

from kvscope_capture.locking import locked


def test_a_lock_that_another_holder_removes_is_taken_anew(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file vanishes between two looks at it: another run had it and ended."""
    path, real, seen = tmp_path / "c.h5", os.fstat, list[int]()

    def vanishing(descriptor: int) -> Any:
        seen.append(descriptor)
        if len(seen) == 1:
            (tmp_path / "c.h5.lock").unlink()
        return real(descriptor)

    monkeypatch.setattr(os, "fstat", vanishing)
    with locked(path):
        assert (tmp_path / "c.h5.lock").exists()
    assert len(seen) == 2 and not list(tmp_path.iterdir())
