"""Tables of the case study from the trials that retrieval.py wrote.

tables.py summary FOLDER TRIALS.csv...  answers.csv (one row a cell) and calibration.csv (triples of running text)
tables.py print FOLDER                  the tables of resources/manual/case_study.md from these and heads.csv
"""

from __future__ import annotations

import argparse
import collections
import csv
import dataclasses
import math
import os
import pathlib
import statistics
import sys
from collections.abc import Callable, Iterable

Row = dict[str, str]
CELL = ("task", "question_seen", "policy", "retention", "tokens", "depth")
RESULTS = ("prompts", "kept", "right", "nll", "nll_full", "rise_sd")
TRIPLE = ("policy", "context", "retention", "nll_context", "nll_full", "nll_compressed")
TEXTS = ("story", "copy")
NAMES = {  # of policies whose parameters the text names once
    "exact": "full cache",
    "balancekv:longbench,sink=4,recent=16": "balancekv",
    "balancekv:needle_paper,sink=4,recent=16": "balancekv, needles",
    "subgen:searched,value_slots=16": "subgen",
}
Z = 1.959964  # of a two-sided interval of 95 %


def read(path: pathlib.Path) -> list[Row]:
    """Rows behind lines that begin with #."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def write(path: pathlib.Path, origin: str, fields: Iterable[str], rows: Iterable[Row]) -> None:
    """CSV with a line about its origin, atomically."""
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("w", newline="", encoding="utf-8") as file:
        file.write(f"{origin}\n")
        writer = csv.DictWriter(file, list(fields), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    os.replace(temporary, path)


def once(trials: list[Row]) -> list[Row]:
    """The first row of every trial: files of one prompt each hold its full cache."""
    found: dict[tuple[str, ...], Row] = {}
    for row in trials:
        found.setdefault(tuple(row[name] for name in (*CELL, "prompt")), row)
    return list(found.values())


def summary(trials: list[Row]) -> list[Row]:
    """One row a cell, in the order of the trials: prompts, right answers, mean losses, deviation of the rise."""
    cells: dict[tuple[str, ...], list[Row]] = collections.defaultdict(list)
    for trial in trials:
        cells[tuple(trial[name] for name in CELL)].append(trial)
    return [dict(zip(CELL, cell, strict=True)) | _results(rows) for cell, rows in cells.items()]


def _results(rows: list[Row]) -> Row:
    nll, full = ([float(row[name]) for row in rows] for name in ("nll", "nll_full"))
    rises = [pruned - whole for pruned, whole in zip(nll, full, strict=True)]
    deviation = statistics.stdev(rises) if len(rises) > 1 else 0.0
    return {
        "prompts": str(len(rows)),
        "kept": f"{statistics.fmean(float(row['kept']) for row in rows):.4f}",
        "right": str(sum(int(row["right"]) for row in rows)),
        "nll": f"{statistics.fmean(nll):.4f}",
        "nll_full": f"{statistics.fmean(full):.4f}",
        "rise_sd": f"{deviation:.4f}",
    }


def triples(trials: list[Row]) -> list[Row]:
    """Calibration triples of the tasks whose answer is text, as `kvscope calibrate --triples` reads them.

    Of every policy in its first variant, as the table names none.
    """
    found = []
    for trial in trials:
        if trial["task"] in TEXTS and trial["policy"] != "exact" and ":" not in trial["policy"]:
            context = f"{trial['task']}-{trial['prompt']}"
            numbers = (trial["kept"], trial["nll_context"], trial["nll_full"], trial["nll"])
            found.append(dict(zip(TRIPLE, (trial["policy"], context, *numbers), strict=True)))
    return found


def wilson(right: int, count: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson's score interval)."""
    share, z2 = right / count, Z * Z
    middle = (share + z2 / (2 * count)) / (1 + z2 / count)
    half = Z / (1 + z2 / count) * math.sqrt(share * (1 - share) / count + z2 / (4 * count * count))
    return max(0.0, middle - half), min(1.0, middle + half)


def student(freedom: int) -> float:
    """The 97.5 % quantile of Student's t, by Cornish and Fisher: within 0.2 % from 5 degrees of freedom on."""
    terms = (Z, (Z**3 + Z) / 4, (5 * Z**5 + 16 * Z**3 + 3 * Z) / 96, (3 * Z**7 + 19 * Z**5 + 17 * Z**3 - 15 * Z) / 384)
    return sum((term / float(freedom) ** power for power, term in enumerate(terms)), 0.0)


@dataclasses.dataclass(frozen=True)
class Pooled:
    """All prompts of some cells: how many, how many right, by how much the loss rises, in the mean, and deviation."""

    count: int
    right: int
    rise: float
    deviation: float


def pooled(cells: list[Row]) -> Pooled:
    """Sums of cells, as if their prompts had been one cell."""
    counts = [int(cell["prompts"]) for cell in cells]
    rises = [float(cell["nll"]) - float(cell["nll_full"]) for cell in cells]
    total = sum(counts)
    mean = sum(n * rise for n, rise in zip(counts, rises, strict=True)) / total
    within = sum((n - 1) * float(cell["rise_sd"]) ** 2 for n, cell in zip(counts, cells, strict=True))
    between = sum(n * (rise - mean) ** 2 for n, rise in zip(counts, rises, strict=True))
    return Pooled(
        total, sum(int(cell["right"]) for cell in cells), mean, math.sqrt((within + between) / max(total - 1, 1))
    )


