"""Verdicts on programs that take new rows of a window, and on those with fused chains.

The tensors between the stages of a chain do not exist, so a rounding tie there cannot be told from an error.
So another program is judged operator by operator: that of the whole window, or of the unsplit plan. The
outputs of the program by rows, or with fused chains, must equal its outputs bit for bit. By rows this holds
for every run after which the window is full.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mcudeploy.boards.catalogue import load_board
from mcudeploy.common.errors import UsageError
from mcudeploy.common.progress import Progress
from mcudeploy.common.text import count_text, printable
from mcudeploy.device.target import Target, open_device
from mcudeploy.execution.deployment import Deployment
from mcudeploy.ir.graph import Graph
from mcudeploy.planner.hop.moving_window import MovingWindow
from mcudeploy.planner.hop.row_io import window_axis
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import find_plans
from mcudeploy.verify.compare import run_once
from mcudeploy.verify.samples import Sample, sample_of
from mcudeploy.verify.verdict import Outputs, Verdict, judge, outputs_of_runs, unequal_elements


def require_full(graph: Graph, samples: Sequence[Sample]) -> None:
    """Raise UsageError if samples of new rows do not fill the window."""
    if graph.hop is not None and len(samples) < graph.hop.runs_to_fill:
        raise UsageError(
            f"--hop {graph.hop.new_rows}: a window of {graph.hop.window_rows} rows is full after "
            f"{count_text(graph.hop.runs_to_fill, 'run')}; --input has {len(samples)}"
        )


def windows_of(window: MovingWindow, samples: Sequence[Sample]) -> list[Sample]:
    """Return the window's content after each run that leaves it full. `samples`: new rows of each run."""
    (io,) = window.graph.inputs
    tensor = window.graph.tensors[io.tensor]
    along = window_axis(io, tensor)
    if along is None:
        raise ValueError(f"{io.name!r} has no rows")
    rows = np.concatenate([sample.inputs[io.name] for sample in samples], along.axis)
    size, hop = tensor.shape[0] * along.elements, window.hop * along.elements
    ends = range(hop * -(-size // hop), rows.shape[along.axis] + 1, hop)
    contents = (rows.take(range(end - size, end), along.axis) for end in ends)
    return [sample_of(window.graph, {io.name: values}, {}) for values in contents]


def window_verdict(
    deployment: Deployment, window: MovingWindow, samples: Sequence[Sample], progress: Progress
) -> Verdict:
    """Return the verdict on a program that runs these samples in turn on this computer."""
    host, windows = Target(load_board("host")), windows_of(window, samples)
    options = Options(split=False, name=deployment.program.prefix)
    planned = find_plans(deployment.model.of_window(host.board.isa), host.board, options)
    whole = Deployment.of(planned, planned.baseline, host.board, options)
    whole = replace(whole, fuses_products=deployment.program.fuses_products)
    with open_device(host, whole.build(host), whole.patience_s) as machine:
        choices = deployment.model.choices
        verdict = judge(machine, whole.plan, deployment.model.path, windows, progress, choices=choices)
    runs = _runs(deployment, host, samples)
    reasons = []
    results = window_outputs(runs[-len(windows) :], deployment.plan.graph, window.graph)
    for number, (by_rows, of_window) in enumerate(zip(results, verdict.host, strict=True)):
        for io in window.graph.outputs:
            if differ := unequal_elements(by_rows[io.tensor], of_window[io.tensor]):
                reasons.append(
                    f"window {number}: {printable(io.name)!r} computed by rows differs from that of the "
                    f"whole window in {differ}: this is a defect of mcudeploy"
                )
    return replace(verdict, runs=runs, reasons=(*verdict.reasons, *reasons))


def window_outputs(outputs: Sequence[Outputs], run: Graph, window: Graph) -> list[Outputs]:
    """Return outputs of the program `run`, which computes rows, by the names of the tensors of `window`."""
    names = [
        (of_window.tensor, of_run.tensor)
        for of_window, of_run in zip(window.outputs, run.own_outputs(), strict=True)
    ]
    return [{of_window: each[of_run] for of_window, of_run in names} for each in outputs]


def _runs(deployment: Deployment, host: Target, samples: Sequence[Sample]) -> list[Outputs]:
    """Return the outputs of the program by rows, in which each run continues from the previous one."""
    graph, storage = deployment.plan.graph, deployment.storage
    states = {state.tensor for state in graph.states}
    results: list[Outputs] = []
    with open_device(host, deployment.build(host), deployment.patience_s) as machine:
        for sample in samples:
            inputs = {name: it for name, it in sample.stored.items() if not results or name not in states}
            run_once(machine, storage, inputs)
            results.append({it.tensor: storage.get_tensor(machine, it.tensor) for it in graph.own_outputs()})
    return results


def fused_verdict(
    deployment: Deployment, samples: Sequence[Sample], progress: Progress, *, after: Verdict | None = None
) -> Verdict:
    """Return the verdict on a program that runs these samples on this computer; `after` as in `judge`."""
    host, model = Target(load_board("host")), deployment.model
    unsplit = deployment.with_plan(deployment.planned.baseline)
    with open_device(host, unsplit.build(host), unsplit.patience_s) as machine:
        verdict = judge(
            machine, unsplit.plan, model.path, samples, progress, choices=model.choices, after=after
        )
    with open_device(host, deployment.build(host), deployment.patience_s) as machine:
        runs = outputs_of_runs(machine, deployment.plan, samples, after)
    reasons = []
    for number, (fused, plain) in enumerate(zip(runs, verdict.host, strict=True), verdict.first):
        for io in unsplit.plan.graph.outputs:
            if differ := unequal_elements(fused[io.tensor], plain[io.tensor]):
                reasons.append(
                    f"sample {number}: {printable(io.name)!r} computed by fused chains differs from that "
                    f"of the unsplit plan in {differ}: this is a defect of mcudeploy"
                )
    return replace(verdict, host=runs, reasons=(*verdict.reasons, *reasons))
