"""What a model or a text makes impossible is said in a sentence: too many tokens, numbers that are not finite."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from live_client import Local
from test_live import ANSWER, IDS, QUESTION, opened, read
from test_press import CUT
from test_prompt import byte_level_tokenizer

from kvscope_live import importance, session
from kvscope_live.errors import FAILED, LiveError

REMEDY = "Load the model in bf16 or fp32"


def test_more_tokens_than_a_message_takes_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Before their texts are collected."""
    local = opened("llama")
    models = local.session.models
    models["m1"] = dataclasses.replace(models["m1"], tokenizer=byte_level_tokenizer(tmp_path))
    monkeypatch.setattr(session, "MOST_TOKENS", 9)
    words = [{"kind": "context", "text": "x0 y1 z2 x3 y4"}]
    asked = []
    monkeypatch.setattr(session, "TokenBytes", lambda _: asked.append(1) or (lambda token: b"x"))
    for method, given, place in (
        ("text/tokenize", {"segments": words, "chat": False}, "segments"),
        ("context/read", {"ids": IDS, "segments": [], "cut": CUT}, "ids"),
    ):
        error = local.refused(method, given)
        assert "tokens, more than the 9 that a live model takes" in error.sentence
        assert error.data == {"place": place, "remedy": "Shorten the text"} and not asked
    monkeypatch.setattr(session, "MOST_TOKENS", len(IDS))
    assert local.ask("text/tokenize", {"segments": words, "chat": False})["ids"] and asked
    assert read(local, IDS, CUT)["context_id"]


def not_finite(local: Local, method: str, given: dict[str, Any]) -> LiveError:
    error = local.refused(method, given)
    assert error.code == FAILED and "is NaN or infinite" in error.sentence
    assert str(error.data["remedy"]).startswith(REMEDY)
    return error


@pytest.mark.parametrize("number", [torch.nan, torch.inf])
@pytest.mark.parametrize("cut", [CUT, len(IDS)])
def test_a_context_whose_losses_are_not_finite_is_refused(number: float, cut: int) -> None:
    local = opened("llama")
    with torch.no_grad():
        local.session.models["m1"].model.lm_head.weight[5, 0] = number
    error = not_finite(local, "context/read", {"ids": IDS, "segments": [], "cut": cut})
    assert error.sentence.startswith("the model's loss of token 1 ") and not local.session.contexts


@pytest.mark.parametrize("number", [torch.nan, torch.inf])
def test_a_hidden_chunk_whose_loss_is_not_finite_is_named(number: float, monkeypatch: pytest.MonkeyPatch) -> None:
    local = opened("llama")
    given = {"context_id": read(local, IDS, CUT)["context_id"], "question_ids": QUESTION, "answer_ids": ANSWER}
    chunks = {"chunks": [[0, 4], [4, 8], [8, 12]]}
    before, loss, rows = local.ask("chunks/importance", given | chunks), importance.Expected.loss, iter(range(3))
    with monkeypatch.context() as patch:
        broken = lambda *args: loss(*args) if next(rows) != 1 else torch.tensor(number)  # noqa: E731
        patch.setattr(importance.Expected, "loss", broken)
        error = not_finite(local, "chunks/importance", given | chunks)
    assert "without the tokens 4 to 7" in error.sentence
    assert local.ask("chunks/importance", given | chunks) == before
