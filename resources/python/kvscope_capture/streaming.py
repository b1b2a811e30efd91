"""Runs a prompt through a model and writes each layer after it ran: memory holds the model and one layer's tensors.

After every stored layer the residual stream is saved beside the growing file. A capture that was interrupted goes on
from there: the layers that are done only return the saved stream.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import itertools
import json
import os
import pathlib
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
import transformers

from kvscope_capture.attention import (
    AttentionCall,
    attending_layers,
    decoder_of,
    layer_count,
    layer_kinds,
    layers_of,
    logits_of,
    named,
    normalises_queries,
    observed_attention,
    projection_of,
    rotary_of,
)
from kvscope_capture.capture_file import (
    Array,
    CaptureFile,
    CaptureOptions,
    LayerRecord,
    json_text,
    not_written,
    written_alone,
)
from kvscope_capture.console import TimeLeft
from kvscope_capture.errors import CaptureError
from kvscope_capture.prompt import Prompt, TokenBytes
from kvscope_capture.rope import RopeFacts, read_rope
from kvscope_capture.self_check import Rotation, SelfCheck, require
from kvscope_capture.version import VERSION

TESTED = (
    *("llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe", "gemma2", "gemma3_text", "phi3", "olmo2", "gpt2"),
    *("gpt_neox", "granite", "cohere", "smollm3", "glm4", "gpt_oss", "deepseek_v3"),
    *("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "olmo_hybrid", "kimi_linear", "bailing_hybrid", "minimax"),
    *("jamba", "granitemoehybrid", "nemotron_h", "bamba", "zamba", "zamba2", "falcon_h1", "lfm2", "lfm2_moe"),
    *("lfm3", "recurrent_gemma", "afmoe", "beam", "bitnet", "laguna", "moshi", "ctrl", "zaya"),
)
NLL_ROWS = 512
SAMPLED = 256
FINGERPRINT = "weights_fingerprint"  # attribute of the root: `fingerprint_of` the model that was captured
Progress = Callable[[str], None]


def capture_prompt(
    model: Any,
    prompt: Prompt,
    out: pathlib.Path,
    options: CaptureOptions | None = None,
    model_id: str = "",
    revision: str = "",
    progress: Progress = lambda _: None,
    force: bool = False,
    resume: bool = False,
) -> str:
    """Writes the capture of `prompt` through `model` to `out`; returns its hash.

    The capture is compared with the model (self_check.py); the result is in the file. `force` writes it although a
    check failed, which then marks it. Errors (CaptureError): a failed check, a model that cannot be watched, layers
    that it lacks, values that cannot be stored, a folder that cannot be written, another run that writes `out`.

    An interrupted run leaves `out`.partial, which the same call continues; a partial file of another prompt, other
    weights or options is written anew, or refused where `resume` is asked for.
    """
    options = options or CaptureOptions()
    _check(model, prompt, options)
    with written_alone(out):
        return _capture(model, prompt, out, options, model_id, revision, progress, force, resume)


def _capture(
    model: Any,
    prompt: Prompt,
    out: pathlib.Path,
    options: CaptureOptions,
    model_id: str,
    revision: str,
    progress: Progress,
    force: bool,
    resume: bool,
) -> str:
    progress("self-check")
    check = SelfCheck(model, prompt.ids)
    require(check, force)
    if options.o_proj:
        check.require_projection()
    read_rope(decoder_of(model), check.rotation or Rotation())  # refuses before the run what the format cannot hold
    fingerprint = fingerprint_of(model)
    state = _state(model, prompt, options, model_id, revision, fingerprint)
    stream = _ResidualStream(out.with_name(out.name + ".stream.pt"), state, model.device)
    saved = stream.load()
    file = CaptureFile(out, options, state, saved[0] if saved else -1, resume)
    nll = _run(model, prompt, options, file, stream, saved, progress, check)
    check.compare_loss(nll)

    def abandon() -> None:
        stream.remove()
        file.remove()

    require(check, force, abandon)
    rope = read_rope(decoder_of(model), check.rotation or Rotation())
    attributes = root_attributes(model, check, rope, options, model_id, revision) | {FINGERPRINT: fingerprint}
    file.write_root(attributes, token_arrays(prompt, nll) | rope_arrays(rope))
    digest = file.finish(progress)
    stream.remove()
    return digest


def check_layers(layers: tuple[int, ...] | None, config: Any) -> None:
    """Errors (CaptureError): a layer that the model lacks or that has no keys; those of `attending_layers`."""
    attending = attending_layers(config)
    for layer in sorted(set(layers or ()) - set(attending)):
        what = "has no keys and values" if 0 <= layer < layer_count(config) else "does not exist"
        raise CaptureError(f"layer {layer} {what}", "--layers", f"Name {named(attending)}")


def _check(model: Any, prompt: Prompt, options: CaptureOptions) -> None:
    check_layers(options.layers, decoder_of(model).config)
    if len(prompt.ids) < 2:
        raise CaptureError("the prompt has fewer than two tokens", "--text", "Give it some text")
    positions = getattr(decoder_of(model).config, "max_position_embeddings", None)
    if rotary_of(decoder_of(model)) is None and positions and len(prompt.ids) > positions > 0:
        raise CaptureError(
            f"the prompt has {len(prompt.ids)} tokens, the model has embeddings for {positions} positions",
            "--max-tokens",
            f"Ask for at most {positions}",
        )


def _published_config(model: Any) -> dict[str, Any]:
    """The model's configuration without the folder that it was loaded from, which is private."""
    config: dict[str, Any] = decoder_of(model).config.to_dict()
    return {key: value for key, value in config.items() if key != "_name_or_path"}


