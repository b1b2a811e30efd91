"""Hybrid models, whose attending layers alone are captured, and models with a gate or a norm behind attention."""

from __future__ import annotations

import csv
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import types
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from live_client import Local
from measured_lists import capture_tiny, write_list
from test_architectures import ROUNDING, inverse_rotation, naive_attention
from test_live import CUT, IDS, OpenModel, read, score
from test_live_traps import own_losses, select
from test_press import dense_logits
from tiny_models import (
    CONFIGS,
    MIXED,
    LetterTokenizer,
    mixed_model,
    random_ids,
    random_model,
    unlike_config,
    whisper_config,
    yarn_rope,
)

import kvscope_capture.self_check as self_check
from kvscope_capture import CaptureError, CaptureOptions, Prompt, capture_prompt, hash_of_capture
from kvscope_capture.attention import attending_layers, decoder_of, layers_of, projection_of
from kvscope_capture.command import main as capture
from kvscope_capture.describe import describe
from kvscope_capture.streaming import TESTED
from kvscope_press import HeadSelection, PrunedContext, evaluating
from kvscope_press.command import main as evaluate
from kvscope_press.recorded_selection import whole_selection

TOKENS = 40
PROGRAM = os.environ.get("KVSCOPE_PROGRAM", "")
EVERY = [0, 1, 2]
ATTENDING = dict.fromkeys(MIXED, [1, 3]) | dict.fromkeys(
    ["afmoe", "beam", "bitnet", "falcon_h1", "laguna", "moshi", "ctrl", "zaya"], EVERY
)
ATTENDING |= {"lfm2": [1, 2], "lfm2_moe": [1, 2], "lfm3": [2], "recurrent_gemma": [2], "zamba": [2]}
GATED = ["qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "bailing_hybrid", "lfm3", "afmoe", "bitnet", "laguna"]
GATED += ["beam"]
PLAIN = [kind for kind in MIXED if kind not in GATED]
STATE = [kind for kind in MIXED if kind not in ("afmoe", "beam", "bitnet", "laguna", "moshi", "ctrl")]
NORMED = ["qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "olmo_hybrid", "lfm2", "lfm2_moe", "lfm3", "afmoe", "beam"]
NORMED += ["laguna", "zaya"]  # queries and keys
UNROTATED = ["jamba", "nemotron_h", "zamba", "kimi_linear", "ctrl"]


def prompt_of(n: int = TOKENS) -> Prompt:
    prompt = Prompt(LetterTokenizer())
    prompt.ids = random_ids(n, seed=3)
    return prompt


def watchable(kind: str) -> Any:
    """Skips what Transformers 5.2 computes without its interface."""
    model = mixed_model(kind)
    if not hasattr(sys.modules[type(decoder_of(model)).__module__], "eager_attention_forward"):
        pytest.skip(f"{kind} does not call attention by the interface of this version of Transformers")
    return model


def own_run(model: Any, ids: list[int], monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], list[Any], Any]:
    """What the model's eager attention returns, in the order of its calls, what projections are given, the losses."""
    returned: list[Any] = []
    given: list[Any] = []
    source = sys.modules[type(decoder_of(model)).__module__]
    eager = source.eager_attention_forward

    def note(module: Any, *args: Any, **kwargs: Any) -> Any:
        result = eager(module, *args, **kwargs)
        returned.append(result[0][0].double().numpy())
        hook = projection_of(module).register_forward_pre_hook(
            lambda _, inputs: (given.append(inputs[0][0].double().numpy()), hook.remove())[1]
        )
        return result

    with monkeypatch.context() as patched, torch.no_grad():
        patched.setattr(source, "eager_attention_forward", note)
        logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].double()
    losses = torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(ids[1:]), reduction="none").numpy()
    return returned, given, losses


