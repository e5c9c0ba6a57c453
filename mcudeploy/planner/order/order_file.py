"""Orders from files: the ids of all operators, as `graph order -o` writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from mcudeploy.common.errors import ConfigError
from mcudeploy.common.json_file import read_json
from mcudeploy.common.text import first_repeated
from mcudeploy.ir.graph import Graph, GraphIO
from mcudeploy.ir.plan import Schedule, Step
from mcudeploy.planner.order.tiled import problem_of, steps_of
from mcudeploy.tiling.blocks import whole


class _OrderFile(BaseModel):
    order: tuple[Annotated[str, Field(max_length=4096)], ...]


def input_id(io: GraphIO) -> str:
    """Return the id of the node of a graph input, which runs no step."""
    return f"input:{io.name}"


def stated_schedule(graph: Graph, path: Path) -> Schedule:
    """Return the order that a file states for the operators of an uncut graph.

    Inputs and views run no step and may be missing. Raises ConfigError for a file without an order, with
    other operators or with one named twice, and for an operator that comes before one on which it depends.
    """
    names = read_json(path, _OrderFile, "an order").order
    number = {operator.name: at for at, operator in enumerate(graph.operators)}
    tiled = whole(graph)
    steps_in_file = steps_of(tiled)
    steps = {graph.operators[step.operator].name for step in steps_in_file}
    known = {*number, *map(input_id, graph.inputs)}
    unknown = next((at for at, name in enumerate(names) if name not in known), None)
    if unknown is not None:
        raise _fault(path, f"order.{unknown} is {names[unknown]!r}, which is not an operator of the model")
    twice = first_repeated([*names])
    if twice is not None:
        raise _fault(path, f"{twice!r} is named twice, order.{names.index(twice)} first")
    ordered = {*names}
    missing = next((name for name in number if name in steps and name not in ordered), None)
    if missing is not None:
        raise _fault(path, f"operator {missing!r} is missing")
    order = [Step(number[name], 0) for name in names if name in steps]
    place_of = {step: place for place, step in enumerate(order)}
    for step, needed in zip(steps_in_file, problem_of(tiled, {}).before, strict=True):
        for other in (steps_in_file[it] for it in needed):
            if place_of[other] > place_of[step]:
                early, late = (graph.operators[it.operator].name for it in (step, other))
                where = (
                    f"order.{names.index(early)}, {early!r}, comes before order.{names.index(late)}, {late!r}"
                )
                raise _fault(path, f"{where}, and needs its result")
    return Schedule(tuple(order), "feasible")


def _fault(path: Path, fault: str) -> ConfigError:
    return ConfigError(
        f"{path} is not an order of this model: {' '.join(fault.split())}. Ids and dependences are in "
        "mcudeploy graph export MODEL -o graph.json, with the same options"
    )
