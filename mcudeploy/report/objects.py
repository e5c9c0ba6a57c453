"""The JSON objects that commands print. Keys are stable: scripts rely on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import singledispatch
from typing import Any

from mcudeploy.boards.board import Board
from mcudeploy.codegen.kernelfiles import MOVE
from mcudeploy.costs.estimate import board_costs
from mcudeploy.execution.deployment import Deployment
from mcudeploy.execution.results import (
    Built,
    BuiltModel,
    Fitted,
    Flashed,
    Initialised,
    Measured,
    Tuned,
    VerifiedRun,
)
from mcudeploy.execution.running import DeviceRun
from mcudeploy.ir.clock import latency_object, manner_of
from mcudeploy.ir.graph import DType
from mcudeploy.ir.plan import MOVES, Measurement, memories_of
from mcudeploy.planner.fit import longest_step
from mcudeploy.planner.place.sharing import sharing
from mcudeploy.planner.tape.footprint import tables_bytes, weights_bytes
from mcudeploy.report import fits, moving
from mcudeploy.report.counted_report import counted_report
from mcudeploy.report.hops import moving_window
from mcudeploy.report.outputs import inputs, outputs
from mcudeploy.report.support import removed_channels
from mcudeploy.toolchain import Firmware
from mcudeploy.toolchain.stack import StackBound, stack_bound
from mcudeploy.verify.difference import FLOAT_FLOOR, OUTPUT_LSB, operator_passes, output_share
from mcudeploy.verify.litert import LiteRtVerdict
from mcudeploy.verify.verdict import Verdict

JsonObject = dict[str, Any]


@singledispatch
def report_of(result: object) -> JsonObject:
    """Return the JSON object of a command's result."""
    raise TypeError(f"no report of a {type(result).__name__}")


@report_of.register
def _(result: Deployment) -> JsonObject:
    """The object of `plan`; `latency` contains earlier measurements of this plan."""
    return plan(result, result.measured()) | known_latency(result)


@report_of.register
def _(result: Fitted) -> JsonObject:
    return fits.fits(result)


def known_latency(deployment: Deployment) -> JsonObject:
    """Report the measured latency of a plan, and the estimate."""
    measured = latency(deployment, deployment.measured(), deployment.measured_baseline())
    return measured | fits.modelled_latency(deployment.plan, deployment.model, deployment.board)


def plan(deployment: Deployment, measured: Measurement | None = None) -> JsonObject:
    """Return the object of `plan`. An unsplit plan is its own baseline; `measured` belongs to this plan."""
    chosen = deployment.plan
    return {
        "board": deployment.board.name,
        "model_sha256": deployment.model.sha256,
        "arena_bytes": chosen.layout.arena_bytes,
        "arenas": dict(chosen.layout.arenas),
        "traffic": dict(chosen.estimate.traffic),
        "elsewhere": _elsewhere(deployment),
        "peak_bytes": chosen.estimate.peak_bytes,
        "lower_bound_bytes": chosen.estimate.peak_bytes,
        "cut_bounds": asdict(deployment.planned.cut_bounds) if deployment.planned.cut_bounds else None,
        "state_bytes": sum(chosen.graph.tensors[state.tensor].size_bytes for state in chosen.graph.states),
        "parameters": _parameters(deployment),
        "unsplit_arena_bytes": deployment.planned.baseline.layout.arena_bytes,
        "tables_bytes": tables_bytes(deployment.view, deployment.board),
        "order_status": chosen.schedule.status,
        "order_lower_bound_bytes": chosen.schedule.lower_bound_bytes or None,
        "layout_status": chosen.layout.status,
        "kernels": dict(chosen.kernels),
        "splits": [asdict(split) | {"operators": list(split.operators)} for split in chosen.splits],
        "fused": [list(names) for names in chosen.form.fused],
        "streamed": chosen.form.streamed,
        "sharing": _sharing(deployment),
        "parallel": moving.parallel(chosen, measured),
        "steps": len(chosen.schedule.steps),
        "recomputed_steps": len(chosen.schedule.steps) - len(set(chosen.schedule.steps)),
        **moving.moves(deployment.view),
        "transfers": moving.transfers(deployment.view, measured),
        "memory_limits": dict(deployment.planned.limits),
        "macs": deployment.model.macs,
        "window": moving_window(deployment),
        "constant_channels": removed_channels(deployment.model.graph),
        "search": asdict(deployment.planned.search),
        "estimates": _estimates(deployment),
    }


def _estimates(deployment: Deployment) -> JsonObject | None:
    """Report the source of the times that the search compared; null if they were measured."""
    costs_of = deployment.planned.costs_of
    if costs_of is None:
        return None
    costs = board_costs(deployment.board, deployment.planned.objective)
    calibrated = {"calibrated": costs.factors is not None}
    return {"core": deployment.board.core, "costs_of": costs_of, "unit": costs.unit} | calibrated


def _sharing(deployment: Deployment) -> JsonObject | None:
    """Report the savings if units share memory; null if one unit runs everything."""
    functions = deployment.plan.functions
    if not functions:
        return None
    shares = asdict(sharing(deployment.view, deployment.board))
    return {"functions": [asdict(function) for function in functions], **shares}


