"""`kvscope-capture MODEL --text FILE --out FILE.h5`: prompts through a Hugging Face model, written as captures.

Everything that can be wrong is said before the model is loaded. A run that is stopped goes on with --resume.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
from typing import Any

from kvscope_capture.console import Parser, run_command, show
from kvscope_capture.errors import CaptureError
from kvscope_capture.sources import TEXT_FIELDS, parse_numbers
from kvscope_capture.version import add_version

__all__ = ["DTYPES", "load_model", "main", "show"]

# What Transformers raises where, for example, a package is missing or the model is no decoder (MusicGen).
UNLOADABLE = (OSError, ValueError, RuntimeError, ImportError, AttributeError)
DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}


def parser() -> argparse.ArgumentParser:
    """The command line; every option has its meaning beside it."""
    p = Parser(prog="kvscope-capture", description=__doc__)
    add_version(p)
    p.add_argument("model", help="a folder or a name that transformers can load")
    p.add_argument("--revision", help="branch, tag or commit of the model")
    _add_text(p)
    _add_output(p)
    return p


def _add_text(p: argparse.ArgumentParser) -> None:
    text = p.add_argument_group("text")
    source = text.add_mutually_exclusive_group(required=True)
    source.add_argument("--text", type=pathlib.Path, nargs="+", help="contexts, UTF-8 files; one capture for each")
    source.add_argument("--dataset", help="NAME:ROWS, like texts.jsonl:3 or NAME:0-99; one capture for each row of a "
                        "Hugging Face data set, a .jsonl or a .parquet file")  # fmt: skip
    text.add_argument("--subset", help="the data set's configuration, for example narrativeqa")
    text.add_argument("--split", default="test", help="the data set's split (default: test)")
    text.add_argument(
        "--field", help="the column of the context (default: the first of " + ", ".join(TEXT_FIELDS) + ")"
    )
    text.add_argument("--question-field", help="the column of the question, in place of --question")
    text.add_argument("--answer-field", help="the column of the answer, in place of --answer")
    text.add_argument("--needle", action="append", default=[], help="a passage of the context to mark; may be repeated")
    text.add_argument("--depth", type=float, action="append", default=[], help="insert the needle behind this fraction "
                      "of the context's tokens, at the end of a sentence; once for each needle")  # fmt: skip
    text.add_argument("--question", default="", help="text behind the context")
    text.add_argument("--answer", default="", help="text behind the question, what losses are measured on")
    text.add_argument("--chat", action="store_true", help="put context and question into the chat template, "
                      "as one message; spaces at its ends go")  # fmt: skip
    text.add_argument("--system", default="", help="the system's message of --chat")
    text.add_argument("--bos", action="store_true", help="begin with BOS though the tokenizer writes none (TinyLM)")
    text.add_argument("--max-tokens", type=int, default=4096, help="tokens in all, at most as many as the model has "
                      "positions; the end of the context gives way (default: 4096)")  # fmt: skip


def _add_output(p: argparse.ArgumentParser) -> None:
    p.add_argument("--layers", help="layers to store, for example 0,2-3 (default: all that have keys)")
    p.add_argument("--dtype", choices=DTYPES, default="bf16", help="type of the stored tensors (default: bf16)")
    p.add_argument("--compute-dtype", choices=DTYPES, help="type the model runs in (default: the checkpoint's)")
    p.add_argument("--device", default="cpu", help="torch device (default: cpu)")
    p.add_argument("--q-window", type=int, default=0, help="store the last W queries only (default: all)")
    p.add_argument("--o-proj", action="store_true", help="store the output projection: errors after W_o")
    p.add_argument("--pre-rope", action="store_true", help="store queries and keys before RoPE too")
    p.add_argument("--compress", action="store_true", help="deflate: smaller, slower to open")
    p.add_argument("--notes", default="", help="a sentence to keep with the capture")
    p.add_argument(
        *("--force", "--any-architecture"),
        action="store_true",
        help="write the capture although it fails the comparison with its model; it is marked for good",
    )
    p.add_argument("--out", required=True, help="the capture; OUT.partial until it is whole. Of several prompts, {} in "
                   "OUT becomes the row or the text's file name")  # fmt: skip
    there = p.add_mutually_exclusive_group()
    there.add_argument("--resume", action="store_true", help="go on with a run that was stopped: captures that are "
                       "whole are kept, OUT.partial is continued")  # fmt: skip
    there.add_argument("--overwrite", action="store_true", help="replace captures that are there already")


def parse_layers(text: str | None) -> tuple[int, ...] | None:
    """`0,2-3` as (0, 2, 3); None for all."""
    return None if text is None else parse_numbers(text, "--layers", "layers")


def text_config(config: Any) -> Any:
    """The part of a configuration that describes the text model; with an encoder (Whisper, BART), all of it.

    Transformers would rename the decoder's sizes there, and no model can be built from the result.
    """
    return config if hasattr(config, "decoder_layers") else config.get_text_config(decoder=True)


def read_config(name: str, revision: str | None) -> Any:
    """The configuration of the model's text part. Errors (CaptureError): it cannot be loaded."""
    from transformers import AutoConfig

    try:
        return text_config(AutoConfig.from_pretrained(name, revision=revision))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _not_loaded("model", name, error) from error


