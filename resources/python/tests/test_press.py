"""A pruned context against one dense pass over the whole prompt with every mask and weight written out."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import random_ids, random_model, tiny_model, unlike_config

from kvscope_capture import CaptureError
from kvscope_capture.attention import replaced_attention
from kvscope_press import HeadSelection, PrunedContext, RecordedSelection, answer_loss, full_nll, generate
from kvscope_press.recorded_selection import refuse_window, whole_selection

TOKENS, CUT, SEED = 30, 19, 4
MODELS = ["llama", "qwen3", "mistral", "gemma2", "gemma3", "phi3", "phi3-long", "gpt2", "gpt-oss", "granite"]
MODELS += ["deepseek-v3"]
WANTED = list(range(CUT + 1, TOKENS))


def random_selection(kv_heads: int, kind: str, seed: int = SEED) -> RecordedSelection:
    """Ragged heads; `kind` plain, one_set (weights, same tokens), two_sets (different tokens in the two sums), or
    query_heads (layer 1: a set for each query head of a group)."""
    rng = np.random.default_rng(seed)
    heads = {}
    for layer in range(3):
        for head in range(kv_heads):
            count = int(rng.integers(2, CUT))
            kept = np.sort(rng.choice(CUT, count, replace=False))
            ones = np.ones(count, np.float32)
            numerator, denominator = ones, ones
            if kind in ("one_set", "two_sets"):
                numerator, denominator = (rng.uniform(0.5, 4, count).astype(np.float32) for _ in range(2))
            if kind == "two_sets":
                numerator = numerator * (np.arange(count) % 2 == 0)
                denominator = denominator * (np.arange(count) % 3 != 1)
            own = {}
            if kind == "query_heads" and layer == 1:
                group = range(head * 4 // kv_heads, (head + 1) * 4 // kv_heads)
                own = {q: np.sort(rng.choice(CUT, int(rng.integers(2, CUT)), replace=False)) for q in group}
                kept = np.unique(np.concatenate(list(own.values())))
                numerator = denominator = np.ones(kept.size)
            heads[layer, head] = HeadSelection(kept, numerator.astype(np.float32), denominator.astype(np.float32), own)
    return dataclasses.replace(whole_selection(3, kv_heads, CUT), heads=heads)


def dense_logits(model: Any, ids: list[int], selection: RecordedSelection) -> Any:
    """One pass over everything, rows in double: rows before the cut see all, rows behind it the weighted selection."""

    def attend(module: Any, q: Any, k: Any, v: Any, attention_mask: Any, scaling: Any = None, **kwargs: Any) -> Any:
        out = torch.zeros(q.shape[1], q.shape[2], v.shape[3], dtype=torch.float64)
        scaling = q.shape[-1] ** -0.5 if scaling is None else scaling
        for head in range(q.shape[1]):
            kv = head // (q.shape[1] // k.shape[1])
            chosen = selection.heads[module.layer_idx, kv]
            num, den = torch.zeros(CUT), torch.zeros(CUT)
            num[chosen.kept], den[chosen.kept] = torch.tensor(chosen.numerator), torch.tensor(chosen.denominator)
            if chosen.query_heads:
                num, den = torch.zeros(CUT), torch.zeros(CUT)
                num[chosen.query_heads[head]] = den[chosen.query_heads[head]] = 1
            for i in range(q.shape[2]):
                sinks = kwargs.get("s_aux")
                above = torch.zeros(v.shape[3], dtype=torch.float64)
                below = 0.0 if sinks is None else float(sinks[head].double().exp())
                first = max(0, i - kwargs["sliding_window"] + 1) if kwargs.get("sliding_window") else 0
                for j in range(first, i + 1):
                    logit = float(scaling) * float(q[0, head, i].double() @ k[0, kv, j].double())
                    cap = kwargs.get("softcap")
                    e = np.exp(cap * np.tanh(logit / cap) if cap else logit)
                    pruned = i >= CUT and j < CUT
                    above += e * (float(num[j]) if pruned else 1.0) * v[0, kv, j].double()
                    below += e * (float(den[j]) if pruned else 1.0)
                out[head, i] = above / below
        return out.transpose(0, 1)[None].float().contiguous(), None

    with torch.no_grad(), replaced_attention(model, "dense", attend):
        return model(input_ids=torch.tensor([ids]), use_cache=False).logits[0]


def heads_of(name: str) -> int:
    return 4 if name in ("gpt2", "gpt-neox", "deepseek-v3") else 2


@pytest.mark.parametrize("kind", ["plain", "one_set", "two_sets", "query_heads"])
@pytest.mark.parametrize("name", MODELS)
def test_pruned_logits_are_those_of_the_dense_pass(name: str, kind: str) -> None:
    model, ids = tiny_model(name), random_ids(TOKENS, SEED)
    selection = random_selection(heads_of(name), kind)
    expected = dense_logits(model, ids, selection)[CUT:]
    context = PrunedContext(model, ids, selection)
    got = torch.cat([context.extend(ids[CUT : CUT + 4]), context.extend(ids[CUT + 4 : -1]), context.extend(ids[-1:])])
    assert torch.allclose(got, expected, atol=2e-4 * float(expected.abs().max()))
    again = context.fork().extend(ids[CUT:])
    assert torch.allclose(again, expected, atol=2e-4 * float(expected.abs().max()))


@pytest.mark.parametrize("name", MODELS)
def test_the_full_cache_costs_nothing(name: str) -> None:
    model, ids = tiny_model(name), random_ids(TOKENS, SEED)
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids])).logits[0]
    own = torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(ids[1:]), reduction="none").numpy()
    full = full_nll(model, ids)
    loss = answer_loss(model, ids, whole_selection(3, heads_of(name), CUT), WANTED)
    assert np.abs(full[1:] - own).max() < 1e-4
    assert np.abs(loss.nll - own[CUT:]).max() < 1e-4
    assert loss.right.tolist() == (logits[CUT:-1].argmax(-1) == torch.tensor(ids[CUT + 1 :])).tolist()
    assert abs(answer_loss(model, ids, random_selection(heads_of(name), "plain"), WANTED).mean() - loss.mean()) > 1e-3


def test_greedy_text_of_the_full_cache_is_the_models_own() -> None:
    model, ids = tiny_model("qwen2"), random_ids(TOKENS, SEED)
    written = list(ids)
    with torch.no_grad():
        for _ in range(6):
            written.append(int(model(input_ids=torch.tensor([written])).logits[0, -1].argmax()))
    context = PrunedContext(model, ids, whole_selection(3, 2, CUT))
    assert generate(context, ids[CUT:], 6) == written[TOKENS:]
    at_end = PrunedContext(model, ids, whole_selection(3, 2, TOKENS))
    assert generate(at_end, [], 6) == written[TOKENS:]
    place = written[TOKENS:].index(written[TOKENS + 3])
    assert generate(at_end.fork(), [], 6, stop=written[TOKENS + 3]) == written[TOKENS : TOKENS + place]


def test_bytes_count_rows_and_not_padding() -> None:
    selection = random_selection(2, "plain")
    rows = sum(head.kept.size for head in selection.heads.values())
    context = PrunedContext(tiny_model("llama"), random_ids(TOKENS, SEED), selection)
    assert context.bytes_kept() == rows * (8 + 8) * 4


def test_sets_of_query_heads_are_stored_and_counted_each() -> None:
    selection = random_selection(2, "query_heads")
    model, ids = tiny_model("llama"), random_ids(TOKENS, SEED)
    own = [own.size for head in selection.heads.values() for own in head.query_heads.values()]
    shared = sum(head.kept.size for head in selection.heads.values() if not head.query_heads)
    assert len(own) == 4
    assert PrunedContext(model, ids, selection).bytes_kept() == (sum(own) + shared) * (8 + 8) * 4
    assert np.isclose(selection.retention(), (sum(own) / 2 + shared) / 6 / CUT)
    chosen = selection.heads[1, 0]
    half = dataclasses.replace(chosen, query_heads={0: chosen.query_heads[0]})
    with pytest.raises(ValueError, match=r"sets of query heads \[0\] are not those of KV head 0"):
        PrunedContext(model, ids, dataclasses.replace(selection, heads={(1, 0): half}))


def test_lists_that_do_not_fit_are_refused() -> None:
    model, ids = tiny_model("llama"), random_ids(TOKENS, SEED)
    with pytest.raises(CaptureError, match="the model has no KV head 2 in layer 0"):
        PrunedContext(model, ids, whole_selection(3, 3, CUT))
    with pytest.raises(CaptureError, match="the cut 31 lies outside 30 tokens"):
        PrunedContext(model, ids, whole_selection(3, 2, 31))
    moved = dataclasses.replace(whole_selection(3, 2, CUT), parameters={"positions": "rerotated"})
    with pytest.raises(CaptureError, match="re-assigns positions inside the cache"):
        PrunedContext(model, ids, moved)
    for wanted in ([CUT], [TOKENS], []):
        with pytest.raises(ValueError, match="wanted tokens must lie in 20 .. 29"):
            answer_loss(model, ids, whole_selection(3, 2, CUT), wanted)


@pytest.mark.parametrize(
    ("kind", "heads", "reason"),
    [
        ("bart", 4, "takes a token's position from the length of its cache"),
        ("falcon_h1", 2, "layers 0-2 carry a state"),
    ],
)
def test_a_model_that_goes_on_otherwise_behind_a_shorter_cache_is_refused(kind: str, heads: int, reason: str) -> None:
    """Its first 512 losses are right, so that the self-check of a longer context would pass."""
    model = random_model(unlike_config(kind), 0)
    with pytest.raises(CaptureError, match=reason):
        PrunedContext(model, random_ids(TOKENS, SEED), whole_selection(3, heads, CUT))


def test_a_hybrid_model_of_attention_alone_is_pruned() -> None:
    model, ids = random_model(unlike_config("granitemoehybrid"), 0), random_ids(TOKENS, SEED)
    if model.config.layer_types[0] == "attention":
        pytest.skip("this version of Transformers gives the model a cache of another kind")
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids])).logits[0, CUT:-1]
    wanted = torch.nn.functional.cross_entropy(logits, torch.tensor(ids[CUT + 1 :]), reduction="none").tolist()
    assert answer_loss(model, ids, whole_selection(3, 2, CUT), WANTED).nll.tolist() == pytest.approx(wanted, abs=1e-4)


def test_a_shortened_cache_of_a_sliding_layer_is_refused() -> None:
    """Slots of a shortened cache are no positions; a window longer than the longest prompt changes nothing."""
    gemma, mistral = tiny_model("gemma3").config, tiny_model("mistral").config
    refuse_window(gemma, 1, "list.json")  # a global layer
    refuse_window(tiny_model("llama").config, 0, "list.json")
    for config in (gemma, mistral):
        with pytest.raises(CaptureError, match="layer 0 has a sliding window of . tokens"):
            refuse_window(config, 0, "list.json")
    mistral.sliding_window = mistral.max_position_embeddings
    refuse_window(mistral, 0, "list.json")
