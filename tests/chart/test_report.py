"""Reports and traces: they show what the plan says, fetch nothing, and take names of a model as text."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner
from models import quantised_convolutions

from mcudeploy.boards.catalogue import load_board
from mcudeploy.cli.main import cli
from mcudeploy.codegen.html_template import as_data
from mcudeploy.common.files import is_ours
from mcudeploy.execution.deployment import Deployment
from mcudeploy.ir.plan import Measurement, OperatorTime
from mcudeploy.planner.model.model import load_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import find_plans
from mcudeploy.report import as_json, html, objects
from mcudeploy.report.perfetto import trace
from mcudeploy.report.times import latency_text, step_times

VWW = Path(__file__).resolve().parents[2] / "examples" / "vww" / "model.onnx"
EVIL = "<script>alert(1)<script>'&].onnx"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HEADLESS = (str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr")


def deployed(path: Path, board: str, **options: object) -> Deployment:
    chosen = Options(time_limit=1, **options)  # type: ignore[arg-type]
    planned = find_plans(load_model(path), load_board(board), chosen)
    return Deployment.of(planned, planned.choices[0], load_board(board), chosen)


def subject(deployment: Deployment) -> html.Subject:
    return html.Subject(deployment, objects.plan(deployment) | objects.latency(deployment, None, None))


@pytest.fixture(scope="module")
def vww() -> Deployment:
    return deployed(VWW, "stm32f411")


class Page(HTMLParser):
    """A page's elements, and everything in it that could load or run something."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.handlers: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [str(value) for name, value in attrs if name in ("src", "href")]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


def test_a_page_has_every_board_and_fetches_nothing(vww: Deployment) -> None:
    other = deployed(VWW, "stm32f746", split=False)
    misfit = html.Misfit(load_board("stm32f100"), "arena needs 28,072 bytes\nThis would fit:\n  --board x")
    text = html.page(Path(EVIL), [subject(vww), misfit, subject(other)], ["plan", EVIL])
    page = Page(text)
    assert page.tags.count("script") == 3  # the data of two arenas, and the page's own
    assert set(page.links) == {"#board-1", "#board-2", "#board-3"} and not page.handlers
    assert len(text.encode()) < 2**20
    for shown in ("stm32f411", "stm32f100", "28,072 bytes", "--board x", "conv_26", "mcudeploy plan"):
        assert shown in text
    assert f"{vww.plan.layout.arena_bytes:,} B" in text and "alert(1)&lt;script&gt;" in text
    assert text == html.page(Path(EVIL), [subject(vww), misfit, subject(other)], ["plan", EVIL])


