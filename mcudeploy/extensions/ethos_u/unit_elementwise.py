"""Sums, differences and products of two operands by the unit, with the bits of the core's kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from mcudeploy.extensions.ethos_u.registers import Stream
from mcudeploy.extensions.ethos_u.unit_blocks import UNITS, PairBlock, find_pair_block
from mcudeploy.extensions.ethos_u.unit_calls import (
    FLASH,
    GLOBAL_SCALE,
    ONCE,
    OPERATION_CODES,
    OUTPUT,
    SECOND,
    SOURCE,
    TWICE,
    FeatureMap,
    read_precision,
    set_map,
    written_precision,
)
from mcudeploy.extensions.ethos_u.unit_scales import scale_and_shift, scaled
from mcudeploy.extensions.ethos_u.unit_time import elementwise_cycles
from mcudeploy.extensions.int16.int16 import BinaryInt16
from mcudeploy.ir.graph import DType, Operator, Quantization, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import UNIT_ALIGNMENT, CallTable, ConstantArray, Counts, KernelCall, Params
from mcudeploy.ops.requantize import STORED, quantization_of
from mcudeploy.ops.scalar.elementwise import Binary

ELEMENTWISE_KERNEL = "elementwise_s8_npu"
SCALAR = 0x80
"""The value of IFM2_BROADCAST if the second operand is a value in a register."""
BROADCAST = (1, 2, 4)
"""The bits of IFM2_BROADCAST by which all rows, columns or channels read one of the second operand."""
_MODES = {"mul": 0, "add": 1, "sub": 2}
_SHARES = {"mul": 1.5, "add": 3.0, "sub": 3.0}
"""The cycles of a result, as a multiple of those of a convolution."""
_FRACTION = {1: 20, 2: 15}
"""Bits by which TFLite's sums, and the unit, shift operands left, by the bytes of a value."""
_FIRST, _OTHER = 1, 2
"""The operand with a factor, which has the smaller scale: the first, or the other one."""
_MOST_SHIFT = 63
_MOST_FACTOR = (1 << 16) - 1
"""The largest factor of an operand if both operands have factors."""

