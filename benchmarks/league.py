"""The league: C of several tools for the same networks on the same emulated boards. Writes a page of docs/.

    python benchmarks/league.py MODELS [--models NAME,...] [--boards NAME,...] [--tools NAME,...]

MODELS is a collection of networks: <group>/<name>/model.onnx with input_<k>.npy, and .tflite files. The other
tools are installed into a virtual environment in the cache folder. Their C and ours become a program with the
same start-up code, compiler and counters; outputs are compared with ONNX Runtime's.
Rows are cached by their inputs: an interrupted run continues where it stopped. Without --output the page is
printed.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from peers.chart import drawing, tool_points
from peers.judge import is_ours
from peers.networks import Network, networks_in
from peers.page import Provenance, page
from peers.quoted import quoted_rows
from peers.rows import MICRO, OF_OWN, ROOT, Row, compiler_version, contenders, micro_row, row_of

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import load_board

NETWORKS = (
    "ad01_int8", "ic01_int8", "ic02_int8", "kws01_int8", "sww01_int8", "vww01_int8", "person_detect_int8",
    "micro_speech_int8", "resnet8_32_qdq_s8_symmetric", "efflite_w035_112_int8", "fomo_mbv2_96_int8",
    "mbv2_w035_96_int8", "mbv2_w035_144_int8io", "mbv3s_w05_96_int8", "mcunet_320kb_int8",
    "mcunet_5fps_han_int8", "resnet8_32_int8", "resnet8_32_qoperator_u8", "vggish_32_int8", "har_cnn_int8",
    "darts_v2_c12_32_int8", "densenet_k8_32_int8", "inception_mini_96_int8io", "nasnet_a_c8_64_int8",
    "randwire_ws16_32_int8", "kws01_fp32", "ic01_fp32", "har_cnn_fp32", "hello_world_fp32",
    "hello_world_int8", "lstm_kws_fp32", "gru_kws_fp32", "vit_d64_l4_32_fp32", "vit_d64_l4_32_int8",
    "encoder_d64_l2_int8", "ad01_int8.tflite", "hello_world_int8.tflite", "ic01_int8.tflite",
    "kws01_int8.tflite", "micro_speech_int8.tflite", "person_detect_int8.tflite", "sww01_int8.tflite",
    "vww01_int8.tflite",
)  # fmt: skip
"""The networks of the league, all without states. A collection without them is measured whole."""
BOARDS = ("microbit", "mps2-an386", "mps2-an500", "mps2-an505", "mps3-an547", "riscv32-virt")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", type=Path, help="folder of the collection")
    parser.add_argument("--models", dest="names", default="", help="names of networks, separated by commas")
    parser.add_argument("--boards", default=",".join(BOARDS))
    parser.add_argument("--tools", default="", help="beginnings of tools' names; all by default")
    parser.add_argument("--time-limit", type=float, default=10.0, help="of mcudeploy's search, in seconds")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cached", action="store_true", help="measure nothing: only rows of earlier runs")
    parser.add_argument("--output", type=Path, help="file of the page; its chart lies beside it, as .svg")
    parser.add_argument("--title", default="The league")
    arguments = parser.parse_args()
    boards = [load_board(name) for name in arguments.boards.split(",")]
    networks = networks_in(arguments.models)
    names = arguments.names.split(",") if arguments.names else NETWORKS
    chosen = [it for it in networks if it.name in names] or networks
    work = [(it, board) for it in chosen for board in boards]
    tools = tuple(it.lower() for it in arguments.tools.split(","))
    with ThreadPoolExecutor(arguments.jobs) as pool:
        rows = list(pool.map(lambda pair: rows_of(*pair, tools, arguments), work))
    listed = [row for each in rows for row in each]
    measured = {(row.network, row.board, row.tool) for row in listed}
    pairs = {(network, board) for network, board, _ in measured}
    quoted = [
        row
        for row in quoted_rows(chosen, boards)
        if row.tool.lower().startswith(tools)
        and (row.network, row.board) in pairs
        and (row.network, row.board, row.tool) not in measured
    ]
    text = page(in_order([*listed, *quoted]), provenance(boards, arguments))
    if arguments.output is None:
        print(text)
    else:
        arguments.output.write_text(text, "utf-8")
        chart = drawing(tool_points([*listed, *quoted]))
        arguments.output.with_suffix(".svg").write_text(chart, "utf-8")
    return int(any(is_ours(row) and row.is_wrong for row in listed))


def in_order(rows: Sequence[Row]) -> list[Row]:
    """Return rows by board and network; those of a network keep their order."""
    places = {name: place for place, name in enumerate(dict.fromkeys(row.board for row in rows))}
    return sorted(rows, key=lambda row: (places[row.board], row.network))


def provenance(boards: Sequence[Board], arguments: argparse.Namespace) -> Provenance:
    """Return the last commit that changed mcudeploy's C, and date, command and compilers of this run."""
    command = ["git", "log", "-1", "--format=%h", "--abbrev=8", "--", *OF_OWN]
    commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    words = ["MODELS", *(it for it in sys.argv[2:] if it != "--cached")]
    compilers = sorted({compiler_version(it.toolchain) for it in boards})
    today = time.strftime("%Y-%m-%d", time.gmtime())
    return Provenance(
        commit,
        today,
        shlex.join(["python", "benchmarks/league.py", *words]),
        ", ".join(compilers),
        arguments.time_limit,
        arguments.title,
        arguments.output.stem if arguments.output else "league",
        bool(arguments.names),
    )


def rows_of(
    network: Network, board: Board, tools: tuple[str, ...], arguments: argparse.Namespace
) -> list[Row]:
    """Return the rows of all tools for a network on a board."""
    rows = []
    for contender in contenders(arguments.time_limit):
        if contender.name.lower().startswith(tools) and contender.takes(network, board):
            start = time.monotonic()
            row = row_of(contender, network, board, cached=arguments.cached)
            if row is not None:
                report(row, time.monotonic() - start)
                rows.append(row)
    arena = micro_row(network, board, cached=arguments.cached) if MICRO.lower().startswith(tools) else None
    return [*rows, arena] if arena is not None and rows else rows


def report(row: Row, seconds: float) -> None:
    figures = row.refusal or f"{row.ram_bytes} B, {row.cycles or row.instructions}, differs {row.difference}"
    print(f"{row.network} {row.board} {row.tool}: {figures} ({seconds:.0f} s)", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
