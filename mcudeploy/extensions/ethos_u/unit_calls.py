"""Convolutions by the unit: which it computes with the bits of the core's kernels, and their calls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.extensions.ethos_u.encoded_weights import EncodedConstants, Scaling, encoded
from mcudeploy.extensions.ethos_u.registers import OPERATIONS, Stream
from mcudeploy.extensions.ethos_u.unit_blocks import UNITS, Block, UnitWindow
from mcudeploy.extensions.ethos_u.unit_time import UnitWork, find_block
from mcudeploy.ir.graph import DType, Operator, Shape, Tensor
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import CallTable, KernelCall, Params
from mcudeploy.ops import requantize
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.conv.conv_constants import ConvConstants, Results, check_constants, numbers_of

KERNEL = "conv2d_s8_npu"
WITH_CORE = "core"
"""The mode with a kernel of the core, which computes rows whose input lies in more than two runs."""
FLASH, SOURCE, OUTPUT, SECOND = 0, 1, 2, 4
"""The regions of a stream: constants in flash; the input, the output and a second input in an arena."""
OPERATION_CODES = {name: code for code, name in OPERATIONS.items()}
_MOST_STRIDE, _MOST_DILATION = 3, 2
_MOST_SIDE, _MOST_TAPS = 64, 4096
_MOST_SIZE = 65536
_MOST_PADS = (127, 127, 255, 255)
"""Top, left, bottom, right."""
ONCE, TWICE = 2, 0
"""Rounding of results: once, ties up; or twice as in TFLite."""
GLOBAL_SCALE = 1 << 8
"""The bit of OFM_PRECISION for one scale of all channels, which is in a register."""
MEAN = 1
"""The parameter of POOL for means."""
SUMS_OF_32_BITS, SUMS_OF_40_BITS = 0, 1
_SUM_BITS = 32


@dataclass(frozen=True, slots=True)
class FeatureMap:
    """A map that an operation reads or writes; `cols`: number of columns that it touches, None for all."""

    shape: Shape
    value_bytes: int = 1
    cols: int | None = None


Pads = tuple[int, int, int, int]
"""Rows and columns of padding: top, left, bottom, right."""


@dataclass(frozen=True, slots=True, eq=False)
class _Convolution:
    """An int8 convolution: its definition, its operator and its tensors."""

    conv: Conv2d
    operator: Operator
    source: Tensor
    output: Tensor

    @property
    def by_channel(self) -> bool:
        return self.conv.windowing.is_depthwise(self.source.shape[2])

    @property
    def window(self) -> UnitWindow:
        conv = self.conv
        stride = strides(conv.stride, self.output.shape[:2])
        return UnitWindow(conv.kernel_shape, stride, conv.dilation, self.by_channel)

    def numbers(self) -> tuple[ConvConstants, dict[str, Any]]:
        """Return the constants of the core's kernels, and their arithmetic parameters by name."""
        check_constants(
            self.operator,
            (self.conv.out_channels, *self.conv.kernel_shape, self.source.shape[2] // self.conv.groups),
        )
        results = Results(self.conv.low, self.conv.high, self.conv.rounding)
        return numbers_of(results, self.operator, self.source, self.output)


def conv_reason(operator: Operator, source: Tensor, output: Tensor) -> str | None:
    """Return why the unit does not compute a convolution with the bits of the core, None if it does."""
    conv = operator.op
    assert isinstance(conv, Conv2d)
    if source.dtype is not DType.INT8 or output.dtype is not DType.INT8:
        return f"the unit takes int8, this is {source.dtype}"
    layer = _Convolution(conv, operator, source, output)
    multiplied = layer.by_channel and conv.out_channels != source.shape[2]
    if multiplied or (conv.groups > 1 and not layer.by_channel):
        return (
            f"{conv.groups} groups with {conv.out_channels} channels: the unit takes one group, or depthwise"
        )
    return window_reason(layer.window, conv.pads) or _sums_reason(layer)


def size_reason(*shapes: Shape) -> str | None:
    """Return why the unit does not take tensors of these shapes, None if it does."""
    return "a side is longer than 65,536" if max(map(max, shapes)) > _MOST_SIZE else None


def window_reason(window: UnitWindow, pads: Pads) -> str | None:
    """Return why the unit does not take a window with these pads, None if it does."""
    if max(window.stride) > _MOST_STRIDE or max(window.dilation) > _MOST_DILATION:
        return f"stride {window.stride}, dilation {window.dilation}: the unit takes up to 3, and up to 2"
    area = window.area
    if max(area) > _MOST_SIDE or window.kernel[0] * window.kernel[1] > _MOST_TAPS:
        return f"a window of {area[0]}x{area[1]}: the unit takes up to 64x64"
    if any(pad > most for pad, most in zip(pads, _MOST_PADS, strict=True)) or any(
        pad >= area[at % 2] for at, pad in enumerate(pads)
    ):
        return f"padding {pads}: the unit takes less than a window"
    return None


def strides(stride: tuple[int, int], size: tuple[int, ...]) -> tuple[int, int]:
    """Return the strides of windows, and 1 along an axis with a single window."""
    rows, cols = (1 if count == 1 else step for count, step in zip(size, stride, strict=True))
    return rows, cols


def _sums_reason(layer: _Convolution) -> str | None:
    """Return why sums do not fit, None if they do; the unit subtracts the zero point from each value."""
    weights = layer.operator.constants["weights"].astype(np.int64)
    zero_point = requantize.quantization_of(layer.source).zero_point
    most = max(127 - zero_point, zero_point + 128)
    largest = most * int(np.abs(weights).reshape(len(weights), -1).sum(axis=1).max(initial=0))
    if largest >= 1 << _SUM_BITS - 1:
        return f"a sum of products can reach {largest:,}: the unit has {_SUM_BITS} bits"
    return None


def conv_calls(
    operator: Operator, source: Tensor, output: Tensor, calls: tuple[KernelCall, ...], isa: Isa
) -> tuple[KernelCall, ...]:
    """Return the two calls of a convolution by the unit, as `WindowCalls.calls` does; `calls`: the core's.

    Raises ConfigError without Vela.
    """
    assert isinstance(operator.op, Conv2d)
    layer = _Convolution(operator.op, operator, source, output)
    unit, window = UNITS[isa.unit], layer.window
    block = find_block(unit, window, source.shape, output.shape)
    core_constants, numbers = layer.numbers()
    scaling = _scaling(core_constants, numbers, layer)
    constants = encoded(unit, window, block, core_constants.weights, scaling)
    window_calls = WindowCalls(
        _commands(layer, block, constants, numbers),
        UnitWork(unit, window, block, source.shape, constants.weight_bytes),
        OPERATION_CODES["DEPTHWISE" if layer.by_channel else "CONV"],
        layer.conv.pads[0],
        constants.words,
    )
    return window_calls.calls(output, calls, isa)


@dataclass(frozen=True, slots=True, eq=False)
class WindowCalls:
    """The data of the calls of a convolution or pool: `commands` and `operation` of its stream, the work of
    the unit, and the constants.
    """

    commands: NDArray[np.uint32]
    work: UnitWork
    operation: int
    pad_top: int
    constants: NDArray[np.uint32] | None

    def calls(self, output: Tensor, calls: tuple[KernelCall, ...], isa: Isa) -> tuple[KernelCall, ...]:
        """Return the call of the unit alone, and the call that contains the core's call with the least
        scratch, see conv2d_s8_npu.h. Both have that scratch, so `settled` can exchange them.
        """
        core = min(calls, key=lambda call: (call.scratch_bytes, call.constant_bytes))
        work = self.work.with_low(output.shape)
        window, commands, blocks = work.window, self.commands, [*work.low, work.block]
        params: Params = {
            "commands": np.concatenate([commands, *map(_block_commands, blocks)]).astype(np.uint32),
            "constants": self.constants,
            "core": CallTable((replace(core, others=()),)),
            "command_words": len(commands),
            "constant_bytes": 0 if self.constants is None else self.constants.nbytes,
            "operation": self.operation,
            "input_rows": work.source[0],
            "window_rows": window.area[0],
            "stride_rows": window.stride[0],
            "pad_top": self.pad_top,
            "blocks": len(blocks),
            "granule_rows": work.unit.granule[0],
            "output_row_bytes": output.row_bytes,
        }
        counts = work.counts(output.shape)
        alone = KernelCall(KERNEL, {**params, "core": None}, core.scratch_bytes, isa=isa, counts=counts)
        return alone, replace(alone, params=params, mode=WITH_CORE)


def _scaling(core: ConvConstants, numbers: dict[str, Any], layer: _Convolution) -> Scaling:
    """Return scales and shifts, and the bias without the zero point, which the unit subtracts from values."""
    assert core.multipliers is not None
    weights = core.weights.reshape(len(core.weights), -1).astype(np.int64)
    bias = core.bias.astype(np.int64)
    bias += requantize.quantization_of(layer.source).zero_point * weights.sum(axis=1)
    if core.exponents is not None:
        shift = 31 - core.exponents.astype(np.int64)
    else:
        shift = np.full(len(bias), 32 - numbers["quant.left_shift"], np.int64)
    return Scaling(bias, core.multipliers.astype(np.int64), shift)


def _commands(
    layer: _Convolution, block: Block, constants: EncodedConstants, numbers: dict[str, Any]
) -> NDArray[np.uint32]:
    """Return the commands that set the registers which are the same for all rows of the output."""
    conv, stream = layer.conv, Stream()
    right = pad_right(conv.pads, layer.window, layer.source.shape, layer.output)
    zero_point = requantize.quantization_of(layer.source).zero_point
    set_maps(stream, layer.source.shape, layer.output, (conv.pads[1], right), zero_point)
    rounding = TWICE if conv.rounding == "tflite" else ONCE
    stream.set(OFM_ZERO_POINT=numbers["quant.zero_point"], OFM_PRECISION=1 | rounding << 14)
    set_window(stream, layer.window, parts=layer.window.parts_first(layer.source.shape[2]))
    set_constants(stream, constants)
    stream.set(ACTIVATION=0, ACTIVATION_MIN=numbers["act.min"], ACTIVATION_MAX=numbers["act.max"])
    set_depth(stream, block)
    return stream.array


def set_constants(stream: Stream, constants: EncodedConstants) -> None:
    """Set the registers of records and weights in flash."""
    stream.set(
        WEIGHT_REGION=FLASH,
        WEIGHT_BASE=constants.record_bytes,
        WEIGHT_LENGTH=constants.weight_bytes,
        SCALE_REGION=FLASH,
        SCALE_BASE=0,
        SCALE_LENGTH=constants.record_bytes,
    )


def set_maps(stream: Stream, source: Shape, output: Tensor, pads: tuple[int, int], zero_point: int) -> None:
    """Set the registers of an input, and of an output of the same type; `pads`: left and right."""
    value_bytes = output.dtype.size_bytes
    set_map(stream, "IFM", SOURCE, FeatureMap(source, value_bytes))
    stream.set(
        IFM_DEPTH_M1=source[2] - 1,
        IFM_ZERO_POINT=zero_point,
        IFM_PRECISION=read_precision(value_bytes),
        IFM_UPSCALE=0,
        IFM_PAD_LEFT=pads[0],
        IFM_PAD_RIGHT=pads[1],
    )
    set_map(stream, "OFM", OUTPUT, FeatureMap(output.shape, value_bytes))
    stream.set(OFM_WIDTH_M1=output.shape[1] - 1, OFM_DEPTH_M1=output.shape[2] - 1)


def set_window(stream: Stream, window: UnitWindow, *, parts: bool) -> None:
    """Set the registers of a window. `parts`: as `UnitWindow.parts_first` returns."""
    (sy, sx), (dy, dx), area = window.stride, window.dilation, window.area
    low = (sx - 1 & 1) | (sy - 1 & 1) << 1 | parts << 2 | (dx - 1) << 3 | (dy - 1) << 4
    stream.set(
        KERNEL_HEIGHT_M1=area[0] - 1,
        KERNEL_WIDTH_M1=area[1] - 1,
        KERNEL_STRIDE=low | (sx - 1 >> 1) << 6 | (sy - 1 >> 1) << 9,
    )


def set_block(stream: Stream, block: Block) -> None:
    """Set the registers of a block and its place in the shared RAM."""
    _set_place(stream, block)
    set_depth(stream, block)
    stream.set(OFM_BLK_HEIGHT_M1=block.shape[0] - 1)


def set_depth(stream: Stream, block: Block, sums: int = SUMS_OF_32_BITS) -> None:
    """Set the registers that all blocks of an operator share: their channels, and the type of `sums`."""
    stream.set(OFM_BLK_DEPTH_M1=block.shape[2] - 1, ACC_FORMAT=sums, BLOCKDEP=0)


def _set_place(stream: Stream, block: Block) -> None:
    stream.set(OFM_BLK_WIDTH_M1=block.shape[1] - 1, IFM_IB_END=block.input_end, AB_START=block.sums_begin)


def _block_commands(block: Block) -> list[int]:
    """Return the rows of a block, and the commands that set its columns and its place."""
    stream = Stream([block.shape[0]])
    _set_place(stream, block)
    return stream.words


def read_precision(value_bytes: int) -> int:
    """Return the value of IFM_PRECISION: signed, channels last."""
    return 1 | value_bytes - 1 << 2


def written_precision(value_bytes: int) -> int:
    """Return the value of OFM_PRECISION: signed, channels last, with a scale for each channel."""
    return 1 | value_bytes - 1 << 1


def set_map(stream: Stream, name: str, region: int, feature_map: FeatureMap) -> None:
    """Set the registers of a feature map, channels last, whose rows lie in one run or two."""
    (_, cols, channels), size = feature_map.shape, feature_map.value_bytes
    registers = {
        "REGION": region,
        "BASE1": 0,
        "BASE3": 0,
        "WIDTH0_M1": (feature_map.cols or cols) - 1,
        "HEIGHT1_M1": 0,
        "STRIDE_C": size,
        "STRIDE_X": channels * size,
        "STRIDE_Y": cols * channels * size,
    }
    stream.set(**{f"{name}_{register}": value for register, value in registers.items()})


def pad_right(pads: Pads, window: UnitWindow, source: Shape, output: Tensor) -> int:
    """Return the number of padding columns at the right that windows read."""
    end = (output.shape[1] - 1) * window.stride[1] + window.area[1]
    return max(0, end - pads[1] - source[1])
