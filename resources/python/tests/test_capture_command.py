"""`kvscope-capture` as it is used: what it refuses before it loads, how it stops and goes on, many prompts, chats."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tomllib
import types
from typing import Any

import h5py
import pytest
import torch
import transformers
from test_prompt import TEXT, byte_level_tokenizer
from tiny_models import tiny_model, unlike_config
from transformers import LlamaForCausalLM

from kvscope_capture import CaptureError, CaptureOptions, Prompt, SegmentKind, capture_prompt, capturing
from kvscope_capture import command as capture_command
from kvscope_capture.capture_file import CaptureFile, written_alone
from kvscope_capture.capturing import token_limit
from kvscope_capture.command import main
from kvscope_capture.console import TimeLeft
from kvscope_capture.prompt import chat_frame, question_prompt
from kvscope_capture.sources import read_sources

TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}[{{ m['role'] }}]{{ m['content'] | trim }}[end]{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)
STORY = " ".join(f"Satz {i} ist Text." for i in range(60))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A Llama of three layers and 512 positions; its tokenizer has a chat template."""
    folder = tmp_path_factory.mktemp("checkpoint")
    model, tokenizer = tiny_model("llama"), byte_level_tokenizer(folder)
    model.resize_token_embeddings(300)
    model.save_pretrained(folder)
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return byte_level_tokenizer(tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture
def story(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "story.txt").write_text(STORY)
    return tmp_path / "story.txt"


@pytest.mark.parametrize("name", ["AutoTokenizer", "AutoModelForCausalLM"])
def test_a_package_that_is_missing_is_one_sentence(
    name: str, checkpoint: pathlib.Path, story: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ImportError("\nIt requires the sentencepiece library.\nInstall it")

    monkeypatch.setattr(getattr(transformers, name), "from_pretrained", fail)
    assert main([str(checkpoint), "--text", str(story), "--out", str(story.with_suffix(".h5"))]) == 2
    assert "cannot be loaded (It requires the sentencepiece library.)" in capsys.readouterr().err


def spans(path: pathlib.Path) -> list[tuple[str, str]]:
    with h5py.File(path) as file:
        text, offsets = bytes(file["tokens/text"][()]), file["tokens/offsets"][()]
        segments = file["tokens/segments"][()].tolist()
        return [(SegmentKind(k).name, text[offsets[b] : offsets[e]].decode()) for b, e, k in segments]


def hash_of(path: pathlib.Path) -> str:
    with h5py.File(path) as file:
        return str(file.attrs["capture_hash"])


def test_help_imports_nothing_slow() -> None:
    """torch alone takes seconds."""
    project = tomllib.loads((pathlib.Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    modules = [entry.partition(":")[0] for entry in project["project"]["scripts"].values()]
    code = (
        "import importlib, sys\n"
        f"for name in {[*modules, 'kvscope_capture.unpickle']}:\n"
        "    try: importlib.import_module(name).main(['--help'])\n"
        "    except SystemExit: pass\n"
        "slow = {'torch', 'transformers', 'h5py', 'numpy', 'safetensors', 'pyarrow', 'kvpress'} & sys.modules.keys()\n"
        "print(*slow, end='', file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert not done.stderr, done.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--out", "missing/c.h5"], "missing/c.h5: the folder does not exist"),
        (["--out", "."], ".: is a folder"),
        (["--out", "there.h5"], "there.h5: is there already. Name another file, or add --overwrite or --resume"),
        (["--layers", "1,3"], "--layers: layer 3 does not exist. Name layers 0-2"),
        (["--layers", "-1"], "--layers: '-1' is no list of layers"),
        (["--layers", "0,2-1"], "--layers: '0,2-1' is no list of layers. Write for example 0,2-3"),
        (["--layers", "\u00b2"], "--layers: '\u00b2' is no list of layers"),
        (["--q-window", "-1"], "--q-window: must be positive"),
        (["--dtype", "fp8"], "--dtype: invalid choice: 'fp8'"),
        (["--device", "nowhere"], "--device: nowhere cannot be used"),
        (["--needle", "Nadel"], "the text does not contain 'Nadel'. Quote it exactly, or insert it with --depth"),
        (["--needle", "Nadel", "--depth", "1.5"], "--depth: 1.5 is no fraction of the context"),
        (["--needle", "Nadel", "--depth", "0", "--depth", "1"], "--depth: 2 depths for 1 needles"),
        (["--needle", "", "--depth", "0"], "--needle: is empty. Give it some text"),
        (["--question", "?" * 600], "question and answer fill all 512 tokens"),
        (["--system", "Sei kurz."], "--system: a system's message needs the chat template. Add --chat"),
        (["--chat", "--bos"], "--bos: the chat template writes its own special tokens"),
        (["--text", "story.txt", "there.h5"], "there.h5: cannot be read"),
        (["--text", "story.txt", "story.txt"], "--out: 2 prompts would go to 1 files. Put {} into the name"),
        (["--resume"], "there.h5: holds something else than this prompt through this model"),
    ],
)
def test_what_is_wrong_is_said_before_the_model_loads(
    change: list[str],
    message: str,
    checkpoint: pathlib.Path,
    story: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
) -> None:
    monkeypatch.chdir(story.parent)
    monkeypatch.setattr(capturing, "load_model", lambda *_: pytest.fail("the model was loaded"))
    pathlib.Path("there.h5").write_bytes(b"\xff")
    out = "there.h5" if "--resume" in change else "c.h5"
    try:
        code = main([str(checkpoint), "--text", "story.txt", "--out", out, *change])
    except SystemExit as stop:  # argparse
        code = int(stop.code or 0)
    assert code == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("kvscope-capture: ") and message in line
    assert sorted(os.listdir()) == ["story.txt", "there.h5"]


def test_a_full_disk_is_foreseen(
    checkpoint: pathlib.Path, story: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(capturing, "load_model", lambda *_: pytest.fail("the model was loaded"))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: types.SimpleNamespace(free=100_000))
    assert main([str(checkpoint), "--text", str(story), "--out", str(story.with_name("c.h5"))]) == 2
    assert "there is no room for about" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["llama", "gemma3", "gpt2", "deepseek-v3"])
