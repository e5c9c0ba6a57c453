"""The Ethos-U as a unit beside the core: which operators it computes, and why others stay on the core."""

from __future__ import annotations

from mcudeploy.boards.board import Board
from mcudeploy.common.errors import ConfigError
from mcudeploy.common.resources import resource_dir
from mcudeploy.extensions.ethos_u.encoded_weights import encoder
from mcudeploy.extensions.ethos_u.joined_judge import check_joined
from mcudeploy.extensions.ethos_u.stream_judge import check_streams
from mcudeploy.extensions.ethos_u.unit_affine import affine_calls, affine_reason
from mcudeploy.extensions.ethos_u.unit_calls import KERNEL, WITH_CORE, conv_calls, conv_reason, size_reason
from mcudeploy.extensions.ethos_u.unit_copies import clip_calls, clip_reason, copy_calls, copy_reason
from mcudeploy.extensions.ethos_u.unit_elementwise import binary_calls, binary_reason
from mcudeploy.extensions.ethos_u.unit_int16 import (
    conv_int16_calls,
    conv_int16_reason,
    curve_calls,
)
from mcudeploy.extensions.ethos_u.unit_pools import by_rows_calls, pool_calls, pool_reason, whole_mean
from mcudeploy.extensions.ethos_u.unit_steps import unit_steps
from mcudeploy.extensions.ethos_u.unit_streams import joined
from mcudeploy.extensions.ethos_u.unit_time import START_CYCLES
from mcudeploy.extensions.int16.conv_int16 import Conv2dInt16
from mcudeploy.extensions.int16.int16 import BinaryInt16, SigmoidInt16
from mcudeploy.ir.graph import Operator, Tensor
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ir.plan import Plan
from mcudeploy.ops.conv.affine import Affine
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.move.concat import Concat
from mcudeploy.ops.move.move import Slice
from mcudeploy.ops.pool.pool import AveragePool, AveragePoolByRows, MaxPool
from mcudeploy.ops.reduce.reduce import Reduce
from mcudeploy.ops.scalar.elementwise import Binary, Lut
from mcudeploy.planner.model.model import Model
from mcudeploy.planner.model.unit_support import UnitSupport


def reason_against(operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> str | None:
    """Return why the unit does not compute an operator with the bits of the core, None if it does."""
    return _own_reason(operator, inputs, output) or size_reason(*(it.shape for it in (*inputs, output)))


def _own_reason(operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> str | None:
    """Return why the unit does not compute an operator, whatever the sizes of its tensors."""
    if isinstance(operator.op, Conv2d):
        return conv_reason(operator, inputs[0], output)
    if isinstance(operator.op, MaxPool | AveragePool | Reduce):
        return pool_reason(operator, inputs[0], output)
    if isinstance(operator.op, AveragePoolByRows):
        return pool_reason(whole_mean(operator, inputs[0]), inputs[0], output)
    if isinstance(operator.op, Conv2dInt16):
        return conv_int16_reason(operator, inputs[0], output)
    if isinstance(operator.op, SigmoidInt16):
        return None
    if isinstance(operator.op, Binary | BinaryInt16):
        return binary_reason(operator, inputs, output)
    if isinstance(operator.op, Affine):
        return affine_reason(operator, inputs[0], output)
    if isinstance(operator.op, Concat | Slice):
        return copy_reason(operator, inputs, output)
    if isinstance(operator.op, Lut):
        return clip_reason(operator, inputs[0], output)
    return f"the unit does not compute {operator.op.kind} yet"


def unit_calls(
    operator: Operator, inputs: tuple[Tensor, ...], output: Tensor, calls: tuple[KernelCall, ...], isa: Isa
) -> tuple[KernelCall, ...]:
    """Return the calls of an operator by the unit beside the core, or nothing; `calls` are the core's.

    Raises ConfigError without Vela.
    """
    if reason_against(operator, inputs, output) is not None:
        return ()
    if isinstance(operator.op, Conv2d):
        return conv_calls(operator, inputs[0], output, calls, isa)
    if isinstance(operator.op, MaxPool | AveragePool | Reduce):
        return pool_calls(operator, inputs[0], output, calls, isa)
    if isinstance(operator.op, AveragePoolByRows):
        return by_rows_calls(operator, inputs[0], output, calls, isa)
    if isinstance(operator.op, Conv2dInt16):
        return conv_int16_calls(operator, inputs[0], output, calls, isa)
    if isinstance(operator.op, SigmoidInt16):
        return curve_calls(operator, inputs[0], output, calls[0], isa)
    if isinstance(operator.op, Affine):
        return affine_calls(inputs[0], output, calls[0], isa)
    if isinstance(operator.op, Concat | Slice):
        return copy_calls(operator, inputs, output, calls[0], isa)
    if isinstance(operator.op, Lut):
        return clip_calls(operator, inputs[0], output, calls[0], isa)
    return binary_calls(operator, inputs, output, calls[0], isa)


def settled(plan: Plan, model: Model) -> dict[str, str]:
    """Return the variants of a plan's operators, with a kernel of the core for those of which the core has to
    compute a row.
    """
    needing = {
        step.operator.name
        for step in unit_steps(plan, model.calls)
        if step.needs_core and step.call.kernel == KERNEL
    }
    return {**plan.kernels, **dict.fromkeys(needing, f"{KERNEL}:{WITH_CORE}")}


def _check(plan: Plan, model: Model) -> None:
    """Check the streams of single steps, and the joined streams of consecutive steps."""
    check_streams(plan, model)
    check_joined(plan, model.calls)


def hal_sources(board: Board) -> list[str]:
    """Return the driver for a board with a unit, or the functional model for a board without."""
    if board.npu is not None and board.npu.base is not None:
        return ["ethos_u/ethos_u_driver.c"]
    folder = resource_dir("firmware") / "hal" / "ethos_u"
    return [f"ethos_u/{path.name}" for path in sorted(folder.glob("*.c")) if "driver" not in path.stem]


def has_encoder() -> bool:
    """Return whether Vela, whose encoder compresses the weights, can be imported."""
    try:
        encoder()
    except ConfigError:
        return False
    return True


UNIT = UnitSupport(
    calls=unit_calls,
    reason_against=reason_against,
    settled=settled,
    check=_check,
    joined=joined,
    start_ticks=START_CYCLES,
    hal_sources=hal_sources,
    packages={"ethos-u-vela": "ethos-u-vela>=5.2,<6"},
    installed=has_encoder,
)
