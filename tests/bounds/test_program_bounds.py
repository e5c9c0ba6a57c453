"""Bounds of whole programs: in the header and the report, and never below a count."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands.commands import plan_model
from mcudeploy.common.errors import ConfigError, ProtocolError
from mcudeploy.execution.cycles.plugin import Counts, read_windows
from mcudeploy.extensions.bounds import bounding
from mcudeploy.extensions.bounds.bounding import CountedProgram, bounds_of
from mcudeploy.extensions.bounds.bounds_part import BoundsPart
from mcudeploy.extensions.bounds.program_bounds import Dependence
from mcudeploy.extensions.bounds.twin import require_twin
from mcudeploy.planner.plan_options import Options
from mcudeploy.verify.samples import Sample, load_samples
from tests import reports
from tests.deploy.models import fully_connected, quantised_convolutions

QUICK = Options(name="tiny", split=False, time_limit=0.5)


@pytest.fixture(scope="module")
def convolutions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return quantised_convolutions(tmp_path_factory.mktemp("bounds") / "small.onnx")


def extremes(sample: Sample) -> list[Sample]:
    """Samples of all minima, all maxima, and both in turn."""
    return [
        Sample(
            {},
            {
                name: np.resize(np.array(values, value.dtype), value.shape)
                for name, value in sample.stored.items()
            },
            {},
        )
        for values in ([-128], [127], [-128, 127], [0])
    ]


@pytest.mark.parametrize("board", ["mps2-an386", "mps3-an547", "microbit"])
def test_no_count_is_above_its_bound(convolutions: Path, board: str) -> None:
    deployment = plan_model(convolutions, load_board(board), QUICK)
    counted = CountedProgram.of(deployment)
    samples = extremes(load_samples(deployment.model.graph, [], [], 0)[0])
    bounds = counted.bounds(counted.windows(samples[0]))
    largest = [0] * len(bounds.steps)
    for run in map(counted.counts, samples):
        largest = [max(most, counts.total) for most, counts in zip(largest, run, strict=True)]
        for step, counts in zip(bounds.steps, run, strict=True):
            assert step.cycles is None or counted.most_cycles(counts) <= step.cycles
    known = [step.instructions for step in bounds.steps]
    assert None not in known
    assert all(count <= bound for count, bound in zip(largest, known, strict=True) if bound is not None)
    if board != "microbit":  # Armv6-M clips by branches
        assert largest == known
        assert {step.dependence for step in bounds.steps} == {Dependence.NONE}


def test_the_header_states_the_bounds(convolutions: Path, tmp_path: Path) -> None:
    board = load_board("stm32f411")  # mps2-an386 counts for it
    report = reports.build_models([convolutions], board, QUICK, tmp_path, kind="cmake", parts=[BoundsPart()])
    bounds = report["bounds"]
    header = (tmp_path / "include" / "tiny.h").read_text()
    macros = dict(re.findall(r"#define TINY_((?:RUN|STEP)_MAX_\w+) (\d+)u\n", header))
    assert {name: int(value) for name, value in macros.items()} == {
        "RUN_MAX_INSTRUCTIONS": bounds["run_instructions"],
        "RUN_MAX_CYCLES": bounds["run_cycles"],
        "STEP_MAX_INSTRUCTIONS": bounds["step_instructions"],
        "STEP_MAX_CYCLES": bounds["step_cycles"],
    }
    assert bounds["board"] == "mps2-an386" and bounds["cycle_model"] == "cortex-m4"
    assert len(bounds["steps"]) == report["steps"]
    longest = max(step["instructions"] for step in bounds["steps"])
    assert longest < bounds["step_instructions"] < longest + 50
    around = 50 * report["steps"]  # calls of kernels, which counted steps have in mcud_step()
    assert bounds["counted"] - around < bounds["run_instructions"] < bounds["counted"] + around + 50
    assert bounds["run_instructions"] < bounds["run_cycles"]
    page = (tmp_path / "tiny_bounds.md").read_text()
    assert all(f"| `TINY_{name}` | {int(value):,} |" in page for name, value in macros.items())
    plain = reports.build_models([convolutions], board, QUICK, tmp_path, kind="cmake")
    assert "bounds" not in plain and not (tmp_path / "tiny_bounds.md").exists()
    assert "_MAX_" not in (tmp_path / "include" / "tiny.h").read_text()


def test_floats_in_software_have_bounds_or_reasons(tmp_path: Path) -> None:
    """A Cortex-M3 adds floats by functions of GCC's library, which branch by data."""
    model = fully_connected(tmp_path / "dense.onnx", (8, 6, 4), quantised=False)
    deployment = plan_model(model, load_board("mps2-an385"), QUICK)
    bounds = bounds_of(deployment, load_samples(deployment.model.graph, [], [], 0)[0])
    for step in bounds.steps:
        assert (step.instructions is None) == (step.dependence is Dependence.LOOPS) == bool(step.reason)
    assert Dependence.NONE not in {step.dependence for step in bounds.steps}


def test_boards_that_platformio_compiles_are_refused_for_their_compiler() -> None:
    with pytest.raises(ConfigError, match="PlatformIO compiles for pio:due with another"):
        require_twin(load_board("pio:due"))


def test_boards_without_an_emulated_twin_are_refused(convolutions: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"esp32c3 has a rv32imc: leave out --bounds, or .*mps2-an386"):
        reports.build_models(
            [convolutions], load_board("esp32c3"), QUICK, tmp_path / "out", parts=[BoundsPart()]
        )
    assert not (tmp_path / "out").exists()
    assert require_twin(load_board("rp2040")).name == "mps2-an385"
    assert require_twin(load_board("stm32f405")).name == "stm32f405"


def test_several_cores_have_no_bounds(convolutions: Path) -> None:
    deployment = plan_model(convolutions, load_board("mps2-an521"), replace(QUICK, cores=2))
    with pytest.raises(ConfigError, match="--parallel 1"):
        bounds_of(deployment, load_samples(deployment.model.graph, [], [], 0)[0])


def test_steps_with_an_interrupt_are_counted_again(
    convolutions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows of the first run, or of all, are read as if the handler had run in them."""
    deployment = plan_model(convolutions, load_board("mps2-an386"), QUICK)
    counted = CountedProgram.of(deployment)
    sample = load_samples(deployment.model.graph, [], [], 0)[0]
    clean, entries = counted.counts(sample), len(deployment.plan.tape)
    handler = counted.functions.named("uart_interrupt").address

    def interrupted(path: Path, most: int) -> list[Counts]:
        windows = list(read_windows(path))
        for counts in windows[:most]:
            counts.executed[handler] += 1
        return windows

    monkeypatch.setattr(bounding, "read_windows", lambda path: interrupted(path, entries))
    assert counted.counts(sample) == clean
    monkeypatch.setattr(bounding, "read_windows", lambda path: interrupted(path, 10**6))
    with pytest.raises(ProtocolError, match=f"{entries} steps had an interrupt in each of 8 runs"):
        counted.counts(sample)
