"""A folder to train in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from train_lines import network

from tests.networks.onnx_files import save


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model, images and labels."""
    monkeypatch.chdir(tmp_path)
    save(network().model(), tmp_path, "net")
    images = np.random.default_rng(0).normal(0, 1, (5, 2, 8, 8)).astype(np.float32)
    np.savez(tmp_path / "data.npz", x=images, y=np.array([0, 3, 1, 2, 3]))
    np.save(tmp_path / "x.npy", images)
    return tmp_path