def _state(model: Any, prompt: Prompt, options: CaptureOptions, model_id: str, revision: str, fingerprint: str) -> str:
    parts = [
        model_id,
        revision,
        str(model.dtype),
        decoder_of(model).config.to_dict(),
        prompt.ids,
        prompt.segments,
        vars(options),
    ]
    parts += [transformers.__version__, fingerprint]
    return hashlib.sha256(json_text(parts).encode()).hexdigest()


def fingerprint_of(model: Any) -> str:
    """Hash of at least SAMPLED numbers of every weight, or all: a folder may hold another checkpoint the next time.

    Buffers are included, like the correction by which DeepSeek-V3 chooses its experts; those of the rotation are not,
    because they may change with the length of a prompt.
    """
    digest = hashlib.sha256()
    buffers = ((name, buffer) for name, buffer in model.named_buffers() if "inv_freq" not in name)
    for name, weight in itertools.chain(model.named_parameters(), buffers):
        digest.update(f"{name} {list(weight.shape)}".encode())
        if not weight.is_meta:
            sample = weight.detach().reshape(-1)[:: max(1, weight.numel() // SAMPLED)]
            digest.update(sample.double().cpu().numpy().tobytes())
    return digest.hexdigest()


class _ResidualStream:
    """The hidden states [1, n, hidden] behind the last finished layer, saved atomically."""

    def __init__(self, path: pathlib.Path, state: str, device: Any) -> None:
        self.path, self.state, self.device = path, state, device

    def save(self, layer: int, output: Any) -> None:
        tupled = isinstance(output, tuple)
        hidden = output[0] if tupled else output
        temporary = self.path.with_name(self.path.name + ".tmp")
        try:
            torch.save({"state": self.state, "layer": layer, "hidden": hidden, "tupled": tupled}, temporary)
            os.replace(temporary, self.path)
        except (OSError, RuntimeError) as error:  # a full disk
            raise not_written(self.path, error) from error
        finally:
            temporary.unlink(missing_ok=True)

    def load(self) -> tuple[int, Any] | None:
        """The finished layer and its output in the layer's own form; None if no stream of this capture is saved."""
        try:
            saved = torch.load(self.path, map_location=self.device, weights_only=True)
        except (OSError, RuntimeError, EOFError, pickle.UnpicklingError):
            return None
        if saved["state"] != self.state:
            return None
        return saved["layer"], (saved["hidden"],) if saved["tupled"] else saved["hidden"]

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
        self.path.with_name(self.path.name + ".tmp").unlink(missing_ok=True)  # left by a killed run


@contextlib.contextmanager
def _skipped_layers(model: Any, done: int, output: Any) -> Iterator[None]:
    """Layers 0 .. done return `output` without computing anything."""
    layers = list(layers_of(model))[: done + 1]
    for layer in layers:
        layer.forward = lambda *args, **kwargs: output
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward


@contextlib.contextmanager
def _saved_stream(model: Any, stream: _ResidualStream, after: int, wanted: set[int]) -> Iterator[None]:
    """Saves the stream behind every stored layer that runs; the others are cheap to repeat."""
    handles = []
    for index, layer in enumerate(layers_of(model)):
        if index > after and index in wanted:
            hook = lambda _module, _args, output, index=index: stream.save(index, output)  # noqa: E731
            handles.append(layer.register_forward_hook(hook))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _run(
    model: Any,
    prompt: Prompt,
    options: CaptureOptions,
    file: CaptureFile,
    stream: _ResidualStream,
    saved: tuple[int, Any] | None,
    progress: Progress,
    check: SelfCheck,
) -> Array:
    """Writes the layers that `file` lacks; returns the NLL of the tokens, [n], the first NaN."""
    layers = layers_of(model)
    wanted = set(options.layers) if options.layers is not None else set(check.layers)
    done = saved[0] if saved and all(i in file.finished_layers for i in wanted if i <= saved[0]) else -1
    for layer, differences in file.layer_checks().items():
        check.take(layer, json.loads(differences))

    time = TimeLeft(len(layers) - done - 1)

    def observe(call: AttentionCall) -> None:
        progress(f"layer {call.layer + 1} of {len(layers)}{time.after(call.layer - done - 1)}")

    def finished(call: AttentionCall, output: Any) -> None:
        check.add(call, output)
        if call.layer in wanted and call.layer not in file.finished_layers:
            file.write_layer(_record(call, model, options, check))

    ids = torch.tensor([prompt.ids], device=model.device)
    with torch.no_grad(), contextlib.ExitStack() as stack:
        stack.enter_context(observed_attention(model, observe, finished))
        stack.enter_context(_saved_stream(model, stream, done, wanted))
        if saved and done >= 0:
            progress(f"continuing after layer {done + 1}")
            stack.enter_context(_skipped_layers(model, done, saved[1]))
        positions = torch.arange(ids.shape[1], device=ids.device)[None]
        hidden = decoder_of(model)(input_ids=ids, position_ids=positions, use_cache=False).last_hidden_state[0]
        progress("token losses")
        return token_nll(model, hidden, ids[0])


def _record(call: AttentionCall, model: Any, options: CaptureOptions, check: SelfCheck) -> LayerRecord:
    """The tensors that the options ask for and the layer's attributes."""
    window = options.q_window if 0 < options.q_window < call.query.shape[1] else 0
    tensors = {"q_window" if window else "q": call.query[:, -window:], "k": call.key, "v": call.value}
    if options.pre_rope and (before := check.before_rotation(call)):
        tensors |= before | {"q_pre": before["q_pre"][:, -window:]}
    if call.sinks is not None:
        tensors["sinks"] = call.sinks
    if options.o_proj:
        tensors["o_proj"] = output_projection(call)
    differences = {"self_check": json_text(check.of_layer(call.layer))}
    return LayerRecord(call.layer, tensors, layer_attributes(call, model) | differences)


def layer_attributes(call: AttentionCall, model: Any) -> dict[str, Any]:
    """The attributes of a layer by the names of the format, without its self-check."""
    index, heads, kv_heads = call.layer, call.query.shape[0], call.key.shape[0]
    kind = layer_kinds(decoder_of(model).config)[index]
    return {
        "scaling": call.scaling,
        "kv_of_q": np.arange(heads, dtype=np.int32) // (heads // kv_heads),
        "attn_type": kind or ("sliding" if call.sliding_window else "full") + "_attention",
        "sliding_window": call.sliding_window,
        "has_rope": call.unrotated is not None,
        "qk_norm": normalises_queries(call.module),
        "softcap": call.softcap,
    }


def output_projection(call: AttentionCall) -> torch.Tensor:
    """W_o as [hidden, Hq, dv]. GPT-2's Conv1D stores it transposed."""
    projection = projection_of(call.module)
    weight: torch.Tensor = projection.weight if isinstance(projection, torch.nn.Linear) else projection.weight.T
    return weight.detach().reshape(weight.shape[0], call.query.shape[0], -1)


def token_nll(model: Any, hidden: torch.Tensor, ids: torch.Tensor) -> Array:
    """-log p(token) in nats, [n], the first NaN; in blocks of rows, because n x vocabulary logits may not fit."""
    parts = [torch.tensor([torch.nan])]
    for begin in range(0, len(ids) - 1, NLL_ROWS):
        target = ids[begin + 1 : begin + 1 + NLL_ROWS]
        logits = logits_of(model, hidden[begin : begin + len(target)])
        parts.append(torch.nn.functional.cross_entropy(logits, target, reduction="none").cpu())
    nll: Array = torch.cat(parts).numpy().astype(np.float32)
    return nll


def token_arrays(prompt: Prompt, nll: Array) -> dict[str, Array]:
    """The data sets below /tokens."""
    token_bytes = TokenBytes(prompt.tokenizer)
    texts = [token_bytes(token) for token in prompt.ids]
    return {
        "tokens/ids": np.asarray(prompt.ids, np.int32),
        "tokens/text": np.frombuffer(b"".join(texts), np.uint8),
        "tokens/offsets": np.cumsum([0] + [len(text) for text in texts]).astype(np.int64),
        "tokens/position_ids": np.arange(len(prompt.ids), dtype=np.int64),
        "tokens/nll": nll,
        "tokens/segments": np.asarray(prompt.segments, np.int32).reshape(-1, 3),
    }


def rope_arrays(rope: RopeFacts | None) -> dict[str, Array]:
    """The data sets below /rope."""
    if rope is None:
        return {}
    return {f"rope/{name}/inv_freq" if name else "rope/inv_freq": array for name, array in rope.inv_freq.items()}


def root_attributes(
    model: Any,
    check: SelfCheck,
    rope: RopeFacts | None,
    options: CaptureOptions,
    model_id: str,
    revision: str,
) -> dict[str, Any]:
    """The root attributes by the names of the format."""
    attributes = {
        "format": "kvscope-capture",
        "version": 1,
        "created": datetime.date.today().isoformat(),
        "tool": f"kvscope_capture {VERSION}",
        "model_id": model_id,
        "model_revision": revision,
        "transformers_version": transformers.__version__,
        "attn_implementation": "sdpa",
        "num_layers": len(layers_of(model)),
        "num_q_heads": check.shapes["heads"],
        "num_kv_heads": check.shapes["kv_heads"],
        "head_dim": check.shapes["head_dim"],
        "value_dim": check.shapes["value_dim"],
        "rope": json_text(rope.attribute if rope else {"type": "none", "rotary_dim": 0, "layout": "half"}),
        "config_json": json_text(_published_config(model)),
        "architecture_tested": decoder_of(model).config.model_type in TESTED,
        "self_check": json_text({"checks": check.checks(), "model_dtype": str(model.dtype).removeprefix("torch.")}),
    }
    return attributes | ({"notes": options.notes} if options.notes else {})