def test_the_data_of_the_arena_are_the_residences(vww: Deployment) -> None:
    text = html.page(VWW, [subject(vww)], [])
    data = json.loads(re.findall(r'<script type="application/json">(.*?)</script>', text, re.DOTALL)[0])
    (panel,) = data["panels"]
    layout = vww.plan.layout
    places = [
        [each.life.lo, each.life.hi, each.offset]
        for residences in (*layout.blocks.values(), *layout.scratch.values())
        for block in residences
        for each in block
        if len(each.life)
    ]
    assert [block[3:6] for block in panel["blocks"]] == places
    assert max(block[5] + block[6] for block in panel["blocks"]) <= layout.arena_bytes
    assert len(data["steps"]) == len(vww.plan.schedule.steps)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_a_click_on_a_plan_gives_its_command(vww: Deployment, tmp_path: Path) -> None:
    one = replace(subject(vww), command_within="mcudeploy plan '<m>.onnx' --max-overhead {}".format)
    clicking = """<script>
      document.querySelector(".curve [data-command]").dispatchEvent(new MouseEvent("click", {bubbles: true}));
    </script>"""
    text = re.sub(r"<meta http-equiv[^>]*>", "", html.page(VWW, [one], []))
    file = tmp_path / "page.html"
    file.write_text(text.replace("</body>", f"{clicking}</body>"), "utf-8")
    seen = subprocess.run(
        [*HEADLESS, f"--user-data-dir={tmp_path / 'user'}", "--dump-dom", file.as_uri()],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    tip = re.search(r'<div id="tip"[^>]*>([^<]*)<', seen.stdout)
    assert tip is not None and re.match(r"mcudeploy plan '&lt;m&gt;.onnx' --max-overhead \d+", tip[1])


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_chromium_opens_the_page_and_tells_what_is_under_the_pointer(vww: Deployment, tmp_path: Path) -> None:
    text = html.page(VWW, [subject(vww)], [])
    pointing = """<script>
      const svg = document.querySelector("figure.arena svg"), m = svg.getScreenCTM();
      const at = new DOMPoint(100, 500).matrixTransform(m);
      svg.dispatchEvent(new MouseEvent("mousemove", {clientX: at.x, clientY: at.y}));
    </script>"""
    policy = re.search(r"<meta http-equiv[^>]*>", text)
    assert policy is not None
    pages = {
        "as_it_is": text,
        "pointed": text.replace(policy[0], "").replace("</body>", f"{pointing}</body>"),
    }
    seen = {}
    for name, content in pages.items():
        file = tmp_path / f"{name}.html"
        file.write_text(content, "utf-8")
        seen[name] = subprocess.run(
            [*HEADLESS, f"--user-data-dir={tmp_path / name}", "--dump-dom", file.as_uri()],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert "CONSOLE" not in seen[name].stderr, seen[name].stderr
    assert '<rect class="hit"' in seen["as_it_is"].stdout  # the page's policy lets its script run
    tip = re.search(r'<div id="tip"[^>]*>([^<]*)<', seen["pointed"].stdout)
    assert tip is not None and re.fullmatch(
        r"input_1_int8, rows? \d+( to \d+)?\nlives in steps 0 to \d+\n[\d,]+ B at offset [\d,]+ B in sram\n"
        r"step \d runs conv_0",
        tip[1],
    )


@pytest.mark.parametrize(
    ("unit", "word"), [("cycles", "measured"), ("cycles (model)", "modelled"), ("instructions", "counted")]
)
def test_only_hardware_measures(vww: Deployment, unit: str, word: str) -> None:
    names = dict.fromkeys(vww.plan.graph.operators[step.operator].name for step in vww.plan.schedule.steps)
    run = Measurement(30_000, unit, tuple(OperatorTime(name, 1, 1000) for name in names))
    report = objects.plan(vww, run) | objects.latency(vww, run, Measurement(29_000, unit, run.operators))
    assert report["overhead_source"] == word
    text = html.page(VWW, [html.Subject(vww, report, run)], [])
    page = re.sub(r"<style.*?</style>|<[^>]*>", "", text, flags=re.S)
    assert f"{unit} {word}" in page and f"the unsplit plan, {word}" in page
    assert word == "measured" or "measured" not in page


def test_measured_times_are_shared_out_among_steps(vww: Deployment) -> None:
    names = dict.fromkeys(vww.plan.graph.operators[step.operator].name for step in vww.plan.schedule.steps)
    operators = tuple(OperatorTime(name, 1, 1000 + at) for at, name in enumerate(names))
    measured = Measurement(sum(each.ticks for each in operators), "cycles", operators)
    times = step_times(vww, measured)
    assert sum(times.ticks) == pytest.approx(measured.latency) and times.measured
    assert not step_times(vww, None).measured
    assert latency_text(1e6, "cycles", vww.board) == "10.0 ms"
    assert latency_text(1e6, "instructions", vww.board) == "≥ 10.0 ms"
    assert latency_text(2500, "us", load_board("host")) == "2.5 ms"


def test_the_page_has_the_figures_of_the_tables_and_the_file_of_the_plan(vww: Deployment) -> None:
    report = as_json(vww)
    text = html.page(vww.model.path, [html.Subject(vww, report)], ["tune", "m.onnx"], Path("my plan.json"))
    modelled = report["estimated_latency"]
    assert f">{modelled['milliseconds']:,.1f} ms<" in text
    assert f"<td>{report['steps'] + report['moves']:,}" in text
    assert "--board stm32f411 --plan &#39;my plan.json&#39;" in text


def test_a_trace_has_each_step_once_and_ends_with_the_latency(vww: Deployment) -> None:
    report = json.loads(trace(vww, None))
    slices = [event for event in report["traceEvents"] if event["ph"] == "X"]
    assert len(slices) == len(vww.plan.schedule.steps)
    ends = [event["ts"] + event["dur"] for event in slices]
    assert all(end <= after["ts"] + 1e-3 for end, after in zip(ends, slices[1:], strict=False))
    whole = sum(step_times(vww, None).milliseconds(vww.board))
    assert ends[-1] == pytest.approx(1000 * whole, rel=1e-4)


def test_a_trace_of_two_cores_has_two_threads_that_never_overlap_themselves(tmp_path: Path) -> None:
    deployment = deployed(quantised_convolutions(tmp_path / "m.onnx"), "rp2350", cores=2)
    report = json.loads(trace(deployment, None))
    threads: dict[int, list[tuple[float, float]]] = {0: [], 1: []}
    for event in report["traceEvents"]:
        if event["ph"] == "X":
            threads[event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    assert all(threads.values())
    for spans in threads.values():
        assert all(one[1] <= other[0] + 1e-3 for one, other in pairwise(spans))
    alone = replace(deployment, model=replace(deployment.model, cores=1))
    assert max(spans[-1][1] for spans in threads.values()) < 1000 * sum(
        step_times(alone, None).milliseconds(deployment.board)
    )


def test_the_commands_write_pages_for_one_board_and_for_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = quantised_convolutions(tmp_path / "small.onnx")

    def called(line: str) -> tuple[int, str]:
        done = CliRunner().invoke(cli, line.split())
        return done.exit_code, done.stdout

    plan = f"plan {model} --time-limit 1"
    code, text = called(f"{plan} --board stm32f411,stm32f100 --report both.html --json")
    assert code == 0
    assert [each["board"] for each in json.loads(text)["boards"]] == ["stm32f411", "stm32f100"]
    page = Path("both.html").read_text("utf-8")
    assert f"mcudeploy plan {model}" in page and "stm32f100" in page
    assert called(f"{plan} --board stm32f411,stm32f100 --trace t.json")[0] == 2
    assert called(f"{plan} --board stm32f100 --ram-limit 100 --report no.html")[0] == 5
    assert "does not fit" in Path("no.html").read_text("utf-8")
    code, text = called(f"run {model} --board host --time-limit 1 --report run.html --trace t.json")
    assert code == 0, text
    page = Path("run.html").read_text("utf-8")
    assert ">verified<" in page and "measured" in page
    assert json.loads(Path("t.json").read_text("utf-8"))["otherData"]["unit"] == "us"
    assert is_ours(Path("t.json")) and is_ours(Path("run.html"))


def test_data_of_a_page_contain_no_markup() -> None:
    names = ["</script><b>", "<!--", "a & b > c"]
    assert not re.search("[<>&]", as_data(names)) and json.loads(as_data(names)) == names
