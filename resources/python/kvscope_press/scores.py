"""Scores of kvpress's presses, written beside a capture; `scores_command.py` is the command."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import pathlib
import shlex
from collections.abc import Iterator
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt
import torch
import transformers

from kvscope_capture.attention import head_sizes, layer_count
from kvscope_capture.command import DTYPES, load_model, read_config, revision_of, text_config, without_weights
from kvscope_capture.console import check_output, show
from kvscope_capture.errors import CaptureError
from kvscope_capture.hdf5 import put, written
from kvscope_capture.locking import edited_copy, locked
from kvscope_capture.prompt import default_cut
from kvscope_capture.version import VERSION
from kvscope_press.presses import (
    NamedPress,
    kvpress_version,
    named_press,
    parameters_json,
    press_scores,
    require_pressable,
)

FORMAT = "kvscope-scores"
# Relative difference of a layer's keys from the captured ones: where both runs were in 32 bits, and otherwise. 16-bit
# keys of the same model differ by 0.003 to 0.006, a checkpoint with 20 % of noise on its weights by 0.13 to 0.25.
MOST_DIFFERENCE = (0.03, 0.06)
Scores = npt.NDArray[np.float32]


@contextlib.contextmanager
def opened_capture(path: pathlib.Path) -> Iterator[h5py.File]:
    """Errors (CaptureError): no capture, a part of one, or one that cannot be read."""
    try:
        with h5py.File(path, "r") as file:
            if file.attrs.get("format") != "kvscope-capture":
                raise CaptureError("is no capture", str(path), "Write captures with kvscope-capture")
            if "partial_state" in file.attrs:
                raise CaptureError("is not whole", str(path), "Go on with kvscope-capture --resume")
            yield file
    except (OSError, KeyError, ValueError) as error:
        raise CaptureError(f"cannot be read ({error})", str(path), "Name a capture") from error


class CaptureHead:
    """What scores need of a capture: tokens, cut, layers, KV heads and the keys to recognise the model by."""

    def __init__(self, path: pathlib.Path, cut: int | None) -> None:
        """Errors (CaptureError): as opened_capture, a cut outside it."""
        with opened_capture(path) as file:
            self.ids: list[int] = file["tokens/ids"][()].tolist()
            segments = file["tokens/segments"][()].tolist() if "tokens/segments" in file else []
            self.layers = sorted(int(name) for name in file["layers"])
            self.model_layers, self.kv_heads = int(file.attrs["num_layers"]), int(file.attrs["num_kv_heads"])
            self.hash = str(file.attrs.get("capture_hash", ""))
            self.model_dtype = json.loads(file.attrs.get("self_check", "{}")).get("model_dtype", "")
        self.path, self.cut = path, default_cut(segments, len(self.ids)) if cut is None else cut
        if not 0 < self.cut <= len(self.ids):
            raise CaptureError(
                f"the cut {self.cut} lies outside the capture of {len(self.ids)} tokens", "--cut", "Cut in between"
            )

    def keys(self, layer: int) -> torch.Tensor:
        """Captured keys before the cut, [Hkv, cut, d]."""
        with h5py.File(self.path, "r") as file:
            node = file[f"layers/{layer:02d}/k"]
            stored = torch.from_numpy(node[:, : self.cut])
            if node.attrs.get("dtype") == "bfloat16":
                stored = stored.view(torch.int16).view(torch.bfloat16)
        return stored.float()

    def require_model(self, model: Any) -> None:
        """Errors (CaptureError): a model with other layers or heads."""
        config = text_config(model.config)
        layers, heads = layer_count(config), head_sizes(config)[1]
        if (layers, heads) != (self.model_layers, self.kv_heads):
            raise CaptureError(
                f"the model has {layers} layers of {heads} KV heads, the capture was made from "
                f"{self.model_layers} of {self.kv_heads}",
                str(self.path),
                "Name the model that was captured",
            )

    def require_keys(self, cache: Any) -> None:
        """Errors (CaptureError): a cache whose keys are not the captured ones."""
        for layer in self.layers:
            self.require_keys_of(layer, cache.layers[layer].keys[0])

    def require_keys_of(self, layer: int, keys: torch.Tensor) -> None:
        """Errors (CaptureError): `keys` [Hkv, n, d] of a layer that are not the captured ones."""
        own, captured = keys[:, : self.cut].float().cpu(), self.keys(layer)
        most = MOST_DIFFERENCE[0 if keys.dtype == torch.float32 and self.model_dtype == "float32" else 1]
        if own.shape != captured.shape or not (own - captured).norm() <= most * captured.norm():
            raise CaptureError(
                f"the model's keys in layer {layer} are not those of the capture",
                str(self.path),
                same_model(self.model_dtype, str(keys.dtype).removeprefix("torch.")),
            )


def option_of(dtype: str) -> str:
    """bfloat16 as --compute-dtype takes it, bf16; empty for other types."""
    return next((option for option, name in DTYPES.items() if name == dtype), "")


def same_model(captured: str, ran: str) -> str:
    """The remedy where a model's numbers are not the captured ones, by the types that both ran in.

    Where a router chooses experts, the same model gives other numbers in another type.
    """
    dtype = option_of(captured) if captured != ran else ""
    also = f", or add --compute-dtype {dtype}, as the capture says" if dtype else ""
    return f"Name the model and revision that were captured{also}"


def all_layers(found: dict[int, torch.Tensor], capture: CaptureHead, name: str) -> Scores:
    """[layers of the capture, KV heads, cut]; NaN in layers that the press skips.

    Errors (CaptureError): scores of another shape, or NaN where there should be a number.
    """
    shape = (capture.kv_heads, capture.cut)
    scores = np.full((len(capture.layers), *shape), np.nan, np.float32)
    for place, layer in enumerate(capture.layers):
        if layer not in found:
            continue
        if tuple(found[layer].shape) != shape:
            raise CaptureError(
                f"{name} gives scores {list(found[layer].shape)} in layer {layer}, not {list(shape)}", "--press"
            )
        if not bool(torch.isfinite(found[layer]).all()):
            raise CaptureError(f"{name} gives a score that is not finite in layer {layer}", "--press")
        scores[place] = found[layer].numpy()
    if not found:
        raise CaptureError(f"{name} scored no layer", "--press")
    return scores


def write_scores(
    out: pathlib.Path, capture: CaptureHead, found: list[tuple[str, Scores, dict[str, Any]]], command: str
) -> None:
    """The data sets with their provenance; those of an earlier run on the same tokens stay unless they are named again.

    Errors (CaptureError): a file of other tokens or of another format, a folder that cannot be written.
    """
    ids = np.asarray(capture.ids, np.int32)
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(locked(out, wait=True))
            path = stack.enter_context(edited_copy(out))
            there = path.exists()
            file = stack.enter_context(written(path, "r+" if there else "w", libver=("v108", "v110")))
            if there and file.attrs.get("format") != FORMAT:
                raise CaptureError("is no file of scores", str(out), "Name another file with --out")
            if "ids" in file and not np.array_equal(file["ids"][()], ids):
                raise CaptureError("holds scores of other tokens", str(out), "Name another file with --out")
            file.attrs.update({"format": FORMAT, "version": 1, "tool": f"kvscope-scores {VERSION}"})
            if "ids" not in file:
                put(file, "ids", ids)
            for name, scores, origin in found:
                if name in file:
                    del file[name]
                node = put(file, name, scores)
                node.attrs.update(origin | {"command": command, "tokens_seen": capture.cut})
    except (OSError, RuntimeError) as error:
        raise CaptureError(f"cannot be written ({error})", str(out), "Name another file with --out") from error


def model_name(given: str) -> str:
    """A model's name; of a folder the last part of its path, because the rest is private."""
    return pathlib.Path(given).resolve().name if pathlib.Path(given).is_dir() else given


