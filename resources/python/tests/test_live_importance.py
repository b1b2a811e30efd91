"""What the answer needs: losses with hidden chunks against selections, scores of tokens against finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from live_client import Local
from test_live import ANSWER, IDS, QUESTION, opened, read, score
from test_live_program import ROOT, TINYLM
from test_press import CUT, MODELS, heads_of

from kvscope_capture import CaptureError
from kvscope_live import importance
from kvscope_live.errors import Stopped

STEPS = 400


def test_gradients_are_refused_where_the_context_would_be_rotated_otherwise() -> None:
    """LongRoPE rotates more than 24 tokens otherwise; the answer's loss is refused there too."""
    local = opened("phi3-long")
    context = read(local, IDS[:20], 18)["context_id"]
    given = {"context_id": context, "question_ids": IDS[:8], "answer_ids": ANSWER}
    with pytest.raises(CaptureError, match="beyond 24 tokens the model rotates all of them otherwise"):
        local.ask("gradient/read", given | {"steps": 1, "step": 0})


def losses_without(local: Local, context: str, chunks: list[list[int]], **more: Any) -> list[float]:
    given = {"context_id": context, "question_ids": QUESTION, "answer_ids": ANSWER, "chunks": chunks}
    found: list[float] = local.ask("chunks/importance", given | more)["losses"]
    return found


def scores(local: Local, context: str, steps: int, **more: Any) -> Any:
    """Of every layer, KV head and token."""
    given = {"context_id": context, "question_ids": QUESTION, "answer_ids": ANSWER, "steps": steps} | more
    for step in range(steps):
        first = len(local.channel.sent)
        count = local.ask("gradient/read", given | {"step": step})["bytes"]
        assert (count > 0) == (step + 1 == steps)
    notes = [(m["params"], blobs) for m, blobs in local.channel.sent[first:] if m["method"] == "tensors/data"]
    data = b"".join(blob for _, blobs in notes for blob in blobs)
    assert len(data) == count
    return np.frombuffer(data, "<f4").reshape(notes[0][0]["shape"])


def without(local: Local, context: str, kept: Any, weights: Any = (), name: str = "p") -> Any:
    """The row of a selection; `kept` [layers, heads, cut]."""
    rows = [[layer, head] for layer in range(kept.shape[0]) for head in range(kept.shape[1])]
    sent = local.select(context, rows, kept.reshape(-1, kept.shape[2]), weights, name)["selection_id"]
    return score(local, context, [sent])["rows"][0]["nll"]


