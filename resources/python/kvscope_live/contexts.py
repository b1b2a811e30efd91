"""A context that was read once: what the views need of it, and the cache that policies prune."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from kvscope_capture.attention import AttentionCall, decoder_of, layers_of
from kvscope_capture.capture_file import CaptureFile, CaptureOptions, LayerRecord, json_text, written_alone
from kvscope_capture.console import TimeLeft
from kvscope_capture.prompt import Prompt, Segment
from kvscope_capture.rope import read_rope
from kvscope_capture.self_check import Rotation, SelfCheck
from kvscope_capture.streaming import (
    FINGERPRINT,
    fingerprint_of,
    layer_attributes,
    output_projection,
    root_attributes,
    rope_arrays,
    token_arrays,
    token_nll,
)
from kvscope_live.channel import Channel
from kvscope_live.errors import UNSUPPORTED_MODEL, LiveError, not_finite
from kvscope_live.frames import BLOB_BYTES
from kvscope_live.models import OpenModel
from kvscope_live.requests import bad
from kvscope_live.selections import Shape
from kvscope_press.attend_behind import PrunedLayer
from kvscope_press.pruned_context import CachedContext, ReadContext

DTYPE_NAMES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.float64: "f64"}
STORED = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}
TAIL_BLOCK = 256


class LiveContext:
    """Keys and values of the tokens before the cut, in the model's type, on its device; all else is for the views."""

    def __init__(self, opened: OpenModel, ids: list[int], segments: list[Segment], cut: int, channel: Channel) -> None:
        """Runs the prompt through the model: the first `cut` tokens, then those behind them.

        Errors (LiveError, CaptureError): the model's attention cannot be watched or is none that a capture could hold,
        or its losses are not finite.
        """
        self.opened, self.ids, self.segments, self.cut = opened, ids, segments, cut
        self.attributes: list[dict[str, Any]] = []
        self.tail: list[AttentionCall] = []
        channel.progress("self-check", 0, 1)
        self.check = SelfCheck(opened.model, ids)
        self._require_check()  # a model that fails here might not even run behind a cut
        layers = len(layers_of(opened.model))
        time = TimeLeft(layers)

        def keep(call: AttentionCall) -> AttentionCall:
            channel.progress("reading", call.layer, layers, time.seconds(call.layer))
            self.attributes.append(layer_attributes(call, opened.model))
            query, value = call.query.cpu(), call.value.contiguous()
            return dataclasses.replace(call, unrotated=None, query=query, value=value)

        read = ReadContext(opened.model, ids, cut, keep, self.check.add, losses=True)
        self.calls, self.last_logits = read.calls, read.last_logits
        self.layers = {call.layer: PrunedLayer.whole(call) for call in read.calls}
        self.nll = np.concatenate([read.nll, self._read_tail()])
        if (bad_losses := np.flatnonzero(~np.isfinite(self.nll[1:]))).size:
            raise not_finite(f"the model's loss of token {bad_losses[0] + 1}", opened.name)
        self.check.compare_loss(self.nll)
        self._require_check()
        # LongRoPE and dynamic RoPE choose their frequencies by the text's length: the next text may change the model's.
        self._rope = read_rope(decoder_of(opened.model), self.check.rotation or Rotation())
        channel.progress("reading", layers, layers)

    def _require_check(self) -> None:
        if failure := self.check.failure():
            kind = type(self.opened.model).__name__
            raise LiveError(UNSUPPORTED_MODEL, failure, self.opened.name, "", architecture=kind)

    def shape(self) -> Shape:
        """What selections must fit."""
        call = self.calls[0]
        return Shape(len(self.calls), call.key.shape[0], call.query.shape[0], self.cut)

    def whole_cache(self) -> CachedContext:
        """The full cache, with nothing behind the cut, under the model's own attention."""
        return self.cache(self.layers)

    def cache(self, layers: Mapping[int, PrunedLayer]) -> CachedContext:
        """What policies keep, with nothing behind the cut."""
        return CachedContext(self.opened.model, self.cut, len(self.ids), layers, self.last_logits)

    def _read_tail(self) -> Any:
        """Queries, keys and values behind the cut; losses of these tokens."""
        cache, rest = self.whole_cache(), self.ids[self.cut :]
        queries: list[list[torch.Tensor]] = [[] for _ in self.calls]
        last: dict[int, AttentionCall] = {}  # its keys and values are those of all tokens behind the cut so far

        def keep(call: AttentionCall) -> None:
            queries[call.layer].append(call.query[0].cpu())
            last[call.layer] = call

        cache.watch = keep
        hidden = [cache.extend_rows([rest[i : i + TAIL_BLOCK]])[0] for i in range(0, len(rest), TAIL_BLOCK)]
        for layer, call in sorted(last.items()):
            query = torch.cat(queries[layer], 1)
            self.tail.append(dataclasses.replace(call, query=query, key=call.key[0], value=call.value[0]))
        if not rest:
            return np.empty(0, np.float32)
        tokens = torch.tensor(rest, device=self.last_logits.device)
        with torch.no_grad():
            nll = token_nll(self.opened.model, torch.cat(hidden), tokens)
        nll[0] = torch.nn.functional.cross_entropy(self.last_logits, tokens[0]).cpu()
        return nll

    def tensor(self, layer: int, role: str) -> torch.Tensor:
        """[heads, n, width]; o_proj [hidden, Hq, dv]."""
        if role == "o_proj":
            if layer in self.check.followed:
                raise bad("role", f"tells nothing in layer {layer}: a gate or a norm lies before the output projection")
            return output_projection(self.calls[layer])
        name = {"k": "key", "v": "value", "q": "query"}.get(role)
        if name is None:
            raise bad("role", "is not one of k, v, q, o_proj")
        rest = [getattr(self.tail[layer], name)] if self.tail else []
        return torch.cat([getattr(self.calls[layer], name), *rest], 1)

    def info(self) -> dict[str, Any]:
        """Root and layers by the names of the capture format; JSON attributes as objects."""
        root = self._root(CaptureOptions())
        decoded = {key: json.loads(root[key]) for key in ("rope", "config_json", "self_check")}
        frequencies = {
            key.removeprefix("rope/").removesuffix("inv_freq").rstrip("/"): array.tolist()
            for key, array in rope_arrays(self._rope).items()
        }
        layers = [self._layer(call, given) for call, given in zip(self.calls, self.attributes, strict=True)]
        return (
            root
            | decoded
            | {"rope": decoded["rope"] if self._rope else None, "inv_freq": frequencies, "layers": layers}
        )

    def _root(self, options: CaptureOptions) -> dict[str, Any]:
        opened = self.opened
        options = dataclasses.replace(options, notes=self._beyond())
        return root_attributes(opened.model, self.check, self._rope, options, opened.name, opened.revision)

    def _beyond(self) -> str:
        """What to note of a text that is longer than those the model was made for; it runs, but may not understand."""
        most = getattr(decoder_of(self.opened.model).config, "max_position_embeddings", None) or 0
        if not 0 < most < len(self.ids):
            return ""
        return f"the text has {len(self.ids)} tokens, and the model was made for {most}: its answers may be poor"

    def _layer(self, call: AttentionCall, given: dict[str, Any]) -> dict[str, Any]:
        facts = {
            "layer": call.layer,
            "stage": "post_qk_norm_post_rope_pre_scale",
            "dtype": DTYPE_NAMES[call.key.dtype],
            "queries": len(self.ids),
            "hidden": 0 if call.layer in self.check.followed else int(decoder_of(self.opened.model).config.hidden_size),
            "sinks": None if call.sinks is None else call.sinks.float().tolist(),
            "self_check": self.check.of_layer(call.layer),
        }
        return given | {"kv_of_q": given["kv_of_q"].tolist()} | facts

    def tokens(self) -> dict[str, Any]:
        """Ids, positions, losses (the first null) and segments, whose kinds are words."""
        return {
            "ids": self.ids,
            "positions": list(range(len(self.ids))),
            "nll": [None, *self.nll[1:].astype(float).tolist()],
            "segments": [[begin, end, kind.name.lower()] for begin, end, kind in self.segments],
        }

    def identity(self) -> str:
        """Names what was read: model, its type, tokens and cut; 64 hexadecimal digits like a capture's hash."""
        model = self.opened.model
        named = [self.opened.name, self.opened.revision, str(model.dtype), fingerprint_of(model)]
        return hashlib.sha256(json.dumps([*named, self.cut, self.ids]).encode()).hexdigest()

    def save(self, path: pathlib.Path, channel: Channel) -> str:
        """Writes a capture of the very tensors that `tensor` gives, in the model's type; returns its hash.

        Errors (CaptureError): it cannot be written, another run writes it; Stopped. Neither leaves anything behind.
        """
        model, prompt = self.opened.model, Prompt(self.opened.tokenizer)
        prompt.ids, prompt.segments = self.ids, self.segments
        options = CaptureOptions(dtype=STORED[DTYPE_NAMES[model.dtype]])
        with written_alone(path):
            file = CaptureFile(path, options, "live", stays=False)
            steps = len(self.calls) + 1  # the last one is the hash
            try:
                for call, given in zip(self.calls, self.attributes, strict=True):
                    channel.progress("saving", call.layer, steps)
                    tensors = {role: self.tensor(call.layer, role) for role in "qkv"}
                    tensors |= {} if call.sinks is None else {"sinks": call.sinks}
                    check = {"self_check": json_text(self.check.of_layer(call.layer))}
                    file.write_layer(LayerRecord(call.layer, tensors, given | check))
                root = self._root(options) | {FINGERPRINT: fingerprint_of(model)}
                file.write_root(root, token_arrays(prompt, self.nll) | rope_arrays(self._rope))
                return file.finish(lambda step: channel.progress(step, steps - 1, steps), channel.checkpoint)
            except BaseException:
                file.remove()
                raise


def pieces(tensor: torch.Tensor) -> Iterator[tuple[int, bytes]]:
    """Offsets and bytes, little-endian, in pieces that fit a frame."""
    flat = tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
    for begin in range(0, flat.size, BLOB_BYTES):
        yield begin, flat[begin : begin + BLOB_BYTES].tobytes()
