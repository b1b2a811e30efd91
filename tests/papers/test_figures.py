"""Numbers in the sentences that the figures of `reproduce --list` print, from the capture."""

import re
import shlex

import numpy as np
import pytest
from capture import Layer, sample
from measures import exact_leverage, leverage
from program import kept, listed, run, sketches
from selection import keydiff_scores

CUT, NUMBER, HEAD = sample().cut("default"), 3, 1


def finding(name: str) -> list[str]:
    """The numbers that the listed command prints of one head, as printed."""
    command = re.search(r"kvscope (plot .*?)\]?$", listed()[name])
    assert command
    words = [str(sample().path) if word == "CAPTURE" else word for word in shlex.split(command.group(1))]
    printed, _ = run(*words, "--layer", NUMBER, "--kv-head", HEAD)
    return re.findall(r"-?\d+(?:\.\d+)?", printed.replace("−", "-").replace(",", ""))


def layer() -> Layer:
    return sample().layers[NUMBER]


def cosine_range() -> list[float]:
    """Figure 2: cosines of the first 64 keys (keydiff.txt 100-101)."""
    unit = layer().k[HEAD, :64] / np.linalg.norm(layer().k[HEAD, :64], axis=1, keepdims=True)
    return [float((unit @ unit.T).min()), float((unit @ unit.T).max())]


def evicted_needles() -> list[float]:
    """Figure 5: of the tokens that a figure marks, those that KeyDiff evicts."""
    needles = {t for begin, end, kind in sample().segments if kind == 2 for t in range(begin, end)}
    return [len(needles - set(kept("keydiff@0.25")[NUMBER][HEAD].tokens.tolist())), len(needles)]


def threshold() -> list[float]:
    """Figure 3: the lowest score that is kept, and how much of what is kept lies in the first half."""
    tokens = kept("keydiff@0.25")[NUMBER][HEAD].tokens
    least = keydiff_scores(layer().k[HEAD, :CUT])[tokens].min()
    return [float(least), int((tokens < CUT / 2).sum()), len(tokens)]


def cluster_counts() -> list[float]:
    """Definition 1: greedy clusters within 0.8 median distances, of keys, keys before RoPE and values.

    The paper gives no radius; the program's median is that of 512 evenly spaced rows.
    """
    counts, spaced = [], np.arange(512) * CUT // 512
    for rows in (layer().k[HEAD, :CUT], layer().k_pre[HEAD, :CUT], layer().v[HEAD, :CUT]):
        squares = (rows**2).sum(axis=1)
        distances = np.sqrt(np.maximum(0, squares[:, None] + squares - 2 * rows @ rows.T))
        pairs = np.sort(distances[np.ix_(spaced, spaced)][np.triu_indices(512, 1)])
        radius, representatives = 0.8 * pairs[(len(pairs) + 1) // 2 - 1], []
        for token in range(CUT):
            if not representatives or distances[token, representatives].min() > radius:
                representatives.append(token)
        counts.append(len(representatives))
    return [0.8, CUT, *counts]


def leverage_shares() -> list[float]:
    """Theorem 2's scores: what the best quarter holds, and how much of it the sketch picks."""
    exact, count = exact_leverage(NUMBER, HEAD, CUT), 249
    best = set(np.argsort(-exact, kind="stable")[:count].tolist())
    phi = sketches("leverage,sketch_size=32@0.25")[NUMBER, HEAD]
    drawn = set(np.argsort(-leverage(layer().k_pre[HEAD, :CUT] @ phi), kind="stable")[:count].tolist())
    held = 100 * float(exact[list(best)].sum() / exact.sum())
    return [count, CUT, 25, held, 32, layer().k.shape[2], 100 * len(best & drawn) / count]


FIGURES = {
    "keydiff-fig2": cosine_range,
    "keydiff-fig5": evicted_needles,
    "keydiff-fig3": threshold,
    "subgen-def1": cluster_counts,
    "compactor-thm2": leverage_shares,
}


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_findings_are_the_papers(name: str) -> None:
    stated, computed = finding(name), FIGURES[name]()
    assert stated[: len(computed)] == as_printed(stated, computed)
    for i in range(len(computed)):
        wrong = [value * 1.5 if i == j else value for j, value in enumerate(computed)]
        assert stated[: len(computed)] != as_printed(stated, wrong)


def as_printed(stated: list[str], computed: list[float]) -> list[str]:
    """Computed numbers with as many digits as the program prints."""
    return [f"{c:.{len(s.partition('.')[2])}f}" for s, c in zip(stated, computed, strict=False)]
