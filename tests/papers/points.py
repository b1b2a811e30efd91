"""Compares the table that `reproduce` writes with the loops of `reproductions.py`; returns what differs, in words."""

import functools
import re

from averages import Samples, exponent, half_interval
from compare import difference
from program import Table, fetch, reproduced
from reproductions import LOOPS, Counted, Sweep, Timed
from selection import parse

Row = dict[str, str]


@functools.cache
def computed(name: str) -> list[Samples]:
    """The points of a sweep in the order of the program's rows."""
    loop, table = LOOPS[name], reproduced(name)
    assert isinstance(loop, Sweep)
    fetch(list(loop.runs(table)))
    return [loop.samples(row, table) for row in table.rows]


def missing(loop: Sweep | Timed, table: Table) -> list[str]:
    """Policies that the paper ran and the table has not."""
    specs = [parse(spec) for spec in table.policies()]
    there = {spec.policy for spec in specs} | {f"{spec.policy}:{spec.variant}" for spec in specs}
    return [f"{policy} is not in the table" for policy in loop.policies if policy not in there]


def differences(loop: Sweep, table: Table, points: list[Samples]) -> list[str]:
    """Everything in a table of a sweep that is not what the loop computed."""
    found = missing(loop, table) + incomplete(loop, table)
    for row, point in zip(table.rows, points, strict=True):
        place = f"{row['series']} at {row['x_text']}"
        found += difference(f"mean of {place}", float(row["mean"]), point.mean)
        found += difference(f"x of {place}", float(row["x"]), point.x)
        found += spread(loop, row, point, place)
    return found + law(table, points)


def incomplete(loop: Sweep, table: Table) -> list[str]:
    """Budgets or values of a parameter that a series lacks."""
    found = []
    for series in {row["series"] for row in table.rows}:
        texts = [row["x_text"] for row in table.rows if row["series"] == series]
        wanted = {"retention": loop.budgets, "parameter": loop.values}.get(loop.axis, ())
        found += [f"{series} has no point at {text}" for text in wanted if text not in texts]
    return found


def spread(loop: Sweep, row: Row, point: Samples, place: str) -> list[str]:
    """Deviation, interval and count over what the row says they are over."""
    over = row["over"]
    if over == "vectors":
        values = loop.vectors(row)
    elif over:
        values = point.over(over)
    else:
        return [f"{place} has a spread over nothing"] if row["half_interval_95"] else []
    found = difference(f"count of {place}", int(row["samples"]), len(values))
    found += difference(f"deviation of {place}", float(row["deviation"]), float(values.std(ddof=1)), 1e-3)
    return found + difference(f"interval of {place}", float(row["half_interval_95"]), half_interval(values), 1e-3)


def law(table: Table, points: list[Samples]) -> list[str]:
    """Exponents of the fits that stand in the notes."""
    found = []
    for note in table.notes:
        fit = re.match(r"fit: \S+ of (.+) goes with memory to the power (\S+) ", note)
        if not fit:
            continue
        mine = [point for row, point in zip(table.rows, points, strict=True) if row["series"] == fit.group(1)]
        slope = exponent([point.x for point in mine], [point.mean for point in mine])
        found += difference(f"exponent of {fit.group(1)}", float(fit.group(2)), round(slope, 3), 2e-3)
    return found


def counted(loop: Counted, table: Table) -> list[str]:
    """Tables of lengths: every point that the paper's sizes give."""
    there = {(row["series"], row["x_text"]): float(row["mean"]) for row in table.rows}
    found = []
    for key, value in loop.points().items():
        found += difference(str(key), there[key], value) if key in there else [f"{key} is not in the table"]
    return found


def timed(loop: Timed, table: Table) -> list[str]:
    """Times of this machine: positive, of the policies and values that the paper timed."""
    found = missing(loop, table)
    for row in table.rows:
        if not float(row["mean"]) > 0:
            found.append(f"{row['series']} takes no time")
    text = " ".join(row["series"] + " " + row["x_text"] for row in table.rows)
    return found + [f"{value} was not timed" for value in loop.values if value not in re.split(r"[ =]", text)]
