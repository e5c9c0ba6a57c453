"""The second checker: it accepts what the first one accepts, and refuses edited plans and C tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from fuzzing.second_checker import CHECKER, verdict, with_tables, written
from fuzzing.trips import Trip, drawn

from mcudeploy.checker.judge import PlanFaultError, check
from mcudeploy.common.errors import ConfigError
from mcudeploy.ir.plan import Plan
from mcudeploy.planner.files.planfile import plan_of, read_plan

Json = dict[str, Any]


def first_verdict(trip: Trip, path: Path) -> tuple[Plan | None, str]:
    """The plan of a file, if it can be read, and the fault that mcudeploy itself finds, if any."""
    judged = trip.judged
    try:
        content = read_plan(path, judged.model.sha256, judged.board.name)
        plan = plan_of(content, path, judged.plan.graph, judged.model.work)
    except ConfigError as error:
        return None, str(error)
    try:
        check(plan, judged.model.work, judged.board)
    except PlanFaultError as error:
        return plan, str(error)
    return plan, ""


def numbers_of(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each integer inside lists and objects: its container and key."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        if isinstance(item, int) and not isinstance(item, bool):
            yield value, key
        else:
            yield from numbers_of(item)


def edited(content: Json, random: Random) -> Json:
    """A plan with one number changed, or two steps, residences or transfers swapped."""
    content = json.loads(json.dumps(content))
    if random.random() < 0.3:
        lists = [it for it in (content["steps"], content["transfers"]) if len(it) > 1]
        lists += [block for blocks in content["blocks"].values() for block in blocks if len(block) > 1]
        swapped = random.choice(lists)
        one, other = random.sample(range(len(swapped)), 2)
        swapped[one], swapped[other] = swapped[other], swapped[one]
        return content
    key = random.choice(
        [
            key
            for key in ("block_rows", "steps", "blocks", "blocks", "scratch", "transfers", "arenas")
            if content[key]
        ]
    )
    container, at = random.choice(list(numbers_of(content[key])))
    container[at] = max(0, container[at] + random.choice((-16, -8, -4, -1, 1, 4, 8, 16)))
    return content


@pytest.fixture(scope="module")
def trips() -> list[Trip]:
    return drawn(60, 11, 30)


def test_it_needs_python_alone() -> None:
    text = CHECKER.read_text("utf-8")
    assert set(re.findall(r"^(?:import|from) (\w+)", text, re.M)) <= {
        "array",
        "collections",
        "json",
        "math",
        "pathlib",
        "re",
        "sys",
        "typing",
    }
    assert len([line for line in text.splitlines() if line.strip()]) <= 612


def test_it_accepts_all_plans(trips: list[Trip], tmp_path: Path) -> None:
    assert sum(bool(trip.judged.plan.layout.transfers) for trip in trips) > 20
    for number, trip in enumerate(trips):
        assert verdict(written(trip.judged, tmp_path / str(number))) == 0, trip


def test_it_refuses_what_the_first_refuses(trips: list[Trip], tmp_path: Path) -> None:
    random, refused, with_own_tables = Random(5), 0, 0
    for number, trip in enumerate(trips):
        folder = written(trip.judged, tmp_path / str(number))
        content = json.loads((folder / "plan.json").read_text("utf-8"))
        for _ in range(8):
            (folder / "plan.json").write_text(json.dumps(edited(content, random)), "utf-8")
            plan, fault = first_verdict(trip, folder / "plan.json")
            if not fault:
                continue
            refused += 1
            assert verdict(folder), f"{trip}: {fault}"
            if plan is not None:
                with_own_tables += _is_refused_with_own_tables(trip, plan, folder, fault)
    assert refused >= 250 and with_own_tables >= 50


def test_it_refuses_edited_tables(trips: list[Trip], tmp_path: Path) -> None:
    """An offset, a row, a code of the schedule, whatever the program reads; some places are unread."""
    random, refused, passed = Random(6), 0, 0
    for number, trip in enumerate(trips):
        path = next((written(trip.judged, tmp_path / str(number)) / "lib").glob("m.c"))
        text = path.read_text("utf-8")
        for _ in range(6):
            begin = text.index("offsets[] = {")
            places = [it for it in re.finditer(r"\d+(?=u\b)", text) if it.start() > begin]
            place = random.choice(places)
            path.write_text(
                f"{text[: place.start()]}{int(place[0]) + random.choice((1, 2, 7))}{text[place.end() :]}",
                "utf-8",
            )
            refused, passed = (
                (refused + 1, passed) if verdict(tmp_path / str(number)) else (refused, passed + 1)
            )
    assert refused >= 250, (refused, passed)


@pytest.mark.parametrize(
    ("pattern", "replacement"),
    [
        (r"\.params = &(p_\w+)", ".params = 0"),
        (r"\.params = &(?!p_conv_a\b)p_\w+", ".params = &p_conv_a"),
        (r"(\.kernel = mcud_(?:move_blocks|start_transfers),.*?\.block_rows = )1u", r"\g<1>2u"),
        (r"(\.kernel = mcud_(?:move_blocks|start_transfers),.*?\.rows = )\d+u", r"\g<1>0u"),
        (r"(\.kernel = mcud_await_transfers,.*?\.rows = )\d+u", r"\g<1>0u"),
        (r"(mcud_tensor s_\w+ = \{[^}]*row_bytes = )0u", r"\g<1>64u"),
        (r" MCUD_MEMORY\(\w+\)", ""),
        (r"MCUD_MEMORY\(\w+\)", "MCUD_MEMORY(other)"),
        (r"(dims = \{\.input_rows = )", r"\g<1>1"),
        (r"(\.output_cols = )", r"\g<1>100000"),
        (r"(dims = \{[^}]*\.input_cols = )", r"\g<1>1"),
        (r"(input_rows = (?!1,)(?:(?!\};).)*?\.pad_top = )1", r"\g<1>0"),
        (r"(input_rows = (?!1,)(?:(?!\};).)*?\.stride_rows = )1(?=(?:(?!\};).)*?pad_top = 1)", r"\g<1>0"),
        (
            r"(input_rows = (?!1,)(?:(?!\};).)*?\.kernel_rows = [2-9](?:(?!\};).)*?\.dilation_rows = )1",
            r"\g<1>0",
        ),
        (r"return at;", "return (uint8_t *)at + 8;"),
        (
            r"^(static const mcud_code schedule)(.*?\};)(.*?\.schedule = )\w+",
            r"\1\2\n\1_2[] = {0u};\3schedule_2",
        ),
        (r"^static const mcud_op operators", "#define t_a t_b\n\\g<0>"),
        (r"^(const mcud_model )(\w+)( = \{.*?\};)", r"\1\2\3\n\1other\3"),
        (r"$(?![\s\S])", "\n#define MCUD_ALIGN 64\n"),
    ],
)
def test_it_refuses_tables_of_another_program(
    pattern: str, replacement: str, trips: list[Trip], tmp_path: Path
) -> None:
    """Tables that another part of the C code replaces, and parameters, moves or memories of another plan."""
    refused = 0
    for number, trip in enumerate(trips[:20]):
        path = written(trip.judged, tmp_path / str(number)) / "lib/m.c"
        text = path.read_text("utf-8")
        path.write_text(re.sub(pattern, replacement, text, count=1, flags=re.M | re.S), "utf-8")
        if path.read_text("utf-8") != text:
            refused += verdict(tmp_path / str(number)) > 0
            assert verdict(tmp_path / str(number)), trip
    assert refused


def test_malformed_files_are_refused_without_a_traceback(trips: list[Trip], tmp_path: Path) -> None:
    folder = written(trips[0].judged, tmp_path)
    texts = {name: (folder / name).read_text("utf-8") for name in ("plan.json", "board.json", "lib/m.c")}
    for name, text in (
        ("plan.json", "[" * 100_000),
        ("plan.json", "null"),
        ("plan.json", texts["plan.json"].replace('"format": 10', '"format": ' + "1" * 5000)),
        ("board.json", re.sub(r'"alignment": \d+', '"alignment": 0', texts["board.json"])),
        ("lib/m.c", texts["lib/m.c"] + "\nstatic const int deep = " + "{" * 9999 + "}" * 9999 + ";\n"),
        ("lib/m.c", re.sub(r"block_rows = \d+u", "block_rows = 0u", texts["lib/m.c"])),
        ("lib/m.c", texts["lib/m.c"].replace("const mcud_model ", "const mcud_other ")),
    ):
        assert text != texts[name]
        (folder / name).write_text(text, "utf-8")
        assert verdict(folder) in (1, 2), (name, text[:80])
        (folder / name).write_text(texts[name], "utf-8")
    assert verdict(folder) == 0


def _is_refused_with_own_tables(trip: Trip, plan: Plan, folder: Path, fault: str) -> bool:
    """Whether C tables can be made of a faulty plan, which the checker then refuses as well."""
    try:
        with_tables(replace(trip.judged, plan=plan), folder / "own")
    except (ValueError, LookupError, AssertionError, OverflowError):
        return False
    assert verdict(folder, "own"), f"{trip}: {fault}"
    return True
