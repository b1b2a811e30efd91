"""The papers' measures of a layer and of what its heads keep: an array over KV heads or over query heads."""

import functools

import numpy as np
from attention import judged
from averages import spearman
from capture import Layer, sample
from program import Kept
from selection import Spec, attention, keydiff_scores


def per_query(name: str):
    """A measure of every judged query, averaged over those of a query head."""
    return lambda layer, cut, kept: getattr(judged(layer.number, cut), name)(kept).mean(axis=1)


def log_det(layer: Layer, cut: int, kept: list[Kept]) -> np.ndarray:
    """ln det of the smaller Gram matrix of the kept keys, whose determinant is the squared volume (keydiff.txt 476).

    With more keys than dimensions det(K K^T) is 0, and the product of its other eigenvalues is det(K^T K).
    """
    values = []
    for kv_head, head in enumerate(kept):
        keys = layer.k[kv_head, head.tokens]
        gram = keys.T @ keys if len(keys) > keys.shape[1] else keys @ keys.T
        values.append(np.linalg.slogdet(gram)[1])
    return np.array(values)


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    """Of the angle between two vectors."""
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def cos_means(layer: Layer, cut: int, kept: list[Kept]) -> np.ndarray:
    """Mean key and mean query of the prompt (keydiff.txt 489-493)."""
    means = layer.k[:, :cut].mean(axis=1)
    return np.array([cosine(means[g], layer.q[h, :cut].mean(axis=0)) for h, g in enumerate(layer.kv_of_q)])


def cos_distinct(layer: Layer, cut: int, kept: list[Kept]) -> np.ndarray:
    """The key with the highest KeyDiff score and the mean query (keydiff.txt 499-501)."""
    values = []
    for h, kv_head in enumerate(layer.kv_of_q):
        keys = layer.k[kv_head, :cut]
        values.append(cosine(keys[np.argmax(keydiff_scores(keys))], layer.q[h, :cut].mean(axis=0)))
    return np.array(values)


def mean_norm(role: str):
    """Mean Euclidean norm of the queries, keys or values of the prompt (keydiff.txt 497; balancekv.txt 946-951)."""
    return lambda layer, cut, kept: np.linalg.norm(getattr(layer, role)[:, :cut], axis=2).mean(axis=1)


def shifted_key_norm(layer: Layer, cut: int, kept: list[Kept]) -> np.ndarray:
    """Mean norm of the keys less their mean (balancekv.txt 2869-2875)."""
    keys = layer.k[:, :cut]
    return np.linalg.norm(keys - keys.mean(axis=1, keepdims=True), axis=2).mean(axis=1)


def _unit(keys: np.ndarray) -> np.ndarray:
    return keys / np.linalg.norm(keys, axis=1, keepdims=True)


def cosine_sum(layer: Layer, cut: int, kept: list[Kept]) -> np.ndarray:
    """The sum of the cosines of all pairs of kept keys, a key with itself included (keydiff.txt, C.2)."""
    units = [_unit(layer.k[kv_head, head.tokens]) for kv_head, head in enumerate(kept)]
    return np.array([(unit @ unit.T).sum() for unit in units])


def cosine_sum_min(layer: Layer, cut: int, kept: list[Kept]) -> np.ndarray:
    """The same after exchanges: the kept key most along the sum for the evicted one most against the rest of it."""
    values = []
    for kv_head, head in enumerate(kept):
        unit, inside = _unit(layer.k[kv_head, :cut]), np.zeros(cut, dtype=bool)
        inside[head.tokens] = True
        while True:
            total = unit[inside].sum(axis=0)
            out = np.argmax(np.where(inside, unit @ total, -np.inf))
            rest = total - unit[out]
            candidates = ~inside
            candidates[out] = False
            new = np.argmin(np.where(candidates, unit @ rest, np.inf))
            after = rest + unit[new]
            if after @ after >= total @ total - 1e-9 * (1 + total @ total):
                break
            inside[[out, new]] = False, True
        values.append(float(total @ total))
    return np.array(values)


def leverage(rows: np.ndarray) -> np.ndarray:
    """||U_i||^2 of the singular vectors U (compactor.txt, Definition 1 and Eq. 1)."""
    u, s, _ = np.linalg.svd(rows, full_matrices=False)
    return (u[:, s > s[0] * max(rows.shape) * 2**-52] ** 2).sum(axis=1)


@functools.cache
def exact_leverage(number: int, kv_head: int, cut: int) -> np.ndarray:
    """Of the keys before RoPE and before the cut."""
    return leverage(sample().layers[number].k_pre[kv_head, :cut])


@functools.cache
def _whitening(number: int, kv_head: int, cut: int) -> np.ndarray:
    """(K^T K)^{-1/2} up to a rotation, which changes no eigenvalue below."""
    _, s, vt = np.linalg.svd(sample().layers[number].k_pre[kv_head, :cut], full_matrices=False)
    return vt.T / s


