"""Tokens, their bytes and segments; the command line's reading of text, layers and rows."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import h5py
import pytest
import tokenizers
from tiny_models import LetterTokenizer, tiny_model
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from kvscope_capture import CaptureError, Prompt, SegmentKind
from kvscope_capture.command import load_tokenizer, main, parse_layers
from kvscope_capture.prompt import TokenBytes, leading_special_tokens, question_prompt, split_at_needles
from kvscope_live.prompting import build_prompt

TEXT = "Straße, 東京 und 😀 — der Rest ist Text, nichts als Text.\n"


def byte_level_tokenizer(folder: pathlib.Path) -> Any:
    backend = tokenizers.Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<s>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    backend.train_from_iterator([TEXT * 3], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="<s>")


def sentencepiece_like_tokenizer() -> Any:
    pieces = ["<s>", "<unk>", *(f"<0x{b:02X}>" for b in range(256)), "\u2581", *"Straeduntichslx,.R"]
    vocabulary = {piece: i for i, piece in enumerate(dict.fromkeys(pieces))}
    backend = tokenizers.Tokenizer(models.BPE(vocabulary, [], unk_token="<unk>", byte_fallback=True))
    backend.normalizer = tokenizers.normalizers.Replace(" ", "\u2581")
    backend.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", unk_token="<unk>")


@pytest.mark.parametrize("kind", ["byte level", "byte fallback"])
def test_token_bytes_concatenate_to_the_text(kind: str, tmp_path: pathlib.Path) -> None:
    tokenizer = byte_level_tokenizer(tmp_path) if kind == "byte level" else sentencepiece_like_tokenizer()
    ids = tokenizer.encode(TEXT, add_special_tokens=False)
    token_bytes = TokenBytes(tokenizer)
    assert b"".join(token_bytes(i) for i in ids) == TEXT.encode()
    assert len(ids) > 10
    assert token_bytes(0) == b"<s>"


def test_added_tokens_are_the_texts_that_were_added(tmp_path: pathlib.Path) -> None:
    """Even those that are not special, like DeepSeek's start of a tool call; added spaces (Gemma) stay spaces."""
    tokenizer, pieces = byte_level_tokenizer(tmp_path), sentencepiece_like_tokenizer()
    pieces.add_tokens(["\u2581\u2581"])
    assert TokenBytes(pieces)(pieces.convert_tokens_to_ids("\u2581\u2581")) == b"  "
    for text in ("<\uff5ctool\u2581calls\u2581begin\uff5c>", "\u00c4B"):
        tokenizer.add_tokens([text])
        assert [TokenBytes(tokenizer)(i) for i in tokenizer.encode(text, add_special_tokens=False)] == [text.encode()]


def space_before_tokenizer(kind: str) -> Any:
    """Puts a space before a text, as the tokenizers of Llama 2 (Prepend) and their newer form (Metaspace) do."""
    letters = [chr(code) for code in range(33, 127)] + ["\u2581"]
    merges = [("4", "2"), ("\u2581", "A"), ("\u2581", "4"), ("\u2581", "42"), ("\u2581", "k")]
    pieces = ["<unk>", "<s>", "<0x0A>", *letters, *("".join(pair) for pair in merges)]
    vocabulary = {piece: i for i, piece in enumerate(dict.fromkeys(pieces))}
    backend = tokenizers.Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", byte_fallback=True))
    if kind == "prepend":
        backend.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    else:
        backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=kind, split=False)
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", unk_token="<unk>")


