"""A capture is compared with its model: it passes where the format holds everything, and every fault is found."""

from __future__ import annotations

import copy
import dataclasses
import json
import pathlib
from collections.abc import Callable
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from tiny_models import CONFIGS, LetterTokenizer, random_ids, random_model, tiny_model, unlike_config
from transformers.models.llama.modeling_llama import LlamaAttention

import kvscope_capture.attention as attention
import kvscope_capture.self_check as self_check
import kvscope_capture.streaming as streaming
from kvscope_capture import CaptureError, CaptureOptions, Prompt, capture_prompt
from kvscope_capture.attention import AttentionCall, decoder_of


def prompt_of(n: int = 40) -> Prompt:
    prompt = Prompt(LetterTokenizer())
    prompt.ids = random_ids(n, seed=3)
    return prompt


def checks_of(path: pathlib.Path) -> dict[str, dict[str, Any]]:
    with h5py.File(path) as file:
        return {check["name"]: check for check in json.loads(file.attrs["self_check"])["checks"]}


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_every_tested_architecture_passes(name: str, dtype: torch.dtype, tmp_path: pathlib.Path) -> None:
    model = tiny_model(name).to(dtype)
    assert decoder_of(model).config.model_type in streaming.TESTED
    capture_prompt(model, prompt_of(), tmp_path / "c.h5")
    checks = checks_of(tmp_path / "c.h5")
    assert sorted(checks) == ["attention", "loss", "rotation"]
    for check in checks.values():
        assert check["outcome"] == ("not made" if (name, check["name"]) == ("gpt2", "rotation") else "passed"), check
        assert check["difference"] <= check["tolerance"] and (check["rows"] > 0 or check["outcome"] == "not made")


def changed(**fields: Any) -> Callable[..., AttentionCall]:
    """The call as a tool would record it that gets `fields` wrong."""
    original = AttentionCall.of.__func__  # type: ignore[attr-defined]
    return classmethod(lambda cls, *args: dataclasses.replace(original(cls, *args), **fields))  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("name", "fields", "check"),
    [
        ("gpt-oss", {"sinks": None}, "attention"),
        ("gemma2", {"softcap": 0.0}, "attention"),
        ("mistral", {"sliding_window": 0}, "attention"),
        ("granite", {"scaling": 0.35}, "attention"),
        ("llama", {"unrotated": None}, "rotation"),
    ],
)
def test_what_the_capture_does_not_know_is_found(
    name: str, fields: dict[str, Any], check: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AttentionCall, "of", changed(**fields))
    model = tiny_model(name)
    with pytest.raises(CaptureError, match=f"self-check: the {check} computed from the captured tensors is not"):
        capture_prompt(model, prompt_of(), tmp_path / "c.h5")
    assert list(tmp_path.iterdir()) == []
    capture_prompt(model, prompt_of(), tmp_path / "c.h5", force=True)
    assert checks_of(tmp_path / "c.h5")[check]["outcome"] == "failed"


@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        ("phimoe", "the mask is not the causal one with the window that attention is told"),
        ("inkling_text", "attention is given position_bias, which no capture holds"),
        ("gemma3n_text", "apply_rotary_pos_emb rotates queries and keys one by one"),
    ],
)
def test_what_no_capture_holds_is_named(kind: str, cause: str, tmp_path: pathlib.Path) -> None:
    model = random_model(unlike_config(kind), 0)
    with pytest.raises(CaptureError, match=cause):
        capture_prompt(model, prompt_of(), tmp_path / "c.h5")


def test_queries_that_are_not_only_rotated_have_none_before_rope(tmp_path: pathlib.Path) -> None:
    """Ministral 3 scales queries from token 16 on, here."""
    model = random_model(unlike_config("ministral3"), 0)
    capture_prompt(model, prompt_of(), tmp_path / "c.h5")
    with pytest.raises(CaptureError, match="layer 0: the model changes queries behind their rotation.*--pre-rope"):
        capture_prompt(model, prompt_of(), tmp_path / "d.h5", CaptureOptions(pre_rope=True))


@pytest.mark.parametrize("change", [{"num_key_value_heads": 4}, {"num_attention_heads": 2}])
def test_layers_that_differ_in_their_heads_are_refused(change: dict[str, int], tmp_path: pathlib.Path) -> None:
    """The file has one number of heads and one size for all layers."""
    model = tiny_model("llama")
    config = copy.deepcopy(model.config)
    config.update(change)
    model.model.layers[1].self_attn = LlamaAttention(config, 1)
    model.model.layers[1].self_attn.config = model.config
    with pytest.raises(CaptureError, match="layer 1: the layers differ in their heads"):
        capture_prompt(model, prompt_of(), tmp_path / "c.h5", force=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["cohere", "glm4", "deepseek-v3"])
