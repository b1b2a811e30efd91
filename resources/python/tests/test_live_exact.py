"""What a live context answers where the answer is known exactly: nothing evicted, odd lengths, the model's own text."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
import torch
import transformers
from live_client import Local
from test_live import ANSWER, BEGIN, IDS, QUESTION, opened, read, score, send
from test_press import CUT, SEED, TOKENS, heads_of, random_selection
from test_prompt import byte_level_tokenizer
from tiny_models import COMMON, CONFIGS, LetterTokenizer, random_ids, random_model, unlike_config
from transformers import DynamicCache

from kvscope_capture import CaptureError
from kvscope_capture.attention import attention_implementation
from kvscope_live.models import OpenModel
from kvscope_press import HeadSelection, RecordedSelection, answer_loss, generate
from kvscope_press.pruned_context import PrunedContext
from kvscope_press.recorded_selection import whole_selection


@pytest.mark.parametrize("name", [name for name in CONFIGS if name != "phi3-long"])  # switches RoPE within the text
def test_what_keeps_everything_is_the_unpruned_model(name: str) -> None:
    """Losses bit for bit, and the very text that the model's own `generate` writes."""
    local = opened(name)
    context = read(local, IDS, CUT)["context_id"]
    model = local.session.models["m1"].model
    model.generation_config.eos_token_id = None
    whole = send(local, context, whole_selection(3, heads_of(name), CUT))
    answer = score(local, context, [whole, None])
    assert answer["rows"][0]["losses"] == answer["rows"][1]["losses"] == answer["full"]["losses"]
    assert answer["rows"][0]["kl"] == [0.0] * len(ANSWER)
    given = {"context_id": context, "selection_ids": [whole], "question_ids": QUESTION, "max_new": 7}
    written = local.ask("answer/generate", given)
    cache, prompt = DynamicCache(), torch.tensor([IDS[:BEGIN]])
    fused = name not in ("gemma2", "gpt-oss")  # no soft cap, no sinks
    with torch.no_grad(), attention_implementation(model, "sdpa" if fused else "eager"):
        model(input_ids=torch.tensor([IDS[:CUT]]), past_key_values=cache, use_cache=True)
        positions = torch.arange(CUT, TOKENS - 1)[None]
        ids = torch.tensor([IDS[CUT:-1]])
        logits = model(input_ids=ids, position_ids=positions, past_key_values=cache, use_cache=True).logits[0]
        own = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=7, do_sample=False)
    wanted = torch.nn.functional.cross_entropy(logits[len(QUESTION) - 1 :], torch.tensor(ANSWER), reduction="none")
    assert answer["full"]["losses"] == wanted.tolist()
    assert written["rows"][0]["ids"] == written["full"]["ids"] == own[0, BEGIN:].tolist()


def test_long_rope_is_chosen_by_the_whole_text() -> None:
    """Beyond 24 tokens this model rotates all keys differently; a context of 19 is rotated as the whole text is."""
    local, ids = opened("phi3-long"), random_ids(44, SEED)
    context = read(local, ids, CUT)["context_id"]
    model = local.session.models["m1"].model
    model.generation_config.eos_token_id = None
    answer = score(local, context, [None], question_ids=ids[CUT:40], answer_ids=ids[40:])
    prompt = torch.tensor([ids])
    with torch.no_grad():
        logits = model(input_ids=prompt).logits[0, 39:-1]
        own = model.generate(
            prompt[:, :40], attention_mask=torch.ones(1, 40), max_new_tokens=7, do_sample=False
        ).tolist()
    wanted = torch.nn.functional.cross_entropy(logits, prompt[0, 40:], reduction="none").tolist()
    assert answer["full"]["losses"] == pytest.approx(wanted, abs=1e-5)
    given = {"context_id": context, "selection_ids": [None], "question_ids": ids[CUT:40], "max_new": 7}
    assert local.ask("answer/generate", given)["full"]["ids"] == own[0][40:]
    short = read(local, ids[:22], CUT)  # read after a longer one
    with torch.no_grad():
        logits = model(input_ids=prompt[:, :21]).logits[0]
    wanted = torch.nn.functional.cross_entropy(logits, prompt[0, 1:22], reduction="none").tolist()
    assert short["tokens"]["nll"][1:] == pytest.approx(wanted, abs=1e-5)
    with pytest.raises(CaptureError, match="beyond 24 tokens the model rotates all of them otherwise"):
        local.ask("answer/generate", given | {"context_id": short["context_id"], "question_ids": ids[CUT:22]})