@pytest.mark.parametrize("kind", ["prepend", "first", "always"])
def test_no_space_is_put_between_pieces(kind: str) -> None:
    """The model reads the text as it was written, whatever parts of it are marked."""
    tokenizer = space_before_tokenizer(kind)
    prompt = question_prompt(tokenizer, "Ann: the key is 42. Bye", 200, ["key is 42"], "\nQ: key?\nA:", " 42")
    token_bytes = TokenBytes(tokenizer)

    def text(begin: int, end: int) -> str:
        return b"".join(map(token_bytes, prompt.ids[begin:end])).decode()

    assert text(0, len(prompt.ids)) == " Ann: the key is 42. Bye\nQ: key?\nA: 42"
    assert [text(begin, end) for begin, end, _ in prompt.segments[1:]] == ["key is 42", "\nQ: key?\nA:", " 42"]
    texts = [(SegmentKind.CONTEXT, "the key"), (SegmentKind.NEEDLE, "is 42"), (SegmentKind.QUESTION, "Why?")]
    live = build_prompt(tokenizer, texts, chat=False, bos=True)
    assert b"".join(map(token_bytes, live.ids)).decode() == "<s> the keyis 42Why?"


def test_a_space_that_cannot_be_taken_away_is_refused() -> None:
    class Words(LetterTokenizer):
        """Puts a space before every text, and reads any two letters as one token."""

        def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
            return [90] * ((len(text) + 1) // 2)

        def convert_ids_to_tokens(self, token: int) -> str:
            return "\u2581ab"

    with pytest.raises(CaptureError, match="the tokenizer puts a space before 'why'.*as one"):
        question_prompt(Words(), "abc", 100, [], "why")


def test_special_tokens_before_the_text() -> None:
    class Around(LetterTokenizer):
        def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
            plain = super().encode(text, add_special_tokens=False)
            return [0, 5, *plain, 9] if add_special_tokens else plain

    assert leading_special_tokens(Around()) == [0, 5]
    assert leading_special_tokens(LetterTokenizer()) == [0]


def test_bos_on_request(tmp_path: pathlib.Path) -> None:
    tokenizer = byte_level_tokenizer(tmp_path)
    assert Prompt(tokenizer).ids == [] and Prompt(tokenizer, bos=True).ids == [tokenizer.bos_token_id]
    assert Prompt(LetterTokenizer(), bos=True).ids == [0]
    prompt = question_prompt(tokenizer, TEXT, 12, [], "Rest?", bos=True)
    assert len(prompt.ids) == 12 and kinds(prompt)[0][0] == 1
    tokenizer.bos_token = None
    with pytest.raises(CaptureError, match="--bos: the tokenizer has no BOS token"):
        Prompt(tokenizer, bos=True)


def kinds(prompt: Prompt) -> list[tuple[int, int, str]]:
    return [(b, e, SegmentKind(k).name) for b, e, k in prompt.segments]


def test_segments_of_a_question_over_a_context() -> None:
    prompt = question_prompt(LetterTokenizer(), "abcNEEDLEdefgh", 100, ["NEEDLE"], "why?", "so")
    assert kinds(prompt) == [(1, 15, "CONTEXT"), (4, 10, "NEEDLE"), (15, 19, "QUESTION"), (19, 21, "ANSWER")]
    assert len(prompt.ids) == 21


def test_the_context_gives_way_and_the_question_stays() -> None:
    prompt = question_prompt(LetterTokenizer(), "abcNEEDLEdefgh", 17, ["NEEDLE"], "why?", "so")
    assert len(prompt.ids) == 17
    assert kinds(prompt) == [(1, 11, "CONTEXT"), (4, 10, "NEEDLE"), (11, 15, "QUESTION"), (15, 17, "ANSWER")]
    with pytest.raises(CaptureError, match="a needle lies behind"):
        question_prompt(LetterTokenizer(), "abcNEEDLEdefgh", 15, ["NEEDLE"], "why?", "so")
    with pytest.raises(CaptureError, match="question and answer fill"):
        question_prompt(LetterTokenizer(), "abc", 7, [], "why?", "so")


def test_needles_must_be_there_and_apart() -> None:
    assert split_at_needles("xAyBz", ["B", "A"]) == [
        ("x", None),
        ("A", SegmentKind.NEEDLE),
        ("y", None),
        ("B", SegmentKind.NEEDLE),
        ("z", None),
    ]
    with pytest.raises(CaptureError, match="does not contain 'Q'"):
        split_at_needles("xAyBz", ["Q"])
    with pytest.raises(CaptureError, match="overlap"):
        split_at_needles("abcd", ["abc", "bcd"])


@pytest.mark.parametrize(("text", "layers"), [(None, None), ("3", (3,)), ("0,2-4", (0, 2, 3, 4)), ("5,5", (5,))])
def test_lists_of_layers(text: str | None, layers: tuple[int, ...] | None) -> None:
    assert parse_layers(text) == layers


@pytest.mark.parametrize("text", ["", "a", "3-", "4-2", "-1"])
def test_what_is_no_list_of_layers(text: str) -> None:
    with pytest.raises(CaptureError, match="--layers"):
        parse_layers(text)


@pytest.fixture
def checkpoint(tmp_path: pathlib.Path) -> pathlib.Path:
    model = tiny_model("llama")
    model.resize_token_embeddings(300)
    model.save_pretrained(tmp_path / "model")
    byte_level_tokenizer(tmp_path).save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_the_command_captures_a_row(checkpoint: pathlib.Path, tmp_path: pathlib.Path) -> None:
    rows = [{"id": 1, "text": "no"}, {"id": 2, "text": TEXT}]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    out = tmp_path / "c.h5"
    arguments = [
        str(checkpoint),
        "--dataset",
        f"{tmp_path}/rows.jsonl:1",
        "--needle",
        "東京",
        "--question",
        "Rest?",
    ]
    arguments += [
        "--answer",
        " Text",
        "--layers",
        "1",
        "--dtype",
        "fp16",
        "--q-window",
        "4",
        "--out",
        str(out),
    ]
    assert main(arguments) == 0
    with h5py.File(out) as file:
        text, offsets = bytes(file["tokens/text"][()]), file["tokens/offsets"][()]
        spans = {SegmentKind(k).name: text[offsets[b] : offsets[e]].decode() for b, e, k in file["tokens/segments"]}
        assert spans == {"CONTEXT": TEXT, "NEEDLE": "東京", "QUESTION": "Rest?", "ANSWER": " Text"}
        assert file["layers/01/q_window"].dtype.str == "<f2"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--text", "missing.txt"], "missing.txt: cannot be read"),
        (["--dataset", "rows"], "'rows' is not NAME:ROWS"),
        (["--dataset", "missing.jsonl:0"], "missing.jsonl: cannot be read"),
        (["--text", __file__, "--layers", "x"], "--layers: 'x' is no list of layers"),
        (["--text", __file__, "--max-tokens", "1"], "--max-tokens, --q-window: must be positive"),
        (["--text", __file__], "no-such-model: the model cannot be loaded"),
    ],
)
def test_errors_are_one_sentence(change: list[str], message: str, tmp_path: pathlib.Path, capsys: Any) -> None:
    model = str(tmp_path / "no-such-model")
    assert main([model, "--out", str(tmp_path / "c.h5"), *change]) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert message in line and line.startswith("kvscope-capture: ")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_a_tokenizer_says_what_to_copy(tmp_path: pathlib.Path) -> None:
    tmp_path.joinpath("config.json").write_text('{"model_type": "llama"}', encoding="utf-8")
    with pytest.raises(CaptureError) as raised:
        load_tokenizer(str(tmp_path), None)
    assert "tokenizer.json" in raised.value.remedy


@pytest.mark.parametrize("name", ["gemma3", "qwen3"])
def test_an_empty_tokenizer_is_none(name: str, tmp_path: pathlib.Path) -> None:
    """Transformers makes one for a folder without tokenizer files; every text is then one unknown token, or none."""
    tiny_model(name).save_pretrained(tmp_path)
    with pytest.raises(CaptureError, match="the tokenizer cannot be loaded") as raised:
        load_tokenizer(str(tmp_path), None)
    assert "tokenizer.json" in raised.value.remedy
