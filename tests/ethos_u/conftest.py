"""The functional model of an Ethos-U that several files of tests run."""

from __future__ import annotations

import ctypes

import pytest
from vela_streams import model_library


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """A unit of 128 multipliers, which gives a run up after 100,000 steps."""
    library = model_library(tmp_path_factory.mktemp("model"), 128, "-DMCUD_NPU_STEPS=100000")
    library.mcud_npu_next_weights.restype = ctypes.c_bool
    return library
