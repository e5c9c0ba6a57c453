"""What the tape takes in flash: records, parameters, offset tables and schedule, as C lays them out."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from mcudeploy.analyzer.needs import unit_names
from mcudeploy.board import Board
from mcudeploy.ops.opdef import KernelCall
from mcudeploy.plan import Placement, Plan

_WORD = 4
"""Bytes of an integer or float in a record, and what tables begin at a multiple of."""
_ONE_PIECE = 0xFFFFFFFF
"""Rows in a block of a tensor in one piece: no row has a larger number."""


def stored_offsets(row_bytes: int, placement: Placement) -> tuple[tuple[int, ...], int]:
    """The offsets that the table has for a tensor, and the rows in a block of its record."""
    offsets, pitch = placement.offsets, row_bytes * placement.block_rows
    if all(offset == offsets[0] + i * pitch for i, offset in enumerate(offsets)):
        return offsets[:1], _ONE_PIECE  # in one piece (scratch: in one place): one offset serves all rows
    return offsets, placement.block_rows


def integer_bits(largest: int) -> int:
    """Width of a table's integers."""
    return 16 if largest < 2**16 else 32


def step_codes(plan: Plan) -> tuple[int, NDArray[np.uint32]]:
    """The bits that a block takes in a step's code, and the schedule as codes `operator << bits | block`.

    Operators count as in the table of records, which has none for views.
    """
    bits = max((step.block for step in plan.schedule.steps), default=0).bit_length()
    numbers = list(accumulate((not operator.op.is_view for operator in plan.graph.operators), initial=0))
    codes = [numbers[step.operator] << bits | step.block for step in plan.schedule.steps]
    return bits, np.array(codes, np.uint32)


def handed_over(plan: Plan, board: Board) -> dict[str, int]:
    """Operators with a kernel that a compute unit other than the first runs: its number among the board's."""
    numbers = {unit.name: number for number, unit in enumerate(board.units)}
    names = unit_names(plan.graph, board, plan.functions)
    kernels = (operator.name for operator in plan.graph.operators if not operator.op.is_view)
    return {name: number for name in kernels if (number := numbers[names[name]])}


def tables_bytes(plan: Plan, calls: Mapping[str, KernelCall], board: Board) -> int:
    """Bytes of flash that a plan takes beside code and weights: records, offset tables and schedule.

    It is what the linker reports for the generated tables, up to a few bytes between them.
    """
    operators = [operator for operator in plan.graph.operators if not operator.op.is_view]
    pointer_bytes, handed = 8 if board.is_host else 4, len(handed_over(plan, board))
    # An operator of another unit has a second record, which shares its inputs, and one that points to it.
    pointers, words = (5 + 1) * handed, (2 + 1 + 1 % (pointer_bytes // _WORD)) * handed
    named: set[str] = set()
    for operator in operators:
        pointers += 5 + len(operator.inputs)  # kernel, parameters, inputs, output, scratch
        words += 2
        values = calls[operator.name].params.values()
        scalars = sum(isinstance(value, int | float | np.generic) for value in values)
        padding = scalars % (pointer_bytes // _WORD) if scalars < len(values) else 0
        pointers += len(values) - scalars
        words += scalars + padding
        named |= {operator.output, *operator.inputs}
    records = len(named) + len(plan.layout.scratch)
    arenas = len(plan.layout.arenas)
    pointers += 2 * records + 2 * arenas + 3  # an arena's size is padded to a pointer
    words += 2 * records + 3 + 3 % (pointer_bytes // _WORD)
    return (
        pointers * pointer_bytes
        + words * _WORD
        + _offsets_bytes(plan, board.offset_unit)
        + _codes_bytes(plan)
    )


def _offsets_bytes(plan: Plan, alignment: int) -> int:
    stored = [
        offset
        for name, placement in plan.layout.tensors.items()
        for offset in stored_offsets(plan.graph.tensors[name].row_bytes, placement)[0]
    ]
    stored += [offset for found in plan.layout.scratch.values() for offset in stored_offsets(0, found)[0]]
    return len(stored) * integer_bits(max(stored, default=0) // alignment) // 8


def _codes_bytes(plan: Plan) -> int:
    codes = step_codes(plan)[1]
    return codes.size * integer_bits(int(codes.max(initial=0))) // 8
