"""Runs of plans on a device, observed, and the first plan whose measured latency keeps the limit.

The limit is in percent over the latency of the unsplit plan. A host has none: its times depend on system
load.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache as memoize
from typing import Any

from mcudeploy.boards.board import CORE_STACK_BYTES
from mcudeploy.common.errors import ConfigError, DeployError
from mcudeploy.common.progress import Progress
from mcudeploy.costs.database import Database, warn_of_database
from mcudeploy.device.guards import arm, require_intact
from mcudeploy.device.target import Device, Target, open_device
from mcudeploy.execution.counted import count_steps, traffic_of
from mcudeploy.execution.cycles.marks import count_lanes
from mcudeploy.execution.cycles.plugin import Counts, require_plugins
from mcudeploy.execution.cycles.profile import core_of, profile
from mcudeploy.execution.deployment import Deployment
from mcudeploy.execution.unit_model import with_unit_cycles
from mcudeploy.ir.clock import ESTIMATE_UNIT, MODEL_UNIT, PATH_UNIT, manner_of, unit_of_cycles
from mcudeploy.ir.engine import FLASH
from mcudeploy.ir.plan import CoresTime, Measurement, OperatorTime, Plan
from mcudeploy.planner.planner import Planned
from mcudeploy.toolchain import Firmware
from mcudeploy.toolchain.stack import StackBound, stack_bound
from mcudeploy.verify.compare import Storage, fed_runs, run_once
from mcudeploy.verify.samples import Sample

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """The results of a device: its timings, and the stored outputs of each sample by tensor name.

    `entries`: the time of each entry of the tape, in the unit of the measurement; `counts`: counts of each
    entry, if it was counted.
    """

    measurement: Measurement
    outputs: list[dict[str, Any]]
    stack: StackBound | None
    entries: tuple[int, ...] = ()
    counts: Sequence[Counts] = ()


@dataclass(frozen=True, slots=True, eq=False)
class DeviceRun:
    """A deployment on a device, and the measurement of the unsplit plan there, if any."""

    deployment: Deployment
    firmware: Firmware
    observed: Observation
    unsplit: Measurement | None


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A target, and the firmware on it."""

    target: Target
    firmware: Firmware


def run_within_limit(
    deployment: Deployment, target: Target, samples: list[Sample], max_overhead: float, progress: Progress
) -> DeviceRun:
    """Run plans, the least arena first, until one keeps the limit; each miss causes a warning.

    The baseline always keeps it. If the baseline is not a choice, the last candidate is taken.
    """
    unsplit = _unsplit(deployment, target, samples, progress)
    planned = deployment.planned
    device_run: DeviceRun | None = None
    for turn in _turns(planned):
        one = deployment.with_plan(turn.plan)
        known = None if target.board.is_host or turn.is_last else one.measured(target.emulated)
        if known is not None and _misses(turn, one.overhead(known, unsplit), max_overhead, known.unit):
            continue
        device_run = DeviceRun(one, *run_on(one, target, samples, progress), unsplit)
        ran = device_run.observed.measurement
        if not _misses(turn, one.overhead(ran, unsplit), max_overhead, ran.unit):
            return device_run
    if planned.offers_baseline or device_run is None:
        base = deployment.with_plan(planned.baseline)
        return DeviceRun(base, *run_on(base, target, samples, progress), unsplit)
    return device_run


@dataclass(frozen=True, slots=True, eq=False)
class _Turn:
    """A candidate, and its number among all choices, from 1."""

    plan: Plan
    number: int
    planned: Planned

    @property
    def is_last(self) -> bool:
        return self.number == len(self.planned.choices)

    @property
    def next_step(self) -> str:
        """The sentence for the user if this candidate is rejected."""
        if self.is_last:
            return "There is no other plan"
        is_unsplit = self.number == len(self.planned.candidates)
        following = f"plan {self.number + 1} of {len(self.planned.choices)}"
        return f"Trying {following}" + (", the unsplit one" if is_unsplit else "")


def _turns(planned: Planned) -> Iterator[_Turn]:
    """Return the candidates in the order of their trial."""
    return (_Turn(plan, number, planned) for number, plan in enumerate(planned.candidates, 1))


def known_within_limit(deployment: Deployment, max_overhead: float) -> Deployment:
    """Return the first plan that is not known to miss the limit, by measurement or else by estimate."""
    unsplit = memoize(deployment.measured_baseline)  # looked up only if another plan has run
    one = deployment
    for turn in _turns(deployment.planned):
        one = deployment.with_plan(turn.plan)
        known = None if deployment.board.is_host else one.measured()
        overhead = None if known is None else one.overhead(known, unsplit())
        if known is None or overhead is None:
            missed = _misses(turn, one.estimated_overhead, max_overhead)
        else:
            missed = _misses(turn, overhead, max_overhead, known.unit)
        if not missed:
            return one
    return deployment.with_plan(deployment.planned.baseline) if deployment.planned.offers_baseline else one