@pytest.mark.parametrize("kind", MIXED)
def test_the_attending_layers_are_captured(kind: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, prompt = watchable(kind), prompt_of()
    assert decoder_of(model).config.model_type in TESTED
    returned, given, losses = own_run(model, prompt.ids, monkeypatch)
    capture_prompt(model, prompt, tmp_path / "c.h5", CaptureOptions(dtype="float32", pre_rope=True), kind)
    with h5py.File(tmp_path / "c.h5") as file:
        assert file.attrs["num_layers"] == len(layers_of(model))
        assert [int(name) for name in file["layers"]] == ATTENDING[kind]
        checks = {check["name"]: check for check in json.loads(file.attrs["self_check"])["checks"]}
        rope, positions = json.loads(file.attrs["rope"]), file["tokens/position_ids"][()]
        assert (rope["type"] == "none") == (kind in UNROTATED)
        if "layer_types" in rope:
            assert rope["theta"] in [own["rope_theta"] for own in rope["layer_types"].values()]
        for group, own, entering in zip(file["layers"].values(), returned, given, strict=True):
            q, k, v = (group[x][()].astype(np.float64) for x in "qkv")
            out = naive_attention(q, k, v, group)
            assert np.abs(out - own).max() < ROUNDING * np.abs(out).max()
            assert (kind in PLAIN) == (np.abs(out - entering.reshape(out.shape)).max() < ROUNDING * np.abs(out).max())
            assert bool(group.attrs["has_rope"]) == ("k_pre" in group)
            assert bool(group.attrs["qk_norm"]) == (kind in NORMED)
            if not group.attrs["has_rope"]:
                full = kind in ("afmoe", "beam") and group.attrs["attn_type"] == "full_attention"
                assert kind in UNROTATED or full
                continue
            frequencies = f"rope/{group.attrs['attn_type']}/inv_freq"
            inv_freq = file[frequencies if frequencies in file else "rope/inv_freq"][()]
            for rotated, plain in (("k", "k_pre"), ("q", "q_pre")):
                turned = inverse_rotation(group[rotated][()].astype(np.float64), inv_freq, rope, positions)
                assert np.abs(turned - group[plain][()]).max() < ROUNDING * np.abs(turned).max()
                assert np.abs(group[rotated][()] - group[plain][()]).max() > 0.1
        assert np.abs(file["tokens/nll"][1:] - losses).max() < 1e-4
    assert {check["outcome"] for check in checks.values()} <= {"passed", "not made"}
    assert ("compared before the gate or the norm" in checks["attention"]["note"]) == (kind in GATED)


@pytest.mark.parametrize("kind", ["qwen3_next", "jamba", "granitemoehybrid", "nemotron_h", "zamba2", "lfm2_moe"])
def test_an_interrupted_capture_goes_on_behind_the_last_attending_layer(kind: str, tmp_path: pathlib.Path) -> None:
    class Stop(Exception):
        pass

    def stop(step: str) -> None:
        if step.startswith(f"layer {ATTENDING[kind][-1] + 1} "):
            raise Stop

    model = mixed_model(kind)
    capture_prompt(model, prompt_of(), tmp_path / "whole.h5")
    with pytest.raises(Stop):
        capture_prompt(model, prompt_of(), tmp_path / "c.h5", progress=stop)
    steps: list[str] = []
    capture_prompt(model, prompt_of(), tmp_path / "c.h5", progress=steps.append, resume=True)
    assert f"continuing after layer {ATTENDING[kind][0] + 1}" in steps
    with h5py.File(tmp_path / "c.h5") as file, h5py.File(tmp_path / "whole.h5") as whole:
        assert file.attrs["capture_hash"] == whole.attrs["capture_hash"] == hash_of_capture(file)
        assert file.attrs["self_check"] == whole.attrs["self_check"]


def test_the_projection_behind_a_gate_is_refused(tmp_path: pathlib.Path) -> None:
    """No capture shows what a gate does to an error; where nothing lies between, the projection is stored."""
    with pytest.raises(CaptureError, match="layers 1, 3: a gate or a norm lies between attention and the output proj"):
        capture_prompt(mixed_model("qwen3_next"), prompt_of(), tmp_path / "c.h5", CaptureOptions(o_proj=True))
    assert list(tmp_path.iterdir()) == []
    model = mixed_model("jamba")
    capture_prompt(model, prompt_of(), tmp_path / "c.h5", CaptureOptions(o_proj=True, dtype="float32"))
    with h5py.File(tmp_path / "c.h5") as file:
        own = model.model.layers[3].self_attn.o_proj.weight.detach().numpy()
        assert np.array_equal(file["layers/03/o_proj"][()].reshape(own.shape), own)


def test_a_decoder_whose_attention_does_not_call_itself_causal(tmp_path: pathlib.Path) -> None:
    """BigBird-Pegasus relies on its mask, which the fused kernel is not always given."""
    model, prompt = random_model(unlike_config("bigbird_pegasus"), 0), prompt_of()
    capture_prompt(model, prompt, tmp_path / "c.h5", CaptureOptions(dtype="float32"))
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([prompt.ids]), use_cache=False).logits[0]
    losses = torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(prompt.ids[1:]), reduction="none")
    with h5py.File(tmp_path / "c.h5") as file:
        assert np.abs(file["tokens/nll"][1:] - losses.numpy()).max() < 1e-4


