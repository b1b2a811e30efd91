"""`python -m kvscope_live --stdio`: the worker behind a live model.

It answers one client over standard input and output; it listens nowhere and runs no code that it is sent. Whatever a
library prints goes to standard error. Models come from folders and from the Hub's cache; --allow-downloads lets it load
them from the Hub.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback

from kvscope_capture.console import Parser
from kvscope_capture.errors import CaptureError
from kvscope_capture.version import add_version
from kvscope_live import errors
from kvscope_live.channel import Channel, stopped
from kvscope_live.errors import LiveError, Stopped
from kvscope_live.frames import GREETING
from kvscope_live.requests import Request
from kvscope_live.session import Session


def main(argv: list[str] | None = None) -> int:
    """Never returns: the channel ends the process when the client goes away."""
    parser = Parser(prog="kvscope_live", description=__doc__)
    add_version(parser)
    parser.add_argument("--stdio", action="store_true", required=True, help="speak over standard input and output")
    parser.add_argument("--allow-downloads", action="store_true", help="load models from the Hub")
    arguments = parser.parse_args(argv)
    if os.isatty(1):  # that of docker -t stays open when the client is gone
        os.write(1, GREETING.replace(b"\n", b"\r\n"))  # the \r tells the client that it is a terminal
        parser.exit(2, f"{parser.prog}: standard output is a terminal, not a pipe\n")
    os.environ.update({"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"})
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # Waiting threads of PyTorch spin 300,000 times by default, which takes the cores from the window; without any
    # spinning, half the speed is lost. The variable is read when PyTorch is imported, later.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    if not arguments.allow_downloads:
        os.environ.update({"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"})
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C in the client's terminal is for the client
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    session = Session()
    channel = session.channel = Channel(source, sink, lambda: set(session.methods))
    channel.start()
    while True:
        _run(channel.next(), channel, session)


def _run(request: Request, channel: Channel, session: Session) -> None:
    """Answers one request, whatever happens."""
    try:
        channel.checkpoint(stage=request.method)
        channel.answer(session.methods[request.method](request), None)
    except Stopped:
        channel.answer(None, stopped(request.stop))
    except LiveError as error:
        channel.answer(None, error)
    except CaptureError as error:
        channel.answer(None, LiveError(errors.FAILED, error.sentence, error.place, error.remedy))
    except Exception as error:  # one request fails, the session stays
        traceback.print_exc()
        channel.answer(None, _explained(error))
        if type(error).__name__ == "OutOfMemoryError":
            import torch

            torch.cuda.empty_cache()


def _explained(error: Exception) -> LiveError:
    text = (str(error).splitlines() or [type(error).__name__])[0]
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError" or "allocate memory" in text:
        from kvscope_live.models import out_of_memory

        return out_of_memory(f"the memory is not enough ({text})")
    if isinstance(error, ModuleNotFoundError) and error.name:
        name, python = error.name.partition(".")[0], sys.executable
        remedy = f"Install it with `{python} -m pip install {name}`"
        return LiveError(errors.FAILED, f"this Python has no module {name}", python, remedy)
    return LiveError(errors.INTERNAL, f"the worker failed ({type(error).__name__}: {text})", "", "Look at its log")


if __name__ == "__main__":
    sys.exit(main())
