"""Each reproduction a second time: the points of its table from the capture, by the text of its paper.

Kept lists that depend on random numbers are those that `evict` writes for the same seed; the others are computed here
(`selection.py`) and compared with them by `test_lists.py`.
"""

import dataclasses
import re
from collections.abc import Callable, Iterable

import numpy as np
from averages import Samples
from capture import sample
from measures import (
    cos_distinct,
    cos_means,
    cosine_sum,
    cosine_sum_min,
    drawn,
    log_det,
    mean_norm,
    overlap,
    per_query,
    score_correlation,
    shifted_key_norm,
    top_rows,
)
from program import Table, kept, steps
from selection import parse

Row = dict[str, str]


def named(spec: str) -> str:
    """ID or ID:VARIANT of a policy."""
    return spec.split(",")[0]


MEASURES = {
    "output_error": per_query("output_error"),
    "eps_f": per_query("eps_f"),
    "eps_op": per_query("eps_op"),
    "numerator_error": per_query("numerator_error"),
    "log_det": log_det,
    "cos_means": cos_means,
    "cos_distinct": cos_distinct,
    "key_norm": mean_norm("k"),
    "query_norm": mean_norm("q"),
    "value_norm": mean_norm("v"),
    "shifted_key_norm": shifted_key_norm,
    "cosine_sum": cosine_sum,
    "cosine_sum_min": cosine_sum_min,
}
DRAW_LOTS = {"balancekv", "balancekv_stream", "uniform", "subgen", "compactor", "leverage"}


@dataclasses.dataclass(frozen=True)
class Sweep:
    """A table made of runs: which, and what the paper says about how they are run and averaged."""

    policies: tuple[str, ...]  # ID or ID:VARIANT that the table needs, as the paper ran them
    axis: str = "retention"  # retention, layer, parameter, tokens or memory
    cut: str = "default"
    seeds: int = 1
    varied: str = ""
    values: tuple[str, ...] = ()
    budgets: tuple[str, ...] = ("0.25",)
    reference: str = ""  # the value of the varied parameter that overlap compares with
    exact_first: int = 0  # tokens that every policy keeps; budgets are shares of the others before the cut

    def spec(self, row: Row, table: Table) -> str:
        """The policy of a row with its budget, as typed."""
        specs = [spec for spec in table.policies() if parse(spec).policy == row["policy"]]
        if len(specs) > 1:
            specs = [spec for spec in specs if row["series"] == spec or row["series"].split()[0] == named(spec)]
        (spec,) = specs
        if self.axis == "memory":
            return f"{spec},{row['x_text']}" if "=" in row["x_text"] else f"{spec}@{row['x_text']}"
        if self.varied:
            spec += f",{self.varied}={self.value(row)}"
        budget = row["x_text"] if self.axis == "retention" else self.budgets[0]
        if self.exact_first:
            others = self.cut_token - self.exact_first
            budget = f"{self.exact_first + max(1, int(float(budget) * others))}t"
        return spec if spec.startswith("exact") else f"{spec}@{budget}"

    def value(self, row: Row) -> str:
        """The value of the varied parameter in a row."""
        if self.axis == "parameter":
            return row["x_text"]
        found = re.search(rf"\b{self.varied}=(\S+)", row["series"])
        assert found
        return found.group(1)

    @property
    def cut_token(self) -> int:
        """Tokens that policies see."""
        return sample().cut(self.cut)

    def seeds_of(self, spec: str) -> range:
        """The seeds of a policy: one where it draws nothing."""
        return range(self.seeds if parse(spec).policy in DRAW_LOTS else 1)

    def runs(self, table: Table) -> Iterable[tuple[str, str, int]]:
        """Everything that has to be selected."""
        for row in table.rows:
            spec = self.spec(row, table)
            for seed in self.seeds_of(spec):
                yield spec, self.cut, seed
                if self.reference:
                    yield self.referred(spec), self.cut, seed

    def referred(self, spec: str) -> str:
        """The same run with the value of reference."""
        return re.sub(rf"\b{self.varied}=[^,@]+", f"{self.varied}={self.reference}", spec)

    def layers_of(self, row: Row) -> list[int]:
        """The layers that a row is about."""
        return [int(row["x_text"])] if self.axis == "layer" else [layer.number for layer in sample().layers]

    def samples(self, row: Row, table: Table) -> Samples:
        """All values of a row, and its x."""
        spec, layers = self.spec(row, table), self.layers_of(row)
        values = [[self.heads(row["measure"], layer, spec, seed) for seed in self.seeds_of(spec)] for layer in layers]
        return Samples(np.array(values), self.x(row, spec, layers))

    def heads(self, measure: str, number: int, spec: str, seed: int) -> np.ndarray:
        """One value per head."""
        layer, lists = sample().layers[number], kept(spec, self.cut, seed)[number]
        if measure == "overlap":
            return overlap(lists, kept(self.referred(spec), self.cut, seed)[number])
        if measure == "score_correlation":
            return score_correlation(layer, self.cut_token, parse(spec))
        if measure == "spectral_drawn":
            return drawn(layer, self.cut_token, steps(spec, self.cut, seed)[number]["draws"])
        if measure == "spectral_top":
            return top_rows(layer, self.cut_token, parse(spec).count(self.cut_token))
        return MEASURES[measure](layer, self.cut_token, lists)

    def vectors(self, row: Row) -> np.ndarray:
        """The norms of all vectors that a row is about (balancekv.txt 2868-2875)."""
        norms = []
        for number in self.layers_of(row):
            layer = sample().layers[number]
            rows = {"query_norm": layer.q, "value_norm": layer.v}.get(row["measure"], layer.k)[:, : self.cut_token]
            if row["measure"] == "shifted_key_norm":
                rows = rows - rows.mean(axis=1, keepdims=True)
            norms.append(np.linalg.norm(rows, axis=2).ravel())
        return np.concatenate(norms)

    def x(self, row: Row, spec: str, layers: list[int]) -> float:
        """Where the point stands."""
        if self.axis == "layer":
            return layers[0]
        if self.axis == "tokens":
            return sample().tokens
        if self.axis == "parameter":
            return self.values.index(row["x_text"])
        heads = [head for seed in self.seeds_of(spec) for layer in kept(spec, self.cut, seed) for head in layer]
        if self.axis == "memory":  # keys and values are of one width
            return float(np.mean([(head.stored_keys + head.stored_values) / 2 for head in heads]))
        if row["measure"].startswith("spectral"):  # rows that the theorem draws, or as many best ones
            return parse(spec).count(self.cut_token) / self.cut_token
        held = np.mean([len(head.tokens) - self.exact_first for head in heads])
        return float(held / (self.cut_token - self.exact_first))


