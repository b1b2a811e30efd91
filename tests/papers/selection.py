"""Which tokens the papers' deterministic policies keep, token by token from their texts.

Scores are rounded to float and equal ones go to the earlier token, as every list of the program has it.
"""

import dataclasses
import math

import numpy as np
from capture import Layer, sample

Caches = list[np.ndarray]  # tokens that each KV head of a layer holds, ascending


@dataclasses.dataclass(frozen=True)
class Spec:
    """A policy as it is typed: ID[:VARIANT][,parameter=value]...@BUDGET."""

    policy: str
    variant: str
    values: dict[str, str]
    budget: str

    def count(self, tokens: int) -> int:
        """Tokens that the budget keeps: ceil(r N) (compactor.txt, section 3.4)."""
        if self.budget.endswith("t"):
            return int(self.budget[:-1])
        return min(tokens, math.ceil(float(self.budget) * tokens - 1e-9))

    def whole(self, name: str) -> int:
        """A parameter that counts tokens, 0 where it is not typed."""
        return int(self.values.get(name, "0"))


def parse(text: str) -> Spec:
    """Reads a policy with its budget."""
    text, _, budget = text.partition("@")
    name, *parameters = text.split(",")
    policy, _, variant = name.partition(":")
    return Spec(policy, variant, dict(p.split("=") for p in parameters), budget)


def best(scores: np.ndarray, count: int) -> np.ndarray:
    """Positions of the largest scores, ascending."""
    order = np.argsort(-np.float32(scores), kind="stable")
    return np.sort(order[: max(0, count)])


