import numpy as np
import pytest
from capture import Layer, sample
from measures import blended, leverage
from program import Kept, kept, sketches
from selection import parse, selected

SPECS = [
    "keydiff@0.25",
    "keydiff,anchor=normalised_mean@0.25",
    "keydiff,anchor=median@0.25",
    "keydiff,anchor=pairwise@0.25",
    "keydiff,metric=dot@0.25",
    "keydiff,metric=euclidean@0.25",
    "keydiff,window_share=0.2@0.25",
    "keydiff:sliding_window,decode_tokens=32@0.25",
    "snapkv:keydiff,decode_tokens=32@0.25",
    "tova:original@0.25",
    "tova:keydiff@0.25",
    "tova:keydiff,decode_tokens=8@0.25",
    "streaming_llm@0.25",
    "streaming_llm,decode_tokens=8@0.25",
    "snapkv@0.25",
    "snapkv:keydiff@0.25",
    "h2o@0.25",
    "h2o:keydiff@0.25",
    "subgen_kcenter@0.25",
    "subgen_kcenter@0.75",
    *[
        f"{policy},prompt_block={block}@0.25"
        for policy in ("keydiff", "snapkv:keydiff", "tova:keydiff", "streaming_llm", "h2o:keydiff")
        for block in (64, 512)
    ],
]


def moved(spec: str, cut: int) -> list[int]:
    """How many tokens of each head differ."""
    program, mine = kept(spec), selected(spec, cut)
    assert mine is not None
    pairs = [(a, b) for layer, own in zip(program, mine, strict=True) for a, b in zip(layer, own, strict=True)]
    return [len(np.setxor1d(a.tokens, b)) for a, b in pairs]


@pytest.mark.parametrize("spec", SPECS)
def test_lists_are_the_papers(spec: str) -> None:
    assert moved(spec, sample().cut("default")) == [0] * 12


def scored(spec: str, layer: Layer, kv_head: int, cut: int) -> np.ndarray:
    """Scores of one-shot policies that keep the best tokens: leverage, blended or alone, sketched or exact."""
    parsed = parse(spec)
    if parsed.policy == "key_norm":
        return -np.linalg.norm(layer.k[kv_head, :cut], axis=1)
    keys = layer.k_pre[kv_head, :cut]
    if parsed.values.get("sketch_size"):  # else as wide as the keys, which changes no leverage
        keys = keys @ sketches(spec)[layer.number, kv_head]
    if parsed.policy == "leverage":
        return leverage(keys)
    return blended(layer, cut, kv_head, leverage(keys), float(parsed.values.get("lambda", "0.3")))


BY_SCORE = [
    "key_norm@0.25",
    "leverage:exact@0.25",
    "leverage,sketch_size=32@0.1",
    "compactor@0.25",
    "compactor,lambda=0.15@0.05",
    "compactor,sketch=none@0.5",
    "compactor,sketch_size=32@0.25",
]


def worst_margin(spec: str, lists: list[list[Kept]]) -> float:
    """By how much an evicted token's score exceeds that of a kept one, over the spread of the scores."""
    cut, margins = sample().cut("default"), []
    for layer, heads in zip(sample().layers, lists, strict=True):
        for kv_head, head in enumerate(heads):
            scores, kept_here = scored(spec, layer, kv_head, cut), np.zeros(cut, dtype=bool)
            kept_here[head.tokens] = True
            margins.append((scores[~kept_here].max() - scores[kept_here].min()) / scores.std())
    return max(margins)


@pytest.mark.parametrize("spec", BY_SCORE)
def test_the_best_scores_are_kept(spec: str) -> None:
    cut = sample().cut("default")
    assert {len(head.tokens) for layer in kept(spec) for head in layer} == {parse(spec).count(cut)}
    assert worst_margin(spec, kept(spec)) < 1e-4
    assert worst_margin(spec, kept("streaming_llm@0.25")) > 0.1


def test_a_wrong_policy_is_seen() -> None:
    for spec, other in (("keydiff@0.25", "keydiff:kvpress@0.25"), ("snapkv@0.25", "snapkv:keydiff@0.25")):
        mine = selected(spec, sample().cut("default"))
        theirs = [[head.tokens.tolist() for head in layer] for layer in kept(other)]
        assert [[head.tolist() for head in layer] for layer in mine] != theirs
