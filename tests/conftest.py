"""Options and paths shared by all tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

for folder in ("plan", "deploy", "frontend", "ops"):
    sys.path.insert(0, str(Path(__file__).parent / folder))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew")
