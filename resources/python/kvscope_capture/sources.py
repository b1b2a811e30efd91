"""Texts that become prompts: files, rows of .jsonl and .parquet files, rows of Hugging Face data sets."""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

from kvscope_capture.errors import CaptureError

TEXT_FIELDS = ("text", "content", "context", "prompt", "document")
Row = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Source:
    """The texts of one prompt; `name` stands for it in file names and messages."""

    name: str
    text: str
    question: str
    answer: str


def parse_numbers(text: str, option: str, what: str) -> tuple[int, ...]:
    """`0,2-3` as (0, 2, 3). Errors (CaptureError): anything else; `what` names the numbers there."""
    numbers: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        ends = (first, last if dash else first)
        if not all(end.isascii() and end.isdecimal() for end in ends) or int(ends[1]) < int(ends[0]):
            raise CaptureError(f"{text!r} is no list of {what}", option, "Write for example 0,2-3")
        numbers.update(range(int(ends[0]), int(ends[1]) + 1))
    return tuple(sorted(numbers))


def read_sources(arguments: argparse.Namespace) -> list[Source]:
    """One for each file or row. Errors: unreadable file, unknown row or column, `datasets` not installed."""
    if arguments.text is not None:
        return [Source(p.stem, _text_of(p), arguments.question, arguments.answer) for p in arguments.text]
    name, colon, rows = arguments.dataset.rpartition(":")
    if not colon or not name:
        raise CaptureError(f"{arguments.dataset!r} is not NAME:ROWS", "--dataset", "Write for example texts.jsonl:0-9")
    numbers = parse_numbers(rows, "--dataset", "rows")
    readers = {".jsonl": _jsonl_rows, ".parquet": _parquet_rows}
    reader = readers.get(pathlib.Path(name).suffix)
    found = reader(name, numbers) if reader else _dataset_rows(name, arguments.subset, arguments.split, numbers)
    fields = [arguments.field] if arguments.field else TEXT_FIELDS
    return [
        Source(
            str(number),
            _column(row, fields, "--field", f"{name}: row {number}"),
            _column(row, [arguments.question_field], "--question-field", f"{name}: row {number}")
            if arguments.question_field
            else arguments.question,
            _column(row, [arguments.answer_field], "--answer-field", f"{name}: row {number}")
            if arguments.answer_field
            else arguments.answer,
        )
        for number, row in zip(numbers, found, strict=True)
    ]


def _text_of(path: pathlib.Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")  # drops a byte-order mark
    except (OSError, UnicodeDecodeError) as error:
        raise CaptureError(f"cannot be read ({error})", str(path), "Name a UTF-8 text file") from error


def _column(row: Row, fields: Sequence[str], option: str, place: str) -> str:
    """The first of `fields` that is a text, or the first text of a list of them (answers of LongBench)."""
    for field in fields:
        value = row.get(field)
        if isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, str):
            return value
    raise CaptureError(f"there is no text in column {', '.join(fields)}", place, f"Choose {option} of {', '.join(row)}")


def _jsonl_rows(path: str, numbers: Sequence[int]) -> Iterator[Row]:
    lines = _text_of(pathlib.Path(path)).rstrip("\n").split("\n")  # a JSON text may hold other line separators
    _check_rows(path, numbers, len(lines))
    for number in numbers:
        try:
            row: Row = json.loads(lines[number])
        except json.JSONDecodeError as error:
            raise CaptureError(
                f"is no JSON ({error})", f"{path}: row {number}", "Write one object in a line"
            ) from error
        if not isinstance(row, dict):
            raise CaptureError("is no JSON object", f"{path}: row {number}", "Write one object in a line")
        yield row


def _parquet_rows(path: str, numbers: Sequence[int]) -> Iterator[Row]:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise CaptureError("needs the package pyarrow", path, "pip install pyarrow") from error
    try:
        table = pyarrow.parquet.read_table(path)
    except (OSError, ValueError) as error:
        raise CaptureError(f"cannot be read ({_first_line(error)})", path, "Name a .parquet file") from error
    _check_rows(path, numbers, table.num_rows)
    yield from table.take(list(numbers)).to_pylist()


def _dataset_rows(name: str, subset: str | None, split: str, numbers: Sequence[int]) -> Iterator[Row]:
    try:
        import datasets
    except ImportError as error:
        raise CaptureError(
            "needs the package datasets", "--dataset", "pip install datasets, or name a .jsonl or .parquet file"
        ) from error
    try:
        table = datasets.load_dataset(name, subset, split=split)
    except Exception as error:  # whatever the data set's own reader raises
        raise CaptureError(
            f"cannot be read ({_first_line(error)})", name, "Check the name, --subset and --split"
        ) from error
    _check_rows(name, numbers, len(table))
    for number in numbers:
        yield table[number]


def _check_rows(name: str, numbers: Sequence[int], there: int) -> None:
    if numbers[-1] >= there:
        raise CaptureError(f"has no row {numbers[-1]}", name, f"Name rows 0 to {there - 1}")


def _first_line(error: Exception) -> str:
    """The first two: the first line of `datasets` does not say which configurations there are."""
    return " ".join(str(error).splitlines()[:2]) or type(error).__name__
