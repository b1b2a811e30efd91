"""The described model against the model itself: random weights, its own eager attention, its own rotation."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import h5py
import jsonschema
import numpy as np
import pytest
import torch
from hub_configs import HUB, hub
from safetensors.torch import save_file
from tiny_models import LetterTokenizer, random_ids, random_model
from transformers import AutoConfig

from kvscope_capture import CaptureOptions, Prompt, capture_prompt
from kvscope_capture.describe import describe, resolve_config
from kvscope_capture.describe_command import main
from kvscope_capture.errors import CaptureError

TOKENS, SHIFT = 24, 5
SCHEMA = json.loads(
    (pathlib.Path(__file__).parents[2] / "schemas/described_model.schema.json").read_text(encoding="utf-8")
)
PROGRAM = os.environ.get("KVSCOPE_PROGRAM", "")
needs_program = pytest.mark.skipif(not PROGRAM, reason="KVSCOPE_PROGRAM does not name the built kvscope")
READ_BY_THE_PROGRAM = (
    "llama-without-theta",
    "llama-3",
    "llama-linear",
    "llama-wide-heads",
    "mistral",
    "mistral-without-window",
    "qwen2",
    "qwen3",
)


def config_file(name: str, folder: pathlib.Path) -> pathlib.Path:
    path = folder / "config.json"
    path.write_text(json.dumps(HUB[name]), encoding="utf-8")
    return path


@contextlib.contextmanager
def recorded(model: Any) -> Iterator[tuple[list[Any], list[float]]]:
    """Arguments and weights of the model's own eager attention, and the magnitudes of its rotary embedding."""
    calls: list[Any] = []
    magnitudes: list[float] = []
    modules = {sys.modules[type(m).__module__] for m in model.modules() if type(m).__module__ in sys.modules}
    patched = [m for m in modules if hasattr(m, "eager_attention_forward")]
    originals = [m.eager_attention_forward for m in patched]

    def wrap(original: Any) -> Any:
        def attend(
            module: Any, query: Any, key: Any, value: Any, attention_mask: Any, *args: Any, **kwargs: Any
        ) -> Any:
            out, weights = original(module, query, key, value, attention_mask, *args, **kwargs)
            calls.append((module, query[0], key[0], value[0], weights[0]))
            return out, weights

        return attend

    def note(_module: Any, _inputs: Any, output: Any) -> None:
        magnitudes.append(float((output[0] ** 2 + output[1] ** 2).mean() ** 0.5))

    handles = [m.register_forward_hook(note) for m in model.modules() if "RotaryEmbedding" in type(m).__name__]
    for module, original in zip(patched, originals, strict=True):
        module.eager_attention_forward = wrap(original)
    try:
        yield calls, magnitudes
    finally:
        for module, original in zip(patched, originals, strict=True):
            module.eager_attention_forward = original
        for handle in handles:
            handle.remove()


def run(model: Any, shift: int = 0) -> tuple[list[Any], list[float]]:
    ids = torch.randint(1, 97, (1, TOKENS), generator=torch.Generator().manual_seed(7))
    with recorded(model) as (calls, magnitudes), torch.no_grad():
        model(input_ids=ids, position_ids=torch.arange(shift, shift + TOKENS)[None], use_cache=False)
    return calls, magnitudes


def attention_weights(layer: dict[str, Any], query: Any, key: Any, sinks: Any) -> Any:
    """[Hq, n, n] in double from what is described, by the definition."""
    group = query.shape[0] // key.shape[0]
    logits = layer["scaling"] * query.double() @ key.double().repeat_interleave(group, 0).transpose(1, 2)
    if layer["softcap"]:
        logits = layer["softcap"] * torch.tanh(logits / layer["softcap"])
    i, j = torch.arange(TOKENS)[:, None], torch.arange(TOKENS)
    hidden = j > i
    if layer["sliding_window"]:
        hidden = hidden | (j <= i - layer["sliding_window"])
    logits = logits.masked_fill(hidden, -torch.inf)
    if layer["sinks"]:
        logits = torch.cat([logits, sinks.double()[:, None, None].expand(-1, TOKENS, 1)], -1)
    return torch.softmax(logits, -1)[..., :TOKENS]


