"""Files of scores: the default cut, what is refused, and what the program makes of them."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from measured_lists import capture_tiny
from ports import Port
from tiny_models import mixed_model, tiny_model
from transformers import AutoConfig, DynamicCache

from kvscope_capture import CaptureError
from kvscope_capture.command import DTYPES
from kvscope_capture.prompt import default_cut
from kvscope_press import scores as scoring
from kvscope_press.presses import NamedPress, press_scores
from kvscope_press.scores import CaptureHead, all_layers, write_scores
from kvscope_press.scores_command import main

ROOT = pathlib.Path(__file__).resolve().parents[3]
CUT = 40


def program() -> str:
    path = os.environ.get("KVSCOPE_PROGRAM", "")
    if not path:
        pytest.skip("KVSCOPE_PROGRAM is not set")
    return path


def kvscope(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program(), *map(str, words)], capture_output=True, text=True)


@pytest.fixture
def capture(tmp_path: pathlib.Path) -> pathlib.Path:
    return pathlib.Path(shutil.copyfile(ROOT / "sample_data/needle-1k.h5", tmp_path / "a, b.h5"))


def random_scores(capture: pathlib.Path, cut: int | None = None) -> tuple[CaptureHead, np.ndarray]:
    head = CaptureHead(capture, cut)
    shape = (len(head.layers), head.kv_heads, head.cut)
    return head, np.random.default_rng(3).normal(size=shape).astype(np.float32)


ORIGIN = {"press": "MyPress", "parameters": "{}", "kvpress_version": "0.5.5", "model": "tinylm"}


@pytest.mark.parametrize("cut", ["default", "last:256"])
def test_the_program_keeps_the_best_scores(capture: pathlib.Path, tmp_path: pathlib.Path, cut: str) -> None:
    if cut != "default":
        with h5py.File(capture, "a") as file:  # without segments the last 256 tokens are evaluated
            del file["tokens/segments"]
    head, scores = random_scores(capture)
    out = capture.with_suffix(".scores.h5")
    write_scores(out, head, [("MyPress", scores, ORIGIN)], "command")
    listed = json.loads(kvscope("inspect", capture, "--json").stdout)["scores"]
    assert [entry["name"] for entry in listed] == ["MyPress"]
    assert listed[0]["policy"] in kvscope("inspect", capture).stdout
    done = kvscope("evict", capture, "--policy", listed[0]["policy"] + "@60t", "--out", tmp_path / "kept.json")
    assert done.returncode == 0, done.stderr
    assert f"scores of MyPress {{}}, kvpress 0.5.5, on tinylm, over the first {head.cut} tokens" in done.stderr
    kept = json.loads((tmp_path / "kept.json").read_text())
    assert kept["cut_token"] == head.cut
    for chosen in kept["heads"]:
        best = np.argsort(-scores[chosen["layer"], chosen["kv_head"]], kind="stable")[:60]
        assert chosen["kept"] == sorted(best.tolist())


def test_the_program_refuses_other_tokens_and_says_who_looked_ahead(
    capture: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    head, scores = random_scores(capture, 900)
    out = capture.with_suffix(".scores.h5")
    write_scores(out, head, [("MyPress", scores, ORIGIN)], "command")
    words = ["evict", capture, "--policy", f'imported,"file={out}:/MyPress"@60t', "--out", tmp_path / "kept.json"]
    assert "seen 100 tokens beyond the cut: run kvscope-scores with --cut 800" in kvscope(*words, "--cut", 800).stderr
    assert "beyond the cut" not in kvscope(*words, "--cut", 900).stderr
    assert kvscope(*words, "--cut", 901).returncode == 2
    with h5py.File(out, "a") as file:
        file["ids"][1027] += 1
    refused = kvscope(*words, "--cut", 900)
    assert refused.returncode == 2
    assert "the scores are those of other tokens than the capture's" in refused.stderr


def test_a_file_is_written_whole_or_not_at_all(capture: pathlib.Path, tmp_path: pathlib.Path) -> None:
    head, scores = random_scores(capture, CUT)
    out = tmp_path / "x.h5"
    write_scores(out, head, [("A", scores, ORIGIN), ("B", scores, ORIGIN)], "first")
    write_scores(out, head, [("A", scores + 1, ORIGIN)], "second")
    with h5py.File(out) as file:
        assert sorted(file) == ["A", "B", "ids"]
        assert np.array_equal(file["A"][()], scores + 1) and file["A"].attrs["command"] == "second"
        assert np.array_equal(file["B"][()], scores) and file["B"].attrs["tokens_seen"] == CUT
    (link := tmp_path / "link.h5").symlink_to(out)
    write_scores(link, head, [("C", scores, ORIGIN)], "linked")
    assert link.is_symlink()
    with h5py.File(out) as file:
        assert sorted(file) == ["A", "B", "C", "ids"]
    link.unlink()
    before = out.read_bytes()
    head.ids[3] += 1
    with pytest.raises(CaptureError, match="holds scores of other tokens"):
        write_scores(out, head, [("A", scores, ORIGIN)], "third")
    with pytest.raises(CaptureError, match="is no file of scores"):
        write_scores(capture, head, [("A", scores, ORIGIN)], "fourth")
    assert out.read_bytes() == before and sorted(p.name for p in tmp_path.iterdir()) == ["a, b.h5", "x.h5"]


def test_what_cannot_be_scored_is_refused(
    capture: pathlib.Path, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = CaptureHead(capture, CUT)
    whole = {layer: torch.zeros(2, CUT) for layer in head.layers}
    with pytest.raises(CaptureError, match=r"gives scores \[2, 39\] in layer 1"):
        all_layers(whole | {1: torch.zeros(2, CUT - 1)}, head, "P")
    with pytest.raises(CaptureError, match="not finite in layer 5"):
        all_layers(whole | {5: torch.full((2, CUT), torch.inf)}, head, "P")
    with pytest.raises(CaptureError, match="P scored no layer"):
        all_layers({}, head, "P")
    del whole[2]
    assert np.isnan(all_layers(whole, head, "P")[2]).all() and not np.isnan(all_layers(whole, head, "P")[3]).any()
    with pytest.raises(CaptureError, match="the cut 1029 lies outside the capture of 1028 tokens"):
        CaptureHead(capture, 1029)
    (tmp_path / "no.h5").write_text("no")
    with pytest.raises(CaptureError, match="cannot be read"):
        CaptureHead(tmp_path / "no.h5", None)
    shutil.copy(capture, tmp_path / "part.h5")
    with h5py.File(tmp_path / "part.h5", "a") as file:
        file.attrs["partial_state"] = "0"
    with pytest.raises(CaptureError, match="is not whole"):
        CaptureHead(tmp_path / "part.h5", None)


@pytest.mark.parametrize(
    ("noise", "key_type", "captured_in", "fits"),
    [
        (0.005, torch.float32, None, True),  # 16-bit keys of the same model
        (0.12, torch.float32, None, False),  # a fine-tune of it
        (0.045, torch.bfloat16, "float32", True),
        (0.045, torch.float32, "bfloat16", True),
        (0.045, torch.float32, "float32", False),
        (float("nan"), torch.float32, None, False),
    ],
)
def test_a_model_is_recognised_by_its_keys(
    capture: pathlib.Path, noise: float, key_type: torch.dtype, captured_in: str | None, fits: bool
) -> None:
    with h5py.File(capture, "a") as file:
        file.attrs["self_check"] = json.dumps({"model_dtype": captured_in} if captured_in else {})
    head = CaptureHead(capture, None)
    torch.manual_seed(0)
    keys = head.keys(2)
    random = torch.randn_like(keys)
    given = (keys + random * noise * keys.norm() / random.norm()).to(key_type)
    if fits:
        head.require_keys_of(2, given)
        return
    with pytest.raises(CaptureError, match="keys in layer 2 are not those of the capture") as refused:
        head.require_keys_of(2, given)
    assert "--compute-dtype" not in refused.value.remedy


def test_a_cache_of_latents_is_not_scored() -> None:
    """Transformers 5.23 caches what attention of DeepSeek-V3 expands to keys; earlier versions cache the keys."""
    model, cache = tiny_model("deepseek-v3"), DynamicCache()
    model(input_ids=torch.tensor([[1, 2]]), past_key_values=cache)
    if cache.layers[0].keys.shape[1] == 4:
        pytest.skip("this version of Transformers caches the keys")
    sentence = r"deepseek_v3: the cache of layer 0 holds latents \(MLA\).* keys of 4 heads.* with kvscope measure.$"
    with pytest.raises(CaptureError, match=sentence):
        press_scores(model, NamedPress("Port", {}, Port()), list(range(20)))


@pytest.mark.parametrize("asked", [None, "fp16"])
def test_a_model_runs_in_the_type_that_was_captured(
    asked: str | None, capture: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In another type a router chooses other experts, and the right model then has other keys."""
    with h5py.File(capture, "a") as file:
        file.attrs["self_check"] = json.dumps({"model_dtype": "bfloat16"})
    ran: list[str] = []

    def load(_name: str, _revision: str | None, dtype: str, _device: str) -> tuple[object, None]:
        ran.append(dtype)
        head = CaptureHead(capture, None)
        head.require_keys_of(2, head.keys(2).to(getattr(torch, DTYPES[dtype])) * 2)
        raise AssertionError

    monkeypatch.setattr(scoring, "named_press", lambda _: None)
    monkeypatch.setattr(scoring, "read_config", lambda *_: AutoConfig.from_pretrained(ROOT / "sample_data/tinylm"))
    monkeypatch.setattr(scoring, "load_model", load)
    words = ["model", str(capture), "--press", "P", *(["--compute-dtype", asked] if asked else [])]
    assert main(words) == 2
    assert ran == [asked or "bf16"]
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.endswith("captured, or add --compute-dtype bf16, as the capture says." if asked else "were captured.")


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("qwen3_next", "qwen3_next: layers 0, 2 carry a state beside keys and values"),
        ("jamba", "jamba: layers 0, 2 carry a state beside keys and values"),
        ("falcon_h1", "falcon_h1: layers 0-2 carry a state beside keys and values"),
        ("gpt2", "gpt2: kvpress finds no self_attn in model.layers. Capture the prompt"),
        ("gpt_neox", "gpt_neox: kvpress finds no self_attn in model.layers. Capture the prompt"),
    ],
)
def test_a_model_that_no_press_scores_is_refused_before_it_is_loaded(
    kind: str,
    sentence: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    own = {"gpt2": "gpt2", "gpt_neox": "gpt-neox"}
    model = tiny_model(own[kind]) if kind in own else mixed_model(kind)
    capture_tiny(tmp_path, model)
    monkeypatch.setattr(scoring, "named_press", lambda _: None)
    monkeypatch.setattr(scoring, "load_model", lambda *_: pytest.fail("the model was loaded"))
    assert main([str(tmp_path / "model"), str(tmp_path / "c.h5"), "--press", "P"]) == 2
    assert sentence in capsys.readouterr().err.splitlines()[-1]


def test_names_in_a_file_hold_no_separator() -> None:
    assert NamedPress("P", {"stats_folder": "/a/b", "x": "1,2"}, None).dataset() == "P-stats_folder-_a_b-x-1_2"


def test_the_default_cut() -> None:
    assert default_cut([], 1000) == 744
    assert default_cut([], 100) == 50
    assert default_cut([(0, 80, 1), (80, 90, 3), (90, 100, 1)], 100) == 80  # a context behind the question
    assert default_cut([(0, 30, 1), (30, 60, 1), (60, 70, 3)], 100) == 60
    assert default_cut([(0, 100, 1)], 100) == 50  # nothing behind it


def test_bad_words_end_with_one_sentence(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["model", str(tmp_path / "no.h5"), "--press", "SnapKVPress"])
    lines = capsys.readouterr().err.strip().splitlines()
    assert code == 2 and len(lines) == 1 and lines[0].startswith("kvscope-scores: ")


@pytest.mark.parametrize("there", [True, False])
def test_two_runs_into_one_file_of_scores_keep_both(there: bool, capture: pathlib.Path, tmp_path: pathlib.Path) -> None:
    head, scores = random_scores(capture)
    out = tmp_path / "s.h5"
    if there:
        write_scores(out, head, [("Before", scores, ORIGIN)], "command")
    other = threading.Thread(target=write_scores, args=(out, head, [("Second", scores, ORIGIN)], "command"))

    def while_the_other_begins() -> Iterator[tuple[str, Any, dict[str, Any]]]:
        other.start()
        other.join(0.5)
        yield "First", scores, ORIGIN

    write_scores(out, head, while_the_other_begins(), "command")  # type: ignore[arg-type]
    other.join()
    with h5py.File(out) as file:
        assert sorted(file) == [*(["Before"] if there else []), "First", "Second", "ids"]
    assert sorted(tmp_path.iterdir()) == sorted([capture, out])