def test_the_size_is_known_beforehand(name: str, tokenizer: Any, tmp_path: pathlib.Path) -> None:
    model, prompt = tiny_model(name), Prompt(tokenizer)
    prompt.ids = [i % 90 for i in range(300)]
    options = CaptureOptions(layers=(0, 2), q_window=100, o_proj=True, pre_rope=True)
    capture_prompt(model, prompt, tmp_path / "c.h5", options)
    with h5py.File(tmp_path / "c.h5") as file:
        tensors = [node for layer in file["layers"].values() for node in layer.values() if node.ndim == 3]
        stored = sum(node.size * node.dtype.itemsize for node in tensors)
        rotates = any("k_pre" in layer for layer in file["layers"].values())
    told = capturing.stored_bytes(model.config, 300, options) - 300 * model.config.hidden_size * 4
    assert told == stored if rotates else told > stored


def test_a_text_is_clipped_to_the_positions_of_the_model(
    checkpoint: pathlib.Path, story: pathlib.Path, capsys: Any
) -> None:
    out = story.with_name("c.h5")
    assert main([str(checkpoint), "--text", str(story), "--layers", "0", "--notes", "Mine.", "--out", str(out)]) == 0
    with h5py.File(out) as file:
        assert file["tokens/ids"].shape == (512,)
        notes = str(file.attrs["notes"])
    assert notes.startswith("Mine. The text was cut from ") and notes.endswith("the model has 512 positions.")
    assert notes.removeprefix("Mine. ") in capsys.readouterr().err