def turned(key: Any, rope: dict[str, Any], by: int) -> Any:
    """Keys [H, n, d] rotated further by `by` positions, by the definition: pair by pair."""
    out = key.double().clone()
    pairs = rope["rotary_dim"] // 2
    for pair, frequency in enumerate(rope["inv_freq"]):
        one = rope["rotary_begin"] + (2 * pair if rope["layout"] == "interleaved" else pair)
        two = one + (1 if rope["layout"] == "interleaved" else pairs)
        a, b = key[..., one].double(), key[..., two].double()
        cos, sin = np.cos(by * frequency), np.sin(by * frequency)
        out[..., one], out[..., two] = a * cos - b * sin, b * cos + a * sin
    return out


@pytest.mark.parametrize("name", HUB)
def test_described_is_what_the_model_does(name: str, tmp_path: pathlib.Path) -> None:
    path = config_file(name, tmp_path)
    described = describe(resolve_config(str(path)), prompt_tokens=TOKENS + SHIFT)
    jsonschema.validate(described, SCHEMA)
    model = random_model(AutoConfig.from_pretrained(path), seed=3)
    calls, magnitudes = run(model)
    shifted, _ = run(model, SHIFT)
    assert len(calls) == described["num_layers"] == len(described["layers"])
    for layer, (module, query, key, value, weights), again in zip(described["layers"], calls, shifted, strict=True):
        assert [query.shape[0], key.shape[0], key.shape[2], value.shape[2]] == [
            described[size] for size in ("num_q_heads", "num_kv_heads", "head_dim", "value_dim")
        ]
        sinks = getattr(module, "sinks", None)
        assert layer["sinks"] == (sinks is not None)
        assert (attention_weights(layer, query, key, sinks) - weights).abs().max() < 1e-5
        # The same tokens SHIFT positions later: a relative rotation keeps the hidden states and rotates the keys.
        if name != "gpt2":
            wanted = turned(key, described["ropes"][layer["rope"]], SHIFT) if layer["rope"] else key.double()
            assert (again[2] - wanted).abs().max() < 1e-4 * key.abs().max()
    expected = {rope["attention_scaling"] for rope in described["ropes"].values()}
    assert (len(expected), bool(magnitudes)) == ((0, False) if name == "gpt2" else (1, True))
    assert magnitudes == pytest.approx([next(iter(expected), 1.0)] * len(magnitudes))


def test_traits() -> None:
    """The trait for which each file is in the list."""

    def of(name: str, tokens: int | None = None) -> dict[str, Any]:
        fields = HUB[name]
        return describe(AutoConfig.for_model(**fields), prompt_tokens=tokens)

    assert [layer["sliding_window"] for layer in of("gemma2")["layers"]] == [7, 0, 7]
    assert [layer["sliding_window"] for layer in of("gemma3")["layers"]] == [7, 7, 0]
    assert [layer["sliding_window"] for layer in of("qwen2")["layers"]] == [0, 0, 0]
    assert [layer["sliding_window"] for layer in of("qwen2-window")["layers"]] == [0, 7, 7]
    assert [layer["rope"] for layer in of("smollm3")["layers"]] == ["all", None, "all"]
    assert [layer["rope"] for layer in of("gpt2")["layers"]] == [None] * 3
    assert of("granite")["layers"][0]["scaling"] == 0.05
    assert of("gpt-oss")["layers"][0]["sinks"]
    assert of("cohere")["ropes"]["all"]["layout"] == "interleaved"
    deepseek = of("deepseek-v3")
    assert (deepseek["head_dim"], deepseek["value_dim"]) == (24, 12)
    assert (deepseek["ropes"]["all"]["rotary_begin"], deepseek["ropes"]["all"]["rotary_dim"]) == (16, 8)
    assert of("llama-without-theta")["ropes"]["all"]["theta"] == 10000


