"""The kernels of an instruction set against the portable ones: the same bits, whatever the shape and the cut.

The host runs portable C; emulated boards run what their cores select in mcud_simd.h, and those with vectors
the kernels made for them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import pytest
from bench import Machine, build_bench, machine
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import load_board
from mcudeploy.codegen.bench import bench_sources
from mcudeploy.codegen.kernelfiles import source_index
from mcudeploy.device.session import Session, connect
from mcudeploy.device.tile import KernelTable, Tile, TileTensor, pack
from mcudeploy.extensions.int16.conv_int16 import Conv2dInt16, SumScales, SumTies
from mcudeploy.extensions.int16.int16 import UNBOUNDED, Bounds, TwiceScale
from mcudeploy.extensions.int16.lstm_int8 import LSTM_GATES, NO_CLIP, LstmInt8
from mcudeploy.ir.block_rows import BlockRows
from mcudeploy.ir.graph import DType, Operator, Quantization, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import S4W, TWICE, KernelCall
from mcudeploy.ops.conv.affine import Affine
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.conv.conv_s4w import S4W_TWINS
from mcudeploy.ops.conv.conv_twice import TWINS
from mcudeploy.ops.image.resize import COORDINATE_MODES, Resize, resize_samples
from mcudeploy.ops.matrix.block_weights import BlockDense
from mcudeploy.ops.matrix.matmul import MatMul
from mcudeploy.ops.pool.pool import AveragePool, MaxPool
from mcudeploy.ops.reduce.norm import LayerNorm
from mcudeploy.ops.reduce.softmax import Softmax
from mcudeploy.ops.scalar.elementwise import Binary, Lut
from mcudeploy.toolchain import Emulator, build_firmware
from mcudeploy.toolchain.firmware_build import SANITIZE_FLAGS
from tests.weekly import examples, sample

FLOAT_KERNELS = (
    *("conv2d_f32", "conv2d_f32_1x1", "conv2d_f32_full", "conv2d_f32_gathered"),
    *("conv2d_f32_s8w", "conv2d_f32_1x1_s8w", "conv2d_f32_full_s8w", "dwconv2d_f32_s8w", "dwconv2d_f32"),
    *("add_f32", "sub_f32", "mul_f32", "matmul_f32", "matmul_f32_bt", "dense_f32", "dense_f32_blocks"),
)
KERNELS = (
    *(
        "add_s8",
        "conv2d_s8",
        "conv2d_s8_1x1",
        "conv2d_s8_1x1_direct",
        "conv2d_s8_1x1_dual",
        "conv2d_s8_1x1_wide",
    ),
    "conv2d_s8_wide",
    "conv2d_s8_first_wide",
    "conv2d_s8_by_rows",
    *("conv2d_s8_deep", "conv2d_s8_full", "dwconv2d_s8", "dwconv2d_s8_rows", "dwconv2d_s8_multiplied"),
    "dwconv2d_s8_pairs",
    *("conv2d_s8_w1x4", "conv2d_s8_w2x4", "conv2d_s8_w4x4", "conv2d_s8_w4x4_mve"),
    *("add_s8_tflite", "reduce_mean_s8"),
    *("conv2d_s16", "conv2d_s16_3x2", "dwconv2d_s16"),
    *("add_s8_mve", "conv2d_s8_mve", "conv2d_s8_1x1_mve", "conv2d_s8_by_rows_mve", "conv2d_s8_full_mve"),
    "conv2d_s8_first_mve",
    *("dwconv2d_s8_lines_mve", "dwconv2d_s8_mve", "dwconv2d_s8_rows_mve"),
    *FLOAT_KERNELS,
    *("conv2d_s8_asymmetric", "dwconv2d_s8_asymmetric"),
    *("conv2d_s8_rvv", "conv2d_s8_1x1_rvv", "conv2d_s8_by_rows_rvv", "conv2d_s8_full_rvv", "dwconv2d_s8_rvv"),
    *("affine_s8", "avgpool_s8", "lut_s8", "maxpool_s8", "mul_s8", "softmax_s8"),
    *("matmul_s8", "matmul_s8_bt", "matmul_s8_mve", "matmul_s8_wide"),
    *("layer_norm_s8", "lstm_s8"),
    *("resize_linear_f32", "resize_linear_s8", "resize_linear_s8_mve"),
    *sorted(S4W_TWINS),
    *(f"{name}{TWICE}" for name in sorted(TWINS)),
)
PAIRED = (
    *("conv2d_s8_1x1_dual", "conv2d_s8_1x1_wide", "conv2d_s8_first_wide", "conv2d_s8_wide"),
    *("conv2d_s8_w1x4", "conv2d_s8_w2x4", "conv2d_s8_w4x4", "matmul_s8_wide"),
)
"""Kernels whose loops a Cortex-M7 has in another order."""
ARENA_BYTES = 120_000
IMAGE_AT = 49_152


@dataclass(frozen=True, slots=True)
class Device:
    session: Session
    kernels: KernelTable
    isa: Isa = Isa.ANY
    fused: bool = True


@dataclass(frozen=True, slots=True)
class Work:
    """One operator with the values of its inputs; all tensors are in blocks of `height` rows."""

    operator: Operator
    inputs: tuple[Tensor, ...]
    output: Tensor
    values: tuple[bytes, ...]
    height: int

    def calls(self, isa: Isa) -> tuple[KernelCall, ...]:
        """The variants that a core can run."""
        return self.operator.op.kernel(self.operator, self.inputs, self.output).variants(isa)

    def placed(self) -> tuple[tuple[TileTensor, ...], int]:
        """The inputs in an arena, and the first byte after them."""
        at, placed = 0, []
        for tensor, data in zip(self.inputs, self.values, strict=True):
            offsets = []
            for first in range(0, len(data), self.height * tensor.row_bytes):
                offsets.append(at)
                at += -(-len(data[first : first + self.height * tensor.row_bytes]) // 4) * 4 + 4
            placed.append(TileTensor(tuple(offsets), tensor.row_bytes, BlockRows(self.height)))
        return tuple(placed), at


@pytest.fixture(scope="module")
def host() -> Device:
    """Portable C, under sanitizers."""
    bench = machine()
    return Device(bench.session, bench.kernels(KERNELS[0]))


@pytest.fixture(scope="module")
def host_without_fma(tmp_path_factory: pytest.TempPathFactory) -> Device:
    """Portable C of float kernels that round a product before they add it."""
    folder = tmp_path_factory.mktemp("kernels")
    for kernel in (*FLOAT_KERNELS, "mcud_pixel_f32"):
        (folder / f"{kernel}.c").write_text(source_index()[f"{kernel}.c"].text)
    bench = Machine(build_bench(flags=(*SANITIZE_FLAGS, "-DMCUD_FUSES_F32=0"), kernels=folder))
    return Device(bench.session, bench.kernels(FLOAT_KERNELS[0]))


BOARDS = sample(
    ["cortex-m0", "mps2-an385", "mps2-an386", "mps2-an505", "mps3-an547", "riscv32-virt-v"],
    ["cortex-m0", "mps2-an386", "mps3-an547", "riscv32-virt-v"],
)
"""Cortex-M33 has the text of Cortex-M4; Cortex-M3 (mps2-an385) adds single instructions."""


@pytest.fixture(scope="module", params=BOARDS)
def board(request: pytest.FixtureRequest) -> Iterator[Device]:
    """A core with the DSP extension and an FPU: Cortex-M4, Cortex-M33; with vectors too: Cortex-M55. A
    RISC-V core with vectors. Or the code of a Cortex-M0, which has neither, on an emulated Cortex-M3 that has
    the memory needed.
    """
    small = request.param == "cortex-m0"
    found = load_board("mps2-an385" if small else request.param)
    if small:
        found = found.model_copy(update={"cpu_flags": ("-mcpu=cortex-m0", "-mthumb")})
    if found.emulator is None or shutil.which(found.emulator.qemu) is None:
        pytest.skip("its emulator is not installed")
    with running(found) as session:
        yield Device(session, KernelTable.of(session, KERNELS), found.isa, found.fuses_products)


@pytest.fixture(scope="module", params=[256, 1024])
def long_vectors(request: pytest.FixtureRequest) -> Iterator[Device]:
    """A RISC-V core whose vectors have this number of bits."""
    board = load_board("riscv32-virt-v")
    if board.emulator is None or shutil.which(board.emulator.qemu) is None:
        pytest.skip("its emulator is not installed")
    arguments = tuple(it.replace("vlen=128", f"vlen={request.param}") for it in board.emulator.args)
    assert arguments != board.emulator.args
    emulator = board.emulator.model_copy(update={"args": arguments})
    with running(board.model_copy(update={"emulator": emulator})) as session:
        yield Device(session, KernelTable.of(session, KERNELS), board.isa)


@pytest.fixture(scope="module")
def paired() -> Iterator[Device]:
    """The loops of a Cortex-M7 on an emulated Cortex-M4."""
    board = load_board("mps2-an386")
    if board.emulator is None or shutil.which(board.emulator.qemu) is None:
        pytest.skip("its emulator is not installed")
    with running(board, PAIRED, pairs_loads=True) as session:
        yield Device(session, KernelTable.of(session, PAIRED), board.isa)


@contextmanager
def running(
    board: Board, kernels: Sequence[str] = KERNELS, *, pairs_loads: bool = False
) -> Iterator[Session]:
    """A session with kernels on an emulated board."""
    sources = bench_sources(
        kernels, ARENA_BYTES, fuses_products=board.fuses_products, pairs_loads=pairs_loads
    )
    firmware = build_firmware(board, sources, kernels, emulate=True)
    with (
        Emulator(board, firmware.elf) as emulator,
        connect(emulator.url, board=board.name, firmware_hash=firmware.hash, timeout_s=20) as session,
    ):
        yield session


def run(device: Device, work: Work, call: KernelCall) -> bytes:
    """The output; blocks of the output and of the inputs, which `send` has written, lie apart."""
    rows = work.output.shape[0]
    placed, at = work.placed()
    count = -(-rows // work.height)
    pitch = -(-work.height * work.output.row_bytes // 4) * 4 + 4
    size = BlockRows(work.height)
    output = TileTensor(tuple(at + pitch * block for block in range(count)), work.output.row_bytes, size)
    at += pitch * count
    scratch = TileTensor((at,) * count, 0, size) if call.scratch_bytes else None
    assert at + call.scratch_bytes <= IMAGE_AT
    tile = Tile(call, placed, output, scratch, rows, size)
    image = pack(tile, device.kernels, device.session.info, at=IMAGE_AT)
    assume(IMAGE_AT + len(image.data) <= ARENA_BYTES)
    device.session.write(0, image.at, image.data)
    out = b""
    for block, offset in enumerate(output.offsets):
        part = Interval(block * work.height, min(rows, (block + 1) * work.height))
        device.session.call(0, image.op_offset, part.lo, part.hi)
        out += device.session.read(0, offset, len(part) * work.output.row_bytes)
    return out


def send(device: Device, work: Work) -> None:
    """Write the inputs, which all variants read."""
    for tensor, data in zip(work.placed()[0], work.values, strict=True):
        size = work.height * tensor.row_bytes
        for block, offset in enumerate(tensor.offsets):
            device.session.write(0, offset, data[block * size : (block + 1) * size])


def _tensor(name: str, shape: Shape, scale: float, zero_point: int) -> Tensor:
    return Tensor(name, shape, DType.INT8, Quantization(scale, zero_point))


sizes = st.integers(1, 7)
pairs = st.tuples(st.integers(1, 3), st.integers(1, 3))


@st.composite
def geometries(draw: st.DrawFn, many: int) -> tuple[Conv2d, Shape]:
    """A convolution of any kind, without a clip, and its input's shape: few channels, or about `many`."""
    kind = draw(st.sampled_from(["general", "pointwise", "whole", "depthwise"]))
    shape = (draw(sizes), draw(sizes), draw(st.one_of(st.integers(1, 20), st.integers(many, many + 10))))
    rows, cols, channels = shape
    outputs, groups = draw(st.integers(1, 11)), 1
    kernel, stride, dilation, pads = (1, 1), (1, 1), (1, 1), (0, 0, 0, 0)
    if kind == "whole":
        kernel = (rows, cols)
    elif kind == "pointwise":
        stride = draw(pairs)
    else:
        stride, dilation = draw(pairs), draw(pairs)
        kernel = (draw(st.integers(1, 4)), draw(st.integers(1, 4)))
        top, left = (draw(st.integers(0, size - 1)) for size in kernel)
        reach = [dilation[i] * (kernel[i] - 1) + 1 for i in range(2)]
        more = [max(0, reach[i] - shape[i] - before) for i, before in enumerate((top, left))]
        pads = (top, left, draw(st.integers(0, 2)) + more[0], draw(st.integers(0, 2)) + more[1])
        groups = channels if kind == "depthwise" else draw(st.sampled_from([1, channels]))
        outputs = groups * draw(st.integers(1, 2)) if groups > 1 else outputs
    return Conv2d(outputs, kernel, stride, dilation, pads, groups), shape


