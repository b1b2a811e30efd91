"""The commands of the wheel: they start the tools behind the extras, or say which extra is missing."""

from __future__ import annotations

import importlib
import pathlib
import sys

COMMANDS = {
    "kvscope-capture": ("kvscope_capture.command", "capture"),
    "kvscope-check-press": ("kvscope_press.check_press_command", "press"),
    "kvscope-describe": ("kvscope_capture.describe_command", "capture"),
    "kvscope-evaluate": ("kvscope_press.command", "press"),
    "kvscope-parquet": ("kvscope_capture.parquet", "capture"),
    "kvscope-scores": ("kvscope_press.scores_command", "press"),
    "kvscope-sweep": ("kvscope_sweep.command", "cluster"),
}


def main() -> int | None:
    """Runs the command that this process was started as."""
    command = pathlib.Path(sys.argv[0]).name
    module, extra = COMMANDS[command]
    try:
        result: int | None = importlib.import_module(module).main()  # torch is imported when it is needed
        return result
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.startswith("kvscope"):
            raise
        remedy = f"Install it with pip install 'kvscope[{extra}]'"
        print(f"{command}: the package {missing.name} is missing. {remedy}", file=sys.stderr)
        return 2
