"""The case study: its prompts, trials and statistics; the manual's tables are those of the stored numbers."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import pytest
from test_prompt import byte_level_tokenizer
from tiny_models import COMMON
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


def test_intervals_are_those_of_the_books() -> None:
    assert tables.wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert tables.wilson(0, 12) == pytest.approx((0, 0.2425), abs=1e-4)
    assert [tables.student(n) for n in (5, 11, 35)] == pytest.approx([2.5706, 2.2010, 2.0301], rel=2e-3)


def test_cells_add_up_to_what_their_prompts_would_give() -> None:
    trials = [
        {"task": "needle", "question_seen": "0", "policy": "p", "retention": "0.1", "tokens": tokens, "depth": "0.5"}
        | {"prompt": str(i), "kept": "0.1", "right": str(i % 2), "nll": str(nll), "nll_full": "1", "nll_context": "3"}
        for i, (tokens, nll) in enumerate([("8", 2.0), ("8", 4.0), ("8", 3.5), ("16", 9.0), ("16", 1.5)])
    ]
    assert tables.once([*trials, trials[1] | {"nll": "7"}]) == trials
    cells = tables.summary(trials)
    assert [(cell["tokens"], cell["prompts"], cell["right"]) for cell in cells] == [("8", "3", "1"), ("16", "2", "1")]
    rises = [1.0, 3.0, 2.5, 8.0, 0.5]
    deviation = (sum((rise - 3) ** 2 for rise in rises) / 4) ** 0.5
    together = tables.pooled(cells)
    assert (together.count, together.right) == (5, 2)
    assert (together.rise, together.deviation) == pytest.approx((3.0, deviation), abs=1e-3)
    assert tables.accuracy(cells) == "0.40 (0.12–0.77)" and tables.share(cells) == "2/5"


def test_the_manual_shows_the_stored_numbers() -> None:
    page = (ROOT / "resources/manual/case_study.md").read_text(encoding="utf-8")
    for name, lines in tables.tables(STORED).items():
        assert len(lines) > 3 and "\n".join(lines) in page, f"{name}: tables.py print writes it"


def test_the_full_cache_loses_nothing_in_any_stored_cell() -> None:
    cells = tables.read(STORED / "answers.csv")
    whole = [cell for cell in cells if cell["policy"] == "exact"]
    assert len(whole) >= 18 and all(cell["nll"] == cell["nll_full"] and cell["rise_sd"] == "0.0000" for cell in whole)
