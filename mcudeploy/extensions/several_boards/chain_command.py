"""`run --chain`: the command `run` for a chain of boards."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from click import get_current_context
from rich.console import Console
from rich.text import Text

from mcudeploy.cli.options import files_option, output_options, planning_options
from mcudeploy.cli.output import Output, Values, cell, lines
from mcudeploy.cli.pages import Pages, page_options
from mcudeploy.cli.sample_options import sample_options
from mcudeploy.cli.table_grids import facts, table_of
from mcudeploy.common.errors import OutputsDifferError, UsageError
from mcudeploy.common.text import count_text
from mcudeploy.extensions.several_boards.chain_report import report as chain_report
from mcudeploy.extensions.several_boards.run import ChainRequest, run_chain
from mcudeploy.planner.plan_options import Options
from mcudeploy.verify.preprocessing import Preprocessing


@sample_options
@planning_options()
@files_option
@page_options
@output_options
def run_on_chain(
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
    """Run a model on a chain of boards; `others`: values of options of `run` that a chain does not have."""
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
    report = output.result(chain_report(chain_run), _table, _verdict)
    if not report["verified"]:
        get_current_context().exit(OutputsDifferError.exit_code)


def _require_plain(others: Mapping[str, Any], options: Options, pages: Pages) -> None:
    """Raise UsageError for an option that a chain of boards does not have."""
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


def _table(console: Console, report: Values) -> None:
    """Print a row for each board, the rate of frames and what limits it, and the verdict."""
    headings = ("board", "operators", "arena>", "payloads>", "RAM>", "flash>", "latency>", "ms>", "sends>")
    table = table_of(*headings)
    for number, board in enumerate(report["boards"], 1):
        table.add_row(
            cell(f"{number} {board['board']}"),
            cell(f"{board['first_operator']}..{board['last_operator']}"),
            f"{board['arena_bytes']:,}",
            f"{board['payload_bytes']:,}",
            f"{board['ram_bytes']:,} of {board['board_ram_bytes']:,}",
            f"{board['flash_bytes']:,} of {board['board_flash_bytes']:,}",
            f"{board['latency']:,} {board['unit']}",
            f"{1000 * board['seconds']:.2f}",
            f"{board['sent_bytes']:,}",
        )
    console.print(table)
    resends = sum(board["resends"] for board in report["boards"])
    facts(
        console,
        [
            ("link", f"{report['link']}, modelled: bytes over its rate"),
            ("a frame every", f"{1000 * report['frame_seconds']:.2f} ms, limited by {report['bottleneck']}"),
            ("throughput", f"{report['throughput_ratio']:.2f} times that of all operators in sequence"),
            ("this run", _piped(report)),
            ("first frame after", f"{1000 * report['latency_seconds']:.2f} ms"),
            ("sent again", count_text(resends, "packet")),
        ],
    )
    _verdict(console, report)


def _piped(report: Values) -> str:
    """The rate of the frames that this run sent through the chain."""
    times = report["piped"]
    method = {
        "clock": "measured by the clocks of the host and the last board",
        "replay": "simulated from the ticks that the boards counted and the rate of the link",
    }[times["method"]]
    ratio = times["throughput_ratio"]
    rate = f"a frame every {1000 * times['frame_seconds']:.2f} ms"
    return f"{rate}, {ratio:.2f} times the throughput in sequence, {method}"


def _verdict(console: Console, report: Values) -> None:
    """Print whether the frames are verified, and the first reasons if they are not."""
    verified = report["verified"]
    text = f"{count_text(report['frames'], 'frame')} {'verified' if verified else 'run, NOT verified'}"
    console.print(Text(text, "bold green" if verified else "bold red"))
    for reason in report["reasons"][:10]:
        console.print(Text(lines(reason)), soft_wrap=True)
