"""The ways in which published evictions went wrong, each as a test of the worker; docstrings say whose bug it was.

`kvscope-check-press` (test_check_press.py) tries the same mistakes on presses of others.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from live_client import Local
from test_live import ANSWER, BEGIN, IDS, QUESTION, opened, read, score
from test_press import CUT, TOKENS, dense_logits, heads_of
from tiny_models import random_ids
from transformers import DynamicCache

from kvscope_capture.attention import attention_implementation
from kvscope_live.selections import pruned_layer
from kvscope_press import HeadSelection
from kvscope_press.recorded_selection import whole_selection

LAYERS = 3


def own_losses(local: Local, ids: list[int], begin: int, allowed: Any = None) -> list[float]:
    """Losses of ids[begin:] by the model's own forward; `allowed` [n, n] replaces its mask, in all heads."""
    model = local.session.models["m1"].model
    given: dict[str, Any] = {} if allowed is None else {"attention_mask": allowed[None, None]}
    with torch.no_grad(), attention_implementation(model, "sdpa" if allowed is None else "eager"):
        logits = model(input_ids=torch.tensor([ids]), use_cache=False, **given).logits[0, begin - 1 : -1]
    return torch.nn.functional.cross_entropy(logits, torch.tensor(ids[begin:]), reduction="none").tolist()


def select(local: Local, context: str, kept: np.ndarray, name: str = "p") -> str:
    """Sends the selection `kept` [layers, heads, n]; returns its id."""
    rows = [[layer, head] for layer in range(kept.shape[0]) for head in range(kept.shape[1])]
    return str(local.select(context, rows, kept.reshape(len(rows), -1), name=name)["selection_id"])


def hidden_everywhere(tokens: int, kept: np.ndarray, cut: int) -> torch.Tensor:
    """Causal mask in which the queries behind the cut do not see what is not in `kept` [n]."""
    allowed = np.tril(np.ones((tokens, tokens), bool))
    allowed[cut:, :cut] &= kept
    return torch.where(torch.from_numpy(allowed), 0.0, -torch.inf)


def test_retention_1_is_no_policy() -> None:
    """VeloxQuant-MLX 370, 392: evicted before keys and values reach the attention of the same call."""
    local = opened("llama")
    context = read(local, IDS, CUT)["context_id"]
    whole = select(local, context, np.ones((LAYERS, 2, CUT), bool))
    row = score(local, context, [whole])["rows"][0]
    assert row["losses"] == score(local, context, [None])["full"]["losses"]
    assert row["losses"] == pytest.approx(own_losses(local, IDS, BEGIN), abs=1e-5)


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_positions_stay_when_tokens_go(name: str) -> None:
    """VeloxQuant-MLX 137: positions counted by what is kept. Evicting is hiding: the model's own mask says the same."""
    local = opened(name)
    context = read(local, IDS, CUT)["context_id"]
    kept = np.random.default_rng(1).random(CUT) < 0.4
    chosen = select(local, context, np.broadcast_to(kept, (LAYERS, heads_of(name), CUT)).copy())
    wanted = own_losses(local, IDS, BEGIN, hidden_everywhere(TOKENS, kept, CUT))
    assert score(local, context, [chosen])["rows"][0]["losses"] == pytest.approx(wanted, abs=2e-5)


def test_the_budget_is_smaller_than_the_first_chunk() -> None:
    """awslabs/keys_values 140: a prompt longer than the cache was garbage. One token is kept of many."""
    local, ids, cut = opened("llama"), random_ids(120, 5), 100
    context = read(local, ids, cut)["context_id"]
    kept = np.arange(cut) == 3
    chosen = select(local, context, np.broadcast_to(kept, (LAYERS, 2, cut)).copy())
    given = {"question_ids": ids[cut:110], "answer_ids": ids[110:]}
    wanted = own_losses(local, ids, 110, hidden_everywhere(120, kept, cut))
    assert score(local, context, [chosen], **given)["rows"][0]["losses"] == pytest.approx(wanted, abs=2e-5)


