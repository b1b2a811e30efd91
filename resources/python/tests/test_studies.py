"""The case study: its prompts, trials and statistics; the manual's tables are those of the stored numbers."""

from __future__ import annotations

import itertools
import pathlib
import sys
from typing import Any

import pytest
from test_prompt import byte_level_tokenizer
from tiny_models import COMMON, tiny_model
from transformers import LlamaConfig, LlamaForCausalLM

from kvscope_capture import SegmentKind

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "resources/python/studies"))
import tables  # noqa: E402
from prompts import TASKS  # noqa: E402

STORED = ROOT / "sample_data/case_study"


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return byte_level_tokenizer(tmp_path_factory.mktemp("tokenizer"))


def text_of(tokenizer: Any, prompt: Any, kind: SegmentKind) -> list[str]:
    return [tokenizer.decode(prompt.ids[begin:end]) for begin, end, found in prompt.segments if found == kind]


@pytest.mark.parametrize("depth", [0.1, 0.9])
def test_the_needle_that_is_asked_for_stands_at_its_depth(depth: float, tokenizer: Any) -> None:
    prompt = TASKS["needle"](tokenizer, 4000, depth, 3)
    assert 3700 < len(prompt.ids) <= 4060
    (answer,) = text_of(tokenizer, prompt, SegmentKind.ANSWER)
    ((context_begin, context_end),) = ((b, e) for b, e, kind in prompt.segments if kind == SegmentKind.CONTEXT)
    places = [
        b
        for b, e, kind in prompt.segments
        if kind == SegmentKind.NEEDLE and answer in tokenizer.decode(prompt.ids[b:e])
    ]
    assert len(places) == 1 and len(text_of(tokenizer, prompt, SegmentKind.NEEDLE)) == 3
    assert abs((places[0] - context_begin) / (context_end - context_begin) - depth) < 0.15
    assert (
        prompt.ids == TASKS["needle"](tokenizer, 4000, depth, 3).ids != TASKS["needle"](tokenizer, 4000, depth, 4).ids
    )


def test_the_line_that_is_asked_for_is_there_once(tokenizer: Any) -> None:
    prompt = TASKS["lines"](tokenizer, 2000, 0.5, 1)
    (context,) = text_of(tokenizer, prompt, SegmentKind.CONTEXT)
    (question,) = text_of(tokenizer, prompt, SegmentKind.QUESTION)
    (answer,) = text_of(tokenizer, prompt, SegmentKind.ANSWER)
    name = question.split()[4]
    assert context.count(f"line {name}: REGISTER_CONTENT is <{answer}>") == 1 == context.count(f"line {name}:")


@pytest.mark.parametrize("task", ["story", "copy"])
def test_the_answer_of_text_is_its_last_eighth(task: str, tokenizer: Any) -> None:
    prompt = TASKS[task](tokenizer, 512, 1, 0)
    (answer,) = ((b, e) for b, e, kind in prompt.segments if kind == SegmentKind.ANSWER)
    assert answer == (448, 512) and len(prompt.ids) == 512
    assert (prompt.ids[448:512] == prompt.ids[1:65]) == (task == "copy")


