"""Pickles become tensors that the program opens; everything but plain tensors is refused."""

import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import DynamicCache, LlamaConfig, StaticCache

from kvscope_capture.unpickle import main, named_tensors, unpickle


def test_dictionaries_lists_and_caches_are_named() -> None:
    k, v = torch.ones(1), torch.zeros(1)
    assert [n for n, _ in named_tensors({"layers.0.k": k, "deep": [{"a": v}]})] == ["layers.0.k", "deep.0.a"]
    names = [n for n, _ in named_tensors(((k, v), (k, v)))]
    assert names == [
        "past_key_values.0.key",
        "past_key_values.0.value",
        "past_key_values.1.key",
        "past_key_values.1.value",
    ]


def test_a_cache_survives(tmp_path: pathlib.Path) -> None:
    cache = tuple((torch.randn(1, 2, 9, 4), torch.randn(1, 2, 9, 4)) for _ in range(3))
    torch.save(cache, tmp_path / "cache.pt")
    unpickle(tmp_path / "cache.pt", tmp_path / "cache.safetensors")
    read = load_file(tmp_path / "cache.safetensors")
    assert len(read) == 6
    assert torch.equal(read["past_key_values.2.value"], cache[2][1])


def dynamic_cache(config: LlamaConfig | None = None) -> DynamicCache:
    cache = DynamicCache(config=config)
    for layer in range(2):
        cache.update(torch.randn(1, 2, 9, 4), torch.randn(1, 2, 9, 4), layer)
    return cache


