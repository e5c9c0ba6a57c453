"""The tiles that a calibration times: int8 kernels of each kind, of sizes for the smallest boards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from mcudeploy.boards.board import Board
from mcudeploy.costs.database import TileKey, shape_key
from mcudeploy.costs.estimate import estimated, modelled_costs
from mcudeploy.costs.factors import Kind, kind_of
from mcudeploy.costs.tiles import TileSource
from mcudeploy.device.tile import FlashRegion
from mcudeploy.ir.graph import DType, Graph, Operator, Shape
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.one_operator import one_operator
from mcudeploy.ir.opdef import ConstantArray, KernelCall
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.pool.pool import AveragePool, MaxPool
from mcudeploy.ops.scalar.elementwise import Binary

_CONVOLUTIONS: tuple[tuple[Shape, Conv2d], ...] = (
    ((8, 8, 16), Conv2d(16, (3, 3), pads=(1, 1, 1, 1))),
    ((9, 11, 12), Conv2d(20, (3, 3), (2, 2), pads=(1, 1, 1, 1))),
    ((16, 16, 3), Conv2d(8, (3, 3), (2, 2), pads=(1, 1, 1, 1))),
    ((8, 8, 16), Conv2d(16)),
    ((5, 5, 32), Conv2d(40)),
    ((6, 6, 24), Conv2d(32)),
    ((8, 8, 16), Conv2d(16, (3, 3), pads=(1, 1, 1, 1), groups=16)),
    ((12, 12, 8), Conv2d(8, (3, 3), (2, 2), pads=(1, 1, 1, 1), groups=8)),
    ((8, 8, 12), Conv2d(12, (5, 5), pads=(2, 2, 2, 2), groups=12)),
    ((1, 1, 256), Conv2d(64)),
    ((1, 1, 128), Conv2d(32)),
    ((4, 4, 32), Conv2d(12, (4, 4))),
)
"""Shapes of inputs, and their convolutions."""
_SHAPE = (12, 12, 8)
_WINDOW = (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), (6, 6)


@dataclass(frozen=True, slots=True, eq=False)
class KernelTile:
    """All rows of the only operator of a graph, computed by one of its kernel variants.

    `estimate`: the time by the model of a board's core, with waits for flash.
    """

    graph: Graph
    call: KernelCall
    rows: Interval
    kind: Kind
    estimate: float

    @property
    def operator(self) -> Operator:
        """The only operator of the graph."""
        return self.graph.operators[0]

    def key(self, board: str, kernels: str) -> TileKey:
        """Return the key of its time on a board with kernels of this digest."""
        shapes = [tensor.shape for tensor in self.graph.tensors.values()]
        return TileKey(board, kernels, self.call.kernel, shape_key(self.call, shapes), str(self.rows))


def kernel_tiles(board: Board) -> tuple[KernelTile, ...]:
    """Return the tiles of a board: each operator by its fastest variant of each kind."""
    in_flash = FlashRegion.of(board) is not None
    estimates = estimated(modelled_costs(board), () if in_flash else ("operator",))
    return tuple(tile for graph in _graphs() for tile in _fastest(graph, board, estimates))


def _fastest(graph: Graph, board: Board, estimates: TileSource) -> Iterable[KernelTile]:
    (operator,) = graph.operators
    output, time = graph.tensors["y"], estimates(graph, ())
    rows = Interval(0, output.shape[0])
    fastest: dict[Kind, KernelTile] = {}
    for call in operator.op.kernel(operator, graph.input_tensors(operator), output).variants(board.isa):
        kind = kind_of(call.cost_name)
        assert kind is not None, f"{call.cost_name} is of no kind"
        tile = KernelTile(graph, call, rows, kind, time(operator, call, rows))
        fastest[kind] = min(fastest.get(kind, tile), tile, key=lambda it: it.estimate)
    return fastest.values()


def _graphs() -> Iterator[Graph]:
    random = np.random.default_rng(0)
    for shape, op in _CONVOLUTIONS:
        weights = (op.out_channels, *op.kernel_shape, shape[2] // op.groups)
        constants: dict[str, ConstantArray] = {
            "weights": random.integers(-127, 128, weights).astype(np.int8),
            "bias": np.zeros(op.out_channels, np.int32),
            "weight_scale": np.full(op.out_channels, 0.0015, np.float32),
        }
        yield one_operator(op, (shape,), DType.INT8, constants)
    for function in ("add", "mul"):
        yield one_operator(Binary(function), (_SHAPE, _SHAPE), DType.INT8)
    yield one_operator(MaxPool(*_WINDOW), (_SHAPE,), DType.INT8, scale=0.05)
    yield one_operator(AveragePool(*_WINDOW, False), (_SHAPE,), DType.INT8)