@pytest.mark.parametrize("name", MODELS)
def test_a_hidden_chunk_is_a_selection_without_it(name: str) -> None:
    local = opened(name)
    context = read(local, IDS, CUT)["context_id"]
    chunks = [[begin, min(begin + 4, CUT)] for begin in range(0, CUT, 4)] + [[0, CUT], [7, 8]]
    found = losses_without(local, context, chunks)
    for (begin, end), loss in zip(chunks, found, strict=True):
        kept = np.ones((3, heads_of(name), CUT), bool)
        kept[:, :, begin:end] = False
        assert loss == pytest.approx(without(local, context, kept), abs=1e-5)
    assert losses_without(local, context, [[7, 8]])[0] == pytest.approx(found[-1], abs=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_scores_are_finite_differences(name: str) -> None:
    """A few weights w, one at a time; in double, except for models whose experts run in float32 only."""
    exact = name not in ("gpt-oss", "deepseek-v3")
    local = opened(name, dtype=torch.float64 if exact else torch.float32)
    context, shape = read(local, IDS, CUT)["context_id"], (3, heads_of(name), CUT)
    found, eps = scores(local, context, 1), 2.0**-8
    most = float(np.abs(found).max())
    rng = np.random.default_rng(7)
    for place in rng.permutation(np.prod(shape))[:8]:
        change = 0.0
        for sign in (1, -1):
            weights = np.ones(shape, np.float32)
            weights.flat[place] += sign * eps
            change -= sign * without(local, context, np.ones(shape, bool), (weights.ravel(), weights.ravel()))
        assert found.flat[place] == pytest.approx(change / (2 * eps), abs=(1e-3 if exact else 1e-2) * most), place


@pytest.mark.parametrize("name", ["llama", "gemma2"])
def test_scores_of_many_steps_make_up_the_whole_change(name: str) -> None:
    local = opened(name)
    context = read(local, IDS, CUT)["context_id"]
    full = score(local, context, [None])["full"]["nll"]
    change = without(local, context, np.zeros((3, heads_of(name), CUT), bool)) - full
    assert scores(local, context, STEPS).sum() == pytest.approx(change, abs=0.02 * max(1, abs(change)))


def test_scores_have_the_sign_of_the_change() -> None:
    """Of the tokens with the largest and the smallest score, each evicted from its head alone."""
    local = opened("llama")
    context = read(local, IDS, CUT)["context_id"]
    full, found = score(local, context, [None])["full"]["nll"], scores(local, context, 1)
    order = np.argsort(found, axis=None)
    for place in [*order[:4], *order[-4:]]:
        kept = np.ones(found.shape, bool)
        kept.flat[place] = False
        change = without(local, context, kept) - full
        assert np.sign(change) == np.sign(found.flat[place]), (place, change, found.flat[place])


def test_the_first_token_behind_the_cut_counts_nowhere() -> None:
    local = opened("llama")
    context = read(local, IDS, CUT)["context_id"]
    more = {"question_ids": [], "answer_ids": IDS[CUT:]}
    kept = np.ones((3, 2, CUT), bool)
    kept[:, :, 3:9] = False
    sent = local.select(context, [[la, h] for la in range(3) for h in range(2)], kept.reshape(6, CUT))["selection_id"]
    wanted = score(local, context, [sent], **more)["rows"][0]["nll"]
    assert losses_without(local, context, [[3, 9]], **more) == [pytest.approx(wanted, abs=1e-5)]
    assert np.isfinite(scores(local, context, 2, **more)).all()
    refused = {"context_id": context, "question_ids": [], "answer_ids": IDS[CUT : CUT + 1], "chunks": [[0, 4]]}
    assert "no token whose loss counts" in local.refused("chunks/importance", refused).sentence


def test_what_makes_no_sense_is_refused() -> None:
    local = opened("llama")
    context = read(local, IDS, CUT)["context_id"]
    given = {"context_id": context, "question_ids": QUESTION, "answer_ids": ANSWER}
    for chunks in ([], [[0, 4]] * 65, [[4, 4]], [[0, CUT + 1]], [[-1, 2]], [3], [[0, True]]):
        assert local.refused("chunks/importance", given | {"chunks": chunks}).data["place"] == "chunks"
    assert local.refused("gradient/read", given | {"steps": 3, "step": 1}).data["place"] == "step"
    local.ask("gradient/read", given | {"steps": 3, "step": 0})
    assert local.refused("gradient/read", given | {"steps": 4, "step": 1}).data["place"] == "step"
    assert (
        local.refused("gradient/read", given | {"steps": 3, "step": 1, "answer_ids": ANSWER[1:]}).data["place"]
        == "step"
    )


def test_gradients_of_two_askers_take_turns() -> None:
    """They differ in the number of steps or in the answer, or ask for the same; each gets what it gets alone."""
    local, alone = opened("llama"), opened("llama")
    context, other = (read(one, IDS, CUT)["context_id"] for one in (local, alone))
    asked = [(3, ANSWER), (4, ANSWER), (3, ANSWER[1:]), (3, ANSWER)]
    found: list[Any] = []
    for step in range(4):
        for steps, answer in asked:
            given = {"context_id": context, "question_ids": QUESTION, "answer_ids": answer, "steps": steps}
            if step < steps:
                local.channel.sent.clear()
                count = local.ask("gradient/read", given | {"step": step})["bytes"]
                assert (count > 0) == (step + 1 == steps)
            if step + 1 == steps:
                data = b"".join(blob for _, blobs in local.channel.sent for blob in blobs)
                found.append(((steps, answer), np.frombuffer(data, "<f4")))
    assert len(found) == len(asked)
    for (steps, answer), values in found:
        wanted = scores(alone, other, steps, answer_ids=answer)
        assert np.array_equal(values, wanted.ravel()) and np.abs(wanted).max() > 0
    for count in range(9):
        given = {"context_id": context, "question_ids": QUESTION, "answer_ids": ANSWER[: 2 + count % 3]}
        local.ask("gradient/read", given | {"steps": 20 + count, "step": 0})
    assert len(local.session.contexts[context].scores) <= 4
    late = {"context_id": context, "question_ids": QUESTION, "answer_ids": ANSWER, "steps": 4, "step": 3}
    assert local.refused("gradient/read", late).data["place"] == "step"


def test_a_gradient_that_was_stopped_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    local, alone = opened("llama"), opened("llama")
    context, other = (read(one, IDS, CUT)["context_id"] for one in (local, alone))
    given = {"context_id": context, "question_ids": QUESTION, "answer_ids": ANSWER, "steps": 3}
    local.ask("gradient/read", given | {"step": 0})
    falling, calls = importance._falling, iter(range(9))

    def stopping(*of: Any) -> torch.Tensor:
        if next(calls) == 2:  # after two of three layers
            raise Stopped
        return falling(*of)

    with monkeypatch.context() as patch:
        patch.setattr(importance, "_falling", stopping)
        with pytest.raises(Stopped):
            local.ask("gradient/read", given | {"step": 1})
    assert np.array_equal(scores(local, context, 3), scores(alone, other, 3))


def test_a_stopped_gradient_leaves_the_model_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    local = opened("llama")
    context = read(local, IDS, CUT)["context_id"]
    before = score(local, context, [None])["full"]
    checkpoint = local.channel.checkpoint

    def stopping(**status: Any) -> None:
        checkpoint(**status)
        if status.get("layer") == 1:
            raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(local.channel, "checkpoint", stopping)
        with pytest.raises(Stopped):
            scores(local, context, 1)
        with pytest.raises(Stopped):
            losses_without(local, context, [[0, 4]])
    local.session.contexts[context].answers._full_logits.clear()
    assert score(local, context, [None])["full"] == before
    assert all(parameter.grad is None for parameter in local.session.models["m1"].model.parameters())


def test_scores_find_the_needle() -> None:
    """On the shipped model, which is sure of its answer, the digits that it copies rank first."""
    text = (ROOT / "sample_data/genesis.txt").read_text(encoding="utf-8")
    pieces = [
        ("context", text[:1500]),
        ("needle", " The secret code of garden is 48151."),
        ("context", text[1500:3000]),
    ]
    question = " Question: what is the secret code of garden? Answer: The secret code of garden is"
    segments = [*pieces, ("question", question), ("answer", " 48151.")]
    local = Local()
    local.ask("model/open", {"path": TINYLM, "dtype": "f32", "device": "cpu"})
    described = [{"kind": kind, "text": part} for kind, part in segments]
    prompt = local.ask("text/tokenize", {"segments": described, "chat": False})
    cut, ids = prompt["cut"], prompt["ids"]
    context = local.ask("context/read", {"ids": ids, "segments": prompt["segments"], "cut": cut})["context_id"]
    begin, end = next((b, e) for b, e, kind in prompt["segments"] if kind == "needle")
    answer = next(b for b, _, kind in prompt["segments"] if kind == "answer")
    expected = {"question_ids": ids[cut:answer], "answer_ids": ids[answer:]}
    full = score(local, context, [None], **expected)["full"]["nll"]
    chunks = [[b, min(b + 64, cut)] for b in range(0, cut, 64)]
    true = np.array(losses_without(local, context, chunks, **expected)) - full
    tokens = scores(local, context, 12, **expected).sum((0, 1))
    share = np.array([tokens[b:e].sum() for b, e in chunks])
    assert true.max() > 1 and true.argmax() == share.argmax() and share.max() > 5 * np.sort(share)[-2]
    assert all(begin <= token < end for token in np.argsort(tokens)[-5:])
    assert np.corrcoef(true, share)[0, 1] > 0.9
    one = scores(local, context, 1, **expected).sum((0, 1))
    assert np.abs(one).max() < 1e-3  # the derivative with the full cache, of a loss of almost nothing
