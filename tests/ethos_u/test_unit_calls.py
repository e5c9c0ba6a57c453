"""Calls of the unit: bits of the core's kernels by the functional model, and Vela as the second judge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from bench import machine

from mcudeploy.device.tile import Tile, TileTensor, pack
from mcudeploy.extensions.ethos_u import unit_offers as unit
from mcudeploy.extensions.ethos_u.registers import decode
from mcudeploy.extensions.ethos_u.unit_blocks import UNITS, UnitWindow
from mcudeploy.extensions.ethos_u.unit_steps import block_of
from mcudeploy.extensions.ethos_u.unit_time import find_block
from mcudeploy.extensions.int16.conv_int16 import Conv2dInt16, SumScales, SumTies
from mcudeploy.extensions.int16.int16 import Bounds
from mcudeploy.ir.block_rows import BlockRows
from mcudeploy.ir.graph import DType, Operator, Quantization, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.pool.pool import AveragePool, AveragePoolByRows, MaxPool
from mcudeploy.ops.reduce.reduce import Reduce

pytest.importorskip("ethosu", reason="Vela is not installed: pip install ethos-u-vela")

IMAGE_AT = 1 << 20
Case = tuple[Operator, Tensor, Tensor]


def tensor(name: str, shape: tuple[int, int, int], zero_point: int) -> Tensor:
    return Tensor(name, shape, DType.INT8, Quantization(1.0, zero_point))


def convolution(seed: int) -> tuple[Operator, Tensor, Tensor]:
    """A random convolution that the unit computes: dense, depthwise, pointwise or as large as its input."""
    rng = np.random.default_rng(seed)
    kind = ("general", "depthwise", "pointwise", "whole")[seed % 4]
    rows, cols, channels = (int(rng.integers(1, most)) for most in (12, 10, 40))
    kernel, stride, dilation, pads, groups = (1, 1), (1, 1), (1, 1), (0, 0, 0, 0), 1
    if kind == "whole":
        kernel = (rows, cols)
    elif kind != "pointwise":
        kernel = tuple(int(it) for it in rng.integers(1, 6, 2))
        stride = tuple(int(it) for it in rng.integers(1, 4, 2))
        dilation = tuple(int(it) for it in rng.integers(1, 3, 2))
        area = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
        pads = tuple(int(rng.integers(0, area[at % 2])) for at in range(4))
        rows, cols = (max(size, span) for size, span in zip((rows, cols), area, strict=True))
        groups = channels if kind == "depthwise" else 1
    outputs = channels if kind == "depthwise" else int(rng.integers(1, 40))
    rounding = "tflite" if rng.integers(2) else "once"
    conv = Conv2d(outputs, kernel, stride, dilation, pads, groups, rounding=rounding)
    if rng.integers(2):
        conv = replace(conv, low=-20.0, high=60.0)
    weights = (outputs, *kernel, channels // groups)
    spread = 60 / (128 * 74 * np.prod(weights[1:]) ** 0.5)
    values = rng.integers(-128, 128, weights).astype(np.int8)
    if rng.integers(3) == 0:
        values[rng.random(weights) < 0.8] = 0
    constants = {
        "weights": values,
        "bias": rng.integers(-5000, 5000, outputs).astype(np.int32),
        "weight_scale": (spread * rng.uniform(0.1, 2, outputs)).astype(np.float32),
    }
    x = tensor("x", (rows, cols, channels), int(rng.integers(-128, 128)))
    y = tensor("y", conv.loops((x.shape,)).output_shape(), int(rng.integers(-128, 128)))
    return Operator("conv", conv, ("x",), "y", constants), x, y


def convolution_int16(seed: int) -> tuple[Operator, Tensor, Tensor]:
    """A random convolution of 16-bit values that the unit computes; at some seeds as wide as its input."""
    operator, x, y = convolution(seed)
    conv, rng = operator.op, np.random.default_rng(seed)
    assert isinstance(conv, Conv2d)
    weights, own = operator.constants["weights"], {}
    if seed % 4 == 3:  # too wide for the unit, unless whole rows are its channels
        x, weights = replace(x, shape=(3, 70, 5)), rng.integers(-128, 128, (len(weights), 3, 70, 5))
        own = {"kernel_shape": (3, 70)}
    ties: SumTies = "away" if seed // 4 % 2 else "up"
    spread = 0.3 / float(np.prod(weights.shape[1:])) ** 0.5
    scales = SumScales.of(rng.uniform(0.001, 0.02, len(weights)) * spread, ties)
    windows = {it: getattr(conv, it) for it in ("kernel_shape", "stride", "dilation", "pads", "groups")}
    op = Conv2dInt16(len(weights), **{**windows, **own}, ties=ties, left_shift=scales.left_shift)
    if seed % 3 == 0:
        op = replace(op, bounds=Bounds(-900, 20000))
    biases = rng.integers(-(1 << 34 if seed % 5 == 0 and ties == "up" else 1 << 20), 1 << 20, len(weights))
    constants = {
        "weights": weights.astype(np.int8),
        "bias": np.stack([biases & 0xFFFFFFFF, biases >> 32]).astype(np.uint32).view(np.int32),
        "multipliers": scales.multipliers,
        "shifts": scales.shifts,
    }
    x, y = (replace(it, dtype=DType.INT16, quantization=None) for it in (x, y))
    return (
        Operator("conv", op, ("x",), "y", constants),
        x,
        replace(y, shape=op.loops((x.shape,)).output_shape()),
    )


def core_and_unit(operator: Operator, x: Tensor, y: Tensor, isa: Isa = Isa.U55_128) -> list[KernelCall]:
    calls = operator.op.kernel(operator, (x,), y).variants(Isa.ANY)
    return [calls[0], *unit.unit_calls(operator, (x,), y, calls, isa)]


def results(call: KernelCall, x: Tensor, y: Tensor, data: bytes, block_rows: tuple[int, int, int]) -> bytes:
    """The output by a call whose input lies in blocks of some rows, with a gap after every `[2]`-th."""
    session, height = machine().session, block_rows[0]
    at, offsets = 0, []
    for number, first in enumerate(range(0, len(data), height * x.row_bytes)):
        offsets.append(at)
        part = data[first : first + height * x.row_bytes]
        session.write(0, at, part)
        apart = number % block_rows[2] == block_rows[2] - 1
        at += -(-len(part) // 4) * 4 + 8 if apart or len(part) % 4 else len(part)
    source = TileTensor(tuple(offsets), x.row_bytes, BlockRows(height))
    rows, made = y.shape[0], block_rows[1]
    count, pitch = -(-rows // made), -(-made * y.row_bytes // 4) * 4 + 4
    output = TileTensor(tuple(at + pitch * it for it in range(count)), y.row_bytes, BlockRows(made))
    scratch = TileTensor((at + pitch * count,) * count, 0, BlockRows(made)) if call.scratch_bytes else None
    tile = Tile(call, (source,), output, scratch, rows, BlockRows(made))
    image = pack(tile, machine().kernels(call.kernel), session.info, at=IMAGE_AT)
    session.write(0, image.at, image.data)
    found = b""
    for block, offset in enumerate(output.offsets):
        part = Interval(block * made, min(rows, (block + 1) * made))
        session.call(0, image.op_offset, part.lo, part.hi)
        found += session.read(0, offset, len(part) * y.row_bytes)
    return found


@pytest.mark.parametrize("seed", range(24))
def test_16_bit_convolutions_have_the_bits_of_the_core_for_any_cut(seed: int) -> None:
    operator, x, y = convolution_int16(seed)
    core, alone, own = core_and_unit(operator, x, y, (Isa.U55_64, Isa.U55_128, Isa.U55_256)[seed // 4 % 3])
    rng = np.random.default_rng(seed)
    data = rng.integers(-(2**15), 2**15, x.shape).astype("<i2").tobytes()
    cuts = [(x.shape[0], y.shape[0], 1), *(tuple(int(it) for it in rng.integers(1, 5, 3)) for _ in range(2))]
    assert results(alone, x, y, data, cuts[0]) == results(core, x, y, data, cuts[0])
    for cut in cuts:
        assert results(own, x, y, data, cut) == results(core, x, y, data, cut), (operator.op, cut)


def test_16_bit_sums_that_the_unit_rounds_otherwise_stay_on_the_core() -> None:
    operator, x, y = convolution_int16(0)
    away = replace(operator.op, ties="away")  # its multipliers end with 16 zeros
    deep = {**operator.constants, "bias": np.full_like(operator.constants["bias"], 1 << 8)}
    cases = {
        "rounded twice": replace(operator, op=replace(away, ties="twice")),
        "lie halfway": replace(operator, op=away),
        "the unit has 40 bits": replace(operator, constants=deep),
    }
    for reason, changed in cases.items():
        assert reason in str(unit.reason_against(changed, (x,), y))
        assert unit.unit_calls(changed, (x,), y, (KernelCall("conv2d_s16"),), Isa.U55_128) == ()


@pytest.mark.parametrize("seed", range(48))
def test_the_unit_has_the_bits_of_the_core_for_any_cut(seed: int) -> None:
    """Input rows lie in one run, in two, or in more, which the core's kernel computes."""
    operator, x, y = convolution(seed)
    core, alone, own = core_and_unit(operator, x, y, (Isa.U55_128, Isa.U55_256)[seed // 4 % 2])
    rng = np.random.default_rng(seed)
    data = rng.integers(-128, 128, x.shape).astype(np.int8).tobytes()
    cuts = [(x.shape[0], y.shape[0], 1), *(tuple(int(it) for it in rng.integers(1, 5, 3)) for _ in range(3))]
    assert results(alone, x, y, data, cuts[0]) == results(core, x, y, data, cuts[0])
    for cut in cuts:
        assert results(own, x, y, data, cut) == results(core, x, y, data, cut), (operator.op, cut)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"stride": (4, 1)}, "stride"),
        ({"dilation": (3, 1)}, "dilation"),
        ({"groups": 2}, "groups"),
        ({"pads": (3, 0, 0, 0)}, "padding"),
        ({"kernel_shape": (65, 1), "pads": (60, 0, 0, 0)}, "window"),
    ],
)
def test_what_the_unit_does_not_compute_stays_on_the_core(changed: dict[str, object], reason: str) -> None:
    conv = replace(Conv2d(4, (3, 3)), **changed)
    shape = 4, *conv.kernel_shape, 4 // conv.groups
    constants = {
        "weights": np.ones(shape, np.int8),
        "bias": np.zeros(4, np.int32),
        "weight_scale": np.full(4, 0.01, np.float32),
    }
    x = tensor("x", (12, 12, 4), 0)
    y = tensor("y", conv.loops((x.shape,)).output_shape(), 0)
    operator = Operator("conv", conv, ("x",), "y", constants)
    assert reason in str(unit.reason_against(operator, (x,), y))
    assert len(core_and_unit(operator, x, y)) == 1


