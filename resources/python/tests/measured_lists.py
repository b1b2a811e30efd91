"""What the tests of kvscope-evaluate share: a model, its capture and lists of it."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import h5py
from test_prompt import byte_level_tokenizer
from tiny_models import tiny_model

from kvscope_capture import CaptureOptions, Prompt, SegmentKind, capture_prompt

HEAD = {"layer": 0, "kv_head": 1, "kept": [0, 3, 4]}


def capture_tiny(folder: pathlib.Path, model: Any = None) -> None:
    """Writes the model (a Llama if none is given) to the folder `model`, and its capture to c.h5."""
    model, tokenizer = model or tiny_model("llama"), byte_level_tokenizer(folder)
    model.resize_token_embeddings(300)
    model.save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    prompt = Prompt(tokenizer, bos=True).add_context([("Der Rest ist Text. " * 3, None)])
    prompt.add("Straße?", SegmentKind.QUESTION).add(" nichts", SegmentKind.ANSWER)
    capture_prompt(model, prompt, folder / "c.h5", CaptureOptions())


def write_list(path: pathlib.Path, **changes: Any) -> pathlib.Path:
    data = {
        "format": "kvscope-selection",
        "version": 1,
        "cut": "default",
        "cut_token": 6,
        "policy": "p",
        "variant": "v",
    }
    data |= {"budget": {"requested": "0.5", "kept": 3}, "parameters": {"a": "1"}, "heads": [HEAD]}
    path.write_text(json.dumps({k: v for k, v in (data | changes).items() if v is not None}))
    return path


def rows_of(path: pathlib.Path, name: str) -> list[list[float]]:
    with h5py.File(path) as file:
        rows: list[list[float]] = file[f"calibration/{name}"][()].tolist()
        return rows


def lists_of(folder: pathlib.Path, out: pathlib.Path, retentions: list[float]) -> list[str]:
    with h5py.File(folder / "c.h5") as file:
        cut = int(file["tokens/segments"][0, 1])
        capture = {"hash": str(file.attrs["capture_hash"]), "file": "c.h5"}
    names = []
    for retention in retentions:
        kept = list(range(cut))[-max(1, int(retention * cut)) :]
        heads = [{"layer": layer, "kv_head": head, "kept": kept} for layer in range(3) for head in range(2)]
        names.append(str(write_list(out / f"{retention}.json", cut_token=cut, heads=heads, capture=capture)))
    return names


def other_seed(captured: pathlib.Path, tmp_path: pathlib.Path) -> list[str]:
    """Two lists that keep equally many, but different tokens."""
    (first,) = lists_of(captured, tmp_path, [0.3])
    data = json.loads(pathlib.Path(first).read_text())
    moved = [head | {"kept": [kept - 1 for kept in head["kept"]]} for head in data["heads"]]
    (tmp_path / "seed.json").write_text(json.dumps(data | {"heads": moved, "seed": 2}))
    return [first, str(tmp_path / "seed.json")]


def many_lists(captured: pathlib.Path, tmp_path: pathlib.Path) -> list[str]:
    """Arguments for three lists of one cut and one of another."""
    lists = lists_of(captured, tmp_path, [0.8, 0.5, 0.3])
    data = json.loads(pathlib.Path(lists[0]).read_text())
    heads = [head | {"kept": [0, 1, 2]} for head in data["heads"]]
    lists.append(str(write_list(tmp_path / "early.json", cut_token=8, heads=heads, policy="early")))
    return [str(captured / "c.h5"), str(captured / "model"), "--dry-run", "--selections", *lists]
