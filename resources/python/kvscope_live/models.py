"""Describes models by their configuration alone, and loads them."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import socket
from typing import Any

import torch

from kvscope_capture.attention import (
    head_sizes,
    layer_count,
    layers_of,
    require_prunable,
    require_watchable,
    sliding_window_of,
)
from kvscope_capture.command import check_device, load_model, read_config, revision_of, without_weights
from kvscope_capture.errors import CaptureError
from kvscope_capture.streaming import TESTED
from kvscope_live.channel import Channel
from kvscope_live.errors import NOT_DOWNLOADED, OUT_OF_MEMORY, UNSUPPORTED_MODEL, LiveError
from kvscope_live.requests import bad

DTYPES = {"f32": "fp32", "f16": "fp16", "bf16": "bf16"}
BYTES = {"f32": 4, "f16": 2, "bf16": 2}


@dataclasses.dataclass(frozen=True)
class OpenModel:
    """A loaded model; `name` and `revision` go into captures."""

    model: Any
    tokenizer: Any
    name: str
    revision: str


def inspect_model(path: str, revision: str | None) -> dict[str, Any]:
    """What `model/inspect` answers. Errors (LiveError): no such model on the worker's machine, or no heads."""
    config = config_of(path, revision)
    try:
        heads, kv_heads, width, value_width = head_sizes(config)
    except CaptureError as error:
        raise LiveError(UNSUPPORTED_MODEL, f"{error.place}: {error.sentence}", path, error.remedy) from error
    parameters, why = _parameters(config)
    tested = config.model_type in TESTED
    note = (
        "" if tested else f"{config.model_type} is not among the tested architectures; reading compares it with itself"
    )
    layers = layer_count(config)
    return {
        "architecture": (getattr(config, "architectures", None) or [config.model_type])[0],
        "layers": layers,
        "query_heads": heads,
        "kv_heads": kv_heads,
        "head_dim": width,
        "value_dim": value_width,
        "windows": [sliding_window_of(config, layer) for layer in range(layers)],
        "parameters": parameters,
        "bytes_to_load": {name: parameters * size for name, size in BYTES.items()},
        "bytes_per_token": bytes_per_token(config),
        "max_positions": most if (most := getattr(config, "max_position_embeddings", None)) and most > 0 else None,
        "dtype": _dtype_name(config),
        "supported": not why,
        "tested": tested,
        "why": why or note,
    }


def config_of(path: str, revision: str | None) -> Any:
    """Errors (LiveError): no folder with a configuration, and nothing of that name in the Hub's cache."""
    if not path:
        raise bad("path", "names no model")
    try:
        return read_config(path, revision)
    except CaptureError as error:
        if pathlib.Path(path).is_dir():
            raise LiveError(
                UNSUPPORTED_MODEL, error.sentence, path, "Name a folder that Transformers can read"
            ) from error
        raise LiveError(
            NOT_DOWNLOADED,
            f"there is no model {path} on {socket.gethostname()}, where the worker runs",  # it may be behind ssh
            path,
            "Name a folder that is there"
            if path[0] in "/.~"
            else f"Name a folder, or download it there: hf download {path}",
            id=path,
        ) from error


def bytes_per_token(config: Any, width: int = 2) -> int:
    """Bytes of a token's keys, values and queries of all layers, in a type of `width` bytes."""
    heads, kv_heads, key, value = head_sizes(config)
    return int(layer_count(config) * (kv_heads * (key + value) + heads * key) * width)


def open_model(path: str, revision: str | None, dtype: str, device: str, channel: Channel) -> OpenModel:
    """Loads model and tokenizer; every decoder layer then asks the channel whether to stop.

    Errors (LiveError): no such model, device or memory; an architecture that Transformers cannot build.
    """
    facts = inspect_model(path, revision)
    if not facts["supported"]:
        raise LiveError(UNSUPPORTED_MODEL, facts["why"], path, "", architecture=facts["architecture"])
    kind = dtype if dtype != "auto" else facts["dtype"]
    if kind not in DTYPES:
        raise bad("dtype", f"is not one of auto, {', '.join(DTYPES)}")
    try:
        check_device(device)
    except CaptureError as error:
        raise bad("device", error.sentence) from error
    require_memory(facts["bytes_to_load"][kind], device, f"{path} in {kind}")
    channel.progress("loading", 0, 1)
    model, tokenizer = load_model(path, revision, DTYPES[kind], device)
    layers = layers_of(model)
    for index, layer in enumerate(layers):
        layer.register_forward_pre_hook(lambda *_, index=index: channel.checkpoint(layer=index))
    channel.progress("loading", 1, 1)
    return OpenModel(model, tokenizer, path, revision_of(path, revision))


def devices() -> list[dict[str, Any]]:
    """Name, memory and free memory of each; the CPU first."""
    found = [{"name": "cpu", "total": _memory("MemTotal"), "free": free_memory("cpu")}]
    for index in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        free, total = torch.cuda.mem_get_info(index)
        found.append({"name": f"cuda:{index}", "total": total, "free": free})
    return found


def free_memory(device: str) -> int:
    """Bytes that are free on a device; 0 where this is unknown."""
    if device.startswith("cuda"):
        return int(torch.cuda.mem_get_info(device)[0])
    return min(_memory("MemAvailable"), _group_memory())


def require_memory(needed: int, device: str, what: str) -> None:
    """Errors (LiveError): fewer than `needed` bytes are free."""
    free = free_memory(device)
    if free and needed > free:
        raise out_of_memory(f"{what} needs {_gib(needed)}, {_gib(free)} are free on {device}", needed, free)


def out_of_memory(sentence: str, needed: int = 0, free: int = 0) -> LiveError:
    """The error, with its remedy."""
    remedy = "Choose bf16, a shorter context or a smaller model"
    return LiveError(OUT_OF_MEMORY, sentence, "", remedy, needed=needed, free=free)


def memory_used() -> int:
    """Bytes of this process, and of its tensors on a device."""
    with open("/proc/self/statm", encoding="ascii") as file:
        resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return resident + (torch.cuda.memory_allocated())


def _parameters(config: Any) -> tuple[int, str]:
    """Number of parameters of the model, built without memory, and why it cannot be used; "" where it can."""
    try:
        model = without_weights(config)
        require_watchable(model)
        require_prunable(model)
        return sum(parameter.numel() for parameter in model.parameters()), ""
    except CaptureError as error:
        return 0, ". ".join(filter(None, (f"{config.model_type} cannot be used: {error.sentence}", error.remedy)))
    except Exception as error:  # whatever a configuration of another kind raises
        return 0, (str(error).splitlines() or [type(error).__name__])[0]


def _dtype_name(config: Any) -> str:
    names = {torch.float16: "f16", torch.bfloat16: "bf16"}
    return names.get(getattr(config, "dtype", None), "f32")  # type: ignore[arg-type]


def _memory(name: str) -> int:
    with open("/proc/meminfo", encoding="ascii") as file:
        return next((int(line.split()[1]) * 1024 for line in file if line.startswith(f"{name}:")), 0)


def _group_memory() -> int:
    """What the process's control group may still take (a container's limit).

    It counts files that were read (mostly a model's weights) as used, though the kernel drops them when it must.
    """
    try:
        folder = pathlib.Path("/sys/fs/cgroup")
        free = int((folder / "memory.max").read_text()) - int((folder / "memory.current").read_text())
        lines = (line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return free + sum(int(size) for name, size in lines if name in ("active_file", "inactive_file"))
    except (OSError, ValueError):
        return 1 << 62


def _gib(count: int) -> str:
    return f"{count / (1 << 30):.1f} GiB"
