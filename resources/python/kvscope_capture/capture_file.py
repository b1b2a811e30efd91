"""Writes the HDF5 file of a capture, one layer at a time.

The file grows under the name `OUT.partial`, is closed after every layer so that an interrupted capture can go on,
and gets its own name only when everything is in it: a file with the name `OUT` is always whole.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt
import torch

from kvscope_capture.console import check_output
from kvscope_capture.errors import CaptureError
from kvscope_capture.hdf5 import put, written
from kvscope_capture.locking import locked

Array = npt.NDArray[Any]
STAGE = "post_qk_norm_post_rope_pre_scale"
STORED_TYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
CHUNK_TOKENS = 4096


@dataclasses.dataclass(frozen=True)
class CaptureOptions:
    """What is stored: type, layers (None: all), last queries (0: all), extras."""

    dtype: str = "bfloat16"
    layers: tuple[int, ...] | None = None
    q_window: int = 0
    o_proj: bool = False
    pre_rope: bool = False
    compress: bool = False
    notes: str = ""


@dataclasses.dataclass(frozen=True)
class LayerRecord:
    """One layer as attention saw it: tensors by data set name, [heads, tokens, d], and its attributes."""

    layer: int
    tensors: Mapping[str, torch.Tensor]
    attributes: Mapping[str, Any]


def not_written(path: pathlib.Path, error: Exception, stays: bool = True) -> CaptureError:
    """The error of a failed write, mostly a full disk; `stays`: what is finished stays and can be continued."""
    what = (str(error).splitlines() or [type(error).__name__])[0]
    remedy = "Make room there; the same command with --resume then goes on" if stays else "Make room there"
    return CaptureError(f"cannot be written ({what})", str(path), remedy)


def encode(tensor: torch.Tensor, dtype: str, place: str) -> Array:
    """The stored bits; bfloat16 as uint16. Errors: NaN, infinity, or a value that the type cannot hold."""
    stored = tensor.to(STORED_TYPES[dtype])
    if not bool(torch.isfinite(stored).all()):
        head, token, _ = torch.nonzero(~torch.isfinite(stored))[0].tolist()
        finite = bool(torch.isfinite(tensor[head, token]).all())
        sentence = f"is beyond the range of {dtype}" if finite else "is NaN or infinite"
        remedy = "Store as bf16 or fp32" if finite else "Run the model in a wider type (--compute-dtype fp32)"
        raise CaptureError(f"a value at head {head}, token {token} {sentence}", place, remedy)
    if dtype == "bfloat16":
        bits: Array = stored.cpu().contiguous().view(torch.int16).numpy().view(np.uint16)
        return bits
    plain: Array = stored.cpu().contiguous().numpy()
    return plain


@contextlib.contextmanager
def written_alone(out: pathlib.Path) -> Iterator[None]:
    """While open, no other run writes `out`, not even between two layers, when its file is closed.

    Errors (CaptureError): another run is writing it, the folder is missing or cannot be written.
    """
    check_output(out)
    with locked(out.with_name(out.name + ".partial")):
        yield


class CaptureFile:
    """The growing file of one capture.

    `state` identifies prompt, model and options: the partial file of another capture is not continued. `last` is the
    last layer behind which the residual stream was saved: a killed run may have left a later layer half-written.
    """

    def __init__(
        self,
        out: pathlib.Path,
        options: CaptureOptions,
        state: str,
        last: int = -1,
        resume: bool = False,
        stays: bool = True,
    ) -> None:
        """Errors: the folder is missing or cannot be written; with `resume`, a partial file that cannot be continued.

        `stays`: the caller leaves the partial file for the next run when an error ends this one; messages say so.
        """
        self.out, self.options, self.stays = out, options, stays
        self.path = out.with_name(out.name + ".partial")
        check_output(out)
        there = self._state_there()
        if resume and there not in (None, state):
            raise CaptureError(
                "is the rest of another prompt, model or options, of other weights, or damaged",
                str(self.path),
                "Give the options of the run that was stopped, or leave --resume out to begin anew",
            )
        self.finished_layers = self._trusted_layers(last) if there == state else set()
        if not self.finished_layers:
            with self._open("w") as file:
                file.attrs["partial_state"] = state

    @contextlib.contextmanager
    def _open(self, mode: str, room: int = 0) -> Iterator[h5py.File]:
        """`room`: bytes that will be added. Errors: the file cannot be written, or another run writes it."""
        try:
            with written(self.path, mode, room, libver=("v108", "v110")) as file:
                yield file
        except BlockingIOError as error:
            raise CaptureError("is being written by another run", str(self.path), "Wait for it") from error
        except (OSError, RuntimeError) as error:
            raise not_written(self.path, error, self.stays) from error

    def _state_there(self) -> str | None:
        """The `state` that OUT.partial holds: None where there is no such file, "" where it cannot be read."""
        try:
            with h5py.File(self.path, "r") as file:
                return str(file.attrs.get("partial_state", ""))
        except FileNotFoundError:
            return None
        except (OSError, RuntimeError):
            return ""

    def _trusted_layers(self, last: int) -> set[int]:
        """Finished layers up to `last`; later ones, and those that a killed run left unfinished, are deleted."""
        try:
            with written(self.path, "a") as file:
                layers = file.require_group("layers")
                for name in [name for name in layers if int(name) > last or "stage" not in layers[name].attrs]:
                    del layers[name]
                return {int(name) for name in layers}
        except (OSError, KeyError, RuntimeError):
            return set()

    def layer_checks(self) -> dict[int, str]:
        """The attribute `self_check` of every layer that is finished."""
        with self._open("a") as file:
            layers = {number: file[f"layers/{number:02d}"] for number in self.finished_layers}
            return {number: str(layer.attrs.get("self_check", "{}")) for number, layer in layers.items()}

    def remove(self) -> None:
        """Deletes what was written so far."""
        self.path.unlink(missing_ok=True)

    def write_root(self, attributes: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        """Root attributes and the small data sets under /tokens and /rope; written again on resuming."""
        with self._open("a", sum(data.nbytes for data in arrays.values())) as file:
            file.attrs.update(attributes)
            for name, data in arrays.items():
                if name in file:
                    del file[name]
                put(file, name, data)

    def write_ids(self, tool: str, ids: Sequence[int], sizes: Mapping[str, int]) -> None:
        """The root of a capture without text: every token reads " x"; positions from 0."""
        n = len(ids)
        self.write_root(
            {"format": "kvscope-capture", "version": 1, "tool": tool, **sizes},
            {
                "tokens/ids": np.asarray(ids, np.int32),
                "tokens/text": np.frombuffer(b" x" * n, np.uint8),
                "tokens/offsets": np.arange(0, 2 * n + 1, 2, dtype=np.int64),
                "tokens/position_ids": np.arange(n, dtype=np.int64),
            },
        )

    def write_layer(self, record: LayerRecord) -> None:
        """Tensors first, attributes last: a layer without `stage` was interrupted."""
        width = STORED_TYPES[self.options.dtype].itemsize
        with self._open("a", sum(tensor.numel() for tensor in record.tensors.values()) * width) as file:
            group = file.require_group(f"layers/{record.layer:02d}")
            for name, tensor in record.tensors.items():
                if name == "sinks":  # a few numbers; the reader expects float32
                    put(group, name, tensor.detach().float().cpu().numpy())
                    continue
                data = encode(tensor, self.options.dtype, f"layers/{record.layer:02d}/{name}")
                node = put(group, name, data, **self._storage(data.shape))
                if self.options.dtype == "bfloat16":
                    node.attrs["dtype"] = "bfloat16"
            group.attrs.update(record.attributes)
            group.attrs["stage"] = STAGE

    def _storage(self, shape: tuple[int, ...]) -> dict[str, Any]:
        chunks = (1, max(1, min(shape[1], CHUNK_TOKENS)), shape[2])
        if not self.options.compress:
            return {"chunks": chunks}
        return {"chunks": chunks, "compression": "gzip", "compression_opts": 6, "shuffle": True}

    def finish(self, progress: Callable[[str], None], checkpoint: Callable[[], None] = lambda: None) -> str:
        """Writes the hash and gives the file its name; returns the hash. `checkpoint`, called meanwhile, may raise."""
        progress("hashing")
        with self._open("a") as file:
            digest = hash_of_capture(file, checkpoint)
            file.attrs["capture_hash"] = digest
            del file.attrs["partial_state"]
        os.replace(self.path, self.out)
        return digest


def _datasets(node: h5py.Group) -> Iterator[h5py.Dataset]:
    for child in node.values():
        if isinstance(child, h5py.Dataset):
            yield child
        else:
            yield from _datasets(child)


def hash_of_capture(file: h5py.File, checkpoint: Callable[[], None] = lambda: None) -> str:
    """SHA-256 over the data sets of /tokens, /rope and /layers, as the format defines it; head by head.

    `checkpoint` is called before each head and may raise.
    """
    found = [d for root in ("tokens", "rope", "layers") if root in file for d in _datasets(file[root])]
    digest = hashlib.sha256()
    for data in sorted(found, key=lambda d: d.name.encode()):
        shape = ",".join(map(str, data.shape))
        digest.update(data.name.lstrip("/").encode() + b"\0" + shape.encode() + b"\0")
        for begin in range(data.shape[0] if data.ndim == 3 else 1):
            checkpoint()
            block = data[begin] if data.ndim == 3 else data[()]
            digest.update(np.ascontiguousarray(block).astype(data.dtype.newbyteorder("<"), copy=False).tobytes())
    return digest.hexdigest()


def json_text(value: Any) -> str:
    """Compact JSON with sorted keys, the same text on every run."""
    return json.dumps(value, sort_keys=True, default=str)
