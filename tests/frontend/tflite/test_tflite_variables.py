"""Resource variables of .tflite files beside TFLite Micro: states of the program."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flat_files import FlatFile
from flat_variables import CHANNELS, crossed, difference, queue, read_after_assignment, running_sum
from micro import run_micro
from numpy.typing import NDArray
from programs import QUICK, results

from mcudeploy.boards.catalogue import load_board
from mcudeploy.checker.judge import PlanFaultError, check
from mcudeploy.commands import commands as api
from mcudeploy.common.errors import ModelError
from mcudeploy.frontend.load import load
from tests import reports
from tests.networks.refusals import problems_of
from tests.weekly import sample

FILES = {
    "one row": queue,
    "two rows": partial(queue, newest=2, tail="STRIDED_SLICE"),
    "all rows assigned": partial(queue, newest=2, tail=""),
    "more new rows than kept": partial(queue, newest=5, kept=2),
    "no initial value": partial(queue, filled=False),
    "floats": partial(queue, kind="FLOAT32", newest=2, kept=3),
    "read twice": running_sum,
    "delay": difference,
    "delay of floats": partial(difference, kind="FLOAT32"),
    "read after assignment": read_after_assignment,
}


@pytest.mark.parametrize("name", FILES)
def test_sequences_are_those_of_tflite_micro(name: str, tmp_path: Path) -> None:
    file = FlatFile()
    path = file.save(tmp_path, *FILES[name](file))
    inputs = _drawn(path, 30)
    wanted, computed = run_micro(path, inputs), results(path, inputs)
    if wanted.dtype == np.int8:
        assert np.abs(computed.astype(int) - wanted).max() <= 1
    else:
        assert np.allclose(computed, wanted, rtol=1e-5, atol=1e-5)
    assert np.unique(wanted).size > 20


@pytest.mark.parametrize("name", sample(FILES, 2))
def test_programs_are_verified_and_keep_their_states(name: str, tmp_path: Path) -> None:
    file = FlatFile()
    path = file.save(tmp_path, *FILES[name](file))
    report = reports.verified(path)
    assert report["state_bytes"] > 0


@pytest.mark.parametrize("tail", ["SLICE", ""])
def test_a_queue_is_the_tensor_that_the_convolution_reads(tmp_path: Path, tail: str) -> None:
    file = FlatFile()
    graph = load(file.save(tmp_path, *queue(file, newest=2, tail=tail)))
    assert [operator.op.kind for operator in graph.operators] == ["Queue", "Reshape", "Conv2d"]
    (state,) = graph.states
    assert graph.tensors[state.tensor].shape == (1, 6, CHANNELS)


@pytest.mark.parametrize("board", ["host", "stm32f746-disco"])
@pytest.mark.parametrize("name", sample(FILES, 3))
def test_a_state_that_the_next_run_does_not_find(name: str, board: str, tmp_path: Path) -> None:
    file = FlatFile()
    deployment = api.plan_model(file.save(tmp_path, *FILES[name](file)), load_board(board), QUICK)
    plan, state = deployment.plan, deployment.plan.graph.states[0]
    ((place,),) = plan.layout.blocks[state.after.tensor]
    beyond = replace(place, offset=plan.layout.arenas[place.memory] // 64 * 64 + 64)
    elsewhere = {**plan.layout.blocks, state.after.tensor: ((beyond,),)}
    arenas = {memory: size + 4096 for memory, size in plan.layout.arenas.items()}
    wrong = replace(plan, layout=replace(plan.layout, blocks=elsewhere, arenas=arenas))
    check(plan, deployment.model.work, deployment.board)
    with pytest.raises(PlanFaultError, match="the next run reads it at"):
        check(wrong, deployment.model.work, deployment.board)


def test_variables_that_need_each_other(tmp_path: Path) -> None:
    file = FlatFile()
    assert {it.node for it in problems_of(file.save(tmp_path, *crossed(file)))} == {
        "2 READ_VARIABLE",
        "3 READ_VARIABLE",
    }


def test_a_subgraph_that_computes_initial_values(tmp_path: Path) -> None:
    file = FlatFile()
    ios = queue(file)
    assert file.once is not None
    file.once.operator("NEG", [0], [1])
    assert "does more than assign constants" in problems_of(file.save(tmp_path, *ios))[0].reason


def test_an_initial_value_of_another_size(tmp_path: Path) -> None:
    file = FlatFile()
    ios = queue(file, filled=False)
    file.call_once(rows=file.constant(np.zeros((1, 3)), np.int8))
    with pytest.raises(ModelError, match="its initial value is INT8"):
        load(file.save(tmp_path, *ios))


def _drawn(path: Path, count: int) -> NDArray[Any]:
    (io,) = load(path).own_inputs()
    random = np.random.default_rng(0)
    if io.dtype == "float32":
        return random.normal(0, 2, (count, *io.shape)).astype(np.float32)
    return random.integers(-128, 128, (count, *io.shape), np.int8)
