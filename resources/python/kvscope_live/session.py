"""The methods of the protocol: one session holds models, contexts and selections."""

from __future__ import annotations

import base64
import collections
import importlib.metadata
import pathlib
import platform
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kvscope_capture.prompt import SegmentKind, TokenBytes, default_cut
from kvscope_capture.version import VERSION
from kvscope_live.channel import Channel
from kvscope_live.errors import BAD_PARAMETERS, GONE, LiveError
from kvscope_live.prompting import build_prompt
from kvscope_live.remembered import Remembered
from kvscope_live.requests import Request, bad
from kvscope_live.rows import MOST_ROWS, Rows

if TYPE_CHECKING:  # what needs torch is imported when it is asked for: the greeting does not wait for it
    import torch

    from kvscope_live.answers import Answers
    from kvscope_live.contexts import LiveContext
    from kvscope_live.importance import Expected
    from kvscope_live.models import OpenModel
    from kvscope_live.selections import Selection

# 1.2 adds context/save, 1.3 rows that fail alone, 1.4 chunks that do, 1.5 model/list, 1.6 the rows of a tensor
PROTOCOL = [1, 6]
MOST_TOKENS = 400_000  # whose ids, losses and texts fit one message
MOST_GENERATED, MOST_STEPS = 4096, 1024
MOST_LISTED = 1000  # models
SELECTION_BYTES = 512 << 20  # of all selections of a context; the least recently used one goes
NEWEST = 4  # unfinished uploads, and sums of gradients, that a context keeps
KINDS = {kind.name.lower(): kind for kind in SegmentKind}


class ContextState:
    """A context of the model named `model`, with its answers and selections."""

    def __init__(self, model: str, context: LiveContext, answers: Answers) -> None:
        """Without selections."""
        self.model, self.context, self.answers = model, context, answers
        self.selections: collections.OrderedDict[str, Selection] = collections.OrderedDict()
        self.bytes = 0  # of the selections
        self.parts = Remembered(NEWEST)  # (generation, Parts) by name; an abandoned upload leaves its entry
        self.scores = Remembered(NEWEST)  # TokenScores by question, answer and number of steps

    def add(self, selection: Selection) -> None:
        """Adds a selection, as the one used last."""
        self.bytes += 0 if selection.id in self.selections else selection.size()
        self.selections[selection.id] = selection
        self.selections.move_to_end(selection.id)
        while len(self.selections) > 2 and self.bytes > SELECTION_BYTES:
            self.bytes -= self.selections.popitem(last=False)[1].size()

    def find(self, name: Any) -> Selection | LiveError | None:
        """The selection of this name; None stands for the full cache."""
        if name is None:
            return None
        if not isinstance(name, str) or name not in self.selections:
            return LiveError(GONE, f"there is no selection {name!r}", "selection_ids", "Send it again")
        self.selections.move_to_end(name)
        return self.selections[name]


