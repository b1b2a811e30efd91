"""The program itself reads what the Python tools write. Needs the built program (KVSCOPE_PROGRAM)."""

from __future__ import annotations

import os
import pathlib
import subprocess

import pytest
from tiny_models import CONFIGS, LetterTokenizer, random_ids, tiny_model

from kvscope_capture import CaptureOptions, Prompt, capture_prompt

PROGRAM = os.environ.get("KVSCOPE_PROGRAM", "")
needs_program = pytest.mark.skipif(not PROGRAM, reason="KVSCOPE_PROGRAM does not name the built kvscope")


@needs_program
@pytest.mark.parametrize("name", CONFIGS)
def test_the_doctor_finds_nothing_wrong(name: str, tmp_path: pathlib.Path) -> None:
    prompt = Prompt(LetterTokenizer())
    prompt.ids = random_ids(24, seed=3)
    out = tmp_path / "c.h5"
    model = tiny_model(name)
    digest = capture_prompt(model, prompt, out, CaptureOptions(o_proj=True, pre_rope=True))
    done = subprocess.run([PROGRAM, "inspect", str(out), "--verify"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    findings = [line.split(maxsplit=1) for line in done.stdout.splitlines() if line.startswith("  ")]
    kinds = [words[0] for words in findings]
    assert "error" not in kinds and "warning" not in kinds, done.stdout
    assert digest in done.stdout and "the hash is that of the data" in done.stdout
    # SmolLM3 leaves the rotation out in some layers; GPT-2 has none.
    rotating = 0 if name == "gpt2" else sum(getattr(model.config, "no_rope_layers", None) or [1, 1, 1])
    assert done.stdout.count("rotated k_pre agrees") == rotating
