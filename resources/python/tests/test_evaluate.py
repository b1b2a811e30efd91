"""The command that measures lists: its sentences, its table and what it refuses."""

from __future__ import annotations

import csv
import json
import pathlib
import re
import shutil
from typing import Any

import h5py
import numpy as np
import pytest
import torch
import transformers
from measured_lists import HEAD, lists_of, many_lists, rows_of, write_list
from tiny_models import LetterTokenizer, random_ids, tiny_model

from kvscope_capture import SegmentKind, hash_of_capture
from kvscope_press import evaluating, pruned_context
from kvscope_press.command import main
from kvscope_press.evaluating import wilson_interval
from kvscope_press.recorded_selection import whole_selection


def test_the_command_writes_rows_and_table(captured: pathlib.Path, tmp_path: pathlib.Path, capsys: Any) -> None:
    out = tmp_path / "c.h5"
    out.write_bytes((captured / "c.h5").read_bytes())
    lists = lists_of(captured, tmp_path, [1.0, 0.3])
    table = tmp_path / "t.csv"
    arguments = [str(out), str(captured / "model"), "--selections", *lists, "--out", str(table), "--generate", "3"]
    assert main(arguments) == 0
    pruned, full = rows_of(out, "p/v")
    assert full[0] == 1.0 and full[3] == pytest.approx(full[2], abs=1e-5)
    assert pruned[0] == pytest.approx(0.3, abs=0.05) and abs(pruned[3] - pruned[2]) > 1e-3
    with h5py.File(out) as file:
        assert hash_of_capture(file) == file.attrs["capture_hash"]
        nll = file["tokens/nll"][()]
        begin, end = next((b, e) for b, e, kind in file["tokens/segments"] if kind == SegmentKind.ANSWER)
        assert full[2] == pytest.approx(float(np.mean(nll[begin:end])), abs=1e-4)
    lines = list(csv.DictReader(table.open()))
    assert [float(line["retention"]) for line in lines] == [full[0], pruned[0]]
    assert capsys.readouterr().out.count("NLL") == 2


def test_layers_that_a_list_leaves_out_keep_everything(
    captured: pathlib.Path, tmp_path: pathlib.Path, capsys: Any
) -> None:
    """The loss lies between that of the whole list and that of the full cache; nothing is stored for calibration."""
    out, table = tmp_path / "c.h5", tmp_path / "t.csv"
    out.write_bytes((captured / "c.h5").read_bytes())
    every = lists_of(captured, tmp_path, [0.3])[0]
    data = json.loads(pathlib.Path(every).read_text())
    some = tmp_path / "some.json"
    some.write_text(json.dumps(data | {"heads": [head for head in data["heads"] if head["layer"] == 1]}))
    full = tmp_path / "full.json"
    whole = {"kept": list(range(data["cut_token"]))}
    full.write_text(json.dumps(data | {"heads": [h if h["layer"] == 1 else h | whole for h in data["heads"]]}))
    assert main([str(out), str(captured / "model"), "--selections", str(some), "--out", str(table)]) == 0
    assert "4 heads are not in the list and keep everything" in capsys.readouterr().out
    assert out.read_bytes() == (captured / "c.h5").read_bytes()
    arguments = [str(out), str(captured / "model"), "--selections", str(full), "--out", str(tmp_path / "f.csv")]
    assert main(arguments) == 0
    found, expected = (next(csv.DictReader(t.open())) for t in (table, tmp_path / "f.csv"))
    assert float(found["nll_compressed"]) == pytest.approx(float(expected["nll_compressed"]), abs=1e-6)
    assert float(found["retention"]) == pytest.approx(float(expected["retention"]), abs=1e-9)


