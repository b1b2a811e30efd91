"""Tables of the case study from the trials that retrieval.py wrote.

tables.py summary FOLDER TRIALS.csv...  answers.csv (one row a cell) and calibration.csv (triples of running text)
tables.py print FOLDER                  the tables of resources/manual/case_study.md from these and heads.csv
"""

from __future__ import annotations

import argparse
import collections
import csv
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
    """The rows of a CSV file; lines that begin with # are skipped."""
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
    """The first row of every trial: several files on one prompt repeat the row of its full cache."""
    found: dict[tuple[str, ...], Row] = {}
    for row in trials:
        found.setdefault(tuple(row[name] for name in (*CELL, "prompt")), row)
    return list(found.values())


def summary(trials: list[Row]) -> list[Row]:
    """One row a cell, in the order of the trials: counts, mean losses, standard deviation of the rise."""
    cells: dict[tuple[str, ...], list[Row]] = collections.defaultdict(list)
    for trial in trials:
        cells[tuple(trial[name] for name in CELL)].append(trial)
    return [dict(zip(CELL, cell, strict=True)) | _results(rows) for cell, rows in cells.items()]


def _results(rows: list[Row]) -> Row:
    nll, full = ([float(row[name]) for row in rows] for name in ("nll", "nll_full"))
    rises = [pruned - whole for pruned, whole in zip(nll, full, strict=True)]
    deviation = f"{statistics.stdev(rises):.4f}" if len(rises) > 1 else ""
    return {
        "prompts": str(len(rows)),
        "kept": f"{statistics.fmean(float(row['kept']) for row in rows):.4f}",
        "right": str(sum(int(row["right"]) for row in rows)),
        "nll": f"{statistics.fmean(nll):.4f}",
        "nll_full": f"{statistics.fmean(full):.4f}",
        "rise_sd": deviation,
    }


def triples(trials: list[Row]) -> list[Row]:
    """Calibration triples of the tasks whose answer is text, as `kvscope calibrate --triples` reads them.

    Only of policies in their first variant, because the triples have no column for variants.
    """
    found = []
    for trial in trials:
        if trial["task"] in TEXTS and trial["policy"] != "exact" and ":" not in trial["policy"]:
            context = f"{trial['task']}-{trial['prompt']}"
            numbers = (trial["kept"], trial["nll_context"], trial["nll_full"], trial["nll"])
            found.append(dict(zip(TRIPLE, (trial["policy"], context, *numbers), strict=True)))
    return found


def student(freedom: float) -> float:
    """The 97.5 % quantile of Student's t, by Cornish and Fisher: within 0.2 % from 5 degrees of freedom on."""
    terms = (Z, (Z**3 + Z) / 4, (5 * Z**5 + 16 * Z**3 + 3 * Z) / 96, (3 * Z**7 + 19 * Z**5 + 17 * Z**3 - 15 * Z) / 384)
    return sum((term / freedom**power for power, term in enumerate(terms)), 0.0)


def right(cells: list[Row]) -> str:
    """`14, 18, 17`: right answers at every depth, from the beginning of the prompt to its end."""
    depths = sorted({float(cell["depth"]) for cell in cells})
    return ", ".join(str(sum(int(cell["right"]) for cell in cells if float(cell["depth"]) == d)) for d in depths)


def share(cells: list[Row]) -> str:
    """`5/6`: right answers."""
    return f"{sum(int(cell['right']) for cell in cells)}/{sum(int(cell['prompts']) for cell in cells)}"


def rise(cells: list[Row]) -> str:
    """`1.58 ± 0.31`: by how many nats a token the loss is above the full cache's, with its 95 % interval's half width.

    The mean over the prompts. Lengths and depths are chosen, not drawn: the interval comes from the prompts within
    each, with Welch and Satterthwaite's degrees of freedom; no interval where one of them has a single prompt.
    """
    counts = [int(cell["prompts"]) for cell in cells]
    total = sum(counts)
    rises = [float(cell["nll"]) - float(cell["nll_full"]) for cell in cells]
    mean = round(sum(n * part for n, part in zip(counts, rises, strict=True)) / total, 2) + 0.0  # never -0.00
    if min(counts) < 2:
        return f"{mean:.2f}"
    parts = [n * (float(cell["rise_sd"]) / total) ** 2 for n, cell in zip(counts, cells, strict=True)]
    spread = sum(part * part / (n - 1) for n, part in zip(counts, parts, strict=True))
    half = student(sum(parts) ** 2 / spread) * math.sqrt(sum(parts)) if spread > 0 else 0.0
    return f"{mean:.2f} ± {half:.2f}"