def test_frequencies_that_depend_on_the_prompt() -> None:
    fields = hub("llama", rope_scaling={"type": "dynamic", "factor": 2.0})
    with pytest.raises(CaptureError, match="--tokens"):
        describe(AutoConfig.for_model(**fields))
    short, long = (describe(AutoConfig.for_model(**fields), prompt_tokens=n) for n in (100, 2000))
    assert (short["prompt_tokens"], long["prompt_tokens"]) == (100, 2000)
    assert short["ropes"]["all"]["inv_freq"][-1] > long["ropes"]["all"]["inv_freq"][-1]


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (hub("mamba"), "mamba"),
        (hub("bloom", n_head=4, n_layer=3), "bloom|layer 0"),
        (
            hub("llama4_text", head_dim=8, attention_chunk_size=16, num_local_experts=2),
            "chunked|layer 0|attention mask",
        ),
        (dict(model_type="no_such_model"), "configuration cannot be read"),
    ],
)
def test_refusals_are_one_sentence(
    fields: dict[str, Any], sentence: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(fields), encoding="utf-8")
    assert main([str(tmp_path), "--out", str(tmp_path / "model.json")]) == 2
    message = capsys.readouterr().err
    assert message.startswith("kvscope-describe: ") and message.count("\n") == 1
    assert re.search(sentence, message), message
    assert sorted(p.name for p in tmp_path.iterdir()) == ["config.json"]


@pytest.mark.parametrize("given", ["", "config.json"])
def test_a_configuration_is_not_replaced(
    given: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(hub("llama")), encoding="utf-8")
    before = config.read_bytes()
    assert main([str(tmp_path / given), "--out", str(config)]) == 2
    assert "would replace what is read" in capsys.readouterr().err
    assert config.read_bytes() == before


@pytest.mark.parametrize("name", ["index_topk", "index_topk_blocks"])
def test_sparse_attention_is_refused(name: str, tmp_path: pathlib.Path) -> None:
    """DeepSeek-V3.2, GLM-MoE-DSA and MiniMax-M3 choose the tokens that a query attends to."""
    model = random_model(AutoConfig.for_model(**hub("llama")), 0)
    setattr(model.config, name, 8)
    prompt = Prompt(LetterTokenizer())
    prompt.ids = random_ids(TOKENS, 1)
    with pytest.raises(CaptureError, match=f"attends to chosen tokens only .{name}."):
        capture_prompt(model, prompt, tmp_path / "c.h5")
    with pytest.raises(CaptureError, match=f"attends to chosen tokens only .{name}."):
        describe(model.config)


