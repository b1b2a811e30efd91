"""`kvscope-evaluate CAPTURE MODEL --selections LIST.json ...`: what recorded selections cost the model."""

from __future__ import annotations

import argparse
import pathlib
import sys

from kvscope_capture.command import DTYPES
from kvscope_capture.console import Parser, run_command
from kvscope_capture.version import add_version


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = Parser(prog="kvscope-evaluate", description=__doc__)
    add_version(p)
    p.add_argument("capture", type=pathlib.Path, help="the capture that the lists were made from")
    p.add_argument("model", help="the model that was captured: a folder or a name")
    p.add_argument("--selections", type=pathlib.Path, nargs="+", required=True, help="lists of kvscope evict")
    p.add_argument("--cut", type=int, help="first token not pruned, for lists that do not say it")
    p.add_argument("--context-id", type=int, default=0, help="number of this context in the rows (default: 0)")
    p.add_argument("--revision", help="branch, tag or commit of the model")
    p.add_argument("--compute-dtype", choices=DTYPES, default="fp32", help="type the model runs in (default: fp32)")
    p.add_argument("--device", default="cpu", help="torch device (default: cpu)")
    p.add_argument("--generate", type=int, default=0, metavar="N", help="print N tokens behind the first question")
    p.add_argument("--replace", action="store_true", help="drop rows of another setting, and the row of another list")
    p.add_argument("--dry-run", action="store_true", help="leave the capture as it is")
    p.add_argument("--out", type=pathlib.Path, help="the table as CSV, with the share of answer tokens that are right")
    return p


def main(argv: list[str] | None = None) -> int:
    """Exit code 0, 2 with one sentence on stderr, or 130 and 143 when it was stopped."""
    arguments = parser().parse_args(argv)
    kept: list[str] = []

    def evaluate() -> None:
        from kvscope_press.evaluating import run

        run(arguments, kept)

    return run_command("kvscope-evaluate", evaluate, lambda: "".join(kept))


if __name__ == "__main__":
    sys.exit(main())
