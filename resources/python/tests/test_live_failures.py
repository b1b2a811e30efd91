"""Errors that a model or a text causes are one sentence: too many tokens, numbers that are not finite."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from live_client import Local
from test_live import ANSWER, IDS, QUESTION, opened, read
from test_press import CUT
from test_prompt import byte_level_tokenizer

from kvscope_live import answers, importance, models, session, writing
from kvscope_live.errors import FAILED, GONE, LiveError

REMEDY = "Load the model in bf16 or fp32"


def test_more_tokens_than_a_message_takes_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """They are refused before the texts of the tokens are collected."""
    local = opened("llama")
    opened_models = local.session.models
    opened_models["m1"] = dataclasses.replace(opened_models["m1"], tokenizer=byte_level_tokenizer(tmp_path))
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


def test_files_that_were_read_leave_a_container_its_memory(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"memory.max": "1600\n", "memory.current": "1500\n"}
    texts["memory.stat"] = "anon 100\nfile 1400\ninactive_file 1250\nactive_file 50\nshmem 100\n"
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(models.pathlib, "Path", lambda _: tmp_path)
    assert models._group_memory() == 100 + 1250 + 50
    (tmp_path / "memory.max").write_text("max\n")
    assert models._group_memory() > 1 << 60


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
        rows = iter(range(3))
        alone = local.ask("chunks/importance", given | chunks | {"chunks_may_fail": True})["losses"]
    assert alone == [before["losses"][0], None, before["losses"][2]]
    assert "without the tokens 4 to 7" in error.sentence
    assert local.ask("chunks/importance", given | chunks) == before


def rows_of(local: Local, context: str, weights: list[float]) -> list[str]:
    """Selections of half of the tokens; each has the numerator weight that is given."""
    rows = [[layer, head] for layer in range(3) for head in range(2)]
    kept = np.arange(6 * CUT).reshape(6, CUT) % 2 == 0
    ones = np.ones(int(kept.sum()), np.float32)
    return [local.select(context, rows, kept, (ones * w, ones))["selection_id"] for w in weights]


def poisoned(monkeypatch: pytest.MonkeyPatch, number: float, begin: int, row: int) -> pytest.MonkeyPatch:
    """Logits of one row of several are `number` from one token on, as after an overflow in fp16."""
    logits_at = answers.logits_at

    def poison(model: Any, hidden: torch.Tensor) -> torch.Tensor:
        logits = logits_at(model, hidden).clone()
        logits[row : row + 1, begin:] = number
        return logits

    monkeypatch.setattr(answers, "logits_at", poison)
    return monkeypatch


@pytest.mark.parametrize("number", [torch.nan, torch.inf])
@pytest.mark.parametrize("asked", [QUESTION, []])
def test_a_row_that_overflows_is_no_mean_of_the_tokens_before(
    number: float, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other rows keep their results and are computed once."""
    local = opened("llama")
    context = read(local, IDS, CUT)["context_id"]
    chosen = rows_of(local, context, [1.0, 0.5, 0.75])
    given = {"context_id": context, "question_ids": asked, "answer_ids": IDS[CUT + len(asked) :]}
    local.ask("answer/score", given | {"selection_ids": [None]})
    with monkeypatch.context() as patch:
        poisoned(patch, number, 2, row=1)
        error = not_finite(local, "answer/score", given | {"selection_ids": [None, *chosen]})
        assert "(row 3 of 4)" in error.sentence
        local.session.contexts[context].answers._scores.clear()
        alone = local.ask("answer/score", given | {"selection_ids": [None, *chosen], "rows_may_fail": True})["rows"]
        assert alone[2].keys() == {"selection_id", "error"} and alone[2]["selection_id"] == chosen[1]
        assert alone[2]["error"]["code"] == FAILED and "is NaN or infinite" in alone[2]["error"]["message"]
        patch.setattr(answers, "logits_at", None)
        rows = local.ask("answer/score", given | {"selection_ids": [None, chosen[0], chosen[2]]})["rows"]
    again = local.ask("answer/score", given | {"selection_ids": [None, *chosen]})["rows"]
    assert [again[0], again[1], again[3]] == rows == [alone[0], alone[1], alone[3]] and again[2]["nll"] > 0


