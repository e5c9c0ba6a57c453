"""Random traces, each from a seed."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np

from mcudeploy.ir.trace import Item, ItemAccess, MemoryLink, Trace, TraceStep
from mcudeploy.planner.offload.list_loops import Decisions
from mcudeploy.planner.offload.trace_tables import TraceTable


def random_trace(draw: random.Random) -> Trace:
    """Up to 14 steps that read what is valid and write anything, with operands of several items."""
    count = draw.randint(2, 12)
    items = [
        Item(
            f"item{number}",
            draw.choice([0, 1, 5, 10, 20, 33]),
            given=draw.random() < 0.3,
            kept=draw.random() < 0.2,
            fixed=draw.random() < 0.1,
            loaded=draw.random() < 0.2,
        )
        for number in range(count)
    ]
    valid = {number for number, item in enumerate(items) if item.given or item.loaded}
    steps = [
        TraceStep(
            f"step{place}",
            draw.choice([0, 1, 5, 10, 50]),
            _accesses(draw, items, valid),
            draw.choice([0, 0, 3]),
            repeatable=draw.random() < 0.8,
        )
        for place in range(draw.randint(2, 14))
    ]
    items = [item if number in valid else replace(item, kept=False) for number, item in enumerate(items)]
    held = {access.item for access in steps[-1].accesses}
    for number, item in enumerate(items):
        if item.given and not (item.fixed or item.loaded or number in held) and draw.random() < 0.5:
            items[number] = replace(item, kept=True, home=True)
    return Trace(tuple(items), tuple(steps))


def _accesses(draw: random.Random, items: list[Item], valid: set[int]) -> tuple[ItemAccess, ...]:
    accesses: list[ItemAccess] = []
    operand = 0
    for number in draw.sample(range(len(items)), draw.randint(1, min(4, len(items)))):
        direct = draw.choice([None, items[number].size_bytes, 2 * items[number].size_bytes])
        reads = number in valid and draw.random() < 0.7
        if reads:
            accesses.append(ItemAccess(number, False, operand, direct))
        if not reads or draw.random() < 0.2:
            accesses.append(ItemAccess(number, True, operand, direct))
        valid.add(number)
        operand += draw.random() < 0.7
    return tuple(accesses)


def random_link(draw: random.Random) -> MemoryLink:
    """An engine, or a core that copies."""
    return MemoryLink(
        draw.choice([0.5, 1, 5]), draw.choice([0.5, 1]), draw.choice([0, 3]), draw.random() < 0.7
    )


def random_decisions(draw: random.Random, trace: Trace, table: TraceTable, capacity: int) -> Decisions:
    """Forced gaps, direct operands, and rules."""
    count = len(table.item)
    force = np.array([draw.choice([0, 0, 0, 1, 2]) for _ in range(count)], np.int64)
    direct = np.zeros(count, np.bool_)
    for operand in np.unique(table.operand):
        group = table.operand == operand
        direct[group] = draw.random() < 0.3 and bool(np.isfinite(table.direct[group]).all())
    slack, rule = draw.choice([0, 0, capacity // 4]), draw.choice([0, 1, 2])
    return Decisions(np.arange(len(trace.steps)), force, direct, slack, rule, draw.random() < 0.5)


def training_step(seed: int, steps: int) -> Trace:
    """A chain with skips forwards, then backwards over its outputs: sizes 4 to 16, durations 10 to 400."""
    draw = random.Random(seed)
    items = [Item("input", draw.choice([4, 8]), loaded=True)]
    done: list[TraceStep] = []
    half = steps // 2
    for place in range(half):
        inputs = {place}
        if place > 1 and draw.random() < 0.3:
            inputs.add(draw.randrange(place))
        items.append(Item(f"made{place}", draw.choice([4, 8, 16])))
        accesses = (
            *(ItemAccess(item, False, item) for item in sorted(inputs)),
            ItemAccess(place + 1, True, place + 1),
        )
        done.append(TraceStep(f"forward{place}", draw.choice([10, 20, 60, 200]), accesses))
    gradient = half
    for place in reversed(range(half)):
        new = len(items)
        items.append(Item(f"gradient{place}", items[place].size_bytes, kept=place == 0))
        reads = {gradient, place}
        if draw.random() < 0.4:
            reads.add(place + 1)
        accesses = (*(ItemAccess(item, False, item) for item in sorted(reads)), ItemAccess(new, True, new))
        done.append(TraceStep(f"backward{place}", draw.choice([20, 40, 120, 400]), accesses))
        gradient = new
    return Trace(tuple(items), tuple(done))


def peak_bytes(trace: Trace) -> int:
    """Bytes with everything in memory from its first access to its last."""
    first = {number: 0 for number, item in enumerate(trace.items) if item.loaded}
    last: dict[int, int] = {}
    for place, step in enumerate(trace.steps):
        for access in step.accesses:
            first.setdefault(access.item, place)
            last[access.item] = place if not trace.items[access.item].kept else len(trace.steps)
    return max(
        sum(trace.items[item].size_bytes for item in first if first[item] <= place <= last.get(item, -1))
        for place in range(len(trace.steps))
    )