@pytest.mark.parametrize("name", ["llama", "mistral"])
@pytest.mark.parametrize("length", [1, 2, 31, 33])
def test_odd_lengths(name: str, length: int) -> None:
    """Odd lengths of the question, of the context (33) and of what is kept (1 token and none)."""
    local, cut = opened(name), 33
    ids = random_ids(cut + length + 3, SEED)
    context = read(local, ids, cut)["context_id"]
    given = {"question_ids": ids[cut : cut + length], "answer_ids": ids[cut + length :]}
    kept = np.zeros((6, cut), bool)
    kept[:, 5] = True
    rows = [[layer, head] for layer in range(3) for head in range(2)]
    one = local.select(context, rows, kept)["selection_id"]
    none = local.select(context, rows, np.zeros((6, cut), bool), name="q")["selection_id"]
    answer = score(local, context, [one, none], **given)
    model = local.session.models["m1"].model
    heads = {(r[0], r[1]): HeadSelection(np.array([5]), *(np.ones(1, np.float32),) * 2) for r in rows}
    selection = RecordedSelection("", "p", "v", {}, "", cut, "", False, heads)
    wanted = answer_loss(model, ids, selection, list(range(cut + length, len(ids))))
    assert answer["rows"][0]["losses"] == pytest.approx(wanted.nll.tolist(), abs=1e-5)
    assert answer["rows"][0]["bytes"] == 6 * 16 * 4 and answer["rows"][1]["bytes"] == 0
    assert all(np.isfinite(answer["rows"][1]["losses"]))


def test_the_first_token_behind_the_cut_counts_nowhere() -> None:
    local = opened("llama")
    context = read(local, IDS, CUT)["context_id"]
    chosen = send(local, context, random_selection(2, "plain"))
    row = score(local, context, [chosen], question_ids=[], answer_ids=IDS[CUT:])["rows"][0]
    model = local.session.models["m1"].model
    wanted = answer_loss(model, IDS, random_selection(2, "plain"), list(range(CUT + 1, TOKENS)))
    assert row["losses"][0] is None and row["kl"][0] is None and row["flips"][0] is None
    assert row["losses"][1:] == pytest.approx(wanted.nll.tolist(), abs=1e-5)
    assert row["nll"] == pytest.approx(wanted.mean(), abs=1e-5)
    for answer in ([], IDS[CUT : CUT + 1]):
        only = score(local, context, [chosen, None], question_ids=[], answer_ids=answer)
        assert [r["nll"] for r in only["rows"]] == [None, None] and only["full"]["nll"] is None


@pytest.mark.parametrize("name", ["llama", "gemma2", "gpt2"])
def test_questions_may_be_empty_and_answers_short(name: str) -> None:
    """Text behind the cut itself; an answer of one token; a text of one token."""
    local, heads = opened(name), heads_of(name)
    model = local.session.models["m1"].model
    model.generation_config.eos_token_id = None
    context = read(local, IDS, CUT)["context_id"]
    selection = random_selection(heads, "plain")
    chosen = send(local, context, selection)
    given = {"context_id": context, "selection_ids": [chosen, None], "question_ids": [], "max_new": 6}
    rows = local.ask("answer/generate", given)["rows"]
    prompt = torch.tensor([IDS[:CUT]])
    with torch.no_grad(), attention_implementation(model, "eager"):
        own = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=6, do_sample=False)
    assert rows[0]["ids"] == generate(PrunedContext(model, IDS, selection), [], 6)
    assert rows[1]["ids"] == own[0, CUT:].tolist() and rows[0]["ids"][0] == rows[1]["ids"][0]
    once = local.ask("answer/generate", given | {"question_ids": QUESTION, "max_new": 1})["rows"]
    assert once[0]["ids"] == generate(PrunedContext(model, IDS, selection), QUESTION, 1)
    long = score(local, context, [chosen, None])["rows"]
    short = score(local, context, [chosen, None], answer_ids=ANSWER[:1])["rows"]
    for one, other in zip(short, long, strict=True):
        assert one["losses"] == pytest.approx(other["losses"][:1], abs=1e-5) and one["nll"] == one["losses"][0]


def test_learned_positions_end_where_the_model_says() -> None:
    local = opened("gpt2")
    most = local.session.models["m1"].model.config.max_position_embeddings
    ids = random_ids(most - 3, SEED)
    given = {"context_id": read(local, ids, most - 3)["context_id"], "selection_ids": [None], "question_ids": []}
    assert len(local.ask("answer/generate", given | {"max_new": 4})["rows"][0]["ids"]) <= 4
    refused = local.refused("answer/generate", given | {"max_new": 5})
    assert f"need {most + 1} positions" in refused.sentence and refused.data["place"] == "max_new"
    assert local.refused("answer/score", given | {"answer_ids": ids[:5]}).data["place"] == "answer_ids"
    assert local.ask("answer/score", given | {"answer_ids": ids[:4]})["rows"][0]["losses"][1:]


