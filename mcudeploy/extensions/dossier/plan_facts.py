"""The network and the board, as `check_plan.py` reads them to check a plan and its C tables."""

from __future__ import annotations

import json
from typing import Any

from mcudeploy.boards.board import Board
from mcudeploy.codegen.program import Program
from mcudeploy.ir.graph import Graph, Operator
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Plan
from mcudeploy.planner.model.model import Model

JsonObject = dict[str, Any]


def network_text(plan: Plan, model: Model, program: Program) -> str:
    """Return network.json: tensors, states, and the input rows that each row of an operator reads."""
    graph = plan.graph
    hop = None if graph.hop is None else {"rows": graph.hop.new_rows, "keeping": dict(graph.hop.keeping)}
    ios = [*program.outputs, *(it.io for it in program.states)]
    ios += () if program.streamed else program.inputs
    content = {
        "model_sha256": model.sha256,
        "streamed": plan.form.streamed,
        "accumulating": plan.form.accumulating,
        "hop": hop,
        "functions": [{"unit": it.unit, "operators": list(it.operators)} for it in plan.functions],
        "kernels": dict(plan.kernels),
        "tensors": {
            name: {"rows": tensor.shape[0], "row_bytes": tensor.row_bytes}
            for name, tensor in graph.tensors.items()
        },
        "operators": [_operator_facts(graph, operator, model) for operator in graph.operators],
        "inputs": [io.tensor for io in graph.inputs],
        "outputs": [io.tensor for io in graph.outputs],
        "states": [
            {"before": it.before.tensor, "after": it.after.tensor, "through": list(it.through)}
            for it in graph.states
        ],
        "functions_of": {f"{program.prefix}_{it.name}": it.tensor for it in ios},
    }
    return json.dumps({key: it for key, it in content.items() if it is not None}) + "\n"


def _operator_facts(graph: Graph, operator: Operator, model: Model) -> JsonObject:
    op = operator.op
    inputs, output = graph.input_tensors(operator), graph.tensors[operator.output]
    scratch, state = model.work.get(operator.name, (0, 0))
    nest = graph.loops(operator)
    rows_of = nest.rows_taken if op.accumulates else nest.rows_read
    reads = [
        [
            [(span := rows_of(operand, Interval(row, row + 1), tensor.shape[0])).lo, span.hi]
            for row in range(inputs[0].shape[0] if op.accumulates else output.shape[0])
        ]
        for operand, tensor in enumerate(() if op.is_view else inputs)
    ]
    return {
        "name": operator.name,
        "nodes": list(operator.onnx_nodes),
        "inputs": list(operator.inputs),
        "output": operator.output,
        "kernel": model.calls[operator.name].variant if operator.name in model.calls else "",
        "accumulates": op.accumulates,
        "view": op.is_view,
        "overwrites": list(op.overwrites(inputs, output)),
        "scratch": scratch,
        "state": state,
        "reads": reads,
    }


def board_text(board: Board) -> str:
    """Return board.json: the memories, units and engines of a board."""
    content = {
        "name": board.name,
        "memories": [
            {"name": it.name, "room": board.room(it), "alignment": it.alignment} for it in board.memories
        ],
        "units": [
            {
                "name": it.name,
                "memories": list(it.memories),
                "alignment": it.alignment,
                "cached": list(it.cached),
                "cache_line": it.cache_line,
            }
            for it in board.units
        ],
        "engines": {it.engine: list(it.memories) for it in board.links},
    }
    return json.dumps(content, indent=1) + "\n"