def test_weights_that_overflow_are_no_answer() -> None:
    """A row whose numbers are beyond fp32 from its first token on."""
    local = opened("llama")
    context = read(local, IDS, CUT)["context_id"]
    good, bad = rows_of(local, context, [1.0, 3e38])
    given = {"context_id": context, "question_ids": QUESTION}
    not_finite(local, "answer/score", given | {"answer_ids": ANSWER, "selection_ids": [good, bad]})
    for temperature in (0.0, 1.0):
        more = {"max_new": 4, "temperature": temperature}
        not_finite(local, "answer/generate", given | more | {"selection_ids": [bad]})
        alone = local.ask("answer/generate", given | more | {"selection_ids": [good]})["rows"][0]
        assert alone["ids"]
        for name in ("_texts", "_drafts"):
            getattr(local.session.contexts[context].answers, name).clear()
        told = len(local.channel.sent)
        rows = {"selection_ids": [bad, good, "s-unknown", None], "rows_may_fail": True}
        found = local.ask("answer/generate", given | more | rows)
        assert found["rows"][1] == alone and found["rows"][3]["ids"] == found["full"]["ids"]
        assert [row["error"]["code"] for row in (found["rows"][0], found["rows"][2])] == [FAILED, GONE]
        tokens = [message["params"] for message, _ in local.channel.sent[told:]]
        for row, ids in ((1, alone["ids"]), (3, found["full"]["ids"])):
            assert [token["id"] for token in tokens if token["row"] == row] == ids


def test_a_row_that_overflows_later_leaves_the_others_their_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row in turn overflows behind its first token."""
    local = opened("llama")
    context = read(local, IDS, CUT)["context_id"]
    chosen = rows_of(local, context, [1.0, 0.5, 0.75])
    given = {"context_id": context, "question_ids": QUESTION, "max_new": 12, "selection_ids": chosen}
    wanted = local.ask("answer/generate", given)["rows"]
    logits_at, answered = writing.logits_at, local.session.contexts[context].answers
    lasting = [row for row in range(3) if wanted[row]["ids"]]  # the others end with their first token
    assert len(lasting) == 2
    for bad in lasting:

        def poison(model: Any, hidden: torch.Tensor, bad: int = bad) -> torch.Tensor:
            logits = logits_at(model, hidden).clone()
            if len(logits) > 1:  # of the rows, behind their first tokens
                logits[bad] = torch.nan
            return logits

        monkeypatch.setattr(writing, "logits_at", poison)
        answered._texts.clear(), answered._drafts.clear()
        found = local.ask("answer/generate", given | {"rows_may_fail": True})["rows"]
        assert [found[row] for row in range(3) if row != bad] == [wanted[row] for row in range(3) if row != bad]
        assert "is NaN or infinite" in found[bad]["error"]["message"]
        answered._texts.clear(), answered._drafts.clear()
        assert f"(row {bad + 1} of 3)" in not_finite(local, "answer/generate", given).sentence


def test_a_full_cache_that_overflows_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    local = opened("llama")
    context = read(local, IDS, CUT)["context_id"]
    given = {"context_id": context, "question_ids": QUESTION, "answer_ids": ANSWER}
    poisoned(monkeypatch, torch.nan, 2, row=0)
    error = not_finite(local, "answer/score", given | {"selection_ids": [None]})
    assert "full cache" in error.sentence


def test_tokens_that_cannot_be_are_no_part_of_the_divergence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model may give the logit -inf to tokens that it never writes: they have probability 0 in both rows."""
    local = opened("llama")
    context = read(local, IDS, CUT)["context_id"]
    never = next(token for token in range(97) if token not in ANSWER)
    given = {"context_id": context, "question_ids": QUESTION, "answer_ids": ANSWER}
    given["selection_ids"] = rows_of(local, context, [1.0])
    logits_at = answers.logits_at
    found = []
    for number in (-1e4, -torch.inf):

        def changed(model: Any, hidden: torch.Tensor, number: float = number) -> torch.Tensor:
            logits = logits_at(model, hidden).clone()
            logits[..., never] = number
            return logits

        monkeypatch.setattr(answers, "logits_at", changed)
        state = local.session.contexts[context].answers
        state._full_logits.clear(), state._scores.clear()
        found.append(local.ask("answer/score", given)["rows"][0])
    assert found[0] == found[1] and found[1]["kl_mean"] > 0