def origin_of(
    named: NamedPress, model: str, revision: str, capture: CaptureHead, seed: int, dtype: str
) -> dict[str, Any]:
    """Where scores come from, as attributes of their data set."""
    tokens = np.asarray(capture.ids[: capture.cut], "<i4").tobytes()
    return {
        "press": named.name,
        "parameters": parameters_json(named),
        "kvpress_version": kvpress_version(),
        "transformers_version": transformers.__version__,
        "model": model_name(model),
        "model_revision": revision,
        "compute_dtype": dtype,
        "seed": seed,
        "prompt_hash": hashlib.sha256(tokens).hexdigest(),
        "capture_hash": capture.hash,
    }


def run(arguments: argparse.Namespace, command: str) -> None:
    """Everything that can be wrong with presses, capture and architecture is found before the model is loaded."""
    presses = [named_press(text) for text in arguments.press]
    capture = CaptureHead(arguments.capture, arguments.cut)
    out = arguments.out or arguments.capture.with_suffix(".scores.h5")
    check_output(out.resolve())
    blank = without_weights(read_config(arguments.model, arguments.revision))
    capture.require_model(blank)
    require_pressable(blank)
    show("loading the model")
    compute_dtype = arguments.compute_dtype or option_of(capture.model_dtype) or "fp32"
    model, _ = load_model(arguments.model, arguments.revision, compute_dtype, arguments.device)
    revision = revision_of(arguments.model, arguments.revision)
    found = []
    for named in presses:
        show(f"{named.name} over {capture.cut} tokens")
        torch.manual_seed(arguments.seed)
        by_layer, cache = press_scores(model, named, capture.ids[: capture.cut])
        capture.require_keys(cache)
        name = named.dataset() + ("" if arguments.cut is None else f"-cut-{capture.cut}")
        dtype = str(model.dtype).removeprefix("torch.")
        origin = origin_of(named, arguments.model, revision, capture, arguments.seed, dtype)
        found.append((name, all_layers(by_layer, capture, named.name), origin))
    write_scores(out, capture, found, command)
    cut = "" if arguments.cut is None else f" --cut {capture.cut}"
    for name, scores, _ in found:
        print(f"{out}:/{name} {list(scores.shape)}")
        if bool(np.isnan(scores).any()):
            print("  the press scores no layer with a sliding window; leave those whole with whole_layers=sliding")
        policy = shlex.quote(f'imported,"file={out}:/{name}"@0.25')
        print(f"  kvscope evict {shlex.quote(str(arguments.capture))} --policy {policy}{cut} --out kept.json")