@pytest.mark.parametrize("length", [1, 2, 31, 33])
def test_lengths_fit_no_block(length: int) -> None:
    """mlx 3856: a kernel was wrong at lengths that are no multiple of 32, which only evicted caches have."""
    local, cut = opened("llama"), 33
    ids = random_ids(cut + length + 3, 7)
    context = read(local, ids, cut)["context_id"]
    kept = np.random.default_rng(length).random(cut) < 0.5
    chosen = select(local, context, np.broadcast_to(kept, (LAYERS, 2, cut)).copy())
    begin = cut + length
    given = {"question_ids": ids[cut:begin], "answer_ids": ids[begin:]}
    wanted = own_losses(local, ids, begin, hidden_everywhere(len(ids), kept, cut))
    assert score(local, context, [chosen], **given)["rows"][0]["losses"] == pytest.approx(wanted, abs=2e-5)


@pytest.mark.parametrize("name", ["llama", "gemma3", "gpt-oss"])
def test_layers_have_different_lengths(name: str) -> None:
    """transformers 35168, VeloxQuant-MLX 390: one mask for all layers. Here each layer has its own budget.

    Budgets as PyramidKV's, and some with a layer that keeps everything; several queries; windows and sinks, too.
    """
    local = opened(name)
    context = read(local, IDS, CUT)["context_id"]
    names, wanted = [], []
    for index, counts in enumerate(((14, 8, 2), (2, 9, CUT), (CUT, 3, CUT))):
        kept = np.arange(CUT) >= CUT - np.array(counts)[:, None, None]
        kept = np.repeat(kept, 2, 1)
        names.append(select(local, context, kept, str(index)))
        heads = {(la, h): np.flatnonzero(kept[la, h]) for la in range(LAYERS) for h in range(2)}
        plain = {place: HeadSelection(own, *(np.ones(own.size, np.float32),) * 2) for place, own in heads.items()}
        selection = dataclasses.replace(whole_selection(LAYERS, 2, CUT), heads=plain)
        logits = dense_logits(local.session.models["m1"].model, IDS, selection)[BEGIN - 1 : -1]
        wanted.append(torch.nn.functional.cross_entropy(logits, torch.tensor(ANSWER), reduction="none").tolist())
    together = score(local, context, names)["rows"]
    for one, row, losses in zip(names, together, wanted, strict=True):
        local.session.contexts[context].answers._scores.clear()
        alone = score(local, context, [one])["rows"][0]["losses"]
        assert row["losses"] == pytest.approx(losses, abs=2e-4) and row["losses"] == pytest.approx(alone, abs=1e-5)


def test_the_cache_is_there_and_small() -> None:
    """kvpress 147: `if cache:` is false for an empty cache, so a method ran without. Rows and bytes are counted."""
    assert not DynamicCache() or DynamicCache().get_seq_length() == 0
    local = opened("llama")
    context = read(local, IDS, CUT)["context_id"]
    kept = np.zeros((LAYERS, 2, CUT), bool)
    kept[..., 4:7] = True
    chosen = select(local, context, kept)
    state = local.session.contexts[context]
    layer = pruned_layer(state.context.calls[1], [state.selections[chosen]])
    assert layer.keys.shape[1] == 3 and layer.stored == 6
    width = layer.keys.shape[2] + layer.values.shape[2]
    assert score(local, context, [chosen])["rows"][0]["bytes"] == LAYERS * 6 * width * 4


def test_a_context_is_read_in_one_piece() -> None:
    """In a prefill in chunks, scores of early chunks never see later queries. Here no query is missing."""
    local = opened("llama")
    answer = read(local, IDS, CUT)
    assert [layer["queries"] for layer in answer["info"]["layers"]] == [TOKENS] * LAYERS
    queries = local.tensor(answer["context_id"], 1, "q")
    assert queries.shape[1] == TOKENS
    assert np.array_equal(local.tensor(answer["context_id"], 1, "q", [CUT, TOKENS]), queries[:, CUT:])


