"""Ports of a policy: a right one is equal, and each mistake is named for what it is."""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
from typing import Any

import pytest
import torch
from ports import Port
from tiny_models import (
    COMMON,
    CONFIGS,
    config_of,
    random_ids,
    random_model,
    tiny_model,
    unlike_config,
    whisper_config,
)
from transformers import DynamicCache

from kvscope_capture import CaptureError
from kvscope_capture.attention import decoder_of
from kvscope_press.battery import Battery, Row
from kvscope_press.check_press import load_press, prompt_ids
from kvscope_press.check_press_command import main
from kvscope_press.differences import Comparison
from kvscope_press.layer_inputs import choice_of, read_layers

TOKENS, SEED = 101, 4
POLICY = "snapkv:kvpress,window=16"


@pytest.fixture(scope="module")
def model() -> Any:
    return tiny_model("llama")


@pytest.fixture(scope="module")
def layers(model: Any) -> Any:
    if not os.environ.get("KVSCOPE_PROGRAM"):
        pytest.skip("KVSCOPE_PROGRAM is not set")
    return read_layers(model, random_ids(TOKENS, SEED))


def comparison(press: Any, layers: Any, folder: pathlib.Path, policy: str = POLICY) -> Comparison:
    return Comparison(press, policy, repr(1 - press.compression_ratio), random_ids(TOKENS, SEED), layers, folder)


def test_a_right_port_is_equal(layers: Any, tmp_path: pathlib.Path) -> None:
    found = comparison(Port(), layers, tmp_path)
    assert not found.partings() and not found.reasons()
    assert sum(len(choice.kept) for choice in found.own) == 6


@pytest.mark.parametrize(
    "mistake, names",
    [
        ("count", ["rounding of the count"]),
        ("on top", ["count"]),
        ("sinks", ["protection of sinks or recent tokens"]),
        ("unprotected", ["protection of sinks or recent tokens"]),
        ("edge", ["pooling edge"]),
        ("upcast", ["up-cast"]),
        ("rope", ["RoPE"]),
        ("rope early", ["RoPE"]),
        ("no rope", ["RoPE"]),
        ("future", ["a look at the future"]),
        ("group", ["another parameter"]),
    ],
)
def test_each_mistake_is_named(mistake: str, names: list[str], layers: Any, tmp_path: pathlib.Path) -> None:
    found = comparison(Port(mistake=mistake, compression_ratio=0.53), layers, tmp_path)
    assert found.partings(-1.0), "the mistake changes no list of this prompt"
    reasons = found.reasons()
    assert [reason.name for reason in reasons] == names, reasons


@pytest.mark.parametrize("kind", ["cohere", "glm4", "gemma3"])
def test_queries_at_other_positions_are_named_however_the_model_rotates(kind: str, tmp_path: pathlib.Path) -> None:
    """Neighbouring coordinates, half of the coordinates, and two sets of frequencies."""
    if not os.environ.get("KVSCOPE_PROGRAM"):
        pytest.skip("KVSCOPE_PROGRAM is not set")
    config = CONFIGS[kind]()
    config.sliding_window = TOKENS  # which hides nothing: the port knows no window
    layers = read_layers(random_model(config, 0), random_ids(TOKENS, SEED))
    assert not comparison(Port(), layers, tmp_path).partings()
    (reason,) = comparison(Port(mistake="rope early"), layers, tmp_path).reasons()
    assert reason.name == "RoPE" and "one position early" in reason.sentence, reason


def test_words_of_reasons(layers: Any, tmp_path: pathlib.Path) -> None:
    def words(mistake: str) -> str:
        return comparison(Port(mistake=mistake, compression_ratio=0.53), layers, tmp_path).reasons()[0].sentence

    assert words("count") == "the press keeps 48 tokens a head, 47.47 rounded up; the policy 47"
    assert words("sinks").startswith("the press keeps the first 4 tokens in every head whatever they score")
    assert words("unprotected").startswith("the policy keeps the last 16 tokens in every head")
    assert "positions that begin at the window, 85 early" in words("rope")
    assert words("group") == "the lists are equal under group_rule=max"


