"""Each row of the theory table a second time: what a theorem asks for or promises at the norms of a head.

Constants that the theorems hide are 1, as the rows say.
"""

import dataclasses
import functools
import math
from collections.abc import Callable

import numpy as np
from attention import judged
from capture import Layer, sample
from measures import cosine, drawn, leverage
from program import kept, parameters, sketches, steps
from selection import cosines, parse

Values = dict[str, float | None]  # columns of a row and what must stand in them; None: nothing
DRAWN = "leverage:sampling"


@dataclasses.dataclass(frozen=True)
class Head:
    """A KV head of one layer and the run that its rows are about."""

    policy: str
    number: int
    kv_head: int
    epsilon: float
    delta: float
    cut: int

    @property
    def layer(self) -> Layer:
        """The tensors."""
        return sample().layers[self.number]

    @property
    def keys(self) -> np.ndarray:
        """Before the cut."""
        return self.layer.k[self.kv_head, : self.cut]

    @property
    def queries(self) -> np.ndarray:
        """From the cut on, of the group's query heads."""
        return np.concatenate([self.layer.q[h, self.cut :] for h in self.layer.group(self.kv_head)])

    @property
    def r(self) -> float:
        """The longest key or query (balancekv.txt 425-432)."""
        return float(max(np.linalg.norm(self.keys, axis=1).max(), np.linalg.norm(self.queries, axis=1).max()))

    def exponential(self) -> float:
        """e^{2 r^2 / sqrt d}."""
        return math.exp(2 * self.r**2 * self.layer.scaling)

    def set(self, name: str) -> float | None:
        """A parameter of the policy; -1 leaves it to the budget."""
        value = float(parameters(self.policy)[name])
        return None if value < 0 else value

    def log(self, policy: str) -> dict:
        """What a policy wrote down in this layer."""
        return steps(policy)[self.number]


def _batch(head: Head) -> float:
    s = head.layer.v.shape[2]
    return math.sqrt(s) * head.exponential() / head.epsilon


def batch(head: Head) -> Values:
    """t of Theorem 3.4 (balancekv.txt 770-783); only the streaming form has it."""
    streaming = parse(head.policy).policy == "balancekv_stream"
    return {"demanded": _batch(head), "set": head.set("batch") if streaming else None}


def levels(head: Head) -> Values:
    """T = log(n / t), with as many halvings (balancekv.txt 783)."""
    name = "levels" if parse(head.policy).policy == "balancekv_stream" else "rounds"
    return {"demanded": math.log2(head.cut / _batch(head)), "set": head.set(name)}


def walk_constant(head: Head) -> Values:
    """c = 30 log(n / delta) (balancekv.txt 585, Algorithm 2 line 3)."""
    return {"demanded": 30 * math.log(head.cut / head.delta)}


def least_memory(head: Head) -> Values:
    """Theorem 3.2 in bits (balancekv.txt 517-527; INDEX, 2957-3000): nothing that is set must reach it."""
    d = head.keys.shape[1]
    least = min(1 / head.epsilon**2, d * head.exponential()) if head.r**2 <= d else None
    return {"demanded": least, "set": None, "met": None}


def _walks(head: Head) -> list[tuple[float, np.ndarray]]:
    """Of every walk the bound of Theorem 3.3 (balancekv.txt 648-712) and the left side at every judged query.

    Both in units of R e^{||q||^2 / 2 sqrt d}, R = max e^{||k||^2 / 2 sqrt d} max ||v||, with Algorithm 2's 30.
    """
    scale, found = head.layer.scaling, []
    for walk in head.log(head.policy)["walks"]:
        if walk["kv_head"] != head.kv_head or not walk["tokens"]:
            continue
        tokens, signs = np.array(walk["tokens"]), np.array(walk["signs"])
        k = head.keys[tokens]
        v = head.layer.v[head.kv_head, tokens] if walk["tree"] == "numerator" else np.ones((len(tokens), 1))
        longest = np.linalg.norm(k, axis=1).max()
        left = []
        for q in head.queries:
            e = np.exp(scale * (k @ q - longest**2 / 2 - q @ q / 2))
            left.append(np.linalg.norm((signs * e) @ v) / np.linalg.norm(v, axis=1).max())
        s = v.shape[1]
        found.append((math.sqrt(s) * 30 * math.log(len(tokens) * s / head.delta), np.array(left)))
    return found


