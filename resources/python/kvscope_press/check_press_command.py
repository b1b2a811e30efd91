"""`kvscope-check-press MODEL --press MODULE:CLASS --policy ID`: is a port of a policy right, and if not, why?"""

from __future__ import annotations

import argparse
import pathlib
import sys

from kvscope_capture.command import DTYPES
from kvscope_capture.console import Parser, run_command
from kvscope_capture.version import add_version

TOKENS = 301  # odd: kernels have blocks of even length


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = Parser(
        prog="kvscope-check-press",
        description=__doc__,
        epilog="Exit code: 0 equal but for ties and float rounding of scores, 1 different (also in the number of "
        "tokens alone), 2 bad input.",
    )
    add_version(p)
    p.add_argument("model", help="a folder or a name that transformers can load; a small one will do")
    p.add_argument("--press", required=True, help="MODULE:CLASS[,PARAMETER=VALUE]... of your press")
    p.add_argument("--policy", required=True, help="policy and variant of KVScope, for example snapkv:kvpress")
    p.add_argument("--text", type=pathlib.Path, help="the prompt, a UTF-8 file (default: random tokens)")
    p.add_argument("--tokens", type=int, default=TOKENS, help=f"of the prompt, at most (default: {TOKENS})")
    p.add_argument("--eager", action="store_true", help="hand the press attention weights (eager attention)")
    p.add_argument("--revision", help="branch, tag or commit of the model")
    p.add_argument("--compute-dtype", choices=DTYPES, default="fp32", help="type the model runs in (default: fp32)")
    p.add_argument("--device", default="cpu", help="torch device (default: cpu)")
    p.add_argument("--no-battery", action="store_true", help="leave the table of published bugs out")
    return p


def main(argv: list[str] | None = None) -> int:
    """Exit code 0 (equal), 1 (different), 2 with one sentence on stderr, or 130 and 143 when it was stopped."""
    arguments = parser().parse_args(argv)

    def check() -> int:
        from kvscope_press.check_press import run

        return run(arguments)

    return run_command("kvscope-check-press", check)


if __name__ == "__main__":
    sys.exit(main())