def test_a_run_goes_on_where_it_ended(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, tokenizer: Any) -> None:
    pytest.importorskip("kvscope", reason="the module kvscope is not on the path")
    import retrieval

    model = LlamaForCausalLM(LlamaConfig(**COMMON | {"vocab_size": 300})).eval()
    monkeypatch.setattr(retrieval, "load_model", lambda *_: (model, tokenizer))
    out = tmp_path / "trials.csv"
    few = ["M", "--lengths", "300", "--depths", "0.5", "--retentions", "0.5", "--prompts", "1", "--out", str(out)]
    policies = ["--policies", "keydiff", "uniform:reweighted", "snapkv,window=400"]
    assert retrieval.main([*few, *policies]) == 0
    rows = tables.read(out)
    assert [row["policy"] for row in rows] == ["exact", "keydiff", "uniform:reweighted", "snapkv,window=400"]
    assert float(rows[0]["nll"]) == pytest.approx(float(rows[0]["nll_full"]), abs=2e-5) and rows[0]["kept"] == "1.0000"
    assert float(rows[1]["nll"]) != float(rows[1]["nll_full"]) and float(rows[1]["kept"]) == pytest.approx(
        0.5, abs=0.01
    )
    lines = out.read_text().splitlines()
    out.write_text("\n".join(lines[:-1]) + "\n")
    assert retrieval.main([*few, *policies, "tova"]) == 0
    assert out.read_text().splitlines()[: len(lines)] == lines and len(tables.read(out)) == 5
    assert retrieval.main(["other", *few[1:]]) == 2
    out.write_text(out.read_text()[:-7])  # killed while it wrote the last row
    assert retrieval.main([*few, *policies, "tova"]) == 0
    assert out.read_text().splitlines()[: len(lines)] == lines and len(tables.read(out)) == 5
    out.write_text(lines[0][:9])  # killed while it wrote the head
    assert retrieval.main(few + ["--policies", "keydiff"]) == 0
    assert out.read_text().splitlines() == lines[:4]


def test_query_heads_keep_sets_of_their_own(tokenizer: Any) -> None:
    """SnapKV's original class stores a set for each query head; the union would be a larger budget."""
    pytest.importorskip("kvscope", reason="the module kvscope is not on the path")
    import retrieval

    prompt = TASKS["needle"](tokenizer, 300, 0.5, 0)
    asked = retrieval.Asked(LlamaForCausalLM(LlamaConfig(**COMMON | {"vocab_size": 300})).eval(), prompt)
    selection = asked.select("snapkv:original_class@0.2", 0)
    assert {q for _, head in selection.heads.items() for q in head.query_heads} == {0, 1, 2, 3}
    assert selection.retention() == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize("name", ["gpt-oss", "gemma2"])
