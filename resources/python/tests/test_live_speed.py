"""Caches and drafts of the worker: they change the number of passes and nothing else."""

from __future__ import annotations

import collections
import weakref
from typing import Any

import pytest
import torch
from test_live import ANSWER, CUT, IDS, QUESTION, TOKENS, opened, read, score, send
from test_press import heads_of, random_selection

from kvscope_live import answers as answers_module
from kvscope_live import contexts, writing
from kvscope_live import selections as selections_module
from kvscope_live.errors import Stopped
from kvscope_live.selections import HeadBits, Selection
from kvscope_press import attend_behind
from kvscope_press.pruned_context import CachedContext

MOST = 9


class Passes:
    """Rows and tokens of every pass of the model behind a cut."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[tuple[int, int]] = []
        extend_rows = CachedContext.extend_rows

        def counted(cache: CachedContext, ids: list[list[int]]) -> Any:
            self.seen.append((len(ids), len(ids[0])))
            return extend_rows(cache, ids)

        monkeypatch.setattr(CachedContext, "extend_rows", counted)

    def since(self) -> list[tuple[int, int]]:
        seen, self.seen = self.seen, []
        return seen


class Asking:
    """A context of a tiny model, selections on it, and their texts."""

    def __init__(self, name: str, seed: int = 0) -> None:
        self.local, self.heads = opened(name, seed), heads_of(name)
        self.local.session.models["m1"].model.generation_config.eos_token_id = None
        self.context = read(self.local, IDS, CUT)["context_id"]
        self.answers = self.local.session.contexts[self.context].answers

    def select(self, kind: str, seed: int) -> str:
        return send(self.local, self.context, random_selection(self.heads, kind, seed), f"{kind} {seed}")

    def score(self, chosen: list[str | None]) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = score(self.local, self.context, chosen)["rows"]
        return rows

    def generate(self, chosen: list[str | None], **more: Any) -> list[list[int]]:
        given = {"context_id": self.context, "selection_ids": chosen, "question_ids": QUESTION, "max_new": MOST}
        return [row["ids"] for row in self.local.ask("answer/generate", given | more)["rows"]]

    def forget(self) -> None:
        for results in (self.answers._scores, self.answers._texts, self.answers._drafts):
            results.clear()
        self.answers._asked = None


def test_only_the_pane_that_changed_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    asking, passes = Asking("llama"), Passes(monkeypatch)
    chosen: list[str | None] = [asking.select(kind, seed) for seed in (1, 2) for kind in ("plain", "two_sets")]
    before, texts = asking.score([*chosen, None]), asking.generate([*chosen, None])
    passes.since()
    assert asking.score([*chosen, None]) == before and asking.generate([*chosen, None]) == texts
    assert passes.since() == []
    moved = asking.select("plain", 3)
    after, written = asking.score([chosen[0], moved, chosen[0]]), asking.generate([chosen[0], moved, chosen[0]])
    assert {rows for rows, _ in passes.since()} == {1}
    assert (after[0], after[2], written[0], written[2]) == (before[0], before[0], texts[0], texts[0])
    asking.forget()
    alone = asking.score([moved])[0]
    assert after[1]["losses"] == pytest.approx(alone["losses"], abs=1e-5) and written[1] == asking.generate([moved])[0]


@pytest.mark.parametrize("name", ["llama", "mistral", "gemma3", "gpt2"])
def test_the_kernel_over_kept_rows_changes_no_loss(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ragged heads and sets of query heads, with room for the tokens behind the cut or not, in parts or at once."""
    asking = Asking(name)
    kinds = ["plain"] if name == "gpt2" else ["plain", "query_heads"]
    chosen: list[str | None] = [asking.select(kind, seed) for seed in (1, 2) for kind in kinds]
    monkeypatch.setattr(selections_module, "MOST_ROWS", 0)  # evicted rows are masked in place
    wanted, texts = asking.score(chosen), asking.generate(chosen)
    monkeypatch.setattr(selections_module, "MOST_ROWS", 1000)
    taken, fused = [], attend_behind._fused
    monkeypatch.setattr(attend_behind, "_fused", lambda layer, *rest: (taken.append(layer), fused(layer, *rest))[1])
    for room, logits in ((64, 1 << 25), (len(QUESTION), 500), (0, 1)):
        monkeypatch.setattr(selections_module, "ROOM", room)
        monkeypatch.setattr(attend_behind, "LOGITS", logits)
        asking.forget()
        for found, row in zip(asking.score(chosen), wanted, strict=True):
            assert found["losses"] == pytest.approx(row["losses"], abs=1e-5)
        assert asking.generate(chosen) == texts
        assert taken and not taken.clear()


