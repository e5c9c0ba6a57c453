"""Lower bounds over all cuts of a model: bytes that are live while some row is computed for the first time.

The smallest parts that steps make are *values*: a row of a tensor, all of a tensor that cannot be cut, the
running sum after some rows. When a step first makes a value, nothing that depends on it exists yet. Rows that
the application fed before do not come again. Every path of data from those rows to a result therefore passes
through a live value. The live bytes are at least those of a minimum cut (docs/design.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from mcudeploy.common.effort import Effort
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ir.plan import Step
from mcudeploy.planner.model.model import Model
from mcudeploy.planner.order.bounds import NeedsNetwork, places_of, sure_needs
from mcudeploy.planner.order.closure import Closure
from mcudeploy.planner.order.max_flow import max_flow
from mcudeploy.planner.order.order_problem import mask_of
from mcudeploy.planner.order.tiled import problem_of, producers_of, steps_of
from mcudeploy.planner.search.cuts import Space
from mcudeploy.planner.search.fusing import chains
from mcudeploy.planner.search.seeds import Chain
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.dataflow import Dataflow, RowAccess

_UNITS = 300_000
"""Effort of each of the two bounds; in a large graph, it suffices for some of the operators."""
_ARC_UNITS = 0.15
"""Effort of a minimum cut for each arc of its network."""
_CLIMBED = 8
"""The number of operators of which several rows are tried: those that need the most for the middle row."""


@dataclass(frozen=True, slots=True)
class CutBounds:
    """Bytes that no plan of a model goes below, whatever its cuts, orders and places.

    `any_bytes`: whatever it recomputes. `once_bytes`: without fused chains and recomputed steps.
    """

    any_bytes: int
    once_bytes: int

    def at_most(self, arena_bytes: int) -> CutBounds:
        """Return the bounds of all these plans and one more, which has this arena."""
        return CutBounds(min(self.any_bytes, arena_bytes), min(self.once_bytes, arena_bytes))


def cut_bounds(model: Model) -> CutBounds:
    """Return the bounds of a model in the form that is cut, without fused chains.

    They hold for every graph, and are close for chains of operators.
    """
    rows = _RowGraph(model)
    order = rows.by_certain_bytes()
    effort = Effort(_UNITS)
    ways = {name: [needs] for name, needs in rows.operators(partial(rows.bytes_during, effort))}
    for chain, needs in rows.fused(effort):
        for name in chain:
            ways[name].append(needs)
    any_bytes = _greatest([ways[name] for name in order], effort)
    network, effort = NeedsNetwork(rows.problem), Effort(_UNITS)

    def bytes_run_once(step: int) -> int:
        effort.spend(_ARC_UNITS * len(network.arcs))
        return network.cut(step)

    ways = {name: [needs] for name, needs in rows.operators(bytes_run_once)}
    once_bytes = _greatest([ways[name] for name in order], effort)
    any_bytes = max(any_bytes, rows.bytes_at_ends())
    return CutBounds(any_bytes, max(any_bytes, once_bytes))


@dataclass(slots=True)
class _Needs:
    """The bytes that are live while an operator, or a chain in its place, first computes one of its rows.

    `steps` compute them. `most`: the largest known, during the step at `place`.
    """

    steps: Sequence[int]
    during: Callable[[int], int]
    most: int = 0
    place: int = 0
    tried: set[int] = field(default_factory=set)

    def try_at(self, place: int) -> None:
        """Compute the bytes during the step at a place, if there is one."""
        if place not in self.tried and 0 <= place < len(self.steps):
            self.tried.add(place)
            live_bytes = self.during(self.steps[place])
            if live_bytes > self.most:
                self.most, self.place = live_bytes, place

    def climb(self) -> None:
        """Look for a step that needs more, at falling distances from the best."""
        distance = (len(self.steps) + 2) // 4
        while distance:
            for place in (self.place - distance, self.place + distance):
                self.try_at(place)
            distance //= 2


def _greatest(operators: Iterable[list[_Needs]], effort: Effort) -> int:
    """Return the most bytes that any operator needs, if each runs as it needs least: alone or in a chain."""

    def least(ways: list[_Needs]) -> int:
        return min(needs.most for needs in ways)

    tried = []
    for ways in operators:
        if effort.is_spent():
            break
        for needs in ways:
            needs.try_at(len(needs.steps) // 2)
        tried.append(ways)
    for ways in sorted(tried, key=least, reverse=True)[:_CLIMBED]:
        for needs in () if effort.is_spent() else ways:
            needs.climb()
    return max(map(least, tried), default=0)


class _Rows(TiledGraph):
    """A graph in blocks of one row. Outputs need not be contiguous: uncut, one may replace an input."""

    def stacked_outputs(self) -> tuple[str, ...]:
        """Return no outputs."""
        return ()


class _RowGraph:
    """A model in blocks of one row. Step s makes value s; the values after those are blocks of inputs."""

    def __init__(self, model: Model) -> None:
        self.model, self.graph = model, model.graph
        flow = self.flow = Dataflow.of(model.graph)
        most = Space.of(flow, tuple(range(len(self.graph.operators)))).most_rows
        names = (operator.name for operator in self.graph.operators)
        sizes = zip(names, most, flow.iteration_rows, strict=True)
        self.tiled = _Rows(flow, {name: 1 if rows > 1 else whole for name, rows, whole in sizes})
        self.work = {name: _least_work(model, calls) for name, calls in model.variants.items()}
        self.steps = _needed(self.tiled)
        self.problem = problem_of(self.tiled, self.work, steps=self.steps)
        self.closure = Closure.of(self.problem)
        # By block, the value that it contains; by value, its bytes.
        producers = producers_of(self.tiled, self.steps)
        given = [block for block, step in enumerate(producers) if step is None]
        numbers = {block: len(self.steps) + number for number, block in enumerate(given)}
        self.value_of = [numbers[at] if step is None else step for at, step in enumerate(producers)]
        self.given = np.array(list(numbers.values()), np.int64)
        self.block_bytes = [self.tiled.block_bytes(*block) for block in self.tiled.block_ids()]
        of_steps = (self._size_of(number) for number in range(len(self.steps)))
        self.sizes = np.array([*of_steps, *(self.block_bytes[block] for block in given)], np.int64)
        self.reads = [self._read(number) for number in range(len(self.steps))]
        self.of_operator: dict[str, list[int]] = {}
        for number, step in enumerate(self.steps):
            self.of_operator.setdefault(self.graph.operators[step.operator].name, []).append(number)
        # The network of minimum cuts: value v is the nodes 2 v and 2 v + 1, whose arc has its bytes.
        operators = self.graph.operators
        self.fed = mask_of(at for at, step in enumerate(self.steps) if not operators[step.operator].inputs)
        self.unlimited = int(self.sizes.sum()) + 1
        self.source, self.sink = 2 * len(self.sizes), 2 * len(self.sizes) + 1
        self.paths = self._paths()

    def _makes_sum(self, number: int) -> bool:
        """Return whether a step makes a running sum: it accumulates, and others do so after it."""
        step = self.steps[number]
        last = step.block == self.tiled.step_counts[step.operator] - 1
        return self.graph.operators[step.operator].op.accumulates and not last

    def _size_of(self, number: int) -> int:
        """Return the bytes of what a step makes."""
        step = self.steps[number]
        if self._makes_sum(number):
            return self.work[self.graph.operators[step.operator].name][1]
        return self.block_bytes[self.tiled.written(step.operator, step.block)]

    def _read(self, number: int) -> list[int]:
        """Return the values that a step reads, its running sum among them."""
        step = self.steps[number]
        ranges = self.tiled.reads[self.tiled.first_step[step.operator] + step.block]
        values = {self.value_of[block] for lo, hi in ranges for block in range(lo, hi)}
        if self.graph.operators[step.operator].op.accumulates and step.block:
            values.add(number - 1)
        return sorted(values)

    def _paths(self) -> np.ndarray:
        """Return the arcs between values, and from results to the sink."""
        arcs = [(2 * value + 1, 2 * number) for number, read in enumerate(self.reads) for value in read]
        for root in {self.flow.roots[io.tensor] for io in self.graph.outputs}:
            base, count = self.tiled.first_block[root], self.tiled.block_count(root)
            arcs += ((2 * value + 1, self.sink) for value in self.value_of[base : base + count])
        return np.array([(*ends, self.unlimited) for ends in arcs], np.int64).reshape(-1, 3)

    def bytes_at_ends(self) -> int:
        """Return the bytes of all inputs before the first step, or of all outputs after the last."""
        ends = (self.graph.resident_inputs(), self.graph.outputs)
        roots = ({self.flow.roots[io.tensor] for io in ios} for ios in ends)
        return max(sum(self.graph.tensors[name].size_bytes for name in names) for names in roots)

    def by_certain_bytes(self) -> list[str]:
        """Return the operators with steps, by falling bytes that they need without recomputation."""
        certain = sure_needs(self.problem, self.closure)
        middles = {name: certain[steps[len(steps) // 2]] for name, steps in self.of_operator.items()}
        return sorted(middles, key=lambda name: -middles[name])

    def operators(self, during: Callable[[int], int]) -> Iterator[tuple[str, _Needs]]:
        """Yield every operator with steps, and its needs, which `during` computes."""
        for name, steps in self.of_operator.items():
            yield name, _Needs(steps, during)

    def fused(self, effort: Effort) -> Iterator[tuple[Chain, _Needs]]:
        """Yield every chain that a search may fuse, and its needs: it has the steps of its last stage."""
        left = chains(self.graph) if self.model.may_fuse else ()
        while left:
            together: list[Chain] = []
            for chain in left:
                if set(chain).isdisjoint(name for other in together for name in other):
                    together.append(chain)
            left = tuple(chain for chain in left if chain not in together)
            model = self.model.in_form(replace(self.model.form, fused=tuple(together)))
            producers = {operator.output: at for at, operator in enumerate(model.graph.operators)}
            for chain in together:
                steps = self.of_operator[chain[-1]]
                position = producers[self.graph.operators[self.steps[steps[0]].operator].output]
                scratch, _ = _least_work(model, model.variants[model.graph.operators[position].name])
                (access,) = Dataflow.of(model.graph).readings[position]
                yield chain, _Needs(steps, partial(self._chain_bytes, effort, access, scratch))

    def _chain_bytes(self, effort: Effort, access: RowAccess, scratch_bytes: int, step: int) -> int:
        """Return the live bytes when a chain first runs in the place of a step of its last stage."""
        row, blocks = self.steps[step].block, self.tiled.tensor_block_rows(access.root)
        lo, hi = (0, access.rows) if access.whole else access.reach(row, row + 1)
        base = self.tiled.first_block[access.root]
        read = self.value_of[base + blocks.block_of(lo) : base + blocks.block_of(hi - 1) + 1]
        return scratch_bytes + self._live(effort, step, read)

    def bytes_during(self, effort: Effort, step: int) -> int:
        """Return the live bytes when a step first runs, whatever is recomputed."""
        scratch_bytes, _ = self.work[self.graph.operators[self.steps[step].operator].name]
        return scratch_bytes - self.problem.most_saved(step) + self._live(effort, step, self.reads[step])

    def _live(self, effort: Effort, step: int, read: list[int]) -> int:
        """Return the bytes of what a step reads and makes, and of the least that must be live beside them."""
        # Values that depend on the step do not exist yet, so the cut must not use them.
        count = len(self.steps)
        capacity = self.sizes.copy()
        capacity[read] = 0
        capacity[:count][places_of(self.closure.descendants[step] | 1 << step, count)] = self.unlimited
        fed = np.flatnonzero(places_of(self.closure.ancestors[step] & self.fed, count))
        begin = np.concatenate([fed, self.given])
        values = np.arange(len(self.sizes))
        arcs = np.concatenate([
            self.paths,
            np.stack([2 * values, 2 * values + 1, capacity], axis=1),
            np.stack([*np.broadcast_arrays(self.source, 2 * begin, self.unlimited)], axis=1),
        ])  # fmt: skip
        effort.spend(_ARC_UNITS * len(arcs))
        beside = max_flow(arcs, self.source, self.sink) if len(begin) else 0
        return self._begun_bytes(step) + int(self.sizes[read].sum()) + beside

    def _begun_bytes(self, step: int) -> int:
        """Return the bytes that a step begins: none for a sum that goes on."""
        return 0 if self._makes_sum(step) and self.steps[step].block else int(self.sizes[step])


def _needed(tiled: TiledGraph) -> list[Step]:
    """Return the steps that results depend on; a stride may leave rows unread."""
    steps = steps_of(tiled)
    outputs = {tiled.flow.roots[io.tensor] for io in tiled.graph.outputs}
    read = [name in outputs for name, _ in tiled.block_ids()]
    needed: list[Step] = []
    for step in reversed(steps):
        if read[tiled.written(step.operator, step.block)]:
            needed.append(step)
            for lo, hi in tiled.reads[tiled.first_step[step.operator] + step.block]:
                read[lo:hi] = [True] * (hi - lo)
    return needed[::-1]


def _least_work(model: Model, calls: Iterable[KernelCall]) -> tuple[int, int]:
    """Return the least scratch and the least state among some variants, in bytes."""
    pairs = [(model.scratch_bytes(call), call.state_bytes) for call in calls]
    return min(scratch for scratch, _ in pairs), min(state for _, state in pairs)