def revision_of(name: str, given: str | None) -> str:
    """The revision that was asked for, else the commit of the copy in the Hub's cache; empty for a plain folder.

    The models of Transformers 5.23 do not state their commit. The configuration must have been read before this call:
    the cache then names the commit in use, and the network is not needed.
    """
    from transformers.utils.hub import cached_file, extract_commit_hash

    try:
        file = None if given else cached_file(name, "config.json", local_files_only=True)
    except OSError:
        return ""
    return given or extract_commit_hash(file, None) or ""


def load_tokenizer(name: str, revision: str | None) -> Any:
    """The model's tokenizer. Errors (CaptureError): it cannot be loaded, or has no tokens but special ones.

    For a folder without tokenizer files, Transformers 5.23 makes an empty tokenizer of some models (Gemma, Qwen).
    """
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(name, revision=revision)
        if len(tokenizer) <= len(tokenizer.all_special_tokens):
            raise ValueError("it has no tokens but special ones")
    except UNLOADABLE as error:
        raise _not_loaded("tokenizer", name, error) from error
    return tokenizer


def load_model(name: str, revision: str | None, dtype: str | None, device: str) -> tuple[Any, Any]:
    """Model (eval) and tokenizer; `dtype` fp32, fp16, bf16 or None for the checkpoint's own."""
    import torch
    from transformers import AutoModelForCausalLM, logging

    logging.disable_progress_bar()  # the commands have their own
    tokenizer = load_tokenizer(name, revision)
    kind = getattr(torch, DTYPES[dtype]) if dtype else "auto"
    try:
        model = AutoModelForCausalLM.from_pretrained(name, revision=revision, dtype=kind, attn_implementation="eager")
        return model.eval().to(device), tokenizer
    except UNLOADABLE as error:
        raise _not_loaded("model", name, error) from error


def without_weights(config: Any) -> Any:
    """The model of a configuration, without memory for its weights (on the meta device)."""
    import torch
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config, attn_implementation="eager")


def _not_loaded(what: str, name: str, error: Exception) -> CaptureError:
    first = next(filter(str.strip, str(error).splitlines()), type(error).__name__)  # some begin with an empty line
    remedy = "Name a model folder or a Hugging Face model"
    if what == "tokenizer" and pathlib.Path(name).is_dir():
        remedy = "Copy the model's tokenizer files, like tokenizer.json, into its folder"
    return CaptureError(f"the {what} cannot be loaded ({first})", name, remedy)


def check_device(device: str) -> None:
    """Errors (CaptureError): torch does not know the device, or it is not there."""
    import torch

    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise CaptureError(f"{device} cannot be used ({first})", "--device", "Leave it out for the CPU") from error


def main(argv: list[str] | None = None) -> int:
    """Exit code 0, 2 with one sentence on stderr, or 130 and 143 when it was stopped."""
    arguments = parser().parse_args(argv)
    stopped = ""

    def run() -> None:
        from kvscope_capture.capturing import Capturing

        nonlocal stopped
        capturing = Capturing(arguments)
        try:
            capturing.run()
        except KeyboardInterrupt:
            stopped = capturing.left_behind()
            raise

    return run_command("kvscope-capture", run, lambda: stopped)


if __name__ == "__main__":
    sys.exit(main())
