"""Estimated instructions of tiles against those counted on an emulated Cortex-M4, narrow rows above all."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import numpy as np
import pytest

from mcudeploy.boards.catalogue import load_board
from mcudeploy.codegen.bench import bench_sources
from mcudeploy.costs.estimate import estimated, load_costs
from mcudeploy.device.session import connect
from mcudeploy.device.tile import FlashRegion, KernelTable, TileTimer
from mcudeploy.ir.graph import DType, Graph, GraphIO, Operator, Quantization, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.isa import Isa
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.conv.conv_s4w import S4W_TWINS
from mcudeploy.toolchain import Emulator, build_firmware

KERNELS = ("conv2d_s8", "conv2d_s8_1x1", "conv2d_s8_1x1_direct", "conv2d_s8_deep", "dwconv2d_s8", *S4W_TWINS)
BOARD = load_board("mps2-an386")


@pytest.fixture(scope="module")
def timer() -> Iterator[TileTimer]:
    if BOARD.emulator is None or shutil.which(BOARD.emulator.qemu) is None:
        pytest.skip("its emulator is not installed")
    firmware = build_firmware(
        BOARD, bench_sources(KERNELS, 120_000, fuses_products=BOARD.fuses_products), KERNELS, emulate=True
    )
    with (
        Emulator(BOARD, firmware.elf) as emulator,
        connect(emulator.url, board=BOARD.name, firmware_hash=firmware.hash, timeout_s=20) as session,
    ):
        yield TileTimer(session, KernelTable.of(session, KERNELS), flash=FlashRegion.of(BOARD))


def convolution(op: Conv2d, shape: Shape) -> Graph:
    depth = shape[2] // op.groups
    constants = {
        "weights": np.ones((op.out_channels, *op.kernel_shape, depth), np.int8),
        "bias": np.zeros(op.out_channels, np.int32),
        "weight_scale": np.full(op.out_channels, 0.001, np.float32),
    }
    shapes = {"x": shape, "y": op.loops((shape,)).output_shape()}
    tensors = {name: Tensor(name, of, DType.INT8, Quantization(0.1, 0)) for name, of in shapes.items()}
    borders = [
        GraphIO(name, name, one.shape, "int8", np.arange(one.elements, dtype=np.int32))
        for name, one in tensors.items()
    ]
    operator = Operator("conv", op, ("x",), "y", constants)
    return Graph("g", tensors, (operator,), (borders[0],), (borders[1],))


SEQUENCE = Conv2d(24, (5, 1), dilation=(2, 1), pads=(4, 0, 4, 0))


@pytest.mark.parametrize("width", [1, 2, 3, 5])
@pytest.mark.parametrize(
    ("op", "channels"),
    [(Conv2d(32), 48), (SEQUENCE, 16), (Conv2d(40, (5, 1), pads=(2, 0, 2, 0), groups=40), 40)],
    ids=["pointwise", "sequence", "depthwise"],
)
def test_within_three_percent(op: Conv2d, channels: int, width: int, timer: TileTimer) -> None:
    graph = convolution(op, (12, width, channels))
    (operator,) = graph.operators
    time = estimated(load_costs(BOARD.core))(graph, ())
    calls = operator.op.kernel(operator, graph.input_tensors(operator), graph.tensors["y"])
    for call in calls.variants(Isa.ANY):
        for rows in (Interval(5, 6), Interval(6, 8), Interval(6, 9), Interval(0, 12)):
            counted = BOARD.instructions(timer.time(graph, operator, call, rows).ticks)
            assert time(operator, call, rows) == pytest.approx(counted, rel=0.03), (call.variant, rows)