def test_the_question_is_read_once_for_losses_and_text(monkeypatch: pytest.MonkeyPatch) -> None:
    asking, passes = Asking("llama"), Passes(monkeypatch)
    monkeypatch.setattr(writing, "LOOKED_UP", 0)  # guesses are as long as the question
    chosen: list[str | None] = [asking.select("plain", 1), asking.select("plain", 2)]
    texts = asking.generate(chosen)
    asking.forget()
    asking.score(chosen)
    assert passes.since()[-1] == (2, len(QUESTION) + len(ANSWER) - 1)
    assert asking.generate(chosen) == texts
    assert len(QUESTION) not in [tokens for rows, tokens in passes.since() if rows == 2]


@pytest.mark.parametrize("name", ["llama", "mistral", "gemma2", "gpt-oss", "gpt2"])
def test_drafts_change_no_text(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drafts that are right, right up to a token, wrong, short and long, in rows beside each other."""
    asking, passes = Asking(name), Passes(monkeypatch)
    chosen: list[str | None] = [asking.select("plain", seed) for seed in range(5)]
    monkeypatch.setattr(asking.answers, "_draft", lambda *_: [])
    monkeypatch.setattr(writing, "LOOKED_UP", 0)
    texts = asking.generate(chosen)
    assert [tokens for rows, tokens in passes.since() if rows == 5] == [len(QUESTION)] + [1] * (MOST - 1)
    by_id = dict(zip(chosen, texts, strict=True))
    wrong = {key: [*ids[:4], ids[4] % 96 + 1, *ids[5:]] for key, ids in by_id.items()}
    drafts: list[Any] = [
        lambda _, s, __: by_id[s.id],
        lambda _, s, __: wrong[s.id],
        lambda _, s, __: wrong[s.id] if s.id == chosen[2] else [1] if s.id == chosen[3] else by_id[s.id] * 2,
    ]
    counts = []
    for draft in drafts:
        asking.forget()
        monkeypatch.setattr(asking.answers, "_draft", draft)
        assert asking.generate(chosen) == texts
        counts.append([tokens for rows, tokens in passes.since() if rows == 5])
    if name == "llama":  # its logits are nowhere close
        assert counts[0] == [len(QUESTION), MOST - 1] and counts[1] == [len(QUESTION), MOST - 1] + [1] * (MOST - 5)
    monkeypatch.setattr(writing, "MARGIN", 1e9)  # never sure: a pass over one token decides
    asking.forget()
    assert asking.generate(chosen) == texts
    monkeypatch.undo()
    monkeypatch.setattr(writing, "DRAFT", 3)
    asking.forget()
    assert asking.generate(chosen) == texts


@pytest.mark.parametrize("name", ["llama", "mistral", "gemma2", "gpt-oss", "gpt2"])
def test_guesses_from_the_prompt_change_no_text(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A prompt that contains the texts saves passes; one in which they continue differently changes nothing."""
    asking, passes = Asking(name), Passes(monkeypatch)
    chosen: list[str | None] = [asking.select("plain", seed) for seed in range(5)]
    monkeypatch.setattr(asking.answers, "_draft", lambda *_: [])
    monkeypatch.setattr(writing, "LOOKED_UP", 0)
    texts = asking.generate(chosen)
    monkeypatch.undo()
    monkeypatch.setattr(asking.answers, "_draft", lambda *_: [])
    wrong = [[*ids[:3], ids[3] % 96 + 1, *ids[4:]] for ids in texts]
    for prompt in ([], *texts, *wrong, sum(texts, []), sum(wrong, [])):
        asking.answers.context.ids = IDS + prompt
        asking.forget()
        assert asking.generate(chosen) == texts
    asking.forget()
    asking.answers.context.ids = IDS + texts[0]
    asking.generate([None])
    passes = Passes(monkeypatch)
    assert asking.generate(chosen[:1]) == texts[:1]
    assert name != "llama" or len(passes.since()) <= MOST // 2  # its logits are nowhere close
    asking.answers.context.ids = IDS
    asking.forget()
    asking.generate([None])
    written = asking.local.session.contexts[asking.context].selections[str(chosen[1])]
    asking.answers._drafts.append(("another question", written, texts[0]))  # takes the place of the prompt
    passes = Passes(monkeypatch)
    assert asking.generate(chosen[:1]) == texts[:1]
    assert name != "llama" or len(passes.since()) <= MOST // 2


def test_ends_of_text_hold_in_drafts() -> None:
    """A row ends where its draft goes on, or goes on where its draft ended."""
    asking = Asking("qwen3")
    model = asking.local.session.models["m1"].model
    chosen: list[str | None] = [asking.select("plain", seed) for seed in range(4)]
    texts = asking.generate(chosen)
    end = texts[1][5]
    model.generation_config.eos_token_id = end
    asking.answers._texts.clear()  # the drafts stay
    cut = asking.generate(chosen)
    assert cut == [ids[: ids.index(end)] if end in ids else ids for ids in texts]
    model.generation_config.eos_token_id = None
    asking.answers._texts.clear()
    assert asking.generate(chosen) == texts


def test_a_pane_begins_with_the_text_it_had() -> None:
    asking = Asking("llama")
    chosen = [asking.select("plain", seed) for seed in range(3)]
    texts = asking.generate(list(chosen))
    state = asking.local.session.contexts[asking.context]
    for name, ids in zip(chosen, texts, strict=True):
        selection = state.selections[name]
        assert selection.distance(selection) == 0
        assert asking.answers._draft(asking.answers._drafts[0][0], selection, []) == ids
        assert asking.answers._draft("another question", selection, [7]) == [7]
    far = {place: HeadBits(~head.bits) for place, head in selection.heads.items()}
    others = Selection("far", far, selection.shape)  # keeps none of the same tokens
    assert asking.answers._draft(asking.answers._drafts[0][0], others, [7]) == []


@pytest.mark.parametrize("temperature", [1e-3, 1e-308, 5e-324])
def test_a_low_temperature_takes_the_likeliest(temperature: float) -> None:
    assert writing.Sampling(temperature, 1).choose(torch.tensor([1.0, 5.0, 40.0, -torch.inf]), 0.5) == 2


def test_samples_have_no_drafts(monkeypatch: pytest.MonkeyPatch) -> None:
    asking, passes = Asking("llama"), Passes(monkeypatch)
    chosen: list[str | None] = [asking.select("plain", 1)]
    first = asking.generate(chosen, temperature=1.5, seed=3)
    asking.answers._texts.clear()
    passes.since()
    assert asking.generate(chosen, temperature=1.5, seed=3) == first
    assert max(tokens for _, tokens in passes.since()[1:]) == 1


def test_a_stopped_round_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it stops, the next round gives what it would have given."""
    asking = Asking("llama")
    chosen: list[str | None] = [asking.select("plain", seed) for seed in range(2)]
    rows, texts = asking.score(chosen), asking.generate(chosen)
    count, stop_at = 0, 10**6

    def checkpoint(**_: Any) -> None:
        nonlocal count
        count += 1
        if count >= stop_at:
            raise Stopped

    monkeypatch.setattr(asking.local.channel, "checkpoint", checkpoint)
    asking.forget()
    assert asking.score(chosen) == rows and asking.generate(chosen) == texts
    every = count
    for last in range(1, every + 1, 2):
        asking.forget()
        count, stop_at = 0, last
        with pytest.raises(Stopped):
            asking.score(chosen)
            asking.generate(chosen)
        count = -(10**6)
        assert asking.score(chosen) == rows and asking.generate(chosen) == texts


def test_logits_of_many_policies_are_made_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long answer in a large vocabulary would take gigabytes for each policy."""
    asking = Asking("llama")
    chosen: list[str | None] = [asking.select("plain", seed) for seed in range(5)]
    losses, texts = [row["losses"] for row in asking.score(chosen)], asking.generate(chosen)
    asking.forget()
    sizes: list[int] = []
    logits_at = answers_module.logits_at

    def noted(model: Any, hidden: Any) -> Any:
        sizes.append(len(hidden))
        return logits_at(model, hidden)

    monkeypatch.setattr(answers_module, "logits_at", noted)
    monkeypatch.setattr(answers_module, "LOGITS", 2 * len(ANSWER) * 97)
    for row, wanted in zip(asking.score(chosen), losses, strict=True):
        assert row["losses"] == pytest.approx(wanted, abs=1e-5)
    assert sizes == [2, 2, 1] and asking.generate(chosen) == texts


def test_what_stands_behind_the_cut_is_held_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of the tokens so far are held once, and not once more for every block of a long tail."""
    local, alive, held = opened("llama"), [], []
    extend_rows = CachedContext.extend_rows

    def noted(cache: CachedContext, ids: list[list[int]]) -> Any:
        hidden = extend_rows(cache, ids)
        alive.append(weakref.ref(cache._tail.layers[0].keys))
        held.append(sum(keys() is not None for keys in alive))
        return hidden

    monkeypatch.setattr(contexts, "TAIL_BLOCK", 2)
    monkeypatch.setattr(CachedContext, "extend_rows", noted)
    assert read(local, IDS, 8)["context_id"]
    assert len(held) > 5 and max(held) <= 2


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    asking = Asking("llama")
    sizes: collections.Counter[str] = collections.Counter()
    for results in (asking.answers._scores, asking.answers._texts, asking.answers._full_logits):
        results.most = 6
    for seed in range(20):
        asking.score([asking.select("plain", seed)])
        asking.generate([asking.select("plain", seed)], max_new=1 + seed % 3)
        sizes |= collections.Counter(
            scores=len(asking.answers._scores), texts=len(asking.answers._texts), full=len(asking.answers._full_logits)
        )
    assert max(sizes.values()) == 6 and TOKENS > CUT
