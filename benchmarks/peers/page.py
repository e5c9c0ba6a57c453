"""docs/league.md: the lost comparisons, the tables, published figures."""

from __future__ import annotations

import statistics
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mcudeploy.boards.catalogue import load_board
from peers.environment import BAKENN, EMX, MICRO
from peers.judge import RAM_GOAL, SHARE_GOAL, TIME_GOAL, Comparison, Ratio, compare, share_within
from peers.quoted import Published, published, reasons
from peers.rows import Row

TEXTS = tomllib.loads(Path(__file__).with_name("page.toml").read_text("utf-8"))


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where the page comes from.

    `compilers`: versions, in words. `stem`: of its file, and of its chart's. `chosen`: networks are named, so
    it leaves out what others published.
    """

    commit: str
    date: str
    command: str
    compilers: str
    time_limit: float
    title: str = "The league"
    stem: str = "league"
    chosen: bool = False


def page(rows: Sequence[Row], provenance: Provenance) -> str:
    """Return the page."""
    comparisons = compare(rows)
    head = TEXTS["head"].format(
        commit=provenance.commit,
        date=provenance.date,
        command=provenance.command,
        compilers=provenance.compilers,
        title=provenance.title,
    )
    tools = TEXTS["tools"].format(time_limit=provenance.time_limit, bakenn=BAKENN, emx=EMX, micro=MICRO)
    parts = [
        head,
        _lost(comparisons),
        _goals(comparisons),
        TEXTS["chart"].format(chart=f"{provenance.stem}.svg"),
        *(_board(name, rows) for name in dict.fromkeys(row.board for row in rows)),
        _refused(rows),
        tools,
        *(() if provenance.chosen else (_published(published()), TEXTS["absent"])),
    ]
    return "".join(parts)


def _goals(comparisons: Sequence[Comparison]) -> str:
    lines = [
        "## Goals\n\nFor int8 networks with convolutions: the default plan against the best other tool. "
        f"RAM at most {RAM_GOAL:g} times that tool's, cycles at most {TIME_GOAL:g} times (instructions where "
        f"one of the two has no cycles), each for {SHARE_GOAL:.0%} of the rows. "
        "Rows where no other tool has a result do not count.\n",
        "| board | rows | without our result | RAM within the goal | least, median, largest ratio "
        "| time within the goal | least, median, largest ratio | flash: least, median, largest ratio |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    boards = list(dict.fromkeys(it.board for it in comparisons))
    for name in [*boards, "all"]:
        listed = [it for it in comparisons if it.has_goals and name in (it.board, "all")]
        ram, time = [it.ram for it in listed if it.ram], [it.time for it in listed if it.time]
        flash = [it.flash for it in listed if it.flash]
        missing = sum(bool(it.missing) for it in listed)
        cells = (name, str(len(listed)), str(missing), _reached(ram, RAM_GOAL), _reached(time, TIME_GOAL))
        lines.append(f"| {' | '.join(cells)} | {_spread(flash)} |")
    return "\n".join(lines) + "\n\n" + TEXTS["flash"]


def _reached(ratios: Sequence[Ratio], goal: float) -> str:
    within = sum(it.value <= goal for it in ratios)
    return f"{within} of {len(ratios)} ({share_within(ratios, goal):.0%}) | {_spread(ratios)}"


def _spread(ratios: Sequence[Ratio]) -> str:
    values = [it.value for it in ratios]
    return f"{min(values):.2f}, {statistics.median(values):.2f}, {max(values):.2f}" if values else ""


def _lost(comparisons: Sequence[Comparison]) -> str:
    known = reasons()
    lost = [(it, figure, ratio) for it in comparisons for figure, ratio in it.losses()]
    lines = ["## Rows beyond a goal\n"]
    missing = [it for it in comparisons if it.missing]
    if not lost and not missing:
        return "\n".join([*lines, "None.\n\n"])
    lines += [
        "| network | board | figure | mcudeploy | best other tool | ratio | reason |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [f"| {it.network} | {it.board} | all | no result | | | {it.missing} |" for it in missing]
    for it, figure, ratio in sorted(lost, key=lambda each: -each[2].value):
        reason = it.trade if figure == "flash" else known.get((it.network, figure), "")
        lines.append(
            f"| {it.network} | {it.board} | {figure} | {ratio.ours:,} {ratio.unit} "
            f"| {ratio.theirs:,} ({ratio.tool}) | {ratio.value:.2f} | {reason} |"
        )
    return "\n".join(lines) + "\n\n"


def _board(name: str, rows: Iterable[Row]) -> str:
    board = load_board(name)
    lines = [
        f"## {name}: {board.title}\n",
        "| network | tool | RAM, B | of it stack | flash, B | instructions | cycles | generation, CPU s "
        "| level | output differs by | remark |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    network = ""
    for row in rows:
        if row.board == name and not row.refusal:
            label = "" if row.network == network else row.network
            network = row.network
            seconds = "" if row.generation_s is None else f"{row.generation_s:.1f}"
            figures = (*map(_number, _figures(row)), seconds, row.level, _difference(row))
            lines.append(f"| {' | '.join((label, row.tool, *figures, row.remark))} |")
    return "\n".join(lines) + "\n\n"


def _figures(row: Row) -> tuple[int | None, ...]:
    return row.ram_bytes, row.stack_bytes, row.flash_bytes, row.instructions, row.cycles


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _difference(row: Row) -> str:
    if row.difference is None:
        return ""
    return f"{row.difference:.3g}" + (", **wrong**" if row.is_wrong else "")


def _refused(rows: Iterable[Row]) -> str:
    groups: dict[tuple[str, str], dict[str, None]] = {}
    for row in rows:
        if row.refusal:
            message = row.refusal.replace("|", "/").replace("<", "&lt;")
            groups.setdefault((row.tool, message), {})[row.network] = None
    lines = ["## Refused\n", "| tool | message | networks |", "| --- | --- | --- |"]
    lines += [
        f"| {tool} | {message} | {', '.join(names)} |" for (tool, message), names in sorted(groups.items())
    ]
    return "\n".join(lines) + "\n\n" if groups else ""


def _published(listed: Iterable[Published]) -> str:
    lines = [
        "## Published figures\n",
        "Of the same networks, on chips: with the wait states of their flash, which the models leave out. "
        "Read in November 2026.\n",
        "| network | tool | device | figures | source | date |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {it.network} | {it.tool} | {it.device} | {it.figures} | {it.source} | {it.date} |"
        for it in listed
    ]
    return "\n".join(lines) + "\n\n"