@dataclasses.dataclass(frozen=True)
class Timed:
    """Times of this machine: only what was timed can be checked."""

    policies: tuple[str, ...]
    values: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Counted:
    """A table of the lengths of prompts: label of the series and text of the point to the value."""

    points: Callable[[], dict[tuple[str, str], float]]


def kept_shares() -> dict[tuple[str, str], float]:
    """Mean of min(1, N / L) at the paper's cache sizes (keydiff.txt 741 ff., Table 8)."""
    length = sample().prompt_tokens()
    return {("the paper's cache sizes", f"{size}K"): min(1.0, size * 1024 / length) for size in (2, 4, 6, 8)}


def lengths() -> dict[tuple[str, str], float]:
    """Prompts up to 2K, 4K, 6K and 8K tokens, and longer ones (keydiff.txt, Table 7)."""
    edges = [0, 2048, 4096, 6144, 8192]
    bins = {f"{low + 1} to {high}": (low, high) for low, high in zip(edges, edges[1:], strict=False)}
    length = sample().prompt_tokens()
    counts = {text: float(low < length <= high) for text, (low, high) in bins.items()}
    return {("the paper's edges", text): count for text, count in counts.items()} | {
        ("the paper's edges", "> 8192"): float(length > 8192)
    }


KEYDIFF_RUNS = ("keydiff", "snapkv:keydiff", "tova:keydiff", "streaming_llm", "h2o:keydiff")
RULER_BUDGETS = ("0.75", "0.5", "0.25", "0.1", "0.05")  # compactor.txt, Tables 2 to 4
THEOREM_BUDGETS = ("0.05", "0.1", "0.25", "0.5", "0.75")

