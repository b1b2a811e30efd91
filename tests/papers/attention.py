"""Attention over kept tokens against attention over all, query by query, and the papers' measures of the difference."""

import functools

import numpy as np
from capture import Layer
from program import Kept


class Judged:
    """The queries of a layer from the cut on, which see what is kept before the cut and everything from it on."""

    def __init__(self, layer: Layer, cut: int) -> None:
        """Computes exact attention; the exponentials of a query are divided by the largest (their ratio is used)."""
        self.layer, self.cut, n = layer, cut, layer.k.shape[1]
        self.e = np.zeros((len(layer.q), n - cut, n))
        self.exact = np.zeros((len(layer.q), n - cut, layer.v.shape[2]))
        for h, kv_head in enumerate(layer.kv_of_q):
            for row, j in enumerate(range(cut, n)):
                logits = layer.scaling * layer.k[kv_head, : j + 1] @ layer.q[h, j]
                e = np.exp(logits - logits.max())
                self.e[h, row, : j + 1] = e
                self.exact[h, row] = e @ layer.v[kv_head, : j + 1] / e.sum()

    def sums(self, kept: list[Kept]) -> tuple[np.ndarray, np.ndarray]:
        """Numerator and denominator of every query over what its head keeps, with weights, and what follows the cut."""
        numerator = np.zeros_like(self.exact)
        denominator = np.zeros(self.e.shape[:2])
        for h, kv_head in enumerate(self.layer.kv_of_q):
            head, v, later = kept[kv_head], self.layer.v[kv_head], self.e[h, :, self.cut :]
            seen = self.e[h][:, head.tokens]
            numerator[h] = (seen * head.numerator) @ v[head.tokens] + later @ v[self.cut :]
            denominator[h] = seen @ head.denominator + later.sum(axis=1)
        return numerator, denominator

    def differences(self, kept: list[Kept]) -> np.ndarray:
        """||z_j - a_j|| [query heads, queries]."""
        numerator, denominator = self.sums(kept)
        return np.linalg.norm(numerator / denominator[..., None] - self.exact, axis=2)

    def output_error(self, kept: list[Kept]) -> np.ndarray:
        """Relative error of B.1 (balancekv.txt 2773)."""
        return self.differences(kept) / np.linalg.norm(self.exact, axis=2)

    @functools.cached_property
    def weight_norms(self) -> np.ndarray:
        """||softmax(K_j q_j)||_2."""
        return np.linalg.norm(self.e, axis=2) / self.e.sum(axis=2)

    @functools.cached_property
    def frobenius(self) -> np.ndarray:
        """||V_j||_F of the first j values, per query head and query."""
        squares = np.cumsum((self.layer.v**2).sum(axis=2), axis=1)
        return np.sqrt(squares)[self.layer.kv_of_q, self.cut :]

    @functools.cached_property
    def operator(self) -> np.ndarray:
        """||V_j||_op of the first j values, per query head and query."""
        n = self.layer.k.shape[1]
        norms = [[np.linalg.norm(v[: j + 1], 2) for j in range(self.cut, n)] for v in self.layer.v]
        return np.array(norms)[self.layer.kv_of_q]

    def eps_f(self, kept: list[Kept]) -> np.ndarray:
        """Epsilon of BalanceKV's guarantee (2) (balancekv.txt, section 3)."""
        return self.differences(kept) / (self.weight_norms * self.frobenius)

    def eps_op(self, kept: list[Kept]) -> np.ndarray:
        """Epsilon of SubGen's guarantee (3) (subgen.txt 560-590)."""
        return self.differences(kept) / (self.weight_norms * self.operator)

    def numerator_error(self, kept: list[Kept]) -> np.ndarray:
        """Error of the numerator alone, over ||exp(K_j q_j)||_2 ||V_j||_F."""
        numerator, _ = self.sums(kept)
        exact = self.exact * self.e.sum(axis=2)[..., None]
        return np.linalg.norm(numerator - exact, axis=2) / (np.linalg.norm(self.e, axis=2) * self.frobenius)

    def later_attention(self) -> np.ndarray:
        """Mean attention of these queries on each token [query heads, tokens]."""
        return (self.e / self.e.sum(axis=2, keepdims=True)).mean(axis=1)


@functools.cache
def judged(layer_number: int, cut: int) -> Judged:
    """Of the sample, computed once."""
    from capture import sample

    return Judged(sample().layers[layer_number], cut)
