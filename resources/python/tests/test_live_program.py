"""`kvscope live` with the real worker: its numbers against those of the same lists on the capture that it wrote.

Needs the weights (sample_data/tinylm, or KVSCOPE_TINYLM names their folder) and the built program (KVSCOPE_PROGRAM).
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import h5py
import jsonschema
import numpy as np
import pytest

from kvscope_capture.command import load_model
from kvscope_press import answer_loss, full_nll, read_selection
from kvscope_press.evaluating import read_tokens

ROOT = pathlib.Path(__file__).resolve().parents[3]
TINYLM = os.environ.get("KVSCOPE_TINYLM", str(ROOT / "sample_data/tinylm"))
PROGRAM = os.environ.get("KVSCOPE_PROGRAM", "")
pytestmark = pytest.mark.skipif(
    not (PROGRAM and pathlib.Path(TINYLM, "model.safetensors").is_file()),
    reason="KVSCOPE_TINYLM (weights) or KVSCOPE_PROGRAM (built kvscope) is not set",
)
NEEDLE = "The number of the lamp is 7342. "
QUESTION, ANSWER = "\nQuestion: What is the number of the lamp?\nAnswer:", " The number of the lamp is 7342."
SPECS = [
    "keydiff@0.25",
    "snapkv@0.1",
    "balancekv@0.5",
    "subgen_kcenter@0.5",
    "snapkv:minference@0.2",
    "streaming_llm@60t",
    "pyramidkv@0.2",
]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> tuple[pathlib.Path, dict[str, Any], str]:
    """The folder with the capture, the table as JSON, and as text."""
    folder = tmp_path_factory.mktemp("live")
    words = (ROOT / "sample_data/genesis.txt").read_text(encoding="utf-8").split()[:360]
    folder.joinpath("text.txt").write_text(" ".join([*words[:100], NEEDLE, *words[100:]]), encoding="utf-8")
    command = [PROGRAM, "live", TINYLM, "--python", f"'{sys.executable}'", "--text", "text.txt"]
    command += [
        "--question",
        QUESTION,
        "--answer",
        ANSWER,
        "--generate",
        "12",
        "--importance",
        "100",
        "--gradient",
        "4",
        "--capture-to",
        "c.h5",
        "--out",
        "t.json",
    ]
    command += [word for spec in [*SPECS, "exact"] for word in ("--policy", spec)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "resources/python"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(folder.joinpath("t.json").read_text(encoding="utf-8")), done.stdout


def test_the_table_is_as_described(live: tuple[pathlib.Path, dict[str, Any], str]) -> None:
    schema = json.loads((ROOT / "resources/schemas/live.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(live[1])
    assert [row["spec"] for row in live[1]["rows"]] == [*SPECS, "exact@1"]
    chunks = -(-live[1]["cut"] // 100)
    assert live[2].count("\n") == 3 + len(SPECS) + 1 + 2 + min(chunks, 5) + 2 + len(SPECS) + 1
    assert [chunk["begin"] for chunk in live[1]["chunks"]] == list(range(0, live[1]["cut"], 100))


def test_losses_are_those_of_the_saved_capture(live: tuple[pathlib.Path, dict[str, Any], str]) -> None:
    """The lists of the saved capture cost the model what the live rows say."""
    folder, table, _ = live
    tokens = read_tokens(folder / "c.h5")
    model = load_model(TINYLM, None, "fp32", "cpu")[0]
    wanted = [token for begin, end in tokens.target(table["cut"]) for token in range(begin, end)]
    full = full_nll(model, tokens.ids)
    assert table["tokens"] == len(tokens.ids)
    assert table["full"]["nll"] == pytest.approx(full[wanted].mean(), abs=1e-5)
    with h5py.File(folder / "c.h5") as file:
        assert np.nanmax(np.abs(file["tokens/nll"][()] - full)) < 1e-3
    for row in table["rows"][:-1]:
        words = [PROGRAM, "evict", "c.h5", "--policy", row["spec"], "--out", "l.json"]
        subprocess.run(words, check=True, capture_output=True, cwd=folder)
        selection = read_selection(folder / "l.json")
        assert selection.cut == table["cut"]
        assert row["nll"] == pytest.approx(answer_loss(model, tokens.ids, selection, wanted).mean(), abs=1e-5), row
        assert row["retention"] == pytest.approx(row["kept"] / table["cut"])
        counts = {layer: head.kept.size for (layer, _), head in selection.heads.items()}
        assert not row["spec"].startswith("pyramidkv") or counts[0] > counts[3] > counts[5]


def test_what_the_answer_needs_is_in_the_table(live: tuple[pathlib.Path, dict[str, Any], str]) -> None:
    """A policy that keeps everything keeps every chunk and loses nothing; weighted lists have no prediction."""
    chunks, exact = live[1]["chunks"], live[1]["rows"][-1]
    rises = [chunk["rise"] for chunk in chunks]
    assert max(rises) > 0.01 and all(np.isfinite(rises))
    assert exact["chunks_kept"] == pytest.approx([1] * len(chunks), abs=1e-12) and exact["predicted_rise"] == 0
    widths = [chunk["end"] - chunk["begin"] for chunk in chunks]
    for row in live[1]["rows"]:
        assert np.average(row["chunks_kept"], weights=widths) == pytest.approx(row["retention"], abs=1e-9)
        assert row["predicted_rise"] is None or not row["spec"].startswith("balancekv")
        assert row["predicted_rise"] is not None or not row["spec"].startswith(("keydiff", "streaming_llm"))
        if row["predicted_rise"] is not None:
            assert row["predicted_rise"] == pytest.approx(np.sum(row["per_head"]), abs=1e-9)


def test_the_whole_context_is_the_full_cache(live: tuple[pathlib.Path, dict[str, Any], str]) -> None:
    exact = live[1]["rows"][-1]
    assert exact["nll"] == live[1]["full"]["nll"] and exact["kl"] == 0 and exact["flip_rate"] == 0
    assert exact["text"] == live[1]["full"]["text"] and exact["first_divergence"] is None
