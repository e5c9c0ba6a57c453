"""One stream for consecutive steps of the unit: its bytes, its judge, and programs that run it."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from joined_mutants import Joined, joined_of, judged, payload
from test_mixed_plans import over_time
from units_on_host import HOST, prefer_unit

from mcudeploy.checker.owners import PlanFaultError
from mcudeploy.commands.commands import plan_model
from mcudeploy.device.target import Target, open_device
from mcudeploy.execution.deployment import Deployment
from mcudeploy.extensions.ethos_u import joined_judge
from mcudeploy.extensions.ethos_u.joined_judge import joined_fault
from mcudeploy.extensions.ethos_u.registers import Stream, decode
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Run
from mcudeploy.planner.plan_options import Options
from mcudeploy.verify.compare import run_once
from mcudeploy.verify.samples import drawn_samples
from tests import reports

from flat_files import FlatFile  # isort: skip

pytest.importorskip("ethosu", reason="Vela is not installed: pip install mcudeploy[ethosu]")


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Joined:
    return joined_of(tmp_path_factory.mktemp("joined"))


def test_a_stream_sets_the_registers_that_change(cut: Joined) -> None:
    stream = cut.stream
    assert len(stream.entries) == stream.operations > 3
    assert 4 * len(stream.words) / stream.operations < 200
    assert cut.fault(stream.words) is None


def test_arenas_are_those_of_single_steps(cut: Joined) -> None:
    """Byte for byte, beside the outputs."""
    deployment, target = cut.deployment, Target(HOST)
    (sample,) = drawn_samples(deployment.model.graph, 1, 1)
    arenas = []
    with open_device(target, deployment.build(target), 60) as device:
        for steps in ((), deployment.joined_steps):
            for memory, size in enumerate(deployment.plan.layout.arenas.values()):
                device.write(memory, 0, bytes(size))
            run_once(device, deployment.storage, sample.stored, steps)
            arenas.append([device.read(0, 0, size) for size in deployment.plan.layout.arenas.values()])
    assert arenas[0] == arenas[1] and any(arenas[0][0])


def test_the_checker_refuses_mutants_with_other_bytes_or_without_a_wait(
    cut: Joined, model: ctypes.CDLL
) -> None:
    found, accepted = judged(model, cut, seed=1, count=60)
    assert not accepted and len(found) > 8


def test_only_operations_that_touch_other_bytes_may_overlap(cut: Joined) -> None:
    """Before one operation BLOCKDEP is 1; its step reads what the one before it wrote, or does not."""
    operations = [at for at, it in enumerate(decode(cut.stream.words[4:])) if it.operates][:-1]
    faults = []
    for chosen in operations[1:]:
        stream = Stream()
        for at, it in enumerate(decode(cut.stream.words[4:])):
            if at == chosen:
                stream.set(BLOCKDEP=1)
            if it.operates:
                stream.operate(it.name, it.value)
            else:
                stream.set(**{it.name: it.value})
            if at == chosen:
                stream.set(BLOCKDEP=0)
        faults.append(cut.fault(payload(cut, stream.words)))
    texts = [it for it in faults if it is not None]
    assert len(texts) > 3 and all("that BLOCKDEP does not wait for" in it for it in texts)
    assert None in faults
    never = [it for it in cut.stream.words[4:] if it & 0x43FF != 0x12F]
    assert "does not wait" in str(cut.fault(payload(cut, never)))


def test_a_stream_for_other_steps_is_refused(cut: Joined) -> None:
    stream = cut.stream
    fewer = replace(stream, entries=Interval(stream.entries.lo, stream.entries.hi - 1))
    plan, calls = cut.deployment.plan, cut.deployment.model.calls
    assert "operations, its steps" in str(joined_fault(plan, calls, cut.streams, fewer))
    elsewhere = replace(cut.streams, constants=cut.streams.constants + np.uint32(1))
    assert "its constants are not" in str(joined_fault(plan, calls, elsewhere, stream))
    shared = replace(cut.streams, memories=("psram",))
    assert "regions are not arenas" in str(joined_fault(plan, calls, shared, stream))
    assert "payload" in str(cut.fault([0, *stream.words[1:]]))


def test_a_plan_with_a_wrong_stream_is_refused(cut: Joined, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = replace(cut.streams, streams=(replace(cut.stream, words=(0, 0, 0, 0)),))
    monkeypatch.setattr(joined_judge, "joined", lambda *_: wrong)
    with pytest.raises(PlanFaultError, match="payload"):
        joined_judge.check_joined(cut.deployment.plan, cut.deployment.model.calls)


def test_another_result_of_joined_steps_is_an_error(cut: Joined, monkeypatch: pytest.MonkeyPatch) -> None:
    first = [0] * len(cut.deployment.view.entries)
    monkeypatch.setattr(Deployment, "joined_steps", [*first, 1])
    with pytest.raises(Exception, match="by joined streams is not what it was"):
        reports.run_model(cut.deployment.model.path, Target(HOST), cut.options, inputs=[], expected=[])


def test_steps_with_states_and_of_the_core_stay_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefer_unit(monkeypatch)
    flat = FlatFile()
    path = flat.save(tmp_path, *over_time(flat))
    deployment = plan_model(path, HOST, Options(time_limit=0.5, hop=2))
    streams = deployment.view.streams
    assert streams is not None
    states = {name for state in deployment.plan.graph.states for name in state.tensors}
    for at in streams.entries:
        entry = deployment.view.entries[at]
        assert isinstance(entry, Run)
        operator = deployment.plan.graph.operators[entry.operator]
        assert deployment.model.calls[operator.name].isa.unit
        assert not states & {*operator.inputs, operator.output}
    assert deployment.library_program.steps == deployment.joined_steps[-1] - len(deployment.view.entries)


def test_a_library_has_streams_and_only_the_kernels_of_other_steps(cut: Joined) -> None:
    joined, steps = cut.deployment.library_program, cut.deployment.program
    entries = len(cut.deployment.view.entries)
    assert joined.steps == entries - sum(len(it.entries) - 1 for it in cut.streams.streams) < entries
    assert "run_streams_npu" in joined.kernels and len(joined.operators) < len(steps.operators)
    assert joined.weights_bytes < steps.weights_bytes
    assert cut.deployment.measured_program.weights_bytes <= steps.weights_bytes + 16 * len(steps.operators)
    assert f"{len(cut.streams.streams)} of the unit" in joined.step_kinds
    assert 0 <= joined.peak_step < joined.steps
    assert replace(cut.deployment, joins=False).library_program.kernels == steps.kernels
