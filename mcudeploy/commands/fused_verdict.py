"""The verdict on a program with fused chains.

The tensors between the stages of a chain do not exist, so a rounding tie there cannot be told from an error.
The program of the unsplit plan is judged operator by operator, as any other. The outputs of the program with
fused chains must equal its outputs bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mcudeploy.boards.catalogue import load_board
from mcudeploy.common.progress import Progress
from mcudeploy.common.text import printable
from mcudeploy.device.target import Target, open_device
from mcudeploy.execution.deployment import Deployment
from mcudeploy.verify.samples import Sample
from mcudeploy.verify.verdict import Verdict, judge, outputs_of_runs, unequal_elements


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