@st.composite
def depthwise_geometries(draw: st.DrawFn) -> tuple[Conv2d, Shape]:
    """A depthwise convolution by 3x3, or of 5 or 7 columns, with any strides, of narrow and of wide rows."""
    kernel = draw(st.sampled_from([(3, 3), (3, 3), (5, 5), (7, 7), (draw(sizes), 5), (draw(sizes), 7)]))
    channels = draw(st.one_of(st.integers(2, 9), st.integers(15, 37)))
    shape = (draw(st.integers(3, 24)), draw(st.one_of(sizes, st.integers(30, 70))), channels)
    assume(np.prod(shape) < 6000)
    top, left, bottom, right = (draw(st.integers(0, size - 1)) for size in kernel * 2)
    bottom, right = max(bottom, kernel[0] - shape[0] - top), max(right, kernel[1] - shape[1] - left)
    conv = Conv2d(shape[2], kernel, draw(pairs), pads=(top, left, bottom, right), groups=shape[2])
    return conv, shape


@st.composite
def blocks_of_pixels(draw: st.DrawFn) -> tuple[Conv2d, Shape]:
    """A convolution of rows of 1 to 13 pixels, which are taken by four, three and one."""
    channels = draw(st.one_of(st.integers(1, 5), st.integers(6, 40)))
    shape = (draw(st.integers(1, 3)), draw(st.integers(1, 13)), channels)
    kernel = draw(st.sampled_from([(1, 1), (1, 1), (3, 3), (2, 4), (5, 2)]))
    pads = (kernel[0] // 2, kernel[1] // 2, kernel[0] - 1, kernel[1] - 1)
    groups = draw(st.sampled_from([1, 1, 2])) if channels % 2 == 0 else 1
    stride = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    return Conv2d(groups * draw(st.integers(1, 9)), kernel, stride, pads=pads, groups=groups), shape


@st.composite
def columns(draw: st.DrawFn) -> tuple[Conv2d, Shape]:
    """A convolution whose rows have one window, which has all columns; of all channels or of each."""
    cols, channels = draw(st.sampled_from([1, 1, 3])), draw(st.one_of(st.integers(1, 9), st.integers(15, 40)))
    rows, height = draw(st.integers(1, 24)), draw(st.integers(1, 6))
    top = draw(st.integers(0, height - 1))
    bottom = max(draw(st.integers(0, 2)), height - rows - top)
    groups = draw(st.sampled_from([1, channels]))
    outputs = draw(st.integers(1, 9)) if groups == 1 else channels
    stride, pads = (draw(st.integers(1, 3)), 1), (top, 0, bottom, 0)
    return Conv2d(outputs, (height, cols), stride, pads=pads, groups=groups), (rows, cols, channels)


@st.composite
def many_outputs(draw: st.DrawFn) -> tuple[Conv2d, Shape]:
    """A convolution with more output channels than the sums of a vector."""
    shape = (draw(st.integers(1, 4)), draw(st.integers(1, 8)), draw(st.integers(1, 9)))
    kernel = draw(st.sampled_from([(1, 1), (2, 3), shape[:2]]))
    pads = (0, 0, 0, 0) if kernel != (2, 3) else (1, 1, 1, 1)
    return Conv2d(draw(st.integers(28, 140)), kernel, pads=pads), shape


@st.composite
def tiles(draw: st.DrawFn) -> tuple[Conv2d, Shape]:
    """A convolution that is computed by tiles too: several of them, whole ones and parts."""
    shape = (draw(st.integers(1, 11)), draw(st.integers(1, 14)), 4 * draw(st.integers(1, 9)))
    top, left, bottom, right = (draw(st.integers(0, 2)) for _ in range(4))
    pads = (top, left, max(bottom, 3 - shape[0] - top), max(right, 3 - shape[1] - left))
    return Conv2d(draw(st.integers(1, 9)), (3, 3), pads=pads), shape


@st.composite
def convolutions(draw: st.DrawFn, of: st.SearchStrategy[tuple[Conv2d, Shape]], large: bool = True) -> Work:
    """An int8 convolution; its outputs use all of int8, and some channels saturate or are dead.

    `large`: a channel may have a multiplier of 2^31 and more.
    """
    conv, shape = draw(of)
    outputs = conv.out_channels
    weights = (outputs, *conv.kernel_shape, shape[2] // conv.groups)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    depth = np.prod(weights[1:])
    spread = 60 / (128 * 74 * depth**0.5) * draw(st.sampled_from([0.2, 1.0, 4.0]))
    x = _tensor("x", shape, 1.0, draw(st.integers(-128, 127)))
    y = _tensor("y", conv.loops((shape,)).output_shape(), 1.0, draw(st.integers(-128, 127)))
    constants = {
        "weights": rng.integers(-128, 128, weights).astype(np.int8),
        "bias": rng.integers(-5000, 5000, outputs).astype(np.int32),
        "weight_scale": (spread * rng.uniform(0.1, 2, outputs)).astype(np.float32),
    }
    if draw(st.integers(0, 3)) == 0:
        constants["weights"] = rng.integers(0, 256, weights).astype(np.int16) - draw(st.sampled_from([0, 90]))
    if large and draw(st.booleans()):
        constants["weight_scale"][0] = draw(st.sampled_from([0.3, 0.3, 0.6, 9.0]))
    operator = Operator("conv", conv, ("x",), "y", constants)
    values = rng.integers(-128, 128, shape).astype(np.int8).tobytes()
    return Work(operator, (x,), y, (values,), draw(st.integers(1, y.shape[0])))


@st.composite
def pixels(draw: st.DrawFn) -> tuple[Conv2d, Shape]:
    """A layer of one pixel, whose channels are taken by eight, four and one."""
    return Conv2d(draw(st.one_of(st.just(1), st.integers(2, 30)))), (1, 1, draw(st.integers(1, 40)))


@st.composite
def float_convolutions(draw: st.DrawFn) -> Work:
    """A float32 convolution, with or without a clip, of float32 or int8 weights."""
    geometry, shape = draw(st.one_of(geometries(many=30), pixels()))
    low = draw(st.sampled_from([-np.inf, 0.0]))
    conv = replace(geometry, low=low, high=draw(st.sampled_from([np.inf, 1.5])))
    weights = (conv.out_channels, *conv.kernel_shape, shape[2] // conv.groups)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    x = Tensor("x", shape, DType.FLOAT32)
    y = Tensor("y", conv.loops((shape,)).output_shape(), DType.FLOAT32)
    constants = {
        "weights": rng.normal(0, 1, weights).astype(np.float32),
        "bias": rng.normal(0, 1, conv.out_channels).astype(np.float32),
    }
    if draw(st.booleans()):
        constants |= {
            "weights": rng.integers(-128, 128, weights).astype(np.int8),
            "weight_scale": rng.uniform(0.001, 0.02, conv.out_channels).astype(np.float32),
        }
    values = rng.normal(0, 1, shape).astype(np.float32).tobytes()
    height = draw(st.integers(1, y.shape[0]))
    return Work(Operator("conv", conv, ("x",), "y", constants), (x,), y, (values,), height)


@st.composite
def block_layers(draw: st.DrawFn) -> Work:
    """A layer by packed weights in blocks, of one pixel or several."""
    block, bits = draw(st.sampled_from([4, 8, 32, 64])), draw(st.sampled_from([2, 4, 4, 8]))
    shape = (draw(st.integers(1, 3)), draw(st.integers(1, 5)), draw(st.integers(1, 90)))
    dense = BlockDense(draw(st.integers(1, 11)), block, bits, high=draw(st.sampled_from([np.inf, 1.5])))
    rng, half = np.random.default_rng(draw(st.integers(0, 2**32 - 1))), 1 << bits - 1
    parts = dense.out_channels, -(-shape[2] // block)
    constants = {
        "weights": rng.integers(-half, half, (dense.out_channels, shape[2])).astype(np.int8),
        "scale": rng.uniform(0.001, 0.02, parts).astype(np.float32),
        "bias": rng.normal(0, 1, dense.out_channels).astype(np.float32),
    }
    if draw(st.booleans()):
        constants["zero"] = rng.integers(-half, half, parts).astype(np.int8)
    x = Tensor("x", shape, DType.FLOAT32)
    y = Tensor("y", dense.loops((shape,)).output_shape(), DType.FLOAT32)
    values = rng.normal(0, 1, shape).astype(np.float32).tobytes()
    height = draw(st.integers(1, y.shape[0]))
    return Work(Operator("dense", dense, ("x",), "y", constants), (x,), y, (values,), height)


@st.composite
def int16_convolutions(draw: st.DrawFn) -> Work:
    """A convolution of int16 values, whose sums take more than 32 bits if it is deep."""
    like, shape = draw(st.one_of(geometries(many=30), geometries(many=600), depthwise_geometries()))
    assume(np.prod(shape) < 6000)
    ties: SumTies = draw(st.sampled_from(["up", "away"]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    weights = (like.out_channels, *like.kernel_shape, shape[2] // like.groups)
    spread = draw(st.sampled_from([1.0, 4.0, 3000.0])) / (74 * np.prod(weights[1:]) ** 0.5)
    scales = SumScales.of(spread * rng.uniform(0.1, 2, like.out_channels), ties)
    conv = Conv2dInt16(
        *(like.out_channels, like.kernel_shape, like.stride, like.dilation, like.pads, like.groups),
        *(ties, scales.left_shift, draw(st.sampled_from([UNBOUNDED, Bounds(0, 9000)]))),
    )
    constants = {
        "weights": rng.integers(-128, 128, weights).astype(np.int8),
        "bias": rng.integers(-(2**31), 2**31, (2, like.out_channels)).astype(np.int32) >> [[0], [24]],
        "multipliers": scales.multipliers,
        "shifts": scales.shifts,
    }
    x = Tensor("x", shape, DType.INT16)
    y = Tensor("y", conv.loops((shape,)).output_shape(), DType.INT16)
    assume(y.elements < 12_000)
    values = rng.integers(-(2**15), 2**15, shape).astype(np.int16).tobytes()
    height = draw(st.integers(1, y.shape[0]))
    return Work(Operator("conv", conv, ("x",), "y", constants), (x,), y, (values,), height)


@st.composite
def pools(draw: st.DrawFn) -> Work:
    """A maximum or average under any window, also one whose sums take more than 16 bits."""
    rows, cols = draw(st.sampled_from([(17, 16), (draw(sizes), draw(sizes))]))
    shape = (rows, cols, draw(st.integers(1, 40)))
    whole = draw(st.booleans())
    kernel = shape[:2] if whole else (draw(st.integers(1, rows)), draw(st.integers(1, cols)))
    stride = draw(pairs)
    top, left, bottom, right = (0 if whole else draw(st.integers(0, size - 1)) for size in kernel * 2)
    shapes = (
        (rows + top + bottom - kernel[0]) // stride[0] + 1,
        (cols + left + right - kernel[1]) // stride[1] + 1,
    )
    window = (kernel, stride, (1, 1), (top, left, bottom, right), shapes)
    largest = draw(st.booleans())
    op = MaxPool(*window) if largest else AveragePool(*window, count_include_pad=draw(st.booleans()))
    x = _tensor("x", shape, 1.0, draw(st.integers(-128, 127)))
    y = _tensor("y", (*shapes, shape[2]), draw(st.sampled_from([0.3, 1.0])), draw(st.integers(-128, 127)))
    y = replace(y, quantization=x.quantization) if largest else y
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = rng.integers(-128, 128, shape).astype(np.int8).tobytes()
    return Work(Operator("pool", op, ("x",), "y", {}), (x,), y, (values,), draw(st.integers(1, shapes[0])))


@st.composite
def softmaxes(draw: st.DrawFn) -> Work:
    """A softmax within rows, of flat and of steep values."""
    shape = (draw(st.integers(1, 3)), draw(sizes), draw(st.integers(1, 70)))
    x = _tensor("x", shape, draw(st.sampled_from([0.001, 0.05, 0.3])), draw(st.integers(-128, 127)))
    y = _tensor("y", shape, draw(st.sampled_from([1 / 256, 0.003, 0.05])), -128)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = rng.integers(-128, 128, shape).astype(np.int8).tobytes()
    operator = Operator("softmax", Softmax(draw(st.integers(1, 2))), ("x",), "y", {})
    return Work(operator, (x,), y, (values,), draw(st.integers(1, shape[0])))


@st.composite
def norms(draw: st.DrawFn) -> Work:
    """A layer normalisation of any number of channels, of spread and of equal values."""
    shape = (draw(st.integers(1, 3)), draw(sizes), draw(st.integers(1, 70)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    x = _tensor("x", shape, draw(st.sampled_from([0.001, 0.05])), draw(st.integers(-128, 127)))
    y = _tensor("y", shape, draw(st.sampled_from([0.01, 0.03])), draw(st.integers(-128, 127)))
    constants = {name: rng.normal(0, 1, shape[2]).astype(np.float32) for name in ("scale", "bias")}
    operator = Operator("norm", LayerNorm(1e-5, draw(st.booleans())), ("x",), "y", constants)
    values = rng.integers(-128, 128, shape) >> draw(st.sampled_from([0, 3, 8]))
    return Work(operator, (x,), y, (values.astype(np.int8).tobytes(),), draw(st.integers(1, shape[0])))


@st.composite
def tables(draw: st.DrawFn) -> Work:
    """Values through a table."""
    shape = (draw(sizes), draw(sizes), draw(sizes))
    x, y = (_tensor(name, shape, 1.0, 0) for name in "xy")
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    operator = Operator("lut", Lut(), ("x",), "y", {"table": rng.integers(-128, 128, 256).astype(np.int8)})
    values = rng.integers(-128, 128, shape).astype(np.int8).tobytes()
    return Work(operator, (x,), y, (values,), draw(st.integers(1, shape[0])))


@st.composite
def affines(draw: st.DrawFn) -> Work:
    """Values scaled and shifted by channel, flat and steep, with or without a clip."""
    shape = (draw(sizes), draw(sizes), draw(st.integers(1, 20)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    steepness = 2.0 ** rng.uniform(-6, 8, shape[2])
    constants = {
        "factor": (rng.choice([-1, 1], shape[2]) * steepness).astype(np.float32),
        "offset": rng.normal(0, 80 * steepness).astype(np.float32),
    }
    x, y = (_tensor(name, shape, 1.0, draw(st.integers(-128, 127))) for name in "xy")
    op = Affine(low=draw(st.sampled_from([-np.inf, 0.0])), high=draw(st.sampled_from([np.inf, 30.0])))
    values = rng.integers(-128, 128, shape).astype(np.int8).tobytes()
    return Work(
        Operator("affine", op, ("x",), "y", constants), (x,), y, (values,), draw(st.integers(1, shape[0]))
    )


@st.composite
def binaries(draw: st.DrawFn) -> Work:
    """An addition, subtraction or product, with or without broadcasting, with or without a clip."""
    shape = (draw(sizes), draw(sizes), draw(st.integers(1, 20)))
    other = (shape[0], *(draw(st.sampled_from([1, size])) for size in shape[1:]))
    op = Binary(draw(st.sampled_from(["add", "sub", "mul"])), low=draw(st.sampled_from([-np.inf, 0.0])))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scales = [draw(st.sampled_from([0.25, 0.3, 1.0, 1.7])) for _ in range(2)]
    a, b = (_tensor(name, size, s, 3) for name, size, s in zip("ab", (shape, other), scales, strict=True))
    y = _tensor("y", shape, draw(st.sampled_from([1.0, 60.0])), draw(st.integers(-128, 127)))
    values = tuple(rng.integers(-128, 128, tensor.shape).astype(np.int8).tobytes() for tensor in (a, b))
    return Work(
        Operator("binary", op, ("a", "b"), "y", {}), (a, b), y, values, draw(st.integers(1, shape[0]))
    )


@st.composite
def products(draw: st.DrawFn) -> Work:
    """Products of two activations, with heads in rows or in columns, the second one transposed or not."""
    op = MatMul(draw(st.booleans()), transpose_b=draw(st.booleans()))
    heads, m, k, n = draw(st.integers(1, 3)), draw(sizes), draw(st.integers(1, 40)), draw(st.integers(1, 40))
    lines, width = (n, k) if op.transpose_b else (k, n)
    shapes = ((heads, m, k), (heads, lines, width)) if op.batched else ((m, heads, k), (lines, heads, width))
    a, b = (
        _tensor(name, shape, 1.0, draw(st.integers(-128, 127)))
        for name, shape in zip("ab", shapes, strict=True)
    )
    spread = draw(st.sampled_from([0.6, 100.0, 5000.0]))
    y = _tensor("y", op.loops(shapes).output_shape(), spread, draw(st.integers(-128, 127)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = tuple(rng.integers(-128, 128, shape).astype(np.int8).tobytes() for shape in shapes)
    return Work(
        Operator("product", op, ("a", "b"), "y", {}), (a, b), y, values, draw(st.integers(1, y.shape[0]))
    )


@st.composite
def recurrences(draw: st.DrawFn) -> Work:
    """A long short-term memory of few steps, of any scales and states."""
    steps, depth, hidden = draw(st.integers(1, 3)), draw(st.integers(1, 40)), draw(st.integers(1, 20))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    spread = draw(st.sampled_from([0.3, 1.0, 5.0])) * 5000 / (74 * 74)
    sizes_of_sums = LSTM_GATES * [depth] + LSTM_GATES * [hidden]
    scales = [spread / size**0.5 * rng.uniform(0.5, 2) for size in sizes_of_sums]
    op = LstmInt8(
        hidden,
        tuple(map(TwiceScale.of, scales)),
        TwiceScale.of(2.0**-23 * rng.uniform(0.5, 2)),
        draw(st.integers(-128, 127)),
        (draw(st.integers(-128, 127)), draw(st.integers(-128, 127))),
        draw(st.integers(0, 6)),
        draw(st.sampled_from([NO_CLIP, 20000])),
        draw(st.sampled_from(["steps", "last"])),
    )
    constants = {
        "weights": rng.integers(-128, 128, (LSTM_GATES * hidden, depth)).astype(np.int8),
        "recurrent": rng.integers(-128, 128, (LSTM_GATES * hidden, hidden)).astype(np.int8),
        "bias": rng.integers(-5000, 5000, LSTM_GATES * hidden).astype(np.int32),
    }
    x, h = _tensor("x", (1, steps, depth), 1.0, 0), _tensor("h", (1, 1, hidden), 1.0, 0)
    c = Tensor("c", (1, 1, hidden), DType.INT16)
    y = _tensor("y", op.loops((x.shape, h.shape, c.shape)).output_shape(), 1.0, 0)
    bytes_of = (rng.integers(-128, 128, it.size_bytes).astype(np.int8).tobytes() for it in (x, h, c))
    return Work(Operator("lstm", op, ("x", "h", "c"), "y", constants), (x, h, c), y, tuple(bytes_of), 1)


@st.composite
def resizes(draw: st.DrawFn) -> Work:
    """A linear resize to any size, twice the size with its many ties among them."""
    shape = (draw(sizes), draw(sizes), draw(st.integers(1, 20)))
    result = (2 * shape[0], 2 * shape[1]) if draw(st.booleans()) else (draw(sizes), draw(sizes))
    coordinates = draw(st.sampled_from(COORDINATE_MODES))
    rows, cols = (
        resize_samples(size, out, out / size, mode="linear", coordinates=coordinates)
        for size, out in zip(shape[:2], result, strict=True)
    )
    op = Resize("linear", rows, cols)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    height = draw(st.integers(1, result[0]))
    if draw(st.booleans()):
        x, y = (
            Tensor(name, size, DType.FLOAT32) for name, size in (("x", shape), ("y", (*result, shape[2])))
        )
        values = rng.normal(0, 1, shape).astype(np.float32).tobytes()
        return Work(Operator("resize", op, ("x",), "y", {}), (x,), y, (values,), height)
    x = _tensor("x", shape, draw(st.sampled_from([0.01, 1.0, 300.0])), draw(st.integers(-128, 127)))
    scale = draw(st.sampled_from([0.4, 1.0, 100.0]))
    y = _tensor("y", (*result, shape[2]), scale, draw(st.integers(-128, 127)))
    y = replace(y, quantization=x.quantization) if draw(st.booleans()) else y
    values = rng.integers(-128, 128, shape).astype(np.int8).tobytes()
    return Work(Operator("resize", op, ("x",), "y", {}), (x,), y, (values,), height)


def check(host: Device, board: Device, work: Work) -> None:
    """Every variant, on the host and on the board."""
    for device in (host, board):
        send(device, work)
    *others, usual = work.calls(Isa.DSP)
    wanted = run(host, work, usual)
    for other in others:
        assert run(host, work, other) == wanted, other.variant
    for call in work.calls(board.isa):
        assert run(board, work, call) == wanted, call.variant


unhurried = settings(
    max_examples=examples(8, 20),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


integer_convolutions = convolutions(geometries(many=80))


@given(work=convolutions(blocks_of_pixels(), large=False))
@settings(unhurried, max_examples=examples(6, 12))
def test_blocks_of_pixels_by_weights_of_16_bits(host: Device, board: Device, work: Work) -> None:
    assume(any(call.kernel.endswith("_wide") for call in work.calls(Isa.DSP)))
    check(host, board, work)


def _of_four_bits(work: Work) -> Work:
    """The same by weights from -8 to 7, those of some channels all -8."""
    constants = work.operator.constants
    weights = (constants["weights"] % 16 - 8).astype(np.int8)
    weights[constants["bias"] % 4 == 0] = -8
    own = {"weights": weights, "weight_scale": constants["weight_scale"] * np.float32(16)}
    return replace(work, operator=replace(work.operator, constants={**constants, **own}))


@given(
    work=convolutions(st.one_of(geometries(many=80), blocks_of_pixels(), tiles())).map(_of_four_bits),
    twice=st.booleans(),
)
@unhurried
def test_weights_of_four_bits(host: Device, board: Device, work: Work, twice: bool) -> None:
    work = _as_in_tflite(work) if twice else work
    assume(any(S4W in call.kernel for call in work.calls(Isa.ANY)))
    check(host, board, work)


@given(work=integer_convolutions)
@unhurried
def test_convolutions_of_a_core_are_those_of_portable_c(host: Device, board: Device, work: Work) -> None:
    check(host, board, work)


@given(
    work=st.one_of(
        convolutions(geometries(many=80)), convolutions(blocks_of_pixels() | tiles(), large=False), products()
    )
)
@settings(unhurried, max_examples=examples(20, 60))
def test_loads_beside_multiplications(host: Device, paired: Device, work: Work) -> None:
    calls = [call for call in work.calls(Isa.DSP) if call.kernel in PAIRED]
    assume(calls)
    for device in (host, paired):
        send(device, work)
    for call in calls:
        assert run(paired, work, call) == run(host, work, call), call.variant


def _of_floats(work: Work) -> Work:
    """The same of normal values."""
    rng = np.random.default_rng(len(work.values[0]))
    inputs = tuple(replace(it, dtype=DType.FLOAT32, quantization=None) for it in work.inputs)
    values = tuple(rng.normal(0, 1, it.shape).astype(np.float32).tobytes() for it in inputs)
    output = replace(work.output, dtype=DType.FLOAT32, quantization=None)
    height = min(work.height, 3)
    return replace(work, inputs=inputs, output=output, values=values, height=height)


@given(
    work=st.one_of(float_convolutions(), block_layers(), st.one_of(binaries(), products()).map(_of_floats))
)
@unhurried
def test_floats_of_a_core_are_those_of_portable_c(
    host: Device, host_without_fma: Device, board: Device, work: Work
) -> None:
    check(host if board.fused else host_without_fma, board, work)


@given(work=convolutions(many_outputs()))
@settings(unhurried, max_examples=examples(6, 12))
def test_more_channels_than_a_vector_has_sums(host: Device, board: Device, work: Work) -> None:
    check(host, board, work)


@given(work=st.one_of(integer_convolutions, convolutions(many_outputs()), binaries()))
@settings(unhurried, max_examples=examples(6, 12))
def test_vectors_of_any_length(host: Device, long_vectors: Device, work: Work) -> None:
    check(host, long_vectors, work)


def _as_in_tflite(work: Work) -> Work:
    """The same, rounded twice; every other convolution has many halves."""
    assert isinstance(work.operator.op, Conv2d | Binary)
    constants = dict(work.operator.constants)
    if constants and constants["bias"][0] % 2:
        constants["weight_scale"] = np.exp2(np.round(np.log2(constants["weight_scale"])))
    op = replace(work.operator.op, rounding="tflite")
    return replace(work, operator=replace(work.operator, op=op, constants=constants))


@given(
    work=st.one_of(
        convolutions(st.one_of(geometries(many=80), depthwise_geometries())),
        convolutions(st.one_of(tiles(), blocks_of_pixels()), large=False),
        binaries(),
    ).map(_as_in_tflite)
)
@unhurried
def test_results_that_are_rounded_twice(host: Device, board: Device, work: Work) -> None:
    check(host, board, work)


@given(work=int16_convolutions())
@settings(unhurried, max_examples=examples(8, 20))
def test_convolutions_of_int16(host: Device, board: Device, work: Work) -> None:
    check(host, board, work)


@given(work=convolutions(tiles(), large=False))
@settings(unhurried, max_examples=examples(4, 8))
def test_tiles_of_a_core_are_those_of_portable_c(host: Device, board: Device, work: Work) -> None:
    check(host, board, work)


@given(work=convolutions(columns(), large=False))
@settings(unhurried, max_examples=examples(6, 12))
def test_rows_of_one_window(host: Device, board: Device, work: Work) -> None:
    check(host, board, work)


@given(work=convolutions(depthwise_geometries()))
@unhurried
def test_depthwise_convolutions_of_a_core_are_those_of_portable_c(
    host: Device, board: Device, work: Work
) -> None:
    check(host, board, work)


@given(
    work=st.one_of(
        binaries(), affines(), pools(), pools(), softmaxes(), norms(), tables(), resizes(), resizes()
    )
)
@unhurried
def test_a_core_computes_what_portable_c_does(host: Device, board: Device, work: Work) -> None:
    check(host, board, work)


@given(work=recurrences())
@unhurried
def test_states_of_a_core_are_those_of_portable_c(host: Device, board: Device, work: Work) -> None:
    check(host, board, work)


@given(work=products())
@unhurried
def test_products_of_a_core_are_those_of_portable_c(host: Device, board: Device, work: Work) -> None:
    check(host, board, work)
