"""A context that was read is saved as a capture, from the tensors that the worker holds."""

from __future__ import annotations

import pathlib
from typing import Any

import h5py
import pytest
import torch
import transformers
from live_client import Local
from test_live import ANSWER, BEGIN, IDS, QUESTION, opened, read
from test_press import CUT, MODELS, TOKENS
from tiny_models import COMMON, LetterTokenizer, random_ids, random_model

from kvscope_capture import hash_of_capture
from kvscope_capture.capture_file import written_alone
from kvscope_capture.errors import CaptureError
from kvscope_live.errors import Stopped
from kvscope_live.models import OpenModel

SEGMENTS = [[0, CUT, "context"], [CUT, BEGIN, "question"], [BEGIN, TOKENS, "answer"]]


def save(local: Local, context: str, out: pathlib.Path) -> str:
    answer = local.ask("context/save", {"context_id": context, "capture_to": str(out)})
    assert answer.keys() == {"capture_hash"}
    return str(answer["capture_hash"])


def full(local: Local, context: str) -> Any:
    given = {"context_id": context, "selection_ids": [None], "question_ids": QUESTION, "answer_ids": ANSWER}
    return local.ask("answer/score", given)["full"]


@pytest.mark.parametrize("name", MODELS)
def test_it_is_the_capture_that_reading_writes(
    name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written without another run of the model, also after answers."""
    local = opened(name)
    answer = read(local, IDS, CUT, segments=SEGMENTS, capture_to=str(tmp_path / "read.h5"))
    full(local, answer["context_id"])
    runs: list[int] = []
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(local.channel, "progress", lambda _, done, total: told.append((done, total)))
    for module in local.session.models["m1"].model.modules():
        module.register_forward_pre_hook(lambda *_: runs.append(1))
    digest = save(local, answer["context_id"], tmp_path / "saved.h5")
    assert not runs and len(local.session.contexts) == 1
    assert told == [(step, 4) for step in range(4)]  # three layers and the hash
    with h5py.File(tmp_path / "saved.h5") as file:
        assert answer["capture_hash"] == digest == file.attrs["capture_hash"] == hash_of_capture(file)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["read.h5", "saved.h5"]


def dynamic_rope() -> Any:
    common = COMMON | {"max_position_embeddings": 24}
    rope = {"rope_type": "dynamic", "rope_theta": 1000.0, "factor": 4.0}
    return random_model(transformers.LlamaConfig(**common, rope_parameters=rope), 0)


@pytest.mark.parametrize("name", ["phi3-long", "dynamic"])
def test_a_longer_context_changes_no_frequencies(name: str, tmp_path: pathlib.Path) -> None:
    """LongRoPE and dynamic RoPE rotate a long text differently; the first context keeps its own frequencies."""
    local = opened("phi3-long")
    if name == "dynamic":
        local.session.models["m1"] = OpenModel(dynamic_rope(), LetterTokenizer(), name, "")
    first = read(local, random_ids(20, 1), 16)["context_id"]
    save(local, first, tmp_path / "before.h5")
    longer = read(local, random_ids(90, 2), 80)
    made_for = local.session.models["m1"].model.config.max_position_embeddings
    assert ("notes" in longer["info"]) == (made_for < 90)
    save(local, longer["context_id"], tmp_path / "longer.h5")
    save(local, first, tmp_path / "after.h5")
    with h5py.File(tmp_path / "before.h5") as before, h5py.File(tmp_path / "after.h5") as after:
        assert after["rope/inv_freq"][()].tolist() == before["rope/inv_freq"][()].tolist()
        assert after.attrs["capture_hash"] == before.attrs["capture_hash"]
        assert "notes" not in before.attrs
        with h5py.File(tmp_path / "longer.h5") as other:
            noted = f"the text has 90 tokens, and the model was made for {made_for}"
            assert name != "dynamic" or other.attrs["notes"].startswith(noted)
            assert other["rope/inv_freq"][()].tolist() != before["rope/inv_freq"][()].tolist()


def test_a_stopped_one_leaves_no_file_and_the_context(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever the cancel comes, even while the hash is computed."""
    local = opened("llama")
    context = read(local, IDS, CUT)["context_id"]
    before, stages, stop_at = full(local, context), [""], 10**6

    def checkpoint(**status: Any) -> None:
        stages.append(status.get("stage", stages[-1]))
        if len(stages) > stop_at:
            raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(local.channel, "checkpoint", checkpoint)
        digest = save(local, context, tmp_path / "c.h5")
        (tmp_path / "c.h5").unlink()
        every, hashing = len(stages), stages.count("hashing")
        assert hashing > 10  # a long capture has many heads, each of them long
        for last in range(1, every):
            stages[1:], stop_at = [], last
            with pytest.raises(Stopped):
                save(local, context, tmp_path / "c.h5")
            assert list(tmp_path.iterdir()) == []
    assert full(local, context) == before and list(local.session.contexts) == [context]
    assert save(local, context, tmp_path / "c.h5") == digest


def test_what_cannot_be_saved(tmp_path: pathlib.Path) -> None:
    local = opened("llama", dtype=torch.bfloat16)
    context = read(local, IDS, CUT)["context_id"]
    assert local.refused("context/save", {"context_id": "c9", "capture_to": str(tmp_path / "c.h5")}).code == -32054
    assert local.refused("context/save", {"context_id": context}).data["place"] == "capture_to"
    with pytest.raises(CaptureError, match="does not exist"):
        save(local, context, tmp_path / "no" / "c.h5")
    local.session.contexts[context].context.calls[1].key[1, 3] = torch.inf
    with pytest.raises(CaptureError, match="NaN or infinite"):
        save(local, context, tmp_path / "c.h5")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_another_run_writes_is_not_touched(tmp_path: pathlib.Path) -> None:
    local, out = opened("llama"), tmp_path / "c.h5"
    context = read(local, IDS, CUT)["context_id"]
    with written_alone(out):
        (tmp_path / "c.h5.partial").write_bytes(b"of the other run")
        with pytest.raises(CaptureError, match="c.h5.partial: is being written by another run"):
            save(local, context, out)
        assert (tmp_path / "c.h5.partial").read_bytes() == b"of the other run"
    save(local, context, out)
    assert list(tmp_path.iterdir()) == [out]


def test_a_full_disk_is_told_without_an_option_that_is_not_there(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = opened("llama")
    context = read(local, IDS, CUT)["context_id"]

    def full_disk(*_: Any, **__: Any) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(h5py.Group, "create_dataset", full_disk)
    with pytest.raises(CaptureError, match="No space left") as caught:
        save(local, context, tmp_path / "c.h5")
    assert caught.value.remedy == "Make room there" and list(tmp_path.iterdir()) == []
