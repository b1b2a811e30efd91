"""Equal to rounding: the program's sums are rounded to float once, its files hold the shortest digits of doubles."""

import math


def same(stated: float, computed: float, relative: float = 2e-5, absolute: float = 2e-7) -> bool:
    """Whether two numbers differ by rounding only."""
    return math.isclose(stated, computed, rel_tol=relative, abs_tol=absolute)


def difference(place: str, stated: float, computed: float, relative: float = 2e-5) -> list[str]:
    """A sentence if they differ by more."""
    return [] if same(stated, computed, relative) else [f"{place}: the program says {stated}, the paper's {computed}"]