def test_the_first_answer_token_behind_the_cut_counts_nowhere() -> None:
    """It was predicted before anything was evicted: with the cut behind the question it says nothing of the policy."""
    local = opened("llama")
    context = read(local, IDS, CUT)["context_id"]
    none = select(local, context, np.zeros((LAYERS, 2, CUT), bool))
    row = score(local, context, [none], question_ids=[], answer_ids=IDS[CUT:])["rows"][0]
    assert row["losses"][0] is row["kl"][0] is row["flips"][0] is None
    assert row["nll"] == pytest.approx(np.mean(row["losses"][1:]))


def test_what_a_policy_protects_is_what_the_client_says() -> None:
    """kvpress's KVzip evicts the chat's prefix first. The worker evicts exactly what it is told, in every head."""
    local = opened("llama")
    context = read(local, IDS, CUT)["context_id"]
    kept = np.random.default_rng(4).random((LAYERS, 2, CUT)) < 0.5
    chosen = select(local, context, kept)
    heads = local.session.contexts[context].selections[chosen].heads
    for (layer, head, _), bits in heads.items():
        assert np.array_equal(bits.dense(CUT)[0] > 0, kept[layer, head])


def test_ties_in_sixteen_bits_are_not_decided_here() -> None:
    """kvpress scored in bfloat16, where most scores tie. The client gets tensors as they are and scores in float32."""
    local = opened("llama", dtype=torch.bfloat16)
    context = read(local, IDS, CUT)["context_id"]
    key = local.session.contexts[context].context.calls[0].key
    sent = local.tensor(context, 0, "k")[:, :CUT]
    assert sent.dtype == np.uint16 and np.array_equal(sent, key.view(torch.int16).numpy().view(np.uint16))


def test_rows_of_a_batch_are_those_of_one() -> None:
    """Many presses look at row 0 of a batch, or at padding. Here rows of very different length are as if alone."""
    local = opened("mistral")
    context = read(local, IDS, CUT)["context_id"]
    names = []
    for index, count in enumerate((1, 4, CUT - 1)):
        kept = np.zeros((LAYERS, 2, CUT), bool)
        kept[..., :count] = True
        names.append(select(local, context, kept, str(index)))
    alone = [score(local, context, [name])["rows"][0]["losses"] for name in names]
    state = local.session.contexts[context]
    state.answers._scores.clear()
    for row, losses in zip(score(local, context, names[::-1])["rows"][::-1], alone, strict=True):
        assert row["losses"] == pytest.approx(losses, abs=1e-5)


def test_sinks_stay_in_the_denominator() -> None:
    """gpt-oss: each head has a logit without a token. With all of the context evicted, sink and tail remain."""
    local = opened("gpt-oss")
    context = read(local, IDS, CUT)["context_id"]
    none = select(local, context, np.zeros((LAYERS, 2, CUT), bool))
    losses = score(local, context, [none])["rows"][0]["losses"]
    model = local.session.models["m1"].model
    for name, parameter in model.named_parameters():
        if name.endswith("sinks"):
            with torch.no_grad():
                parameter.fill_(-1e4)
    local.session.contexts[context].answers._scores.clear()
    without = score(local, context, [none])["rows"][0]["losses"]
    assert max(abs(a - b) for a, b in zip(losses, without, strict=True)) > 1e-2
    assert len(QUESTION) + len(ANSWER) == TOKENS - CUT


@pytest.mark.parametrize("name", ["llama", "gemma2", "gpt-oss"])
def test_layers_that_two_policies_leave_whole_are_shared(name: str) -> None:
    """Both evict in the middle layer alone; the sinks belong to the model's own query heads."""
    local, rng = opened(name), np.random.default_rng(3)
    context, heads = read(local, IDS, CUT)["context_id"], heads_of(name)
    rows = [[1, head] for head in range(heads)]
    chosen = [local.select(context, rows, rng.random((heads, CUT)) < 0.5, (), n)["selection_id"] for n in "ab"]
    together = score(local, context, chosen)["rows"]
    local.session.contexts[context].answers._scores.clear()
    for one, row in zip(chosen, together, strict=True):
        assert row["losses"] == pytest.approx(score(local, context, [one])["rows"][0]["losses"], abs=1e-5)
