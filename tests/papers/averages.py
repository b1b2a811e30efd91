"""Means and intervals of a point: seeds are averaged in each layer before layers are."""

import dataclasses
import functools
import math

import numpy as np


@dataclasses.dataclass(frozen=True)
class Samples:
    """The values of one point [layers, seeds, heads], and where it stands on the axis."""

    values: np.ndarray
    x: float

    def over(self, what: str) -> np.ndarray:
        """The values that an interval over layers, seeds or heads is about: everything else is averaged."""
        if what == "heads":
            return self.values.mean(axis=1).ravel()
        return self.values.mean(axis={"layers": (1, 2), "seeds": (0, 2)}[what])

    @property
    def mean(self) -> float:
        """The mean over heads, then seeds, then layers."""
        return float(self.values.mean(axis=2).mean(axis=1).mean())


@functools.cache
def student(degrees: int) -> float:
    """The number that |t| exceeds with probability 5 %: bisection of the integral of Student's density."""
    scale = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)) / math.sqrt(degrees * math.pi)

    def inside(t: float) -> float:  # Simpson's rule on [0, t]
        x, step = np.linspace(0, t, 20001, retstep=True)
        y = scale * (1 + x**2 / degrees) ** (-(degrees + 1) / 2)
        return float(2 * step / 3 * (y[0] + y[-1] + 4 * y[1::2].sum() + 2 * y[2:-1:2].sum()))

    low, high = 1.9, 13.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if inside(middle) < 0.95 else (low, middle)
    return low


def half_interval(values: np.ndarray) -> float:
    """Half the 95 % interval of the mean."""
    return student(len(values) - 1) * float(values.std(ddof=1)) / math.sqrt(len(values))


def ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 1; equal values share the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[inverse]


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    """Rank correlation."""
    return float(np.corrcoef(ranks(a), ranks(b))[0, 1])


def exponent(x: list[float], y: list[float]) -> float:
    """The slope of log y against log x by least squares."""
    u, v = np.log(x) - np.log(x).mean(), np.log(y) - np.log(y).mean()
    return float(u @ v / (u @ u))
