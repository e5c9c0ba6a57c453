"""The chart of a search in a terminal: the least arena falls, and rates are what was told."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from mcudeploy.cli.drawn_progress import DrawnProgress
from mcudeploy.cli.searchchart import SearchChart


def drawn(chart: SearchChart, width: int = 60) -> str:
    stream = StringIO()
    console = Console(file=stream, width=width, force_terminal=True, color_system=None)
    console.print(chart)
    return stream.getvalue()


def test_the_least_arena_is_a_step_down_where_it_was_found() -> None:
    chart = SearchChart()
    assert drawn(chart) == ""
    for seconds, arena, candidates in ((0.0, 48_000, 1), (1.0, 24_000, 101), (2.0, 24_000, 201)):
        chart.add(seconds, arena, candidates)
    lines = chart.lines(8)
    assert lines[0] == "      arena 24,000 B"
    assert lines[1] == "     48,000 ███     " and lines[6] == "          0 ████████"
    assert lines[3].endswith("███     ") and lines[4].endswith("████████")
    assert lines[7] == "   a second ████████ 100 candidates"
    assert drawn(chart).count("\n") == 8


def test_the_next_search_goes_on_and_a_narrow_terminal_has_no_chart() -> None:
    chart = SearchChart()
    for seconds, arena in ((0.0, 200), (3.0, 100), (0.5, 150)):
        chart.add(seconds, arena, 10)
    assert (chart.seconds, chart.arenas) == ([0.0, 3.0, 3.5], [200, 100, 100])
    assert chart.candidates == [10, 10, 20]
    assert drawn(chart, width=40) == ""


def test_progress_in_a_terminal_shows_the_chart() -> None:
    stream = StringIO()
    console = Console(file=stream, width=80, force_terminal=True, color_system=None)
    with DrawnProgress(console) as progress:
        progress.stage("searching")
        progress.searched(0.1, 4096, 10)
        progress.searched(0.2, 2048, 30)
    assert "arena 2,048 B" in stream.getvalue() and "150 candidates" in stream.getvalue()