def test_ties(layers: Any, tmp_path: pathlib.Path) -> None:
    policy = POLICY + ",pool=max"
    assert not comparison(Port(pool="max"), layers, tmp_path, policy).partings()
    found = comparison(Port(pool="max", mistake="ties"), layers, tmp_path, policy)
    assert found.partings(-1.0)
    assert [reason.name for reason in found.reasons()] == ["tie"]


def test_two_mistakes_are_both_named(layers: Any, tmp_path: pathlib.Path) -> None:
    class Both(Port):
        def score(self, *args: Any) -> torch.Tensor:
            scores = super().score(*args)
            scores[..., :4] = scores.max()
            return scores

    found = comparison(Both(mistake="count", compression_ratio=0.53), layers, tmp_path).reasons()
    assert [reason.name for reason in found] == ["rounding of the count", "protection of sinks or recent tokens"]


def test_nothing_known_is_said_to_be_that(layers: Any, tmp_path: pathlib.Path) -> None:
    class Noise(Port):
        def score(self, *args: Any) -> torch.Tensor:
            return torch.rand(super().score(*args).shape, generator=torch.Generator().manual_seed(3))

    assert [reason.name for reason in comparison(Noise(), layers, tmp_path).reasons()] == ["other"]


def battery(model: Any, press: Any) -> dict[str, Row]:
    ids = random_ids(TOKENS, SEED)
    own = [choice_of(press, layer) for layer in read_layers(model, ids)]
    return {row.name: row for row in Battery(model, press, ids, own, False).rows()}


def test_the_battery_of_a_right_port(model: Any) -> None:
    rows = battery(model, Port())
    assert len(rows) == 12 and not [row for row in rows.values() if row.outcome in ("FAILED", "not tried")], rows
    assert rows["prompts of 1, 2, 31 and 33 tokens"].words.startswith("stops at 1, 2 tokens (the press stopped (Asser")
    assert "last 16 tokens" in rows["protected tokens"].words
    assert rows["two prompts at once"].outcome == "passed"


class Unset:
    """Keeps a quarter, and has no compression_ratio."""

    __call__ = Port.__call__

    def compress(self, *args: Any) -> Any:
        return Port().compress(*args)


class Fixed(Unset):
    """Its compression_ratio can be read only."""

    @property
    def compression_ratio(self) -> float:
        return 0.75


@pytest.mark.parametrize(
    "mistake, name",
    [
        ("always", "nothing removed changes nothing"),
        ("none left", "a budget below one token"),
        ("first of batch", "two prompts at once"),
    ],
)
def test_the_battery_finds(mistake: str, name: str, model: Any) -> None:
    rows = battery(model, Port(mistake=mistake, compression_ratio=0.0 if mistake == "always" else 0.75))
    assert [row.name for row in rows.values() if row.outcome == "FAILED"] == [name]


@pytest.mark.parametrize("press", [Unset(), Fixed()])
def test_the_battery_tries_no_other_ratio_of_a_press_that_has_one_only(press: Any, model: Any) -> None:
    rows = battery(model, press)
    assert not [row for row in rows.values() if row.outcome == "FAILED"], rows
    for name in ("nothing removed changes nothing", "a budget below one token"):
        assert rows[name].outcome == "not tried" and rows[name].words.endswith("compression_ratio that can be set")


def test_the_battery_finds_keys_at_other_positions(model: Any) -> None:
    class Moved(Port):
        def __call__(self, model: Any) -> Any:
            self.running = True
            return super().__call__(model)

        def compress(self, *args: Any) -> Any:
            keys, values = super().compress(*args)
            return (
                (keys.flip(-1), values)
                if getattr(self, "running", False) and args[2].shape[2] == 96
                else (keys, values)
            )

    row = battery(model, Moved())["evicted equals hidden, at the same positions"]
    assert row.outcome == "FAILED"


