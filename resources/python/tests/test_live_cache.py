"""Which models of the Hub's cache a worker lists: the complete ones."""

from __future__ import annotations

import json
import pathlib

import pytest
from huggingface_hub import constants
from live_client import Local

from kvscope_live.hub_cache import cached_models


def put(cache: pathlib.Path, name: str, files: dict[str, str], refs: bool = True) -> pathlib.Path:
    """A model as the Hub's client stores it: snapshots with links to blobs, and a branch that names one."""
    folder = cache / f"models--{name.replace('/', '--')}"
    snapshot = folder / "snapshots" / "c0ffee"
    snapshot.mkdir(parents=True)
    (folder / "blobs").mkdir()
    for index, (file, text) in enumerate(files.items()):
        (folder / "blobs" / str(index)).write_text(text)
        (snapshot / file).symlink_to(f"../../blobs/{index}")
    if refs:
        (folder / "refs").mkdir()
        (folder / "refs" / "main").write_text("c0ffee")
    return snapshot


def test_whole_models_are_listed(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    assert cached_models() == []  # there is no cache
    cache = tmp_path / "hub"
    shards = json.dumps({"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}})
    plain = {"config.json": "{}", "model.safetensors": "x"}
    put(cache, "org/plain", plain)
    put(cache, "gpt2", {"config.json": "{}", "pytorch_model.bin": "x"})
    index = {"config.json": "{}", "model.safetensors.index.json": shards, "1.safetensors": "x"}
    put(cache, "Org/shards", index | {"2.safetensors": "x"})
    put(cache, "org/lacks-a-shard", index)
    put(cache, "org/lacks-weights", {"config.json": "{}"})
    put(cache, "org/lacks-config", {"model.safetensors": "x"})
    put(cache, "org/lacks-branch", plain, refs=False)
    put(cache, "org/odd-index", {"config.json": "{}", "model.safetensors.index.json": "[1]"})
    put(cache, "org/no-index", {"config.json": "{}", "model.safetensors.index.json": "{"})
    put(cache, "org/odd-map", {"config.json": "{}", "model.safetensors.index.json": '{"weight_map": [1]}'})
    (put(cache, "org/lost-blob", plain) / "../../blobs/1").resolve().unlink()
    (cache / "models--org--a-file").write_text("")
    (cache / "datasets--org--text").mkdir()
    assert cached_models() == ["gpt2", "org/plain", "Org/shards"]
    local = Local()
    assert local.ask("model/list", {}) == {"models": ["gpt2", "org/plain", "Org/shards"]}


def test_a_list_ends(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("kvscope_live.session.MOST_LISTED", 2)
    for name in "abc":
        put(tmp_path, name, {"config.json": "{}", "model.safetensors": "x"})
    assert Local().ask("model/list", {}) == {"models": ["a", "b"]}