def converted(
    tensors: pathlib.Path, model: pathlib.Path
) -> tuple[list[dict[str, Any]], dict[str, Any], dict[str, Any]]:
    """Attributes of the layers, the rope attribute and the frequencies of what `kvscope convert` makes."""
    out = tensors.with_suffix(".h5")
    command = [PROGRAM, "convert", str(tensors), "--config", str(model), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with h5py.File(out) as file:
        layers = [{k: np.asarray(v).tolist() for k, v in group.attrs.items()} for group in file["layers"].values()]
        found: dict[str, Any] = {}
        if "rope" in file:
            file["rope"].visititems(lambda n, d: found.update({n: d[()]}) if isinstance(d, h5py.Dataset) else None)
        return layers, json.loads(file.attrs["rope"]), found


def some_tensors(described: dict[str, Any], path: pathlib.Path) -> pathlib.Path:
    heads, queries, n = described["num_kv_heads"], described["num_q_heads"], 6
    tensors = {}
    for layer in range(described["num_layers"]):
        tensors[f"layers.{layer}.k"] = torch.randn(heads, n, described["head_dim"])
        tensors[f"layers.{layer}.v"] = torch.randn(heads, n, described["value_dim"])
        tensors[f"layers.{layer}.q"] = torch.randn(queries, n, described["head_dim"])
        if described["layers"][layer]["sinks"]:
            tensors[f"layers.{layer}.sinks"] = torch.randn(queries)
    save_file(tensors, path)
    return path


@needs_program
@pytest.mark.parametrize("name", HUB)
def test_the_program_takes_it(name: str, tmp_path: pathlib.Path) -> None:
    config = config_file(name, tmp_path)
    model = tmp_path / "model.json"
    assert main([str(config), "--out", str(model)]) == 0
    described = json.loads(model.read_text(encoding="utf-8"))
    tensors = some_tensors(described, tmp_path / "kv.safetensors")
    layers, rope, frequencies = converted(tensors, model)
    for found, wanted in zip(layers, described["layers"], strict=True):
        assert (found["scaling"], found["softcap"], found["sliding_window"], found["attn_type"]) == tuple(
            wanted[k] for k in ("scaling", "softcap", "sliding_window", "attn_type")
        )
        assert bool(found["has_rope"]) == (wanted["rope"] is not None)
        if wanted["rope"]:
            own = f"{wanted['attn_type']}/inv_freq"
            stored = frequencies[own if own in frequencies else "inv_freq"]
            kind = described["ropes"][wanted["rope"]]
            assert stored.tolist() == kind["inv_freq"]
            rope.setdefault("rotary_begin", 0)
            assert {k: rope[k] for k in ("rotary_begin", "layout", "rotary_dim", "attention_scaling")} == {
                k: kind[k] for k in ("rotary_begin", "layout", "rotary_dim", "attention_scaling")
            }


@needs_program
@pytest.mark.parametrize("name", HUB)
def test_a_raw_config_is_read_right_or_not_at_all(name: str, tmp_path: pathlib.Path) -> None:
    config = config_file(name, tmp_path)
    model = tmp_path / "model.json"
    assert main([str(config), "--out", str(model)]) == 0
    tensors = some_tensors(json.loads(model.read_text(encoding="utf-8")), tmp_path / "kv.safetensors")
    if name not in READ_BY_THE_PROGRAM:
        command = [PROGRAM, "convert", str(tensors), "--config", str(config), "--out", str(tmp_path / "raw.h5")]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 2 and "kvscope-describe MODEL" in done.stderr and done.stderr.count("\n") == 1
        assert not (tmp_path / "raw.h5").exists()
        return
    raw, described = converted(tensors, config), converted(tensors, model)
    assert [{k: v for k, v in layer.items() if k != "scaling"} for layer in raw[0]] == [
        {k: v for k, v in layer.items() if k != "scaling"} for layer in described[0]
    ]
    assert [layer["scaling"] for layer in raw[0]] == pytest.approx([layer["scaling"] for layer in described[0]])
    assert raw[1] == described[1]
    for name_of_set, values in described[2].items():
        assert raw[2][name_of_set] == pytest.approx(values, rel=3e-7)


@needs_program
@pytest.mark.parametrize("name", ["gemma2", "gemma3", "qwen2-window", "granite", "smollm3", "gpt-oss", "deepseek-v3"])
def test_an_import_is_the_capture_of_the_same_model(name: str, tmp_path: pathlib.Path) -> None:
    config = config_file(name, tmp_path)
    prompt = Prompt(LetterTokenizer())
    prompt.ids = random_ids(TOKENS, seed=2)
    captured = tmp_path / "captured.h5"
    capture_prompt(
        random_model(AutoConfig.from_pretrained(config), seed=3), prompt, captured, CaptureOptions(dtype="float32")
    )
    tensors = {}
    with h5py.File(captured) as file:
        for number, group in file["layers"].items():
            for part in {"q", "k", "v", "sinks"} & set(group):
                tensors[f"layers.{int(number)}.{part}"] = torch.from_numpy(group[part][()])
    save_file(tensors, tmp_path / "tensors.safetensors")
    assert main([str(config), "--out", str(tmp_path / "model.json")]) == 0
    converted(tmp_path / "tensors.safetensors", tmp_path / "model.json")
    with h5py.File(captured) as one, h5py.File(tmp_path / "tensors.h5") as other:
        for number, group in one["layers"].items():
            own = other[f"layers/{number}"]
            for key in ("scaling", "softcap", "sliding_window", "has_rope", "attn_type", "kv_of_q"):
                assert np.array_equal(group.attrs[key], own.attrs[key]), (number, key)
            assert all(np.array_equal(group[part][()], own[part][()]) for part in set(group) | set(own))
        frequencies: dict[str, Any] = {}
        one["rope"].visititems(lambda n, d: frequencies.update({n: d[()]}) if isinstance(d, h5py.Dataset) else None)
        assert all(np.array_equal(values, other[f"rope/{n}"][()]) for n, values in frequencies.items())
        ropes = [json.loads(file.attrs["rope"]) for file in (one, other)]
        for key in ("attention_scaling", "rotary_dim", "rotary_begin", "layout"):
            assert ropes[0].get(key, 0) == ropes[1].get(key, 0)