def test_a_rotation_that_no_capture_holds_is_refused_before_the_run(tmp_path: pathlib.Path) -> None:
    """YaRN multiplies the queries and keys of full layers only, as in OLMo 3."""
    steps: list[str] = []
    config = CONFIGS["gemma3"]()
    config.rope_parameters["full_attention"] = yarn_rope()
    with pytest.raises(CaptureError, match="layer types differ in rotary dim or attention scaling"):
        capture_prompt(random_model(config, 0), prompt_of(), tmp_path / "c.h5", progress=steps.append)
    assert steps == ["self-check"] and list(tmp_path.iterdir()) == []


def test_a_layer_without_keys_cannot_be_asked_for(tmp_path: pathlib.Path) -> None:
    for layer, what in ((2, "has no keys and values"), (4, "does not exist"), (-1, "does not exist")):
        with pytest.raises(CaptureError, match=f"layer {layer} {what}. Name layers 1, 3"):
            capture_prompt(mixed_model("jamba"), prompt_of(), tmp_path / "c.h5", CaptureOptions(layers=(1, layer)))
    capture_prompt(mixed_model("jamba"), prompt_of(), tmp_path / "c.h5", CaptureOptions(layers=(3,)))
    with h5py.File(tmp_path / "c.h5") as file:
        assert list(file["layers"]) == ["03"]