def _parameters(deployment: Deployment) -> JsonObject | None:
    """Report the table in RAM beside the arena; null if no operator is replaceable."""
    table = deployment.plan.parameters
    if not table.parameters:
        return None
    where = "flash" if table.in_flash else "ram"
    return {"bytes": table.size_bytes, "memory": where, "operators": list(table.operators)}


def _elsewhere(deployment: Deployment) -> dict[str, list[str]]:
    """Report, for each memory but the board's first, the tensors that are in it at any step."""
    placed: dict[str, list[str]] = {}
    for name, root in deployment.view.tiled.flow.roots.items():
        for memory in memories_of(deployment.plan.layout.blocks[root]):
            if memory != deployment.board.memories[0].name:
                placed.setdefault(memory, []).append(name)
    return placed


def latency(deployment: Deployment, measured: Measurement | None, unsplit: Measurement | None) -> JsonObject:
    """Report latency of a plan and of the unsplit plan, null if not measured, and the percent between them.

    The percent includes stalls for slow memories. `overhead_source` is `estimated` without measurements.
    Both plans keep `flash_limit`, if there is one. `flash_stalls` is null: only counted runs state it.
    """
    overhead, source = deployment.overhead(measured, unsplit), measured and manner_of(measured.unit)
    if overhead is None:
        overhead, source = deployment.estimated_overhead, "estimated"
    return {
        "latency": _latency(deployment.board, measured),
        "unsplit_latency": _latency(deployment.board, unsplit),
        "overhead_percent": overhead,
        "overhead_source": None if overhead is None else source,
        "flash_limit": deployment.flash_limit,
    }


def _latency(board: Board, measured: Measurement | None) -> JsonObject | None:
    if measured is None:
        return None
    return latency_object(measured.latency, measured.unit, board.clock_hz) | {"flash_stalls": None}


def sizes(firmware: Firmware) -> JsonObject:
    """Report the sizes in the ELF file, and the bounds of its stack."""
    return {
        "flash_bytes": firmware.sizes.flash_bytes,
        "code_bytes": firmware.sizes.code_bytes,
        "weights_bytes": firmware.sizes.weights_bytes,
        "tables_bytes": firmware.sizes.tables_bytes,
        "static_ram_bytes": firmware.sizes.static_ram_bytes,
        **stack(stack_bound(firmware)),
        "firmware_hash": f"{firmware.hash:08x}",
    }


def stack(bound: StackBound | None) -> JsonObject:
    """Report the maximum stack of the firmware, and of any function of the library; null if unknown."""
    return {
        "stack_bound_bytes": bound and bound.program_bytes,
        "library_stack_bound_bytes": bound and bound.library_bytes,
    }


@report_of.register
def _(result: BuiltModel) -> JsonObject:
    """Without firmware, only the weights are known. `verified` is null if the program was not run."""
    deployment, firmware, checked = result.deployment, result.firmware, result.verdict
    known: JsonObject = {"weights_bytes": weights_bytes(deployment.model.calls)}
    if firmware is not None:
        known = {**sizes(firmware), "library_stack_bound_bytes": result.program.stack_bytes}  # with a head's
    judged = {"verified": None} if checked is None else verdict(checked)
    step = longest_step(deployment.plan, deployment.model, deployment.board)
    return {
        "name": deployment.prefix,
        **plan(deployment),
        **known,
        **judged,
        **known_latency(deployment),
        "longest_step": fits.longest_step(deployment.view, step),
        "selftest": result.selftest is not None,
        "stack_unknown": result.stack_unknown,
        **result.facts,
    }


@report_of.register
def _(result: Built) -> JsonObject:
    models = [report_of(model) for model in result.models]
    written = {
        "files": list(map(str, result.files)),
        "arena": result.arena,
        "library_arenas": result.arenas,
        **result.facts,
    }
    return written | ({"models": models} if len(models) > 1 else models[0])


@report_of.register
def _(result: Initialised) -> JsonObject:
    files = list(map(str, result.files))
    return {
        "board": result.board.name,
        "model": result.model,
        "files": files,
        "directory": str(result.directory),
    }


@report_of.register
def _(result: Flashed) -> JsonObject:
    return {
        "board": result.board.name,
        "port": result.port,
        "flasher": result.flasher,
        "firmware_hash": f"{result.firmware.hash:08x}" if result.firmware else None,
        "commands": [list(line) for line in result.commands] if result.commands else None,
    }