def test_a_press_that_cannot_be_checked_is_refused(layers: Any) -> None:
    with pytest.raises(CaptureError, match="returns keys that are not the cache's"):
        choice_of(Port(mistake="other keys"), layers[0])
    with pytest.raises(CaptureError, match="layer 0: the press stopped .AssertionError: the prompt is not longer"):
        choice_of(Port(window=500), layers[0])
    for text, sentence in [
        ("ports", "is not MODULE:CLASS"),
        ("nowhere:Port", "nowhere:Port cannot be made .ModuleNotFoundError"),
        ("ports:Ports", "AttributeError"),
        ("ports:Port,width=3", "TypeError"),
        ("pathlib:Path", "Path has no compress"),
    ]:
        with pytest.raises(CaptureError, match=sentence):
            load_press(text)
    assert load_press("ports:Port,compression_ratio=0.5,mistake=count").mistake == "count"


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (lambda: unlike_config("falcon_h1"), "falcon_h1: layers 0-2 carry a state beside keys and values"),
        (lambda: unlike_config("lfm2"), "lfm2: layer 0 carries a state beside keys and values"),
        (lambda: unlike_config("bart"), "bart: the model takes a token's position from the length of its cache"),
        (CONFIGS["gpt2"], "gpt2: GPT2Attention is not given its hidden states by name.*Capture the prompt"),
    ],
)
def test_a_model_whose_cache_no_press_prunes_is_refused(config: Any, sentence: str) -> None:
    with pytest.raises(CaptureError, match=sentence):
        read_layers(random_model(config(), 0), random_ids(20, 3))


@pytest.mark.parametrize("kind", ["deepseek_v2", "deepseek_v3"])
def test_a_cache_of_latents_is_refused_by_what_it_holds(kind: str) -> None:
    """Transformers 5.23 caches what attention expands to keys and values; a version that caches the keys is checked."""
    model = random_model(CONFIGS["deepseek-v3"]() if kind == "deepseek_v3" else unlike_config(kind), 0)
    cache = DynamicCache()
    model(input_ids=torch.tensor([[1, 2]]), past_key_values=cache)
    if cache.layers[0].keys.shape[1] == 4:
        assert len(read_layers(model, random_ids(20, 3))) == 3
        return
    sentence = (
        f"{kind}: the cache of layer 0 holds 1 x 16 numbers a token, from which attention makes the keys of 4 heads "
        r"of width 24 \(MLA\): a press is given no keys. "
        "Capture the prompt with kvscope-capture, and compare policies with kvscope measure"
    )
    with pytest.raises(CaptureError, match=sentence):
        read_layers(model, random_ids(20, 3))


def test_whisper_is_checked_where_its_attention_is_given_hidden_states_by_name() -> None:
    """Transformers 5.2 passes them by name, as presses expect; later versions do not."""
    model = random_model(whisper_config(), 0)
    seen: list[bool] = []
    hook = model.model.decoder.layers[0].self_attn.register_forward_pre_hook(
        lambda _, __, kwargs: seen.append("hidden_states" in kwargs), with_kwargs=True
    )
    model.model.decoder(input_ids=torch.tensor([[1, 2]]), use_cache=False)
    hook.remove()
    if seen == [True]:
        layers = read_layers(model, random_ids(20, 3))
        assert [tuple(layer.hidden.shape) for layer in layers] == [(1, 20, 32)] * 3
        assert all(torch.equal(layer.keys[0], layer.call.key) for layer in layers)
        return
    with pytest.raises(CaptureError, match="whisper: WhisperAttention is not given its hidden states by name"):
        read_layers(model, random_ids(20, 3))


@pytest.mark.parametrize("kind", ["ctrl", "moshi"])
def test_attention_that_no_press_finds_is_refused_by_its_name(kind: str) -> None:
    model = random_model(unlike_config(kind), 0)
    if not hasattr(sys.modules[type(decoder_of(model)).__module__], "eager_attention_forward"):  # Transformers 5.2
        with pytest.raises(CaptureError, match="does not call attention by Transformers' interface"):
            read_layers(model, random_ids(20, 3))
    elif kind == "ctrl":
        sentence = (
            r"ctrl: EncoderLayer has no attention module where presses look for it \(self_attn, attn, attention\). "
            "Capture the prompt with kvscope-capture, and compare policies with kvscope measure"
        )
        with pytest.raises(CaptureError, match=sentence):
            read_layers(model, random_ids(20, 3))
    else:
        assert len(read_layers(model, random_ids(20, 3))) == 3


def without_rotation(kind: str) -> Any:
    """OPT learns an embedding for each position; this size of Granite 4 has no positions at all."""
    if kind == "opt":
        sizes = dict(ffn_dim=48, word_embed_proj_dim=32)
        return random_model(config_of(kind, COMMON | sizes), 0)
    try:
        sizes = dict(layer_types=["full_attention"] * 3, shared_intermediate_size=48, mamba_n_heads=4)
        return random_model(config_of(kind, COMMON | sizes | dict(position_embedding_type="nope")), 0)
    except ValueError:
        pytest.skip("Transformers 5.2 gives Granite 4 a cache of its own, which no press prunes")


