"""`kvscope-scores MODEL CAPTURE --press NAME...`: scores of kvpress's presses, written beside a capture."""

from __future__ import annotations

import argparse
import pathlib
import shlex
import sys
from typing import Any

from kvscope_capture.command import DTYPES
from kvscope_capture.console import Parser, run_command
from kvscope_capture.errors import CaptureError
from kvscope_capture.version import add_version


class _ListPresses(argparse.Action):
    def __call__(self, parser: Any, *_: Any) -> None:
        from kvscope_press.presses import described_presses

        try:
            print(described_presses())
        except CaptureError as error:
            parser.exit(2, f"kvscope-scores: {error}\n")
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = Parser(prog="kvscope-scores", description=__doc__)
    add_version(p)
    p.add_argument("--list", action=_ListPresses, nargs=0, help="print the scorer presses of the installed kvpress")
    p.add_argument("model", help="the model that was captured: a folder or a name")
    p.add_argument("capture", type=pathlib.Path, help="the capture whose tokens are scored")
    p.add_argument(
        "--press",
        nargs="+",
        required=True,
        metavar="NAME[,PARAMETER=VALUE]...",
        help="presses of kvpress, for example SnapKVPress,window_size=32 KVzipPress",
    )
    p.add_argument("--cut", type=int, help="the press sees the tokens before it (default: KVScope's default cut)")
    p.add_argument("--revision", help="branch, tag or commit of the model")
    p.add_argument("--compute-dtype", choices=DTYPES, help="type the model runs in (default: the captured model's)")
    p.add_argument("--device", default="cpu", help="torch device (default: cpu)")
    p.add_argument("--seed", type=int, default=0, help="of presses that draw numbers (default: 0)")
    p.add_argument("--out", type=pathlib.Path, help="file of scores (default: CAPTURE with .scores.h5)")
    return p


def main(argv: list[str] | None = None) -> int:
    """Exit code 0, 2 with one sentence on stderr, or 130 and 143 when it was stopped."""
    arguments = parser().parse_args(argv)
    words = sys.argv[1:] if argv is None else argv

    def score() -> None:
        from kvscope_press.scores import run

        run(arguments, shlex.join(["kvscope-scores", *words]))

    return run_command("kvscope-scores", score)


if __name__ == "__main__":
    sys.exit(main())
