"""From the options of `kvscope-capture` to files; options, texts and disk space are checked before the model loads."""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import shutil
import sys
from typing import Any

import h5py
import transformers

from kvscope_capture.attention import attending_layers, head_sizes
from kvscope_capture.capture_file import STORED_TYPES, CaptureOptions, written_alone
from kvscope_capture.command import (
    DTYPES,
    check_device,
    load_model,
    load_tokenizer,
    parse_layers,
    read_config,
    revision_of,
)
from kvscope_capture.console import TimeLeft, check_output, clear, show
from kvscope_capture.errors import CaptureError
from kvscope_capture.prompt import Prompt, SegmentKind, chat_frame, default_cut, question_prompt
from kvscope_capture.sources import Source, read_sources
from kvscope_capture.streaming import FINGERPRINT, capture_prompt, check_layers, fingerprint_of


class Capturing:
    """One run of the command: its prompts, and how far it came."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        """`arguments` of `command.parser`."""
        self.arguments = arguments
        self.outs: list[pathlib.Path] = []
        self.whole = 0

    def run(self) -> None:
        """Errors (CaptureError): those of the parts; nothing is loaded or written before the options are checked."""
        given = self.arguments
        options = options_of(given)
        sources = read_sources(given)
        self.outs = output_paths(given.out, sources)
        for out in self.outs:
            check_output(out, given.overwrite or given.resume)
        show("reading the configuration")
        check_device(given.device)
        config = read_config(given.model, given.revision)
        head_sizes(config)
        check_layers(options.layers, config)
        tokenizer = load_tokenizer(given.model, given.revision)
        limit, reason = token_limit(config, given.max_tokens)
        prompts = [build_prompt(tokenizer, source, given, limit) for source in sources]
        waiting = [
            i for i, out in enumerate(self.outs) if not (given.resume and self._is_whole(out, prompts[i], config))
        ]
        check_room(config, options, [(self.outs[i], len(prompts[i].ids)) for i in waiting])
        notes = [notes_of(prompt, given.notes, reason) for prompt in prompts]
        clear()
        for i in waiting:
            announce(
                sources[i].name if len(sources) > 1 else "", prompts[i], notes[i].removeprefix(given.notes), options
            )
        if not waiting:
            return
        for i in waiting:
            with written_alone(self.outs[i]):  # reports another run before the model is loaded
                pass
        show("loading the model")
        model, _ = load_model(given.model, given.revision, given.compute_dtype, given.device)
        check_weights(model, [out for i, out in enumerate(self.outs) if i not in waiting])
        time = TimeLeft(len(waiting))
        for done, i in enumerate(waiting):
            before = f"{sources[i].name} ({done + 1} of {len(waiting)}{time.after(done)}): " if len(sources) > 1 else ""
            self._capture(model, prompts[i], self.outs[i], options_of(given, notes[i]), before)

    def _is_whole(self, out: pathlib.Path, prompt: Prompt, config: Any) -> bool:
        """A finished capture of this prompt, model and options. Errors: a file that holds something else."""
        if not out.exists():
            return False
        different: list[str] = []
        try:
            with h5py.File(out, "r") as file:
                same = file["tokens/ids"][()].tolist() == prompt.ids
                same = same and file.attrs.get("model_id") == self.arguments.model
                different = other_options(file, self.arguments, prompt, config) if same else []
        except (OSError, KeyError, ValueError):
            same = False
        if different:
            raise CaptureError(
                f"is a capture of this prompt with other {', '.join(different)}",
                str(out),
                "Name another file, give the options of that run, or --overwrite in place of --resume",
            )
        if not same:
            raise CaptureError(
                "holds something else than this prompt through this model", str(out), "Name another file, or move it"
            )
        print(f"{out}: is there already")
        self.whole += 1
        return True

    def _capture(self, model: Any, prompt: Prompt, out: pathlib.Path, options: CaptureOptions, before: str) -> None:
        given = self.arguments
        revision = revision_of(given.model, given.revision)

        def progress(step: str) -> None:
            show(before + step)

        try:
            digest = capture_prompt(
                model, prompt, out, options, given.model, revision, progress, given.force, given.resume
            )
        except CaptureError as error:
            if not before:
                raise
            raise CaptureError(error.sentence, f"{out}: {error.place}", error.remedy) from error
        self.whole += 1
        clear()
        print(f"{out}: {len(prompt.ids)} tokens, hash {digest}", flush=True)

    def left_behind(self) -> str:
        """What a stopped run leaves: whole captures and a partial one; empty: nothing."""
        partial = [path for path in (out.with_name(out.name + ".partial") for out in self.outs) if path.exists()]
        parts = [f"{self.whole} of {len(self.outs)} captures are whole"] if len(self.outs) > 1 else []
        parts += [f"{path} holds the layers that are finished" for path in partial]
        return "; ".join([*parts, "the same command with --resume goes on"]) if partial or self.whole else ""


def options_of(given: argparse.Namespace, notes: str = "") -> CaptureOptions:
    """What is stored. Errors: numbers out of range, options that contradict each other."""
    if given.max_tokens < 2 or given.q_window < 0:
        raise CaptureError("must be positive", "--max-tokens, --q-window")
    if "" in given.needle:
        raise CaptureError("is empty", "--needle", "Give it some text")
    if given.depth and len(given.depth) != len(given.needle):
        raise CaptureError(
            f"{len(given.depth)} depths for {len(given.needle)} needles", "--depth", "Give one for each --needle"
        )
    for depth in given.depth:
        if not 0 <= depth <= 1:
            raise CaptureError(f"{depth:g} is no fraction of the context", "--depth", "Give 0 (first) to 1 (last)")
    if given.system and not given.chat:
        raise CaptureError("a system's message needs the chat template", "--system", "Add --chat")
    if given.bos and given.chat:
        raise CaptureError("the chat template writes its own special tokens", "--bos", "Leave it out")
    return CaptureOptions(
        dtype=DTYPES[given.dtype],
        layers=parse_layers(given.layers),
        q_window=given.q_window,
        o_proj=given.o_proj,
        pre_rope=given.pre_rope,
        compress=given.compress,
        notes=notes,
    )


def other_options(file: h5py.File, given: argparse.Namespace, prompt: Prompt, config: Any) -> list[str]:
    """The options in which a finished capture differs from those given; what it does not state counts as equal."""
    options, n = options_of(given), len(prompt.ids)
    layers = {int(name): layer for name, layer in file["layers"].items()}
    window = options.q_window if 0 < options.q_window < n else 0
    name = "q_window" if window else "q"
    queries = all(name in layer and layer[name].shape[1] == (window or n) for layer in layers.values())
    types = {str(layer["k"].attrs.get("dtype", layer["k"].dtype)) for layer in layers.values()}
    before = all(
        ("k_pre" in layer) == (options.pre_rope and bool(layer.attrs["has_rope"])) for layer in layers.values()
    )
    ran = json.loads(file.attrs.get("self_check", "{}")).get("model_dtype")
    own = getattr(config, "dtype", None)
    asked = DTYPES[given.compute_dtype] if given.compute_dtype else str(own or ran).removeprefix("torch.")
    revisions = {file.attrs.get("model_revision", ""), revision_of(given.model, given.revision)} - {""}
    checks = {
        "segments": file["tokens/segments"][()].tolist() == [list(map(int, segment)) for segment in prompt.segments],
        "revision": len(revisions) < 2,
        "layers": set(layers) == set(options.layers or attending_layers(config)),
        "stored type (--dtype)": types == {options.dtype},
        "queries (--q-window)": queries,
        "tensors before RoPE (--pre-rope)": before,
        "output projection (--o-proj)": all(("o_proj" in layer) == options.o_proj for layer in layers.values()),
        "type of the model (--compute-dtype)": ran in (None, asked),
    }
    return [name for name, same in checks.items() if not same]


def check_weights(model: Any, whole: list[pathlib.Path]) -> None:
    """Errors (CaptureError): a finished capture was made from other weights. One without a fingerprint is accepted.

    So is one of another version of Transformers, which may name or join weights differently.
    """
    own = fingerprint_of(model) if whole else ""
    for out in whole:
        with h5py.File(out, "r") as file:
            same_version = file.attrs.get("transformers_version") == transformers.__version__
            if same_version and file.attrs.get(FINGERPRINT, own) != own:
                raise CaptureError(
                    "is a capture of this prompt through other weights",
                    str(out),
                    "Name another file, or give --overwrite in place of --resume",
                )


def output_paths(out: str, sources: list[Source]) -> list[pathlib.Path]:
    """One file for each prompt. Errors: several prompts for one file."""
    paths = [pathlib.Path(out.replace("{}", source.name)) for source in sources]
    if len(set(paths)) < len(paths):
        raise CaptureError(
            f"{len(paths)} prompts would go to {len(set(paths))} files",
            "--out",
            "Put {} into the name, which becomes the row or the text's file name",
        )
    return paths


def token_limit(config: Any, asked: int) -> tuple[int, str]:
    """Tokens that a prompt may have, and why not more."""
    positions = getattr(config, "max_position_embeddings", None)
    if positions and 0 < positions < asked:  # XLNet has -1
        return positions, f"the model has {positions} positions"
    return asked, f"--max-tokens is {asked}"


def build_prompt(tokenizer: Any, source: Source, given: argparse.Namespace, limit: int) -> Prompt:
    """Errors: those of `chat_frame` and `question_prompt`, an empty text."""
    text, question, frame = source.text, source.question, None
    if given.chat:
        text, question = (text.lstrip(), question.rstrip()) if question.strip() else (text.strip(), "")
        frame = chat_frame(tokenizer, given.system, text, question)
    try:
        prompt = question_prompt(
            *(tokenizer, text, limit, given.needle, question, source.answer, given.bos),
            depths=given.depth,
            frame=frame,
        )
        if len(prompt.ids) < 2:
            raise CaptureError("the prompt has fewer than two tokens", "--text", "Give it some text")
    except CaptureError as error:
        raise CaptureError(error.sentence, f"{error.place}: {source.name}", error.remedy) from error
    return prompt


def notes_of(prompt: Prompt, notes: str, reason: str) -> str:
    """The user's notes, and by how much the text was cut."""
    (begin, end), *_ = ((b, e) for b, e, kind in prompt.segments if kind == SegmentKind.CONTEXT)
    if not prompt.left_out:
        return notes
    cut = f"The text was cut from {end - begin + prompt.left_out} to {end - begin} tokens: {reason}."
    return f"{notes} {cut}".strip()