def test_text_of_the_full_cache_is_the_models_own() -> None:
    """Greedy; policies write what a pruned context writes; an end token ends a row and not the others."""
    local = opened("qwen3")
    model = local.session.models["m1"].model
    context = read(local, IDS, CUT)["context_id"]
    selections = [random_selection(2, kind) for kind in ("plain", "two_sets")]
    chosen = [send(local, context, s, str(i)) for i, s in enumerate(selections)]
    given = {"context_id": context, "selection_ids": [*chosen, None], "question_ids": QUESTION, "max_new": 7}
    model.generation_config.eos_token_id = None
    answer = local.ask("answer/generate", given)
    prompt = torch.tensor([IDS[:BEGIN]])
    with torch.no_grad():
        every = torch.ones_like(prompt)
        own = model.generate(prompt, attention_mask=every, max_new_tokens=7, do_sample=False)[0, BEGIN:].tolist()
    assert answer["full"]["ids"] == answer["rows"][2]["ids"] == own and answer["rows"][2]["first_divergence"] is None
    for row, selection in zip(answer["rows"], selections, strict=False):
        written = generate(PrunedContext(model, IDS, selection), QUESTION, 7)
        assert row["ids"] == written and row["text"] == LetterTokenizer().decode(written)
        assert row["first_divergence"] == next((i for i in range(7) if written[i] != own[i]), None)
    told = [m["params"] for m, _ in local.channel.sent if m["method"] == "answer/token"]
    for index, row in enumerate(answer["rows"]):
        mine = sorted((t["index"], t["id"], t["text"]) for t in told if t["row"] == index)
        assert [t[1] for t in mine] == row["ids"] and "".join(t[2] for t in mine) == row["text"]
    model.generation_config.eos_token_id = [own[3], 5]
    stopped = local.ask("answer/generate", given | {"max_new": 6})
    assert stopped["full"]["ids"] == own[: own.index(own[3])]
    assert all(len(row["ids"]) <= 6 for row in stopped["rows"])


def test_chat_prompts_get_the_models_own_answer(tmp_path: pathlib.Path) -> None:
    """The template's tokens are the tokenizer's own, and the full cache's text is what `generate` makes of them."""
    local, tokenizer = opened("qwen3"), byte_level_tokenizer(tmp_path)
    tokenizer.chat_template = (
        "{% for m in messages %}<s>{{ m.role }}<s>{{ m.content }}{% endfor %}"
        "{% if add_generation_prompt %}<s>assistant<s>{% endif %}"
    )
    model = local.session.models["m1"].model
    model.resize_token_embeddings(300)
    with torch.no_grad():
        model.get_input_embeddings().weight.normal_(std=0.25, generator=torch.Generator().manual_seed(SEED))
    local.session.models["m1"] = OpenModel(model, tokenizer, "qwen3", "")
    words = {"system": "Sei kurz.", "context": "Der Rest ist Text.", "question": " Ist nichts?", "answer": " Doch."}
    segments = [{"kind": kind, "text": text} for kind, text in words.items()]
    prompt = local.ask("text/tokenize", {"segments": segments, "chat": True})
    user = {"role": "user", "content": words["context"] + words["question"]}
    messages = [{"role": "system", "content": words["system"]}, user]
    begin = next(b for b, _, kind in prompt["segments"] if kind == "answer")
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    asked = tokenizer(text, add_special_tokens=False, return_tensors="pt")
    assert prompt["ids"][:begin] == asked["input_ids"][0].tolist() and prompt["cut"] < begin
    context = read(local, prompt["ids"], prompt["cut"], segments=prompt["segments"])["context_id"]
    model.generation_config.eos_token_id = None
    whole = send(local, context, whole_selection(3, 2, prompt["cut"]))
    ids = prompt["ids"][prompt["cut"] : begin]
    given = {"context_id": context, "selection_ids": [whole, None], "question_ids": ids, "max_new": 12}
    answer = local.ask("answer/generate", given)
    with torch.no_grad():
        own = model.generate(**asked, max_new_tokens=12, do_sample=False)[0, begin:].tolist()
    assert [row["ids"] for row in answer["rows"]] == [own, own] and answer["full"]["text"] == tokenizer.decode(own)


@pytest.mark.parametrize("kind", ["llama", "deepseek_v2"])  # DeepSeek-V2 has complex numbers as angles
def test_texts_of_dynamic_rope_are_the_models_own(kind: str) -> None:
    """Beyond the trained length the frequencies change with every token, unlike in one pass over many tokens."""
    rope = {"rope_type": "dynamic", "rope_theta": 100.0, "factor": 4.0}
    llama = transformers.LlamaConfig(**COMMON | {"max_position_embeddings": 48}, rope_parameters=rope)
    config = llama if kind == "llama" else unlike_config(kind)
    for count in (44, 60):
        local, ids = Local(), random_ids(count, 3)
        model, fresh = random_model(config, 0), random_model(config, 0)
        model.generation_config.eos_token_id = fresh.generation_config.eos_token_id = None
        local.session.models["m1"] = OpenModel(model, LetterTokenizer(), "dynamic", "")
        context = read(local, ids, 36)["context_id"]
        given = {"context_id": context, "question_ids": ids[36:], "max_new": 30}
        found = local.ask("answer/generate", given | {"selection_ids": [None]})["full"]["ids"]
        seen = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones((1, count), dtype=torch.long)}
        assert found == fresh.generate(**seen, max_new_tokens=30, do_sample=False)[0, count:].tolist()
