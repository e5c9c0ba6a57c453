"""Random graphs whose operators an Ethos-U computes wherever it can, compared with the core's kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np

from fuzzing import plans, running
from fuzzing.plans import JudgedPlan
from mcudeploy.boards.facts import Npu
from mcudeploy.common.errors import ModelError
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.planner.model import model as planned_model
from mcudeploy.planner.model.model import Model, load_model
from mcudeploy.planner.plan_options import Options

CORE = plans.HOST
"""The board of plans by the core's kernels alone."""
_SEARCH = Options(time_limit=0.15, max_overhead=100)


@contextmanager
def on_unit(macs: int) -> Iterator[None]:
    """Let `running.examine` plan for this computer with a unit, whose calls replace the core's.

    Beside the unsplit plan there is one of the core's kernels, whose outputs must be the same bytes, one with
    random cuts and, of each fourth seed, one that a search has cut.
    """
    every = planned_model._variants
    unit = Npu(kind="ethos-u55", macs=macs)  # type: ignore[arg-type]
    board = CORE.model_copy(update={"core": "cortex-m55", "npu": unit})

    def forced(*of: object) -> tuple[KernelCall, ...]:
        calls = every(*of)  # type: ignore[arg-type]
        return tuple(call for call in calls if call.isa.unit) or calls

    changed = (
        (planned_model, "_variants", forced),
        (plans, "HOST", board),
        (plans, "others", _ways),
        (plans, "_drawn_call", _drawn_call),
        (running, "load_model", partial(load_model, isa=board.isa)),
    )
    with ExitStack() as stack:
        for module, name, value in changed:
            stack.enter_context(patch.object(module, name, value))
        yield


def _ways(model: Model, _: JudgedPlan, seed: int) -> Iterator[tuple[str, Callable[[], JudgedPlan]]]:
    """The plans beside the unsplit one of the unit."""
    options = Options(split=False)
    yield "core", lambda: plans.searched("core", load_model(model.path, isa=Isa.ANY), CORE, options)
    yield "cut", lambda: plans._cut(model, np.random.default_rng(seed))
    if seed % 4 == 0:
        yield "split", lambda: plans.searched("split", model, plans.HOST, _SEARCH)


def _drawn_call(variants: Sequence[KernelCall], random: np.random.Generator) -> KernelCall:
    """Of the unit's calls the one that runs for any cut, since nothing settles the plan; else any."""
    return variants[-1] if variants[-1].isa.unit else variants[int(random.integers(len(variants)))]


def runs_on_unit(path: Path) -> bool:
    """Whether a unit computes an operator of a graph; one that mcudeploy does not take has none."""
    try:
        model = load_model(path, isa=Isa.U55_128)
    except ModelError:
        return False
    return any(call.isa.unit for calls in model.variants.values() for call in calls)
