"""Inputs that DMA fills and outputs that it sends, in memory that the core sees through a cache."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from drawn import board
from test_cached_runs import LINE, Bytes, Caches

from mcudeploy.boards.board import Board, Unit
from mcudeploy.ir.graph import DType, Graph, GraphIO, Operator, Tensor
from mcudeploy.ops.scalar.elementwise import Binary
from mcudeploy.ops.scalar.unary import Unary
from mcudeploy.planner.order.rpo import reverse_post_order
from mcudeploy.planner.place.placement_problem import align_up
from mcudeploy.planner.place.solve import spread
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.dataflow import Dataflow

CACHED = board(Unit(name="core", cached=("ram",)))
PLAIN = board(Unit(name="core"))


class WanderingCache(Caches):
    """A cache that writes lines back, forgets and fills them at any time; dirty everywhere at the start."""

    def __init__(self, size: int, seed: int) -> None:
        super().__init__(size, {"core"}, through=False)
        self.dirty["core"][:] = True
        self._draw = np.random.default_rng(seed)

    def wander(self) -> None:
        for line in np.flatnonzero(self._draw.random(len(self.dirty["core"])) < 0.4).tolist():
            at = slice(line * LINE, (line + 1) * LINE)
            self.clean("core", at)
            if self._draw.random() < 0.5:
                self.invalidate("core", at)
            else:
                self.read("core", at)


def network(floats: int) -> Graph:
    """Two inputs and two outputs: y = a + b, z = sigmoid(a)."""
    shape = (1, 1, floats)
    io = {
        name: GraphIO(name, name, shape, "float32", np.arange(prod(shape), dtype=np.int32)) for name in "abyz"
    }
    operators = Operator("y", Binary("add"), ("a", "b"), "y"), Operator("z", Unary("sigmoid"), ("a",), "z")
    tensors = {name: Tensor(name, shape, DType.FLOAT32) for name in "abyz"}
    return Graph("drawn", tensors, operators, (io["a"], io["b"]), (io["y"], io["z"]))


def exchanged(target: Board, floats: int, seed: int) -> tuple[list[Bytes], list[Bytes]]:
    """Bytes that arrive, and the right ones, in three runs: y by DMA, z and a variable after the arena.

    The core writes `a`, a DMA controller `b`, as the generated header says.
    """
    graph = network(floats)
    tiled = TiledGraph(Dataflow.of(graph), {"y": 1, "z": 1})
    layout = spread(tiled, reverse_post_order(tiled), {"y": (0, 0), "z": (0, 0)}, target)
    starts = {name: layout.blocks[name][0][0].offset for name in "abyz"}
    at = {name: slice(start, start + 4 * floats) for name, start in starts.items()}
    end = align_up(layout.arena_bytes, target.io_alignment)
    cache, draw = WanderingCache(end + 8, seed), np.random.default_rng(seed)
    variable = slice(end, end + 8)
    arrived, right = [], []
    for _ in range(3):
        a, b, own = (draw.integers(0, 256, size, np.uint8) for size in (4 * floats, 4 * floats, 8))
        cache.write("core", variable, own)
        cache.write("core", at["a"], a)
        cache.invalidate("core", at["b"])
        for byte, value in zip(range(at["b"].start, at["b"].stop), b, strict=True):
            cache.memory[byte] = value
            if byte % 16 == 0:
                cache.wander()
        cache.invalidate("core", at["b"])
        for operator in graph.operators:
            cache.wander()
            inputs = [cache.read("core", at[name]) for name in operator.inputs]
            cache.write("core", at[operator.output], np.asarray(sum(3 * it for it in inputs), np.uint8))
        cache.wander()
        cache.clean("core", at["y"])
        cache.wander()
        arrived += [cache.memory[at["y"]].copy(), cache.read("core", at["z"]), cache.read("core", variable)]
        right += [np.asarray(3 * a + 3 * b, np.uint8), np.asarray(3 * a, np.uint8), own]
    return arrived, right


@pytest.mark.parametrize("floats", [1, 5, 8, 13])
def test_what_dma_sends_and_receives_is_what_the_core_reads_and_writes(floats: int) -> None:
    for seed in range(10):
        arrived, right = exchanged(CACHED, floats, seed)
        assert all(map(np.array_equal, arrived, right))


def test_the_model_of_the_cache_finds_inputs_that_share_a_line() -> None:
    results = [exchanged(PLAIN, 5, seed) for seed in range(5)]
    assert not all(
        np.array_equal(*pair) for arrived, right in results for pair in zip(arrived, right, strict=True)
    )
