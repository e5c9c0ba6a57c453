"""Tapes of several cores in plan files that were tampered with end in ConfigError (exit 3), in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from models import quantised_convolutions

from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands import commands as api
from mcudeploy.common.errors import ConfigError
from mcudeploy.planner.plan_options import Options

HOST = load_board("host")
File = dict[str, Any]
Lanes = list[list[dict[str, Any]]]
Change = Callable[[Lanes], object]
CORES = 5


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A model, and the file of a plan for cores, some of which make columns."""
    folder = tmp_path_factory.mktemp("lanes")
    model = quantised_convolutions(folder / "small.onnx")
    deployment = api.plan_model(model, HOST, Options(split=False, cores=CORES))
    api.save_plan(deployment, folder / "plan.json")
    text = (folder / "plan.json").read_text()
    lanes = json.loads(text)["lanes"]
    assert (
        len(lanes) == CORES
        and any("columns" in it for it in lanes[0])
        and any("core" in it for it in lanes[0])
    )
    return model, text


def load(stored: tuple[Path, str], text: str, folder: Path) -> api.Deployment:
    (folder / "plan.json").write_text(text)
    return api.plan_model(stored[0], HOST, Options(plan_file=folder / "plan.json"))


def part(lane: list[dict[str, Any]], *, columns: bool = False) -> dict[str, Any]:
    """The first part, of columns or of rows."""
    return next(it for it in lane if "rows" in it and ("columns" in it) == columns)


def wait(lane: list[dict[str, Any]]) -> dict[str, Any]:
    return next(it for it in lane if "core" in it)


CHANGES: dict[str, Change] = {
    "rows that end before they begin": lambda p: part(p[0]).update(rows=[3, 2]),
    "no rows": lambda p: part(p[0]).update(rows=[1, 1]),
    "rows beyond the last one": lambda p: part(p[-1]).update(rows=[10, 13]),
    "rows beyond 32 bits": lambda p: part(p[0]).update(rows=[0, 2**32]),
    "negative rows": lambda p: part(p[0]).update(rows=[-1, 2]),
    "one row only": lambda p: part(p[0]).update(rows=[0]),
    "columns that end before they begin": lambda p: part(p[0], columns=True).update(columns=[3, 2]),
    "no columns": lambda p: part(p[0], columns=True).update(columns=[4, 4]),
    "columns beyond the last one": lambda p: part(p[0], columns=True).update(columns=[0, 13]),
    "columns of no value": lambda p: part(p[0], columns=True).update(columns=None),
    "columns of several rows": lambda p: part(p[0]).update(columns=[0, 12]),
    "an entry beyond the tape": lambda p: part(p[0]).update(entry=2),
    "an entry far beyond the tape": lambda p: part(p[0]).update(entry=2**31),
    "an entry before the tape": lambda p: part(p[0]).update(entry=-1),
    "a wait beyond the tape": lambda p: p[0].append({"entry": 99, "core": 1, "parts": 1}),
    "a wait for itself": lambda p: wait(p[0]).update(core=0),
    "a wait for a core that is not there": lambda p: wait(p[0]).update(core=CORES),
    "a wait for no part": lambda p: wait(p[0]).update(parts=0),
    "a wait for a later part": lambda p: wait(p[0]).update(parts=99),
    "a wait less": lambda p: p[0].remove(wait(p[0])),
    "a wait with rows": lambda p: wait(p[0]).update(rows=[0, 1]),
    "a part less": lambda p: p[0].pop(),
    "a part twice": lambda p: p[0].append(p[0][-1]),
    "a lane less": lambda p: p.pop(),
    "a lane too much": lambda p: p.append([]),
    "lanes for more cores than the board has": lambda p: p.extend([[], [], [], []]),
    "one lane": lambda p: p.__delitem__(slice(1, None)),
    "two lanes change places": lambda p: p.insert(0, p.pop()),
    "a lane turned round": lambda p: p[0].reverse(),
    "empty lanes": lambda p: [lane.clear() for lane in p],
    "a lane of numbers": lambda p: p.append([1, 2]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_changed_lanes_are_refused(stored: tuple[Path, str], change: Change, tmp_path: Path) -> None:
    content: File = json.loads(stored[1])
    change(content["lanes"])
    with pytest.raises(ConfigError) as caught:
        load(stored, json.dumps(content), tmp_path)
    assert "\n" not in str(caught.value) and str(tmp_path / "plan.json") in str(caught.value)


def test_lanes_come_back(stored: tuple[Path, str], tmp_path: Path) -> None:
    plan = load(stored, stored[1], tmp_path)
    api.save_plan(plan, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == stored[1]
    assert len(plan.plan.lanes) == CORES == plan.model.cores


def test_lanes_changed_at_random_are_sound_or_refused(stored: tuple[Path, str], tmp_path: Path) -> None:
    random, refused = Random(5), 0
    for _ in range(150):
        content: File = json.loads(stored[1])
        lane = random.choice(content["lanes"])
        entry = random.choice(lane)
        way = random.choice(("number", "number", "drop", "twice", "other lane", "columns"))
        if way == "number":
            table = (
                entry
                if "core" in entry
                else random.choice([entry, entry["rows"], entry.get("columns", entry)])
            )
            keys = list(table) if isinstance(table, dict) else range(len(table))
            key = random.choice([it for it in keys if isinstance(table[it], int)])
            table[key] += random.choice((-4, -1, 1, 4))
        elif way == "drop":
            lane.remove(entry)
        elif way == "twice":
            lane.insert(random.randrange(len(lane) + 1), entry)
        elif way == "other lane":
            lane.remove(entry)
            other = random.choice(content["lanes"])
            other.insert(random.randrange(len(other) + 1), entry)
        elif "rows" in entry:
            entry["columns"] = sorted(random.sample(range(13), 2))
        try:
            load(stored, json.dumps(content), tmp_path)
        except ConfigError as error:
            assert "\n" not in str(error)
            refused += 1
    assert refused > 100
