"""`kvscope-parquet TABLE.json --out TABLE.parquet`: a table that kvscope wrote (sweep, measure, theory) as Parquet.

A column has the type of its numbers; one with texts among them (a budget of "512t" beside 0.25) becomes text, as does
one of whole numbers that have no common type of 64 bits.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from typing import Any

from kvscope_capture.console import check_output, run_command
from kvscope_capture.errors import CaptureError
from kvscope_capture.locking import replaced
from kvscope_capture.version import add_version

NOT_FINITE = ("inf", "-inf", "nan")  # JSON has no numbers for them
Column = list[Any]


def read_table(path: pathlib.Path) -> dict[str, Any]:
    """The JSON object of a table; `-`: from standard input. Errors (CaptureError): unreadable, or without rows."""
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
        table = json.loads(text)
    except (OSError, ValueError) as error:
        raise CaptureError(
            f"cannot be read ({error})", str(path), "Write it with kvscope sweep --out FILE.json"
        ) from error
    rows = table.get("rows") if isinstance(table, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise CaptureError("holds no rows", str(path), "Write it with kvscope sweep, measure or theory --out FILE.json")
    return dict(table)


def one_type(column: Column) -> Column:
    """The column with values of one type: integers, floats, truth values or texts, and None."""
    kinds = {type(value) for value in column if value is not None and value not in NOT_FINITE}
    whole = kinds == {int} and not any(isinstance(value, str) for value in column)
    if whole and integer_type(column):
        return column
    if not whole and kinds <= {int, float} and (kinds or any(value in NOT_FINITE for value in column)):
        return [None if value is None else float(value) for value in column]
    if len(kinds) == 1 and not kinds & {int, str}:
        return column
    return [value if value is None or isinstance(value, str) else json.dumps(value) for value in column]


def integer_type(column: Column) -> str | None:
    """int64, or uint64 (seeds), which holds all whole numbers of the column; None: there are none, or neither does."""
    numbers = [value for value in column if type(value) is int]
    low, high = min(numbers, default=0), max(numbers, default=0)
    if low >= -(2**63) and high < 2**63:
        return "int64" if numbers else None
    return "uint64" if low >= 0 and high < 2**64 else None


def write_parquet(table: dict[str, Any], out: pathlib.Path) -> None:
    """Whole or not at all; format, version and command stand in the metadata under `kvscope`. Errors: CaptureError."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise CaptureError("needs the package pyarrow", "kvscope-parquet", "pip install pyarrow") from error
    rows = table["rows"]
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: one_type([row.get(name) for row in rows]) for name in names}
    arrays = {name: pyarrow.array(column, integer_type(column)) for name, column in columns.items()}
    origin = json.dumps({key: value for key, value in table.items() if key != "rows"})
    arrow = pyarrow.table(arrays).replace_schema_metadata({"kvscope": origin})
    with replaced(out) as temporary:
        parquet.write_table(arrow, temporary)


def write_json(table: dict[str, Any], out: pathlib.Path) -> None:
    """As the program writes it: a row a line, whole or not at all. Errors: CaptureError."""
    head = json.dumps({key: value for key, value in table.items() if key != "rows"})
    rows = ",\n".join(json.dumps(row, separators=(",", ":"), ensure_ascii=False) for row in table["rows"])
    text = f'{head[:-1]}, "rows": [\n{rows}\n]}}\n'
    with replaced(out) as temporary:
        temporary.write_text(text, encoding="utf-8")


def main(argv: list[str] | None = None) -> int:
    """Exit code 0, or 2 with one sentence on stderr."""
    parser = argparse.ArgumentParser(prog="kvscope-parquet", description=__doc__)
    add_version(parser)
    parser.add_argument("table", type=pathlib.Path, help="FILE.json, or - for standard input")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="FILE.parquet")
    arguments = parser.parse_args(argv)

    def run() -> None:
        check_output(arguments.out, reads=[arguments.table])
        write_parquet(read_table(arguments.table), arguments.out)

    return run_command(parser.prog, run)


if __name__ == "__main__":
    sys.exit(main())
