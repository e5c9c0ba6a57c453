"""Pictures of plans: they show what the plan says, stay small, and take names of a model as text."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcudeploy.boards.catalogue import load_board
from mcudeploy.common.errors import UsageError
from mcudeploy.ir.interval import Interval
from mcudeploy.planner.model.model import load_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import find_plans
from mcudeploy.planner.tape.plan_view import PlanView
from mcudeploy.report import chart
from mcudeploy.report.chart.drawing import Area, ChartGroup, ChartRun, Drawing, Panel
from mcudeploy.report.chart.svg import round_steps

MODEL = Path(__file__).resolve().parents[2] / "examples" / "vww" / "model.onnx"
EVIL = '<script>alert("x")</script>\'&]]>'
SVG = "{http://www.w3.org/2000/svg}"


def _drawing(blocks: int, name: str = "conv_0", memories: int = 1) -> Drawing:
    """`blocks` steps, each of which makes a block of 8 bytes that lives for two steps, in two places."""
    areas = tuple(
        Area(Interval(step, min(step + 2, blocks)), Interval(step % 2 * 8, step % 2 * 8 + 8))
        for step in range(blocks)
    )
    load = tuple(min(step + 1, 2) * 8 for step in range(blocks))
    groups = (ChartGroup(name, "int8", 0, areas), ChartGroup(f"scratch of {name}", "4 B", -1, areas[:1]))
    panels = tuple(Panel(f"{name}{number}", 16, groups, load) for number in range(memories))
    runs = (ChartRun(name, 0, Interval(0, blocks)),)
    return Drawing(name, name, blocks, panels, runs, (("model", name), ("board", name)))


@pytest.fixture(scope="module")
def split() -> Drawing:
    plans = find_plans(load_model(MODEL), load_board("host"), Options(time_limit=0.5))
    plan = plans.choices[0]
    return chart.draw(PlanView(plan, plans.model_of(plan).calls), MODEL.name)


def _shapes(text: str) -> dict[str, ElementTree.Element]:
    """Titled paths of an SVG document by the name in their title."""
    found = {}
    for path in ElementTree.fromstring(text).iter(f"{SVG}path"):
        title = path.find(f"{SVG}title")
        if title is not None and ": " in (title.text or ""):
            found[str(title.text).rsplit(": ", 1)[0]] = path
    return found


def test_a_drawing_has_every_block_and_the_peak_of_the_plan() -> None:
    plans = find_plans(load_model(MODEL), load_board("host"), Options(time_limit=0.5))
    for plan in (plans.choices[0], plans.baseline):
        drawn = chart.draw(PlanView(plan, plans.model_of(plan).calls), MODEL.name)
        (panel,) = drawn.panels
        assert (panel.arena_bytes, max(panel.load)) == (plan.layout.arena_bytes, plan.estimate.peak_bytes)
        assert panel.peak_step == plan.estimate.peak_step
        assert drawn.steps == len(panel.load) == len(plan.schedule.steps)
        assert sum(len(run.steps) for run in drawn.runs) == drawn.steps
        areas = [area for group in panel.groups for area in group.areas]
        assert all(0 <= area.bytes.lo < area.bytes.hi <= panel.arena_bytes for area in areas)
        for step in range(drawn.steps):  # in place, two blocks share their bytes for a step
            used = {b for area in areas if step in area.steps for b in range(area.bytes.lo, area.bytes.hi)}
            assert len(used) == panel.load[step]


def test_every_block_is_drawn_where_it_lies(split: Drawing) -> None:
    shapes = _shapes(chart.svg_picture(split))
    groups = {group.name: group for group in split.panels[0].groups if group.areas}
    assert shapes.keys() == groups.keys()
    for name, group in groups.items():
        assert shapes[name].attrib["d"].count("M") == len(group.areas)
    scale = 480 / split.panels[0].arena_bytes
    last = groups["input_1_int8"].areas[-1]
    heights = re.findall(r"v([\d.]+)h", shapes["input_1_int8"].attrib["d"])
    assert float(heights[-1]) == pytest.approx(len(last.bytes) * scale, abs=0.01)


def test_tensors_have_colours_of_their_own_and_scratch_none(split: Drawing) -> None:
    shapes = _shapes(chart.svg_picture(split))
    fills = {name: path.attrib.get("fill") for name, path in shapes.items()}
    tensors = [fill for name, fill in fills.items() if not name.startswith("scratch of ")]
    assert len(set(tensors)) == len(tensors)
    assert all(fill is None for name, fill in fills.items() if name.startswith("scratch of "))


@pytest.mark.parametrize("blocks", [1, 10, 2000])
def test_thin_blocks_have_no_outline_and_stay_a_small_file(blocks: int) -> None:
    text = chart.svg_picture(_drawing(blocks))
    path = _shapes(text)["conv_0"]
    assert (path.attrib.get("class") == "edge") == (blocks < 2000)
    assert len(text) < 10_000 + 60 * blocks
    assert "conv_0</text>" in text  # thin or not, there is room for the name


def test_each_memory_has_a_panel() -> None:
    text = chart.svg_picture(_drawing(10, memories=3))
    assert all(f"offset in conv_0{number}, bytes" in text for number in range(3))


@pytest.mark.parametrize("name", [EVIL, "a\x00\x1b[31m\ufffe\ud800b", "--><!--", "\u202egpj"])
def test_names_are_text(name: str) -> None:
    drawing = _drawing(3, name)
    text = chart.svg_picture(drawing)
    root = ElementTree.fromstring(text)
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
        "svg", "title", "style", "rect", "path", "text"
    }  # fmt: skip
    page = chart.html_page(drawing)
    tags: list[str] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: tags.append(tag)  # type: ignore[method-assign]
    parser.feed(page)
    assert "script" not in tags
    assert not any(code in text + page for code in ("<script", "\x00", "\x1b", "\u202e", "<!--"))


def test_a_page_fetches_nothing(split: Drawing) -> None:
    page = chart.html_page(split)
    links = set(re.findall(r"https?:[^\"' ]*", page))
    assert links == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\b(src|href|url)\b|@import|<script", page)
    assert all(value in page for _, value in split.facts)


def test_the_ending_says_the_format(tmp_path: Path) -> None:
    drawing = _drawing(3)
    chart.save(drawing, tmp_path / "a.svg")
    chart.save(drawing, tmp_path / "a.HTML")
    assert (tmp_path / "a.svg").read_text().startswith("<svg ")
    assert (tmp_path / "a.HTML").read_text().startswith("<!DOCTYPE html>")
    with pytest.raises(UsageError, match=r"a\.png"):
        chart.save(drawing, tmp_path / "a.png")


def test_the_same_plan_gives_the_same_picture(split: Drawing) -> None:
    assert chart.svg_picture(split) == chart.svg_picture(replace(split))


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 10**9), st.integers(3, 20))
def test_ticks_are_round_and_few(most: int, wanted: int) -> None:
    ticks = round_steps(most, wanted)
    step = ticks[1] - ticks[0]
    assert ticks[0] == 0 and ticks[-1] <= most < ticks[-1] + step
    assert len(ticks) <= wanted + 1
    assert str(step).strip("0") in {"1", "2", "5"}
