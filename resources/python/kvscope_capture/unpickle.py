"""`python3 -m kvscope_capture.unpickle IN.pt OUT.safetensors`: tensors out of a pickle, for `kvscope convert`.

A .pt file is a Python pickle, which may run any program when it is read; the KVScope program therefore refuses it. Here
torch reads it with `weights_only=True`, which builds tensors and plain containers and nothing else.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import sys
from collections.abc import Iterator
from typing import Any

import torch
from safetensors.torch import save_file

from kvscope_capture.errors import CaptureError
from kvscope_capture.version import add_version


def named_tensors(data: Any, name: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """Tensors in nested dictionaries, lists and tuples, named by their keys and places, joined by dots.

    A list of (key, value) pairs, as caches are often saved, is named `past_key_values.LAYER.key` and `.value`.
    """
    if isinstance(data, torch.Tensor):
        yield name or "tensor", data
    elif isinstance(data, dict):
        for key, value in data.items():
            yield from named_tensors(value, f"{name}.{key}" if name else str(key))
    elif isinstance(data, list | tuple):
        pairs = bool(data) and all(_is_pair(entry) for entry in data)
        for index, entry in enumerate(data):
            at = f"{name or 'past_key_values'}.{index}"
            yield from named_tensors(dict(zip(("key", "value"), entry, strict=True)) if pairs else entry, at)


def _is_pair(entry: Any) -> bool:
    pair = isinstance(entry, list | tuple) and len(entry) == 2
    return pair and all(isinstance(tensor, torch.Tensor) for tensor in entry)


def unpickle(source: pathlib.Path, out: pathlib.Path) -> list[str]:
    """Writes all tensors of `source` and returns their names.

    Errors (CaptureError): not a file of torch, objects other than tensors and containers, no tensor.
    """
    try:
        data = torch.load(source, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises whatever the unpickler meets
        held = re.search(r"GLOBAL ([\w.]+)", str(error))
        what = f"it holds a {held[1]}" if held else (str(error).splitlines() or [type(error).__name__])[0]
        raise CaptureError(
            f"cannot be read as plain tensors ({what})",
            str(source),
            "Save tensors: torch.save([(layer.keys, layer.values) for layer in cache.layers], FILE) for a cache of "
            "Transformers, torch.save({'layers.0.k': k, 'layers.0.v': v}, FILE) for your own",
        ) from error
    tensors = {name: tensor.contiguous().clone() for name, tensor in named_tensors(data)}
    if not tensors:
        raise CaptureError("holds no tensors", str(source))
    temporary = out.with_name(out.name + ".tmp")
    try:
        save_file(tensors, temporary)
        os.replace(temporary, out)
    except OSError as error:
        raise CaptureError(f"cannot be written ({error})", str(out), "Name another file") from error
    finally:
        temporary.unlink(missing_ok=True)
    return sorted(tensors)


def main(argv: list[str] | None = None) -> int:
    """Exit code 0, or 2 with one sentence on stderr."""
    parser = argparse.ArgumentParser(prog="kvscope_capture.unpickle", description=__doc__)
    add_version(parser)
    parser.add_argument("source", type=pathlib.Path, help="a .pt or .pth file")
    parser.add_argument("out", type=pathlib.Path, help="FILE.safetensors")
    arguments = parser.parse_args(argv)
    try:
        names = unpickle(arguments.source, arguments.out)
    except CaptureError as error:
        print(f"unpickle: {error}", file=sys.stderr)
        return 2
    print(f"{len(names)} tensors: {', '.join(names[:4])}{' ...' if len(names) > 4 else ''}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
