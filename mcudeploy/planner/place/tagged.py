"""Memory tags as a placement: whole tensors of one tag lie at one offset, in the order of the functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import lcm

from mcudeploy.boards.board import Board
from mcudeploy.ir.graph import Graph
from mcudeploy.ir.plan import Function, Schedule, Step
from mcudeploy.planner.published.tags import assign_tags, program_of
from mcudeploy.tiling.live import Buffer

Tags = Mapping[str, int]
"""The number of the tag of each tensor that owns memory."""


def tags_of(graph: Graph, board: Board, functions: Sequence[Function]) -> Tags:
    """Return the tags that the tensors of a graph share, by `assign_tags`."""
    alignment = lcm(*(memory.alignment for memory in board.memories))
    tags = assign_tags(program_of(graph, board, functions), board, alignment)
    return {name: tag.number for name, tag in tags.items()}


def tag_schedule(graph: Graph, functions: Sequence[Function]) -> Schedule:
    """Return the order in which tags count references: function by function, each operator once and whole."""
    place = {name: at for at, name in enumerate(name for it in functions for name in it.operators)}
    operators = sorted(
        (position for position, operator in enumerate(graph.operators) if not operator.op.is_view),
        key=lambda position: (place.get(graph.operators[position].name, 0), position),
    )
    return Schedule(tuple(Step(position, 0) for position in operators), "feasible")


def share(items: Sequence[Buffer], tags: Tags) -> list[tuple[int, ...]]:
    """Return the buffers of each tag that has several, by index and birth.

    If a smaller tensor takes over a tag from the last one read, the tag has two places: kernels work in place
    on equal sizes only.
    """
    groups: dict[int, list[list[int]]] = {}
    for index in sorted(range(len(items)), key=lambda index: items[index].life.lo):
        if items[index].scratch_of is not None:
            continue
        places = groups.setdefault(tags[items[index].members[0][0]], [])
        free = (place for place in places if items[place[-1]].life.hi <= items[index].life.lo)
        place = next(free, None)
        if place is None:
            places.append([index])
        else:
            place.append(index)
    return [tuple(place) for places in groups.values() for place in places if len(place) > 1]