def _unsplit(
    deployment: Deployment, target: Target, samples: list[Sample], progress: Progress
) -> Measurement | None:
    """Return the unsplit plan's ticks on the device, measured now if unknown; None if impossible."""
    base = deployment.with_plan(deployment.planned.baseline)
    if target.board.is_host or not base.fits:
        return None
    measurement = base.measured(target.emulated)
    if measurement is None and deployment.planned.candidates:
        progress.stage("measuring the unsplit plan")
        measurement = run_on(base, target, samples[:1], progress)[1].measurement
    return measurement


def _misses(turn: _Turn, overhead: float | None, limit: float, unit: str | None = None) -> bool:
    """Whether a candidate takes too long; warns the user. `unit`: of its run, None for an estimate."""
    if overhead is None or overhead <= limit + 1e-9:
        return False
    how = manner_of(unit) if unit else "estimated"
    _LOG.warning(
        "warning: the plan with an arena of %s B takes %.2f %% longer than the unsplit plan, as %s; the "
        "limit is %g %% (--max-overhead). %s",
        f"{turn.plan.layout.arena_bytes:,}", overhead, how, limit, turn.next_step,
    )  # fmt: skip
    return True


def run_on(
    deployment: Deployment, target: Target, samples: list[Sample], progress: Progress
) -> tuple[Firmware, Observation]:
    """Build a deployment's firmware, run the samples on the target, store the measurement."""
    if target.emulated and deployment.planned.objective == "cycles":
        require_plugins()
    progress.stage(f"building firmware for {target.board.name}")
    firmware = deployment.build(target)
    deployment.require_flash(firmware)
    progress.stage(f"running on {target.title}")
    with open_device(target, firmware, deployment.patience_s) as device:
        observed = observe(device, target, deployment, samples, progress)
    observed = retimed(observed, deployment, Place(target, firmware), samples[0])
    store_measurement(deployment, firmware, observed)
    return firmware, observed


def retimed(observed: Observation, deployment: Deployment, place: Place, sample: Sample) -> Observation:
    """Return an observation; for an emulator, with times that its clock cannot measure.

    Another run, with counts, yields modelled cycles if they are the objective, or else the critical path of
    several cores.
    """
    if not place.target.emulated:
        return observed
    if deployment.planned.objective == "cycles":
        return _in_cycles(observed, deployment, place, sample)
    return _along_path(observed, deployment, place, sample) if deployment.plan.lanes else observed


def _in_cycles(observed: Observation, deployment: Deployment, place: Place, sample: Sample) -> Observation:
    core = core_of(place.target)
    steps = count_steps(deployment, place.target, place.firmware, sample.stored)
    profiled = profile(place.target, place.firmware, {})
    traffic = traffic_of(deployment.view, steps, place.firmware)
    entries = [
        sum(cycles.typical for cycles in profiled.cycles(counts, core).values()) + each.stall_cycles[FLASH]
        for counts, each in zip(steps, traffic, strict=True)
    ]
    by_unit = place.target.board.npu is not None
    if by_unit:
        entries = with_unit_cycles(entries, deployment.view, place.target.board)
    spent = deployment.view.by_name(entries).items()
    operators = tuple(OperatorTime(name, len(each), round(sum(each))) for name, each in spent)
    measured = replace(
        observed.measurement,
        latency=round(sum(entries)),
        unit=unit_of_cycles(by_unit),
        operators=operators,
    )
    return replace(observed, measurement=measured, entries=tuple(map(round, entries)), counts=steps)


def _along_path(observed: Observation, deployment: Deployment, place: Place, sample: Sample) -> Observation:
    """Return the time along the critical path: the emulator runs cores in turn, so its clock adds them up."""
    target, firmware = place.target, place.firmware
    storage = deployment.storage
    counts = count_lanes(
        deployment.plan.lanes,
        target,
        firmware,
        lambda device: run_once(device, storage, sample.stored),
        deployment.patience_s,
    )
    measured = observed.measurement
    cores = CoresTime(measured.latency, measured.unit, tuple(sum(each) for each in counts.parts))
    latency = counts.latency(deployment.plan.lanes)
    return replace(observed, measurement=replace(measured, latency=latency, unit=PATH_UNIT, cores=cores))


def store_measurement(deployment: Deployment, firmware: Firmware, observed: Observation) -> None:
    """Store a measurement; a database that cannot be written causes a warning only."""
    try:
        with Database() as database:
            modelled = observed.measurement.unit in (MODEL_UNIT, ESTIMATE_UNIT)
            database.add_run(deployment.run_key(firmware.hash, modelled=modelled), observed.measurement)
    except ConfigError as error:
        warn_of_database("the measurement is not stored", str(error))


