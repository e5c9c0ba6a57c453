"""The JSON objects that commands print. Keys are stable: scripts rely on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from mcudeploy.codegen.tape import tables_bytes
from mcudeploy.errors import FitError, ModelError
from mcudeploy.graph import DType
from mcudeploy.kernelfiles import MOVE
from mcudeploy.layout.sharing import sharing
from mcudeploy.layout.shortage import shortages, step_text
from mcudeploy.plan import MOVES
from mcudeploy.simulator.blocks import TiledGraph
from mcudeploy.simulator.flow import Flow
from mcudeploy.simulator.live import work_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from mcudeploy.board import Board
    from mcudeploy.deploy import Deployment
    from mcudeploy.model import Model
    from mcudeploy.ops.opdef import KernelCall
    from mcudeploy.plan import Measurement, Plan
    from mcudeploy.targets import Firmware
    from mcudeploy.verdict import Verdict

JsonObject = dict[str, Any]


def unsupported(error: ModelError) -> JsonObject:
    """The object of `check` for a model with nodes that cannot be deployed."""
    problems = [asdict(problem) for problem in error.problems]
    return {"supported": False, "problems": problems, "parameters": None, "macs": None, "weights_bytes": None}


def check(model: Model, plan: Plan, board: Board | None) -> JsonObject:
    """The object of `check` for a model that can be deployed; with a board, whether it fits."""
    parameters = sum(
        operator.constants[name].size
        for operator in model.graph.operators
        for name in ("weights", "bias", "constant")
        if name in operator.constants
    )
    found: JsonObject = {
        "supported": True,
        "problems": [],
        "parameters": parameters,
        "macs": model.macs,
        "weights_bytes": weights_bytes(model.calls),
        "arena_bytes": plan.layout.arena_bytes,
        "operators": len(model.calls),
    }
    if board is not None:
        missing = _missing(plan, model.calls, board, None)
        found |= {"board": board.name, "fits": not missing, "missing": missing}
    return found


def weights_bytes(calls: Mapping[str, KernelCall]) -> int:
    """Bytes of constants in flash; equal ones count once, as they are stored."""
    arrays = {
        (value.dtype.name, value.tobytes())
        for call in calls.values()
        for value in call.params.values()
        if isinstance(value, np.ndarray)
    }
    return sum(len(data) for _, data in arrays)


def require_fit(plan: Plan, calls: Mapping[str, KernelCall], board: Board, ram_limit: int | None) -> None:
    """Raises FitError where arena or constants are larger than what the board has, saying by how much."""
    missing = _missing(plan, calls, board, ram_limit)
    if missing:
        raise FitError(" ".join(missing))


def _missing(
    plan: Plan, calls: Mapping[str, KernelCall], board: Board, ram_limit: int | None
) -> list[str]:  # fmt: skip
    arena = plan.layout.arena_bytes
    missing = shortages(plan, work_bytes(calls), board)
    if ram_limit is not None and arena > ram_limit:
        missing.append(
            f"arena needs {arena:,} bytes, the limit is {ram_limit:,}: {arena - ram_limit:,} too many; "
            f"the peak is at {step_text(plan, plan.estimate.peak_step)}."
        )
    weights, tables = weights_bytes(calls), tables_bytes(plan, calls, board)
    if weights + tables > board.flash_bytes:
        missing.append(
            f"weights need {weights:,} bytes and the plan's tables {tables:,}, the flash of {board.name} has "
            f"{board.flash_bytes:,}: {weights + tables - board.flash_bytes:,} too many."
        )
    return missing


def plan(made: Deployment) -> JsonObject:
    """The object of `plan`: an unsplit plan is its own yardstick."""
    found = made.plan
    return {
        "board": made.board.name,
        "model_sha256": made.model.sha256,
        "arena_bytes": found.layout.arena_bytes,
        "arenas": dict(found.layout.arenas),
        "traffic": dict(found.estimate.traffic),
        "elsewhere": _elsewhere(made),
        "peak_bytes": found.estimate.peak_bytes,
        "lower_bound_bytes": found.estimate.lower_bound_bytes,
        "unsplit_arena_bytes": made.unsplit.layout.arena_bytes,
        "tables_bytes": tables_bytes(found, made.model.calls, made.board),
        "order_status": found.schedule.status,
        "order_lower_bound_bytes": found.schedule.lower_bound_bytes or None,
        "layout_status": found.layout.status,
        "kernels": dict(found.kernels),
        "splits": [
            {
                "operators": list(split.operators),
                "axis": split.axis,
                "rows": split.rows,
                "apart": split.apart,
            }
            for split in found.splits
        ],
        "streamed": found.form.streamed,
        "sharing": _sharing(made),
        "steps": len(found.schedule.steps),
        "recomputed_steps": len(found.schedule.steps) - len(set(found.schedule.steps)),
        "moves": len(found.layout.moves),
        "moved_bytes": _moved_bytes(found),
        "macs": made.model.macs,
        "search": asdict(made.search),
        "estimates": made.costs_of and {"core": made.board.core, "costs_of": made.costs_of},
    }


def _moved_bytes(plan: Plan) -> int:
    """How many bytes lie at another place after a move, all moves together."""
    tiled = TiledGraph(Flow.of(plan.graph), plan.block_rows)
    return sum(tiled.block_bytes(move.tensor, move.block) for move in plan.layout.moves)


def _sharing(made: Deployment) -> JsonObject | None:
    """What it saves that units share memory; null where one runs everything."""
    functions = made.plan.functions
    if not functions:
        return None
    found = asdict(sharing(made.plan, made.board, made.model.work))
    tags = {"count": found.pop("tag_count"), "bytes": found.pop("tag_bytes")}
    return {"functions": [asdict(function) for function in functions], **found, "tags": tags}


def _elsewhere(made: Deployment) -> dict[str, list[str]]:
    """By memory the tensors that lie in it, for all memories but the board's first."""
    found: dict[str, list[str]] = {}
    for name, placement in made.plan.layout.tensors.items():
        if placement.memory != made.board.memories[0].name:
            found.setdefault(placement.memory, []).append(name)
    return found