def mcnemar(only_first: int, only_second: int) -> float:
    """Exact two-sided p of McNemar's test: prompts that one of two policies answers and the other does not."""
    count = only_first + only_second
    tail = sum(math.comb(count, i) for i in range(min(only_first, only_second) + 1))
    return min(1.0, tail * 0.5 ** (count - 1))


def paired(first: list[Row], second: list[Row]) -> tuple[float, float]:
    """Smallest and largest McNemar p that the cells of two policies on the same prompts allow.

    A cell holds how many prompts each policy answers, not which: the answers agree as far as they can, or as little.
    """
    by_place = {(cell["tokens"], cell["depth"]): cell for cell in second}
    agree, differ = [0, 0], [0, 0]
    for cell in first:
        other = by_place[cell["tokens"], cell["depth"]]
        count, mine, theirs = int(cell["prompts"]), int(cell["right"]), int(other["right"])
        for found, both in ((agree, min(mine, theirs)), (differ, max(0, mine + theirs - count))):
            found[0] += mine - both
            found[1] += theirs - both
    ends = (mcnemar(*agree), mcnemar(*differ))
    return min(ends), max(ends)


def paired_lines(lines: list[Row], first: str = "keydiff", retention: str = "0.25") -> list[str]:
    """Markdown: right answers of every policy that has any, and the p of its difference from `first`."""
    of = {name: [c for c in lines if c["policy"] == name and c["retention"] == retention] for name in _policies(lines)}
    rows = [f"| kept {percent(retention)} | right | p against {first} |", "|---|---|---|"]
    for name, cells in of.items():
        if cells and share(cells)[0] != "0":
            low, high = paired(of[first], cells)
            between = f"{low:.3f}" if low == high else f"{low:.3f} to {high:.3f}"
            p = "" if name == first else "below 0.001" if high < 0.001 else between
            rows.append(f"| {NAMES.get(name, name)} | {share(cells)} | {p} |")
    return rows


def paired_story(triples_: list[Row], against: str = "streaming_llm") -> list[str]:
    """Markdown: by how much the loss lies above that of `against`, on the same passages; Student's 95 % interval."""
    found = {(row["policy"], row["context"], round(float(row["retention"]), 2)): row for row in triples_}
    kept = sorted({key[2] for key in found})
    lines = [f"| kept | {' | '.join(percent(str(r)) for r in kept)} |", "|---|" + "---|" * len(kept)]
    for policy in (name for name in _policies(triples_) if name != against):
        parts = []
        for r in kept:
            both = [(row, found.get((against, *key[1:]))) for key, row in found.items() if key[::2] == (policy, r)]
            rises = [
                float(mine["nll_compressed"]) - float(theirs["nll_compressed"])
                for mine, theirs in both
                if theirs and mine["context"].startswith("story")
            ]
            half = student(len(rises) - 1) * statistics.stdev(rises) / math.sqrt(len(rises))
            parts.append(f"{round(statistics.fmean(rises), 2) + 0.0:+.2f} ± {half:.2f}")
        lines.append(f"| {policy} | {' | '.join(parts)} |")
    return lines


def _policies(rows: list[Row]) -> list[str]:
    return list(dict.fromkeys(row["policy"] for row in rows))


Columns = dict[str, dict[str, str]]  # what a column's head says, and what its cells have in common
Show = Callable[[list[Row]], str]


def table(cells: list[Row], first: str, columns: Columns, show: Show) -> list[str]:
    """Markdown: a line for each policy, the full cache first; cells pooled over all that a column leaves open."""
    policies = _policies(cells)
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
        "needle accuracy": table(needle, "kept", _retentions(needle), right),
        "needle loss": table(needle, "kept", _retentions(needle), rise),
        "needle by place": table(needle, "tokens, depth", places, share),
        "question": table(seen, "kept, question", questions, right),
        "tried": table(tried, "kept, question", questions, right),
        "lines": table(lines, "tokens, kept", lengths, right),
        "lines paired": paired_lines(lines),
        "story": table(story, "kept", _retentions(story), rise),
        "story paired": paired_story(read(folder / "calibration.csv")),
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
