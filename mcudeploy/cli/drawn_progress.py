"""The progress of long stages on a terminal: a line while a stage runs, and the chart of a search."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar
from rich.text import Text

from mcudeploy.cli.searchchart import SearchChart
from mcudeploy.common.text import plain


class _TimeLeft(TimeRemainingColumn):
    """The time that a stage of known length still needs; nothing for other stages."""

    def render(self, task: Task) -> Text:
        """Return the text of the column."""
        left = super().render(task)
        return Text() if task.total is None or task.time_remaining is None else left.append(" left")


class _Bars(Bar):
    """Progress bars above the chart of a search."""

    def __init__(self, chart: SearchChart, *columns: ProgressColumn, console: Console) -> None:
        self._chart = chart  # the base class draws itself in its constructor
        super().__init__(*columns, console=console, transient=True)

    def get_renderables(self) -> Iterator[RenderableType]:
        """Yield the bars, then the chart."""
        yield from super().get_renderables()
        yield self._chart


class DrawnProgress:
    """Progress as a line that lives while a stage runs, with a bar and a chart of the search."""

    def __init__(self, console: Console) -> None:
        self._chart = SearchChart()
        self._bar = _Bars(
            self._chart,
            SpinnerColumn("dots" if console.encoding.startswith("utf") else "line"),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            _TimeLeft(),
            console=console,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> DrawnProgress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def stage(self, name: str) -> None:
        """Replace the line by one for this stage."""
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task(plain(name), total=None)

    def update(self, name: str) -> None:
        """Change the line of this stage."""
        if self._task is not None:
            self._bar.update(self._task, description=plain(name))

    def advance(self, done: int, total: int) -> None:
        """Move the bar."""
        if self._task is not None:
            self._bar.update(self._task, completed=done, total=total)

    def searched(self, seconds: float, arena_bytes: int, candidates: int) -> None:
        """Draw the search so far."""
        self._chart.add(seconds, arena_bytes, candidates)
