"""Reverse post-order of the fine-grained graph from its outputs: depth first, so that a block is consumed
as soon as it can be. Method: Peking University's published patent on fine-grained splitting.

A step that accumulates comes after the one before it, and that one is visited before the next block of the
input: else the whole tensor in front of a running sum would come alive. Blocks go in ascending order.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcudeploy.plan import Schedule, Step
from mcudeploy.simulator.blocks import TiledGraph


def reverse_post_order(tiled: TiledGraph, first_input_first: bool = True) -> Schedule:
    """Every step once, after the steps it reads from; blocks of an operator in ascending order.

    Of the inputs of a step the first is brought into being first, or the last.
    """
    makers = _makers(tiled)
    accumulates = [operator.op.accumulates for operator in tiled.graph.operators]
    done = [False] * tiled.first_step[-1]
    order: list[Step] = []

    def needs(position: int, block: int) -> Iterator[tuple[int, int]]:
        if accumulates[position] and block > 0:
            yield position, block - 1
        ranges = tiled.reads[tiled.first_step[position] + block]
        for lo, hi in ranges if first_input_first else reversed(ranges):
            for read in range(lo, hi):
                maker = makers[read]
                if maker is not None:
                    yield maker

    for border in tiled.graph.outputs:
        root = tiled.flow.roots[border.tensor]
        base = tiled.first_block[root]
        for number in range(base, base + tiled.block_count(root)):
            start = makers[number]
            if start is None or done[tiled.first_step[start[0]] + start[1]]:
                continue
            stack = [(start, needs(*start))]
            while stack:
                step, pending = stack[-1]
                following = next((s for s in pending if not done[tiled.first_step[s[0]] + s[1]]), None)
                if following is not None:
                    stack.append((following, needs(*following)))
                    continue
                stack.pop()
                number_of_step = tiled.first_step[step[0]] + step[1]
                if not done[number_of_step]:
                    done[number_of_step] = True
                    order.append(Step(*step))
    return Schedule(tuple(order), "feasible")


def _makers(tiled: TiledGraph) -> list[tuple[int, int] | None]:
    """For each block the operator and step that completes it; None for a graph input."""
    makers: list[tuple[int, int] | None] = [None] * tiled.blocks
    for position, operator in enumerate(tiled.graph.operators):
        if operator.op.is_view:
            continue
        for block in range(tiled.step_counts[position]):
            makers[tiled.written(position, block)] = (position, block)
    return makers