def announce(name: str, prompt: Prompt, note: str, options: CaptureOptions) -> None:
    """Says on stderr what the user may not expect of the prompt."""
    lines = [note.strip()] if note.strip() else []
    n, cut = len(prompt.ids), default_cut(prompt.segments, len(prompt.ids))
    if 0 < options.q_window <= n - cut:
        lines.append(
            f"No query before the default cut ({cut}) is stored, and SnapKV, TOVA, H2O and others need some; "
            f"--q-window {n - cut + 64} stores 64."
        )
    lines += [f"Needle: tokens {b} to {e - 1}." for b, e, kind in prompt.segments if kind == SegmentKind.NEEDLE]
    for line in lines:
        print(f"{name}: {line}" if name else line, file=sys.stderr)


def stored_bytes(config: Any, tokens: int, options: CaptureOptions) -> int:
    """Bytes of the tensors that a capture holds, by the configuration, and of the residual stream beside it.

    Errors: those of `head_sizes`.
    """
    heads, kv_heads, key, value = head_sizes(config)
    queries = min(tokens, options.q_window or tokens) * heads * key
    layer = queries + tokens * kv_heads * (key + value)
    layer += (
        queries + tokens * kv_heads * key
    ) * options.pre_rope + config.hidden_size * heads * value * options.o_proj
    layers = len(options.layers or attending_layers(config))
    return int(layer * layers * STORED_TYPES[options.dtype].itemsize + tokens * config.hidden_size * 4)


def check_room(config: Any, options: CaptureOptions, files: list[tuple[pathlib.Path, int]]) -> None:
    """Errors: the disk has no room for `files` (path, tokens); a compressed capture is assumed to take half."""
    wanted: dict[pathlib.Path, float] = {}
    for out, tokens in files:
        partial = out.with_name(out.name + ".partial")
        there = partial.stat().st_size if partial.exists() else 0
        need = stored_bytes(config, tokens, options) * (0.5 if options.compress else 1) - there
        wanted[out.parent] = wanted.get(out.parent, 0) + max(0, need)
    for folder, need in wanted.items():
        free = shutil.disk_usage(folder).free
        if need > free:
            raise CaptureError(
                f"there is no room for about {_size(need)} ({_size(free)} are free)",
                str(folder),
                "Store fewer layers (--layers) or queries (--q-window), or write elsewhere",
            )


def _size(count: float) -> str:
    power = min(3, int(math.log(max(count, 1), 1024)))
    return f"{count / 1024**power:.1f} {('bytes', 'KiB', 'MiB', 'GiB')[power]}"
