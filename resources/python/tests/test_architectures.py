"""For every architecture: what the capture holds is enough to recompute the model's attention output."""

from __future__ import annotations

import json
import math
import pathlib
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from tiny_models import CONFIGS, LetterTokenizer, random_ids, tiny_model

from kvscope_capture import CaptureOptions, Prompt, capture_prompt, hash_of_capture
from kvscope_capture.attention import attention_of, decoder_of, layers_of, projection_of, sliding_window_of

TOKENS = 40
ROUNDING = 2e-5  # float32 model against double recomputation, relative to the largest output


def naive_attention(q: Any, k: Any, v: Any, group: h5py.Group) -> Any:
    """[n, Hq, dv] by loops over heads and rows in double, from the layer's attributes alone."""
    scaling, window, cap = (float(group.attrs[name]) for name in ("scaling", "sliding_window", "softcap"))
    sinks = group["sinks"][()].tolist() if "sinks" in group else None
    out = np.zeros((q.shape[1], q.shape[0], v.shape[2]))
    for head, kv_head in enumerate(group.attrs["kv_of_q"]):
        for i in range(q.shape[1]):
            first = max(0, i - int(window) + 1) if window else 0
            logits = [scaling * float(np.dot(q[head, i], k[kv_head, j])) for j in range(first, i + 1)]
            logits = [cap * math.tanh(x / cap) for x in logits] if cap else logits
            weights = np.exp(np.array(logits) - max(logits))
            further = math.exp(sinks[head] - max(logits)) if sinks else 0.0
            out[i, head] = (weights / (weights.sum() + further)) @ v[kv_head, first : i + 1]
    return out


def inverse_rotation(keys: Any, inv_freq: Any, rope: dict[str, Any], positions: Any) -> Any:
    """Pairs of the rotary_dim components from rotary_begin on, rotated back and divided by the magnitude."""
    half, begin, scale = rope["rotary_dim"] // 2, rope.get("rotary_begin", 0), rope["attention_scaling"]
    angle = positions[:, None] * inv_freq.astype(np.float64)
    turned = keys.copy()
    for pair in range(half):
        apart = rope["layout"] == "interleaved"
        i, j = (begin + 2 * pair, begin + 2 * pair + 1) if apart else (begin + pair, begin + half + pair)
        cos, sin = np.cos(angle[:, pair]), np.sin(angle[:, pair])
        turned[..., i] = (keys[..., i] * cos + keys[..., j] * sin) / scale
        turned[..., j] = (keys[..., j] * cos - keys[..., i] * sin) / scale
    return turned


def model_with_outputs(name: str) -> tuple[Any, dict[int, Any], dict[int, Any]]:
    """A model whose attention outputs before and after W_o are recorded as it runs its own eager attention."""
    model = tiny_model(name)
    before: dict[int, Any] = {}
    after: dict[int, Any] = {}
    for index, layer in enumerate(layers_of(model)):
        projection = projection_of(attention_of(layer))

        def note(_module: Any, inputs: Any, output: Any, index: int = index) -> None:
            before[index], after[index] = inputs[0][0].double().numpy(), output[0].double().numpy()

        projection.register_forward_hook(note)
    return model, before, after


def bias_of(layer: Any) -> Any:
    bias = projection_of(attention_of(layer)).bias
    return 0.0 if bias is None else bias.detach().double().numpy()


@pytest.mark.parametrize("name", CONFIGS)
def test_capture_recomputes_the_models_attention(name: str, tmp_path: pathlib.Path) -> None:
    model, before, after = model_with_outputs(name)
    prompt = Prompt(LetterTokenizer())
    prompt.ids = random_ids(TOKENS, seed=11)
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([prompt.ids])).logits[0].double()
    expected_before, expected_after = dict(before), dict(after)
    options = CaptureOptions(dtype="float32", o_proj=True, pre_rope=True)
    capture_prompt(model, prompt, tmp_path / "c.h5", options, name)
    with h5py.File(tmp_path / "c.h5") as file:
        assert len(file["layers"]) == len(layers_of(model))
        for index, layer in enumerate(layers_of(model)):
            group = file[f"layers/{index:02d}"]
            assert sliding_window_of(decoder_of(model).config, index) == group.attrs["sliding_window"]
            q, k, v = (group[x][()].astype(np.float64) for x in "qkv")
            out = naive_attention(q, k, v, group)
            flat = out.reshape(TOKENS, -1)
            assert np.abs(flat - expected_before[index]).max() < ROUNDING * np.abs(flat).max()
            projected = np.einsum("nhd,ohd->no", out, group["o_proj"][()].astype(np.float64)) + bias_of(layer)
            assert np.abs(projected - expected_after[index]).max() < ROUNDING * np.abs(projected).max()
        nll = file["tokens/nll"][()]
    wanted = torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(prompt.ids[1:]), reduction="none").numpy()
    assert np.isnan(nll[0]) and np.abs(nll[1:] - wanted).max() < 1e-4


