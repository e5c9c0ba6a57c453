"""`run --chain`: what `run` does with boards in a row."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from click import get_current_context

from mcudeploy.cli.options import files_option, output_options, planning_options
from mcudeploy.cli.output import Output
from mcudeploy.cli.pages import Pages, page_options
from mcudeploy.cli.sample_options import sample_options
from mcudeploy.common.errors import OutputsDifferError, UsageError
from mcudeploy.extensions.several_boards import chaintable
from mcudeploy.extensions.several_boards.chain_report import report as chain_report
from mcudeploy.extensions.several_boards.run import ChainRequest, run_chain
from mcudeploy.planner.plan_options import Options
from mcudeploy.verify.preprocessing import Preprocessing


@sample_options
@planning_options()
@files_option
@page_options
@output_options
def run_in_row(
    *,
    model: Path,
    chain: ChainRequest,
    inputs: tuple[Path, ...],
    expected: tuple[Path, ...],
    reading: Preprocessing,
    options: Options,
    pages: Pages,
    output: Output,
    **others: Any,
) -> None:
    """Run a model on boards in a row with the values of the options of `run`; `others` exclude a chain."""
    _require_plain(others, options, pages)
    with output.progress() as progress:
        chain_run = run_chain(
            model,
            chain,
            options,
            inputs=list(inputs),
            expected=list(expected),
            reading=reading,
            progress=progress,
        )
    report = output.result(chain_report(chain_run), chaintable.run, chaintable.verdict)
    if not report["verified"]:
        get_current_context().exit(OutputsDifferError.exit_code)


def _require_plain(others: Mapping[str, Any], options: Options, pages: Pages) -> None:
    """A usage error for an option that a chain of boards does not have."""
    refused = {
        "--steps": others["steps"] is not None,
        f"--reference {others['reference']}": others["reference"] != "onnxruntime",
        "--bounds": bool(others.get("analyses")),
        "--plan": options.plan_file is not None,
        "--order": options.order_file is not None,
        "--stream-input": options.stream_input,
        "--stateful": options.stateful,
        "--replaceable": bool(options.replaceable),
        "--assign": bool(options.assign),
        "--placement tags": options.placement == "tags",
        "--parallel": options.cores not in (None, 1),
        "--guards": others["guards"],
        "--classes": others["classes"] is not None,
        f"--objective {options.objective}": options.objective == "cycles",
        f"--timing {others['timing']}": others["timing"] != "instructions",
        "--save-outputs": others["saved"] is not None,
        "--report and --trace": pages.requested,
    }
    name = next((name for name, is_set in refused.items() if is_set), None)
    if name is not None:
        raise UsageError(f"{name} cannot be combined with --chain")
