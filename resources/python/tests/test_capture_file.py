"""The file: exact format, bits, hash, interruption and resumption, refusals."""

from __future__ import annotations

import hashlib
import pathlib
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from tiny_models import LetterTokenizer, random_ids, tiny_model

from kvscope_capture import CaptureError, CaptureOptions, Prompt, capture_prompt, hash_of_capture
from kvscope_capture.capture_file import encode
from kvscope_capture.streaming import fingerprint_of


def prompt_of(n: int = 20) -> Prompt:
    prompt = Prompt(LetterTokenizer())
    prompt.ids = random_ids(n, seed=2)
    return prompt


def naive_hash(path: pathlib.Path) -> str:
    """The format's sentence, word for word, over whole data sets."""
    parts: dict[str, bytes] = {}
    with h5py.File(path) as file:

        def visit(name: str, node: Any) -> None:
            if isinstance(node, h5py.Dataset) and name.split("/")[0] in ("tokens", "rope", "layers"):
                parts[name] = b"\0".join([name.encode(), ",".join(map(str, node.shape)).encode(), node[()].tobytes()])

        file.visititems(visit)
    return hashlib.sha256(b"".join(parts[name] for name in sorted(parts))).hexdigest()


def test_buffers_belong_to_the_weights() -> None:
    """The correction that chooses experts is a buffer; those of the rotation may change with a prompt's length."""
    model = tiny_model("deepseek-v3")
    before, buffers = fingerprint_of(model), dict(model.named_buffers())
    correction = next(buffer for name, buffer in buffers.items() if name.endswith("e_score_correction_bias"))
    next(buffer for name, buffer in buffers.items() if "rotary_emb" in name).add_(1)
    assert fingerprint_of(model) == before
    correction.add_(1)
    assert fingerprint_of(model) != before


def test_format_of_a_window_capture_with_chosen_layers(tmp_path: pathlib.Path) -> None:
    options = CaptureOptions(layers=(0, 2), q_window=6, o_proj=True, compress=True, notes="a note")
    digest = capture_prompt(tiny_model("qwen3"), prompt_of(), tmp_path / "c.h5", options, "tiny/qwen3", "7")
    with h5py.File(tmp_path / "c.h5") as file:
        attributes = dict(file.attrs)
        assert (attributes["format"], attributes["version"]) == ("kvscope-capture", 1)
        assert [attributes[f"num_{x}"] for x in ("layers", "q_heads", "kv_heads")] == [3, 4, 2]
        assert (attributes["head_dim"], attributes["value_dim"]) == (16, 16)
        assert (attributes["model_id"], attributes["model_revision"], attributes["notes"]) == (
            "tiny/qwen3",
            "7",
            "a note",
        )
        assert "partial_state" not in attributes
        assert sorted(file["layers"]) == ["00", "02"]
        layer = file["layers/02"]
        assert {name: d.shape for name, d in layer.items()} == {
            "q_window": (4, 6, 16),
            "k": (2, 20, 16),
            "v": (2, 20, 16),
            "o_proj": (32, 4, 16),
        }
        assert layer["k"].dtype == np.uint16 and layer["k"].attrs["dtype"] == "bfloat16"
        assert layer.attrs["kv_of_q"].tolist() == [0, 0, 1, 1]
        assert file["tokens/offsets"].shape == (21,) and file["tokens/ids"].dtype == np.int32
    assert digest == naive_hash(tmp_path / "c.h5")
    assert list(tmp_path.iterdir()) == [tmp_path / "c.h5"]


def test_the_window_holds_the_last_queries(tmp_path: pathlib.Path) -> None:
    model = tiny_model("llama")
    for name, window in (("all", 0), ("some", 5)):
        capture_prompt(model, prompt_of(), tmp_path / f"{name}.h5", CaptureOptions(q_window=window))
    with h5py.File(tmp_path / "all.h5") as every, h5py.File(tmp_path / "some.h5") as some:
        assert np.array_equal(every["layers/01/q"][:, -5:], some["layers/01/q_window"])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_encoding_keeps_what_the_type_can_hold(dtype: str) -> None:
    values = torch.tensor([[[1.0, -0.15625, 3.0e-2, 448.0]]])
    bits = encode(values, dtype, "x")
    back = torch.from_numpy(bits.view(np.int16)).view(torch.bfloat16) if dtype == "bfloat16" else torch.from_numpy(bits)
    assert torch.allclose(back.float(), values, rtol=2.0**-8 if dtype == "bfloat16" else 2.0**-11)


def test_values_that_cannot_be_stored_are_refused_by_place() -> None:
    values = torch.zeros(2, 3, 4)
    values[1, 2, 0] = 1e5
    with pytest.raises(CaptureError, match="layers/00/k: a value at head 1, token 2 is beyond the range of float16"):
        encode(values, "float16", "layers/00/k")
    values[0, 1, 3] = torch.nan
    with pytest.raises(CaptureError, match="head 0, token 1 is NaN or infinite"):
        encode(values, "bfloat16", "layers/00/k")