class Killer:
    """Stands in for `show`; sends a signal to this process at a step."""

    def __init__(self, step: str, number: int) -> None:
        self.step, self.number = step, number

    def __call__(self, step: str) -> None:
        if self.step in step:
            os.kill(os.getpid(), self.number)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_capture_says_so_and_goes_on(
    number: int, code: int, checkpoint: pathlib.Path, story: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    whole, out = story.with_name("whole.h5"), story.with_name("c.h5")
    arguments = [str(checkpoint), "--text", str(story), "--max-tokens", "64"]
    assert main([*arguments, "--out", str(whole)]) == 0
    with monkeypatch.context() as patched:
        patched.setattr(capturing, "show", Killer("layer 2 ", number))
        assert main([*arguments, "--out", str(out)]) == code
    message = capsys.readouterr().err.splitlines()[-1]
    assert message.startswith(f"kvscope-capture: stopped. {out}.partial holds the layers that are finished")
    assert "--resume" in message and not out.exists()
    assert main([*arguments, "--dtype", "fp32", "--resume", "--out", str(out)]) == 2
    assert "is the rest of another prompt, model or options" in capsys.readouterr().err
    steps: list[str] = []
    monkeypatch.setattr(capturing, "show", steps.append)
    assert main([*arguments, "--resume", "--out", str(out)]) == 0
    assert [step.partition(",")[0] for step in steps if step.startswith("layer")] == ["layer 2 of 3", "layer 3 of 3"]
    assert hash_of(out) == hash_of(whole)
    assert main([*arguments, "--resume", "--out", str(out)]) == 0
    assert "is there already" in capsys.readouterr().out
    assert sorted(p.name for p in out.parent.iterdir()) == ["c.h5", "story.txt", "whole.h5"]


def test_a_killed_capture_goes_on(checkpoint: pathlib.Path, story: pathlib.Path, capsys: Any) -> None:
    """SIGKILL when the second layer was written, but not yet the residual stream behind it."""
    whole, out = story.with_name("whole.h5"), story.with_name("c.h5")
    arguments = [str(checkpoint), "--text", str(story), "--max-tokens", "64", "--out"]
    code = (
        "import os, sys\n"
        "from kvscope_capture import streaming\n"
        "from kvscope_capture.command import main\n"
        "save = streaming._ResidualStream.save\n"
        "streaming._ResidualStream.save = lambda s, i, o: save(s, i, o) if i < 1 else os.kill(os.getpid(), 9)\n"
        "main(sys.argv[1:])\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments, str(out)], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with h5py.File(f"{out}.partial", "a") as file:  # as if the second layer's numbers had not reached the file
        assert sorted(file["layers"]) == ["00", "01"]
        file["layers/01/k"][...] = 0
    assert main([*arguments, str(whole)]) == 0
    assert main([*arguments, str(out), "--resume"]) == 0
    assert hash_of(out) == hash_of(whole)
    assert sorted(p.name for p in out.parent.iterdir()) == ["c.h5", "story.txt", "whole.h5"]
    program = os.environ.get("KVSCOPE_PROGRAM")
    if program:
        shutil.copy(out, f"{out}.partial")
        with h5py.File(f"{out}.partial", "a") as file:
            file.attrs["partial_state"] = "0"
        asked = subprocess.run([program, "inspect", f"{out}.partial"], capture_output=True, text=True)
        assert asked.returncode == 2 and "not whole" in asked.stderr and "--resume" in asked.stderr


def test_a_disk_that_fills_up_leaves_what_is_finished(
    checkpoint: pathlib.Path, story: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    out = story.with_name("c.h5")
    arguments = [str(checkpoint), "--text", str(story), "--max-tokens", "64", "--out", str(out)]
    write = CaptureFile.write_layer

    def full(file: CaptureFile, record: Any) -> None:
        if record.layer == 1:
            with file._open("a"):
                raise OSError(28, "No space left on device")
        write(file, record)

    with monkeypatch.context() as patched:
        patched.setattr(CaptureFile, "write_layer", full)
        assert main(arguments) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert "c.h5.partial: cannot be written ([Errno 28] No space left on device). Make room" in line
    assert main([*arguments, "--resume"]) == 0


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (["--question", "Was nun"], "segments"),
        (["--layers", "0,2"], "layers"),
        (["--dtype", "fp16"], "stored type"),
        (["--q-window", "8"], "queries"),
        (["--pre-rope"], "tensors before RoPE"),
        (["--o-proj"], "output projection"),
        (["--compute-dtype", "bf16"], "type of the model"),
        (["--revision", "other"], "revision"),
    ],
)
def test_a_finished_capture_with_other_options_is_not_taken(
    change: list[str], what: str, checkpoint: pathlib.Path, story: pathlib.Path, capsys: Any
) -> None:
    out = story.with_name("c.h5")
    one = {"segments": ["--question", "Was", "--answer", " nun"], "revision": ["--revision", "one"]}.get(what, [])
    arguments = [str(checkpoint), "--text", str(story), "--max-tokens", "64", "--out", str(out)]
    assert main([*arguments, *one]) == 0
    before = out.read_bytes()
    assert main([*arguments, *change, "--resume"]) == 2
    assert f"is a capture of this prompt with other {what}" in capsys.readouterr().err.splitlines()[-1]
    assert out.read_bytes() == before
    if what not in ("segments", "revision"):
        assert main([*arguments, *change, "--overwrite"]) == 0
        assert main([*arguments, *change, "--resume"]) == 0
        assert "is there already" in capsys.readouterr().out


def test_finished_captures_of_other_weights_are_not_taken(
    checkpoint: pathlib.Path, story: pathlib.Path, tmp_path: pathlib.Path, capsys: Any
) -> None:
    """Training went on in the same folder: the captures of one command would come from two models."""
    model = tmp_path / "model"
    shutil.copytree(checkpoint, model)
    story.with_name("other.txt").write_text(STORY[::-1])
    texts = [str(story), str(story.with_name("other.txt"))]
    arguments = [str(model), "--max-tokens", "64", "--out", str(tmp_path / "c{}.h5"), "--text"]
    assert main([*arguments, texts[0]]) == 0
    trained = LlamaForCausalLM.from_pretrained(model)
    with torch.no_grad():
        trained.model.layers[0].mlp.up_proj.weight.mul_(1.01)
    trained.save_pretrained(model)
    first, second = tmp_path / "cstory.h5", tmp_path / "cother.h5"
    assert main([*arguments, *texts, "--resume"]) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert f"{first}: is a capture of this prompt through other weights" in line and "--overwrite" in line
    assert not second.exists()
    with h5py.File(first, "r+") as file:  # other versions may name the same weights differently
        file.attrs["transformers_version"] = "5.0"
    assert main([*arguments, *texts, "--resume"]) == 0
    second.unlink()
    with h5py.File(first, "r+") as file:  # of a version without the fingerprint
        file.attrs["transformers_version"] = transformers.__version__
        del file.attrs["weights_fingerprint"]
    assert main([*arguments, *texts, "--resume"]) == 0


def refuse_loading(*_: Any) -> None:
    pytest.fail("the model was loaded")


def test_another_run_into_the_file_is_told_before_the_model_loads(
    checkpoint: pathlib.Path, story: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(capturing, "load_model", refuse_loading)
    out = story.with_name("c.h5")
    with written_alone(out):
        assert main([str(checkpoint), "--text", str(story), "--out", str(out), "--overwrite"]) == 2
    assert f"{out}.partial: is being written by another run. Wait for it." in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["mamba", "rwkv", "gemma4_text", "blt"])
def test_an_architecture_without_equal_heads_is_refused_before_it_loads(
    kind: str, checkpoint: pathlib.Path, story: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    folder = story.with_name("model")
    shutil.copytree(checkpoint, folder)
    unlike_config(kind).save_pretrained(folder)
    monkeypatch.setattr(capturing, "load_model", refuse_loading)
    out = story.with_name("c.h5")
    assert main([str(folder), "--text", str(story), "--out", str(out)]) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith(f"kvscope-capture: {kind}: ") and line.endswith("This architecture cannot be captured.")
    assert not out.exists()


def test_a_model_without_a_longest_prompt_takes_what_is_asked_for() -> None:
    """XLNet says -1."""
    assert token_limit(unlike_config("xlnet"), 70) == (70, "--max-tokens is 70")


@pytest.mark.parametrize("kind", ["mpt", "bert", "llama4_text", "xlnet"])
def test_an_architecture_whose_layers_are_not_found_is_refused(
    kind: str, tokenizer: Any, tmp_path: pathlib.Path
) -> None:
    model, prompt = transformers.AutoModelForCausalLM.from_config(unlike_config(kind)), Prompt(tokenizer)
    prompt.ids = list(range(20))
    with pytest.raises(CaptureError, match=f"^{kind}: .* This architecture cannot be captured.$"):
        capture_prompt(model, prompt, tmp_path / "c.h5")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_byte_order_mark_is_no_text(ends: str, tmp_path: pathlib.Path) -> None:
    """Windows editors write one; line ends are read as in a file without it."""
    lines = ends.join(["Erste.", "Zweite."])
    rows = "".join(json.dumps({"text": text}) + ends for text in ("a", "b"))
    found = []
    for mark in ("", "\ufeff"):
        (tmp_path / "t.txt").write_bytes((mark + lines).encode())
        (tmp_path / "rows.jsonl").write_bytes((mark + rows).encode())
        given = [["--text", str(tmp_path / "t.txt")], ["--dataset", f"{tmp_path}/rows.jsonl:0-1"]]
        parsed = [capture_command.parser().parse_args(["M", *words, "--out", "c.h5"]) for words in given]
        found.append([source.text for arguments in parsed for source in read_sources(arguments)])
    assert found[0] == found[1] == ["Erste.\nZweite.", "a", "b"]


def test_rows_are_captured_with_one_model(
    checkpoint: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    rows = [{"context": f"{TEXT} {i}", "input": f"Was {i}?", "answers": [f" Text {i}", "x"]} for i in range(4)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    loads: list[str] = []
    load = capture_command.load_model
    monkeypatch.setattr(capturing, "load_model", lambda *given: loads.append("") or load(*given))
    arguments = [str(checkpoint), "--dataset", f"{tmp_path}/rows.jsonl:0,2-3", "--layers", "0"]
    arguments += ["--question-field", "input", "--answer-field", "answers", "--out", str(tmp_path / "c{}.h5")]
    with monkeypatch.context() as patched:
        patched.setattr(capturing, "show", Killer("3 (3 of 3", signal.SIGINT))
        assert main(arguments) == 130
    assert "2 of 3 captures are whole" in capsys.readouterr().err
    assert main(arguments) == 2  # they are there
    assert main([*arguments, "--resume"]) == 0
    assert loads == ["", ""]
    for i in (0, 2, 3):
        expected = [("CONTEXT", f"{TEXT} {i}"), ("QUESTION", f"Was {i}?"), ("ANSWER", f" Text {i}")]
        assert spans(tmp_path / f"c{i}.h5") == expected
    assert not (tmp_path / "c1.h5").exists()
    capsys.readouterr()
    assert main([*arguments[:2], f"{tmp_path}/rows.jsonl:2-9", *arguments[3:]]) == 2
    assert "rows.jsonl: has no row 9. Name rows 0 to 3" in capsys.readouterr().err


def test_rows_of_a_data_set_and_of_a_parquet_file(
    checkpoint: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    asked: list[Any] = []

    def load_dataset(name: str, subset: str | None, split: str) -> list[dict[str, str]]:
        asked.append((name, subset, split))
        return [{"context": f"Der Text {i}."} for i in range(5)]

    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    arguments = [str(checkpoint), "--dataset", "THUDM/LongBench:1-2", "--subset", "narrativeqa", "--split", "train"]
    assert main([*arguments, "--layers", "0", "--out", str(tmp_path / "{}.h5")]) == 0
    assert asked == [("THUDM/LongBench", "narrativeqa", "train")]
    assert spans(tmp_path / "2.h5") == [("CONTEXT", "Der Text 2.")]
    assert main([*arguments, "--field", "text", "--out", str(tmp_path / "x{}.h5")]) == 2
    assert "row 1: there is no text in column text. Choose --field of context" in capsys.readouterr().err
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"text": [f"Zeile {i}" for i in range(3)]})
    pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "rows.parquet")
    arguments = [str(checkpoint), "--dataset", f"{tmp_path}/rows.parquet:1", "--layers", "0"]
    assert main([*arguments, "--out", str(tmp_path / "p.h5")]) == 0
    assert spans(tmp_path / "p.h5") == [("CONTEXT", "Zeile 1")]


def test_the_chat_template_stands_around_the_prompt(checkpoint: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (tmp_path / "t.txt").write_text(f"\n{TEXT} ")
    arguments = [str(checkpoint), "--text", str(tmp_path / "t.txt"), "--chat", "--system", "Sei kurz.", "--layers", "0"]
    arguments += ["--needle", "東京", "--question", "Rest?\n", "--answer", "Text", "--out", str(tmp_path / "c.h5")]
    assert main(arguments) == 0
    text = f"{TEXT} "
    assert spans(tmp_path / "c.h5") == [
        *(("SYSTEM", "Sei kurz."), ("CONTEXT", text), ("NEEDLE", "東京")),
        *(("QUESTION", "Rest?"), ("ANSWER", "Text")),
    ]
    with h5py.File(tmp_path / "c.h5") as file:
        whole = bytes(file["tokens/text"][()]).decode()
    assert whole == f"<s>[system]Sei kurz.[end][user]{text}Rest?[end][assistant]Text"


def test_templates_that_cannot_frame_a_prompt(tokenizer: Any) -> None:
    class Broken:
        def __init__(self, template: str) -> None:
            self.chat_template = template

        def apply_chat_template(self, messages: list[dict[str, str]], **_: Any) -> str:
            tokenizer.chat_template = self.chat_template
            return str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))

    for template, message in {
        "": "the tokenizer has no chat template",
        "{{ raise_exception('no system') }}": r"cannot be used \(no system\)",
        "{{ messages[-1]['content'] }}": "does not hold each message once",
        "{% for m in messages %}{{ m['content'] }}{{ m['content'] }}{% endfor %}": "does not hold each message once",
        "{% for m in messages %}{{ m['content'] | upper }}{% endfor %}": "changes the text",
    }.items():
        with pytest.raises(CaptureError, match=message):
            chat_frame(Broken(template), "Sei kurz.", "Ein Text.", "Was?")


@pytest.mark.parametrize("depth", [0.0, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("room", [300, 5000])
def test_a_needle_is_inserted_at_its_depth(depth: float, room: int, tokenizer: Any) -> None:
    needle = "Der Code ist 4711."
    prompt = question_prompt(tokenizer, STORY, room, [needle], "Was?", " 4711", depths=[depth])
    assert len(prompt.ids) <= room
    (begin, end), *more = ((b, e) for b, e, kind in prompt.segments if kind == SegmentKind.NEEDLE)
    assert not more and tokenizer.decode(prompt.ids[begin:end]).strip() == needle
    context = next(e for _, e, kind in prompt.segments if kind == SegmentKind.CONTEXT)
    before = tokenizer.decode(prompt.ids[:begin])
    assert begin == pytest.approx(depth * (context - (end - begin)), abs=40)
    assert (depth == 1.0 and room == 300) or not before or before.endswith(".")
    text = tokenizer.decode(prompt.ids[:context]).replace(needle, "").replace("  ", " ").strip()
    assert STORY.startswith(text) and prompt.left_out == len(tokenizer.encode(STORY)) - (context - (end - begin))


def test_two_needles_stand_in_the_order_of_their_depths(tokenizer: Any) -> None:
    prompt = question_prompt(tokenizer, STORY, 4000, ["Zwei.", "Eins."], depths=[0.9, 0.1])
    found = [tokenizer.decode(prompt.ids[b:e]).strip() for b, e, kind in prompt.segments if kind == SegmentKind.NEEDLE]
    assert found == ["Eins.", "Zwei."]


def test_the_time_left() -> None:
    now = iter([100.0, 110.0, 130.0, 5000.0])
    time = TimeLeft(4, lambda: next(now))
    assert [time.after(done) for done in (0, 1, 2, 3)] == ["", ", 30 s left", ", 30 s left", ", 27.2 min left"]


def test_progress_tells_the_seconds_left(tokenizer: Any, tmp_path: pathlib.Path) -> None:
    steps: list[str] = []
    prompt = Prompt(tokenizer)
    prompt.ids = list(range(20))
    capture_prompt(tiny_model("llama"), prompt, tmp_path / "c.h5", progress=steps.append)
    layers = [step for step in steps if step.startswith("layer")]
    assert layers[0] == "layer 1 of 3" and layers[2].startswith("layer 3 of 3, ") and layers[2].endswith(" s left")


def test_two_runs_into_one_file(tmp_path: pathlib.Path) -> None:
    code = (
        "import pathlib, sys\n"
        "from kvscope_capture.capture_file import CaptureFile, CaptureOptions\n"
        "CaptureFile(pathlib.Path(sys.argv[1]), CaptureOptions(), '0')\n"
    )
    held = CaptureFile(tmp_path / "c.h5", CaptureOptions(), "0")
    with held._open("a"):
        done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "c.h5")], capture_output=True, text=True)
    assert "c.h5.partial: is being written by another run. Wait for it" in done.stderr
