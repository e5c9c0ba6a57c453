"""Operator records packed by the host: their bytes, and what devices of both pointer sizes make of them."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from bench import machine

from mcudeploy.boards.catalogue import load_board
from mcudeploy.codegen.bench import all_kernels, bench_sources
from mcudeploy.common.extension_code import kernels_in
from mcudeploy.device.replies import Arena, DeviceInfo, Ticks
from mcudeploy.device.session import Session, connect
from mcudeploy.device.tile import (
    FlashRegion,
    KernelTable,
    Tile,
    TileTensor,
    TileTimer,
    _changes,
    pack,
)
from mcudeploy.ir.block_rows import BlockRows
from mcudeploy.ir.graph import DType, Graph, GraphIO, Operator, Quantization, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.toolchain import Emulator, build_firmware

KERNELS = ("conv2d_s8", "conv2d_s8_1x1", "dwconv2d_s8")
ARENA_BYTES = 60_000


def info(pointer_bytes: int, base: int = 0x20000000, offset_bytes: int = 4) -> DeviceInfo:
    arenas = (Arena(base, 1 << 16),)
    return DeviceInfo(pointer_bytes, offset_bytes, 4, 1, 1, 1, 0, 3, 246, 15, arenas, "board")


def test_bytes_of_a_record_with_32_bit_pointers() -> None:
    call = KernelCall("k", {"table": np.array([7, 8], np.int32), "none": None, "n": -2, "scale": 0.5}, 16)
    whole = BlockRows(5)
    scratch_at, result = TileTensor((600,), 0, whole), TileTensor((400,), 20, whole)
    tile = Tile(call, (TileTensor((8, 0), 12, BlockRows(3, 1)),), result, scratch_at, 5, whole)
    image = pack(tile, KernelTable({"k": 0x8001}), info(4, 0x20000000), at=1024)
    word = struct.Struct("<I").unpack_from
    data, base = image.data, 0x20000000 + 1024

    def at(address: int, count: int) -> tuple[int, ...]:
        return struct.unpack_from(f"<{count}I", data, address - base)

    kernel, params, inputs, output, scratch, rows, block_rows = at(0x20000000 + image.op_offset, 7)
    assert (kernel, rows, block_rows) == (0x8001, 5, 5)
    table, none, number, scale = at(params, 4)
    assert at(table, 2) == (7, 8)
    assert (none, number) == (0, 0xFFFFFFFE)
    assert struct.pack("<I", scale) == struct.pack("<f", 0.5)
    (first,) = at(inputs, 1)
    memory, offsets, row_bytes, height, lead = at(first, 5)
    assert (memory, row_bytes, height, lead) == (0x20000000, 12, 3, 1)
    assert at(offsets, 2) == (2, 0)
    assert at(at(output, 4)[1], 1) == (100,)
    assert at(scratch, 5)[2:] == (0, 5, 0)
    assert word(data, 0)[0] == 7  # constants come first


def one_row(offset: int) -> TileTensor:
    return TileTensor((offset,), 1, BlockRows(1))


def test_offsets_of_two_bytes_and_their_limit() -> None:
    small = Tile(KernelCall("k"), (), one_row(4 * 65535), None, 1, BlockRows(1))
    device = info(4, offset_bytes=2)
    assert b"\xff\xff" in pack(small, KernelTable({"k": 1}), device, at=0).data
    far = Tile(KernelCall("k"), (), one_row(4 * 65536), None, 1, BlockRows(1))
    with pytest.raises(ValueError, match="does not fit the 2-byte tables"):
        pack(far, KernelTable({"k": 1}), device, at=0)


def test_what_is_refused() -> None:
    device = info(8)
    odd = Tile(KernelCall("k"), (), one_row(2), None, 1, BlockRows(1))
    with pytest.raises(ValueError, match="not multiples of 4"):
        pack(odd, KernelTable({"k": 1}), device, at=0)
    fine = Tile(KernelCall("k", {"n": 1, "table": None}), (), one_row(0), None, 1, BlockRows(1))
    with pytest.raises(ValueError, match="table follows a scalar"):
        pack(fine, KernelTable({"k": 1}), device, at=0)
    with pytest.raises(ValueError, match="no kernel x"):
        pack(
            Tile(KernelCall("x"), (), fine.output, None, 1, BlockRows(1)), KernelTable({"k": 1}), device, at=0
        )
    with pytest.raises(ValueError, match="not aligned"):
        pack(fine, KernelTable({"k": 1}), device, at=4)


@pytest.mark.parametrize(("before", "after", "parts"), [
    (b"", b"abc", [(0, 3)]),
    (b"abc", b"abc", []),
    (b"abc", b"ab", []),
    (b"x" * 99, b"y" + b"x" * 98, [(0, 1)]),
    (b"x" * 99, b"y" + b"x" * 20 + b"y" + b"x" * 77, [(0, 22)]),
    (b"x" * 99, b"y" + b"x" * 40 + b"y" + b"x" * 57 + b"zz", [(0, 1), (41, 42), (99, 101)]),
])  # fmt: skip
def test_changes(before: bytes, after: bytes, parts: Sequence[tuple[int, int]]) -> None:
    assert _changes(before, after) == [Interval(*part) for part in parts]


def convolution() -> tuple[Graph, np.ndarray]:
    """A 3x3 convolution of stride 2 over (12, 10, 8)."""
    rng = np.random.default_rng(4)
    conv = Conv2d(out_channels=6, kernel_shape=(3, 3), stride=(2, 2), pads=(1, 1, 1, 1))
    shape = conv.loops(((12, 10, 8),)).output_shape()
    x = Tensor("x", (12, 10, 8), DType.INT8, Quantization(0.05, 3))
    y = Tensor("y", shape, DType.INT8, Quantization(0.4, -5))
    constants = {
        "weights": rng.integers(-127, 128, (6, 3, 3, 8)).astype(np.int8),
        "bias": rng.integers(-500, 500, 6).astype(np.int32),
        "weight_scale": rng.uniform(0.01, 0.02, 6).astype(np.float32),
    }
    borders = [
        (GraphIO(tensor.name, tensor.name, tensor.shape, "int8", np.arange(tensor.elements, dtype=np.int32)),)
        for tensor in (x, y)
    ]
    graph = Graph("g", {"x": x, "y": y}, (Operator("conv", conv, ("x",), "y", constants),), *borders)
    return graph, rng.integers(-128, 128, x.shape).astype(np.int8)


def call_of(graph: Graph, operator: Operator) -> KernelCall:
    return operator.op.kernel(operator, graph.input_tensors(operator), graph.tensors["y"])


def run_in_blocks(session: Session, table: KernelTable, height: int) -> bytes:
    """The convolution's output, in blocks of `height` rows that lie apart; the input in blocks of 5."""
    graph, x = convolution()
    (operator,) = graph.operators
    y = graph.tensors["y"]
    call = call_of(graph, operator)
    placed = TileTensor((2000, 1000, 0), graph.tensors["x"].row_bytes, BlockRows(5))
    for block, offset in enumerate(placed.offsets):
        session.write(0, offset, x[5 * block : 5 * block + 5].tobytes())
    count = -(-y.shape[0] // height)
    size = BlockRows(height)
    output = TileTensor(tuple(4000 + 512 * block for block in range(count)), y.row_bytes, size)
    scratch = TileTensor((8000,) * count, 0, size) if call.scratch_bytes else None
    image = pack(Tile(call, (placed,), output, scratch, y.shape[0], size), table, session.info, at=20_000)
    out = b""
    for block, offset in enumerate(output.offsets):
        rows = Interval(block * height, min(y.shape[0], (block + 1) * height))
        session.write(0, image.at, image.data)
        session.call(0, image.op_offset, rows.lo, rows.hi)
        out += session.read(0, offset, len(rows) * y.row_bytes)
    return out


@pytest.fixture(scope="module")
def host_output() -> bytes:
    bench = machine()
    session, table = bench.session, bench.kernels(KERNELS[0])
    whole = run_in_blocks(session, table, 6)
    assert run_in_blocks(session, table, 2) == whole
    graph, _ = convolution()
    (operator,) = graph.operators
    call = call_of(graph, operator)
    assert TileTimer(session, table).time(graph, operator, call, Interval(0, 6)).ticks > 0
    return whole


@pytest.fixture(scope="module", params=["mps2-an386", "stm32f405", "riscv32-virt"])
def device(request: pytest.FixtureRequest) -> Iterator[tuple[Session, KernelTable, FlashRegion]]:
    board = load_board(request.param)
    if board.emulator is None or shutil.which(board.emulator.qemu) is None:
        pytest.skip("its emulator is not installed")
    firmware = build_firmware(
        board, bench_sources(KERNELS, ARENA_BYTES, fuses_products=board.fuses_products), KERNELS, emulate=True
    )
    flash = FlashRegion.of(board)
    assert flash is not None
    with (
        Emulator(board, firmware.elf) as emulator,
        connect(emulator.url, board=board.name, firmware_hash=firmware.hash, timeout_s=20) as session,
    ):
        yield session, KernelTable.of(session, KERNELS), flash


def test_a_device_computes_what_the_host_does(
    device: tuple[Session, KernelTable, FlashRegion], host_output: bytes
) -> None:
    session, table, _ = device
    assert run_in_blocks(session, table, 6) == host_output
    assert run_in_blocks(session, table, 4) == host_output
    assert len(np.unique(np.frombuffer(host_output, np.int8))) > 10


def test_times_are_the_same_each_time(device: tuple[Session, KernelTable, FlashRegion]) -> None:
    session, table, flash = device
    graph, _ = convolution()
    (operator,) = graph.operators
    timer = TileTimer(session, table, flash=flash)
    cuts = [(Interval(0, 6), 12), (Interval(0, 2), 5), (Interval(2, 4), 5), (Interval(4, 6), 1)]
    call = call_of(graph, operator)

    def timed(rows: Interval, cut: int) -> Ticks:
        return timer.time(graph, operator, call, rows, input_block_rows=(cut,))

    first = [timed(*each) for each in cuts]
    again = [timed(*each) for each in reversed(cuts)]
    # a counter that does not count instructions may end a tick sooner or later
    assert all(abs(one.ticks - two.ticks) <= 1 for one, two in zip(first, again[::-1], strict=True))
    assert not any(ticks.disturbed for ticks in first)
    whole, *parts = (ticks.ticks for ticks in first)
    assert 0.9 * whole < sum(parts) < 1.3 * whole
    real = TileTimer(session, table).time(graph, operator, call, Interval(0, 2), input_block_rows=(5,))
    real_constants = real.ticks
    assert abs(real_constants - parts[0]) < 0.01 * parts[0]  # clamping may branch
    # others have written to the arena meanwhile
    assert abs(timed(Interval(4, 6), 1).ticks - parts[2]) <= 1


def test_kernels_are_found_in_their_sources() -> None:
    assert kernels_in("int c;\n\nvoid mcud_b(const mcud_op *op, int32_t f, int32_t e)\n{\n}\n") == ("b",)
    assert kernels_in("void mcud_a(const mcud_op *op,\n            int32_t f, int32_t e)\n{\n}\n") == ("a",)
    assert set(KERNELS) <= set(all_kernels())
