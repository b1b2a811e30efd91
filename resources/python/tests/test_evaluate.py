"""Reading lists, writing calibration rows, and the command over both."""

from __future__ import annotations

import csv
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
from typing import Any

import h5py
import numpy as np
import pytest
import torch
import transformers
from test_prompt import byte_level_tokenizer
from tiny_models import tiny_model

from kvscope_capture import CaptureError, CaptureOptions, Prompt, SegmentKind, capture_prompt, hash_of_capture
from kvscope_press import evaluating, pruned_context, read_selection
from kvscope_press.calibration import Row, Setting, add_rows
from kvscope_press.command import main
from kvscope_press.evaluating import wilson_interval
from kvscope_press.measuring import AnswerLoss
from kvscope_press.recorded_selection import whole_selection

HEAD = {"layer": 0, "kv_head": 1, "kept": [0, 3, 4]}
OWN = {"query_head": 2, "kept": [0, 3]}


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


def test_a_list_is_read_with_its_weights(tmp_path: pathlib.Path) -> None:
    weighted = HEAD | {"weights": {"numerator": [1, 2.5, 0], "denominator": [1, 1, 3]}}
    selection = read_selection(write_list(tmp_path / "l.json", heads=[weighted, HEAD | {"kv_head": 0}]))
    assert (selection.policy, selection.variant, selection.cut, selection.budget) == ("p", "v", 6, "0.5")
    assert selection.heads[0, 1].numerator.tolist() == [1, 2.5, 0]
    assert selection.heads[0, 1].denominator.tolist() == [1, 1, 3]
    assert selection.heads[0, 0].numerator.tolist() == [1, 1, 1]
    assert selection.retention() == 0.5


def test_a_list_is_read_with_the_sets_of_query_heads(tmp_path: pathlib.Path) -> None:
    both = HEAD | {"query_heads": [OWN, {"query_head": 3, "kept": [4], "margin": 0.5}]}
    head = read_selection(write_list(tmp_path / "l.json", heads=[both])).heads[0, 1]
    assert {q: own.tolist() for q, own in head.query_heads.items()} == {2: [0, 3], 3: [4]}
    assert (head.attended(), head.stored(), head.of_query_head(3).kept.tolist()) == (1.5, 3, [4])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "other"}, "no kvscope-selection of version 1"),
        ({"version": 2}, "no kvscope-selection of version 1"),
        ({"cut_token": None}, "does not say before which token"),
        ({"heads": []}, "names no heads"),
        ({"heads": [{"layer": 0}]}, "a head cannot be read"),
        ({"heads": [HEAD | {"kept": [3, 3]}]}, "kept does not rise"),
        ({"heads": [HEAD | {"kept": [0, 6]}]}, "outside the 6 before the cut"),
        ({"heads": [HEAD | {"kept": [-1, 2]}]}, "outside the 6 before the cut"),
        ({"heads": [HEAD | {"weights": {"numerator": [1]}}]}, "one number of at least 0"),
        ({"heads": [HEAD | {"query_heads": [OWN, OWN]}]}, "a query head has two sets"),
        ({"heads": [HEAD | {"query_heads": [OWN]}]}, "not the union"),
        ({"heads": [HEAD | {"query_heads": [OWN | {"kept": [3, 0]}]}]}, "kept does not rise"),
        ({"heads": [HEAD | {"query_heads": [OWN], "weights": {"numerator": [1, 1, 1]}}]}, "beside weights"),
        ({"heads": [HEAD | {"weights": {"denominator": [1, -1, 1]}}]}, "one number of at least 0"),
    ],
)
def test_lists_that_contradict_themselves(changes: dict[str, Any], message: str, tmp_path: pathlib.Path) -> None:
    with pytest.raises(CaptureError, match=message):
        read_selection(write_list(tmp_path / "l.json", **changes))


def test_a_cut_from_outside_serves_lists_without_one(tmp_path: pathlib.Path) -> None:
    assert read_selection(write_list(tmp_path / "l.json", cut_token=None), cut=8).cut == 8
    assert read_selection(write_list(tmp_path / "l.json"), cut=8).cut == 6


