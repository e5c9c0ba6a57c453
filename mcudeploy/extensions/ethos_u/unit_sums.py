"""Sums and differences of two int8 tensors by the unit, rounded as TFLite's reference kernels round."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mcudeploy.extensions.ethos_u.registers import Stream
from mcudeploy.extensions.ethos_u.unit_blocks import UNITS, PairBlock, find_pair_block
from mcudeploy.extensions.ethos_u.unit_calls import OPERATION_CODES, OUTPUT, SECOND, SOURCE, set_map
from mcudeploy.extensions.ethos_u.unit_time import sum_cycles
from mcudeploy.ir.graph import DType, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import CallTable, Counts, KernelCall, ParamValue
from mcudeploy.ops.scalar.elementwise import Binary

SUM_KERNEL = "add_s8_npu"
_MODES = {"add": 1, "sub": 2}
_FRACTION = 20
"""Bits by which TFLite's sums shift their operands left; the unit does that itself."""
_FIRST, _OTHER = 1, 2
"""The operand with a factor: the one with the smaller scale."""
_GLOBAL_SCALE = 1 << 8
_MOST_SHIFT = 63


def sum_reason(op: Binary, inputs: tuple[Tensor, ...], output: Tensor) -> str | None:
    """Return why the unit does not compute an operation of two operands, None if it does."""
    if op.function not in _MODES:
        return f"the unit does not compute {op.function} yet"
    if any(it.dtype is not DType.INT8 for it in (*inputs, output)):
        return f"the unit takes int8, this is {output.dtype}"
    if op.rounding != "tflite":
        return "the unit rounds sums as TFLite does, and this one is rounded once"
    if op.constant_operand is not None or any(it.shape != output.shape for it in inputs):
        return "the unit adds two tensors of one shape, none of them constant, as yet"
    return None


def sum_calls(
    op: Binary, inputs: tuple[Tensor, ...], output: Tensor, core: KernelCall, isa: Isa
) -> tuple[KernelCall, ...]:
    """Return the call of a sum by the unit, or nothing if a scale does not fit it; `core`: its other call."""
    numbers = {name: it for name, it in core.params.items() if isinstance(it, int)}
    block = find_pair_block(UNITS[isa.unit], output.shape)
    commands = _commands(numbers, block, output)
    if commands is None:
        return ()
    params: dict[str, ParamValue] = {
        "commands": commands,
        "core": CallTable((replace(core, others=()),)),
        "command_words": len(commands),
        "operation": OPERATION_CODES["ELEMENTWISE"] | _MODES[op.function] << 16,
        "row_bytes": output.row_bytes,
    }

    def counts(rows: Interval) -> Counts:
        cycles = sum_cycles(UNITS[isa.unit], len(rows) * output.row_bytes)
        return {"calls": 1, "words": len(commands), "unit_cycles": cycles}

    return (KernelCall(SUM_KERNEL, params, core.scratch_bytes, isa=isa, counts=counts),)


def _commands(numbers: dict[str, int], block: PairBlock, output: Tensor) -> NDArray[np.uint32] | None:
    """Return the commands that are the same for all rows; None if a shift does not fit its register.

    The operand with the larger scale has the factor one half, without rounding.
    """
    scaled, other = (_OTHER, "b") if numbers["a_exponent"] == 0 else (_FIRST, "a")
    exact = "a" if scaled == _OTHER else "b"
    half = numbers[f"{exact}_multiplier"], numbers[f"{exact}_exponent"]
    operand_shift = 31 - numbers[f"{other}_exponent"] - _FRACTION
    sum_shift = 31 - numbers["quant.shift"]
    if half != (1 << 30, 0) or not (0 <= operand_shift <= _MOST_SHIFT and 31 <= sum_shift <= _MOST_SHIFT):
        return None
    stream = Stream()
    for name, region, zero_point in (
        ("IFM", SOURCE, numbers["a_zero_point"]),
        ("IFM2", SECOND, numbers["b_zero_point"]),
        ("OFM", OUTPUT, numbers["quant.zero_point"]),
    ):
        set_map(stream, name, region, output.shape)
        stream.set(**{f"{name}_BASE2": 0, f"{name}_ZERO_POINT": zero_point})
    stream.set(
        IFM_DEPTH_M1=output.shape[2] - 1,
        IFM_PRECISION=1 | scaled << 8,
        IFM2_PRECISION=1,
        IFM2_BROADCAST=0,
        IFM_UPSCALE=0,
        OFM_WIDTH_M1=output.shape[1] - 1,
        OFM_DEPTH_M1=output.shape[2] - 1,
        OFM_PRECISION=1 | _GLOBAL_SCALE,
        OPA_SCALE=numbers[f"{other}_multiplier"] | operand_shift << 32,
        OPB_SCALE=0,
        OFM_SCALE=numbers["quant.multiplier"] | sum_shift << 32,
        ACTIVATION=0,
        ACTIVATION_MIN=numbers["act.min"],
        ACTIVATION_MAX=numbers["act.max"],
        OFM_BLK_HEIGHT_M1=block.shape[0] - 1,
        OFM_BLK_WIDTH_M1=block.shape[1] - 1,
        OFM_BLK_DEPTH_M1=block.shape[2] - 1,
        IFM_IB_END=block.input_end,
        IFM2_IB_START=block.second_begin,
        AB_START=block.input_end,
        ACC_FORMAT=0,
        BLOCKDEP=0,
    )
    return stream.array