def changed_model(captured: pathlib.Path, folder: pathlib.Path, share: float) -> pathlib.Path:
    """The captured model with noise on its weights, of this share of their spread: another checkpoint of it."""
    shutil.copytree(captured / "model", folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    torch.manual_seed(3)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() >= 2:
                weight.add_(torch.randn_like(weight) * weight.std() * share)
    model.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("losses", [True, False], ids=["losses", "keys"])
def test_another_model_than_the_captured_one_is_refused(
    losses: bool, captured: pathlib.Path, tmp_path: pathlib.Path, capsys: Any
) -> None:
    """By its losses, or by its keys where the capture holds no loss; the good row stays."""
    out, other = tmp_path / "c.h5", changed_model(captured, tmp_path / "other", 0.3)
    out.write_bytes((captured / "c.h5").read_bytes())
    if not losses:
        with h5py.File(out, "a") as file:
            del file["tokens/nll"]
    arguments = ["--selections", *lists_of(captured, tmp_path, [0.3])]
    assert main([str(out), str(captured / "model"), *arguments]) == 0
    before = out.read_bytes()
    capsys.readouterr()
    assert main([str(out), str(other), *arguments, "--replace"]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert f"the model's {'losses' if losses else 'keys in layer 0'} are not those of the capture" in said
    assert out.read_bytes() == before
    with h5py.File(out) as file:
        found = dict(file["calibration/p/v"].attrs)
    assert (found["model"], found["model_revision"], found["compute_dtype"]) == ("model", "", "fp32")
    assert main([str(out), str(captured / "model"), *arguments, "--compute-dtype", "bf16"]) == 2
    assert "another cut, target, parameters, model, arithmetic or tool" in capsys.readouterr().err.splitlines()[-1]
    with h5py.File(out, "a") as file:
        file.attrs["self_check"] = json.dumps({"model_dtype": "bfloat16"})
    assert main([str(out), str(other), *arguments, "--replace"]) == 2
    assert "or add --compute-dtype bf16, as the capture says" in capsys.readouterr().err.splitlines()[-1]


def test_a_simulated_list_says_so(captured: pathlib.Path, tmp_path: pathlib.Path, capsys: Any) -> None:
    """In the sentence, the table and beside the rows."""
    out, table, (plain,) = tmp_path / "c.h5", tmp_path / "t.csv", lists_of(captured, tmp_path, [0.3])
    out.write_bytes((captured / "c.h5").read_bytes())
    path = pathlib.Path(plain)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"simulated": True}))
    arguments = [str(out), str(captured / "model"), "--out", str(table), "--selections", plain]
    assert main(arguments) == 0
    assert re.search(r"kept \d+\.\d% \(simulated\)  NLL", capsys.readouterr().out)
    assert [line["simulated"] for line in csv.DictReader(table.open())] == ["true"]
    with h5py.File(out) as file:
        assert file["calibration/p/v"].attrs["simulated"] == 1


def test_marks_and_origin_of_a_list_are_in_the_table(
    captured: pathlib.Path, tmp_path: pathlib.Path, capsys: Any
) -> None:
    """A row's list and seed, and the marks that cast doubt on its numbers; the marks are printed, too."""
    out, table, (plain,) = tmp_path / "c.h5", tmp_path / "t.csv", lists_of(captured, tmp_path, [0.3])
    out.write_bytes((captured / "c.h5").read_bytes())
    data = json.loads(pathlib.Path(plain).read_text())
    fast = {"arithmetic": "fast float", "seed": 2**63, "capture": data["capture"] | {"warning": "it failed"}}
    pathlib.Path(plain).write_text(json.dumps(data | fast))
    arguments = [str(out), str(captured / "model"), "--out", str(table), "--selections", plain]
    assert main([*arguments, "--context-id", "3"]) == 0
    assert re.search(r"kept \d+\.\d% \(fast float; it failed\)  NLL", capsys.readouterr().out)
    (line,) = csv.DictReader(table.open())
    found = [line[name] for name in ("list", "cut_token", "seed", "context", "arithmetic", "capture_warning")]
    assert found == [plain, str(data["cut_token"]), str(2**63), "c.h5#3", "fast float", "it failed"]
    with h5py.File(out) as file:
        assert file["calibration/p/v"].attrs["arithmetic"] == "fast float"
    pathlib.Path(plain).write_text(json.dumps(data | {"arithmetic": "exact index contract"}))
    assert main(arguments) == 2
    assert "rows with another cut, target, parameters, model, arithmetic or tool" in capsys.readouterr().err


