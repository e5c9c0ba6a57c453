"""Options and paths shared by all tests."""

from __future__ import annotations

import inspect
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import Phase, settings

from mcudeploy.planner.files import plan_cache
from mcudeploy.planner.files.plan_cache import PlanCache
from mcudeploy.planner.plan_options import Options
from mcudeploy.toolchain import firmware_build
from tests.shared_objects import SharedObjects
from tests.small_bench import PLACES, few_kernels
from tests.weekly import PROFILE

for folder in ("../benchmarks", "plan", "deploy", "frontend", "ops"):
    sys.path.insert(0, str(Path(__file__).parent / folder))
_SEARCHES = {
    *("gate", "hop", "layout", "plan", "schedule", "search"),
    *("test_deploy.py", "test_plan_files.py", "test_resume.py", "test_splitting.py"),
}
"""Folders and files whose tests search for plans themselves."""

_SEARCH_S = 0.5
_fields = [it.name for it in fields(Options)]
Options.__init__.__defaults__ = tuple(
    _SEARCH_S if name == "time_limit" else value
    for name, value in zip(_fields, Options.__init__.__defaults__, strict=True)
)  # a search of a minute finds what one of half a second finds in the small networks of tests

settings.register_profile("mcudeploy", deadline=None)  # a busy machine is not a failure
settings.register_profile(PROFILE, deadline=None)
settings.register_profile("unshrunk", deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
settings.load_profile("mcudeploy")


@pytest.fixture(autouse=True)
def _no_trusted_boards(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests neither read nor change the user's list of trusted boards."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.getbasetemp() / "config"))


@pytest.fixture(scope="session")
def folder_of_the_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A temporary folder that all workers share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(autouse=True)
def _shared_plans(
    request: pytest.FixtureRequest, folder_of_the_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests take the plans that another one has found, but for those of the search and those that patch."""
    if request.path.name == "test_plan_cache.py":
        return
    patches = "monkeypatch" in inspect.signature(request.function).parameters
    if patches or request.path.parent.name in _SEARCHES or request.path.name in _SEARCHES:
        monkeypatch.setattr(PlanCache, "load", lambda *_: None)
        monkeypatch.setattr(PlanCache, "store", lambda *_: None)
    else:
        monkeypatch.setattr(plan_cache, "cache_dir", lambda: folder_of_the_run)
        monkeypatch.setattr(plan_cache, "_MOST_ENTRIES", 10_000)
        monkeypatch.setattr(plan_cache, "_sources", str)


@pytest.fixture(autouse=True, scope="session")
def _shared_objects(folder_of_the_run: Path) -> Iterator[None]:
    """Programs compile a source once in the whole run, on all workers; as users do once a week."""
    folder = folder_of_the_run / "objects"
    folder.mkdir(exist_ok=True)
    quick = settings.get_current_profile_name() != PROFILE
    objects = SharedObjects(folder, firmware_build.run_logged, quick)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(firmware_build, "run_logged", objects)
        yield


@pytest.fixture
def default_signals() -> Iterator[None]:
    """Programs of a test receive SIGINT and SIGHUP, which a run in the background ignores."""
    handlers = {it: signal.getsignal(it) for it in (signal.SIGINT, signal.SIGHUP)}
    for number, handler in handlers.items():
        if handler is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def small_bench(monkeypatch: pytest.MonkeyPatch) -> None:
    """The measurer without a model has a tenth of its kernels."""
    for module in PLACES:
        monkeypatch.setattr(module, "kernels_for", few_kernels)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files")
