"""Plans whose search ignores the wait states of flash, beside plans whose search counts them.

    python benchmarks/flash_waits.py MODEL... [--board stm32l4r5 ...] [--time-limit 10]
    python benchmarks/flash_waits.py --counted MODEL... [--board NAME ...] [--load-constants WHO] ...

Each model is planned twice for each board: with the facts of its flash left out, and with them. Both plans
are then timed with all waits. Prints a Markdown table: arenas in bytes, the overhead of each plan over its
own unsplit plan in percent, and the share of the time that the core waits for constants. Modelled.

--counted: unsplit plans run on the emulated MPS2 board with the same core, as if its flash had the wait
states of the board, and are verified; the bytes read from flash are counted there. With --load-constants core
the core copies constants to free bytes of the arena, which may grow to --ram-limit bytes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from kernels import print_table

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands.commands import plan_model, run_model
from mcudeploy.device.target import Target
from mcudeploy.execution.deployment import Deployment
from mcudeploy.planner.fit import Latency, estimated_latency
from mcudeploy.planner.plan_options import Options
from mcudeploy.report import as_json

BOARDS = ("stm32f405", "stm32l4r5", "nrf52840", "stm32u585", "rp2350", "stm32h743")
EMULATED = {"cortex-m4": "mps2-an386", "cortex-m7": "mps2-an500", "cortex-m33": "mps2-an505"}
COUNTED = ("board", "model", "arena", "cycles without waits", "bytes read from flash", "cycles with waits")
COLUMNS = (
    "board", "model", "arena, waits ignored", "overhead with waits, %", "arena", "overhead, %", "waiting, %",
)  # fmt: skip


def without_waits(board: Board) -> Board:
    """Return the board as if reads of its flash never waited."""
    flash = board.flash.waiting_as(load_board(EMULATED[board.core]).flash)
    return board.model_copy(update={"flash": flash})


def timed(deployment: Deployment, board: Board) -> tuple[Latency, float]:
    """Return the latency of a plan with all waits, and its overhead over its unsplit plan in percent."""
    base = deployment.planned.baseline
    own = estimated_latency(deployment.plan, deployment.model, board)
    unsplit = estimated_latency(base, deployment.planned.model_of(base), board)
    if own is None or unsplit is None:
        raise SystemExit(f"{board.name} has no cycle model")
    return own, 100 * (own.ticks / unsplit.ticks - 1)


def rows(models: Sequence[Path], boards: Sequence[str], options: Options) -> Iterator[tuple[object, ...]]:
    """Yield the lines of the table."""
    for name in boards:
        board = load_board(name)
        for model in models:
            ignoring = plan_model(model, without_waits(board), options)
            counting = plan_model(model, board, options)
            _, missed = timed(ignoring, board)
            latency, overhead = timed(counting, board)
            share = 100 * (latency.flash_ticks or 0) / latency.ticks
            yield (
                name, model.parent.name or model.stem, ignoring.plan.layout.arena_bytes, f"{missed:+.2f}",
                counting.plan.layout.arena_bytes, f"{overhead:+.2f}", f"{share:.1f}",
            )  # fmt: skip


def counted(models: Sequence[Path], boards: Sequence[str], options: Options) -> Iterator[tuple[object, ...]]:
    """Yield the lines of the table of counted waits."""
    for name in boards:
        board = load_board(name)
        emulated = load_board(EMULATED[board.core])
        flash = emulated.flash.waiting_as(board.flash)
        target = Target(emulated.model_copy(update={"flash": flash}), emulate=True)
        for model in models:
            report = as_json(run_model(model, target, replace(options, split=False)))
            if not report["verified"]:
                raise SystemExit(f"{model} is not verified: {report['reason']}")
            cycles, waits = report["latency"]["value"], report["stalls"]["cycles"]
            yield (
                name, model.parent.name or model.stem, report["arena_bytes"], f"{cycles - waits:,}",
                f"{report['traffic_counted']['flash']['loaded']:,}", f"{cycles:,}",
            )  # fmt: skip


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--board", action="append", default=[])
    parser.add_argument("--time-limit", type=float, default=10)
    parser.add_argument("--counted", action="store_true")
    parser.add_argument("--load-constants", choices=("engine", "core", "never"), default="engine")
    parser.add_argument("--ram-limit", type=int, metavar="BYTES")
    chosen = parser.parse_args()
    options = Options(
        time_limit=chosen.time_limit, load_constants=chosen.load_constants, ram_limit=chosen.ram_limit
    )
    boards = chosen.board or BOARDS
    if chosen.counted:
        print_table(COUNTED, counted(chosen.models, boards, options))
    else:
        print_table(COLUMNS, rows(chosen.models, boards, options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
