"""The extension of docs/tutorials/operator.md, as the page has it."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

from mcudeploy.common.trusted import TrustList

PAGE = Path(__file__).parents[2] / "docs/tutorials/operator.md"
BLOCK = re.compile(r'^```\w+ title="([\w./-]+)"\n(.*?)^```', re.M | re.S)


@pytest.fixture
def spectral(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with the files of the page, and unknown.onnx, which is the working directory."""
    for name, text in BLOCK.findall(PAGE.read_text("utf-8")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(TrustList, "_path", tmp_path / "trusted")
    runpy.run_path(str(tmp_path / "make_model.py"))
    for name in [name for name in sys.modules if name.startswith("mcudeploy_extension_")]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path
