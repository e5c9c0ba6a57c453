"""`tune` that is killed, starved or doubled keeps what it has; benchmarks/killed.py does so more often."""

from __future__ import annotations

import random
import resource
import signal
from pathlib import Path

import pytest
from models import quantised_convolutions
from tune_runs import Ended, Tune, kills, two_at_once


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tune, Ended]:
    """On the host."""
    folder = tmp_path_factory.mktemp("killed")
    tune = Tune(quantised_convolutions(folder / "small.onnx"), folder / "cache", "host")
    ended = tune.run()
    assert ended.status == 0, ended.errors
    assert tune.stored() == tune.reported == ended.report["search"]["measured"] > 10
    return tune, ended


@pytest.fixture
def tune(whole: tuple[Tune, Ended]) -> Tune:
    return whole[0]


def test_kills_lose_nothing_and_the_next_run_goes_on(tune: Tune, monkeypatch: pytest.MonkeyPatch) -> None:
    tune.forget()
    for tiles in (4, 3):
        monkeypatch.setenv("TUNE_KILLED_AFTER", str(tiles))
        before = tune.stored()
        assert tune.run().status == -signal.SIGKILL
        assert tune.stored() - before in (tiles - 1, tiles), "the last one may be on its way"
    monkeypatch.delenv("TUNE_KILLED_AFTER")
    before = tune.stored()
    ended = tune.run()
    assert ended.status == 0, ended.errors
    assert tune.stored() == before + ended.report["search"]["measured"]


def test_a_kill_at_any_moment(tune: Tune, whole: tuple[Tune, Ended]) -> None:
    assert kills(tune, whole[1], 1, random.Random(3)).killed == 1


def test_two_at_the_same_time(tune: Tune) -> None:
    tune.forget()
    assert [ended.status for ended in two_at_once(tune)] == [0, 0]
    assert tune.stored() > 10


def test_a_full_disk_is_an_error_that_names_the_file(tune: Tune, tmp_path: Path) -> None:
    tune.forget()
    ended = tune.run(before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
    assert ended.status == 3 and str(tune.database) in ended.message
    assert "MCUDEPLOY_CACHE_DIR" in ended.message and "Traceback" not in ended.errors