Registers = dict[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class _Operands:
    """The two operands in the order of the unit, whose first operand has the output's shape.

    `position`: of the first operand in the operator. `quantizations`: of both. `shape`: of the
    second operand. `value_bytes`: of a value of both. `constant`: the second operand, None if it is an input.
    """

    position: int
    quantizations: tuple[Quantization, Quantization]
    shape: Shape
    value_bytes: int
    constant: ConstantArray | None

    @property
    def number(self) -> int:
        """The number of the operator's input that is the first operand."""
        return self.position if self.constant is None else 0

    @property
    def letters(self) -> str:
        """The letters of both operands in the names of the core's parameters."""
        return "ab" if self.position == 0 else "ba"

    @property
    def scalar(self) -> int | None:
        """The value of a constant operand whose elements are all equal; None for others."""
        if self.constant is None or self.constant.min() != self.constant.max():
            return None
        return int(self.constant.flat[0])


def binary_reason(operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> str | None:
    """Return why the unit does not compute an operation of two operands, None if it does."""
    binary = _binary(operator, inputs, output)
    return binary if isinstance(binary, str) else None


def binary_calls(
    operator: Operator, inputs: tuple[Tensor, ...], output: Tensor, core: KernelCall, isa: Isa
) -> tuple[KernelCall, ...]:
    """Return the call of a sum, difference or product by the unit, or nothing; `core`: the core's call."""
    binary = _binary(operator, inputs, output)
    if isinstance(binary, str):
        return ()
    operands, scaling = binary
    assert isinstance(operator.op, Binary | BinaryInt16)
    function, scalar, unit = operator.op.function, operands.scalar, UNITS[isa.unit]
    value_bytes = operands.value_bytes

    block, stream = find_pair_block(unit, output.shape, value_bytes), Stream()
    _set_first(stream, inputs[operands.number], output)
    zero_point = operands.quantizations[1].zero_point
    stream.set(IFM2_ZERO_POINT=zero_point, IFM2_PRECISION=read_precision(value_bytes))
    if scalar is not None:
        stream.set(IFM2_BROADCAST=SCALAR, IFM2_SCALAR=scalar)
    else:
        second = FeatureMap(operands.shape, value_bytes)
        set_map(stream, "IFM2", SECOND if operands.constant is None else FLASH, second)
        stream.set(IFM2_BASE2=0, IFM2_BROADCAST=_broadcast(operands.shape, output.shape))
    stream.set(**scaling)
    _set_pair_block(stream, block)

    constant = None
    if operands.constant is not None and scalar is None:
        constant = np.zeros(-(-operands.constant.nbytes // UNIT_ALIGNMENT) * UNIT_ALIGNMENT, np.int8)
        constant[: operands.constant.nbytes] = operands.constant.ravel().view(np.int8)
    second_bytes = 0 if scalar is not None else operands.shape[1] * operands.shape[2] * value_bytes
    params = elementwise_params(stream, OPERATION_CODES["ELEMENTWISE"] | _MODES[function] << 16, output, core)
    params |= {
        "constants": constant,
        "constant_bytes": 0 if constant is None else constant.nbytes,
        "first": operands.number,
        "second_row_bytes": second_bytes if operands.shape[0] == output.shape[0] else 0,
        "second_bytes": second_bytes,
    }

    def counts(rows: Interval) -> Counts:
        values, result = len(rows) * output.row_bytes // value_bytes, _SHARES[function] * unit.output_cycles
        cycles = elementwise_cycles(values, result, value_bytes)
        return {"unit_cycles": cycles}

    return (KernelCall(ELEMENTWISE_KERNEL, params, core.scratch_bytes, isa=isa, counts=counts),)


def elementwise_params(stream: Stream, operation: int, output: Tensor, core: KernelCall) -> Params:
    """Return the parameters of ELEMENTWISE_KERNEL, for one operand and no constants."""
    return {
        "commands": stream.array,
        "constants": None,
        "core": CallTable((replace(core, others=()),)),
        "command_words": len(stream.words),
        "constant_bytes": 0,
        "operation": operation,
        "row_bytes": output.row_bytes,
        "first": 0,
        "second_row_bytes": 0,
        "second_bytes": 0,
    }


def _binary(
    operator: Operator, inputs: tuple[Tensor, ...], output: Tensor
) -> tuple[_Operands, Registers] | str:
    """Return the operands and registers of an operation of two operands, or why the unit does not compute it.
    """
    op = operator.op
    assert isinstance(op, Binary | BinaryInt16)
    if isinstance(op, Binary) and any(it.dtype is not DType.INT8 for it in (*inputs, output)):
        return f"the unit takes int8, this is {output.dtype}"
    if op.function not in _MODES:
        return f"the unit does not compute {op.function}"
    operands = _operands(operator, inputs, output)
    if operands is None:
        return f"neither operand of {op.function} that the unit could have first is of the result's shape"
    numbers = {it: x for it, x in op.kernel(operator, inputs, output).params.items() if isinstance(x, int)}
    if isinstance(op, BinaryInt16):
        numbers |= {"quant.multiplier": op.result.multiplier, "quant.shift": op.result.exponent}
        numbers |= {"quant.zero_point": 0, "twice": 1}
    if op.function == "mul":
        scaling = _product(numbers)
    elif isinstance(op, BinaryInt16) or op.rounding == "tflite":
        scaling = _sum_twice(numbers, operands)
    else:
        scaling = _sum_once(numbers, operands)
    if scaling is None:
        return "no scales of the unit give the bits of the core"
    precisions = {
        "IFM_PRECISION": read_precision(operands.value_bytes),
        "OFM_PRECISION": written_precision(operands.value_bytes),
    }
    return operands, scaling | {name: it | scaling.get(name, 0) for name, it in precisions.items()}


def _operands(operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> _Operands | None:
    """Return the operands in the order of the unit; None if neither can be its first operand.

    Operands of sums and products may change places, operands of differences may not.
    """
    op = operator.op
    assert isinstance(op, Binary | BinaryInt16)
    shapes, quantizations = op.operands(tuple(it.shape for it in inputs)), (Quantization(1.0, 0),) * 2
    if isinstance(op, Binary):
        quantizations = op.operand_quantizations(inputs)
    for first in (0, 1) if op.function != "sub" else (0,):
        if shapes[first] == output.shape and op.constant_operand != first:
            constant = None if op.constant_operand is None else operator.constants["constant"]
            ordered = quantizations[first], quantizations[1 - first]
            return _Operands(first, ordered, shapes[1 - first], output.dtype.size_bytes, constant)
    return None


def _product(numbers: dict[str, int]) -> Registers | None:
    """Return the registers of a product, with the rounding of the core; None if its shift does not fit."""
    shift = 31 - numbers["quant.shift"] if numbers["twice"] else numbers["quant.shift"]
    if not 0 < shift <= _MOST_SHIFT:
        return None
    rounding = TWICE if numbers["twice"] else ONCE
    return _result(numbers, numbers["quant.multiplier"] | shift << 32, rounding)


def _sum_twice(numbers: dict[str, int], operands: _Operands) -> Registers | None:
    """Return the registers of a sum that is rounded twice, as in TFLite; None if a shift does not fit.

    The operand with the larger scale has the factor one half, which needs no rounding.
    """
    rounded, halved = ("b", "a") if numbers["a_exponent"] == 0 else ("a", "b")
    half = numbers[f"{halved}_multiplier"], numbers[f"{halved}_exponent"]
    operand_shift = 31 - numbers[f"{rounded}_exponent"] - _FRACTION[operands.value_bytes]
    sum_shift = 31 - numbers["quant.shift"]
    if half != (1 << 30, 0) or not (0 <= operand_shift <= _MOST_SHIFT and 31 <= sum_shift <= _MOST_SHIFT):
        return None
    return {
        **_result(numbers, numbers["quant.multiplier"] | sum_shift << 32, TWICE),
        "IFM_PRECISION": (_FIRST if rounded == operands.letters[0] else _OTHER) << 8,
        "OPA_SCALE": numbers[f"{rounded}_multiplier"] | operand_shift << 32,
        "OPB_SCALE": 0,
    }


def _sum_once(numbers: dict[str, int], operands: _Operands) -> Registers | None:
    """Return the registers of a sum that is rounded once, on the core with ties to the even result.

    Both operands have factors of 16 bits in the ratio of the core's multipliers, the sum a scale of 31 bits.
    None if any values of the operands give another result than on the core.
    """
    first, other = (numbers[f"quant.{it}_multiplier"] for it in operands.letters)
    ratio = Fraction(first, abs(other)) if other else Fraction(0)
    nearest = ratio.limit_denominator(_MOST_FACTOR)
    if ratio > 1:
        inverse = (1 / ratio).limit_denominator(_MOST_FACTOR)
        nearest = 1 / inverse if inverse else Fraction(0)
    if nearest <= 0:
        return None
    factors = nearest.numerator, nearest.denominator
    shift, sign = numbers["quant.shift"], 1 if other > 0 else -1
    scale = scale_and_shift(first / factors[0] / 2**shift)
    if scale is None:
        return None

    a = STORED.astype(np.int64)[:, None]
    b = (STORED if operands.constant is None else np.unique(operands.constant)).astype(np.int64)
    sums = a * first + b * other + numbers["quant.constant"]
    core = (sums + (1 << shift - 1) - 1 + (sums >> shift & 1)) >> shift
    sums = (a - operands.quantizations[0].zero_point) * factors[0]
    sums = sums + sign * (b - operands.quantizations[1].zero_point) * factors[1]
    unit = scaled(sums, *scale)
    low, high = (numbers[f"act.{it}"] - numbers["quant.zero_point"] for it in ("min", "max"))
    if (np.clip(core, low, high) != np.clip(unit, low, high)).any():
        return None
    return {
        **_result(numbers, scale[0] | scale[1] << 32, ONCE),
        "OPA_SCALE": factors[0],
        "OPB_SCALE": factors[1],
    }


def _result(numbers: dict[str, int], scale: int, rounding: int) -> Registers:
    """Return the registers of results with one scale."""
    return {
        "OFM_SCALE": scale,
        "OFM_ZERO_POINT": numbers["quant.zero_point"],
        "OFM_PRECISION": GLOBAL_SCALE | rounding << 14,
        "ACTIVATION": 0,
        "ACTIVATION_MIN": numbers["act.min"],
        "ACTIVATION_MAX": numbers["act.max"],
    }


def _broadcast(second: Shape, output: Shape) -> int:
    """Return the value of IFM2_BROADCAST for the shapes of the second operand and the output."""
    return sum(bit for bit, size, out_size in zip(BROADCAST, second, output, strict=True) if size < out_size)


def _set_first(stream: Stream, source: Tensor, output: Tensor) -> None:
    """Set the registers of the first operand and of the output, which have the same shape."""
    for name, region, tensor in (("IFM", SOURCE, source), ("OFM", OUTPUT, output)):
        set_map(stream, name, region, FeatureMap(tensor.shape, tensor.dtype.size_bytes))
        stream.set(**{f"{name}_BASE2": 0, f"{name}_DEPTH_M1": tensor.shape[2] - 1})
    stream.set(
        IFM_ZERO_POINT=quantization_of(source).zero_point if source.dtype is DType.INT8 else 0,
        IFM_UPSCALE=0,
        OFM_WIDTH_M1=output.shape[1] - 1,
    )


def _set_pair_block(stream: Stream, block: PairBlock) -> None:
    """Set the registers of a block and of its place in the shared RAM."""
    stream.set(
        OFM_BLK_HEIGHT_M1=block.shape[0] - 1,
        OFM_BLK_WIDTH_M1=block.shape[1] - 1,
        OFM_BLK_DEPTH_M1=block.shape[2] - 1,
        IFM_IB_END=block.input_end,
        IFM2_IB_START=block.second_begin,
        AB_START=block.input_end,
        ACC_FORMAT=0,
        BLOCKDEP=0,
    )
