"""kvpress's own presses are right ports of KVScope's kvpress variants, and of no other variant."""

from __future__ import annotations

import os

import pytest

from kvscope_press.check_press_command import main


@pytest.mark.parametrize(
    "press, policy, code",
    [
        ("KeyDiffPress", "keydiff:kvpress", 0),
        ("KnormPress", "key_norm:kvpress", 0),
        ("TOVAPress", "tova:kvpress", 0),
        ("SnapKVPress", "snapkv:kvpress", 0),
        ("StreamingLLMPress", "streaming_llm:kvpress", 0),
        ("PyramidKVPress", "pyramidkv:kvpress", 0),
        ("ObservedAttentionPress", "h2o:kvpress", 0),
        ("KnormPress", "keydiff:kvpress", 1),
        ("SnapKVPress,window_size=32", "snapkv:paper", 1),
    ],
)
def test_kvpress_against_its_variants(press: str, policy: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    model = os.environ.get("KVSCOPE_TINYLM")
    if not model or not os.environ.get("KVSCOPE_PROGRAM"):
        pytest.skip("KVSCOPE_TINYLM or KVSCOPE_PROGRAM is not set")
    name, comma, rest = press.partition(",")
    words = [model, "--press", f"kvpress:{name},compression_ratio=0.7{comma}{rest}", "--policy", policy, "--no-battery"]
    got = main(words + ["--eager"] * (name == "ObservedAttentionPress"))
    told = capsys.readouterr()
    assert got == code, told.out + told.err
    assert policy != "snapkv:paper" or "why      rounding of the count: the press keeps 90" in told.out
