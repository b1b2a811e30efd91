"""The Hub's cache of this machine: which models are complete there."""

from __future__ import annotations

import json
import pathlib

WEIGHTS = ("model.safetensors", "pytorch_model.bin")  # one file, or shards that NAME.index.json lists


def cached_models() -> list[str]:
    """Names (organisation/model) of the models whose main branch has a configuration and all weights.

    Neither weights nor the network are needed; what cannot be read counts as missing.
    """
    from huggingface_hub import constants

    try:
        folders = sorted(pathlib.Path(constants.HF_HUB_CACHE).glob("models--*"), key=lambda one: one.name.lower())
    except OSError:
        return []
    return [folder.name.removeprefix("models--").replace("--", "/") for folder in folders if _is_whole(folder)]


def _is_whole(folder: pathlib.Path) -> bool:
    try:
        snapshot = folder / "snapshots" / (folder / "refs" / "main").read_text(encoding="ascii").strip()
        return (snapshot / "config.json").is_file() and any(_has(snapshot, name) for name in WEIGHTS)
    except (OSError, ValueError, AttributeError):  # no such file, no text, no index
        return False


def _has(snapshot: pathlib.Path, name: str) -> bool:
    """Whether `snapshot` has the weights `name`, whole or in shards; a link to a missing file counts as missing."""
    if (snapshot / name).is_file():
        return True
    index = snapshot / f"{name}.index.json"
    if not index.is_file():
        return False
    shards = set(json.loads(index.read_text(encoding="utf-8")).get("weight_map", {}).values())
    return bool(shards) and all((snapshot / str(shard)).is_file() for shard in shards)
