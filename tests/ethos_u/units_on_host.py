"""This computer as a board with an Ethos-U, which computes whatever it can."""

from __future__ import annotations

import pytest
from bench import machine

from mcudeploy.boards.catalogue import load_board
from mcudeploy.boards.facts import Npu
from mcudeploy.device.tile import Tile, pack
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.planner.model import model as planned_model

HOST = load_board("host").model_copy(update={"core": "cortex-m55", "npu": Npu(kind="ethos-u55", macs=128)})
"""With the functional model; times are those of a Cortex-M55."""
_IMAGE_AT = 1 << 20


def rows_of(tile: Tile) -> bytes:
    """The rows of the output of a tile, whose inputs are in place, computed one by one."""
    session = machine().session
    image = pack(tile, machine().kernels(tile.call.kernel), session.info, at=_IMAGE_AT)
    session.write(0, image.at, image.data)
    rows = []
    for row, offset in enumerate(tile.output.offsets):
        session.call(0, image.op_offset, row, row + 1)
        rows.append(session.read(0, offset, tile.output.row_bytes))
    return b"".join(rows)


def prefer_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave only calls of the unit to operators that have some."""
    every = planned_model._variants

    def by_unit(*of: object) -> tuple[KernelCall, ...]:
        calls = every(*of)  # type: ignore[arg-type]
        return tuple(call for call in calls if call.isa.unit) or calls

    monkeypatch.setattr(planned_model, "_variants", by_unit)
