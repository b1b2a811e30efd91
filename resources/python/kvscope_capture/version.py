"""The version of KVScope: its one source. CMakeLists.txt and pyproject.toml read it from this file."""

from __future__ import annotations

import argparse

VERSION = "0.1.0"


def add_version(parser: argparse.ArgumentParser) -> None:
    """`--version` prints the command's name and the version."""
    parser.add_argument("--version", action="version", version=f"{parser.prog} {VERSION}")
