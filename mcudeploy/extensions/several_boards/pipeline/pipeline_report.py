"""A pipeline as a JSON object, and as lines of text: its grid of units and its stages over time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from math import inf
from typing import Any

from mcudeploy.extensions.several_boards.pipeline.division import Pipeline
from mcudeploy.extensions.several_boards.pipeline.simulate import Span
from mcudeploy.extensions.several_boards.pipeline.unit_regions import Decision

JsonObject = dict[str, Any]
_COLUMNS = 64
"""Characters of a line over time."""


def report(pipeline: Pipeline) -> JsonObject:
    """Return the JSON object of `graph pipeline`. Ticks are clocks of a unit; everything is modelled."""
    run, single = pipeline.simulation(), pipeline.task.single_ticks
    topology = pipeline.task.topology
    return {
        "model": pipeline.model.path.name,
        "topology": {"width": topology.width, "height": topology.height, "unit": topology.unit_text},
        "clock_hz": topology.clock,
        "mode": pipeline.mode,
        "objective": pipeline.objective,
        "groups": len(pipeline.line.groups),
        "operators": len(pipeline.line.graph.names),
        "regions": _regions(pipeline),
        "stages": [
            {"units": region.units, "ticks": ticks, "utilisation": run.utilisation(run.stages[number])}
            for number, (region, ticks) in enumerate(zip(pipeline.regions, pipeline.stages, strict=True))
        ],
        "links": [
            {"bytes": pipeline.line.crossing[region.first], "ticks": ticks}
            | {"utilisation": run.utilisation(run.links[number])}
            for number, (region, ticks) in enumerate(
                zip(pipeline.regions[1:], pipeline.transfers, strict=True)
            )
        ],
        "bottleneck": bottleneck(pipeline),
        "decisions": [_decision(it) for it in pipeline.division.decisions],
        "units": {"used": sum(region.units for region in pipeline.regions), "there": topology.count},
        "single_unit_ticks": single,
        "latency_ticks": run.latency,
        "period_ticks": run.period,
        "frames_per_second": topology.clock / run.period,
        "throughput_ratio": single / run.period,
        "latency_ratio": single / run.latency,
        "bound_throughput_ratio": pipeline.bound_ratio,
        "proven": pipeline.division.proven,
        "modelled": True,
    }


def _regions(pipeline: Pipeline) -> list[JsonObject]:
    line = pipeline.line
    return [
        {
            "operators": [line.graph.names[it] for it in line.operators(region.first, region.end)],
            "groups": [region.first, region.end],
            "units": [list(unit) for unit in units],
            "work_ticks": line.work(region.first, region.end),
            "ram_bytes": line.ram_bytes(region.first, region.end),
            "flash_bytes": line.flash_bytes(region.first, region.end),
            "receives_bytes": line.crossing[region.first],
            "sends_bytes": line.crossing[region.end],
        }
        for region, units in zip(pipeline.regions, pipeline.places, strict=True)
    ]


def _decision(decision: Decision) -> JsonObject:
    """Return a decision; ticks of a region that does not fit are None."""
    return {name: None if value == inf else value for name, value in asdict(decision).items()}


def bottleneck(pipeline: Pipeline) -> JsonObject:
    """Return the longest stage or link, the first of equal ones; a link has the number of its sender."""
    kinds = [("stage", pipeline.stages), ("link", pipeline.transfers)]
    ticks, kind, minus_number = max(
        (ticks, kind, -number) for kind, all_ticks in kinds for number, ticks in enumerate(all_ticks, 1)
    )
    return {"kind": kind, "region": -minus_number, "ticks": ticks}


def grid_text(pipeline: Pipeline) -> list[str]:
    """Return the grid with the number of the region at each unit, and a dot for an idle unit."""
    region = {unit: str(number) for number, units in enumerate(pipeline.places, 1) for unit in units}
    topology = pipeline.task.topology
    width = len(str(len(pipeline.regions)))
    return [
        " ".join(region.get((col, row), ".").rjust(width) for col in range(topology.width))
        for row in range(topology.height)
    ]


def gantt_text(pipeline: Pipeline) -> list[str]:
    """Return a line for each stage and link over time: the last digit of the current frame."""
    run = pipeline.simulation(len(pipeline.regions) + 2)
    scale = run.stages[-1][-1][1] / _COLUMNS
    lines = []
    for number, spans in enumerate(run.stages):
        lines.append(f"stage {number + 1:>2}  {_bars(spans, scale)}")
        if number < len(run.links):
            lines.append(f"link  {number + 1:>2}  {_bars(run.links[number], scale)}")
    return lines


def _bars(spans: Sequence[Span], scale: float) -> str:
    cells = ["."] * _COLUMNS
    for frame, (start, end) in enumerate(spans):
        for column in range(round(start / scale), min(round(end / scale), _COLUMNS)):
            cells[column] = str((frame + 1) % 10)
    return "".join(cells)


def report_text(sha256: str, content: JsonObject) -> str:
    """Return the report as the text of a file."""
    return json.dumps({"format": 1, "model_sha256": sha256, **content}, indent=1) + "\n"
