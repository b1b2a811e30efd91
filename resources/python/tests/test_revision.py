"""The revision of a model that files name."""

from __future__ import annotations

import pathlib
import shutil
from typing import Any

import h5py
import huggingface_hub
import pytest

from kvscope_capture.command import main, revision_of


def test_the_commit_of_the_hub_is_kept(
    captured: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """The commit of the copy in the cache; a capture that states none is accepted, one of another commit is not."""
    cache, commits, out = tmp_path / "hub", ("a" * 40, "b" * 40), tmp_path / "c.h5"
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    repository = cache / "models--house--tiny"
    for commit in commits:
        shutil.copytree(captured / "model", repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs/main").write_text(commits[0])
    (tmp_path / "t.txt").write_text("Ein Text. " * 20)
    arguments = [
        "house/tiny",
        "--text",
        str(tmp_path / "t.txt"),
        "--max-tokens",
        "64",
        "--layers",
        "0",
        "--out",
        str(out),
    ]
    assert main(arguments) == 0
    with h5py.File(out, "a") as file:
        assert file.attrs["model_revision"] == commits[0]
    assert main([*arguments, "--resume"]) == 0
    (repository / "refs/main").write_text(commits[1])
    assert main([*arguments, "--resume"]) == 2
    assert "with other revision" in capsys.readouterr().err
    with h5py.File(out, "a") as file:
        file.attrs["model_revision"] = ""
    assert main([*arguments, "--resume"]) == 0
    assert revision_of("house/tiny", "v2") == "v2"
    assert revision_of(str(captured / "model"), None) == revision_of("house/other", None) == ""
