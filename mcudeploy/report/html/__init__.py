"""`--report`: one page on a model and the boards it was planned for. It loads no other file."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from mcudeploy.codegen.html_template import render_page
from mcudeploy.common.text import plain
from mcudeploy.report.html.subject import Misfit, Subject, misfit_view, subject_view

__all__ = ["Misfit", "Subject", "page"]


def page(
    model: Path, subjects: Sequence[Subject | Misfit], command: Sequence[str], plan: Path | None = None
) -> str:
    """Return the page; `command` is the command line to show, `plan` the file with the plan."""
    views = [subject_view(it) if isinstance(it, Subject) else misfit_view(it) for it in subjects]
    fitting = [view for view in views if view["fits"]]
    slowest = max((view["milliseconds"] or 0.0 for view in fitting), default=0.0)
    for view in fitting:
        view["latency_share"] = 100 * (view["milliseconds"] or 0.0) / slowest if slowest else 0.0
    names, plan_option = [view["board"] for view in views], () if plan is None else ("--plan", str(plan))
    return render_page(
        "report",
        title=plain(f"{model.name} on {', '.join(names)}"),
        model=plain(model.name),
        boards=views,
        command=plain(shlex.join(("mcudeploy", *command))),
        next_commands=[
            plain(shlex.join(("mcudeploy", "run", str(model), "--board", view["board"], *plan_option)))
            for view in fitting
            if view["runs"]
        ],
    )
