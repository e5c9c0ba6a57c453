"""This computer as a board with an Ethos-U, which computes whatever it can."""

from __future__ import annotations

import pytest

from mcudeploy.boards.catalogue import load_board
from mcudeploy.boards.facts import Npu
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.planner.model import model as planned_model

HOST = load_board("host").model_copy(update={"core": "cortex-m55", "npu": Npu(kind="ethos-u55", macs=128)})
"""With the functional model; times are those of a Cortex-M55."""


def prefer_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave only calls of the unit to operators that have some."""
    every = planned_model._variants

    def by_unit(*of: object) -> tuple[KernelCall, ...]:
        calls = every(*of)  # type: ignore[arg-type]
        return tuple(call for call in calls if call.isa.unit) or calls

    monkeypatch.setattr(planned_model, "_variants", by_unit)
