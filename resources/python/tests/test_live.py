"""The worker's answers: tensors, losses and text of a context under policies, on every tested architecture.

test_live_traps.py tries the ways in which published evictions went wrong.
"""

from __future__ import annotations

import json
import pathlib
import socket
import threading
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from live_client import Local, texts_of
from test_press import CUT, MODELS, SEED, TOKENS, dense_logits, heads_of, random_selection
from test_prompt import byte_level_tokenizer
from tiny_models import CONFIGS, LetterTokenizer, random_ids, random_model, tiny_model, unlike_config

from kvscope_capture import CaptureOptions, Prompt, capture_prompt, hash_of_capture
from kvscope_capture import SegmentKind as K
from kvscope_capture.attention import layers_of
from kvscope_live import contexts
from kvscope_live import selections as selections_module
from kvscope_live.errors import UNSUPPORTED_MODEL, Stopped
from kvscope_live.models import OpenModel
from kvscope_press import RecordedSelection, answer_loss
from kvscope_press.evaluating import read_tokens
from kvscope_press.pruned_context import PrunedContext
from kvscope_press.recorded_selection import read_selection, whole_selection

IDS = random_ids(TOKENS, SEED)
BEGIN = CUT + 4  # of the answer
QUESTION, ANSWER = IDS[CUT:BEGIN], IDS[BEGIN:]
KINDS = ["plain", "one_set", "two_sets", "query_heads"]


def opened(name: str, seed: int = 0, dtype: torch.dtype = torch.float32) -> Local:
    """A session with one model, without a folder."""
    local = Local()
    model = tiny_model(name, seed).to(dtype)
    for index, layer in enumerate(layers_of(model)):
        layer.register_forward_pre_hook(lambda *_, index=index: local.channel.checkpoint(layer=index))
    local.session.models["m1"] = OpenModel(model, LetterTokenizer(), name, "")
    return local


def read(local: Local, ids: list[int], cut: int, **more: Any) -> dict[str, Any]:
    return local.ask("context/read", {"model_id": "m1", "ids": ids, "segments": [], "cut": cut} | more)


def send(local: Local, context: str, selection: RecordedSelection, name: str = "p") -> str:
    """Sends the recorded selection as the client does; returns its id."""
    rows, kept, numerator, denominator = [], [], [], []
    for (layer, head), chosen in sorted(selection.heads.items()):
        own = chosen.query_heads or {-1: chosen.kept}
        for query, tokens in own.items():
            rows.append([layer, head] if query < 0 else [layer, head, query])
            kept.append(np.isin(np.arange(selection.cut), tokens))
            numerator.append(chosen.numerator if query < 0 else np.ones(len(tokens), np.float32))
            denominator.append(chosen.denominator if query < 0 else np.ones(len(tokens), np.float32))
    weights = (np.concatenate(numerator), np.concatenate(denominator))
    plain = all((w == 1).all() for w in weights)
    answer = local.select(context, rows, kept, () if plain else weights, name)
    assert answer["kept"] == rows_of(selection)
    return str(answer["selection_id"])


def rows_of(selection: RecordedSelection) -> int:
    return sum(head.stored() if head.query_heads else head.kept.size for head in selection.heads.values())


def score(local: Local, context: str, chosen: list[str | None], **more: Any) -> dict[str, Any]:
    given = {"context_id": context, "selection_ids": chosen, "question_ids": QUESTION, "answer_ids": ANSWER}
    return local.ask("answer/score", given | more)


