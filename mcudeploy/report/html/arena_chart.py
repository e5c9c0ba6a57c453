"""The blocks of an arena map as data, for the note at the pointer."""

from __future__ import annotations

from typing import Any

from mcudeploy.common.text import plain
from mcudeploy.execution.deployment import Deployment
from mcudeploy.report.chart.drawing import Drawing
from mcudeploy.report.chart.svg import scales


def blocks_of(deployment: Deployment, drawing: Drawing) -> dict[str, Any]:
    """Return names, and for each panel its position in the picture and its blocks.

    A block is its name, row range [first, end) (-1, -1: scratch), step range [first, end), offset, and bytes.
    """
    plan, tiled, work = deployment.plan, deployment.view.tiled, deployment.view.work
    names = [*plan.layout.blocks, *plan.layout.scratch]
    first_scratch = len(plan.layout.blocks)
    panels = []
    for panel, scale in zip(drawing.panels, scales(drawing), strict=True):
        rectangles: list[list[int]] = []
        for number, (name, blocks) in enumerate(plan.layout.blocks.items()):
            for block, residences in enumerate(blocks):
                rows = tiled.block_interval(name, block)
                size = tiled.block_bytes(name, block)
                rectangles += (
                    [number, rows.lo, rows.hi, each.life.lo, each.life.hi, each.offset, size]
                    for each in residences
                    if each.memory == panel.memory and len(each.life)
                )
        for number, (name, blocks) in enumerate(plan.layout.scratch.items(), first_scratch):
            rectangles += (
                [number, -1, -1, each.life.lo, each.life.hi, each.offset, sum(work[name])]
                for residences in blocks
                for each in residences
                if each.memory == panel.memory and len(each.life)
            )
        panels.append(
            {
                "memory": panel.memory,
                "frame": [scale.left, scale.bottom, scale.per_step, scale.per_byte],
                "blocks": rectangles,
            }
        )
    operators = [plan.graph.operators[step.operator].name for step in plan.schedule.steps]
    known = {name: number for number, name in enumerate(dict.fromkeys(operators))}
    return {
        "names": [plain(name) for name in names],
        "operators": [plain(name) for name in known],
        "steps": [known[name] for name in operators],
        "panels": panels,
    }
