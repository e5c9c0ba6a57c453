"""A decoder of 15 million parameters whose weights of 4 bits stream from PSRAM on mps2-an505.

    python benchmarks/streamed_decoder.py --context 48 --rate 0.2 --rate 0.05

The weights are random. The PSRAM is the second flash of the board; its rate is in bytes per clock. Prints the
plan of each choice of --load-constants, with modelled cycles. `counted` are the clocks of a token in the
emulator, one for each instruction, by an engine that takes the time of its transfers; then those of the plan
without loads, whose memory takes no time. Both must compute the same logits.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from mcudeploy.boards.board import Board  # noqa: E402
from mcudeploy.boards.facts import BoardRegion  # noqa: E402
from mcudeploy.boards.trust import trust  # noqa: E402
from mcudeploy.ir.engine import FLASH  # noqa: E402
from mcudeploy.planner.model.model import read_model  # noqa: E402
from mcudeploy.planner.plan_options import Options  # noqa: E402
from mcudeploy.planner.planner import find_plans  # noqa: E402
from mcudeploy.planner.tape.plan_view import PlanView  # noqa: E402
from mcudeploy.report.moving import transfers  # noqa: E402
from tests.networks.decoder import Sizes, decoder, states  # noqa: E402
from tests.networks.onnx_files import save  # noqa: E402
from tests.networks.packed import packed  # noqa: E402
from tests.targets.test_paced_loads import clocks, paced_board  # noqa: E402

SIZES = Sizes(dim=288, layers=6, heads=6, kv_heads=2, vocabulary=32_000, hidden=896)
RAM_BYTES = 400_000


def in_psram(folder: Path, rate: float) -> Board:
    """The board with its constants in the PSRAM, which no arena uses."""
    board = paced_board(folder, rate)
    psram, (link,) = board.memory("psram"), board.links
    external = BoardRegion(origin=psram.origin, bytes=psram.bytes)
    board = board.model_copy(
        update={
            "name": "mps2-an505-psram",
            "flash": board.flash.model_copy(update={"external": external}),
            "memories": board.memories[:1],
            "links": (link.model_copy(update={"memories": ("sram", FLASH)}),),
        }
    )
    trust(board)
    return board


def main() -> None:
    """Print a line for each rate and choice."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--context", type=int, default=48, help="rows of the caches")
    parser.add_argument("--int8-cache", action="append", default=[], help="caches of int8, as of `run`")
    parser.add_argument("--rate", type=float, action="append", default=[])
    parser.add_argument("--plan-only", action="store_true", help="leave out the emulator")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="mcudeploy-"))
    model = packed(decoder(replace(SIZES, context=arguments.context)))
    path = save(model, folder, "decoder")
    named = tuple(states(model).items())
    wanted = Options(split=False, states=named, ram_limit=RAM_BYTES, int8_caches=tuple(arguments.int8_cache))
    titles = ("rate", "loads", "arena", "bytes", "modelled", "waits", "counted", "no waits", "% of bytes")
    print(f"| {' | '.join(titles)} |\n|{' --- |' * len(titles)}", flush=True)
    for rate in arguments.rate or [0.2]:
        own = folder / str(rate)
        own.mkdir()
        board = in_psram(own, rate)
        for choice in ("never", "core", "engine"):
            chosen = board.model_copy(update={"links": ()}) if choice == "core" else board
            options = replace(wanted, load_constants=choice)
            begin = resource.getrusage(resource.RUSAGE_SELF).ru_utime
            loaded = read_model(path, options, isa=board.isa)
            planned = find_plans(loaded, chosen, options)
            seconds = resource.getrusage(resource.RUSAGE_SELF).ru_utime - begin
            plan = (*planned.candidates, planned.baseline)[0]
            moved = transfers(PlanView(plan, loaded.with_kernels(plan.kernels).calls), None)
            line = [f"{rate}", choice, f"{plan.layout.arena_bytes:,}", f"{moved['bytes']:,}"]
            line += [f"{plan.estimate.latency_ticks:,.0f}", f"{moved['exposed_ticks']:,.0f}"]
            if choice == "engine" and not arguments.plan_only:
                total, _, logits = clocks(board, loaded, plan)
                whole, _, expected = clocks(board, loaded, planned.baseline)
                assert logits == expected
                line += [f"{total:,.0f}", f"{whole:,.0f}", f"{100 * total * rate / moved['bytes']:.1f}"]
            print(f"| {' | '.join(line)} |", flush=True)
            print(f"{seconds:.1f} CPU s to read and plan", file=sys.stderr)


if __name__ == "__main__":
    main()
