"""`mcudeploy.plan_many`: a table of plans, by any executor, that a killed run has begun."""

from __future__ import annotations

import csv
import io
import json
import os
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import onnx
import pytest
from models import fully_connected

import mcudeploy as md
from mcudeploy.boards.catalogue import load_board
from mcudeploy.common.errors import BuildError
from mcudeploy.extensions.architectures import plan_row
from mcudeploy.extensions.architectures.plan_row import PlanJob, planned_row
from mcudeploy.planner.files import plan_cache

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "vww" / "model.onnx"
BOARDS = ("stm32f405", "microbit")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("many")
    sizes = [(8, number, 4) for number in range(6, 9)]
    paths = [fully_connected(folder / f"{it[1]}.onnx", it, quantised=False) for it in sizes]
    return {path.stem: path.read_bytes() for path in paths}


class Counted(ThreadPoolExecutor):
    """An executor that knows how many jobs it was given."""

    jobs = 0

    def submit(self, *args: Any, **named: Any) -> Future[Any]:
        self.jobs += 1
        return super().submit(*args, **named)


def counted(models: Any, cache: Path, **named: Any) -> tuple[md.PlanTable, int]:
    """The table, and the number of jobs that were not in the cache."""
    with Counted(1) as pool:
        return md.plan_many(models, BOARDS, pool, cache=cache, time_limit=1, **named), pool.jobs


def test_the_rows_are_the_plans_of_each_model() -> None:
    (row,) = md.plan_many([EXAMPLE], ["stm32f405"], time_limit=1).rows
    plan = md.plan(EXAMPLE, "stm32f405", time_limit=1)
    assert (row.arena_bytes, row.unsplit_arena_bytes) == (plan.arena_bytes, plan.unsplit_arena_bytes)
    assert row.arena_bytes is not None and row.arena_bytes < md.cost(EXAMPLE, "stm32f405").arena_bytes
    assert (row.ticks, row.overhead_percent) == (
        plan.report["estimated_latency"]["value"],
        pytest.approx(plan.deployment.estimated_overhead, abs=0.1),
    )
    assert row.model == str(EXAMPLE) and row.error == ""


def test_every_executor_gives_the_same_table(models: dict[str, bytes]) -> None:
    seen: list[tuple[int, int]] = []
    here = md.plan_many(models, BOARDS, time_limit=1, progress=lambda *it: seen.append(it[:2]))
    assert seen == [(number, 6) for number in range(1, 7)]
    assert [(it.model, it.board) for it in here.rows] == [
        (name, board) for name in models for board in BOARDS
    ]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert md.plan_many(models, BOARDS, pool, time_limit=1) == here


def test_an_interrupted_run_goes_on(models: dict[str, bytes], tmp_path: Path) -> None:
    whole = md.plan_many(models, BOARDS, time_limit=1)

    def stop(done: int, *_: object) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        md.plan_many(models, BOARDS, cache=tmp_path, time_limit=1, progress=stop)
    assert counted(models, tmp_path) == (whole, 4)
    assert counted(models, tmp_path) == (whole, 0)
    assert counted(models, tmp_path, fresh=True) == (whole, 6)
    renamed = {f"new {name}": content for name, content in models.items()}
    table, jobs = counted(renamed, tmp_path)
    assert jobs == 0 and {it.model for it in table.rows} == renamed.keys()
    assert counted(models, tmp_path, max_overhead=9)[1] == 6


@pytest.mark.parametrize("damage", [b"", b"{", b'{"model": 3}', b"\xff" * 99, None])
def test_a_damaged_entry_is_planned_again(
    models: dict[str, bytes], tmp_path: Path, damage: bytes | None
) -> None:
    whole, _ = counted(models, tmp_path)
    path = next(tmp_path.iterdir())
    if damage is None:
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes(damage)
    assert counted(models, tmp_path) == (whole, 1)
    assert counted(models, tmp_path) == (whole, int(damage is None))