class Stop(Exception):
    pass


def interrupt_at(text: str) -> Any:
    def progress(step: str) -> None:
        if step.startswith(text):
            raise Stop

    return progress


@pytest.mark.parametrize("name", ["llama", "gpt2", "gemma3"])
@pytest.mark.parametrize("where", ["layer 1 ", "layer 2 ", "layer 3 ", "token losses", "hashing"])
def test_an_interrupted_capture_goes_on_and_ends_the_same(name: str, where: str, tmp_path: pathlib.Path) -> None:
    model = tiny_model(name)
    whole = capture_prompt(model, prompt_of(), tmp_path / "whole.h5")
    out = tmp_path / "c.h5"
    with pytest.raises(Stop):
        capture_prompt(model, prompt_of(), out, progress=interrupt_at(where))
    assert not out.exists()
    steps: list[str] = []
    assert capture_prompt(model, prompt_of(), out, progress=steps.append) == whole
    computed = [step for step in steps if step.startswith("layer")]
    expected = {"layer 1 ": 3, "layer 2 ": 2, "layer 3 ": 1, "token losses": 0, "hashing": 0}[where]
    assert len(computed) == expected
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c.h5", "whole.h5"]


def test_the_rest_of_another_capture_is_not_continued(tmp_path: pathlib.Path) -> None:
    model, out = tiny_model("llama"), tmp_path / "c.h5"
    with pytest.raises(Stop):
        capture_prompt(model, prompt_of(12), out, progress=interrupt_at("layer 3 "))
    digest = capture_prompt(model, prompt_of(20), out)
    assert digest == capture_prompt(model, prompt_of(20), tmp_path / "fresh.h5")


def test_the_rest_of_other_weights_is_not_continued(tmp_path: pathlib.Path) -> None:
    """Training went on in the same folder: --resume is refused; without it the whole capture is of one model."""
    out, model = tmp_path / "c.h5", tiny_model("llama")
    with pytest.raises(Stop):
        capture_prompt(model, prompt_of(), out, progress=interrupt_at("layer 3 "))
    with torch.no_grad():
        model.model.layers[0].mlp.up_proj.weight.mul_(1.01)
    with pytest.raises(CaptureError, match="of other weights.*or leave --resume out to begin anew"):
        capture_prompt(model, prompt_of(), out, resume=True)
    assert capture_prompt(model, prompt_of(), out) == capture_prompt(model, prompt_of(), tmp_path / "fresh.h5")


def test_a_damaged_rest_is_written_anew(tmp_path: pathlib.Path) -> None:
    out = tmp_path / "c.h5"
    (tmp_path / "c.h5.partial").write_bytes(b"not HDF5")
    (tmp_path / "c.h5.stream.pt").write_bytes(b"not torch")
    digest = capture_prompt(tiny_model("llama"), prompt_of(), out)
    with h5py.File(out) as file:
        assert hash_of_capture(file) == digest


def test_refusals_leave_nothing_behind(tmp_path: pathlib.Path) -> None:
    model = tiny_model("llama")
    with pytest.raises(CaptureError, match="layer 3 does not exist. Name layers 0-2"):
        capture_prompt(model, prompt_of(), tmp_path / "c.h5", CaptureOptions(layers=(3,)))
    with pytest.raises(CaptureError, match="fewer than two tokens"):
        capture_prompt(model, prompt_of(1), tmp_path / "c.h5")
    with pytest.raises(CaptureError, match="the folder does not exist"):
        capture_prompt(model, prompt_of(), tmp_path / "no" / "c.h5")
    assert list(tmp_path.iterdir()) == []


def test_the_model_is_left_as_it_was(tmp_path: pathlib.Path) -> None:
    model = tiny_model("qwen2")
    ids = torch.tensor([random_ids(9, 3)])
    before = model(input_ids=ids).logits
    capture_prompt(model, prompt_of(), tmp_path / "c.h5")
    assert model.config._attn_implementation == "eager"
    assert torch.equal(model(input_ids=ids).logits, before)
    assert all("forward" not in vars(layer) for layer in model.model.layers)


def test_a_second_run_into_one_file_is_refused_at_once(tmp_path: pathlib.Path) -> None:
    """The first one goes on: between two layers its file is closed."""
    model, out = tiny_model("llama"), tmp_path / "c.h5"
    whole = capture_prompt(model, prompt_of(20), tmp_path / "whole.h5")
    refused: list[str] = []

    def second(step: str) -> None:
        if step.startswith(("layer 3 ", "hashing")):
            with pytest.raises(CaptureError, match="c.h5.partial: is being written by another run. Wait for it"):
                capture_prompt(tiny_model("llama", seed=1), prompt_of(12), out, progress=refused.append)
            assert not refused

    assert capture_prompt(model, prompt_of(20), out, progress=second) == whole
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.h5", "whole.h5"]
