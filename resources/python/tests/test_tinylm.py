"""The round trip on the trained demonstration model: capture, evict with the program, prune the model, measure.

Needs the built program (KVSCOPE_PROGRAM).
"""

from __future__ import annotations

import os
import pathlib
import subprocess
from typing import Any

import h5py
import numpy as np
import pytest

from kvscope_capture.command import load_model
from kvscope_press import answer_loss, full_nll, read_selection
from kvscope_press.evaluating import read_tokens

SAMPLES = pathlib.Path(__file__).resolve().parents[3] / "sample_data"
TINYLM, PROGRAM = str(SAMPLES / "tinylm"), os.environ.get("KVSCOPE_PROGRAM", "")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="KVSCOPE_PROGRAM (built kvscope) is not set")


@pytest.fixture(scope="module")
def model() -> Any:
    return load_model(TINYLM, None, "fp32", "cpu")[0]


def needle_loss(model: Any, spec: str, folder: pathlib.Path) -> tuple[float, float]:
    """Mean NLL of the needle's answer, and the share kept."""
    out = folder / "list.json"
    capture = SAMPLES / "needle-1k.h5"
    subprocess.run([PROGRAM, "evict", capture, "--policy", spec, "--out", out], check=True, capture_output=True)
    tokens, selection = read_tokens(capture), read_selection(out)
    wanted = [t for b, e in tokens.target(selection.cut) for t in range(b, e)]
    return answer_loss(model, tokens.ids, selection, wanted).mean(), selection.retention()


def test_the_full_cache_is_the_unpruned_model(model: Any, tmp_path: pathlib.Path) -> None:
    tokens = read_tokens(SAMPLES / "needle-1k.h5")
    begin, end = tokens.answers[0]
    full = full_nll(model, tokens.ids)
    with h5py.File(SAMPLES / "needle-1k.h5") as file:
        assert np.nanmax(np.abs(full - file["tokens/nll"][()])) < 1e-3
    loss, kept = needle_loss(model, "exact@1.0", tmp_path)
    assert kept == 1.0
    assert loss == pytest.approx(full[begin:end].mean(), abs=1e-5)


@pytest.mark.parametrize("policy", ["keydiff", "snapkv", "key_norm", "tova", "streaming_llm"])
def test_losses_agree_with_kvpress(policy: str, model: Any, tmp_path: pathlib.Path) -> None:
    """The shipped rows were measured with kvpress's own presses on float keys; KVScope's variants choose alike.

    What may differ: the capture's 16-bit keys can swap tokens of nearly equal score.
    """
    with h5py.File(SAMPLES / "needle-1k.h5") as file:
        rows = file[f"calibration/{policy}/kvpress"][()]
    spec = {"snapkv": "snapkv:kvpress,window=32"}.get(policy, f"{policy}:kvpress")
    for retention, _, _, expected, _ in rows[[1, 6]]:
        loss, _ = needle_loss(model, f"{spec}@{retention:g}", tmp_path)
        assert loss == pytest.approx(expected, rel=0.1, abs=0.05)


def test_more_budget_brings_the_needle_back(model: Any, tmp_path: pathlib.Path) -> None:
    losses = [needle_loss(model, f"streaming_llm@{r}", tmp_path)[0] for r in (0.1, 0.5)]
    assert losses[0] > 2 and losses[1] < 0.1
