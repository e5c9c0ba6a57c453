"""Calls of the unit: which convolutions it computes with the bits of the core's kernels, and how."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.extensions.ethos_u.encoded_weights import EncodedConstants, Scaling, encoded
from mcudeploy.extensions.ethos_u.registers import OPERATIONS, Stream
from mcudeploy.extensions.ethos_u.unit_blocks import UNITS, Block, UnitWindow, find_block
from mcudeploy.extensions.ethos_u.unit_steps import unit_steps
from mcudeploy.extensions.ethos_u.unit_time import UnitWork, operation_cycles
from mcudeploy.ir.graph import DType, Operator, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import CallTable, Counts, KernelCall, ParamValue
from mcudeploy.ir.plan import Plan
from mcudeploy.ops import requantize
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.conv.conv_constants import ConvConstants, Results, check_constants, numbers_of
from mcudeploy.planner.model.model import Model

KERNEL = "conv2d_s8_npu"
WITH_CORE = "core"
"""The form with a kernel of the core, for rows that read more than two runs of rows."""
FLASH, SOURCE, OUTPUT = 0, 1, 2
"""The regions of a stream: constants in flash, the input and the output in an arena."""
_CODES = {name: code for code, name in OPERATIONS.items()}
_MOST_STRIDE, _MOST_DILATION = 3, 2
_MOST_SIDE, _MOST_TAPS = 64, 4096
_MOST_SIZE = 65536
_MOST_PADS = (127, 127, 255, 255)
"""Top, left, bottom, right."""
_ONCE, _TWICE = 2, 0
"""Rounding of results: halves up; or as TFLite, twice."""
_SUM_BITS = 32


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
        return UnitWindow(conv.kernel_shape, conv.stride, conv.dilation, self.by_channel)

    def numbers(self) -> tuple[ConvConstants, dict[str, Any]]:
        """Return the constants of the core's kernels, and the arithmetic parameters."""
        check_constants(
            self.operator,
            (self.conv.out_channels, *self.conv.kernel_shape, self.source.shape[2] // self.conv.groups),
        )
        results = Results(self.conv.low, self.conv.high, self.conv.rounding)
        return numbers_of(results, self.operator, self.source, self.output)


def reason_against(operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> str | None:
    """Return why the unit does not compute an operator with the bits of the core, None if it does."""
    conv = operator.op
    if not isinstance(conv, Conv2d):
        return f"the unit does not compute {operator.op.kind} yet"
    (source,) = inputs
    if source.dtype is not DType.INT8 or output.dtype is not DType.INT8:
        return f"the unit takes int8, this is {source.dtype}"
    found = _Convolution(conv, operator, source, output)
    multiplied = found.by_channel and conv.out_channels != source.shape[2]
    if multiplied or (conv.groups > 1 and not found.by_channel):
        return (
            f"{conv.groups} groups with {conv.out_channels} channels: the unit takes one group, or depthwise"
        )
    if max(conv.stride) > _MOST_STRIDE or max(conv.dilation) > _MOST_DILATION:
        return f"stride {conv.stride}, dilation {conv.dilation}: the unit takes up to 3, and up to 2"
    area = found.window.area
    if max(area) > _MOST_SIDE or conv.kernel_shape[0] * conv.kernel_shape[1] > _MOST_TAPS:
        return f"a window of {area[0]}x{area[1]}: the unit takes up to 64x64"
    if any(pad > most for pad, most in zip(conv.pads, _MOST_PADS, strict=True)) or any(
        pad >= area[at % 2] for at, pad in enumerate(conv.pads)
    ):
        return f"padding {conv.pads}: the unit takes less than a window"
    if max(*source.shape, *output.shape) > _MOST_SIZE:
        return "a side is longer than 65,536"
    return _sums_reason(found)


def _sums_reason(found: _Convolution) -> str | None:
    """Return why sums do not fit: the unit subtracts the zero point from each value."""
    weights = found.operator.constants["weights"].astype(np.int64)
    zero_point = requantize.quantization_of(found.source).zero_point
    most = max(127 - zero_point, zero_point + 128)
    largest = most * int(np.abs(weights).reshape(len(weights), -1).sum(axis=1).max(initial=0))
    if largest >= 1 << _SUM_BITS - 1:
        return f"a sum of products can reach {largest:,}: the unit has {_SUM_BITS} bits"
    return None


def unit_calls(
    operator: Operator, inputs: tuple[Tensor, ...], output: Tensor, calls: tuple[KernelCall, ...], isa: Isa
) -> tuple[KernelCall, ...]:
    """Return the calls of an operator by the unit beside the core, or nothing; `calls` are the core's.

    The second one contains the core's call with the least scratch: see conv2d_s8_npu.h. Both have that
    scratch, so that `settled` changes no place. Raises ConfigError without Vela.
    """
    if reason_against(operator, inputs, output) is not None:
        return ()
    assert isinstance(operator.op, Conv2d)
    found = _Convolution(operator.op, operator, inputs[0], output)
    unit, window = UNITS[isa.unit], found.window
    block = find_block(unit, window, inputs[0].shape, output.shape)
    own, numbers = found.numbers()
    constants = encoded(unit, window, block, own.weights, _scaling(own, numbers, found))
    spare = min(calls, key=lambda call: (call.scratch_bytes, call.constant_bytes))
    conv = found.conv
    commands = _commands(found, block, constants, numbers)
    params: dict[str, ParamValue] = {
        "commands": commands,
        "constants": constants.words,
        "core": CallTable((replace(spare, others=()),)),
        "command_words": len(commands),
        "constant_bytes": constants.words.nbytes,
        "operation": _CODES["DEPTHWISE" if found.by_channel else "CONV"],
        "input_rows": inputs[0].shape[0],
        "window_rows": window.area[0],
        "stride_rows": conv.stride[0],
        "pad_top": conv.pads[0],
        "output_row_bytes": output.shape[1] * output.shape[2],
    }

    work = UnitWork(unit, window, block, inputs[0].shape, constants.weight_bytes)

    def counts(rows: Interval) -> Counts:
        cycles = operation_cycles(work, (len(rows), *output.shape[1:]))
        return {"calls": 1, "words": len(commands), "unit_cycles": cycles}

    alone = KernelCall(KERNEL, {**params, "core": None}, spare.scratch_bytes, isa=isa, counts=counts)
    return alone, replace(alone, params=params, form=WITH_CORE)


def settled(plan: Plan, model: Model) -> dict[str, str]:
    """Return the variants of a plan's operators: with a kernel of the core where a step needs it."""
    needing = {step.operator.name for step in unit_steps(plan, model) if step.needs_core}
    return {**plan.kernels, **dict.fromkeys(needing, f"{KERNEL}:{WITH_CORE}")}


def _scaling(own: ConvConstants, numbers: dict[str, Any], found: _Convolution) -> Scaling:
    """Return the bias without the zero point, which the unit subtracts itself, and scale and shift."""
    assert own.multipliers is not None
    weights = own.weights.reshape(len(own.weights), -1).astype(np.int64)
    bias = own.bias.astype(np.int64)
    bias += requantize.quantization_of(found.source).zero_point * weights.sum(axis=1)
    if own.exponents is not None:
        shift = 31 - own.exponents.astype(np.int64)
    else:
        shift = np.full(len(bias), 32 - numbers["quant.left_shift"], np.int64)
    return Scaling(bias, own.multipliers.astype(np.int64), shift)


def _commands(
    found: _Convolution, block: Block, constants: EncodedConstants, numbers: dict[str, Any]
) -> NDArray[np.uint32]:
    """Return the commands that set the registers which are the same for all rows of the output."""
    conv, stream = found.conv, Stream()
    _set_map(stream, "IFM", SOURCE, found.source.shape)
    stream.set(
        IFM_DEPTH_M1=found.source.shape[2] - 1,
        IFM_ZERO_POINT=requantize.quantization_of(found.source).zero_point,
        IFM_PRECISION=1,
        IFM_UPSCALE=0,
        IFM_PAD_LEFT=conv.pads[1],
        IFM_PAD_RIGHT=_pad_right(found),
    )
    _set_map(stream, "OFM", OUTPUT, found.output.shape)
    rounding = _TWICE if conv.rounding == "tflite" else _ONCE
    stream.set(
        OFM_WIDTH_M1=found.output.shape[1] - 1,
        OFM_DEPTH_M1=found.output.shape[2] - 1,
        OFM_ZERO_POINT=numbers["quant.zero_point"],
        OFM_PRECISION=1 | rounding << 14,
    )
    (sy, sx), (dy, dx), area = conv.stride, conv.dilation, found.window.area
    parts = found.window.parts_first(found.source.shape[2])
    low = (sx - 1 & 1) | (sy - 1 & 1) << 1 | parts << 2 | (dx - 1) << 3 | (dy - 1) << 4
    stream.set(
        KERNEL_HEIGHT_M1=area[0] - 1,
        KERNEL_WIDTH_M1=area[1] - 1,
        KERNEL_STRIDE=low | (sx - 1 >> 1) << 6 | (sy - 1 >> 1) << 9,
        WEIGHT_REGION=FLASH,
        WEIGHT_BASE=constants.record_bytes,
        WEIGHT_LENGTH=constants.weight_bytes,
        SCALE_REGION=FLASH,
        SCALE_BASE=0,
        SCALE_LENGTH=constants.record_bytes,
        ACTIVATION=0,
        ACTIVATION_MIN=numbers["act.min"],
        ACTIVATION_MAX=numbers["act.max"],
        OFM_BLK_HEIGHT_M1=block.shape[0] - 1,
        OFM_BLK_WIDTH_M1=block.shape[1] - 1,
        OFM_BLK_DEPTH_M1=block.shape[2] - 1,
        IFM_IB_END=block.input_end,
        AB_START=block.sums_begin,
        ACC_FORMAT=0,
        BLOCKDEP=0,
    )
    return stream.array


def _set_map(stream: Stream, name: str, region: int, shape: Shape) -> None:
    """Set the registers of a feature map, channels last, whose rows are one or two runs."""
    registers = {
        "REGION": region,
        "BASE1": 0,
        "BASE3": 0,
        "WIDTH0_M1": shape[1] - 1,
        "HEIGHT1_M1": 0,
        "STRIDE_C": 1,
        "STRIDE_X": shape[2],
        "STRIDE_Y": shape[1] * shape[2],
    }
    stream.set(**{f"{name}_{register}": value for register, value in registers.items()})


def _pad_right(found: _Convolution) -> int:
    """Return the columns of padding that windows read at the right."""
    conv = found.conv
    end = (found.output.shape[1] - 1) * conv.stride[1] + found.window.area[1]
    return max(0, end - conv.pads[1] - found.source.shape[1])
