"""One thread for all tests, which is fastest for tiny models, and a captured model that some tests share."""

import pathlib

import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def captured(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder with a model and its capture, for the tests of kvscope-evaluate; they copy the capture."""
    from measured_lists import capture_tiny

    folder = tmp_path_factory.mktemp("captured")
    capture_tiny(folder)
    return folder