@pytest.mark.parametrize(
    ("kind", "what"), [("opt", "KeyError: .position_embeddings"), ("granitemoehybrid", "TypeError: .*NoneType")]
)
def test_a_press_that_rotates_nothing_is_checked_on_a_model_without_rotation(
    kind: str, what: str, tmp_path: pathlib.Path
) -> None:
    """For a press that needs a rotary embedding, the error says that the model has none."""
    if not os.environ.get("KVSCOPE_PROGRAM"):
        pytest.skip("KVSCOPE_PROGRAM is not set")

    class Norms(Port):
        def score(self, module: Any, hidden: Any, keys: Any, *_: Any) -> torch.Tensor:
            return -keys.norm(dim=-1)

    layers = read_layers(without_rotation(kind), random_ids(TOKENS, SEED))
    assert not comparison(Norms(), layers, tmp_path, "key_norm:kvpress").partings()

    class Rotary(Port):
        def score(self, module: Any, hidden: Any, *_: Any) -> torch.Tensor:
            turned: torch.Tensor = module.rotary_emb(hidden, torch.arange(TOKENS)[None])
            return turned

    remedy = "it looks for a rotary embedding, and this model hands its attention none. Check this"
    for press, stop in ((Port(), what), (Rotary(), "AttributeError: .*rotary_emb")):
        with pytest.raises(CaptureError, match=f"layer 1: the press stopped .{stop}.*: {remedy}"):
            choice_of(press, layers[1])
    with pytest.raises(CaptureError, match="the prompt is not longer than the window.$"):  # another reason
        choice_of(Port(window=500), layers[0])


def test_a_program_that_dies_without_a_word_is_an_error(
    layers: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "kvscope"
    program.write_text("#!/bin/sh\nkill -9 $$\n")
    program.chmod(0o755)
    monkeypatch.setenv("KVSCOPE_PROGRAM", str(program))
    with pytest.raises(CaptureError, match="kvscope ended with exit code -9"):
        comparison(Port(), layers, tmp_path)


def test_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    if not os.environ.get("KVSCOPE_PROGRAM"):
        pytest.skip("KVSCOPE_PROGRAM is not set")
    samples = pathlib.Path(__file__).resolve().parents[3] / "sample_data"
    folder = os.environ.get("KVSCOPE_TINYLM", str(samples / "tinylm"))
    words = [folder, "--policy", POLICY, "--tokens", "97", "--press"]
    assert main([*words, "ports:Port"]) == 0
    told = capsys.readouterr().out
    assert "lists    12 of 12 heads keep the same tokens" in told and "\nbattery\n" in told
    assert main([*words, "ports:Port,mistake=count", "--no-battery"]) == 1
    told = capsys.readouterr().out
    assert "why      rounding of the count: the press keeps 25" in told and "first    layer 0, KV head 0" in told
    tied = [folder, "--policy", POLICY + ",pool=max", "--tokens", "97", "--no-battery", "--press"]
    assert main([*tied, "ports:Port,pool=max,mistake=ties"]) == 0
    assert "why      tie: " in capsys.readouterr().out
    assert main([*words, "ports:Port,compression_ratio=0"]) == 2
    assert "nothing says how much is kept" in capsys.readouterr().err
    assert main([folder, "--policy", "snapvk", "--press", "ports:Port"]) == 2
    assert "Did you mean" in capsys.readouterr().err


def test_another_count_is_a_difference_and_the_help_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """ "Rounding" alone would include the reason `rounding of the count`, whose exit code is 1."""
    with pytest.raises(SystemExit):
        main(["--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert "0 equal but for ties and float rounding of scores, 1 different (also in the number of tokens alone)" in told


def test_a_byte_order_mark_is_no_token(tmp_path: pathlib.Path) -> None:
    (tmp_path / "t.txt").write_bytes("\ufeffab\r\nc".encode())
    given = argparse.Namespace(text=tmp_path / "t.txt", tokens=9)
    assert prompt_ids(given, lambda text: {"input_ids": [ord(c) for c in text]}, 0) == [ord(c) for c in "ab\nc"]
