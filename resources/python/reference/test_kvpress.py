"""Every list of KVScope's kvpress variants is the one that kvpress itself keeps."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import h5py
import kvpress
import numpy as np
import pytest
import torch
from replay import Choice, Layer, observe, run_press, write_capture, write_random
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from kvscope_press.kvpress_adapter import RecordedPress
from kvscope_press.recorded_selection import read_selection

ROOT = pathlib.Path(__file__).resolve().parents[3]
SHARE_OF_LARGEST = 2.0**-21  # see README.md
REMOVED = (0.5, 0.75, 0.9)
LEVERAGE = (
    "leverage,sketch_size=48,centred=true,route=cholesky,regulariser=ridge,regulariser_strength=0.01,rounding=floor"
)
NON_CAUSAL = "compactor:kvpress,skip_first=0,skip_last=0,protect_first=0,protect_last=0,lambda_rule=fixed,lambda=0"


@dataclasses.dataclass(frozen=True)
class Case:
    """A press at a fraction removed, and what KVScope calls it."""

    name: str
    press: Callable[[float], Any]
    policy: str
    with_attention: bool = False
    random: str = ""  # data set that replays what the press drew


CASES = [
    Case("KeyDiff", lambda r: kvpress.KeyDiffPress(r), "keydiff:kvpress"),
    Case(
        "KeyDiff, blocks",
        lambda r: kvpress.BlockPress(kvpress.KeyDiffPress(r), 128),
        "keydiff:kvpress,prompt_block=128",
    ),
    Case("Key norm", lambda r: kvpress.KnormPress(r), "key_norm:kvpress"),
    Case("SnapKV", lambda r: kvpress.SnapKVPress(r), "snapkv:kvpress"),
    Case("PyramidKV", lambda r: kvpress.PyramidKVPress(r), "pyramidkv:kvpress"),
    Case("PyramidKV, window 16", lambda r: kvpress.PyramidKVPress(r, 16), "pyramidkv:kvpress,window=16"),
    Case("TOVA", lambda r: kvpress.TOVAPress(r), "tova:kvpress"),
    Case("ObservedAttention", lambda r: kvpress.ObservedAttentionPress(r), "h2o:kvpress", with_attention=True),
    Case("StreamingLLM", lambda r: kvpress.StreamingLLMPress(r), "streaming_llm:kvpress"),
    Case("Random", lambda r: kvpress.RandomPress(r, 7), "uniform:kvpress", random="uniforms"),
    Case("Leverage", lambda r: kvpress.LeverageScorePress(r), LEVERAGE, random="sketch"),
    Case("Non-causal attention", lambda r: kvpress.NonCausalAttnPress(r), NON_CAUSAL, random="sketch"),
    Case("Compactor", lambda r: kvpress.CompactorPress(r), "compactor:kvpress", random="sketch"),
]


@dataclasses.dataclass(frozen=True)
class Prompt:
    """One prompt: what attention saw and the capture of it."""

    layers: list[Layer]
    capture: pathlib.Path


def program() -> str:
    path = os.environ.get("KVSCOPE_PROGRAM", "")
    if not path:
        pytest.skip("KVSCOPE_PROGRAM is not set")
    return path


def load_model() -> Any:
    folder = os.environ.get("KVSCOPE_TINYLM")
    if folder:
        return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64).eval()
    torch.manual_seed(1)
    sizes = {"hidden_size": 256, "intermediate_size": 640, "num_hidden_layers": 6, "vocab_size": 4096}
    heads = {"num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64}
    return LlamaForCausalLM(LlamaConfig(**sizes, **heads, initializer_range=0.1)).double().eval()


@pytest.fixture(scope="module")
def model() -> Any:
    return load_model()


@pytest.fixture(scope="module", params=[300, 768])
def prompt(request: pytest.FixtureRequest, model: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prompt]:
    with h5py.File(ROOT / "sample_data/needle-1k.h5") as file:
        ids = file["tokens/ids"][: request.param].tolist()
    layers = observe(model, ids)
    path = tmp_path_factory.mktemp("reference") / "prompt.h5"
    write_capture(path, layers, ids)
    yield Prompt(layers, path)


def kept_by_kvscope(
    prompt: Prompt, case: Case, removed: float, drawn: list[list[np.ndarray]], out: pathlib.Path
) -> Any:
    command = [program(), "evict", str(prompt.capture), "--cut", "none", "--out", str(out)]
    command += ["--policy", f"{case.policy}@{1 - removed!r}"]
    if case.random:
        numbers = [layer[0][0] for layer in drawn] if drawn[0] else [np.zeros((2, 64, 48))] * len(prompt.layers)
        command += [f"--{case.random}", write_random(out.with_suffix(".h5"), case.random, numbers)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    heads = json.loads(out.read_text())["heads"]
    return {(head["layer"], head["kv_head"]): set(head["kept"]) for head in heads}


def gap(scores: np.ndarray, theirs: set[int], ours: set[int]) -> float:
    """How far apart the press's scores of the exchanged tokens are, as a fraction of its largest score."""
    only_theirs, only_ours = sorted(theirs - ours), sorted(ours - theirs)
    return float((scores[only_theirs].max() - scores[only_ours].min()) / np.abs(scores[np.isfinite(scores)]).max())


