"""`import mcudeploy`: the commands as functions, on a small model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from models import fully_connected

import mcudeploy
from mcudeploy.common.errors import BoardNotFoundError, FitError, UsageError


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fully_connected(tmp_path_factory.mktemp("python") / "net.onnx", (8, 6, 4), quantised=False)


def test_a_model_is_planned_built_and_run(model: Path, tmp_path: Path) -> None:
    plan = mcudeploy.plan(model, "host", time_limit=1)
    assert 0 < plan.arena_bytes == plan.report["arena_bytes"] <= plan.unsplit_arena_bytes
    plan.save(tmp_path / "plan.json")
    plan.chart(tmp_path / "arena.svg")
    assert (tmp_path / "arena.svg").read_text().startswith("<svg")

    values = [np.full((1, 8), number, np.float32) for number in (1, 2)]
    np.save(tmp_path / "two.npy", values[1])
    result = mcudeploy.run(model, inputs=[values[0], tmp_path / "two.npy"], plan=tmp_path / "plan.json")
    assert result.verified and result.milliseconds >= 0 and len(result.outputs) == 2
    assert all(it["y"].shape == (1, 4) and it["y"].dtype == np.float32 for it in result.outputs)
    assert result.report["outputs"][1]["values"] == pytest.approx(result.outputs[1]["y"].ravel().tolist())

    built = mcudeploy.build(model, "mps2-an386", tmp_path / "out", kind="rust", verify=False, time_limit=1)
    assert built.verified is None and tmp_path / "out" / "Cargo.toml" in built.files


def test_what_can_be_deployed_and_where(model: Path) -> None:
    assert mcudeploy.check(model)["supported"]
    report = mcudeploy.fit(model, ["microbit", "stm32f405"])
    assert {it["board"] for it in report["boards"]} == {"microbit", "stm32f405"}


def test_errors_are_those_of_the_command_line(model: Path) -> None:
    with pytest.raises(BoardNotFoundError, match="no board 'nope'"):
        mcudeploy.plan(model, "nope")
    with pytest.raises(FitError):
        mcudeploy.plan(model, "microbit", ram_limit=8, time_limit=1)
    with pytest.raises(UsageError, match="float64"):
        mcudeploy.run(model, inputs=[np.zeros((1, 8))])
    with pytest.raises(TypeError, match="no such option: speed"):
        mcudeploy.plan(model, "microbit", speed=1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        mcudeploy.nope  # noqa: B018


def test_importing_it_loads_nothing_else() -> None:
    code = "import sys, mcudeploy; sys.exit('numpy' in sys.modules or 'plan' not in mcudeploy.__all__)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
