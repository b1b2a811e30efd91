"""Makes the broken captures in `broken/`: each is a sound one with one thing wrong, and `sound.h5` is that sound one.

Usage: make_broken.py

Written with h5py from the description of the format alone, so that `sound.h5` also shows that captures of other
programs open. The numbers are drawn with a fixed seed; two runs give the same data sets.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import h5py
import numpy as np

BROKEN = pathlib.Path(__file__).resolve().parent / "broken"
TOKENS, LAYERS, QUERY_HEADS, KV_HEADS, HEAD_DIM = 64, 2, 4, 2, 16


def write_tokens(file: h5py.File) -> None:
    """Single letters as tokens."""
    text = np.frombuffer(bytes(ord("a") + i % 26 for i in range(TOKENS)), dtype=np.uint8)
    file["tokens/ids"] = text.astype(np.int32)
    file["tokens/text"] = text
    file["tokens/offsets"] = np.arange(TOKENS + 1, dtype=np.int64)
    file["tokens/position_ids"] = np.arange(TOKENS, dtype=np.int64)


def write_layer(file: h5py.File, layer: int, rng: np.random.Generator) -> None:
    """Normal queries, keys and values."""
    group = file.create_group(f"layers/{layer:02d}")
    for name, heads in (("q", QUERY_HEADS), ("k", KV_HEADS), ("v", KV_HEADS)):
        group[name] = rng.standard_normal((heads, TOKENS, HEAD_DIM)).astype(np.float16)
    group.attrs["scaling"] = HEAD_DIM**-0.5
    group.attrs["kv_of_q"] = (np.arange(QUERY_HEADS) * KV_HEADS // QUERY_HEADS).astype(np.int32)
    group.attrs["attn_type"] = "full_attention"
    group.attrs["sliding_window"] = 0
    group.attrs["has_rope"] = False
    group.attrs["qk_norm"] = False
    group.attrs["softcap"] = 0.0
    group.attrs["stage"] = "post_qk_norm_post_rope_pre_scale"


def write_sound(path: pathlib.Path) -> None:
    """A small capture with nothing wrong."""
    with h5py.File(path, "w", track_order=False) as file:
        file.attrs["format"] = "kvscope-capture"
        file.attrs["version"] = 1
        file.attrs["tool"] = "make_broken.py"
        file.attrs["model_id"] = "random numbers"
        file.attrs["num_layers"] = LAYERS
        file.attrs["num_q_heads"] = QUERY_HEADS
        file.attrs["num_kv_heads"] = KV_HEADS
        file.attrs["head_dim"] = HEAD_DIM
        file.attrs["value_dim"] = HEAD_DIM
        file.attrs["rope"] = "{}"
        file.attrs["config_json"] = "{}"
        write_tokens(file)
        rng = np.random.default_rng(2026)
        for layer in range(LAYERS):
            write_layer(file, layer, rng)


def replace(file: h5py.File, name: str, data: np.ndarray) -> None:
    """Another data set under the same name."""
    del file[name]
    file[name] = data


def with_nan(file: h5py.File) -> None:
    """One number of one key is none."""
    file["layers/01/k"][1, 37, 5] = np.nan


def without_tokens(file: h5py.File) -> None:
    """Every data set is empty along its tokens."""
    for name in ("ids", "text", "position_ids"):
        replace(file, f"tokens/{name}", file[f"tokens/{name}"][:0])
    replace(file, "tokens/offsets", np.zeros(1, dtype=np.int64))
    for layer in range(LAYERS):
        for name in ("q", "k", "v"):
            path = f"layers/{layer:02d}/{name}"
            replace(file, path, file[path][:, :0])


def link_outside(file: h5py.File) -> None:
    """The values lie in another file."""
    del file["layers/00/v"]
    file["layers/00/v"] = h5py.ExternalLink("sound.h5", "/layers/00/v")


CHANGES: dict[str, Callable[[h5py.File], None]] = {
    "other_format": lambda file: file.attrs.modify("format", "something-else"),
    "wrong_version": lambda file: file.attrs.modify("version", 9),
    "wrong_heads": lambda file: file.attrs.modify("num_kv_heads", 3),
    "wrong_shape": lambda file: replace(file, "layers/00/k", file["layers/00/k"][:, :60]),
    "wrong_type": lambda file: replace(file, "layers/00/k", file["layers/00/k"][:].astype(np.int32)),
    "missing_values": lambda file: file.__delitem__("layers/01/v"),
    "falling_offsets": lambda file: replace(file, "tokens/offsets", file["tokens/offsets"][:][::-1]),
    "nan": with_nan,
    "no_tokens": without_tokens,
    "linked": link_outside,
}


def main() -> None:
    """Writes them all."""
    BROKEN.mkdir(exist_ok=True)
    sound = BROKEN / "sound.h5"
    write_sound(sound)
    whole = sound.read_bytes()
    (BROKEN / "truncated.h5").write_bytes(whole[: len(whole) // 2])
    (BROKEN / "text.h5").write_text("This is no HDF5 file.\n", encoding="utf-8")
    for name, change in CHANGES.items():
        path = BROKEN / f"{name}.h5"
        write_sound(path)
        with h5py.File(path, "r+") as file:
            change(file)


if __name__ == "__main__":
    main()