@pytest.mark.parametrize("removed", REMOVED)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_same_tokens_are_kept(
    case: Case, removed: float, prompt: Prompt, tmp_path: pathlib.Path, record_property: Callable[[str, Any], None]
) -> None:
    torch.manual_seed(11)
    choices: list[Choice] = [run_press(case.press(removed), layer, case.with_attention) for layer in prompt.layers]
    ours = kept_by_kvscope(prompt, case, removed, [choice.drawn for choice in choices], tmp_path / "kept.json")
    compared, tied, noisy, wrong = 0, 0, 0, []
    for layer, choice in enumerate(choices):
        for head, row in enumerate(choice.kept.tolist()):
            theirs, mine = set(row), ours[layer, head]
            compared += 1
            if theirs == mine:
                continue
            place = f"layer {layer}, KV head {head}"
            if len(theirs) != len(mine):
                wrong.append(f"{place}: kvpress keeps {len(theirs)}, KVScope {len(mine)}")
                continue
            apart = gap(choice.scores[head], theirs, mine)
            tied += apart == 0
            noisy += 0 < apart <= SHARE_OF_LARGEST
            if apart > SHARE_OF_LARGEST:
                pairs = f"{sorted(theirs - mine)[:5]} for {sorted(mine - theirs)[:5]}"
                wrong.append(f"{place}: {len(theirs - mine)} tokens differ ({pairs}), {apart:.3g} apart")
    heads = {"compared": compared, "wrong": len(wrong), "tied": tied, "noisy": noisy}
    record_property("counts", {"press": case.name, "heads": heads})
    assert not wrong, "\n".join(wrong)


def test_a_wrong_list_would_be_seen(prompt: Prompt) -> None:
    choice = run_press(kvpress.KeyDiffPress(0.5), prompt.layers[0], False)
    theirs = set(choice.kept[0].tolist())
    best, worst = int(choice.scores[0].argmax()), int(choice.scores[0].argmin())
    assert best in theirs and worst not in theirs
    assert gap(choice.scores[0], theirs, theirs - {best} | {worst}) > SHARE_OF_LARGEST


def test_the_presses_see_what_the_model_gives_them(model: Any, prompt: Prompt) -> None:
    """The replaced helpers hand over what kvpress takes from the running model, up to the capture's rounding."""
    with h5py.File(prompt.capture) as file:
        ids = file["tokens/ids"][()].tolist()
    press, seen = kvpress.SnapKVPress(0.5), []
    score = press.score
    press.score = lambda *args, **kwargs: seen.append(score(*args, **kwargs)) or seen[-1]
    with torch.no_grad(), press(model):
        model(torch.tensor([ids]))
    for real, layer in zip(seen, prompt.layers, strict=True):
        replayed = run_press(kvpress.SnapKVPress(0.5), layer, False).scores
        window = real[0].numpy()[:, :-64]
        assert np.abs(window - replayed[:, :-64]).max() < 1e-5 * np.abs(window).max()


def test_a_recorded_list_runs_as_a_press(model: Any, prompt: Prompt, tmp_path: pathlib.Path) -> None:
    """The adapter leaves the cache that kvpress's own press leaves."""
    kept_by_kvscope(prompt, CASES[0], 0.75, [], tmp_path / "kept.json")
    with h5py.File(prompt.capture) as file:
        ids = torch.tensor([file["tokens/ids"][()].tolist()])
    caches = []
    for press in (kvpress.KeyDiffPress(0.75), RecordedPress(read_selection(tmp_path / "kept.json"))):
        with torch.no_grad(), press(model):
            caches.append(model(ids).past_key_values)
    for theirs, ours in zip(caches[0].layers, caches[1].layers, strict=True):
        for head in range(ours.keys.shape[1]):
            assert torch.equal(torch.unique(theirs.keys[0, head], dim=0), torch.unique(ours.keys[0, head], dim=0))