@pytest.mark.parametrize(("said", "named"), [([0, 1, 2, 3], "layers 0-3"), ([1], "layer 1")])
def test_layers_that_the_configuration_names_otherwise_are_refused(
    said: list[int], named: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A layer that may attend unobserved is never left out silently."""
    monkeypatch.setattr(self_check, "attending_layers", lambda _: said)
    with pytest.raises(
        CaptureError, match=f"attention was seen in layers 1, 3, keys and values should be in {named}. "
    ):
        capture_prompt(mixed_model("jamba"), prompt_of(), tmp_path / "c.h5")


def test_a_layer_that_attends_twice_is_refused(tmp_path: pathlib.Path) -> None:
    """The layers of LongCat-Flash attend twice."""
    model = mixed_model("bitnet")
    attention = model.model.layers[1].self_attn
    once = attention.forward
    attention.forward = lambda *args, **kwargs: (once(*args, **kwargs), once(*args, **kwargs))[1]
    with pytest.raises(CaptureError, match="layer 1: attends more than once"):
        capture_prompt(model, prompt_of(), tmp_path / "c.h5")


@pytest.mark.parametrize("kind", STATE)
def test_a_model_with_a_state_is_not_run_behind_a_shorter_cache(kind: str, tmp_path: pathlib.Path) -> None:
    model = mixed_model(kind)
    count, attending = len(layers_of(model)), ATTENDING[kind]
    named = {"zamba": "layers 0-3 carry", "zamba2": "layers 0-3 carry", "nemotron_h": "layer 0 carries"}
    by_attending = {(1, 3): "layers 0, 2 carry", (1, 2): "layer 0 carries", (2,): "layers 0-1 carry"}
    beside = named.get(kind) or by_attending.get(tuple(attending), "layers 0-2 carry")
    sentence = f"{beside} a state beside keys and values, from which no token can be evicted"
    selection = whole_selection(count, 2, CUT)
    with pytest.raises(CaptureError, match=f"{kind}: {sentence}. Capture the prompt with kvscope-capture"):
        PrunedContext(model, IDS, selection)
    model.config.save_pretrained(tmp_path)
    facts = Local().ask("model/inspect", {"path": str(tmp_path)})
    if facts["supported"] or "interface" not in facts["why"]:
        assert not facts["supported"] and facts["why"].startswith(f"{kind} cannot be used: {sentence}. Capture the")


@pytest.mark.parametrize("kind", ["afmoe", "beam", "bitnet", "laguna", "moshi", "ctrl"])
def test_a_gate_behind_attention_is_no_hindrance_to_pruning(kind: str) -> None:
    """The model's own code gates what pruned attention returns. Evicting is hiding: its own mask says the same."""
    local, model = Local(), watchable(kind)
    local.session.models["m1"] = OpenModel(model, LetterTokenizer(), kind, "")
    answer = read(local, IDS, CUT)
    context = answer["context_id"]
    kv_heads = answer["info"]["num_kv_heads"]
    assert [layer["hidden"] for layer in answer["info"]["layers"]] == [0 if kind in GATED else 32] * 3
    if kind in GATED:
        refused = local.refused("tensors/get", {"context_id": context, "layer": 1, "role": "o_proj"})
        assert "a gate or a norm lies before the output projection" in str(refused)
    whole = select(local, context, np.ones((3, kv_heads, CUT), bool))
    row = score(local, context, [whole])["rows"][0]
    assert row["losses"] == score(local, context, [None])["full"]["losses"]
    begin = len(IDS) - len(row["losses"])
    assert row["losses"] == pytest.approx(own_losses(local, IDS, begin), abs=1e-5)
    kept = np.random.default_rng(1).random((3, kv_heads, CUT)) < 0.5
    heads = {(la, h): np.flatnonzero(kept[la, h]) for la in range(3) for h in range(kv_heads)}
    plain = {place: HeadSelection(own, *(np.ones(own.size, np.float32),) * 2) for place, own in heads.items()}
    wanted = dense_logits(model, IDS, dataclasses.replace(whole_selection(3, kv_heads, CUT), heads=plain))
    losses = torch.nn.functional.cross_entropy(wanted[begin - 1 : -1], torch.tensor(IDS[begin:]), reduction="none")
    found = score(local, context, [select(local, context, kept, "half")])["rows"][0]["losses"]
    assert found == pytest.approx(losses.tolist(), abs=2e-4)


@pytest.mark.skipif(not PROGRAM, reason="KVSCOPE_PROGRAM does not name the built kvscope")
@pytest.mark.parametrize("kind", ["qwen3_next", "zamba2", "lfm2"])
def test_the_program_evicts_measures_and_draws(kind: str, tmp_path: pathlib.Path) -> None:
    out, prompt = tmp_path / "c.h5", prompt_of()
    capture_prompt(mixed_model(kind), prompt, out, CaptureOptions(dtype="float32"))
    policy = ["--policy", "keydiff@0.5", "--cut", "30"]
    for words in (
        ["inspect", str(out), "--verify"],
        ["evict", str(out), *policy, "--out", str(tmp_path / "l.json")],
        ["measure", str(out), *policy, "--out", str(tmp_path / "t.csv")],
        [
            "plot",
            "token_strip",
            str(out),
            *policy,
            "--layer",
            str(ATTENDING[kind][1]),
            "--out",
            str(tmp_path / "p.svg"),
        ],
    ):
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    heads = json.loads((tmp_path / "l.json").read_text())["heads"]
    assert sorted({head["layer"] for head in heads}) == ATTENDING[kind]


def test_a_decoder_counts_its_own_layers_and_heads(tmp_path: pathlib.Path, capsys: Any) -> None:
    """Whisper: `num_hidden_layers` and `num_attention_heads` of its configuration are the encoder's, 2 and 2."""
    model = random_model(whisper_config(), 0)
    capture_tiny(tmp_path, model)
    folder, out = str(tmp_path / "model"), str(tmp_path / "c.h5")
    whisper_config().save_pretrained(tmp_path / "with_encoder")
    for path in (folder, str(tmp_path / "with_encoder")):  # as a decoder was saved, and as both were
        facts = Local().ask("model/inspect", {"path": path})
        assert facts["supported"]
        assert [facts[name] for name in ("layers", "query_heads", "kv_heads", "head_dim")] == [3, 4, 4, 8]
        assert len(facts["windows"]) == 3 and facts["bytes_per_token"] == 3 * 3 * 4 * 8 * 2
    with h5py.File(out) as file:
        assert list(file["layers"]) == ["00", "01", "02"] and file.attrs["num_kv_heads"] == 4
        begin, answer = int(file["tokens/segments"][0, 1]), file["tokens/segments"][-1]
        full = float(file["tokens/nll"][answer[0] : answer[1]].mean())
    heads = [{"layer": la, "kv_head": h, "kept": list(range(begin))} for la in EVERY for h in range(4)]
    whole = write_list(tmp_path / "whole.json", cut_token=begin, heads=heads)
    assert evaluate([out, folder, "--selections", str(whole), "--out", str(tmp_path / "t.csv")]) == 0
    line = next(csv.DictReader((tmp_path / "t.csv").open()))
    assert float(line["nll_compressed"]) == pytest.approx(full, abs=1e-4) and float(line["retention"]) == 1
    with h5py.File(out) as file:
        assert len(file["calibration/p/v"]) == 1  # stored, because all layers are in the list
    more = write_list(tmp_path / "more.json", cut_token=begin, heads=[*heads, heads[0] | {"layer": 3}])
    assert evaluate([out, folder, "--selections", str(more), "--dry-run"]) == 2
    assert "which are no whole layers of the model" in capsys.readouterr().err
    text = tmp_path / "t.txt"
    text.write_text("Der Rest ist Text. " * 3)
    again = ["--text", str(text), "--out", str(tmp_path / "d.h5"), "--layers"]
    assert capture([folder, *again, "2"]) == 0
    assert capture([folder, *again, "3", "--overwrite"]) == 2
    assert "layer 3 does not exist. Name layers 0-2" in capsys.readouterr().err


def test_lists_of_a_hybrid_are_not_measured(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """The error comes before the model is loaded."""
    capture_tiny(tmp_path, mixed_model("lfm2"))
    kept = [{"layer": layer, "kv_head": head, "kept": [0, 3]} for layer in (1, 2) for head in range(2)]
    monkeypatch.setattr(evaluating, "load_model", lambda *_: pytest.fail("the model was loaded"))
    given = [str(tmp_path / "c.h5"), str(tmp_path / "model"), "--selections"]
    assert evaluate([*given, str(write_list(tmp_path / "l.json", heads=kept))]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert "lfm2: layer 0 carries a state beside keys and values, from which no token can be evicted. Capture" in said


def test_chosen_tokens_are_refused_by_the_kind_of_their_layers() -> None:
    """Qwen4 has no `index_topk`."""
    config = types.SimpleNamespace(layer_types=["linear_attention", "indexed_attention"], model_type="qwen4_exp_text")
    with pytest.raises(CaptureError, match=r"attends to chosen tokens only \(indexed_attention\)"):
        attending_layers(config)


def test_hybrids_are_not_described() -> None:
    """An import would look for their tensors in every layer."""
    with pytest.raises(CaptureError, match="lfm2: there are no keys and values in layer 0 of 3. Capture the prompt"):
        describe(mixed_model("lfm2").config)