@pytest.mark.parametrize(
    "change",
    [
        {"arena_bytes": -1},
        {"arena_bytes": None},
        {"milliseconds": float("inf")},
        {"overhead_percent": float("nan")},
        {"error": "no plan"},
        {"board": "microbit"},
        {"model": "other"},
    ],
)
def test_an_entry_that_is_not_a_row_of_its_job_is_planned_again(
    models: dict[str, bytes], tmp_path: Path, change: dict[str, Any]
) -> None:
    whole = md.plan_many([models["6"]], ["stm32f405"], cache=tmp_path, time_limit=1)
    (path,) = tmp_path.iterdir()
    good = path.read_bytes()
    path.write_text(json.dumps(json.loads(good) | change))
    assert md.plan_many([models["6"]], ["stm32f405"], cache=tmp_path, time_limit=1) == whole
    assert path.read_bytes() == good


def test_an_error_of_the_machine_is_not_kept(
    models: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise BuildError("no room on the disk")

    with monkeypatch.context() as patch:
        patch.setattr(plan_row, "_plans", fail)
        (row,) = md.plan_many([models["6"]], ["host"], cache=tmp_path, time_limit=1).rows
    assert row.error == "no room on the disk" and list(tmp_path.iterdir()) == []


def test_rows_depend_on_the_packages_that_plan(
    models: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted(models, tmp_path)
    monkeypatch.setattr(plan_cache, "lacking", lambda: ("ortools",))
    assert counted(models, tmp_path)[1] == 6


def test_a_model_that_fails_is_a_row(models: dict[str, bytes], tmp_path: Path) -> None:
    proto = onnx.load_from_string(models["6"])
    proto.graph.node[0].op_type = "Unknown"
    sources = {
        "good": models["6"],
        "unknown": proto,
        "no model": b"no model",
        "folder": tmp_path,
        "gone": tmp_path / "gone.onnx",
        "large": EXAMPLE,
    }
    table = md.plan_many(sources, ["microbit"], cache=tmp_path / "cache", time_limit=1)
    errors = {it.model: it.error for it in table.rows}
    assert errors.pop("good") == ""
    parts = {
        "unknown": "not supported; ",
        "no model": "the model is not an ONNX file",
        "folder": "cannot be read",
        "gone": "No such file",
        "large": "arena needs",
    }
    assert parts.keys() == errors.keys() and all(part in errors[name] for name, part in parts.items())
    assert all(it.arena_bytes is None for it in table.rows if it.error)
    assert md.plan_many(sources, ["microbit"], cache=tmp_path / "cache", time_limit=1) == table


def test_a_lost_worker_is_a_row_that_another_run_plans(models: dict[str, bytes], tmp_path: Path) -> None:
    class Losing(Counted):
        def submit(self, function: Any, job: PlanJob) -> Future[Any]:
            return super().submit(function if job.model != "7" else os.stat, job if job.model != "7" else "-")

    with Losing(1) as pool:
        table = md.plan_many(models, ["host"], pool, cache=tmp_path, time_limit=1)
    assert [it.error.partition(":")[0] for it in table.rows] == ["", "FileNotFoundError", ""]
    assert all(it.error == "" for it in md.plan_many(models, ["host"], cache=tmp_path, time_limit=1).rows)


def test_an_executor_that_breaks_loses_no_rows(models: dict[str, bytes], tmp_path: Path) -> None:
    class Breaking(ProcessPoolExecutor):
        def submit(self, *args: Any, **named: Any) -> Future[Any]:
            future = super().submit(*args, **named)
            if args[1].model == "7":
                lost = super().submit(os._exit, 1)
                assert isinstance(lost.exception(), BrokenProcessPool)
            return future

    with Breaking(1, mp_context=get_context("spawn")) as pool:
        table = md.plan_many(models, ["host"], pool, cache=tmp_path, time_limit=1)
    assert [it.model for it in table.rows] == ["6", "7", "8"]
    assert table.rows[2].error.startswith("BrokenProcessPool: ")
    assert all(it.error == "" for it in md.plan_many(models, ["host"], cache=tmp_path, time_limit=1).rows)


def test_the_jobs_of_a_stopped_run_are_cancelled(models: dict[str, bytes]) -> None:
    futures: list[Future[Any]] = []

    class Stopping(Executor):
        def submit(self, *_: Any, **__: Any) -> Future[Any]:
            if len(futures) == 2:
                raise KeyboardInterrupt
            futures.append(Future())
            return futures[-1]

    with pytest.raises(KeyboardInterrupt):
        md.plan_many(models, ["host"], Stopping(), time_limit=1)
    assert [it.cancelled() for it in futures] == [True, True]


def test_the_table_is_written(models: dict[str, bytes], tmp_path: Path) -> None:
    names = {"=1+1": models["6"], "@b,\n\x1b[2J": b"", "-c": models["7"]}
    table = md.plan_many(names, ["host"], time_limit=1)
    table.save(tmp_path / "table.csv")
    table.save(tmp_path / "table.json")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "table.csv").read_text("utf-8"))))
    assert [it["model"] for it in rows] == ["'=1+1", "'@b,\\n\\x1b[2J", "'-c"]
    assert [it["arena_bytes"] for it in rows] == [str(it.arena_bytes or "") for it in table.rows]
    stored = json.loads((tmp_path / "table.json").read_text("utf-8"))["rows"]
    assert [it["model"] for it in stored] == ["=1+1", "@b,\\n\\x1b[2J", "-c"]
    assert stored[0]["milliseconds"] is None and stored[1]["error"] == "the model is empty"
    with pytest.raises(md.UsageError, match=r"\.csv or \.json"):
        table.save(tmp_path / "table.xlsx")
    with pytest.raises(md.UsageError, match=r"cannot be written into .*nodir: No such file"):
        table.save(tmp_path / "nodir" / "table.csv")


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        ({"models": "model.onnx"}, md.UsageError, "models is a list"),
        ({"models": [3]}, md.UsageError, "not int"),
        ({"boards": "host"}, md.UsageError, r"boards is a list, such as \['host'\]"),
        ({"boards": load_board("microbit")}, md.UsageError, r"boards is a list, such as \['microbit'\]"),
        ({"boards": ["nonsuch"]}, md.BoardNotFoundError, "nonsuch"),
        ({"plan": "plan.json"}, md.UsageError, "plan= and order= are of one model"),
        ({"time_limit": -1}, md.UsageError, "time_limit"),
        ({"time_limit": 0}, md.UsageError, "greater than 0"),
        ({"max_overhead": float("inf")}, md.UsageError, "finite"),
        ({"name": "a b"}, md.UsageError, "is not a name in C"),
        ({"progress": 3}, md.UsageError, "is not a function"),
        ({"cache": 3}, md.UsageError, "is not the path"),
        ({"cache": "a\0b"}, md.UsageError, "is not the path"),
        ({"executor": 3}, md.UsageError, "takes no jobs"),
        ({"cache": os.devnull}, md.ConfigError, "cannot be a folder"),
    ],
)
def test_wrong_arguments(
    models: dict[str, bytes], wrong: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        md.plan_many(**{"models": models, "boards": ["host"], **wrong})
    with pytest.raises(TypeError, match="did you mean 'executor'"):
        md.plan_many(models, ["host"], executer=None)  # type: ignore[call-arg]


def test_a_job_of_an_interrupted_search_has_no_row(
    models: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = plan_row._plans
    monkeypatch.setattr(plan_row, "_plans", lambda *it: replace(plans(*it), interrupted=True))
    (board,) = [it for it in md.list_boards() if it.name == "microbit"]
    with pytest.raises(KeyboardInterrupt):
        planned_row(PlanJob("6", models["6"], board, {"time_limit": 1}))