def discrepancy(head: Head) -> Values:
    """The walk with the least room."""
    walks = _walks(head)
    bound, left = max(walks, key=lambda walk: walk[1].max() / walk[0])
    beyond = np.concatenate([values > limit for limit, values in walks])
    return {
        "bound": bound,
        "measured": float(left.mean()),
        "worst": float(left.max()),
        "measurements": len(beyond),
        "share_beyond": float(beyond.mean()),
        "may_fail": head.delta,
    }


def _errors(head: Head, measure: str, may_fail: float) -> Values:
    lists = kept(head.policy)[head.number]
    values = getattr(judged(head.number, head.cut), measure)(lists)[head.layer.group(head.kv_head)]
    return {
        "bound": head.epsilon,
        "measured": float(values.mean()),
        "worst": float(values.max()),
        "measurements": values.size,
        "share_beyond": float((values > head.epsilon).mean()),
        "may_fail": may_fail,
    }


def balance_error(head: Head) -> Values:
    """(2), which holds at every step with high probability (balancekv.txt 438-442)."""
    return _errors(head, "eps_f", head.delta)


def subgen_error(head: Head) -> Values:
    """(3), with probability 0.99 (subgen.txt 583-592)."""
    return _errors(head, "eps_op", 0.01)


def cluster_slots(head: Head) -> Values:
    """t = eps^-2 e^{2 delta r} log n, r of the query that multiplies keys, so the scaled one (subgen.txt 481-487)."""
    r = float(np.linalg.norm(head.queries, axis=1).max()) * head.layer.scaling
    radius = head.log(head.policy)["heads"][head.kv_head]["delta"]
    slots = math.exp(2 * radius * r) * math.log(head.cut) / head.epsilon**2
    return {"demanded": slots, "set": head.set("cluster_slots")}


def reservoir(head: Head) -> Values:
    """s = eps^-2 d (subgen.txt 489)."""
    return {"demanded": head.keys.shape[1] / head.epsilon**2, "set": head.set("value_slots")}


def sampled_rows(head: Head) -> Values:
    """k = d log(d / delta) eps^-2 (compactor.txt, Theorem 1)."""
    d, count = head.keys.shape[1], len(kept(head.policy)[head.number][head.kv_head].tokens)
    return {"demanded": d * math.log(d / head.delta) / head.epsilon**2, "set": count}


def drawn_rows(head: Head) -> Values:
    """As many rows as the budget keeps, drawn by leverage (compactor.txt, Theorem 1)."""
    draws = head.log(f"{DRAWN}@{parse(head.policy).budget}")["draws"]
    assert len(draws[head.kv_head]) == parse(head.policy).count(head.cut)
    value = float(drawn(head.layer, head.cut, draws)[head.kv_head])
    return {"bound": head.epsilon, "measured": value, "worst": value, "may_fail": head.delta}


def sketch_columns(head: Head) -> Values:
    """k >= 12 eps^-2 (rank log(42 / eps) + log(2 / delta)) (compactor.txt, Theorem 2)."""
    rank = min(head.keys.shape[1], head.cut)
    columns = 12 / head.epsilon**2 * (rank * math.log(42 / head.epsilon) + math.log(2 / head.delta))
    sketched = parameters(head.policy).get("sketch") != "none"
    return {"demanded": columns, "set": min(head.set("sketch_size") or 0, rank) if sketched else None}


def sketched_ratio(head: Head) -> Values:
    """Sketched over exact leverage, kappa of the proof: (s_max / s_min)^2 (compactor.txt, Theorem 2, Appendix A)."""
    keys = head.layer.k_pre[head.kv_head, : head.cut]
    s = np.linalg.svd(keys, compute_uv=False)
    sketched = leverage(keys @ sketches(head.policy)[head.number, head.kv_head])
    ratio = sketched / leverage(keys)
    worst = float(max(ratio.max(), 1 / ratio.min()))
    bound = float((s[0] / s[-1]) ** 2 * (1 + head.epsilon) / (1 - head.epsilon))
    return {"bound": bound, "measured": worst, "worst": worst, "may_fail": head.delta}