@pytest.mark.parametrize("name", CONFIGS)
def test_keys_before_rope_are_the_inverse_of_the_rotated(name: str, tmp_path: pathlib.Path) -> None:
    prompt = Prompt(LetterTokenizer())
    prompt.ids = random_ids(TOKENS, seed=5)
    capture_prompt(tiny_model(name), prompt, tmp_path / "c.h5", CaptureOptions(dtype="float32", pre_rope=True), name)
    with h5py.File(tmp_path / "c.h5") as file:
        rope, positions = json.loads(file.attrs["rope"]), file["tokens/position_ids"][()]
        for group in file["layers"].values():
            rotates = name != "gpt2" and (name, group.name) != ("smollm3", "/layers/01")
            assert bool(group.attrs["has_rope"]) == rotates == ("k_pre" in group)
            if not rotates:
                continue
            own = f"rope/{group.attrs['attn_type']}/inv_freq"
            inv_freq = file[own if own in file else "rope/inv_freq"][()]
            for rotated, plain in (("k", "k_pre"), ("q", "q_pre")):
                turned = inverse_rotation(group[rotated][()].astype(np.float64), inv_freq, rope, positions)
                assert np.abs(turned - group[plain][()]).max() < ROUNDING * np.abs(turned).max()
                assert np.abs(group[rotated][()] - group[plain][()]).max() > 0.1


def test_traits_are_recorded(tmp_path: pathlib.Path) -> None:
    """What makes each architecture special is in the file, not only in the numbers."""
    seen: dict[str, Any] = {}
    for name in CONFIGS:
        prompt = Prompt(LetterTokenizer())
        prompt.ids = random_ids(8, seed=1)
        capture_prompt(tiny_model(name), prompt, tmp_path / f"{name}.h5", CaptureOptions(), name)
        with h5py.File(tmp_path / f"{name}.h5") as file:
            layers = [dict(g.attrs) for g in file["layers"].values()]
            seen[name] = (layers, json.loads(file.attrs["rope"]), sorted(file.get("rope", {})))
            assert hash_of_capture(file) == file.attrs["capture_hash"]
    assert seen["qwen3"][0][0]["qk_norm"] and not seen["qwen2"][0][0]["qk_norm"]
    assert [layer["sliding_window"] for layer in seen["mistral"][0]] == [9, 9, 9]
    assert [layer["softcap"] for layer in seen["gemma2"][0]] == [2.0] * 3
    assert seen["gemma2"][0][0]["scaling"] == pytest.approx(24**-0.5)
    assert sorted({layer["sliding_window"] for layer in seen["gemma2"][0]}) == [0, 7]
    assert [layer["sliding_window"] for layer in seen["gemma3"][0]] == [7, 0, 7]
    assert seen["gemma3"][2] == ["full_attention", "sliding_attention"]
    assert seen["phi3-partial"][1]["rotary_dim"] == 4
    assert seen["llama"][1]["type"] == "llama3" and seen["llama"][1]["factor"] == 8.0
    assert seen["llama-yarn"][1]["attention_scaling"] > 1.1
    assert seen["gpt2"][2] == [] and seen["gpt2"][1]["rotary_dim"] == 0
    assert [seen[name][1]["layout"] for name in ("cohere", "glm4", "llama")] == ["interleaved", "interleaved", "half"]
    assert seen["deepseek-v3"][1]["rotary_begin"] == 16 and seen["deepseek-v3"][1]["rotary_dim"] == 8
    assert [bool(layer["has_rope"]) for layer in seen["smollm3"][0]] == [True, False, True]


def test_long_prompts_change_the_frequencies_of_longrope(tmp_path: pathlib.Path) -> None:
    frequencies = []
    for n in (8, TOKENS):
        prompt = Prompt(LetterTokenizer())
        prompt.ids = random_ids(n, seed=1)
        capture_prompt(tiny_model("phi3-long"), prompt, tmp_path / f"{n}.h5", CaptureOptions(), "phi3")
        with h5py.File(tmp_path / f"{n}.h5") as file:
            frequencies.append(file["rope/inv_freq"][()])
    assert not np.allclose(frequencies[0], frequencies[1])
