"""A full disk ends in an error: nothing crashes, neither then nor when the process ends."""

from __future__ import annotations

import pathlib
import subprocess
import sys

TOOLS = pathlib.Path(__file__).resolve().parents[1]
COMMON = """
import os, pathlib, resource, sys
import h5py, torch
from kvscope_capture import CaptureError
from kvscope_capture.capture_file import CaptureFile, CaptureOptions, LayerRecord

folder = pathlib.Path(sys.argv[1])
limits = [0, 700, 5_000, 64_000, 200_000, 300_000, 510_000, 900_000]  # room behind the first layer
cases = [(folder / f"{limit}-{compress}.h5", limit, compress) for limit in limits for compress in (False, True)]

def record(layer):
    draw = torch.Generator().manual_seed(layer)
    heads = {"q": 4, "k": 2, "v": 2}
    tensors = {name: torch.randn(count, 500, 32, generator=draw) for name, count in heads.items()}
    return LayerRecord(layer, tensors, {"scaling": 0.5})

def begin(path, compress, last=-1, resume=False):
    return CaptureFile(path, CaptureOptions(dtype="float32", compress=compress), "state", last, resume)
"""
LIMITED = """
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]

def fill(path, limit, compress):
    file = begin(path, compress)
    file.write_ids("test", [1] * 500, {"num_layers": 4})
    file.write_layer(record(0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (file.path.stat().st_size + limit, hard))
    try:
        for layer in range(1, 4):
            file.write_layer(record(layer))
    except CaptureError as error:
        assert error.sentence.startswith("cannot be written ("), error
        assert error.remedy.startswith("Make room there"), error
    else:
        raise AssertionError("there was room for everything")

for case in cases:
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    fill(*case)
"""
RESUMED = """
for path, _, compress in cases:
    file = begin(path, compress, 0, True)
    assert file.finished_layers == {0}, path
    for layer in range(1, 4):
        file.write_layer(record(layer))
    file.finish(lambda _: None)
    with h5py.File(path) as whole:
        for layer in range(4):
            for name, tensor in record(layer).tensors.items():
                assert (whole[f"layers/{layer:02d}/{name}"][()] == tensor.numpy()).all()
"""


def run(program: str, folder: pathlib.Path) -> tuple[int, str]:
    words = [sys.executable, "-c", COMMON + program, str(folder)]
    done = subprocess.run(words, cwd=TOOLS, capture_output=True, text=True)
    return done.returncode, done.stderr


def test_a_full_disk_is_an_error_and_what_is_finished_stays(tmp_path: pathlib.Path) -> None:
    """A second process goes on behind the layers that were finished."""
    assert run(LIMITED, tmp_path) == (0, "")
    assert run(RESUMED, tmp_path) == (0, "")


def test_a_disk_that_fills_up_while_hdf5_writes_is_an_error(tmp_path: pathlib.Path) -> None:
    """Where no room can be reserved, each limit stops HDF5 in another place."""
    assert run("del os.posix_fallocate\n" + LIMITED, tmp_path) == (0, "")
