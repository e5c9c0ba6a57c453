"""A state of which each run writes some rows, at positions that are inputs or constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mcudeploy.ir.graph import DType, Operator, Shape, Tensor
from mcudeploy.ir.opdef import Index, KernelCall, LoopNest, Params, PlainOperator
from mcudeploy.ops.common import (
    ELEMENTWISE,
    WIDE_INTEGERS,
    merged,
    moved,
    reduced_axis,
    require_same_values,
    spatial_axes,
)


@dataclass(frozen=True, slots=True)
class WriteRows(PlainOperator):
    """Rows of an input x, written to a state at given positions.

    Inputs: positions, int32 (1, 1, count); x (1, blocks * count, width); the state (1, ...); any others.

    The state has `blocks` blocks of `rows` rows; in each, row positions[i] becomes row i of the same block
    of x. Negative positions count from the end, and those outside are not written. Positions may be
    constants["positions"] instead. The result takes the memory of the state, and is the state of the next
    run. Further inputs are not read: they are results of operators that read the old state, and so run
    before it changes.
    """

    kind: ClassVar[str] = "WriteRows"
    accepts: ClassVar[frozenset[DType]] = WIDE_INTEGERS
    blocks: int
    rows: int
    constant_positions: bool = False

    @property
    def continues(self) -> int:
        """The number of the input that is the state."""
        return 1 if self.constant_positions else 2

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """An element comes from its place in the state, or from any row of x."""
        positions = [] if self.constant_positions else [inputs[0]]
        x, state, *others = inputs[len(positions) :]
        count = x[1] // self.blocks
        fits = positions in ([], [(1, 1, count)]) and x[:2] == (1, self.blocks * count) and state[0] == 1
        if not fits or state[1] * state[2] != self.blocks * self.rows * x[2]:
            raise ValueError(f"rows {x} do not fit into a state {state} of {self.blocks} x {self.rows}")
        reads = (
            *((Index(), Index(), Index.of(at=1)) for _ in positions),
            (Index(), Index.of(x=1), Index.of(width=1)),
            ELEMENTWISE,
            *((Index(), Index(), Index()) for _ in others),
        )
        reduced = {"at": count, "x": x[1], "width": x[2]}
        axes = (*spatial_axes(state), *(reduced_axis(name, size) for name, size in reduced.items()))
        return LoopNest(axes, reads, ELEMENTWISE)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `write_rows`."""
        x, state = inputs[self.continues - 1 : self.continues + 1]
        for source in (x, state):
            require_same_values(source, output)
        count, row_bytes = x.shape[1] // self.blocks, x.size_bytes // x.shape[1]
        params: Params = {
            "positions": operator.constants.get("positions"),
            "count": count,
            "blocks": self.blocks,
            "rows": self.rows,
            "row_bytes": row_bytes,
        }
        counts = merged({"calls": 1, "positions": count}, moved(row_bytes, count * self.blocks))
        return KernelCall("write_rows", params, counts=lambda _: counts)

    def overwrites(self, inputs: tuple[Tensor, ...], output: Tensor) -> tuple[int, ...]:
        """The state, whose next content is the output."""
        return (self.continues,)

    def indexed_rows(self, operator: Operator, inputs: tuple[Tensor, ...]) -> int | None:
        """The rows of a block, of which the positions are indices; None if these are constants."""
        return None if self.constant_positions else self.rows