def maximum(seed: int) -> Case:
    """A random maximum over windows."""
    rng = np.random.default_rng(seed)
    kernel, stride = (tuple(int(it) for it in rng.integers(1, most, 2)) for most in (6, 4))
    pads = tuple(int(rng.integers(0, kernel[at % 2])) for at in range(4))
    rows, cols = (max(int(rng.integers(1, 14)), kernel[at] - pads[at]) for at in range(2))
    sides = zip((rows, cols), kernel, stride, (pads[0] + pads[2], pads[1] + pads[3]), strict=True)
    size = tuple(max(0, side + pad - tap) // step + 1 for side, tap, step, pad in sides)
    pool = MaxPool(kernel, stride, (1, 1), pads, size)
    x = tensor("x", (rows, cols, int(rng.integers(1, 40))), int(rng.integers(-128, 128)))
    return Operator("pool", pool, ("x",), "y"), x, replace(x, name="y", shape=(*size, x.shape[2]))


def mean(seed: int) -> Case:
    """A random mean over windows: one of a whole image, with ties as in TFLite, or several."""
    rng = np.random.default_rng(seed)
    kernel, stride, times = (tuple(int(it) for it in rng.integers(1, most, 2)) for most in (8, 4, 5))
    if seed % 2:
        stride, times = kernel, (1, 1)
    ties = ("even", "away", "even", "up")[seed % 4]
    rows, cols = (tap + (count - 1) * step for tap, step, count in zip(kernel, stride, times, strict=True))
    x = tensor("x", (rows, cols, int(rng.integers(1, 40))), int(rng.integers(-128, 128)))
    y = replace(x, name="y", shape=(*times, x.shape[2]))
    if ties == "even":
        y = replace(y, quantization=Quantization(float(rng.uniform(0.1, 1)), int(rng.integers(-128, 128))))
    return (
        Operator("pool", AveragePool(kernel, stride, (1, 1), (0, 0, 0, 0), times, False, ties), ("x",), "y"),
        x,
        y,
    )


def reduced(seed: int) -> Case:
    """A random mean over rows, columns or both, rounded as TFLite does or once."""
    rng = np.random.default_rng(seed)
    shape = tuple(int(rng.integers(1, most)) for most in (12, 12, 40))
    axes = ((0, 1), (0,), (1,))[seed % 3]
    x = tensor("x", shape, int(rng.integers(-128, 128)))
    made = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    own = Quantization(float(rng.uniform(0.1, 1)), int(rng.integers(-128, 128)))
    op = Reduce(axes, rounding="tflite" if seed % 2 else "once")
    return Operator("mean", op, ("x",), "y"), x, replace(x, name="y", shape=made, quantization=own)


@pytest.mark.parametrize("of", [maximum, mean, reduced])
@pytest.mark.parametrize("seed", range(16))
def test_pools_have_the_bits_of_the_core_for_any_cut(seed: int, of: Callable[[int], Case]) -> None:
    operator, x, y = of(seed)
    core, alone, own = core_and_unit(operator, x, y, (Isa.U55_128, Isa.U55_256)[seed % 2])
    rng = np.random.default_rng(seed)
    data = rng.integers(-128, 128, x.shape).astype(np.int8).tobytes()
    whole = (x.shape[0], y.shape[0], 1)
    assert results(alone, x, y, data, whole) == results(core, x, y, data, whole)
    for cut in (tuple(int(it) for it in rng.integers(1, 5, 3)) for _ in range(3)):
        assert results(own, x, y, data, cut) == results(core, x, y, data, cut), (operator.op, cut)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"pads": (1, 1, 1, 1), "out_size": (4, 4)}, "without padding"),
        ({"ties": "even", "kernel_shape": (2, 1), "out_size": (3, 4)}, "ties of means of 2 values"),
    ],
)
def test_means_of_other_bits_stay_on_the_core(changed: dict[str, object], reason: str) -> None:
    x = tensor("x", (4, 4, 8), 0)
    pool = replace(AveragePool((3, 3), (1, 1), (1, 1), (0, 0, 0, 0), (2, 2), False, "away"), **changed)
    y = replace(x, name="y", shape=(*pool.out_size, 8))
    operator = Operator("pool", pool, ("x",), "y")
    assert reason in str(unit.reason_against(operator, (x,), y))
    assert len(core_and_unit(operator, x, y)) == 1


