"""Plans for an Ethos-U55 beside a Cortex-M55, beside those of Arm's Vela; prints a Markdown table.

    python benchmarks/npu_league.py MODELS... [--macs 128,256] [--overheads 5,25] [--time-limit 20] [--run]

MODELS are .tflite or ONNX files. Cells are the arena and the estimated cycles: of plans with these overheads
in percent; of the plan whose cycles are at most 1.15 times Vela's, or of the fastest, with their parts of
Vela's; of Vela with `--optimise Size`, whose memories have the rates that mcudeploy assumes; of the core,
by its cycle model, with the part of its cycles. Seconds are those of planning that plan, and the core's.
With --run every plan runs in the emulator, and each operator is verified; exit 1 if one is wrong. Vela needs
ethos-u-vela, and takes no ONNX.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands.commands import plan_model, run_model
from mcudeploy.common.errors import DeployError
from mcudeploy.device.target import Target
from mcudeploy.planner.plan_options import Options
from mcudeploy.report import as_json

ALLOWED = 1.15
"""Cycles of a plan that are compared with Vela's, as a multiple of those."""
MEMORIES = """
[System_Config.board]
core_clock=32e6
axi0_port=Sram
axi1_port=OnChipFlash
Sram_clock_scale=1.0
OnChipFlash_clock_scale=1.0

[Memory_Mode.board]
const_mem_area=Axi1
arena_mem_area=Axi0
cache_mem_area=Axi0
"""
"""Ports of 8 bytes a cycle without latency."""
COMPILE = "import sys; from ethosu.vela.vela import main; main(sys.argv[1:])"


@dataclass(frozen=True)
class Figures:
    """The arena in bytes, and estimated cycles; `seconds` of planning."""

    arena_bytes: int
    cycles: float
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.arena_bytes:,} B, {self.cycles:,.0f}"


def of_vela(model: Path, macs: int) -> Figures | None:
    """Return Vela's own figures, None if there are none."""
    if model.suffix != ".tflite" or find_spec("ethosu") is None:
        return None
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "board.ini").write_text(MEMORIES)
        options = [
            "--accelerator-config",
            f"ethos-u55-{macs}",
            "--optimise",
            "Size",
            "--output-dir",
            temporary,
        ]
        options += ["--config", f"{folder}/board.ini", "--system-config", "board", "--memory-mode", "board"]
        command = [sys.executable, "-c", COMPILE, str(model), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{model}: Vela: {done.stderr[-300:]}", file=sys.stderr)
            return None
        (summary,) = folder.glob("*_summary_board.csv")
        *_, row = csv.DictReader(summary.read_text().splitlines())
        return Figures(round(float(row["sram_memory_used"]) * 1024), float(row["cycles_total"]))


@dataclass(eq=False)
class Planner:
    """Plans of a model on a board."""

    model: Path
    board: Board
    options: Options
    run: bool = False
    wrong: bool = False

    def within(self, percent: float) -> Figures:
        """Return the figures of a plan with at most this overhead."""
        return self._planned(replace(self.options, max_overhead=percent))[0]

    def within_cycles(self, cycles: float) -> Figures:
        """Return the figures of a plan with at most these cycles, or of the fastest one."""
        _, fastest = self._planned(replace(self.options, max_overhead=0.0))
        return self.within(max(0.0, 100 * (cycles / fastest - 1)))

    def _planned(self, options: Options) -> tuple[Figures, float]:
        """Return the figures of a plan, and the cycles of the one that overheads are compared with."""
        begin = time.process_time()
        deployment = plan_model(self.model, self.board, options)
        seconds, report = time.process_time() - begin, as_json(deployment)
        if self.run:
            report = as_json(run_model(self.model, Target(self.board, emulate=True), options))
            self.wrong |= not report["verified"]
        cycles = (report["latency"] or report["estimated_latency"])["value"]
        return Figures(report["arena_bytes"], cycles, seconds), cycles / (
            1 + report["overhead_percent"] / 100
        )


def with_macs(board: Board, macs: int) -> Board:
    """Return the board with another configuration of its unit."""
    assert board.npu is not None
    return board.model_copy(update={"npu": board.npu.model_copy(update={"macs": macs})})


def line(planner: Planner, core: Planner, macs: int, overheads: list[float]) -> Iterator[str]:
    """Yield the cells of a line of the table."""
    model = planner.model
    yield from (model.stem if model.suffix == ".tflite" else model.parent.name, str(macs))
    planned = [planner.within(percent) for percent in overheads]
    yield from map(str, planned)
    vela, helium = of_vela(model, macs), core.within(0.0)
    ours = planner.within_cycles(ALLOWED * vela.cycles) if vela else planner.within(0.0)
    if vela:  # a search with more time to spend may end with plans that do not fit the flash
        quick = [it for it in planned if it.cycles <= ALLOWED * vela.cycles]
        ours = min([ours, *quick], key=lambda it: it.arena_bytes)
    ratios = f": {ours.arena_bytes / vela.arena_bytes:.2f}, {ours.cycles / vela.cycles:.2f}" if vela else ""
    yield f"{ours}{ratios}"
    yield str(vela or "")
    yield f"{helium}: {ours.cycles / helium.cycles:.2f}"
    yield f"{ours.seconds:.0f}, {helium.seconds:.0f}"


def main() -> int:
    """Print each line as soon as it is ready."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--board", default="mps3-an547-u55")
    parser.add_argument("--core", default="mps3-an547", help="a board, whose unit is not used")
    parser.add_argument("--macs", default="128,256")
    parser.add_argument("--overheads", default="5,25")
    parser.add_argument("--time-limit", type=float, default=20.0)
    parser.add_argument("--stream-input", action="store_true")
    parser.add_argument("--run", action="store_true")
    arguments = parser.parse_args()
    overheads = [float(it) for it in arguments.overheads.split(",") if it]
    columns = ["network", "MACs", *(f"+{it:g} %" for it in overheads), f"at most {ALLOWED} of Vela's cycles"]
    columns += ["Vela", "core alone", "CPU s of planning"]
    print("|", " | ".join(columns), "|\n|", "|".join("---" for _ in columns), "|", flush=True)
    options = Options(time_limit=arguments.time_limit, stream_input=arguments.stream_input)
    board, failed = load_board(arguments.board), False
    core = load_board(arguments.core).model_copy(update={"npu": None})
    for model in arguments.models:
        alone = Planner(model, core, options)
        for macs in map(int, arguments.macs.split(",")):
            planner = Planner(model, with_macs(board, macs), options, arguments.run)
            try:
                print("|", " | ".join(line(planner, alone, macs, overheads)), "|", flush=True)
            except DeployError as error:
                print(f"{model} {macs}: {error}", file=sys.stderr)
                failed = True
            failed |= planner.wrong
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
