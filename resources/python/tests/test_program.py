"""The program itself reads what the Python tools write. Needs the built program (KVSCOPE_PROGRAM)."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import subprocess

import numpy as np
import pytest
from tiny_models import CONFIGS, LetterTokenizer, random_ids, tiny_model

from kvscope_capture import CaptureOptions, Prompt, capture_prompt
from kvscope_press import answer_loss, read_selection

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


@needs_program
@pytest.mark.parametrize("command", ["capture", "describe", "evaluate", "scores", "check-press"])
def test_commands_of_this_package_are_named(command: str, tmp_path: pathlib.Path) -> None:
    done = subprocess.run([PROGRAM, command, "model"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and f"a command of its own, kvscope-{command};" in done.stderr


@needs_program
def test_sliding_layers_are_left_whole(tmp_path: pathlib.Path) -> None:
    """Gemma 3: layers 0 and 2 slide; the list keeps them whole, and the loss is that of pruning layer 1 alone."""
    prompt, model = Prompt(LetterTokenizer()), tiny_model("gemma3")
    prompt.ids = random_ids(40, seed=3)
    out = tmp_path / "c.h5"
    capture_prompt(model, prompt, out, CaptureOptions(dtype="float32"))
    losses = {}
    for name, policy in {"whole": "keydiff,whole_layers=sliding@10t", "all": "keydiff@10t"}.items():
        words = [PROGRAM, "evict", str(out), "--policy", policy, "--cut", "30", "--out", str(tmp_path / f"{name}.json")]
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        selection = read_selection(tmp_path / f"{name}.json")
        losses[name] = answer_loss(model, prompt.ids, selection, list(range(31, 40))).mean()
        sizes = {key: head.kept.size for key, head in selection.heads.items()}
        assert all(size == (30 if name == "whole" and layer != 1 else 10) for (layer, _), size in sizes.items())
        if name == "whole":
            assert "layer 0 is left whole (whole_layers=sliding)" in done.stderr
            assert np.isclose(selection.retention(), (30 + 10 + 30) / 90)
            only = {key: head for key, head in selection.heads.items() if key[0] == 1}
            alone = answer_loss(model, prompt.ids, dataclasses.replace(selection, heads=only), list(range(31, 40)))
            assert np.isclose(alone.mean(), losses[name])
    assert not np.isclose(losses["whole"], losses["all"])
