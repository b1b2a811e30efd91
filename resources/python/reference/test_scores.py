"""The scores written beside a capture are those by which kvpress decides, for every press that can run here."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any

import h5py
import kvpress
import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, DynamicCache

from kvscope_press.presses import scorer_presses
from kvscope_press.scores_command import main

ROOT = pathlib.Path(__file__).resolve().parents[3]
CUT, REMOVED = 300, 0.75
HUB = {"FastKVzipPress", "KVzapPress", "QFilterPress", "ExpectedAttentionStatsPress"}  # weights of their own
WORDS = {
    "CompactorPress": f"CompactorPress,compression_ratio={REMOVED}",
    "StreamingLLMPress": f"StreamingLLMPress,compression_ratio={REMOVED}",
    "CriticalKVPress": "CriticalKVPress,press=SnapKVPress,compression_ratio=0.75",
}


@pytest.fixture(scope="module")
def folder() -> str:
    path = os.environ.get("KVSCOPE_TINYLM")
    if not path:
        pytest.skip("KVSCOPE_TINYLM is not set")
    return path


@pytest.fixture(scope="module")
def model(folder: str) -> Any:
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="sdpa").eval()


@pytest.fixture
def capture(tmp_path: pathlib.Path) -> pathlib.Path:
    return pathlib.Path(shutil.copyfile(ROOT / "sample_data/needle-1k.h5", tmp_path / "c.h5"))


def scores_of(folder: str, capture: pathlib.Path, words: str) -> np.ndarray:
    assert main([folder, str(capture), "--press", words, "--cut", str(CUT), "--seed", "7"]) == 0
    with h5py.File(capture.with_suffix(".scores.h5")) as file:
        (name,) = [name for name in file if name != "ids"]
        assert file[name].attrs["kvpress_version"] == "0.5.5"
        scores: np.ndarray = file[name][()]
    return scores


def ids_of(capture: pathlib.Path) -> torch.Tensor:
    with h5py.File(capture) as file:
        return torch.tensor([file["tokens/ids"][:CUT].tolist()])


def places(kept: torch.Tensor, whole: torch.Tensor) -> set[int]:
    rows = {row.numpy().tobytes(): index for index, row in enumerate(whole)}
    return {rows[row.numpy().tobytes()] for row in kept}


def gap(scores: np.ndarray, theirs: set[int], ours: set[int]) -> float:
    only = sorted(theirs - ours), sorted(ours - theirs)
    return 0.0 if not only[0] else float(scores[only[0]].max() - scores[only[1]].min())


@pytest.mark.parametrize(
    "press",
    [
        kvpress.SnapKVPress(REMOVED, 16),
        kvpress.ExpectedAttentionPress(REMOVED),
        kvpress.KnormPress(REMOVED),
        kvpress.LagKVPress(REMOVED, lag_size=32),
        kvpress.CURPress(REMOVED),
        kvpress.CapPress(REMOVED),
        kvpress.RandomPress(REMOVED, 5),
    ],
    ids=lambda press: type(press).__name__,
)
def test_kvpress_keeps_the_best_scores(press: Any, folder: str, model: Any, capture: pathlib.Path) -> None:
    """The tokens that kvpress itself keeps are those with the best scores in the file, or tie with them."""
    words = {"SnapKVPress": "SnapKVPress,window_size=16", "LagKVPress": "LagKVPress,lag_size=32"}
    name = type(press).__name__
    scores = scores_of(folder, capture, words.get(name, name if name != "RandomPress" else "RandomPress,seed=5"))
    whole, pruned, ids = DynamicCache(), DynamicCache(), ids_of(capture)
    with torch.no_grad():
        model.model(input_ids=ids, past_key_values=whole)
        with press(model):
            model.model(input_ids=ids, past_key_values=pruned)
    for layer in range(scores.shape[0]):
        for head in range(scores.shape[1]):
            theirs = places(pruned.layers[layer].keys[0, head], whole.layers[layer].keys[0, head])
            row = scores[layer, head]
            ours = set(np.argsort(-row, kind="stable")[: int(CUT * (1 - REMOVED))].tolist())
            assert len(theirs) == len(ours) and gap(row, theirs, ours) <= 0, (name, layer, head)


@pytest.mark.parametrize("kind", ["KVzipPress", "KVgradPress"])
def test_replayed_scores_are_those_that_evict(kind: str, folder: str, model: Any, capture: pathlib.Path) -> None:
    """The lowest scores over all layers and heads are what kvpress masks."""
    scores = scores_of(folder, capture, kind)
    press = getattr(kvpress, kind)(REMOVED)
    with press(model):
        model.model(input_ids=ids_of(capture), past_key_values=DynamicCache())
    evicted = np.zeros(scores.shape, bool)
    for layer, block in enumerate(model.model.layers):
        _, heads, tokens = block.self_attn.masked_key_indices
        evicted[layer, heads, tokens] = True
        block.self_attn.masked_key_indices = None
    assert evicted.sum() == int(scores.size * REMOVED)
    assert scores[evicted].max() <= scores[~evicted].min()


def test_every_press_of_kvpress_runs_or_says_why(
    folder: str, capture: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in scorer_presses():
        words = [folder, str(capture), "--press", WORDS.get(name, name), "--cut", str(CUT)]
        code, told = main(words), capsys.readouterr().err
        assert code == (2 if name in HUB else 0), (name, told)
        assert name not in HUB or f"{name} stopped (" in told, told
        if name in WORDS:
            assert main([*words[:3], name, *words[4:]]) == 2
            assert name == "CriticalKVPress" or "its scores depend on the fraction removed" in capsys.readouterr().err


def test_another_model_is_refused(folder: str, capture: pathlib.Path, tmp_path: pathlib.Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(folder, other, copy_function=shutil.copyfile)
    changed = AutoModelForCausalLM.from_pretrained(folder)
    torch.manual_seed(2)
    with torch.no_grad():
        changed.model.layers[3].self_attn.k_proj.weight.normal_()
    changed.save_pretrained(other)
    words = [sys.executable, "-m", "kvscope_press.scores_command", str(other), str(capture), "--press", "KnormPress"]
    run = subprocess.run(words, capture_output=True, text=True)
    assert run.returncode == 2 and "the model's keys in layer 3 are not those of the capture" in run.stderr
    assert not capture.with_suffix(".scores.h5").exists()


def test_the_list_of_presses_has_their_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--list"])
    assert not stopped.value.code
    assert "SnapKVPress(compression_ratio, window_size, kernel_size)" in capsys.readouterr().out


def test_unknown_presses_and_parameters_are_named(
    folder: str, capture: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, sentence in [
        ("SnapPress", "'SnapPress' is no scorer press of kvpress 0.5.5"),
        ("AdaKVPress", "'AdaKVPress' is no scorer press"),
        ("RestoreKVPress", "RestoreKVPress scores as KVzipPress does"),
        ("SnapKVPress,windows=3", "SnapKVPress has no parameter 'windows'"),
        ("SnapKVPress,compression_ratio=2", "SnapKVPress cannot be made (Compression ratio must be"),
        ("SnapKVPress,window_size=5000", "SnapKVPress stopped (AssertionError: Query length"),
    ]:
        assert main([folder, str(capture), "--press", words]) == 2
        assert sentence in capsys.readouterr().err


def test_metadata_names_every_parameter(folder: str, capture: pathlib.Path) -> None:
    scores_of(folder, capture, "SnapKVPress,window_size=16")
    with h5py.File(capture.with_suffix(".scores.h5")) as file:
        origin = dict(file[f"SnapKVPress-window_size-16-cut-{CUT}"].attrs)
    assert json.loads(origin["parameters"]) == {"window_size": 16, "kernel_size": 5}
    assert origin["press"] == "SnapKVPress" and origin["tokens_seen"] == CUT and origin["seed"] == 7
    assert origin["command"].startswith("kvscope-scores ") and len(origin["prompt_hash"]) == 64
