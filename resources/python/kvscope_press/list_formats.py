"""The three forms of a list that `kvscope evict` writes (JSON, CSV, HDF5), all as the fields of its JSON form."""

from __future__ import annotations

import csv
import itertools
import json
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import h5py

from kvscope_capture.errors import CaptureError

Fields = dict[str, Any]


def read_fields(path: pathlib.Path) -> Any:
    """Fields by the names of the JSON form, unchecked. Errors (CaptureError): the file cannot be read as any form."""
    try:
        if h5py.is_hdf5(path):
            with h5py.File(path, "r") as file:
                return _hdf5_fields(file)
        text = path.read_bytes().decode("utf-8-sig")  # keeps line ends: a token's text may hold one
        return _csv_fields(text) if text.startswith("#") else json.loads(text)
    except (OSError, KeyError, ValueError, TypeError, IndexError, csv.Error) as error:
        raise CaptureError(
            f"cannot be read ({error})", str(path), "Write it with kvscope evict --out FILE.json, .csv or .h5"
        ) from error


def _nested(flat: dict[str, Any], parameters: dict[str, Any], heads: list[Fields]) -> Fields:
    """The JSON form of CSV and HDF5, which flatten fields (capture_hash) and write truth values as texts."""
    return {
        **flat,
        "version": int(flat.get("version", 1)),
        "cut_token": int(flat.get("cut_token", 0)),
        "simulated": flat.get("simulated"),
        "budget": {"requested": flat.get("budget_requested", "")},
        "capture": {"hash": flat.get("capture_hash", ""), "warning": flat.get("capture_warning", "")},
        "parameters": parameters,
        "heads": heads,
    }


def _hdf5_fields(file: h5py.File) -> Fields:
    columns: dict[str, list[Any]] = {}
    file.visititems(lambda name, node: columns.update({name: node[()].tolist()}) if hasattr(node, "shape") else None)
    offsets = columns["heads/offsets"]
    heads: list[Fields] = []
    for row, place in enumerate(zip(columns["heads/layer"], columns["heads/kv_head"], strict=True)):
        part = slice(offsets[row], offsets[row + 1])
        head = dict(zip(("layer", "kv_head"), place, strict=True)) | {"kept": columns["kept/position"][part]}
        names = {"numerator": "kept/weight", "denominator": "kept/denominator_weight"}
        head["weights"] = {name: columns[column][part] for name, column in names.items() if column in columns}
        heads.append(head)
    for index, row in enumerate(columns.get("query_heads/head", [])):
        begin, end = columns["query_heads/offsets"][index : index + 2]
        own = {"query_head": columns["query_heads/query_head"][index]}
        own["kept"] = columns["query_heads/position"][begin:end]
        heads[row].setdefault("query_heads", []).append(own)
    return _nested(dict(file.attrs), json.loads(file.attrs.get("parameters", "{}")), heads)


def _records(text: str, comments: list[str]) -> Iterator[list[str]]:
    """Rows of the table; the lines between them that begin with # are added to `comments`.

    A line ends at \\n alone, as the program writes it: str.splitlines would also end one inside a token's text, at
    U+2028 for example. A line inside a quoted field begins no record, whatever its first character is.
    """
    lines = iter(re.split(r"(?<=\n)", text))
    for line in lines:
        if line.startswith("#"):
            comments.append(line)
        elif line.strip("\r\n"):
            yield next(csv.reader(itertools.chain([line], lines)))


def _csv_fields(text: str) -> Fields:
    comments: list[str] = []
    header, *records = list(_records(text, comments)) or [[]]
    if doubled := [name for name in header if name and header.count(name) > 1]:
        raise ValueError(f"column '{doubled[0]}' is there twice")
    flat = dict(line[2:].rstrip("\r\n").partition(": ")[::2] for line in comments if line.startswith("# "))
    flat = {key: re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], v) for key, v in flat.items()}
    heads: dict[tuple[int, int], Fields] = {}

    def head_of(layer: str, kv_head: str) -> Fields:
        place = {"layer": int(layer), "kv_head": int(kv_head)}
        return heads.setdefault((int(layer), int(kv_head)), place | {"kept": [], "numerator": [], "denominator": []})

    for key in flat:  # there is a margin.LAYER.HEAD for every head, even for one that keeps nothing
        if key.startswith("margin."):
            head_of(*key.split(".")[1:])
    for record in records:
        row = dict(zip(header, record, strict=True))
        head = head_of(row["layer"], row["kv_head"])
        head["kept"].append(int(row["position"]))
        head["numerator"].append(float(row.get("weight") or 1))
        head["denominator"].append(float(row.get("denominator_weight") or 1))
        for query_head in (row.get("query_heads") or "").split():
            head.setdefault("own", {}).setdefault(int(query_head), []).append(int(row["position"]))
    for head in heads.values():
        weights = {name: head.pop(name) for name in ("numerator", "denominator")}
        head["weights"] = {name: values for name, values in weights.items() if any(value != 1 for value in values)}
        head["query_heads"] = [{"query_head": q, "kept": kept} for q, kept in head.pop("own", {}).items()]
    parameters = {k.removeprefix("parameter."): v for k, v in flat.items() if k.startswith("parameter.")}
    return _nested(flat, parameters, list(heads.values()))