def test_a_wrong_layout_of_the_rotation_is_found(
    name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(self_check, "find_rotation", lambda *_: self_check.Rotation())
    with pytest.raises(CaptureError, match="the rotation computed from the captured tensors"):
        capture_prompt(tiny_model(name), prompt_of(), tmp_path / "c.h5")


@pytest.mark.parametrize("name", ["granite", "cohere", "gemma2"])
def test_losses_of_other_logits_are_found_at_the_end(
    name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logits by the output embedding alone, without the model's scale or cap, as an older tool computed them."""
    monkeypatch.setattr(streaming, "logits_of", lambda model, hidden: model.get_output_embeddings()(hidden).float())
    with pytest.raises(CaptureError, match="the loss computed from the captured tensors is not the model's"):
        capture_prompt(tiny_model(name), prompt_of(), tmp_path / "c.h5")
    assert list(tmp_path.iterdir()) == []


def test_a_window_longer_than_the_first_tokens_is_compared_too(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model's own code sees 8 tokens and no effect of the window of 9; the run over all of them does."""
    monkeypatch.setattr(self_check, "TOKENS", 8)
    monkeypatch.setattr(AttentionCall, "of", changed(sliding_window=0))
    with pytest.raises(CaptureError, match="the attention computed from the captured tensors"):
        capture_prompt(tiny_model("mistral"), prompt_of(), tmp_path / "c.h5")


def test_a_rotation_that_depends_on_the_length_leaves_the_loss_out(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(self_check, "TOKENS", 16)
    capture_prompt(tiny_model("phi3-long"), prompt_of(), tmp_path / "c.h5")
    assert checks_of(tmp_path / "c.h5")["loss"]["outcome"] == "not made"


def test_a_loss_that_is_no_number_fails(tmp_path: pathlib.Path) -> None:
    """The model overflows behind its last attention, as fp16 does; the tensors themselves are finite."""
    model = tiny_model("llama")
    with torch.no_grad():
        model.model.layers[-1].mlp.down_proj.weight.mul_(1e38)
    with pytest.raises(CaptureError, match="the loss of token 1 is NaN or infinite"):
        capture_prompt(model, prompt_of(), tmp_path / "c.h5")
    assert list(tmp_path.iterdir()) == []
    capture_prompt(model, prompt_of(), tmp_path / "c.h5", force=True)
    assert checks_of(tmp_path / "c.h5")["loss"]["outcome"] == "failed"


@pytest.mark.parametrize("token", [3, 39])
def test_one_loss_that_is_no_number_fails(token: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also behind the tokens that run through the model's own code."""
    monkeypatch.setattr(self_check, "TOKENS", 16)
    check = self_check.SelfCheck(tiny_model("llama"), random_ids(40, 3))
    nll = np.array([np.nan, *check.own_nll.tolist(), *[1.0] * 24], np.float32)
    check.compare_loss(nll)
    assert check.failure() == ""
    nll[token] = np.inf
    check.compare_loss(nll)
    assert f"the loss of token {token} is NaN or infinite" in check.failure()


def test_an_interrupted_capture_keeps_its_differences(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stop(Exception):
        pass

    def stop(step: str) -> None:
        if step.startswith("layer 3"):
            raise Stop

    model = tiny_model("mistral")
    capture_prompt(model, prompt_of(), tmp_path / "whole.h5")
    with pytest.raises(Stop):
        capture_prompt(model, prompt_of(), tmp_path / "c.h5", progress=stop)
    monkeypatch.setattr(self_check.SelfCheck, "take", lambda *_: pytest.fail("taken"))
    with pytest.raises(pytest.fail.Exception):
        capture_prompt(model, prompt_of(), tmp_path / "c.h5")
    monkeypatch.undo()
    capture_prompt(model, prompt_of(), tmp_path / "c.h5")
    assert checks_of(tmp_path / "c.h5") == checks_of(tmp_path / "whole.h5")


def test_the_sinks_of_gpt_oss_are_stored(tmp_path: pathlib.Path) -> None:
    model = tiny_model("gpt-oss")
    capture_prompt(model, prompt_of(), tmp_path / "c.h5", CaptureOptions(dtype="bfloat16"))
    with h5py.File(tmp_path / "c.h5") as file:
        for layer, group in zip(model.model.layers, file["layers"].values(), strict=True):
            assert group["sinks"].dtype == "float32"
            assert group["sinks"][()].tolist() == layer.self_attn.sinks.detach().tolist()


def test_an_output_embedding_that_is_called_decoder_is_passed_over(tmp_path: pathlib.Path) -> None:
    """In ModernBERT; the decoder that is meant is its base model."""
    capture_prompt(random_model(unlike_config("modernbert-decoder"), 0), prompt_of(), tmp_path / "c.h5")
    assert {check["outcome"] for check in checks_of(tmp_path / "c.h5").values()} == {"passed"}


@pytest.mark.parametrize("kind", ["BloomConfig", "MambaConfig"])
def test_models_that_cannot_be_watched_are_refused_in_a_sentence(kind: str, tmp_path: pathlib.Path) -> None:
    import transformers

    config = getattr(transformers, kind)(vocab_size=97, hidden_size=32, n_layer=2, num_hidden_layers=2, n_head=4)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    with pytest.raises(CaptureError, match="This architecture cannot be captured"):
        capture_prompt(model, prompt_of(), tmp_path / "c.h5")
    assert list(tmp_path.iterdir()) == []


def test_a_prompt_longer_than_the_learned_positions_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(
        CaptureError, match="600 tokens, the model has embeddings for 512 positions. Ask for at most 512"
    ):
        capture_prompt(tiny_model("gpt2"), prompt_of(600), tmp_path / "c.h5")


def test_logits_are_the_models_own() -> None:
    ids = torch.tensor([random_ids(12, 5)])
    for name in ("granite", "cohere", "gemma2", "gpt-oss"):
        model = tiny_model(name)
        with torch.no_grad():
            hidden = decoder_of(model)(input_ids=ids, use_cache=False).last_hidden_state[0]
            assert torch.equal(attention.logits_of(model, hidden), model(input_ids=ids).logits[0])
        assert "forward" not in vars(decoder_of(model))
