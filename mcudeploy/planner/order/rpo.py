"""Reverse post-order of the fine-grained graph from its outputs: depth first, so blocks are consumed early.

Method: Peking University's published patent on fine-grained splitting. A step of a running sum comes after
the previous one, which is visited before the next block of the input; otherwise that whole input would be
live. So does a step that an application feeds. Blocks are in ascending order.
"""

from __future__ import annotations

from mcudeploy.ir.plan import Schedule
from mcudeploy.planner.order.depth_first import depth_first
from mcudeploy.planner.order.order_problem import OrderProblem
from mcudeploy.planner.order.tiled import producers_of, steps_of
from mcudeploy.tiling.blocks import TiledGraph


def reverse_post_order_of(problem: OrderProblem) -> tuple[int, ...]:
    """Return a valid order: depth first from the steps without successors, in ascending order."""
    sinks = (step for step, after in enumerate(problem.after) if not after)
    return tuple(depth_first(sinks, dict(enumerate(problem.before))))


def reverse_post_order(tiled: TiledGraph, first_input_first: bool = True) -> Schedule:
    """Return every step once, after the steps that it reads; blocks of an operator in ascending order.

    Of the inputs of a step, the first is computed first, or the last.
    """
    steps = steps_of(tiled)
    producers = producers_of(tiled, steps)
    needs: dict[int, list[int]] = {}
    for number, step in enumerate(steps):
        needs[number] = before = []
        if tiled.graph.operators[step.operator].is_sequential and step.block > 0:
            before.append(number - 1)
        ranges = tiled.reads[number]
        for lo, hi in ranges if first_input_first else reversed(ranges):
            before.extend(producer for producer in producers[lo:hi] if producer is not None)
        awaited = (producers[block] for block in tiled.awaited(step))
        before.extend(producer for producer in awaited if producer is not None)
    begins: list[int] = []
    for io in tiled.graph.outputs:
        root = tiled.flow.roots[io.tensor]
        base = tiled.first_block[root]
        begins.extend(it for it in producers[base : base + tiled.block_count(root)] if it is not None)
    return Schedule(tuple(steps[number] for number in depth_first(begins, needs)), "feasible")
