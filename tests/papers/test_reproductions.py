import dataclasses

import pytest
from points import computed, counted, differences, timed
from program import is_elsewhere, listed, reproduced
from reproductions import ELSEWHERE, LOOPS, Counted, Sweep, Timed

SWEEPS = sorted(name for name, loop in LOOPS.items() if isinstance(loop, Sweep))
COUNTED = sorted(name for name, loop in LOOPS.items() if isinstance(loop, Counted))
TIMED = sorted(name for name, loop in LOOPS.items() if isinstance(loop, Timed))


def test_every_reproduction_has_its_loop() -> None:
    assert {name for name, line in listed().items() if not is_elsewhere(line)} == set(LOOPS)
    assert {name for name, line in listed().items() if is_elsewhere(line)} == set(ELSEWHERE)


@pytest.mark.parametrize("name", SWEEPS)
def test_points_are_the_papers(name: str) -> None:
    table = reproduced(name)
    assert differences(LOOPS[name], table, computed(name)) == []


@pytest.mark.parametrize("name", SWEEPS)
@pytest.mark.parametrize("column", ["mean", "x", "deviation", "half_interval_95"])
def test_a_wrong_number_is_seen(name: str, column: str) -> None:
    """Each number of each table, changed by a thousandth and one millionth, is found."""
    table, points = reproduced(name), computed(name)
    already = len(differences(LOOPS[name], table, points))
    for i, row in enumerate(table.rows):
        if row[column] in ("", "nan"):
            continue
        wrong = {**row, column: repr(float(row[column]) * 1.002 + 1e-6)}
        rows = [*table.rows[:i], wrong, *table.rows[i + 1 :]]
        assert len(differences(LOOPS[name], dataclasses.replace(table, rows=rows), points)) > already, row


@pytest.mark.parametrize("name", COUNTED)
def test_lengths_are_the_papers(name: str) -> None:
    table = reproduced(name)
    assert counted(LOOPS[name], table) == []
    for i in range(len(table.rows)):
        wrong = {**table.rows[i], "mean": "0.123"}
        changed = dataclasses.replace(table, rows=[*table.rows[:i], wrong, *table.rows[i + 1 :]])
        known = (wrong["series"], wrong["x_text"]) in LOOPS[name].points()
        assert bool(counted(LOOPS[name], changed)) == known


@pytest.mark.parametrize("name", TIMED)
def test_what_the_papers_timed_is_timed(name: str) -> None:
    table = reproduced(name)
    assert timed(LOOPS[name], table) == []
    assert timed(LOOPS[name], dataclasses.replace(table, rows=table.rows[:1], notes=table.notes[:1])) != []
