"""Updates that come before the last reader of their parameter: the checker refuses every such plan."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_gradients import step_of

from mcudeploy.boards.catalogue import load_board
from mcudeploy.checker.judge import check
from mcudeploy.checker.owners import PlanFaultError
from mcudeploy.ir.plan import Plan, Schedule
from mcudeploy.planner.model.model import read_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import search_plans
from mcudeploy.planner.search.placing import placed
from mcudeploy.tiling.blocks import TiledGraph
from tests.networks.onnx_files import save
from tests.networks.trained import random_network
from tests.weekly import sample

BOARD = load_board("mps2-an386")


def early_updates(plan: Plan) -> list[Schedule]:
    """The schedules in which one update comes right before one earlier reader of its parameter."""
    operators, steps = plan.graph.operators, plan.schedule.steps
    result = []
    for state in plan.graph.states:
        update = max(at for at, it in enumerate(steps) if operators[it.operator].output == state.after.tensor)
        for at, step in enumerate(steps[:update]):
            operator = operators[step.operator]
            if state.tensor in operator.inputs and operator.output != state.after.tensor:
                early = [*steps[:at], steps[update], *steps[at:update], *steps[update + 1 :]]
                result.append(Schedule(tuple(early), "feasible"))
    return result


@pytest.mark.parametrize("momentum", sample([0.9, 0.0], 1))
def test_an_early_update_is_refused(momentum: float, tmp_path: Path) -> None:
    step = step_of(save(random_network(1), tmp_path), "cross-entropy", rate=0.05, momentum=momentum)
    model = read_model(save(step.proto, tmp_path, "step"), Options(keep_constant=True), isa=BOARD.isa)
    planned = search_plans(model, BOARD, Options(time_limit=0.5))
    plan = planned.choices[0]
    in_form, tiled = planned.model_of(plan), TiledGraph.of(plan)
    mutants = early_updates(plan)
    assert len(mutants) >= 20
    for schedule in mutants:
        early = placed(in_form, BOARD, tiled, schedule, splits=plan.splits)
        with pytest.raises(PlanFaultError):
            check(early, in_form.work, BOARD)
