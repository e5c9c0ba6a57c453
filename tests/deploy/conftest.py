"""A model that all tests of this folder may use."""

from __future__ import annotations

from pathlib import Path

import pytest
from models import quantised_convolutions


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return quantised_convolutions(tmp_path / "small.onnx")