def latency(measured: Measurement | None, unsplit: Measurement | None) -> JsonObject:
    """Latency of a plan and of its yardstick, the unsplit plan; null where it was not measured."""
    overhead = None
    if measured is not None and unsplit is not None and measured.unit == unsplit.unit and unsplit.latency:
        overhead = 100 * (measured.latency / unsplit.latency - 1)
    return {
        "latency": None if measured is None else {"value": measured.latency, "unit": measured.unit},
        "unsplit_latency": None if unsplit is None else {"value": unsplit.latency, "unit": unsplit.unit},
        "overhead_percent": overhead,
    }


def sizes(firmware: Firmware) -> JsonObject:
    """What the ELF says."""
    return {
        "flash_bytes": firmware.flash_bytes,
        "code_bytes": firmware.code_bytes,
        "weights_bytes": firmware.weights_bytes,
        "tables_bytes": firmware.sizes.tables_bytes,
        "static_ram_bytes": firmware.static_ram_bytes,
        "firmware_hash": f"{firmware.hash:08x}",
    }


def build(made: Deployment, firmware: Firmware | None, files: Sequence[Path]) -> JsonObject:
    """The object of `build`; without firmware, weights are all that is known of the program's size."""
    known = {"weights_bytes": weights_bytes(made.model.calls)} if firmware is None else sizes(firmware)
    return {"files": [str(file) for file in files], **plan(made), **known}


def flash(firmware: Firmware, port: str | None, command: Sequence[str] | None) -> JsonObject:
    """The object of `flash`; `command` is what a dry run would have called."""
    return {
        "port": port,
        "firmware_hash": f"{firmware.hash:08x}",
        "command": list(command) if command else None,
    }


def measurement(made: Deployment, observed: Measurement, firmware: Firmware) -> JsonObject:
    """What the device reported: latency, stack, and every operator."""
    macs = {operator.name: made.model.graph.loops(operator).macs() for operator in made.plan.graph.operators}
    kernels = {name: (call.kernel, call.variant) for name, call in made.model.calls.items()}
    kernels[MOVES] = MOVE, MOVE
    total = sum(time.ticks for time in observed.operators) or 1
    return {
        **latency(observed, made.yardstick()),
        "stack_bytes": observed.stack_bytes,
        "total_ram_bytes": firmware.static_ram_bytes + observed.stack_bytes,
        "operators": [
            {
                "name": time.operator,
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


def verdict(made: Deployment, found: Verdict) -> JsonObject:
    """Whether the outputs stand, and how far each operator is from the reference."""
    outputs = [made.plan.graph.tensors[border.tensor].dtype for border in made.plan.graph.outputs]
    checks: Mapping[str, Any] = {
        name: {
            "elements": diff.elements,
            "mismatches": diff.mismatches,
            "ties": diff.ties,
            "max_abs_error": diff.worst,
        }
        for name, diff in found.operators.items()
    }
    return {
        "verified": not found.reasons,
        "elements": found.outputs.elements,
        "mismatches": found.outputs.mismatches,
        "max_abs_error": found.outputs.worst,
        "error_unit": "LSB" if all(dtype is DType.INT8 for dtype in outputs) else "absolute",
        "ties_resolved": found.ties_resolved,
        "operator_checks": checks,
        "reason": "\n".join(found.reasons) or None,
    }