@pytest.mark.parametrize("seed", range(8))
def test_means_by_rows_have_the_bits_of_the_core(seed: int) -> None:
    """All rows in one step, in one run or in many; or some rows in each step, which the core adds up."""
    operator, x, y = mean(2 * seed + 1)
    operator = replace(operator, op=AveragePoolByRows(operator.op.ties))
    core, own = core_and_unit(operator, x, y)
    height, size = x.shape[0], x.row_bytes
    data = np.random.default_rng(seed).integers(-128, 128, x.shape).astype(np.int8).tobytes()
    session, state_at, out_at = machine().session, 1 << 15, 1 << 16

    def by(call: KernelCall, steps: list[tuple[int, int]], gap: int) -> bytes:
        pitch = -(-size // 4) * 4 + gap if gap else size
        rows = [row * pitch for row in range(height)]
        for row, offset in enumerate(rows):
            session.write(0, offset, data[row * size : (row + 1) * size])
        blocks = BlockRows(1 if gap else height)
        source = TileTensor(tuple(rows if gap else rows[:1]), size, blocks)
        output = TileTensor((out_at,), y.row_bytes, BlockRows(1))
        state = TileTensor((state_at,), 0, BlockRows(height))
        tile = Tile(call, (source,), output, state, height, BlockRows(height))
        image = pack(tile, machine().kernels(call.kernel), session.info, at=IMAGE_AT)
        session.write(0, image.at, image.data)
        for first, end in steps:
            session.call(0, image.op_offset, first, end)
        return session.read(0, out_at, y.row_bytes)

    expected = by(core, [(0, height)], 0)
    for gap in (0, 8):
        assert by(own, [(0, height)], gap) == expected
        assert by(own, [(row, row + 1) for row in range(height)], gap) == expected


def test_means_over_channels_stay_on_the_core() -> None:
    x = tensor("x", (4, 4, 8), 0)
    operator, y = Operator("mean", Reduce((1, 2)), ("x",), "y"), replace(x, name="y", shape=(4, 1, 1))
    assert "over channels" in str(unit.reason_against(operator, (x,), y))
    assert len(core_and_unit(operator, x, y)) == 1


def own_registers(call: KernelCall, rows: int) -> dict[str, int]:
    """The registers that a kernel of windows does not compute, for an output of some rows."""
    params: dict[str, Any] = dict(call.params)
    words = [*params["commands"][: params["command_words"]].tolist(), *block_of(call, rows)[1], 0xFFFF0000]
    return {it.name: it.value for it in decode(words)}


def vela_registers(operator: Operator, x: Tensor, y: Tensor, call: KernelCall) -> dict[str, int]:
    """The registers that Vela sets for the same operation, with the block of the call."""
    from ethosu.vela import api  # noqa: PLC0415

    conv = operator.op
    pooling, depthwise = isinstance(conv, MaxPool), not isinstance(conv, MaxPool) and conv.groups > 1
    operation = (
        api.NpuPoolingOperation(api.NpuPoolingOp.MAX)
        if pooling
        else api.NpuConvDepthWiseOperation()
        if depthwise
        else api.NpuConv2DOperation()
    )

    def feature_map(of: Tensor, region: int) -> api.NpuFeatureMap:
        made = api.NpuFeatureMap()
        kind = api.NpuDataType.INT8 if of.dtype is DType.INT8 else api.NpuDataType.INT16
        made.data_type, made.region, made.shape = kind, region, api.NpuShape3D(*of.shape)
        made.tiles = api.NpuTileBox(of.shape[0], of.shape[0], of.shape[1], [0, 0, 0, 0])
        made.quantization = api.NpuQuantization(1.0, of.quantization.zero_point if of.quantization else 0)
        made.layout = api.NpuLayout.NHWC
        return made

    set_here = own_registers(call, y.shape[0])
    operation.ifm, operation.ofm = feature_map(x, 1), feature_map(y, 2)
    stride = [1 if size == 1 else step for step, size in zip(conv.stride, y.shape, strict=False)]
    operation.kernel = api.NpuKernel(*conv.kernel_shape[::-1], *stride[::-1], *conv.dilation[::-1])
    below = (y.shape[0] - 1) * stride[0] + set_here["KERNEL_HEIGHT_M1"] + 1 - conv.pads[0] - x.shape[0]
    operation.padding = api.NpuPadding(conv.pads[0], conv.pads[1], max(0, below), set_here["IFM_PAD_RIGHT"])
    if not pooling:
        weights = set_here["WEIGHT_BASE"], set_here["WEIGHT_LENGTH"]
        operation.weights = [api.NpuAddressRange(0, *weights)]
        operation.biases = [api.NpuAddressRange(0, 0, set_here["SCALE_LENGTH"])]
    twice = pooling or (isinstance(conv, Conv2d) and conv.rounding == "tflite")
    operation.rounding_mode = api.NpuRoundingMode.TFL if twice else api.NpuRoundingMode.NATURAL
    block = block_of(call, y.shape[0])[0], *(set_here[f"OFM_BLK_{it}_M1"] + 1 for it in ("WIDTH", "DEPTH"))
    operation.block_config = api.NpuShape3D(*block)
    if not (depthwise or pooling):
        parts = bool(set_here["KERNEL_STRIDE"] & 4)
        operation.block_traversal = (
            api.NpuBlockTraversal.PART_KERNEL_FIRST if parts else api.NpuBlockTraversal.DEPTH_FIRST
        )
    words = api.npu_generate_register_command_stream([operation], api.NpuAccelerator.Ethos_U55_128)
    return {it.name: it.value for it in decode(words)}


OF_ROWS = frozenset({"IFM_BASE0", "IFM_BASE2", "IFM_HEIGHT0_M1", "IFM_PAD_TOP", "IFM_PAD_BOTTOM"}) | {
    *("OFM_BASE0", "OFM_BASE2", "OFM_HEIGHT_M1", "OFM_HEIGHT0_M1", "OFM_BLK_HEIGHT_M1"),
    *("IFM_HEIGHT1_M1", "OFM_HEIGHT1_M1"),  # of columns beyond WIDTH0, which there are none of
    *("ACTIVATION_MIN", "ACTIVATION_MAX"),  # Vela's come from real values
    *("CONV", "DEPTHWISE", "POOL", "STOP"),
}
"""The registers that the kernel sets, and those that may differ."""


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("of", [convolution, maximum, convolution_int16])
def test_vela_sets_the_same_registers(seed: int, of: Callable[[int], Case]) -> None:
    operator, x, y = of(seed)
    _, call, _ = core_and_unit(operator, x, y)
    own = own_registers(call, y.shape[0])
    if own["IFM_DEPTH_M1"] >= x.shape[2]:  # whole rows are the channels of a column
        x = replace(x, shape=(x.shape[0], 1, x.shape[1] * x.shape[2]))
        operator = replace(operator, op=replace(operator.op, kernel_shape=(operator.op.kernel_shape[0], 1)))
    vela = vela_registers(operator, x, y, call)
    assert {name: it for name, it in own.items() if name not in OF_ROWS} == {
        name: it for name, it in vela.items() if name not in OF_ROWS
    }


SUM_BYTES = {1: 4, 2: 5}


@pytest.mark.parametrize("value_bytes", [1, 2])
@pytest.mark.parametrize("name", ["ethos-u55-64", "ethos-u55-128", "ethos-u55-256", "ethos-u65-256"])
def test_blocks_lie_in_the_shared_ram_as_vela_places_them(name: str, value_bytes: int) -> None:
    from ethosu.vela import architecture_allocator as allocator  # noqa: PLC0415
    from ethosu.vela.architecture_features import Accelerator, Block, create_default_arch  # noqa: PLC0415
    from ethosu.vela.ethos_u55_regs.ethos_u55_regs import resampling_mode  # noqa: PLC0415
    from ethosu.vela.operation import Kernel, NpuBlockType  # noqa: PLC0415

    architecture, rng = create_default_arch(Accelerator(name)), np.random.default_rng(0)
    for number in range(40):
        by_channel = number % 3 == 0
        kernel, stride = (tuple(int(it) for it in rng.integers(1, most, 2)) for most in (10, 4))
        source = tuple(int(it) for it in rng.integers(9, 70, 3))
        output = *(-(-size // step) for size, step in zip(source, stride, strict=False)), source[2]
        window = UnitWindow(kernel, stride, (1, 1), by_channel, value_bytes, SUM_BYTES[value_bytes])
        block = find_block(UNITS[name], window, source, output)
        kind = NpuBlockType.ConvolutionDepthWise if by_channel else NpuBlockType.ConvolutionMxN
        placed = allocator.try_block_config(
            *(Block(block.shape[1], block.shape[0], block.shape[2]), architecture, kind),
            *(Block(output[1], output[0], output[2]), Block(source[1], source[0], source[2]), None, False),
            8 * value_bytes,
            is_partkernel=window.parts_first(source[2]),
            kernel=Kernel(kernel[1], kernel[0], stride[1], stride[0]),
            lut_banks=0,
            scaled=True,
            ifm_resampling=resampling_mode.NONE,
        )
        assert placed is not None
        assert (placed.layout.ib_end, placed.layout.ab_start) == (block.input_end, block.sums_begin)