@report_of.register
def _(result: Tuned) -> JsonObject:
    deployment, measured = result.deployment, result.observed.measurement
    unsplit = None if result.unsplit is None else result.unsplit.measurement
    overhead, predicted = deployment.overhead(measured, unsplit), deployment.estimated_overhead
    return (
        plan(deployment, measured)
        | latency(deployment, measured, unsplit)
        | {
            "measurers": result.measurers,
            "predicted_overhead_percent": predicted,
            "prediction_error_percent": None
            if predicted is None or overhead is None
            else overhead - predicted,
            "plans_run": result.tried + len(result.iterations),
            "iterations": [
                {
                    "kind": one.kind,
                    "waits": one.waits,
                    "exposed_ticks": one.deployment.plan.estimate.exposed_ticks,
                    "stall_percent": one.percent,
                    "ticks": one.ticks,
                }
                for one in result.iterations
            ],
            "stack_bytes": measured.stack_bytes,
            **stack(result.observed.stack),
            **fits.modelled_latency(deployment.plan, deployment.model, deployment.board),
        }
    )


@report_of.register
def _(result: Measured) -> JsonObject:
    device_run, deployment = result.device_run, result.device_run.deployment
    measured = measurement(device_run)
    if result.timing != "instructions":
        overhead = {key: measured[key] for key in ("overhead_percent", "overhead_source")}
        measured |= counted_report(result, measured)
        if result.timing == "traffic" or measured["latency"]["unit"] == device_run.observed.measurement.unit:
            measured |= overhead
        measured["traffic_predicted"] = moving.predicted(deployment.view)
    planned = plan(deployment, device_run.observed.measurement) | fits.modelled_latency(
        deployment.plan, deployment.model, deployment.board
    )
    return planned | sizes(device_run.firmware) | measured


@report_of.register
def _(result: VerifiedRun) -> JsonObject:
    device_run = result.measured.device_run
    judged = len(result.verdict.host)  # outputs before the window was full are not judged
    listed = outputs(device_run.deployment.plan.graph, device_run.observed.outputs[-judged:], result.classes)
    judgement = verdict(result.verdict)
    data = {"inputs": inputs(result.inputs), "outputs": listed, "warnings": list(result.warnings)}
    return report_of(result.measured) | judgement | data | dict(result.facts)


def measurement(device_run: DeviceRun) -> JsonObject:
    """Report the device's measurements: latency, stack, and every operator."""
    deployment, observed = device_run.deployment, device_run.observed.measurement
    operators = {operator.name: operator for operator in deployment.plan.graph.operators}
    macs = {name: deployment.model.graph.loops(each).macs() for name, each in operators.items()}
    kernels = {name: (call.kernel, call.variant) for name, call in deployment.model.calls.items()}
    kernels[MOVES] = MOVE, MOVE
    total = sum(time.ticks for time in observed.operators) or 1
    return {
        **latency(deployment, observed, device_run.unsplit),
        "stack_bytes": observed.stack_bytes,
        "total_ram_bytes": device_run.firmware.sizes.static_ram_bytes + observed.stack_bytes,
        "operators": [
            {
                "name": time.operator,
                "nodes": list(operators[time.operator].onnx_nodes) if time.operator in operators else [],
                "kernel": kernels[time.operator][0],
                "variant": kernels[time.operator][1],
                "steps": time.steps,
                "ticks": time.ticks,
                "macs": macs.get(time.operator, 0),
                "share": time.ticks / total,
            }
            for time in observed.operators
        ],
    }


def _litert(judged: LiteRtVerdict | None) -> JsonObject | None:
    """Report the comparison with LiteRT; None if the file is not .tflite."""
    if judged is None:
        return None
    return {"runs": judged.runs, "share_of_range": judged.share, "not_run": judged.not_run}


def verdict(judged: Verdict) -> JsonObject:
    """Report whether the outputs match, and the error of each operator against the reference."""
    graph = judged.plan.graph
    outputs = [graph.tensors[io.tensor].dtype for io in graph.outputs if io.dtype != "bool"]
    dtypes = {it.name: graph.tensors[it.output].dtype for it in graph.operators}
    checks: Mapping[str, Any] = {
        name: {
            "elements": diff.elements,
            "mismatches": diff.mismatches,
            "ties": diff.ties,
            "max_abs_error": diff.worst,
            "range": diff.range,
            "error_unit": "absolute" if dtypes[name] is DType.FLOAT32 else "LSB",
            "within_tolerance": operator_passes(diff, dtypes[name]),
        }
        for name, diff in judged.operators.items()
    }
    return {
        "verified": not judged.reasons,
        "elements": judged.outputs.elements,
        "mismatches": judged.outputs.mismatches,
        "max_abs_error": judged.outputs.worst,
        "error_unit": "LSB" if all(dtype is DType.INT8 for dtype in outputs) else "absolute",
        "tolerance": {
            "lsb": OUTPUT_LSB if DType.INT8 in outputs else None,
            "share_of_range": output_share(graph) if DType.FLOAT32 in outputs else None,
            "least": FLOAT_FLOOR if DType.FLOAT32 in outputs else None,
        },
        "coarse_tolerances": judged.coarse,
        "range": judged.outputs.range,
        "ties_resolved": judged.ties_resolved,
        "mismatches_resolved": judged.resolved.mismatches,
        "max_abs_error_resolved": judged.resolved.worst,
        "operator_checks": checks,
        "tflm_runs": judged.micro_runs,
        "litert": _litert(judged.litert),
        "reason": "\n".join(judged.reasons) or None,
    }