def mean_cosine(head: Head) -> Values:
    """Theorem 3.2 with the mean query of each query head (keydiff.txt 148-151); the least of their bounds.

    It holds for any query; the one taken is that of Fig. 14, the mean of the prompt's.
    """
    k_mean = head.keys.mean(axis=0)
    to_mean = cosines(head.keys, k_mean)
    farthest, bounds = head.keys[to_mean.argmin()], []
    for h in head.layer.group(head.kv_head):
        q = head.layer.q[h].mean(axis=0)
        a, b = cosine(k_mean, q), cosine(farthest, q)
        if a < 0 < b:
            bounds.append(1 + a * b - a**2 / 2 - b**2 / 2)
    value = float(to_mean.min())
    return {"bound": min(bounds, default=None), "measured": value, "worst": value}


def _angle(cosine_of_it: float) -> float:
    return math.degrees(math.acos(min(1.0, max(-1.0, cosine_of_it))))


def weight_angle(head: Head) -> Values:
    """Theorem C.1 (keydiff.txt 517-525): the angle of a query and its key of largest weight, where it has least room.

    The scaling and the query's length are moved into the keys; the proof needs M >= 1.
    """
    keys, rows = head.layer.k[head.kv_head], []
    for h in head.layer.group(head.kv_head):
        for j in range(head.cut, len(keys)):
            q, seen = head.layer.q[h, j], keys[: j + 1]
            logits = head.layer.scaling * seen @ q
            e = np.exp(logits - logits.max())
            w = float(np.float32(1 / e.sum()))
            if 1 - w <= 1e-6:  # the program's weights are floats, whose 1 - w is rounding there
                continue
            longest = np.linalg.norm(seen, axis=1).max() * head.layer.scaling * np.linalg.norm(q)
            least = (math.log(j / (j + 1)) - math.log(1 - w)) / (2 * max(1.0, longest**2)) - 1
            if least > -1:
                rows.append((_angle(least), _angle(cosine(seen[logits.argmax()], q))))
    if not rows:
        return {"bound": None}
    bound, angle = min(rows, key=lambda row: row[0] / row[1])
    beyond = float(np.mean([got > most for most, got in rows]))
    return {
        "bound": bound,
        "measured": angle,
        "worst": angle,
        "measurements": len(rows),
        "share_beyond": beyond,
        "may_fail": 0,
    }


LOOPS: dict[tuple[str, str], Callable[[Head], Values]] = {
    ("BalanceKV Thm 3.4", "batch t"): batch,
    ("BalanceKV Thm 3.4", "levels T"): levels,
    ("BalanceKV Algorithm 2", "c"): walk_constant,
    ("BalanceKV Thm 3.2", "memory of any algorithm"): least_memory,
    ("BalanceKV Thm 3.3", "discrepancy at a query"): discrepancy,
    ("BalanceKV (2)", "error, Frobenius"): balance_error,
    ("SubGen Thm 1", "slots t"): cluster_slots,
    ("SubGen Thm 1", "reservoir s"): reservoir,
    ("SubGen (3)", "error, operator norm"): subgen_error,
    ("Compactor Thm 1", "sampled rows k"): sampled_rows,
    ("Compactor Thm 1", "distortion of drawn rows"): drawn_rows,
    ("Compactor Thm 2", "sketch k"): sketch_columns,
    ("Compactor Thm 2", "sketched over exact leverage"): sketched_ratio,
    ("KeyDiff Thm 3.2", "cos(k̄, k*)"): mean_cosine,
    ("KeyDiff Thm C.1", "angle of k* and q"): weight_angle,
}


@functools.cache
def expected(key: tuple[str, str], head: Head) -> Values:
    """What must stand in a row."""
    return LOOPS[key](head)