class Session:
    """Answers requests one after the other, on the main thread."""

    def __init__(self, channel: Channel | None = None) -> None:
        """`channel` is set before the first request."""
        self.channel: Channel = channel  # type: ignore[assignment]
        self.models: dict[str, OpenModel] = {}
        self.contexts: dict[str, ContextState] = {}
        self.tokenizer: tuple[tuple[str, str | None], Any] | None = None
        self.count = 0
        self.methods: dict[str, Callable[[Request], dict[str, Any]]] = {
            "initialize": self._initialize,
            "model/list": self._list,
            "model/inspect": self._inspect,
            "model/open": self._open,
            "model/close": self._close_model,
            "text/tokenize": self._tokenize,
            "context/read": self._read,
            "context/save": self._save_context,
            "context/close": self._close_context,
            "tensors/get": self._tensor,
            "selection/set": self._select,
            "answer/score": self._score,
            "answer/generate": self._generate,
            "chunks/importance": self._chunks,
            "gradient/read": self._gradient,
            "shutdown": self._shutdown,
        }

    def _name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def _initialize(self, request: Request) -> dict[str, Any]:
        given = request.parameters
        if "parent_pid" in given:
            self.channel.watch_parent(given.integer("parent_pid", 1, 1 << 31))
        protocol = given.items("protocol")
        if protocol[:1] != PROTOCOL[:1]:
            remedy = "Install the kvscope-tools of the program's version"
            raise LiveError(-32602, f"the worker speaks protocol {PROTOCOL[0]}, not {protocol}", "protocol", remedy)
        self.channel.checkpoint(stage="starting")
        from kvscope_live import models

        self.channel.memory = models.memory_used
        versions = {name: importlib.metadata.version(name) for name in ("torch", "transformers", "tokenizers")}
        return {
            "protocol": PROTOCOL,
            "worker": {"kvscope": VERSION, "python": platform.python_version()} | versions,
            "devices": models.devices(),
            "capabilities": {
                "generate": True,
                "score": True,
                "capture": True,
                "importance": True,
                "list": True,
                "rows": True,
                "max_tokens": MOST_TOKENS,
            },
        }

    def _list(self, _: Request) -> dict[str, Any]:
        from kvscope_live.hub_cache import cached_models

        return {"models": cached_models()[:MOST_LISTED]}

    def _inspect(self, request: Request) -> dict[str, Any]:
        from kvscope_live.models import inspect_model

        return inspect_model(request.parameters.text("path"), request.parameters.text("revision", "") or None)

    def _open(self, request: Request) -> dict[str, Any]:
        from kvscope_live.models import open_model

        given = request.parameters
        path, revision = given.text("path"), given.text("revision", "") or None
        opened = open_model(path, revision, given.text("dtype", "auto"), given.text("device", "cpu"), self.channel)
        name = self._name("m")
        self.models[name] = opened
        return {"model_id": name, "revision": opened.revision, "dtype": str(opened.model.dtype).removeprefix("torch.")}

    def _close_model(self, request: Request) -> dict[str, Any]:
        name = request.parameters.text("model_id")
        self.contexts = {key: state for key, state in self.contexts.items() if state.model != name}
        self.models.pop(name, None)
        return {}

    def _model(self, request: Request) -> tuple[str, OpenModel]:
        """The model that is named, or else the one opened last."""
        name = request.parameters.text("model_id", next(reversed(self.models), ""))
        if name not in self.models:
            raise LiveError(GONE, f"there is no open model {name}".rstrip(), "model_id", "Open it first")
        return name, self.models[name]

    def _tokenize(self, request: Request) -> dict[str, Any]:
        given = request.parameters
        if "path" in given:
            tokenizer = self._tokenizer(given.text("path"), given.text("revision", "") or None)
        else:
            tokenizer = self._model(request)[1].tokenizer
        texts = []
        for entry in given.items("segments"):
            kind, text = (entry.get("kind"), entry.get("text")) if isinstance(entry, dict) else (None, None)
            if not isinstance(kind, str) or kind not in KINDS or not isinstance(text, str):
                raise bad("segments", f"are not of a text and a kind among {', '.join(KINDS)}")
            texts.append((KINDS[kind], text))
        prompt = build_prompt(tokenizer, texts, given.flag("chat"), given.flag("bos"))
        _require_room(len(prompt.ids), "segments")
        token_bytes = TokenBytes(tokenizer)
        return {
            "ids": prompt.ids,
            "segments": [[begin, end, kind.name.lower()] for begin, end, kind in prompt.segments],
            "bytes": [base64.b64encode(token_bytes(token)).decode() for token in prompt.ids],
            "cut": default_cut(prompt.segments, len(prompt.ids)),
        }

    def _tokenizer(self, path: str, revision: str | None) -> Any:
        """A model's tokenizer without the model; the one that was asked for last is kept."""
        from kvscope_capture.command import load_tokenizer
        from kvscope_live.models import config_of

        if self.tokenizer is None or self.tokenizer[0] != (path, revision):
            config_of(path, revision)  # raises where there is no such model
            self.tokenizer = ((path, revision), load_tokenizer(path, revision))
        return self.tokenizer[1]

    def _read(self, request: Request) -> dict[str, Any]:
        from kvscope_capture.command import text_config
        from kvscope_live.answers import Answers
        from kvscope_live.contexts import LiveContext
        from kvscope_live.models import bytes_per_token, require_memory

        given = request.parameters
        model, opened = self._model(request)
        ids = given.integers("ids", opened.model.get_input_embeddings().weight.shape[0])
        if len(ids) < 2:
            raise bad("ids", f"are {len(ids)} tokens, not 2 to {MOST_TOKENS}")
        _require_room(len(ids), "ids")
        config = text_config(opened.model.config)
        _require_positions(opened.model, len(ids), "ids")
        segments = [_segment(entry, len(ids)) for entry in given.items("segments")]
        cut = given.integer("cut", 1, len(ids))
        needed = bytes_per_token(config, opened.model.dtype.itemsize) * len(ids)
        require_memory(needed, str(opened.model.device), f"a context of {len(ids)} tokens")
        context = LiveContext(opened, ids, segments, cut, self.channel)
        digest = context.identity()
        if "capture_to" in given:
            digest = context.save(pathlib.Path(given.text("capture_to")), self.channel)
        name = self._name("c")
        self.contexts[name] = ContextState(model, context, Answers(context))
        return {"context_id": name, "info": context.info(), "tokens": context.tokens(), "capture_hash": digest}

    def _context(self, request: Request) -> ContextState:
        name = request.parameters.text("context_id")
        if name not in self.contexts:
            raise LiveError(GONE, f"there is no context {name}", "context_id", "Read it again")
        return self.contexts[name]

    def _save_context(self, request: Request) -> dict[str, Any]:
        """Writes a capture from what the context holds; the model does not run."""
        path = pathlib.Path(request.parameters.text("capture_to"))
        return {"capture_hash": self._context(request).context.save(path, self.channel)}

    def _close_context(self, request: Request) -> dict[str, Any]:
        self.contexts.pop(request.parameters.text("context_id"), None)
        return {}

    def _tensor(self, request: Request) -> dict[str, Any]:
        given, context = request.parameters, self._context(request).context
        role = given.text("role")
        tensor = context.tensor(given.integer("layer", 0, len(context.calls) - 1), role)
        if "rows" in given:
            begin, end = (*given.integers("rows", tensor.shape[1] + 1), -1, -1)[:2]
            if not 0 <= begin < end:
                raise bad("rows", "is not [begin, end] with begin < end")
            tensor = tensor[:, begin:end]
        return {"bytes": self._stream(request, tensor, role)}

    def _stream(self, request: Request, tensor: torch.Tensor, name: str) -> int:
        """Sends a tensor in pieces; returns its bytes."""
        from kvscope_live.contexts import DTYPE_NAMES, pieces

        total = tensor.numel() * tensor.element_size()
        about = {"id": request.id, "of": total, "dtype": DTYPE_NAMES[tensor.dtype], "shape": list(tensor.shape)}
        for offset, piece in pieces(tensor):
            self.channel.spend(len(piece))
            blob = {"name": name, "dtype": "u8", "shape": [len(piece)]}
            self.channel.notify("tensors/data", about | {"offset": offset, "blobs": [blob]}, [piece])
        return total

    def _select(self, request: Request) -> dict[str, Any]:
        from kvscope_live.selections import Parts

        given, state = request.parameters, self._context(request)
        name, parts = given.text("name"), given.integer("parts", 1, 1 << 16, 1)
        part, generation = given.integer("part", 0, parts - 1, 0), request.generation or 0
        begun = state.parts.pop(name, (-1, None))
        if part == 0:
            begun = (generation, Parts(state.context.shape()))
        if begun[1] is None or begun[0] != generation or begun[1].next != part:
            raise bad("part", f"{part} came without those before it")
        begun[1].add(given, request.blobs)
        if part + 1 < parts:
            state.parts.put(name, begun)
            return {"selection_id": None, "kept": 0, "bytes": 0}
        selection = begun[1].finish()
        state.add(selection)
        return {
            "selection_id": selection.id,
            "kept": selection.stored,
            "bytes": state.answers.bytes_of(selection),
        }

    def _ids(self, request: Request, name: str) -> list[int]:
        vocabulary = self._context(request).context.opened.model.get_input_embeddings().weight.shape[0]
        return request.parameters.integers(name, vocabulary)

    def _score(self, request: Request) -> dict[str, Any]:
        state = self._context(request)
        rows = Rows(request, state.find)
        self.channel.checkpoint(stage="scoring")
        question, answer = self._ids(request, "question_ids"), self._ids(request, "answer_ids")
        last = state.context.cut + len(question) + len(answer) - 1  # the last token is not read
        _require_positions(state.context.opened.model, last, "answer_ids")
        scored, full = state.answers.score(rows.selections, question, answer)
        facts = full.as_json()
        return {
            "rows": rows.answers(scored, lambda s, row: row.as_json() | {"bytes": state.answers.bytes_of(s)}),
            "full": {"nll": facts["nll"], "losses": facts["losses"], "bytes": state.answers.bytes_of(None)},
            "generation": request.generation,
        }

    def _generate(self, request: Request) -> dict[str, Any]:
        from kvscope_live.writing import Sampling, first_divergence

        state, given = self._context(request), request.parameters
        rows = Rows(request, state.find)
        sampling = Sampling(given.number("temperature", 0.0), given.integer("seed", 0, (1 << 63) - 1, 0))
        most, question = given.integer("max_new", 1, MOST_GENERATED), self._ids(request, "question_ids")
        last = state.context.cut + len(question) + most - 1
        _require_positions(state.context.opened.model, last, "max_new")

        def told(one: int, index: int, token: int, text: str) -> None:
            self.channel.checkpoint(stage="generating", token=index)
            row = rows.places[one]
            numbers = {"request": request.id, "row": row, "index": index, "id": token, "text": text}
            self.channel.notify("answer/token", {"selection_id": rows.ids[row]} | numbers)

        texts, full = state.answers.generate(rows.selections, question, sampling, most, told)
        decode = state.context.opened.tokenizer.decode

        def as_json(_: Selection | None, ids: list[int]) -> dict[str, Any]:
            return {"ids": ids, "text": decode(ids), "first_divergence": first_divergence(ids, full)}

        return {
            "rows": rows.answers(texts, as_json),
            "full": {"ids": full, "text": decode(full)},
            "generation": request.generation,
        }

    def _expected(self, request: Request) -> Expected:
        from kvscope_live.importance import Expected

        expected = Expected(self._ids(request, "question_ids"), self._ids(request, "answer_ids"))
        if not expected.target():
            raise bad("answer_ids", "have no token whose loss counts")
        return expected

    def _chunks(self, request: Request) -> dict[str, Any]:
        from kvscope_live.importance import chunk_losses

        state, expected = self._context(request), self._expected(request)
        chunks, cut = request.parameters.items("chunks"), state.context.cut
        if not 1 <= len(chunks) <= MOST_ROWS:
            raise bad("chunks", f"are {len(chunks)}, not 1 to {MOST_ROWS}")
        places = [_range("chunks", entry, cut) for entry in chunks]
        self.channel.checkpoint(stage="hiding chunks")
        losses = chunk_losses(state.context, expected, places)
        failed = next((loss for loss in losses if isinstance(loss, LiveError)), None)
        if failed and not request.parameters.flag("chunks_may_fail"):
            raise failed
        known = [None if isinstance(loss, LiveError) else loss for loss in losses]
        return {"losses": known, "generation": request.generation}

    def _gradient(self, request: Request) -> dict[str, Any]:
        from kvscope_live.importance import TokenScores

        state, expected, given = self._context(request), self._expected(request), request.parameters
        steps = given.integer("steps", 1, MOST_STEPS, 1)
        step = given.integer("step", 0, steps - 1, 0)
        key = (*expected.question, -1, *expected.answer, -1, steps)
        if not state.scores.has(key) and step == 0:
            state.scores.put(key, TokenScores(state.context, expected, steps))
        scores = state.scores.get(key)
        if scores is None or step > scores.done:
            raise bad("step", f"{step} came without those before it")
        self.channel.checkpoint(stage="gradient")
        if step == scores.done:  # else another request has made this step
            scores.step()
        last = step + 1 == steps
        return {
            "bytes": self._stream(request, scores.values, "scores") if last else 0,
            "generation": request.generation,
        }

    def _shutdown(self, _: Request) -> dict[str, Any]:
        self.contexts.clear()
        self.models.clear()
        return {}


