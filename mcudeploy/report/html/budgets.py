"""A plan's use of each memory, the flash and the stack, beside the board's sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mcudeploy.boards.board import FIRMWARE_RAM_BYTES
from mcudeploy.execution.deployment import Deployment
from mcudeploy.planner.tape.footprint import tables_bytes, weights_bytes

View = dict[str, Any]
Report = Mapping[str, Any]


def budgets(deployment: Deployment, report: Report) -> list[View]:
    """Return a bar for each used memory, for the flash, and for the stack if it was measured."""
    return [*_memories(deployment), _flash(deployment, report), *_stack(deployment, report)]


def _bar(name: str, total: int, parts: list[tuple[str, int, str]], note: str = "") -> View:
    """Return a bar; `parts`: name, bytes and colour of each part. The rest is free, or too much."""
    used = sum(size for _, size, _ in parts)
    width = max(total, used, 1)
    shown = [
        {"name": label, "bytes": f"{size:,} B", "width": f"{100 * size / width:.3f}", "colour": colour}
        for label, size, colour in parts
        if size
    ]
    free = total - used
    left = f"{free:,} B free" if free >= 0 else f"{-free:,} B too many"
    return {
        "name": name,
        "total": f"{total:,} B",
        "parts": shown,
        "left": left,
        "over": free < 0,
        "note": note,
    }


def _memories(deployment: Deployment) -> Iterator[View]:
    board, arenas = deployment.board, deployment.plan.layout.arenas
    first = board.memories[0].name
    for memory in board.memories:
        parts = [("arena", arenas.get(memory.name, 0), "a")]
        if memory.name == first:
            parts.append(("firmware data", FIRMWARE_RAM_BYTES, "b"))
            parts.append(("stack, reserved", _reserved_stack(deployment), "c"))
        if memory.name == first or arenas.get(memory.name):
            yield _bar(memory.name, memory.bytes, parts)


def _reserved_stack(deployment: Deployment) -> int:
    return deployment.board.stack_bytes + deployment.plan.form.stack_bytes


def _flash(deployment: Deployment, report: Report) -> View:
    weights, tables = report.get("weights_bytes"), report.get("tables_bytes")
    if weights is None:
        weights = weights_bytes(deployment.model.calls)
    if tables is None:
        tables = tables_bytes(deployment.view, deployment.board)
    parts = [("weights", weights, "a"), ("tables", tables, "b"), ("code", report.get("code_bytes") or 0, "c")]
    note = "" if report.get("code_bytes") else "Without code: nothing was built."
    return _bar("flash", deployment.board.flash_bytes, parts, note)


def _stack(deployment: Deployment, report: Report) -> Iterator[View]:
    used, most = report.get("stack_bytes"), report.get("stack_bound_bytes")
    if used is None:
        return
    parts = [("measured", used, "a")]
    if most:
        parts.append(("more, at most", most - used, "b"))
    yield _bar("stack", _reserved_stack(deployment), parts)