def test_lists_of_one_cut_share_the_context(
    captured: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    arguments, read = many_lists(captured, tmp_path), []
    decode = pruned_context.decode

    def counted(model: Any, ids: list[int], begin: int, *more: Any, **kwargs: Any) -> Any:
        read.extend([len(ids)] * (begin == 0))
        return decode(model, ids, begin, *more, **kwargs)

    monkeypatch.setattr(pruned_context, "decode", counted)
    assert main([*arguments, "--out", str(tmp_path / "together.csv")]) == 0
    assert len(read) == 2 and read[0] == 8  # tokens, a cut
    together = list(csv.DictReader((tmp_path / "together.csv").open()))
    for line, path in zip(together, [arguments[-1], *arguments[4:7]], strict=True):
        assert main([*arguments[:4], path, "--out", str(tmp_path / "alone.csv")]) == 0
        assert next(csv.DictReader((tmp_path / "alone.csv").open())) == line


def test_few_tokens_and_few_rows_are_called_few(captured: pathlib.Path, tmp_path: pathlib.Path, capsys: Any) -> None:
    out = tmp_path / "c.h5"
    out.write_bytes((captured / "c.h5").read_bytes())
    assert main([str(out), *many_lists(captured, tmp_path)[1:2], "--selections", str(tmp_path / "0.3.json")]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"\d of \d answer tokens right \(\d+%; few: 95% interval \d+% to \d+%\)", printed), printed
    assert "few rows: 1 of p:v between 0 and 1" in printed
    assert wilson_interval(3, 4) == pytest.approx((0.3006, 0.9544), abs=1e-4)  # Wilson 1927, R's binom.confint
    assert wilson_interval(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)


def test_answers_before_the_cut_are_not_counted(captured: pathlib.Path, tmp_path: pathlib.Path) -> None:
    arguments, out, table = many_lists(captured, tmp_path), tmp_path / "c.h5", tmp_path / "t.csv"
    out.write_bytes((captured / "c.h5").read_bytes())
    with h5py.File(out, "a") as file:
        segments = file["tokens/segments"][()]
        del file["tokens/segments"]
        file["tokens/segments"] = np.vstack([segments, [[2, 4, SegmentKind.ANSWER]]]).astype(np.int32)
    assert main([str(out), *arguments[1:5], "--out", str(table)]) == 0
    assert next(csv.DictReader(table.open()))["answers"] == "1"


def test_without_an_answer_nothing_is_called_right(captured: pathlib.Path, tmp_path: pathlib.Path, capsys: Any) -> None:
    arguments, out, table = many_lists(captured, tmp_path), tmp_path / "c.h5", tmp_path / "t.csv"
    out.write_bytes((captured / "c.h5").read_bytes())
    with h5py.File(out, "a") as file:
        segments = file["tokens/segments"][()]
        del file["tokens/segments"]
        file["tokens/segments"] = segments[segments[:, 2] != SegmentKind.ANSWER]
    assert main([str(out), *arguments[1:5], "--out", str(table)]) == 0
    printed = capsys.readouterr().out
    assert "tokens behind the cut; the capture marks no answer" in printed and "right" not in printed
    line = next(csv.DictReader(table.open()))
    assert (line["right_tokens"], line["right_answers"], line["answers"]) == ("", "", "0")


def test_what_is_wrong_is_said_before_the_model_loads(
    captured: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    out = tmp_path / "c.h5"
    out.write_bytes((captured / "c.h5").read_bytes())
    arguments = [str(out), str(captured / "model"), "--selections", *lists_of(captured, tmp_path, [0.3])]
    assert main(arguments) == 0
    monkeypatch.setattr(evaluating, "load_model", lambda *_: pytest.fail("the model was loaded"))
    other = write_list(
        tmp_path / "other.json",
        cut_token=8,
        heads=[HEAD | {"layer": layer, "kv_head": head} for layer in range(3) for head in range(2)],
    )
    cases = {
        "the folder does not exist": ["--out", str(tmp_path / "no" / "t.csv")],
        "would replace what is read": ["--out", str(out)],
        "--generate: must not be negative": ["--generate", "-1"],
        "--device: nowhere cannot be used": ["--device", "nowhere"],
        "rows with another cut, target, parameters, model, arithmetic or tool are there already": [
            "--selections",
            str(other),
        ],
    }
    for message, change in cases.items():
        assert main([*arguments, *change]) == 2
        assert message in capsys.readouterr().err.splitlines()[-1]


def test_what_the_command_refuses(captured: pathlib.Path, tmp_path: pathlib.Path, capsys: Any) -> None:
    good = lists_of(captured, tmp_path, [0.5])[0]
    data = json.loads(pathlib.Path(good).read_text())
    cases = {
        "the list covers 5 heads, which are no whole layers of the model": data | {"heads": data["heads"][1:]},
        "the list was made from another capture": data | {"capture": {"hash": "0" * 64}},
        "nothing behind the cut can be measured": data | {"cut_token": 10_000},
    }
    before = (captured / "c.h5").read_bytes()
    for message, changed in cases.items():
        bad = tmp_path / "bad.json"
        bad.write_text(json.dumps(changed))
        assert main([str(captured / "c.h5"), str(captured / "model"), "--selections", good, str(bad)]) == 2
        assert message in capsys.readouterr().err
    assert main([good, str(captured / "model"), "--selections", good]) == 2
    assert "cannot be read" in capsys.readouterr().err
    assert (captured / "c.h5").read_bytes() == before


def test_texts_end_where_the_models_own_do() -> None:
    """Chat models have more end tokens than the tokenizer's one (Gemma's <end_of_turn>)."""
    model, ids = tiny_model("llama"), random_ids(24, 5)
    model.generation_config.eos_token_id = None
    tokens, whole = evaluating.CapturedTokens(ids, "", [(20, 24)]), whole_selection(3, 2, 16)
    read = pruned_context.ReadContext(model, ids, 16)
    text = evaluating.continuation(model, LetterTokenizer(), tokens, whole, 6, read)
    model.generation_config.eos_token_id = [1, ord(text[2]) - 32]
    assert evaluating.continuation(model, LetterTokenizer(), tokens, whole, 6, read) == text[: text.index(text[2])]
