"""`python3 -m kvscope_capture.unpickle IN.pt OUT.safetensors`: tensors out of a pickle, for `kvscope convert`.

A .pt file is a Python pickle, which may run any program when it is read; the KVScope program therefore refuses it.
Here torch reads it with `weights_only=True`, which builds tensors and plain containers and nothing else. Where a pickle
names the dynamic caches of Transformers, empty classes stand in for them: fields are read, no code is run.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kvscope_capture.console import Parser, check_output, run_command
from kvscope_capture.errors import CaptureError
from kvscope_capture.locking import replaced
from kvscope_capture.version import add_version

if TYPE_CHECKING:
    import torch

CACHES = ("DynamicCache", "DynamicLayer", "DynamicSlidingWindowLayer")
STAND_INS = {name: type(name, (), {"__module__": "transformers.cache_utils"}) for name in CACHES}


def named_tensors(data: Any, name: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """Tensors in nested dictionaries, lists, tuples and caches, named by their keys and places, joined by dots.

    A list of (key, value) pairs, as caches are often saved, is named `past_key_values.LAYER.key` and `.value`.
    Errors (CaptureError): a cache that does not hold all of its tokens.
    """
    if isinstance(data, STAND_INS["DynamicCache"]):
        data = _pairs_of(vars(data))
    if _is_tensor(data):
        yield name or "tensor", data
    elif isinstance(data, dict):
        for key, value in data.items():
            yield from named_tensors(value, f"{name}.{key}" if name else str(key))
    elif isinstance(data, list | tuple):
        pairs = bool(data) and all(_is_pair(entry) for entry in data)
        for index, entry in enumerate(data):
            at = f"{name or 'past_key_values'}.{index}"
            yield from named_tensors(dict(zip(("key", "value"), entry, strict=True)) if pairs else entry, at)


def _pairs_of(fields: dict[str, Any]) -> list[tuple[Any, Any]]:
    """(keys, values) of every layer, by the fields of a DynamicCache."""
    if "key_cache" in fields:  # Transformers before 4.54
        pairs = list(zip(fields["key_cache"], fields["value_cache"], strict=True))
    else:
        layers = [vars(layer) for layer in fields.get("layers", [])]
        pairs = [(layer.get("keys"), layer.get("values")) for layer in layers]
        for index, (layer, (keys, _)) in enumerate(zip(layers, pairs, strict=True)):
            seen = layer.get("cumulative_length")
            if _is_tensor(keys) and seen is not None and seen > keys.shape[-2]:
                raise CaptureError(
                    f"the cache holds {keys.shape[-2]} of {seen} tokens, those of a sliding window",
                    f"layer {index}",
                    "Capture the prompt with kvscope-capture",
                )
    for index, pair in enumerate(pairs):
        if not _is_pair(pair):
            raise CaptureError("the cache holds no keys and values", f"layer {index}", "Run the model before saving")
    return pairs


def _is_tensor(data: Any) -> bool:
    import torch

    return isinstance(data, torch.Tensor)


def _is_plain(tensor: torch.Tensor) -> bool:
    import torch

    odd = tensor.is_quantized or tensor.is_complex() or tensor.is_meta or tensor.is_nested
    return tensor.layout == torch.strided and not odd


def _is_pair(entry: Any) -> bool:
    pair = isinstance(entry, list | tuple) and len(entry) == 2
    return pair and all(_is_tensor(tensor) for tensor in entry)


def unpickle(source: pathlib.Path, out: pathlib.Path) -> list[str]:
    """Writes all tensors of `source` and returns their names.

    Errors (CaptureError): not a file of torch, objects other than tensors, containers and dynamic caches, no tensor,
    one that no safetensors file holds (quantised, sparse, complex), `out` cannot be written.
    """
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    try:
        with torch.serialization.safe_globals(list(STAND_INS.values())):
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
    try:
        tensors: dict[str, torch.Tensor] = {}
        for name, tensor in named_tensors(data):
            if name in tensors:
                raise CaptureError("two tensors have this name", name, "Save them under names without dots")
            if not _is_plain(tensor):
                raise CaptureError("holds tensors of a kind that cannot be stored", name, "Save them as float32")
            tensors[name] = tensor.contiguous().clone()
    except CaptureError as error:
        raise CaptureError(error.sentence, f"{source}: {error.place}", error.remedy) from error
    if not tensors:
        raise CaptureError("holds no tensors", str(source))
    with replaced(out) as temporary:
        try:
            save_file(tensors, temporary)
        except (OSError, SafetensorError) as error:
            what = (str(error).splitlines() or [type(error).__name__])[0]
            raise CaptureError(f"cannot be written ({what})", str(out), "Make room there") from error
    return sorted(tensors)


def run(arguments: argparse.Namespace) -> None:
    """Errors (CaptureError): those of `unpickle`."""
    check_output(arguments.out, reads=[arguments.source])
    names = unpickle(arguments.source, arguments.out)
    print(f"{len(names)} tensors: {', '.join(names[:4])}{' ...' if len(names) > 4 else ''}")


def main(argv: list[str] | None = None) -> int:
    """Exit code 0, 2 with one sentence on stderr, or 130 and 143 when it was stopped."""
    parser = Parser(prog="kvscope_capture.unpickle", description=__doc__)
    add_version(parser)
    parser.add_argument("source", type=pathlib.Path, help="a .pt or .pth file")
    parser.add_argument("out", type=pathlib.Path, help="FILE.safetensors")
    arguments = parser.parse_args(argv)
    return run_command("unpickle", lambda: run(arguments))


if __name__ == "__main__":
    sys.exit(main())
