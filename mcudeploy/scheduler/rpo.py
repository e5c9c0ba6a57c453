"""Reverse post-order of the fine-grained graph from its outputs: depth first, so that a block is consumed
as soon as it can be. Method: mcudeploy's split search, after Peking University's patent (METHODS 1.5).
"""

from __future__ import annotations

from collections.abc import Iterator

from mcudeploy.plan import Schedule, Step
from mcudeploy.simulator.blocks import TiledGraph


def reverse_post_order(tiled: TiledGraph, first_input_first: bool = True) -> Schedule:
    """Every step once, after the steps it reads from; blocks of an operator in ascending order.

    Of the inputs of a step the first is brought into being first, or the last.
    """
    position_of = {operator.output: i for i, operator in enumerate(tiled.graph.operators)}
    done: set[Step] = set()
    order: list[Step] = []

    def needs(step: Step) -> Iterator[Step]:
        accesses = tiled.reads(tiled.graph.operators[step.operator], step.block)
        for access in accesses if first_input_first else reversed(accesses):
            for root, block in access.blocks:
                if root in position_of:
                    yield Step(position_of[root], block)

    for border in tiled.graph.outputs:
        root = tiled.roots[border.tensor]
        if root not in position_of:
            continue
        for block in range(tiled.block_count(root)):
            start = Step(position_of[root], block)
            if start in done:
                continue
            stack = [(start, needs(start))]
            while stack:
                step, pending = stack[-1]
                following = next((need for need in pending if need not in done), None)
                if following is not None:
                    stack.append((following, needs(following)))
                    continue
                stack.pop()
                if step not in done:
                    done.add(step)
                    order.append(step)
    return Schedule(tuple(order), "feasible")
