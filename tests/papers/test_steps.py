"""What the figures that `plot` draws are made of, as `evict --steps` and `--scores` write it."""

import math

import numpy as np
import pytest
from averages import ranks
from capture import sample
from measures import leverage, noncausal_scores
from program import calibration, scores, steps
from selection import keydiff_scores

CUT = sample().cut("default")


def close(stated: list, computed: np.ndarray, relative: float = 1e-5) -> bool:
    scale = float(np.abs(computed).max())
    return bool(np.allclose(np.array(stated, dtype=float), computed, rtol=relative, atol=relative * scale))


def walked(walk: dict, layer) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of Algorithm 2 (balancekv.txt 579-610) in units of R^2: y^T eta, p and ||sum eta phi(k) v||^2 token by token."""
    tokens, eta = np.array(walk["tokens"]), np.array(walk["signs"], dtype=float)
    keys = layer.k[walk["kv_head"]]
    r = np.linalg.norm(layer.k[:, :CUT], axis=2).max()  # bounds the keys of all heads
    kernel = np.exp(layer.scaling * (keys[tokens] @ keys[tokens].T - r**2))
    if walk["tree"] == "numerator":
        v = layer.v[walk["kv_head"], tokens]
        kernel *= v @ v.T / 4.0 ** walk["bucket"]
    c = 30 * math.log(len(tokens) * CUT**2)  # delta = 1 / n^2
    y = np.array([kernel[j, :j] @ eta[:j] for j in range(len(tokens))])
    q = np.array([eta[: j + 1] @ kernel[: j + 1, : j + 1] @ eta[: j + 1] for j in range(len(tokens))])
    return y, 0.5 - y / (2 * c), q


@pytest.mark.parametrize("number", [0, 3])
def test_walks_are_softmax_balance(number: int) -> None:
    for walk in steps("balancekv_stream")[number]["walks"]:
        y, p, q = walked(walk, sample().layers[number])
        assert close(walk["y_eta"], y) and close(walk["p"], p) and close(walk["Q"], q)
        plus = np.array(walk["uniforms"]) < p
        assert (np.array(walk["signs"]) == np.where(plus, 1, -1)).all()
        assert not close(walk["y_eta"], y * 1.001) and not close(walk["Q"], q * 1.001)


def outputs(walk: dict) -> list[int]:
    """The smaller group; of equal ones +1 (balancekv.txt 611-616)."""
    signs, tokens = np.array(walk["signs"]), np.array(walk["tokens"])
    sign = 1 if (signs == 1).sum() <= (signs == -1).sum() else -1
    return tokens[signs == sign].tolist()


def test_the_tree_merges_and_reduces() -> None:
    """Every node of a level reads the outputs of two nodes below it, those of the first level a batch (Fig. 2)."""
    layer, number = sample().layers[1], 1
    walks = steps("balancekv_stream,batch=64,levels=4")[number]["walks"]
    nodes = {(w["kv_head"], w["tree"], w["bucket"], w["level"], w["place"]): w for w in walks}
    for (head, tree, bucket, level, place), walk in nodes.items():
        if level > 1:
            below = [nodes[head, tree, bucket, level - 1, 2 * place + i] for i in (0, 1)]
            assert walk["tokens"] == outputs(below[0]) + outputs(below[1])
            continue
        tokens = np.arange(CUT)
        if tree == "numerator":  # octaves 2^(i-1) < ||v|| <= 2^i (balancekv.txt 466-469)
            octave = np.ceil(np.log2(np.linalg.norm(np.float32(layer.v[head, :CUT]).astype(float), axis=1)))
            tokens = tokens[octave == bucket]
        assert walk["tokens"] == tokens[64 * place : 64 * place + 64].tolist()
    assert max(level for *_, level, _ in nodes) == 4  # 995 tokens hold 15 whole batches, 1111 in binary


def test_clusters_are_subgens() -> None:
    """A key within delta of the nearest representative joins it, another opens a cluster (subgen.txt 398-450)."""
    for number, log in enumerate(steps("subgen:searched@0.5")):
        for kv_head, head in enumerate(log["heads"]):
            keys, representatives, members, radii = sample().layers[number].k[kv_head, :CUT], [], [], []
            for token, key in enumerate(keys):
                distances = np.linalg.norm(keys[representatives] - key, axis=1)
                if len(distances) and distances.min() <= head["delta"]:
                    nearest = int(distances.argmin())
                    members.append(nearest)
                    radii[nearest] = max(radii[nearest], distances.min())
                else:
                    members.append(len(representatives))
                    representatives.append(token)
                    radii.append(0.0)
            assert (head["representatives"], head["cluster"]) == (representatives, members)
            assert head["counts"] == np.bincount(members).tolist() and close(head["radii"], np.array(radii))
            squares = (sample().layers[number].v[kv_head, :CUT] ** 2).sum(axis=1)  # Lemma 1 (subgen.txt 330-372)
            assert close(head["value_probability"], squares / squares.sum()) and close([head["mu"]], squares.sum())


def test_keydiff_scores_are_eq_8() -> None:
    for layer, heads in zip(sample().layers, scores("keydiff@0.25"), strict=True):
        for kv_head, stated in enumerate(heads):
            mine = keydiff_scores(layer.k[kv_head, :CUT])
            assert close(stated[:CUT], mine) and not close(stated[:CUT], mine * 1.001)


def test_parts_of_compactor_are_eqs_1_and_5() -> None:
    """At k = d a Gaussian sketch changes no leverage."""
    for layer, log in zip(sample().layers, steps("compactor@0.25"), strict=True):
        for kv_head in range(layer.kv_heads):
            assert close(log["attention"][kv_head], noncausal_scores(layer, CUT, kv_head))
            assert close(log["leverage"][kv_head], leverage(layer.k_pre[kv_head, :CUT]), 1e-4)
            assert not close(log["attention"][kv_head], noncausal_scores(layer, CUT, kv_head) * 1.001)


def test_calibration_fits_the_papers_curve() -> None:
    """F_k(r) = (e^{rk} - 1) / (e^k - 1); the loss weighs a curve above a point (compactor.txt, 3.5)."""
    fitted = calibration("keydiff:kvpress", 0.95)
    rows = fitted["triples"]
    r, y = (np.array([row[name] for row in rows]) for name in ("retention", "quality"))
    inside = (r > 0) & (r < 1)

    def loss(k: float) -> float:
        error = (np.expm1(k * r[inside]) / np.expm1(k) if k else r[inside]) - y[inside]
        return float((np.where(error > 0, fitted["fit"]["weight"], 1) * error**2).sum())

    grid = np.linspace(-50, 50, 200001)
    k = grid[np.argmin([loss(x) for x in grid])]
    (context,) = fitted["contexts"]
    assert abs(context["k"] - k) < 1e-3
    assert math.isclose(context["retention"], math.log1p(0.95 * math.expm1(context["k"])) / context["k"], rel_tol=1e-9)
    assert ranks(np.array([3.0, 1.0, 3.0])).tolist() == [2.5, 1.0, 2.5]