def attention(layer: Layer, head: int, queries: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """Softmax of each query over those of the tokens that do not come after it."""
    logits = layer.scaling * layer.q[head, queries] @ layer.k[layer.kv_of_q[head], tokens].T
    logits[queries[:, None] < tokens] = -np.inf
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def cosines(rows: np.ndarray, to: np.ndarray) -> np.ndarray:
    """Cosine of every row to a vector."""
    return rows @ to / (np.linalg.norm(rows, axis=1) * np.linalg.norm(to))


def keydiff_scores(keys: np.ndarray, anchor: str = "mean", metric: str = "cosine") -> np.ndarray:
    """KeyDiff: Eqs. 7 and 8 (keydiff.txt 120-133), anchors of Table 14 (838), metrics of Table 15 (840-846)."""
    unit = keys / np.linalg.norm(keys, axis=1, keepdims=True)
    if anchor == "pairwise":
        return -np.array([cosines(keys, k).sum() for k in keys])
    mu = {"mean": keys.mean(axis=0), "normalised_mean": unit.mean(axis=0), "median": np.median(keys, axis=0)}[anchor]
    if metric == "cosine":
        return -cosines(keys, mu)
    return -(keys @ mu) if metric == "dot" else np.linalg.norm(keys - mu, axis=1)


class KeyDiff:
    """Keeps the keys least similar to the anchor; a share of the budget may be the last tokens (3.2)."""

    def __init__(self, layer: Layer, spec: Spec) -> None:
        """Reads anchor, metric and window, which is 20 % in App. E (keydiff.txt 608)."""
        self.layer, self.values = layer, spec.values
        self.share = "0.2" if spec.variant == "sliding_window" else "0"

    def choose(self, caches: Caches, queries: np.ndarray, count: int) -> Caches:
        """The positions in the caches that stay."""
        recent = math.floor(float(self.values.get("window_share", self.share)) * count + 1e-9)
        stay = []
        for kv_head, tokens in enumerate(caches):
            keys = self.layer.k[kv_head, tokens]
            scores = keydiff_scores(keys, self.values.get("anchor", "mean"), self.values.get("metric", "cosine"))
            scores[len(tokens) - recent :] = np.inf
            stay.append(best(scores, count))
        return stay


class Sink:
    """The first four tokens and the latest (keydiff.txt 737)."""

    def __init__(self, layer: Layer, spec: Spec) -> None:
        """Needs nothing."""

    def choose(self, caches: Caches, queries: np.ndarray, count: int) -> Caches:
        """The positions in the caches that stay."""
        return [best(np.where(tokens < 4, np.inf, tokens), count) for tokens in caches]


class Tova:
    """Attention of the last query (keydiff.txt 325), mean over the group (737); the original over all query heads."""

    def __init__(self, layer: Layer, spec: Spec) -> None:
        """Reads whose query heads agree."""
        self.layer, self.grouped = layer, spec.variant == "keydiff"

    def choose(self, caches: Caches, queries: np.ndarray, count: int) -> Caches:
        """The positions in the caches that stay."""
        stay = []
        for kv_head in range(len(caches)):
            heads = self.layer.group(kv_head) if self.grouped else range(len(self.layer.q))
            seen = [caches[self.layer.kv_of_q[h]] for h in heads]
            per_head = [attention(self.layer, h, queries[-1:], own)[0] for h, own in zip(heads, seen, strict=True)]
            stay.append(best(np.mean(per_head, axis=0), count))
        return stay


class SnapKV:
    """The last 32 queries vote; averages of 5, in KeyDiff's runs of 7, smooth; the window stays (keydiff.txt 737)."""

    WINDOW = 32

    def __init__(self, layer: Layer, spec: Spec) -> None:
        """Reads the kernel's width."""
        self.layer, self.width = layer, 7 if spec.variant == "keydiff" else 5

    def choose(self, caches: Caches, queries: np.ndarray, count: int) -> Caches:
        """The positions in the caches that stay."""
        stay, window = [], np.arange(queries[-1] + 1 - self.WINDOW, queries[-1] + 1)
        for kv_head, tokens in enumerate(caches):
            before, scores = len(tokens) - self.WINDOW, np.full(len(tokens), np.inf)
            pooled = []
            for h in self.layer.group(kv_head):
                votes = attention(self.layer, h, window, tokens).sum(axis=0)[:before]
                pooled.append(np.convolve(votes, np.ones(self.width) / self.width, mode="same"))
            scores[:before] = np.mean(pooled, axis=0)
            stay.append(best(scores, count))
        return stay


class H2O:
    """Accumulated attention: A_prev + A^T 1 (keydiff.txt 327); half of the budget recent, in KeyDiff's runs none."""

    def __init__(self, layer: Layer, spec: Spec) -> None:
        """Starts without sums."""
        self.layer, self.recent = layer, 0.0 if spec.variant == "keydiff" else 0.5
        self.sums = np.zeros(layer.q.shape[:2])  # by query head and token

    def choose(self, caches: Caches, queries: np.ndarray, count: int) -> Caches:
        """The positions in the caches that stay."""
        stay = []
        for kv_head, tokens in enumerate(caches):
            for h in self.layer.group(kv_head):
                self.sums[h, tokens] += attention(self.layer, h, queries, tokens).sum(axis=0)
            scores = self.sums[self.layer.group(kv_head)][:, tokens].mean(axis=0)
            scores[len(tokens) - math.floor(self.recent * count) :] = np.inf
            stay.append(best(scores, count))
        return stay


POLICIES = {"keydiff": KeyDiff, "streaming_llm": Sink, "tova": Tova, "snapkv": SnapKV, "h2o": H2O}


def ends(tokens: int, spec: Spec) -> list[int]:
    """Where the blocks of the prompt end, and then each decoded token (keydiff.txt 83-91)."""
    prompt = tokens - spec.whole("decode_tokens")
    block = spec.whole("prompt_block") or prompt
    return [*range(block, prompt, block), *range(prompt, tokens + 1)]


def cached(layer: Layer, spec: Spec, tokens: int) -> Caches:
    """The caches after the tokens before the cut (Eqs. 4 to 6)."""
    policy, count = POLICIES[spec.policy](layer, spec), spec.count(tokens)
    caches: Caches = [np.array([], dtype=int) for _ in range(layer.kv_heads)]
    begin = 0
    for end in ends(tokens, spec):
        block = np.arange(begin, end)
        caches = [np.concatenate((cache, block)) for cache in caches]
        if len(caches[0]) > count or spec.policy == "h2o":  # sums go on while nothing is evicted
            stay = policy.choose(caches, block, min(count, len(caches[0])))
            caches = [cache[rows] for cache, rows in zip(caches, stay, strict=True)]
        begin = end
    return caches


def centres(layer: Layer, spec: Spec, tokens: int) -> Caches:
    """Greedy k-center from token 0, the key farthest from all centres so far, and recent tokens (subgen.txt 706-712).

    The paper gives the number of recent tokens and centres as their sum only; 32 of them are recent here.
    """
    recent, caches = 32, []
    for keys in layer.k[:, : tokens - recent]:
        order, distances = [0], np.linalg.norm(keys - keys[0], axis=1)
        while len(order) < spec.count(tokens) - recent:
            order.append(int(np.argmax(distances)))
            distances = np.minimum(distances, np.linalg.norm(keys - keys[order[-1]], axis=1))
        caches.append(np.array([*sorted(order), *range(tokens - recent, tokens)]))
    return caches


def selected(text: str, cut: int) -> list[Caches] | None:
    """What the papers' policy keeps [layers][KV heads], or None where it draws lots."""
    spec = parse(text)
    if spec.policy == "exact":
        return [[np.arange(cut)] * layer.kv_heads for layer in sample().layers]
    if spec.policy == "subgen_kcenter":
        return [centres(layer, spec, cut) for layer in sample().layers]
    if spec.policy not in POLICIES:
        return None
    return [cached(layer, spec, cut) for layer in sample().layers]
