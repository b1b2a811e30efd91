"""The prompts of the sample captures: always the same, marked correctly, and equal to the shipped ones."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import re
import sys
from typing import Any

import h5py
import pytest
from tiny_models import LetterTokenizer

from kvscope_capture import Prompt, SegmentKind
from kvscope_capture.command import load_model

SAMPLES = pathlib.Path(__file__).resolve().parents[3] / "sample_data"
TINYLM = os.environ.get("KVSCOPE_TINYLM", str(SAMPLES / "tinylm"))
needs_weights = pytest.mark.skipif(
    not pathlib.Path(TINYLM, "model.safetensors").is_file(), reason="the weights of TinyLM are not there"
)


def load_script() -> Any:
    spec = importlib.util.spec_from_file_location("make_samples", SAMPLES / "make_samples.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_samples"] = module
    spec.loader.exec_module(module)
    return module


script = load_script()


class ReadableTokenizer(LetterTokenizer):
    """Up to four letters a token, about as many tokens a sentence as a trained tokenizer has, and back."""

    vocabulary: list[str] = ["<bos>"]

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        parts = re.findall(r"\s?\S{1,4}|\s", text)
        self.vocabulary += [part for part in dict.fromkeys(parts) if part not in self.vocabulary]
        return ([0] if add_special_tokens else []) + [self.vocabulary.index(part) for part in parts]


def text_of(prompt: Prompt, begin: int, end: int) -> str:
    return "".join(ReadableTokenizer.vocabulary[token] for token in prompt.ids[begin:end])


def pieces_of(prompt: Prompt, kind: SegmentKind) -> list[str]:
    return [text_of(prompt, b, e) for b, e, k in prompt.segments if k == kind]


@pytest.mark.parametrize("name", script.SAMPLES)
def test_prompts_are_the_same_every_time(name: str) -> None:
    make = script.SAMPLES[name].make
    one, two = make(ReadableTokenizer(), 1024), make(ReadableTokenizer(), 1024)
    assert one.ids == two.ids and one.segments == two.segments
    assert all(0 < b < e <= len(one.ids) for b, e, _ in one.segments)
    (context,) = [(b, e) for b, e, kind in one.segments if kind == SegmentKind.CONTEXT]
    assert context[0] == 1
    assert all(b >= context[1] for b, _, kind in one.segments if kind > SegmentKind.NEEDLE)


def test_every_answer_stands_in_the_context() -> None:
    needle = script.needle(ReadableTokenizer(), 1024)
    assert len(pieces_of(needle, SegmentKind.NEEDLE)) == 3
    assert pieces_of(needle, SegmentKind.NEEDLE)[1].endswith(pieces_of(needle, SegmentKind.ANSWER)[0] + " ")
    records = script.records(ReadableTokenizer(), 1024)
    (context,) = pieces_of(records, SegmentKind.CONTEXT)
    questions, answers = (pieces_of(records, kind) for kind in (SegmentKind.QUESTION, SegmentKind.ANSWER))
    assert len(questions) == len(answers) == 4
    for question, answer in zip(questions, answers, strict=True):
        name = question.removeprefix("The REGISTER_CONTENT in line ").removesuffix(" is")
        assert f"line {name}: REGISTER_CONTENT is{answer}" in context
    few = script.few_shot(ReadableTokenizer(), 1024)
    (context,) = pieces_of(few, SegmentKind.CONTEXT)
    for question, answer in zip(pieces_of(few, SegmentKind.QUESTION), pieces_of(few, SegmentKind.ANSWER), strict=True):
        assert question + answer in context


def test_shipped_samples_are_small() -> None:
    files = list(SAMPLES.glob("*.h5"))
    assert {path.stem for path in files} >= set(script.SAMPLES)
    assert sum(path.stat().st_size for path in files) < 25e6


@needs_weights
def test_shipped_samples_hold_these_prompts_and_remake_alike(tmp_path: pathlib.Path) -> None:
    model, tokenizer = load_model(TINYLM, None, "fp32", "cpu")
    for name, sample in script.SAMPLES.items():
        prompt = sample.make(tokenizer, sample.tokens)
        with h5py.File(SAMPLES / f"{name}.h5") as file:
            assert file["tokens/ids"][()].tolist() == prompt.ids
            assert sorted(map(tuple, file["tokens/segments"][()].tolist())) == sorted(map(tuple, prompt.segments))
    lines = [script.make("fewshot-1k", model, tokenizer, tmp_path) for _ in range(2)]
    assert "written" in lines[0] and "unchanged" in lines[1]
    assert lines[0].split("hash ")[1] == lines[1].split("hash ")[1]
    assert [path.name for path in tmp_path.iterdir()] == ["fewshot-1k.h5"]
