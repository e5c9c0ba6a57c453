"""Options and paths shared by all tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import settings

for folder in ("plan", "deploy", "frontend", "ops"):
    sys.path.insert(0, str(Path(__file__).parent / folder))
settings.register_profile("mcudeploy", deadline=None)  # a busy machine is no failure
settings.load_profile("mcudeploy")


@pytest.fixture(autouse=True)
def _no_trusted_boards(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests neither read nor change the user's list of trusted boards."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.getbasetemp() / "config"))


@pytest.fixture(autouse=True)
def _no_earlier_plans(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests search themselves, but for those of the cache of plans."""
    if request.path.name != "test_plan_cache.py":
        monkeypatch.setattr("mcudeploy.planner.plan_cache.PlanCache.load", lambda *_: None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files")