def accuracy(cells: list[Row]) -> str:
    """`0.86 (0.71–0.94)`: share of right answers with its interval."""
    answers = pooled(cells)
    low, high = wilson(answers.right, answers.count)
    return f"{answers.right / answers.count:.2f} ({low:.2f}–{high:.2f})"


def rise(cells: list[Row]) -> str:
    """`1.58 ± 0.31`: how many nats a token the loss is above the full cache's, with the half width of its interval."""
    losses = pooled(cells)
    half = student(losses.count - 1) * losses.deviation / math.sqrt(losses.count) if losses.count > 1 else math.inf
    return f"{round(losses.rise, 2) + 0.0:.2f} ± {half:.2f}"  # + 0.0: never -0.00


def share(cells: list[Row]) -> str:
    """`5/6`: right answers."""
    return f"{pooled(cells).right}/{pooled(cells).count}"


Columns = dict[str, dict[str, str]]  # what a column's head says, and what its cells have in common
Show = Callable[[list[Row]], str]


def table(cells: list[Row], first: str, columns: Columns, show: Show) -> list[str]:
    """Markdown: a line for each policy, the full cache first; cells pooled over all that a column leaves open."""
    policies = list(dict.fromkeys(cell["policy"] for cell in cells))
    lines = [f"| {first} | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    for policy in policies:
        own = [cell for cell in cells if cell["policy"] == policy]
        parts = [[cell for cell in own if _fits(cell, wanted)] for wanted in columns.values()]
        shown = [show(part) if part else "" for part in parts]
        lines.append(f"| {NAMES.get(policy, policy)} | " + " | ".join(shown) + " |")
    return lines


def _fits(cell: Row, wanted: dict[str, str]) -> bool:
    return all(
        cell[name] == value or (name, cell["policy"]) == ("retention", "exact") for name, value in wanted.items()
    )


def tables(folder: pathlib.Path) -> dict[str, list[str]]:
    """The tables of the manual by name."""
    answers = read(folder / "answers.csv")

    def of(task: str, **wanted: str) -> list[Row]:
        return [cell for cell in answers if _fits(cell, {"task": task} | wanted)]

    tried = [cell for cell in of("needle", tokens="1024") if "," in cell["policy"] and cell["policy"] not in NAMES]
    needle = [cell for cell in of("needle", question_seen="0") if cell not in tried]
    seen = [cell for cell in of("needle", tokens="1024") if cell not in tried]
    lines, story = of("lines"), of("story")
    lengths = {
        f"{n}, {percent(r)}": {"tokens": n, "retention": r} for n in _values(lines, "tokens") for r in ("0.25", "0.5")
    }
    questions = {
        f"{percent(r)}, {word}": {"retention": r, "question_seen": number}
        for r in ("0.1", "0.25")
        for number, word in (("0", "unseen"), ("1", "seen"))
    }
    places = {
        f"{n}, {d}": {"tokens": n, "depth": d, "retention": "0.1"}
        for n in _values(needle, "tokens")
        for d in _values(needle, "depth")
    }
    return {
        "needle accuracy": table(needle, "kept", _retentions(needle), accuracy),
        "needle loss": table(needle, "kept", _retentions(needle), rise),
        "needle by place": table(needle, "tokens, depth", places, share),
        "question": table(seen, "kept, question", questions, accuracy),
        "tried": table(tried, "kept, question", questions, accuracy),
        "lines": table(lines, "tokens, kept", lengths, accuracy),
        "story": table(story, "kept", _retentions(story), rise),
        "heads": _plain(read(folder / "heads.csv")),
    }


def _plain(rows: list[Row]) -> list[str]:
    lines = [f"| digits evicted in | {' | '.join(row['heads'] for row in rows)} |", "|---|" + "---|" * len(rows)]
    lines.append("| right | " + " | ".join(f"{row['right']}/{row['prompts']}" for row in rows) + " |")
    lines.append("| loss | " + " | ".join(f"{float(row['nll']):.2f}" for row in rows) + " |")
    return lines


def percent(fraction: str) -> str:
    """`25 %` of 0.25."""
    return f"{100 * float(fraction):g} %"


def _values(cells: list[Row], name: str) -> list[str]:
    return list(dict.fromkeys(cell[name] for cell in cells if cell["policy"] != "exact"))


def _retentions(cells: list[Row]) -> Columns:
    return {percent(r): {"retention": r} for r in _values(cells, "retention")}


def main(argv: list[str] | None = None) -> int:
    """Exit code 0."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = p.add_subparsers(required=True, dest="part")
    first = parts.add_parser("summary")
    first.add_argument("folder", type=pathlib.Path)
    first.add_argument("trials", type=pathlib.Path, nargs="+")
    first.add_argument("--prompts", type=int, default=10**9, help="leave out prompts from this number on")
    parts.add_parser("print").add_argument("folder", type=pathlib.Path)
    arguments = p.parse_args(argv)
    if arguments.part == "print":
        for name, lines in tables(arguments.folder).items():
            print(f"{name}\n\n" + "\n".join(lines) + "\n")
        return 0
    trials = once([row for path in arguments.trials for row in read(path) if int(row["prompt"]) < arguments.prompts])
    origin = arguments.trials[0].read_text(encoding="utf-8").split("\n", 1)[0]
    write(arguments.folder / "answers.csv", origin, (*CELL, *RESULTS), summary(trials))
    write(arguments.folder / "calibration.csv", origin, TRIPLE, triples(trials))
    return 0


if __name__ == "__main__":
    sys.exit(main())
