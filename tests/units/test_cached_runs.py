"""Cut, ordered and placed plans on a model of caches, byte by byte: every unit reads what was written.

A cache holds lines of 32 bytes, all of them stale at the start. It writes through, or writes back on command.
It never evicts, since the application is responsible for dead tensors (docs/memories.md). Additions and
sigmoids stand for arithmetic on bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from drawn import board, bounded, graphs
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mcudeploy.boards.board import Unit
from mcudeploy.ops.move.transfer import Clean, Copy, Invalidate
from mcudeploy.planner.cores.functions import Assignment, partition
from mcudeploy.planner.cores.requirements import needs
from mcudeploy.planner.cores.routes import with_transfers
from mcudeploy.planner.order.rpo import reverse_post_order
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.dataflow import Dataflow
from tests.one_memory import lay_out

if TYPE_CHECKING:
    from mcudeploy.ir.graph import Graph, Operator
    from mcudeploy.ir.plan import Layout

LINE = 32
Bytes = NDArray[np.uint8]


class Caches:
    """One memory and the caches of the units that have one."""

    def __init__(self, size: int, cached: set[str], through: bool) -> None:
        lines = -(-size // LINE)
        self.memory = np.zeros(lines * LINE, np.uint8)
        self.seen = {unit: np.full(lines * LINE, 0xEE, np.uint8) for unit in cached}
        self.valid = {unit: np.ones(lines, np.bool_) for unit in cached}
        self.dirty = {unit: np.zeros(lines, np.bool_) for unit in cached}
        self._through = through

    def _fill(self, unit: str, at: slice) -> None:
        for line in lines_of(at):
            if not self.valid[unit][line]:
                where = slice(line * LINE, (line + 1) * LINE)
                self.seen[unit][where] = self.memory[where]
                self.valid[unit][line] = True

    def read(self, unit: str, at: slice) -> Bytes:
        if unit not in self.seen:
            return self.memory[at].copy()
        self._fill(unit, at)
        return self.seen[unit][at].copy()

    def write(self, unit: str, at: slice, data: Bytes) -> None:
        if unit not in self.seen or self._through:
            self.memory[at] = data
        if unit in self.seen:
            self._fill(unit, at)
            self.seen[unit][at] = data
            self.dirty[unit][lines_of(at)] = not self._through

    def clean(self, unit: str, at: slice) -> None:
        for line in lines_of(at) if unit in self.seen else ():
            if self.dirty[unit][line]:
                where = slice(line * LINE, (line + 1) * LINE)
                self.memory[where] = self.seen[unit][where]
                self.dirty[unit][line] = False

    def invalidate(self, unit: str, at: slice) -> None:
        if unit in self.seen:
            self.valid[unit][lines_of(at)] = False
            self.dirty[unit][lines_of(at)] = False


def lines_of(at: slice) -> range:
    return range(at.start // LINE, (at.stop - 1) // LINE + 1)


def computed(operator: Operator, inputs: list[Bytes]) -> Bytes:
    if isinstance(operator.op, Copy | Clean | Invalidate) or operator.op.is_view:
        return inputs[0]
    salt = sum(operator.name.encode()) % 251
    return np.asarray(sum(3 * it + salt for it in inputs), np.uint8)


def place_of(tiled: TiledGraph, layout: Layout, name: str, row: int) -> slice:
    root, row_bytes = tiled.flow.roots[name], tiled.graph.tensors[name].row_bytes
    rows = tiled.tensor_block_rows(root).rows if root == name else tiled.graph.tensors[name].shape[0]
    at = layout.blocks[root][row // rows][0].offset + row % rows * row_bytes
    return slice(at, at + row_bytes)


@given(graph=graphs(), through=st.booleans(), data=st.data())
@bounded
def test_bytes(graph: Graph, through: bool, data: st.DataObject) -> None:
    cached = data.draw(st.sets(st.sampled_from(["u0", "u1", "u2"])), "cached")
    units = [Unit(name=f"u{n}", cached=("ram",) if f"u{n}" in cached else ()) for n in range(3)]
    target = board(*units)
    drawn = {it.name: data.draw(st.sampled_from(["u0", "u1", "u2"])) for it in graph.operators}
    plain, assignment = graph, Assignment("u0", {name: unit for name, unit in drawn.items() if unit != "u0"})
    graph, assignment = with_transfers(graph, target, assignment)
    flow = Dataflow.of(graph)
    viewed = {flow.roots[it.output] for it in graph.operators if it.op.is_view}
    rows = {
        it.name: 4 if it.op.is_view or it.output in viewed else data.draw(st.integers(1, 4), it.name)
        for it in graph.operators
    }
    tiled = TiledGraph(flow, rows)
    schedule = reverse_post_order(tiled)
    wanted = needs(graph, target, partition(graph, assignment)).tensors
    alignment = max(8, *(need.alignment for need in wanted.values()))
    work = {it.name: (0, 0) for it in graph.operators}
    layout, _ = lay_out(tiled, schedule, work, "ram", alignment)

    rng = np.random.default_rng(1)
    caches = Caches(layout.arena_bytes, cached, through)
    true = {it.tensor: rng.integers(0, 256, (4, 24), np.uint8) for it in plain.inputs}
    for was, io in zip(plain.inputs, graph.inputs, strict=True):
        for row in range(4):
            at = place_of(tiled, layout, io.tensor, row)
            caches.write("u0", at, true[was.tensor][row])
    for step in schedule.steps:
        operator = graph.operators[step.operator]
        unit, first = assignment.unit(operator.name), step.block * rows[operator.name]
        for row in range(first, min(4, first + rows[operator.name])):
            inputs = [place_of(tiled, layout, name, row) for name in operator.inputs]
            output = place_of(tiled, layout, operator.output, row)
            if isinstance(operator.op, Invalidate):
                caches.invalidate(unit, inputs[0])
            caches.write(unit, output, computed(operator, [caches.read(unit, at) for at in inputs]))
            if isinstance(operator.op, Clean):
                caches.clean(unit, output)
    for operator in plain.operators:
        true[operator.output] = computed(operator, [true[name] for name in operator.inputs])
    for was, io in zip(plain.outputs, graph.outputs, strict=True):
        for row in range(4):
            at = place_of(tiled, layout, io.tensor, row)
            assert np.array_equal(caches.read("u0", at), true[was.tensor][row])
