"""The dependency graph of a model, as the planner orders it: in the format that `plaingraph` reads.

Sizes are those after the planner's rewrites. Scratch is an output that no node reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mcudeploy.boards.board import Board
from mcudeploy.costs.estimate import board_costs, estimated
from mcudeploy.ir.graph import Operator
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.plan import Rewrites
from mcudeploy.planner.model.model import Model, read_model
from mcudeploy.planner.order.order_file import input_id
from mcudeploy.planner.order.tiled import steps_of
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.search.kernels import alternatives, fastest
from mcudeploy.tiling.blocks import TiledGraph, whole
from mcudeploy.tiling.live import in_place_chances

_SUFFIXES = (".onnx", ".tflite")


def is_model(path: Path) -> bool:
    """Return whether a file is a model by its name, not a dependency graph."""
    return path.suffix.lower() in _SUFFIXES


def unsplit_model(path: Path, board: Board | None, options: Options) -> Model:
    """Return the model of a file in the form of the unsplit plan.

    Its kernels are the fastest of the board, or portable ones without a board. Raises ModelError.
    """
    model = read_model(path, options, isa=Isa.ANY if board is None else board.isa)
    model = model.in_form(Rewrites(streamed=options.stream_input))
    if board is None:
        return model
    times = estimated(board_costs(board, options.unit_on(board)))(model.graph, alternatives(model))
    board = options.limited(board)
    return fastest(model, times, lambda *_: None, board.constants_room, options.flash_percent)


def dependency_graph(model: Model) -> dict[str, Any]:
    """Return the graph of a model, whose peak in any order is that of the unsplit plan in this order.

    Ids are the names in tables and plan files; the `name` of a node lists the nodes of the model's file.
    """
    graph, tiled = model.graph, whole(model.graph)
    nodes: list[dict[str, Any]] = []
    tensors = {
        name: {"id": name, "bytes": tensor.size_bytes}
        | ({} if tiled.flow.roots[name] == name else {"alias_of": tiled.flow.roots[name]})
        for name, tensor in graph.tensors.items()
    }
    for io in graph.resident_inputs():
        nodes.append(
            {"id": input_id(io), "name": io.name, "op": "input", "inputs": [], "outputs": [io.tensor]}
        )
    for operator in graph.operators:
        work = {
            f"{what} of {operator.name}": size
            for what, size in zip(("scratch", "state"), model.work.get(operator.name, ()), strict=False)
            if size
        }
        tensors |= {name: {"id": name, "bytes": size} for name, size in work.items()}
        nodes.append(_node(model, operator, [*work]))
    return {
        "name": graph.name,
        "nodes": nodes,
        "tensors": [*tensors.values()],
        "outputs": [*dict.fromkeys(io.tensor for io in graph.outputs)],
        "inplace_candidates": _candidates(tiled),
    }


def _node(model: Model, operator: Operator, work: list[str]) -> dict[str, Any]:
    node: dict[str, Any] = {
        "id": operator.name,
        "name": ", ".join(operator.onnx_nodes),
        "op": operator.op.kind,
        "inputs": [*dict.fromkeys(operator.inputs)],
        "outputs": [operator.output, *work],
    }
    return node | (
        {"view": True} if operator.op.is_view else {"flops": 2 * model.graph.loops(operator).macs()}
    )


def _candidates(tiled: TiledGraph) -> list[tuple[str, str]]:
    ids = tiled.block_ids()
    return [(ids[read][0], ids[written][0]) for _, read, written in in_place_chances(tiled, steps_of(tiled))]
