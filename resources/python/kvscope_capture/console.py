"""What all commands share: one sentence for every error, progress on stderr, the end of a run that is stopped.

Imports nothing slow, so that `--help` answers at once.
"""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NoReturn

from kvscope_capture.errors import CaptureError


class Parser(argparse.ArgumentParser):
    """Says in one sentence what is wrong with the arguments."""

    def error(self, message: str) -> NoReturn:
        """Exit code 2."""
        self.exit(2, f"{self.prog}: {message}; {self.prog} --help explains the options\n")


class Stopped(KeyboardInterrupt):
    """SIGINT (Ctrl+C) or SIGTERM; `code` is the exit code that the shell expects."""

    def __init__(self, number: int) -> None:
        """`number` of the signal."""
        self.code = 128 + number
        super().__init__()


@contextlib.contextmanager
def _signals_raise() -> Iterator[None]:
    def stop(number: int, _frame: object) -> None:
        raise Stopped(number)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_command(prog: str, run: Callable[[], int | None], after_stop: Callable[[], str] = lambda: "") -> int:
    """Exit code: what `run` returns, or 0; 2 for a CaptureError, printed on stderr; 128 + signal for Ctrl+C or kill.

    `after_stop` says what a stopped run leaves behind; empty: nothing.
    """
    try:
        with _signals_raise():
            return run() or 0
    except CaptureError as error:
        clear()
        print(f"{prog}: {error}", file=sys.stderr)
        return 2
    except Stopped as stop:
        clear()
        print(f"{prog}: stopped. {after_stop() or 'Nothing was written'}.", file=sys.stderr)
        return stop.code


def show(step: str) -> None:
    """Progress on stderr; one line that is overwritten on a terminal."""
    terminal = sys.stderr.isatty()
    print(f"\r{step}\x1b[K" if terminal else step, end="" if terminal else "\n", file=sys.stderr, flush=True)


def clear() -> None:
    """Ends the progress; on a terminal its line is erased."""
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


class TimeLeft:
    """Extrapolates from the parts that are done; all parts count alike."""

    def __init__(self, parts: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Starts the clock."""
        self._parts, self._clock, self._begin = parts, clock, clock()

    def seconds(self, done: int) -> float | None:
        """How long the rest will take; None before the first part is done."""
        return (self._clock() - self._begin) / done * (self._parts - done) if done > 0 else None

    def after(self, done: int) -> str:
        """ ", 40 s left" when `done` parts are done; empty before the first is."""
        seconds = self.seconds(done)
        if seconds is None:
            return ""
        units = ((3600, "h"), (60, "min"))
        text = next((f"{seconds / size:.1f} {unit}" for size, unit in units if seconds >= 2 * size), f"{seconds:.0f} s")
        return f", {text} left"


def check_output(out: pathlib.Path, may_exist: bool = True, reads: Iterable[pathlib.Path] = ()) -> None:
    """Errors (CaptureError): `out` is a folder, or exists (not `may_exist`); its folder is missing or not writable.

    It must be none of the files that the command `reads` either, nor the config.json of a model's folder among them.
    """
    if any(path.exists() and out.resolve() in (path.resolve(), (path / "config.json").resolve()) for path in reads):
        raise CaptureError("would replace what is read", str(out), "Name another file")
    if out.is_dir():
        raise CaptureError("is a folder", str(out), "Name a file in it")
    if not out.parent.is_dir():
        raise CaptureError("the folder does not exist", str(out), "Create it or write elsewhere")
    if out.exists() and not may_exist:
        raise CaptureError("is there already", str(out), "Name another file, or add --overwrite or --resume")
    try:
        with tempfile.TemporaryFile(dir=out.parent):
            pass
    except OSError as error:
        raise CaptureError(f"the folder cannot be written ({error.strerror})", str(out), "Write elsewhere") from error