def distortion(layer: Layer, cut: int, kv_head: int, rows: np.ndarray) -> float:
    """The smallest eps of Theorem 1: (1 - eps) K^T K <= K'^T K' <= (1 + eps) K^T K."""
    inside = rows @ _whitening(layer.number, kv_head, cut)
    return float(np.abs(np.linalg.eigvalsh(inside.T @ inside) - 1).max())


def drawn(layer: Layer, cut: int, draws: list[list[int]]) -> np.ndarray:
    """Distortion of rows drawn with chances l_i / d and scaled by sqrt(d / (k l_i)) (compactor.txt, Theorem 1)."""
    values = []
    for kv_head, rows in enumerate(draws):
        scores = exact_leverage(layer.number, kv_head, cut)
        chances = scores[rows] / scores.sum()
        scaled = layer.k_pre[kv_head, rows] / np.sqrt(len(rows) * chances)[:, None]
        values.append(distortion(layer, cut, kv_head, scaled))
    return np.array(values)


def top_rows(layer: Layer, cut: int, count: int) -> np.ndarray:
    """Distortion of the rows with the highest leverage, not scaled (compactor.txt, below Theorem 1)."""
    values = []
    for kv_head in range(layer.kv_heads):
        best = np.argsort(-exact_leverage(layer.number, kv_head, cut), kind="stable")[:count]
        values.append(distortion(layer, cut, kv_head, layer.k_pre[kv_head, best]))
    return np.array(values)


def overlap(a: list[Kept], b: list[Kept]) -> np.ndarray:
    """Shared tokens over all tokens of two lists, per KV head."""
    sets = [(set(x.tokens.tolist()), set(y.tokens.tolist())) for x, y in zip(a, b, strict=True)]
    return np.array([len(x & y) / len(x | y) for x, y in sets])


def _z(x: np.ndarray) -> np.ndarray:
    return (x - x.mean()) / x.std()


def pooled(x: np.ndarray, width: int) -> np.ndarray:
    """Mean over neighbours, with zeros beyond the ends."""
    return np.convolve(x, np.ones(width) / width, mode="same")


def noncausal_scores(layer: Layer, cut: int, kv_head: int) -> np.ndarray:
    """Attention part: column sums of chunks of 256 without a mask (Eq. 5), value norm and pooling of 3 (3.3)."""
    received = np.zeros(cut)
    for begin in range(0, cut, 256):
        chunk = slice(begin, min(begin + 256, cut))
        for h in layer.group(kv_head):
            logits = layer.q[h, chunk] @ layer.k[kv_head, chunk].T
            e = np.exp(logits - logits.max(axis=1, keepdims=True))
            received[chunk] += (e / e.sum(axis=1, keepdims=True)).sum(axis=0) / len(layer.group(kv_head))
    return pooled(received * np.linalg.norm(layer.v[kv_head, :cut], axis=1), 3)


def blended(layer: Layer, cut: int, kv_head: int, outliers: np.ndarray, blend: float = 0.3) -> np.ndarray:
    """Compactor's score: z(a) + lambda z(o) (compactor.txt, Eq. 6)."""
    return _z(noncausal_scores(layer, cut, kv_head)) + blend * _z(outliers)


def snapkv_scores(layer: Layer, cut: int, kv_head: int, width: int) -> np.ndarray:
    """Pooled votes of the last 32 queries, of the tokens before them."""
    window = np.arange(cut - 32, cut)
    votes = [attention(layer, h, window, np.arange(cut)).sum(axis=0)[: cut - 32] for h in layer.group(kv_head)]
    return np.mean([pooled(v, width) for v in votes], axis=0)


def scores_of(layer: Layer, cut: int, kv_head: int, spec: Spec) -> np.ndarray:
    """The score of a policy for each token; SnapKV's window, which always stays, ranks first."""
    keys = layer.k[kv_head, :cut]
    if spec.policy == "keydiff":
        return keydiff_scores(keys)
    if spec.policy == "key_norm":
        return -np.linalg.norm(keys, axis=1)
    if spec.policy == "compactor":
        return blended(layer, cut, kv_head, exact_leverage(layer.number, kv_head, cut))
    assert spec.policy == "snapkv"
    scores = snapkv_scores(layer, cut, kv_head, 7 if spec.variant == "keydiff" else 5)
    return np.concatenate((scores, np.full(32, scores.max())))


def score_correlation(layer: Layer, cut: int, spec: Spec) -> np.ndarray:
    """Rank correlation of the score with the mean attention of the later queries, per query head."""
    later, values = judged(layer.number, cut).later_attention(), []
    for h, kv_head in enumerate(layer.kv_of_q):
        scores = scores_of(layer, cut, kv_head, spec)
        values.append(spearman(np.float32(scores), np.float32(later[h, :cut])))
    return np.array(values)
