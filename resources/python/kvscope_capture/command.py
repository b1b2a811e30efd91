"""`kvscope-capture MODEL --text FILE --out FILE.h5`: a prompt through a Hugging Face model, written as a capture."""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from typing import Any

from kvscope_capture.capture_file import CaptureOptions
from kvscope_capture.errors import CaptureError
from kvscope_capture.prompt import question_prompt
from kvscope_capture.streaming import capture_prompt
from kvscope_capture.version import add_version

DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
TEXT_FIELDS = ("text", "content", "context", "prompt", "document")


def parser() -> argparse.ArgumentParser:
    """The command line; every option has its meaning beside it."""
    p = argparse.ArgumentParser(prog="kvscope-capture", description=__doc__)
    add_version(p)
    p.add_argument("model", help="a folder or a name that transformers can load")
    p.add_argument("--revision", help="branch, tag or commit of the model")
    source = p.add_mutually_exclusive_group(required=True)
    source.add_argument("--text", type=pathlib.Path, help="the context, a UTF-8 file")
    source.add_argument("--dataset", help="NAME:INDEX, row INDEX of a data set or of a .jsonl file")
    p.add_argument("--field", help="the data set's text column (default: the first of " + ", ".join(TEXT_FIELDS) + ")")
    p.add_argument("--split", default="test", help="the data set's split (default: test)")
    p.add_argument("--needle", action="append", default=[], help="a passage of the context to mark; may be repeated")
    p.add_argument("--question", default="", help="text behind the context")
    p.add_argument("--answer", default="", help="text behind the question, what losses are measured on")
    p.add_argument("--bos", action="store_true", help="begin with BOS though the tokenizer writes none (TinyLM)")
    p.add_argument("--max-tokens", type=int, default=4096, help="tokens in all; the context gives way (default: 4096)")
    p.add_argument("--layers", help="layers to store, for example 0,2-3 (default: all)")
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
    p.add_argument("--out", type=pathlib.Path, required=True, help="the capture; OUT.partial until it is whole")
    return p


def parse_layers(text: str | None) -> tuple[int, ...] | None:
    """`0,2-3` as (0, 2, 3); None for all."""
    if text is None:
        return None
    layers: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise CaptureError(f"{text!r} is no list of layers", "--layers", "Write for example 0,2-3")
        layers.update(range(int(first), int(last if dash else first) + 1))
    if not layers:
        raise CaptureError(f"{text!r} names no layer", "--layers", "Write for example 0,2-3")
    return tuple(sorted(layers))


def read_context(arguments: argparse.Namespace) -> str:
    """The context's text. Errors: unreadable file, unknown row or column, `datasets` not installed."""
    if arguments.text is not None:
        try:
            text: str = arguments.text.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CaptureError(f"cannot be read ({error})", str(arguments.text), "Name a UTF-8 text file") from error
        return text
    name, colon, index = arguments.dataset.rpartition(":")
    if not colon or not index.isdigit():
        raise CaptureError(f"{arguments.dataset!r} is not NAME:INDEX", "--dataset", "Write for example texts.jsonl:3")
    row = _jsonl_row(name, int(index)) if name.endswith(".jsonl") else _dataset_row(name, arguments.split, int(index))
    fields = [arguments.field] if arguments.field else TEXT_FIELDS
    for field in fields:
        if isinstance(row.get(field), str):
            return str(row[field])
    raise CaptureError(f"the row has no text column {', '.join(fields)}", "--field", f"Choose one of {', '.join(row)}")


def _jsonl_row(path: str, index: int) -> dict[str, Any]:
    try:
        lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
        row: dict[str, Any] = json.loads(lines[index])
    except (OSError, UnicodeDecodeError, IndexError, json.JSONDecodeError) as error:
        raise CaptureError(
            f"row {index} cannot be read ({error})", path, "Name a .jsonl file and a row in it"
        ) from error
    return row


def _dataset_row(name: str, split: str, index: int) -> dict[str, Any]:
    try:
        import datasets
    except ImportError as error:
        raise CaptureError(
            "needs the package datasets", "--dataset", "pip install datasets, or name a .jsonl file"
        ) from error
    try:
        row: dict[str, Any] = datasets.load_dataset(name, split=split)[index]
    except (OSError, ValueError, IndexError) as error:
        raise CaptureError(f"row {index} cannot be read ({error})", name, "Check name, --split and row") from error
    return row


def load_model(name: str, revision: str | None, dtype: str | None, device: str) -> tuple[Any, Any]:
    """Model (eval) and tokenizer; `dtype` fp32, fp16, bf16 or None for the checkpoint's own."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    kind = getattr(torch, DTYPES[dtype]) if dtype else "auto"
    try:
        tokenizer = AutoTokenizer.from_pretrained(name, revision=revision)
        model = AutoModelForCausalLM.from_pretrained(name, revision=revision, dtype=kind, attn_implementation="eager")
        return model.eval().to(device), tokenizer
    except (OSError, ValueError, RuntimeError) as error:
        first = str(error).splitlines()[0]
        raise CaptureError(
            f"the model cannot be loaded ({first})", name, "Name a model folder or a Hugging Face model"
        ) from error


def show(step: str) -> None:
    """Progress on stderr; one line that is overwritten on a terminal."""
    end = "\r" if sys.stderr.isatty() else "\n"
    print(f"{step:<40}", end=end, file=sys.stderr, flush=True)


def run(arguments: argparse.Namespace) -> None:
    """Reads everything that can be wrong before the model is loaded."""
    layers = parse_layers(arguments.layers)
    if arguments.max_tokens < 2 or arguments.q_window < 0:
        raise CaptureError("must be positive", "--max-tokens, --q-window")
    text = read_context(arguments)
    show("loading the model")
    model, tokenizer = load_model(arguments.model, arguments.revision, arguments.compute_dtype, arguments.device)
    prompt = question_prompt(
        tokenizer, text, arguments.max_tokens, arguments.needle, arguments.question, arguments.answer, arguments.bos
    )
    options = CaptureOptions(
        dtype=DTYPES[arguments.dtype],
        layers=layers,
        q_window=arguments.q_window,
        o_proj=arguments.o_proj,
        pre_rope=arguments.pre_rope,
        compress=arguments.compress,
        notes=arguments.notes,
    )
    revision = arguments.revision or getattr(model.config, "_commit_hash", None) or ""
    digest = capture_prompt(model, prompt, arguments.out, options, arguments.model, revision, show, arguments.force)
    print(f"{arguments.out}: {len(prompt.ids)} tokens, hash {digest}")


def main(argv: list[str] | None = None) -> int:
    """Exit code 0, or 2 with one sentence on stderr."""
    arguments = parser().parse_args(argv)
    try:
        run(arguments)
    except CaptureError as error:
        print(f"kvscope-capture: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