# B.1: sinks and the last 256 tokens exact, 10 seeds (balancekv.txt 2763-2778).
FIG1 = {"cut": "last:256", "seeds": 10, "exact_first": 256}
LOOPS: dict[str, Sweep | Timed | Counted] = {
    "balancekv-fig1": Sweep(("balancekv", "uniform:reweighted"), budgets=("0.5", "0.25", "0.125", "0.0625"), **FIG1),
    "balancekv-fig3": Sweep(
        ("balancekv:notebook",), varied="block", values=("64", "128", "256"), budgets=("0.5", "0.25", "0.125"), **FIG1
    ),
    "balancekv-fig3-time": Timed(("balancekv:notebook",), values=("64", "128", "256")),
    # The baselines are MInference's (2849), whose sinks of 256 would fill a quarter of this prompt.
    "balancekv-table2": Timed(("snapkv:minference", "pyramidkv", "streaming_llm:minference", "balancekv:longbench")),
    "balancekv-table6": Sweep(
        ("balancekv:longbench", "subgen_kcenter"), budgets=("0.125", "0.25", "0.5", "0.75"), seeds=3
    ),
    "balancekv-table3": Sweep(("exact",), axis="tokens", cut="none"),
    # The guarantee (2) is the streaming algorithm's (balancekv.txt 425-442).
    "balancekv-eps": Sweep(("balancekv_stream",), axis="memory", varied="batch", seeds=3),
    "balancekv-memory": Sweep(
        ("balancekv_stream", "balancekv", "uniform:reweighted"),
        axis="memory",
        varied="batch",
        seeds=5,
    ),
    "keydiff-fig12": Sweep(KEYDIFF_RUNS, axis="layer"),
    "keydiff-fig14": Sweep(("exact",), axis="layer", cut="none"),
    "keydiff-fig15": Sweep(("exact",), axis="layer", cut="none"),
    "keydiff-blocks": Sweep(KEYDIFF_RUNS, axis="parameter", varied="prompt_block", values=("64", "128", "256", "512")),
    "keydiff-table13": Sweep(("keydiff",), axis="parameter", varied="window_share", values=("0", "0.1", "0.2", "0.5")),
    "keydiff-table14": Sweep(
        ("keydiff",),
        axis="parameter",
        varied="anchor",
        values=("normalised_mean", "pairwise", "median", "mean"),
        reference="normalised_mean",  # "the mean of all normalized keys" (keydiff.txt 838)
    ),
    "keydiff-table15": Sweep(
        ("keydiff",), axis="parameter", varied="metric", values=("cosine", "dot", "euclidean"), reference="cosine"
    ),
    "keydiff-table8": Counted(kept_shares),
    "keydiff-fig18": Counted(lengths),
    "keydiff-c2": Sweep(("keydiff", "snapkv"), budgets=THEOREM_BUDGETS),
    "keydiff-fig7": Timed(KEYDIFF_RUNS, values=("64", "128", "256")),
    "keydiff-decoding": Sweep(
        ("keydiff:sliding_window", "snapkv:keydiff"),  # a window of 20 % of the budget (keydiff.txt 608)
        axis="parameter",
        varied="decode_tokens",
        values=("0", "8", "32", "128"),
    ),
    "subgen-eps": Sweep(("subgen",), axis="memory", seeds=3),  # Theorem 1 is Algorithm 1's (subgen.txt 476-492)
    "compactor-fig3": Timed(("compactor", "snapkv", "h2o")),
    "compactor-thm1": Sweep(("leverage:sampling",), budgets=THEOREM_BUDGETS, seeds=3),
    "compactor-ranks": Sweep(("compactor", "snapkv", "keydiff", "key_norm"), axis="layer"),
    "compactor-table2": Sweep(
        ("compactor",),
        varied="lambda",
        values=("0.15", "0.2", "0.3", "0.35", "0.4"),
        reference="0.3",
        budgets=RULER_BUDGETS,
    ),
    "compactor-table2-parts": Sweep(("compactor", "leverage"), budgets=RULER_BUDGETS, seeds=3),
    "compactor-table3": Sweep(
        ("compactor",), varied="route", values=("svd", "qr", "gram"), reference="svd", budgets=RULER_BUDGETS
    ),
    "compactor-table4": Sweep(
        ("compactor",),
        varied="sketch",
        values=("gaussian", "srht", "none"),
        reference="none",
        budgets=RULER_BUDGETS,
        seeds=3,
    ),
}

# What the list sends elsewhere, and which loop of this folder computes what is drawn there.
ELSEWHERE = {
    "balancekv-theory": "test_theory.py",
    "balancekv-thm33": "test_theory.py, and the walks of test_steps.py",
    "balancekv-fig4": "nothing: needs a model",
    "balancekv-fig2": "test_steps.py: the tree",
    "keydiff-fig3": "test_figures.py, and the scores of test_steps.py",
    "keydiff-fig13": "test_theory.py",
    "keydiff-fig2": "test_figures.py",
    "keydiff-fig5": "test_figures.py: what is evicted; no file holds the projection",
    "keydiff-ttft": "nothing: needs a model",
    "subgen-table1": "nothing: needs a model",
    "subgen-fig1": "test_lists.py: the centres",
    "subgen-def1": "test_figures.py, and the clusters of test_steps.py",
    "compactor-thm2": "test_theory.py, test_figures.py",
    "compactor-fig2": "test_steps.py: attention of chunks",
    "compactor-appb": "test_steps.py: attention of chunks",
    "compactor-fig1": "test_steps.py: calibration",
    "compactor-fig6": "test_steps.py: calibration",
    "compactor-table1": "nothing: needs a model",
}