def rows_of(path: pathlib.Path, name: str) -> list[list[float]]:
    with h5py.File(path) as file:
        rows: list[list[float]] = file[f"calibration/{name}"][()].tolist()
        return rows


def test_rows_are_merged_by_retention_and_context(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "c.h5"
    h5py.File(path, "w").close()
    selection = dataclasses.replace(whole_selection(1, 1, 6), policy="p", variant="v")
    setting = Setting.of(selection, 3)
    add_rows(path, [(selection, setting, Row(0.5, 1, 2, 3)), (selection, setting, Row(0.1, 1, 2, 9))])
    add_rows(path, [(selection, setting, Row(0.5, 1, 2, 4)), (selection, setting, Row(0.1, 1, 2, 8, 1))])
    assert rows_of(path, "p/v") == [[0.1, 1, 2, 9, 0], [0.5, 1, 2, 4, 0], [0.1, 1, 2, 8, 1]]
    other = Setting.of(dataclasses.replace(selection, cut=5), 3)
    before = path.read_bytes()
    with pytest.raises(CaptureError, match="another cut, target, parameters, model or tool"):
        add_rows(path, [(selection, setting, Row(0.7, 1, 2, 4)), (selection, other, Row(0.2, 1, 2, 4))])
    assert path.read_bytes() == before
    add_rows(path, [(selection, other, Row(0.2, 1, 2, 4)), (selection, other, Row(0.3, 1, 2, 4))], replace=True)
    assert rows_of(path, "p/v") == [[0.2, 1, 2, 4, 0], [0.3, 1, 2, 4, 0]]
    with pytest.raises(CaptureError, match="--replace, or evaluate lists of one setting"):
        add_rows(path, [(selection, setting, Row(1, 1, 1, 1)), (selection, other, Row(1, 1, 1, 1))], replace=True)
    assert list(tmp_path.iterdir()) == [path]


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("captured")
    model, tokenizer = tiny_model("llama"), byte_level_tokenizer(folder)
    model.resize_token_embeddings(300)
    model.save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    prompt = Prompt(tokenizer, bos=True).add_context([("Der Rest ist Text. " * 3, None)])
    prompt.add("Straße?", SegmentKind.QUESTION).add(" nichts", SegmentKind.ANSWER)
    capture_prompt(model, prompt, folder / "c.h5", CaptureOptions())
    return folder


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
    assert "another cut, target, parameters, model or tool" in capsys.readouterr().err.splitlines()[-1]


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


def test_two_lists_with_one_row_are_refused(captured: pathlib.Path, tmp_path: pathlib.Path, capsys: Any) -> None:
    """Two seeds of one policy keep as much; the second row would replace the first."""
    out, (first,) = tmp_path / "c.h5", lists_of(captured, tmp_path, [0.3])
    out.write_bytes((captured / "c.h5").read_bytes())
    data = json.loads(pathlib.Path(first).read_text())
    second = tmp_path / "seed.json"
    moved = [head | {"kept": [kept - 1 for kept in head["kept"]]} for head in data["heads"]]
    second.write_text(json.dumps(data | {"heads": moved, "seed": 2}))
    arguments = [str(out), str(captured / "model"), "--selections", first, str(second)]
    assert main(arguments) == 2
    assert f"keeps as much as {first} by the same policy" in capsys.readouterr().err.splitlines()[-1]
    assert out.read_bytes() == (captured / "c.h5").read_bytes()
    assert main([*arguments, "--dry-run"]) == 0


def test_a_loss_that_is_no_number_makes_no_row(
    captured: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    out = tmp_path / "c.h5"
    out.write_bytes((captured / "c.h5").read_bytes())
    bad = AnswerLoss(np.array([np.nan]), np.array([False]))
    monkeypatch.setattr(evaluating, "answer_loss", lambda *_: bad)
    arguments = ["--selections", *lists_of(captured, tmp_path, [0.3])]
    assert main([str(out), str(captured / "model"), *arguments]) == 2
    assert "behind the pruned cache is NaN or infinite" in capsys.readouterr().err.splitlines()[-1]
    assert out.read_bytes() == (captured / "c.h5").read_bytes()


def many_lists(captured: pathlib.Path, tmp_path: pathlib.Path) -> list[str]:
    """Arguments for three lists of one cut and one of another."""
    lists = lists_of(captured, tmp_path, [0.8, 0.5, 0.3])
    data = json.loads(pathlib.Path(lists[0]).read_text())
    heads = [head | {"kept": [0, 1, 2]} for head in data["heads"]]
    lists.append(str(write_list(tmp_path / "early.json", cut_token=8, heads=heads, policy="early")))
    return [str(captured / "c.h5"), str(captured / "model"), "--dry-run", "--selections", *lists]


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
        "rows with another cut, target, parameters, model or tool are there already": ["--selections", str(other)],
    }
    for message, change in cases.items():
        assert main([*arguments, *change]) == 2
        assert message in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.skipif("KVSCOPE_PROGRAM" not in os.environ, reason="KVSCOPE_PROGRAM does not name the built kvscope")
@pytest.mark.parametrize(
    "policy", ["keydiff@0.1", "snapkv:original_class@0.1", "balancekv:longbench,sink=4,recent=16@0.25", "subgen@0.3"]
)
def test_every_form_of_a_list_is_read_alike(policy: str, tmp_path: pathlib.Path) -> None:
    """Weights and sets of query heads among them."""
    sample = pathlib.Path(__file__).parents[3] / "sample_data/needle-1k.h5"
    read = []
    for form in ("json", "csv", "h5"):
        path = tmp_path / f"list.{form}"
        command = [os.environ["KVSCOPE_PROGRAM"], "evict", str(sample), "--policy", policy, "--layers", "0,3"]
        subprocess.run([*command, "--out", str(path)], check=True, capture_output=True)
        read.append(read_selection(path))
    expected, *others = read
    assert expected.cut == 995 and expected.parameters and len(expected.heads) == 4
    for other in others:
        for field in ("policy", "variant", "parameters", "budget", "cut", "capture_hash", "simulated"):
            assert getattr(other, field) == getattr(expected, field), field
        assert other.heads.keys() == expected.heads.keys()
        for place, head in expected.heads.items():
            found = other.heads[place]
            assert found.kept.tolist() == head.kept.tolist()
            assert found.numerator == pytest.approx(head.numerator, rel=1e-6)
            assert found.denominator == pytest.approx(head.denominator, rel=1e-6)
            assert {q: own.tolist() for q, own in found.query_heads.items()} == {
                q: own.tolist() for q, own in head.query_heads.items()
            }


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0c", "\r", "\n"])
def test_texts_of_tokens_end_no_line(separator: str, tmp_path: pathlib.Path) -> None:
    """The program writes the text of a kept token as it is, in quotes where it holds \\r or \\n."""
    quote = '"' if separator in "\r\n" else ""
    comments = "# format: kvscope-selection\n# version: 1\n# cut_token: 6\n# policy: p\n"
    rows = f"0,1,2,{quote}a{separator}# b{quote}\n# a comment between rows\n0,1,3,#\n0,1,4,c\n"
    table = f"{comments}layer,kv_head,position,text\n{rows}"
    for name, whole in (("unix.csv", table), ("dos.csv", table.replace("\n", "\r\n"))):
        (tmp_path / name).write_bytes(whole.encode())
        assert read_selection(tmp_path / name).heads[0, 1].kept.tolist() == [2, 3, 4]


def test_files_that_are_no_list(tmp_path: pathlib.Path) -> None:
    h5py.File(tmp_path / "empty.h5", "w").close()
    (tmp_path / "bytes.json").write_bytes(b"\xff\x00")
    (tmp_path / "half.csv").write_text("# format: kvscope-selection\n# cut_token: 6\nlayer,kv_head\n0,1\n")
    (tmp_path / "short.csv").write_text("# cut_token: 6\nlayer,kv_head,position\n0,1,2\n0,1\n")
    for name in ("empty.h5", "bytes.json", "half.csv", "short.csv"):
        with pytest.raises(CaptureError, match=f"{name}: cannot be read .* --out FILE.json, .csv or .h5"):
            read_selection(tmp_path / name)


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