def _require_joined(device: Device, deployment: Deployment, sample: Sample, first: Mapping[str, Any]) -> None:
    """Run the steps of a library, in which a unit has one stream for consecutive steps of the plan.

    Raises DeployError if the outputs are not those of the plan's steps.
    """
    states = {state.tensor for state in deployment.plan.graph.states}
    if states:
        device.session.reset()
    stored = {name: value for name, value in sample.stored.items() if name not in states}
    run_once(device, deployment.storage, stored, deployment.joined_steps)
    _require_same(_outputs(device, deployment.storage), first, "by joined streams")


def _require_same(again: Mapping[str, Any], first: Mapping[str, Any], when: str) -> None:
    """Raise DeployError if a run has other outputs than the first run. `when`: what differs between them."""
    for name, value in again.items():
        if value.tobytes() != first[name].tobytes():
            raise DeployError(
                f"{name} {when} is not what it was in the first run: this is a defect of mcudeploy"
            )


def observe(
    device: Device, target: Target, deployment: Deployment, samples: list[Sample], progress: Progress
) -> Observation:
    """Run all samples on a device, and the first one a second time step by step.

    With states, each sample continues from the previous one; after the last one comes a reset, and the first
    one again. Raises DeployError if the stack exceeded its bound, or a guard was overwritten, and before a
    run if further cores have too little stack.
    """
    bound = stack_bound(device.firmware)
    if bound is not None and deployment.plan.lanes and bound.library_bytes > CORE_STACK_BYTES:
        raise DeployError(
            f"a call of the library needs up to {bound.library_bytes:,} B of stack, further cores have "
            f"{CORE_STACK_BYTES:,} B: plan with --parallel 1"
        )
    storage = deployment.storage
    if deployment.plan.parameters.parameters and not deployment.plan.parameters.in_flash:
        device.session.restore_parameters()
    if target.guards:
        arm(device, deployment.program)
    outputs, ticks = [], []
    states = {state.tensor for state in deployment.plan.graph.states}
    if states:
        device.session.reset()
    for done, sample in enumerate([*samples, *([samples[0]] if states else [])]):
        if done == len(samples):
            device.session.reset()
        stored = {name: value for name, value in sample.stored.items() if name not in states}
        ticks.append(run_once(device, storage, stored))
        outputs.append(_outputs(device, storage))
        progress.advance(min(done + 1, len(samples)), len(samples))
    if states:
        _require_same(outputs.pop(), outputs[0], "after a reset")
    if deployment.joined_steps:
        _require_joined(device, deployment, samples[0], outputs[0])
    stack_bytes = _stack_used(device, target, deployment, bound)
    timed: list[int] = []
    for first, count in fed_runs(device, storage, samples[0].stored):
        timed += device.session.time_steps(first, count, timeout_s=deployment.patience_s).ticks
    unit, convert = device.time_unit(target)
    operators = tuple(
        OperatorTime(name, len(each), convert(sum(each)))
        for name, each in deployment.view.by_name(timed).items()
    )
    measurement = Measurement(convert(ticks[0]), unit, operators, stack_bytes)
    return Observation(measurement, outputs, bound, tuple(map(convert, timed)))


def run_further(
    device: Device, target: Target, device_run: DeviceRun, samples: Sequence[Sample], first: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Run samples on a device with the firmware of `device_run`; return the stored outputs of each.

    `first`: the states of the first sample, in stored form by tensor name. Raises DeployError if the stack
    exceeded its bound, or a guard was overwritten.
    """
    deployment, storage = device_run.deployment, device_run.deployment.storage
    if target.guards:
        arm(device, deployment.program)
    states, outputs = dict(first), []
    for sample in samples:
        own = {name: value for name, value in sample.stored.items() if name not in first}
        run_once(device, storage, own | states)
        outputs.append(_outputs(device, storage))
        states = {}
    _stack_used(device, target, deployment, device_run.observed.stack)
    return outputs


def _outputs(device: Device, storage: Storage) -> dict[str, Any]:
    """Return the stored outputs of the last run, by tensor name."""
    return {it.tensor: storage.get_tensor(device, it.tensor) for it in storage.plan.graph.outputs}


def _stack_used(device: Device, target: Target, deployment: Deployment, bound: StackBound | None) -> int:
    """Return the bytes of stack that runs have used.

    Raises DeployError if they are above the bound, or a guard is overwritten.
    """
    stack = device.session.stack()
    if target.guards:
        require_intact(device, deployment.program, stack)
    if bound is not None and stack.used_bytes > bound.program_bytes + bound.interrupt_bytes:
        raise DeployError(
            f"the run used {stack.used_bytes:,} B of stack, more than the bound of {bound.program_bytes:,} B "
            f"and {bound.interrupt_bytes:,} B for an interrupt: this is a defect of mcudeploy"
        )
    return stack.used_bytes