@pytest.mark.parametrize("name", CONFIGS)
def test_losses_are_those_of_the_dense_pass(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain and weighted sets, sets of query heads and the full cache, in one batch and alone."""
    local, cut = opened(name), CUT
    context = read(local, IDS, cut)["context_id"]
    model = local.session.models["m1"].model
    kinds = KINDS if name in MODELS else KINDS[:1]
    selections = [random_selection(heads_of(name), kind) for kind in kinds]
    chosen = [send(local, context, s, kind) for s, kind in zip(selections, kinds, strict=True)]
    answer = score(local, context, [*chosen, None])
    full = dense_logits(model, IDS, whole_selection(3, heads_of(name), CUT))[BEGIN - 1 : -1].double()
    for row, selection, one in zip(answer["rows"], selections, chosen, strict=False):
        logits = dense_logits(model, IDS, selection)[BEGIN - 1 : -1].double()
        wanted = torch.nn.functional.cross_entropy(logits, torch.tensor(ANSWER), reduction="none").tolist()
        assert row["losses"] == pytest.approx(wanted, abs=2e-4)
        assert row["nll"] == pytest.approx(np.mean(wanted), abs=2e-4)
        p, s = torch.log_softmax(full, -1), torch.log_softmax(logits, -1)
        assert row["kl"] == pytest.approx((p.exp() * (p - s)).sum(-1).tolist(), abs=2e-3)
        assert row["flips"] == (full.argmax(-1) != logits.argmax(-1)).tolist()
        assert row["flip_rate"] == np.mean(row["flips"]) and row["kl_mean"] == pytest.approx(np.mean(row["kl"]))
        alone = score(local, context, [one])["rows"][0]
        assert alone["losses"] == pytest.approx(row["losses"], abs=1e-5)
    for most in (0, 1000):  # rows masked in place, and gathered
        monkeypatch.setattr(selections_module, "MOST_ROWS", most)
        again = score(local, context, chosen)
        for row, other in zip(again["rows"], answer["rows"], strict=False):
            assert row["losses"] == pytest.approx(other["losses"], abs=1e-5)
    assert answer["rows"][-1]["nll"] == answer["full"]["nll"] and answer["rows"][-1]["kl_mean"] == 0


def compare(file: Any, other: Any) -> None:
    """The same names, the same numbers up to rounding, the same attributes but for self-check and hash."""
    names: list[set[str]] = [set(), set()]
    file.visit(names[0].add), other.visit(names[1].add)
    assert names[0] == names[1]
    for name in names[0] | {"/"}:
        assert file[name].attrs.keys() == other[name].attrs.keys()
        for key, value in other[name].attrs.items():
            assert key in ("self_check", "capture_hash") or np.array_equal(file[name].attrs[key], value), key
        if isinstance(file[name], h5py.Dataset):
            found, wanted = file[name][()].astype(float), other[name][()].astype(float)
            assert found.shape == wanted.shape
            assert np.nanmax(np.abs(found - wanted)) <= 1e-4 * np.nanmax(np.abs(wanted)), name


@pytest.mark.parametrize("name", MODELS)
def test_tensors_are_those_of_a_capture(name: str, tmp_path: pathlib.Path) -> None:
    """The saved tensors are those that views get, bit for bit, and up to rounding those of kvscope-capture."""
    local = opened(name)
    segments = [[0, CUT, "context"], [CUT, BEGIN, "question"], [BEGIN, TOKENS, "answer"]]
    out = tmp_path / "c.h5"
    answer = read(local, IDS, CUT, segments=segments, capture_to=str(out))
    info, context = answer["info"], answer["context_id"]
    prompt = Prompt(LetterTokenizer())
    prompt.ids, prompt.segments = IDS, [(0, CUT, K.CONTEXT), (CUT, BEGIN, K.QUESTION), (BEGIN, TOKENS, K.ANSWER)]
    capture_prompt(local.session.models["m1"].model, prompt, tmp_path / "p.h5", CaptureOptions("float32"), name)
    with h5py.File(out) as file, h5py.File(tmp_path / "p.h5") as other:
        assert answer["capture_hash"] == file.attrs["capture_hash"] == hash_of_capture(file)
        compare(file, other)
        for key in ("num_layers", "num_q_heads", "num_kv_heads", "head_dim", "value_dim", "model_id", "tool"):
            assert info[key] == file.attrs[key]
        rope = json.loads(file.attrs["rope"])
        assert info["rope"] == (None if name == "gpt2" else rope)
        names: list[str] = []
        file.get("rope", h5py.File).visit(lambda path: names.append(path) if path.endswith("inv_freq") else None) if (
            "rope" in file
        ) else None
        assert sorted(info["inv_freq"]) == sorted(path.removesuffix("inv_freq").rstrip("/") for path in names)
        for path in names:
            assert info["inv_freq"][path.removesuffix("inv_freq").rstrip("/")] == file["rope"][path][()].tolist()
        assert answer["tokens"]["nll"][1:] == pytest.approx(file["tokens/nll"][1:].tolist(), abs=1e-4)
        assert answer["tokens"]["nll"][0] is None and answer["tokens"]["ids"] == IDS
        kinds = {"context": 1, "question": 3, "answer": 4}
        assert [[b, e, kinds[k]] for b, e, k in answer["tokens"]["segments"]] == file["tokens/segments"][()].tolist()
        for layer, facts in enumerate(info["layers"]):
            group = file[f"layers/{layer:02d}"]
            for key in ("scaling", "attn_type", "sliding_window", "has_rope", "qk_norm", "softcap", "stage"):
                assert facts[key] == group.attrs[key], key
            assert facts["kv_of_q"] == group.attrs["kv_of_q"].tolist() and facts["queries"] == TOKENS
            assert facts["sinks"] == (group["sinks"][()].tolist() if "sinks" in group else None)
            for role in "qkv":
                found = local.tensor(context, layer, role)
                assert found.shape == group[role].shape and facts["dtype"] == "f32"
                assert np.array_equal(found, group[role][()])
            assert np.array_equal(local.tensor(context, layer, "k", [1, 2]), local.tensor(context, layer, "k")[:, 1:2])
        weight = local.tensor(context, 1, "o_proj", [1, 3])
        assert weight.shape == (32, 2, info["value_dim"]) and facts["hidden"] == 32


def test_sixteen_bit_models_are_read_in_their_type() -> None:
    local = opened("llama", dtype=torch.bfloat16)
    answer = read(local, IDS, CUT)
    context, model = answer["context_id"], local.session.models["m1"].model
    assert answer["info"]["layers"][0]["dtype"] == "bf16" and local.tensor(context, 0, "k").dtype == np.uint16
    selection = random_selection(2, "plain")
    chosen = send(local, context, selection)
    whole = send(local, context, whole_selection(3, 2, CUT))
    rows = score(local, context, [chosen, whole, None])["rows"]
    wanted = answer_loss(model, IDS, selection, list(range(BEGIN, TOKENS)))
    assert rows[0]["losses"] == pytest.approx(wanted.nll.tolist(), abs=0.15)
    assert rows[0]["bytes"] == PrunedContext(model, IDS, selection).bytes_kept()
    assert rows[1] | {"selection_id": None} == rows[2]


def test_samples_draw_alike_and_repeat_with_their_seed() -> None:
    local = opened("llama")
    context = read(local, IDS, CUT)["context_id"]
    chosen = send(local, context, random_selection(2, "plain"))
    given = {"context_id": context, "selection_ids": [chosen, None], "question_ids": [], "max_new": 8}
    local.session.models["m1"].model.generation_config.eos_token_id = None
    texts = [local.ask("answer/generate", given | {"temperature": 1.5, "seed": s})["rows"] for s in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]
    assert texts[0][0]["ids"][0] == texts[0][1]["ids"][0]  # predicted before pruning, with the same draw


def as_list(selection: RecordedSelection, capture_hash: str) -> str:
    """The list as kvscope evict writes it."""
    heads = []
    for (layer, head), chosen in selection.heads.items():
        own: dict[str, Any] = {"layer": layer, "kv_head": head, "kept": chosen.kept.tolist()}
        if chosen.query_heads:
            own["query_heads"] = [{"query_head": q, "kept": t.tolist()} for q, t in chosen.query_heads.items()]
        elif not ((chosen.numerator == 1).all() and (chosen.denominator == 1).all()):
            weights = {"numerator": chosen.numerator, "denominator": chosen.denominator}
            own["weights"] = {name: values.astype(float).tolist() for name, values in weights.items()}
        heads.append(own)
    listed = {"format": "kvscope-selection", "version": 1, "cut_token": selection.cut, "heads": heads}
    return json.dumps(listed | {"capture": {"hash": capture_hash}})


@pytest.mark.parametrize("name", MODELS)
def test_losses_are_those_of_the_saved_capture_and_list(name: str, tmp_path: pathlib.Path) -> None:
    """For every kind of list, kvscope-evaluate computes from the files what the worker answered."""
    local = opened(name)
    segments = [[0, CUT, "context"], [CUT, BEGIN, "question"], [BEGIN, TOKENS, "answer"]]
    answer = read(local, IDS, CUT, segments=segments, capture_to=str(tmp_path / "c.h5"))
    tokens = read_tokens(tmp_path / "c.h5")
    wanted = [t for begin, end in tokens.target(CUT) for t in range(begin, end)]
    assert len(wanted) == len(ANSWER)
    for kind in KINDS:
        selection = random_selection(heads_of(name), kind)
        (tmp_path / "l.json").write_text(as_list(selection, answer["capture_hash"]))
        row = score(local, answer["context_id"], [send(local, answer["context_id"], selection)])["rows"][0]
        again = read_selection(tmp_path / "l.json")
        loss = answer_loss(local.session.models["m1"].model, tokens.ids, again, wanted)
        assert row["losses"] == pytest.approx(loss.nll.tolist(), abs=1e-5), kind


def test_models_are_opened_from_folders_and_prompts_tokenized(tmp_path: pathlib.Path) -> None:
    model, tokenizer = tiny_model("llama"), byte_level_tokenizer(tmp_path)
    model.resize_token_embeddings(300)
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    local, path = Local(), str(tmp_path / "model")
    facts = local.ask("model/inspect", {"path": path, "revision": None})
    assert (facts["layers"], facts["query_heads"], facts["kv_heads"], facts["head_dim"]) == (3, 4, 2, 8)
    assert facts["bytes_to_load"]["f32"] == sum(p.numel() for p in model.parameters()) * 4 and facts["supported"]
    assert facts["bytes_per_token"] == 3 * (4 + 2 + 2) * 8 * 2
    name = local.ask("model/open", {"path": path, "dtype": "bf16", "device": "cpu"})["model_id"]
    assert local.session.models[name].model.dtype == torch.bfloat16
    words = ["Der Rest ", "ist", " Text.", "Straße?", " nichts"]
    kinds = ["context", "needle", "context", "question", "answer"]
    segments = [{"kind": kind, "text": text} for kind, text in zip(kinds, words, strict=True)]
    answer = local.ask("text/tokenize", {"segments": segments, "chat": False})
    assert b"".join(texts_of(answer)).decode() == "".join(words)
    inside = {kind: b"".join(texts_of(answer)[b:e]).decode() for b, e, kind in answer["segments"]}
    assert inside == {"context": "".join(words[:3]), "needle": words[1], "question": words[3], "answer": words[4]}
    assert answer["cut"] == next(e for _, e, kind in answer["segments"] if kind == "context")
    no_template = local.refused("text/tokenize", {"segments": segments, "chat": True})
    assert no_template.code == -32053 and "no chat template" in no_template.sentence
    tokenizer.chat_template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"
    local.session.models[name].tokenizer.chat_template = tokenizer.chat_template
    answer = local.ask("text/tokenize", {"segments": [{"kind": "system", "text": "Sei"}, *segments], "chat": True})
    assert b"".join(texts_of(answer)).decode() == "<system>Sei<user>" + "".join(words[:4]) + "<assistant>" + words[4]


@pytest.mark.parametrize("kind", ["mamba", "rwkv", "gemma4_text"])
def test_a_model_without_equal_heads_is_refused(kind: str, tmp_path: pathlib.Path) -> None:
    unlike_config(kind).save_pretrained(tmp_path)
    for method in ("model/inspect", "model/open"):
        error = Local().refused(method, {"path": str(tmp_path)})
        assert error.code == UNSUPPORTED_MODEL and error.data["place"] == str(tmp_path)
        assert error.data["remedy"] == "This architecture cannot be captured"


@pytest.mark.parametrize(
    "kind", ["mpt", "bert", "llama4_text", "bloom", "falcon", "codegen", "xlnet", "lfm2", "falcon_h1"]
)
def test_a_model_that_cannot_be_watched_is_not_supported(kind: str, tmp_path: pathlib.Path) -> None:
    unlike_config(kind).save_pretrained(tmp_path)
    facts = Local().ask("model/inspect", {"path": str(tmp_path)})
    assert not facts["supported"] and facts["why"].startswith(f"{kind} cannot be used: ")
    assert not facts["why"].endswith(".")  # the client ends the sentence
    assert facts["max_positions"] is None or facts["max_positions"] > 0  # XLNet says -1


def test_a_model_that_fails_its_self_check_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a model might not even run behind a cut (Inkling)."""
    local = Local()
    local.session.models["m1"] = OpenModel(random_model(unlike_config("phimoe"), 0), LetterTokenizer(), "phimoe", "")
    monkeypatch.setattr(contexts, "ReadContext", lambda *_, **__: pytest.fail("read"))
    error = local.refused("context/read", {"model_id": "m1", "ids": IDS, "segments": [], "cut": CUT})
    assert error.code == UNSUPPORTED_MODEL and "the mask is not the causal one" in str(error)


def test_what_is_refused() -> None:
    local = opened("llama")
    context = read(local, IDS, CUT)["context_id"]
    rows, kept = [[0, 0], [0, 1]], np.ones((2, CUT), bool)
    bits = np.packbits(kept, axis=1, bitorder="little").tobytes()
    about = [{"name": "kept"}]
    select = {"context_id": context, "name": "p", "rows": rows, "blobs": about}
    weights = [*about, {"name": "numerator"}]
    ones = np.ones(2 * CUT, "<f4")
    cases: list[tuple[str, dict[str, Any], tuple[bytes, ...], int, str]] = [
        ("model/inspect", {"path": "no/such-model"}, (), -32052, f"no model no/such-model on {socket.gethostname()}, "),
        ("model/open", {"path": "no/such-model"}, (), -32052, "there is no model"),
        ("text/tokenize", {"model_id": "m9", "segments": []}, (), -32054, "there is no open model m9"),
        ("context/read", {"model_id": "m1", "ids": [0, 97], "segments": [], "cut": 1}, (), -32602, "0 to 96"),
        ("context/read", {"model_id": "m1", "ids": IDS, "segments": [], "cut": 31}, (), -32602, "31 is not between"),
        (
            "context/read",
            {"model_id": "m1", "ids": IDS, "segments": [[0, 99, "context"]], "cut": 9},
            (),
            -32602,
            "is no",
        ),
        (
            "context/read",
            {"model_id": "m1", "ids": IDS, "segments": [[0, 9, []]], "cut": 9},
            (),
            -32602,
            "no [begin, end, kind]",
        ),
        ("tensors/get", {"context_id": "c9", "layer": 0, "role": "k"}, (), -32054, "there is no context c9"),
        ("tensors/get", {"context_id": context, "layer": 3, "role": "k"}, (), -32602, "3 is not between 0 and 2"),
        ("tensors/get", {"context_id": context, "layer": 0, "role": "w"}, (), -32602, "is not one of k, v, q"),
        ("tensors/get", {"context_id": context, "layer": 0, "role": "k", "rows": [1, 1]}, (), -32602, "begin < end"),
        ("tensors/get", {"context_id": context, "layer": 0, "role": "k", "rows": [0, 99]}, (), -32602, "0 to 30"),
        ("selection/set", select, (bits[:-1],), -32602, "kept has 5 bytes, not 3 for each of 2 rows"),
        ("selection/set", select, (b"\xff" * 6,), -32602, "behind the 19 before the cut"),
        ("selection/set", select, (), -32602, "1 are described, 0 came"),
        ("selection/set", select | {"rows": [[0, 0], [0, 0]]}, (bits,), -32602, "named twice"),
        ("selection/set", select | {"rows": [[0, 0], [0, 2]]}, (bits,), -32602, "is no [layer, kv_head]"),
        ("selection/set", select | {"rows": [[0, 0, 0], [0, 0, 3]]}, (bits,), -32602, "sets of query heads [0, 3]"),
        ("selection/set", select | {"parts": 2, "part": 1}, (bits,), -32602, "came without those before it"),
        ("selection/set", select | {"blobs": weights}, (bits, ones[1:].tobytes()), -32602, "numerator has 148 bytes"),
        ("selection/set", select | {"blobs": weights}, (bits, (-ones).tobytes()), -32602, "negative or not finite"),
    ]
    for method, params, blobs, code, sentence in cases:
        error = local.refused(method, params, blobs)
        assert (error.code, sentence in error.sentence) == (code, True), (method, params, error.sentence)
    given = {"context_id": context, "selection_ids": ["s0"], "question_ids": [], "answer_ids": []}
    assert local.refused("answer/score", given).code == -32054
    local.ask("context/close", {"context_id": context})
    assert local.refused("answer/score", given | {"selection_ids": []}).code == -32054
    local.ask("model/close", {"model_id": "m1"})
    assert not local.session.models and not local.session.contexts


def test_selections_come_in_parts_and_stay_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    from kvscope_live import session

    local = opened("llama")
    context = read(local, IDS, CUT)["context_id"]
    selection = random_selection(2, "one_set")
    whole = send(local, context, selection)
    items = sorted(selection.heads.items())
    for part, ((layer, head), chosen) in enumerate(items):
        kept = np.packbits(np.isin(np.arange(CUT), chosen.kept)[None], axis=1, bitorder="little").tobytes()
        blobs = (kept, chosen.numerator.tobytes(), chosen.denominator.tobytes())
        about = [{"name": name} for name in ("kept", "numerator", "denominator")]
        given = {"context_id": context, "name": "n", "rows": [[layer, head]], "generation": 4, "blobs": about}
        answer = local.ask("selection/set", given | {"part": part, "parts": len(items)}, blobs)
        assert (answer["selection_id"] is None) == (part + 1 < len(items))
    assert answer["kept"] == rows_of(selection)
    losses = [row["losses"] for row in score(local, context, [whole, answer["selection_id"]])["rows"]]
    assert losses[0] == pytest.approx(losses[1], abs=1e-6)
    state = local.session.contexts[context]
    assert not state.parts
    kept = np.packbits(np.ones((1, CUT), bool), axis=1, bitorder="little").tobytes()
    given = {"context_id": context, "rows": [[0, 0]], "generation": 4, "parts": 2, "blobs": about[:1]}
    for count in range(40):  # abandoned uploads, each of a budget of its own
        local.ask("selection/set", given | {"name": f"n{count}", "part": 0}, (kept,))
    assert list(state.parts) == ["n36", "n37", "n38", "n39"]
    assert local.refused("selection/set", given | {"name": "n0", "part": 1, "rows": [[0, 1]]}, (kept,)).code == -32602
    for name in ("n39", "n36", "n38", "n37"):
        last = given | {"name": name, "part": 1, "rows": [[0, 1]]}
        assert local.ask("selection/set", last, (kept,))["selection_id"]
    monkeypatch.setattr(session, "SELECTION_BYTES", 100)
    for count in range(300):
        send(local, context, random_selection(2, "plain"), str(count))
        kept_rows = np.random.default_rng(count).random((6, CUT)) < 0.5
        local.select(context, [[la, h] for la in range(3) for h in range(2)], kept_rows)
    assert len(state.selections) < 10 and not state.parts
    assert state.bytes == sum(held.size() for held in state.selections.values()) <= 400


def test_tensors_wait_for_credit() -> None:
    local = opened("llama")
    context = read(local, IDS, CUT)["context_id"]
    channel = local.channel
    channel._credit = 0
    granted, found = 0, []
    thread = threading.Thread(target=lambda: found.append(local.tensor(context, 0, "q")))
    thread.start()
    while thread.is_alive():
        assert sum(len(blob) for _, blobs in channel.sent for blob in blobs) <= granted
        granted += 1000
        channel._hear("stream/credit", {"bytes": 1000})
        thread.join(0.001)
    assert found[0].shape == (4, TOKENS, 8) and granted >= found[0].nbytes


def test_a_stopped_read_leaves_nothing(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever the cancel comes; and the model answers as before."""
    local = opened("llama")
    count, stop_at = 0, 10**6

    def progress(*_: Any, **__: Any) -> None:
        nonlocal count
        count += 1
        if count >= stop_at:
            raise Stopped

    monkeypatch.setattr(local.channel, "checkpoint", progress)
    before = read(local, IDS, CUT, capture_to=str(tmp_path / "a.h5"))["tokens"]["nll"]
    (tmp_path / "a.h5").unlink()
    every = count
    for last in range(1, every + 1, 3):
        count, stop_at = 0, last
        with pytest.raises(Stopped):
            read(local, IDS, CUT, capture_to=str(tmp_path / "a.h5"))
        assert list(tmp_path.iterdir()) == []
    count = -(10**6)
    assert read(local, IDS, CUT)["tokens"]["nll"] == before