def test_a_policy_is_given_what_the_layer_has(name: str, tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The layer's window, cap and sinks, which decide what a query attends to."""
    kvscope = pytest.importorskip("kvscope", reason="the module kvscope is not on the path")
    import retrieval

    prompt = TASKS["needle"](tokenizer, 300, 0.5, 0)
    model = tiny_model(name)
    model.resize_token_embeddings(300)
    asked, given, evict = retrieval.Asked(model, prompt), [], kvscope.evict
    monkeypatch.setattr(kvscope, "evict", lambda *a, **named: given.append(named) or evict(*a, **named))
    asked.select("uniform@0.5", 0)
    for call, named in zip(asked.read.calls, given, strict=True):
        assert (named["softcap"], named["sliding_window"]) == (call.softcap, call.sliding_window)
        assert (named["sinks"] is None) == (call.sinks is None)
        assert call.sinks is None or named["sinks"].tolist() == call.sinks.tolist()
    assert {named["sliding_window"] for named in given} > {0} or name == "gpt-oss"
    assert all(named["softcap"] == 2.0 for named in given) == (name == "gemma2")


def test_the_digits_go_from_the_named_heads_only(tokenizer: Any) -> None:
    pytest.importorskip("kvscope", reason="the module kvscope is not on the path")
    import heads

    prompt = TASKS["needle"](tokenizer, 1000, 0.5, 2)
    ((begin, end),) = ((b, e) for b, e, kind in prompt.segments if kind == SegmentKind.ANSWER)
    digits = heads.digits_of(tokenizer, prompt, list(range(begin, end)))
    code = "".join(tokenizer.decode([prompt.ids[token]]) for token in sorted(digits))
    assert code == tokenizer.decode(prompt.ids[begin:end]).strip() and max(digits) < begin
    cut = max(digits) + 2
    selection = heads.without(digits, {(1, 0)}, {(0, 0), (1, 0)}, cut)
    assert set(range(cut)) - set(selection.heads[1, 0].kept.tolist()) == digits
    assert selection.heads[0, 0].kept.tolist() == list(range(cut)) and selection.cut == cut


def test_quantiles_are_those_of_the_books() -> None:
    assert [tables.student(n) for n in (5, 11, 35)] == pytest.approx([2.5706, 2.2010, 2.0301], rel=2e-3)


def cell(right: int, depth: str = "0.5", tokens: str = "8", **more: str) -> dict[str, str]:
    return {"tokens": tokens, "depth": depth, "prompts": "6", "right": str(right)} | more


def test_mcnemar_is_the_sign_test_of_the_prompts_that_differ() -> None:
    # Two-sided sums of the binomial distribution with p = 1/2, from its definition.
    for first, second in ((10, 1), (9, 2), (3, 3), (0, 0), (2, 0), (0, 7)):
        outcomes = [sum(signs) for signs in itertools.product((0, 1), repeat=first + second)]
        extreme = abs(first - second)
        expected = sum(abs(2 * plus - (first + second)) >= extreme for plus in outcomes) / len(outcomes)
        assert tables.mcnemar(first, second) == pytest.approx(expected), (first, second)


def test_bounds_of_p_hold_for_every_way_in_which_the_answers_can_fall() -> None:
    counts = [(5, 2), (3, 4), (6, 1)]
    mine = [cell(a, tokens=str(i)) for i, (a, _) in enumerate(counts)]
    theirs = [cell(b, tokens=str(i)) for i, (_, b) in enumerate(counts)]
    low, high = tables.paired(mine, theirs)
    both = [range(max(0, a + b - 6), min(a, b) + 1) for a, b in counts]
    possible = [
        tables.mcnemar(sum(a for a, _ in counts) - sum(agreed), sum(b for _, b in counts) - sum(agreed))
        for agreed in itertools.product(*both)
    ]
    assert (low, high) == pytest.approx((min(possible), max(possible))) and low < high


def test_answers_are_counted_by_depth() -> None:
    cells = [cell(1, "0.9"), cell(6, "0.1"), cell(2, "0.9", "16"), cell(0, "0.1", "16")]
    assert tables.right(cells) == "6, 3" and tables.share(cells) == "9/24"


def test_the_interval_of_a_rise_is_of_the_prompts_within_cells() -> None:
    trials = [
        {"task": "needle", "question_seen": "0", "policy": "p", "retention": "0.1", "tokens": tokens, "depth": "0.5"}
        | {"prompt": str(i), "kept": "0.1", "right": str(i % 2), "nll": str(nll), "nll_full": "1", "nll_context": "3"}
        for i, (tokens, nll) in enumerate([("8", 2.0), ("8", 4.0), ("8", 3.6), ("16", 9.0), ("16", 8.0), ("16", 8.2)])
    ]
    assert tables.once([*trials, trials[1] | {"nll": "7"}]) == trials
    cells = tables.summary(trials)
    assert [(c["tokens"], c["prompts"], c["right"]) for c in cells] == [("8", "3", "1"), ("16", "3", "2")]
    # By hand: means 2.2 and 7.4; variances 1.12 and 0.28; (1.12 + 0.28) / 3 / 4 = 0.11667;
    # freedom 0.11667^2 / ((1.12 / 12)^2 / 2 + (0.28 / 12)^2 / 2) = 2.941.
    expected = f"4.80 ± {tables.student(2.941) * 0.11667**0.5:.2f}"
    assert tables.rise(cells) == expected
    apart = [c | {"nll": str(float(c["nll"]) + 50 * (c["tokens"] == "16"))} for c in cells]
    assert tables.rise(apart).split("±")[1] == expected.split("±")[1]  # lengths are chosen, not drawn
    single = [c | {"prompts": "1", "rise_sd": ""} for c in cells]
    assert tables.rise(single) == "4.80"  # one prompt a cell has no interval


def test_the_manual_shows_the_stored_numbers() -> None:
    page = (ROOT / "resources/manual/case_study.md").read_text(encoding="utf-8")
    for name, lines in tables.tables(STORED).items():
        assert len(lines) > 3 and "\n".join(lines) in page, f"{name}: tables.py print writes it"


def test_the_full_cache_loses_nothing_in_any_stored_cell() -> None:
    cells = tables.read(STORED / "answers.csv")
    whole = [cell for cell in cells if cell["policy"] == "exact"]
    assert len(whole) >= 18 and all(cell["nll"] == cell["nll_full"] and cell["rise_sd"] == "0.0000" for cell in whole)