def test_a_dynamic_cache_is_read_without_running_its_code(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ran(*_: object) -> None:
        raise AssertionError("code of Transformers ran")

    cache = dynamic_cache()
    torch.save({"past": cache}, tmp_path / "cache.pt")
    monkeypatch.setattr(DynamicCache, "__setstate__", ran, raising=False)
    names = unpickle(tmp_path / "cache.pt", tmp_path / "cache.safetensors")
    assert names == ["past.0.key", "past.0.value", "past.1.key", "past.1.value"]
    read = load_file(tmp_path / "cache.safetensors")
    assert torch.equal(read["past.1.value"], cache.layers[1].values)


def test_a_cache_of_earlier_versions_is_read(tmp_path: pathlib.Path) -> None:
    keys = [torch.randn(1, 2, 9, 4) for _ in range(2)]
    old = DynamicCache.__new__(DynamicCache)
    old.__dict__ = {"_seen_tokens": 9, "key_cache": keys, "value_cache": [k + 1 for k in keys]}
    torch.save(old, tmp_path / "cache.pt")
    unpickle(tmp_path / "cache.pt", tmp_path / "cache.safetensors")
    assert torch.equal(load_file(tmp_path / "cache.safetensors")["past_key_values.1.value"], keys[1] + 1)


def test_a_cache_without_all_tokens_is_refused(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = LlamaConfig(num_hidden_layers=2, layer_types=["full_attention", "sliding_attention"], sliding_window=5)
    torch.save(dynamic_cache(config), tmp_path / "window.pt")
    torch.save(DynamicCache(config=LlamaConfig(num_hidden_layers=2)), tmp_path / "empty.pt")
    for name, message in (("window", "layer 1: the cache holds 4 of 9 tokens"), ("empty", "no keys and values")):
        assert main([str(tmp_path / f"{name}.pt"), str(tmp_path / "cache.safetensors")]) == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / "cache.safetensors").exists()


def test_another_cache_is_answered_with_the_line_that_saves_it(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save(StaticCache(LlamaConfig(num_hidden_layers=2), max_cache_len=16), tmp_path / "cache.pt")
    assert main([str(tmp_path / "cache.pt"), str(tmp_path / "cache.safetensors")]) == 2
    message = capsys.readouterr().err
    assert "StaticCache" in message and message.count("\n") == 1 and "\x1b" not in message
    assert "[(layer.keys, layer.values) for layer in cache.layers]" in message


class Evil:
    """Runs a program when it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch ran",)


def test_a_program_in_a_pickle_does_not_run(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"k": Evil()}, "evil.pt")
    assert main(["evil.pt", "out.safetensors"]) == 2
    assert "cannot be read as plain tensors" in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["evil.pt"]


@pytest.mark.parametrize("held", [{"a": {"b": 1}, "a.b": 2}, {"past_key_values.0": 1, "past_key_values": [2]}])
def test_two_tensors_of_one_name_are_refused(
    held: Any, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def tensors(data: Any) -> Any:
        if isinstance(data, dict):
            return {key: tensors(value) for key, value in data.items()}
        return [tensors(value) for value in data] if isinstance(data, list) else torch.full((2,), float(data))

    torch.save(tensors(held), tmp_path / "d.pt")
    assert main([str(tmp_path / "d.pt"), str(tmp_path / "d.safetensors")]) == 2
    assert "two tensors have this name" in capsys.readouterr().err
    assert not (tmp_path / "d.safetensors").exists()


@pytest.mark.parametrize("kind", ["quantised", "sparse", "rows", "complex", "meta", "nested"])
def test_a_tensor_that_cannot_be_stored_is_named(
    kind: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = torch.ones(2, 3)
    tensor = {
        "quantised": lambda: torch.quantize_per_tensor(plain, 0.1, 0, torch.qint8),
        "sparse": plain.to_sparse,
        "rows": plain.to_sparse_csr,
        "complex": lambda: plain.to(torch.complex128),
        "meta": lambda: plain.to("meta"),
        "nested": lambda: torch.nested.nested_tensor([plain, plain[:1]]),
    }[kind]()
    torch.save({"k": plain, "v": tensor}, tmp_path / "d.pt")
    assert main([str(tmp_path / "d.pt"), str(tmp_path / "d.safetensors")]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    if kind != "nested":  # torch itself refuses to read it
        assert "d.pt: v: holds tensors of a kind that cannot be stored. Save them as float32" in said
    assert [path.name for path in tmp_path.iterdir()] == ["d.pt"]


def test_a_pickle_does_not_replace_itself(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({"a": torch.ones(2)}, tmp_path / "d.pt")
    before = (tmp_path / "d.pt").read_bytes()
    assert main([str(tmp_path / "d.pt"), str(tmp_path / ".." / tmp_path.name / "d.pt")]) == 2
    assert "would replace what is read" in capsys.readouterr().err
    assert (tmp_path / "d.pt").read_bytes() == before


def test_a_full_disk_is_an_error(tmp_path: pathlib.Path) -> None:
    torch.save({"a": torch.ones(200_000)}, tmp_path / "d.pt")
    limited = (
        "import resource, sys; from kvscope_capture.unpickle import main; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)); sys.exit(main(sys.argv[1:]))"
    )
    words = [sys.executable, "-c", limited, "d.pt", "d.safetensors"]
    environment = os.environ | {"PYTHONPATH": str(pathlib.Path(__file__).resolve().parents[1])}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("unpickle: d.safetensors: cannot be written (") and done.stderr.count("\n") == 1
    assert done.stderr.endswith("). Make room there.\n")
    assert [path.name for path in tmp_path.iterdir()] == ["d.pt"]


def test_the_program_opens_what_comes_out(tmp_path: pathlib.Path) -> None:
    program = os.environ.get("KVSCOPE_PROGRAM")
    if not program:
        pytest.skip("KVSCOPE_PROGRAM is not set")
    cache = tuple((torch.randn(1, 2, 9, 4), torch.randn(1, 2, 9, 4)) for _ in range(3))
    torch.save(cache, tmp_path / "cache.pt")
    refused = subprocess.run([program, "inspect", "cache.pt"], cwd=tmp_path, capture_output=True, text=True)
    assert refused.returncode == 2 and "kvscope_capture.unpickle" in refused.stderr
    assert main([str(tmp_path / "cache.pt"), str(tmp_path / "cache.safetensors")]) == 0
    opened = subprocess.run([program, "inspect", "cache.safetensors"], cwd=tmp_path, capture_output=True, text=True)
    assert opened.returncode == 0, opened.stderr
    assert "tokens       9" in opened.stdout
