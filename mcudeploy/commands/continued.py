"""Runs that continue from the states of a verified run: further samples, verified in the same way."""

from __future__ import annotations

from dataclasses import replace

from mcudeploy.commands.commands import verdict_on_host
from mcudeploy.common.progress import SILENT
from mcudeploy.device.target import Device, Target
from mcudeploy.execution.results import VerifiedRun
from mcudeploy.execution.running import run_further
from mcudeploy.verify.samples import Sample
from mcudeploy.verify.verdict import without_states


def continue_run(result: VerifiedRun, target: Target, device: Device, samples: list[Sample]) -> VerifiedRun:
    """Run further samples on a device that runs the firmware of `result`, and verify them.

    Host and device continue from the states that each had after the last sample. The result is that of all
    samples; of the states that earlier ones left, it has none. Raises DeployError as `observe` does.
    """
    device_run, verdict = result.measured.device_run, result.verdict
    graph, earlier = device_run.deployment.plan.graph, device_run.observed.outputs
    states = {it.tensor: earlier[-1][it.after.tensor] for it in graph.states}
    outputs = run_further(device, target, device_run, samples, states)
    later = verdict_on_host(device_run.deployment, samples, SILENT, after=verdict).with_device(outputs)
    observed = replace(device_run.observed, outputs=[*map(dict, without_states(graph, earlier)), *outputs])
    measured = replace(result.measured, device_run=replace(device_run, observed=observed))
    return replace(result, measured=measured, verdict=verdict.joined(later))