def _require_room(tokens: int, place: str) -> None:
    """Errors (LiveError): more tokens than one message takes."""
    if tokens > MOST_TOKENS:
        sentence = f"the text has {tokens} tokens, more than the {MOST_TOKENS} that a live model takes"
        raise LiveError(BAD_PARAMETERS, sentence, place, "Shorten the text")


def _require_positions(model: Any, tokens: int, place: str) -> None:
    """Errors (LiveError): learned positions, fewer than `tokens`."""
    from kvscope_capture.attention import decoder_of, rotary_of
    from kvscope_capture.command import text_config

    most = getattr(text_config(model.config), "max_position_embeddings", None)
    if most and tokens > most and rotary_of(decoder_of(model)) is None:
        raise bad(place, f"need {tokens} positions, the model has embeddings for {most}")


def _range(name: str, entry: Any, tokens: int) -> tuple[int, int]:
    good = isinstance(entry, list) and len(entry) == 2 and all(type(place) is int for place in entry)
    if not good or not 0 <= entry[0] < entry[1] <= tokens:
        raise bad(name, f"have {entry!r}, which is no [begin, end] of {tokens} tokens")
    return entry[0], entry[1]


def _segment(entry: Any, tokens: int) -> tuple[int, int, SegmentKind]:
    kind = entry[2] if isinstance(entry, list) and len(entry) == 3 else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise bad("segments", f"have {entry!r}, which is no [begin, end, kind]")
    return *_range("segments", entry[:2], tokens), KINDS[kind]
