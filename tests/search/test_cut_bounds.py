"""The lower bounds over all cuts, against every cut and every schedule of small chains."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from graphs import conv, graph_io, pooled, residual, tensor
from models import quantised_convolutions

from mcudeploy.boards.catalogue import load_board
from mcudeploy.ir.graph import Graph, Operator
from mcudeploy.ir.plan import Rewrites
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.pool.pool import AveragePoolByRows
from mcudeploy.planner.cut_bounds import cut_bounds
from mcudeploy.planner.model.forms import stream_inputs
from mcudeploy.planner.model.model import Model, kernel_variants, load_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import find_plans
from mcudeploy.planner.search.cuts import Cut, Space, State
from mcudeploy.planner.search.fusing import chains
from mcudeploy.planner.search.segments import Segments
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.dataflow import Dataflow


def model_of(graph: Graph) -> Model:
    variants = kernel_variants(graph)
    calls = {name: each[0] for name, each in variants.items()}
    return Model(Path("small.onnx"), "0", graph, Rewrites(), variants, calls)


def least_work(model: Model) -> dict[str, tuple[int, int]]:
    return {
        name: (min(it.scratch_bytes for it in calls), min(it.state_bytes for it in calls))
        for name, calls in model.variants.items()
    }


def conv_chain(rows: int, layers: list[tuple[int, int, int]], *, mean: bool) -> Graph:
    """Convolutions in a row, each with channels, kernel and stride, from 2 channels; perhaps their mean."""
    shape, operators = (rows, 4, 2), []
    tensors = {"image": tensor("image", shape)}
    for at, (channels, kernel, stride) in enumerate(layers):
        source, name = list(tensors)[-1], f"t{at}"
        made = conv(f"conv_{at}", source, name, (shape[2], channels), kernel)
        assert isinstance(made.op, Conv2d)
        made = replace(made, op=replace(made.op, stride=(stride, 1)))
        shape = made.op.loops((shape,)).output_shape()
        tensors[name] = tensor(name, shape)
        operators.append(made)
    if mean:
        operators.append(Operator("mean", AveragePoolByRows(), (list(tensors)[-1],), "mean"))
        shape = (1, 1, shape[2])
        tensors["mean"] = tensor("mean", shape)
    last = list(tensors)[-1]
    return Graph(
        "chain", tensors, tuple(operators), (graph_io("image", (rows, 4, 2)),), (graph_io(last, shape),)
    )


def random_chain(seed: int) -> Graph:
    rng = np.random.default_rng(seed)
    layers = [
        (int(rng.choice([1, 2, 4, 12])), int(rng.choice([1, 3, 5])), int(rng.choice([1, 1, 2])))
        for _ in range(int(rng.integers(2, 4)))
    ]
    graph = conv_chain(int(rng.integers(5, 9)), layers, mean=bool(rng.integers(2)))
    return stream_inputs(graph) if rng.integers(2) else graph


def every_cut(count: int, first: int = 0) -> Iterator[State]:
    """Every set of cuts of operators from `first` on, in parts of one or two rows."""
    if first == count:
        yield ()
        return
    yield from every_cut(count, first + 1)
    for last in range(first, count):
        for rest in every_cut(count, last + 1):
            for rows, staggered in ((1, False), (2, False), (2, True)):
                for apart in (False, True):
                    yield (Cut(first, last, rows, apart, staggered), *rest)


@pytest.mark.parametrize("seed", range(8))
def test_no_cut_goes_below_the_bound(seed: int) -> None:
    model = model_of(random_chain(seed))
    bounds = cut_bounds(model)
    flow, order = Dataflow.of(model.graph), tuple(range(len(model.graph.operators)))
    space, segments = Space.of(flow, order), Segments(flow, order, least_work(model))
    cut_segments = {space.cut_segments(state) for state in every_cut(len(order))}
    least = min(segments.peak(each)[0] for each in cut_segments)
    assert len(cut_segments) > 4
    assert bounds.any_bytes <= bounds.once_bytes <= least <= 2 * bounds.once_bytes


class _Game:
    """All schedules of a streamed chain with a mean at its end, recomputation and fused chains included.

    A position: the live rows, as bits by block, and the rows that were fed and taken by the mean.
    """

    def __init__(self, model: Model) -> None:
        self.model, flow = model, Dataflow.of(model.graph)
        self.tiled = TiledGraph(flow, {operator.name: 1 for operator in model.graph.operators})
        self.sizes = [self.tiled.block_bytes(*block) for block in self.tiled.block_ids()]
        self.work = least_work(model)
        feed, mean = model.graph.operators[0], model.graph.operators[-1]
        self.rows = flow.iteration_rows[0], flow.iteration_rows[-1]
        self.feed, self.mean = self.tiled.first_block[feed.output], self.tiled.first_block[mean.inputs[0]]
        self.makes = [*self._makes(self.tiled, model)]
        for chain in chains(model.graph):
            fused = model.in_form(replace(model.form, fused=(chain,)))
            tiled = TiledGraph(Dataflow.of(fused.graph), {it.name: 1 for it in fused.graph.operators})
            self.makes += self._makes(tiled, fused)

    def _makes(self, tiled: TiledGraph, model: Model) -> Iterator[tuple[int, int, int]]:
        """Every way to make a row: the bits of rows it reads, the block, its scratch."""
        names = tiled.block_ids()
        for position, operator in enumerate(model.graph.operators[1:-1], 1):
            scratch, _ = least_work(model)[operator.name]
            for row in range(tiled.step_counts[position]):
                ((lo, hi),) = tiled.reads[tiled.first_step[position] + row]
                read = [self.tiled.first_block[names[it][0]] + names[it][1] for it in range(lo, hi)]
                yield sum(1 << it for it in read), self.tiled.first_block[operator.output] + row, scratch

    def bytes_of(self, live: int) -> int:
        return sum(size for block, size in enumerate(self.sizes) if live >> block & 1)

    def steps(self, live: int, fed: int, taken: int) -> Iterator[tuple[int, tuple[int, int, int]]]:
        """The steps from a position: the bytes during it, and the position after it."""
        scratch, sums = self.work["mean"]
        state = sums if taken else 0
        if fed < self.rows[0]:
            after = live | 1 << self.feed + fed
            yield self.bytes_of(after) + state, (after, fed + 1, taken)
        for read, block, its in self.makes:
            if read & ~live == 0 and not live >> block & 1:
                after = live | 1 << block
                yield self.bytes_of(after) + state + its, (after, fed, taken)
        if live >> self.mean + taken & 1:
            last = self.sizes[-1] if taken == self.rows[1] - 1 else 0
            yield self.bytes_of(live) + scratch + sums + last, (live, fed, taken + 1)
        for block in range(len(self.sizes)):
            if live >> block & 1:
                yield 0, (live & ~(1 << block), fed, taken)

    def ends_within(self, most_bytes: int) -> bool:
        """Whether some schedule takes at most these bytes."""
        front, known = [(0, 0, 0)], {(0, 0, 0)}
        while front:
            position = front.pop()
            if position[2] == self.rows[1]:
                return True
            for used, after in self.steps(*position):
                if used <= most_bytes and after not in known:
                    known.add(after)
                    front.append(after)
        return False


@pytest.mark.parametrize(
    "layers",
    [
        [(2, 3, 1), (2, 3, 1)],
        [(12, 1, 1), (2, 3, 1)],  # may be fused
        [(8, 3, 1), (1, 3, 1)],
        [(2, 3, 2), (6, 3, 1)],
    ],
)
def test_no_schedule_that_recomputes_goes_below_the_bound(layers: list[tuple[int, int, int]]) -> None:
    model = model_of(stream_inputs(conv_chain(5, layers, mean=True)))
    bound = cut_bounds(model).any_bytes
    game = _Game(model)
    assert not game.ends_within(bound - 1)
    assert game.ends_within(bound + bound // 2)


def test_the_bound_of_a_mean_by_hand() -> None:
    """A row of 32 bytes, its result of 32 bytes and the four sums of 4 bytes; the sums end in the mean."""
    model = model_of(stream_inputs(pooled()))
    scratch, _ = least_work(model)["conv_a"]
    bounds = cut_bounds(model)
    assert bounds.any_bytes == bounds.once_bytes == 32 + 32 + 16 + scratch


def test_whole_inputs_and_outputs_count() -> None:
    bounds = cut_bounds(model_of(residual()))
    image = output = 8 * 8 * 4
    assert bounds.any_bytes >= max(image, output)


def test_plans_at_any_overhead_stay_above(tmp_path: Path) -> None:
    found, model = [], load_model(quantised_convolutions(tmp_path / "small.onnx"))
    for overhead in (0.0, 25.0, 100.0):
        options = Options(time_limit=0.5, max_overhead=overhead, stream_input=True)
        planned = find_plans(model, load_board("mps2-an386"), options)
        bounds = planned.cut_bounds
        assert bounds is not None and bounds.any_bytes > 0
        for plan in planned.choices:
            fused = plan.form.fused or len(set(plan.schedule.steps)) < len(plan.schedule.steps)
            assert plan.layout.arena_bytes >= (bounds.any_bytes if fused else bounds.once_bytes)
        found.append(bounds)
    assert found[0] == found[1] == found[2]  # the limit does not matter
