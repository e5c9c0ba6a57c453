"""A fleet of boards at sockets: measurements per second, two `tune` that share it, boards that fail.

    python benchmarks/fleet.py [--boards 16] [--tiles 2000] [--busy] [--only PART] [--labgrid FOLDER]

Tiles take 50 ms on a stand-in for a board, whole plans run in QEMU: see fleet_boards.py. `--labgrid`: the
folder of labgrid's programs; coordinator and exporter are started here, and sharing and failing are repeated
with places. Ends in an AssertionError if boards do not scale, a measurement is lost or made twice, or a board
has two masters at a time. With `--busy`, for a computer with other work, rates are only printed.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "deploy"))

from models import quantised_convolutions, skipping  # noqa: E402

from mcudeploy.boards.board import Board  # noqa: E402
from mcudeploy.boards.catalogue import load_board  # noqa: E402
from mcudeploy.boards.trust import trust  # noqa: E402
from mcudeploy.common.resources import cache_dir  # noqa: E402
from mcudeploy.costs.tiles import CallTile  # noqa: E402
from mcudeploy.device.fleet import Fleet  # noqa: E402
from mcudeploy.device.frame import Frame, Receiver, encode  # noqa: E402
from mcudeploy.device.image import build_bench, measured_tiles  # noqa: E402
from mcudeploy.device.labgrid import PREFIX, acquired  # noqa: E402
from mcudeploy.device.requests import Request  # noqa: E402
from mcudeploy.device.session import connect  # noqa: E402
from mcudeploy.device.target import Target  # noqa: E402
from mcudeploy.device.transport import open_transport  # noqa: E402
from mcudeploy.ir.graph import Graph  # noqa: E402
from mcudeploy.ir.interval import Interval  # noqa: E402
from mcudeploy.planner.model.model import read_model  # noqa: E402
from mcudeploy.planner.plan_options import Options  # noqa: E402
from mcudeploy.toolchain import Firmware  # noqa: E402
from mcudeploy.toolchain.emulator import Emulator  # noqa: E402

TILE_S = 0.05
PATIENCE_S = 280.0
WANTED = 0.9
EXPORTER_S = 30.0
FLASHER = """#!{python} -IS
import socket, sys
with socket.create_connection(("127.0.0.1", {control})) as to:
    to.sendall(f"flash {{sys.argv[2].rpartition(':')[2]}} {{sys.argv[1]}}\\n".encode())
    sys.exit(to.makefile().readline() != '"ok"\\n')
"""
BOARD_PARTS = """
[timer.hardware]
source = "mps/dual_timer.c"
base = 0x40002000
hz = 25_000_000
unit = "cycles"

[[flasher]]
tool = "command"
line = ["./flash.py", "{elf}", "{port}"]
"""


@dataclass
class Boards:
    """The process with the boards."""

    control: int
    ports: list[str]

    def ask(self, line: str) -> Any:
        """Return the answer of the control port."""
        with socket.create_connection(("127.0.0.1", self.control)) as to:
            to.sendall(f"{line}\n".encode())
            return json.loads(to.makefile().readline())

    def told(self, what: str) -> int:
        """Return the sum over all boards of `tiles`, `overlaps`, or `flashed`."""
        return sum(self.ask("tell")[what])

    def kill(self, number: int) -> None:
        """Kill a board."""
        self.ask(f"kill {self.ports[number].rpartition(':')[2]}")


def write_board(folder: Path, control: int) -> Board:
    """Write the MPS2 AN386, which exists in QEMU only, as a board that is flashed."""
    text = (ROOT / "boards" / "mps2-an386.toml").read_text()
    text = text.replace('name = "mps2-an386"', 'name = "fleet"').replace("family_default = true", "")
    path = folder / "fleet.toml"
    path.write_text(text + BOARD_PARTS)
    (folder / "flash.py").write_text(FLASHER.format(python=sys.executable, control=control))
    (folder / "flash.py").chmod(0o755)
    board = load_board(str(path))
    os.environ["XDG_CONFIG_HOME"] = str(folder)  # trusted only by the commands of this script
    trust(board)
    return board


def said(board: Board, bench: Firmware) -> dict[str, Any]:
    """Return the timing firmware's description of itself in QEMU."""
    with Emulator(board, bench.elf) as emulator:
        line = open_transport(emulator.url)
        line.write(b"\0" + encode(Frame(Request.HELLO, 1, b"abcd")))
        receiver, frames = Receiver(), list[Frame]()
        while not frames:
            frames = receiver.feed(line.read(5.0))
        line.close()
    with Emulator(board, bench.elf) as emulator, connect(emulator.url) as session:
        return {"hello": frames[0].data[4:].hex(), "kernels": session.kernels()}


@contextmanager
def boards_of(count: int, folder: Path) -> Iterator[tuple[Board, Boards]]:
    """Start `count` boards in a separate process."""
    board = write_board(folder, 0)
    bench = build_bench(Target(board, "socket://127.0.0.1:1"))
    facts = {"board_file": str(folder / "fleet.toml"), "elf": str(bench.elf), "tile_s": TILE_S}
    (folder / "bench.json").write_text(json.dumps(facts | said(board, bench)))
    program = ROOT / "benchmarks/fleet_boards.py"
    command = [sys.executable, str(program), str(count), str(folder / "bench.json")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        control, *ports = json.loads(process.stdout.readline())
        board = write_board(folder, control)
        yield board, Boards(control, [f"socket://127.0.0.1:{port}" for port in ports])
        assert process.stdin is not None
        process.stdin.close()


def tiles_of(graph: Graph) -> Iterator[CallTile]:
    """Yield parts of a graph's operators, all different."""
    for rows in range(1, 100):
        for operator in graph.operators:
            output = graph.tensors[operator.output]
            call = operator.op.kernel(operator, graph.input_tensors(operator), output)
            for lo in range(0, output.shape[0] - rows + 1, rows):
                yield operator, call, Interval(lo, lo + rows)


def rate(board: Board, ports: Sequence[str], model: Path, seconds: float, database: Path) -> float:
    """Return measurements per second by these boards, after their sessions have begun."""
    os.environ["MCUDEPLOY_CACHE_DIR"] = str(database)
    graph = read_model(model, Options()).graph
    share_firmware(database)
    tiles = list(tiles_of(graph))
    with measured_tiles(Fleet([Target(board, port) for port in ports])) as measured:
        measured.prefetch(graph, tiles[: 2 * len(ports)], 60)
        before, start = measured.measured, time.monotonic()
        measured.prefetch(graph, tiles, seconds)
        taken = time.monotonic() - start
        assert taken >= seconds, "there are not enough tiles"
        return (measured.measured - before) / taken


def share_firmware(cache: Path) -> None:
    """Let a cache use the firmware that is built already."""
    cache.mkdir(exist_ok=True)
    if not (cache / "firmware").exists():
        (cache / "firmware").symlink_to(FIRMWARE)


class Run:
    """Commands with a private database."""

    def __init__(self, folder: Path, name: str, ports: Sequence[str], tiles: int) -> None:
        self._folder, self._cache, self._ports, self.tiles = folder, folder / name, ports, tiles
        share_firmware(self._cache)

    def measuring(self) -> subprocess.Popen[str]:
        """Start a process that measures tiles; see `measure`."""
        return self._start(__file__, "--measure", str(self._folder), str(self.tiles), *self._ports)

    def tune(self) -> subprocess.Popen[str]:
        """Start `tune` of a small model."""
        ports = [word for port in self._ports for word in ("--port", port)]
        board = ("--board", str(self._folder / "fleet.toml"))
        model = str(self._folder / "small.onnx")
        return self._start(
            "-m", "mcudeploy", "tune", model, *board, *ports, "--time-limit", "2", "--json", "--quiet"
        )

    def _start(self, *command: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "MCUDEPLOY_CACHE_DIR": str(self._cache), "PYTHONPATH": str(ROOT)}
        return subprocess.Popen(
            [sys.executable, *command],
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def stored(self) -> int:
        """Return the number of tile times in the database."""
        with sqlite3.connect(self._cache / "measurements.sqlite") as connection:
            return int(connection.execute("SELECT count(*) FROM tiles").fetchone()[0])


def ended(process: subprocess.Popen[str]) -> tuple[dict[str, Any], str]:
    """Return a command's report, and its messages."""
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0 and "Traceback" not in err, (process.returncode, out, err)
    return json.loads(out), err


def measure(folder: Path, tiles: int, ports: Sequence[str]) -> None:
    """Measure tiles as `tune` does, and print the number that boards measured for this process."""
    logging.basicConfig(format="%(message)s")
    board = load_board(str(folder / "fleet.toml"))
    graph = read_model(folder / "large.onnx", Options()).graph
    with ExitStack() as places:
        urls = [
            places.enter_context(acquired(port.removeprefix(PREFIX))) if port.startswith(PREFIX) else port
            for port in ports
        ]
        with measured_tiles(Fleet([Target(board, url) for url in urls])) as measured:
            start = time.monotonic()
            measured.prefetch(graph, islice(tiles_of(graph), tiles), PATIENCE_S)
            print(json.dumps({"measured": measured.measured, "seconds": time.monotonic() - start}))


def scale(board: Board, boards: Boards, folder: Path, arguments: argparse.Namespace) -> None:
    """Check that all boards together measure that many times faster than one."""
    large = folder / "large.onnx"
    one = rate(board, boards.ports[:1], large, arguments.seconds, folder / "one")
    all_of_them = rate(board, boards.ports, large, arguments.seconds, folder / "all")
    part = all_of_them / one / len(boards.ports)
    print(
        f"one board: {one:.1f}/s; {len(boards.ports)} boards: {all_of_them:.1f}/s, {part:.2f} of as many "
        f"times one",
        flush=True,
    )
    assert part >= WANTED or arguments.busy, part


def share(run: Run, boards: Boards, *, busy: bool) -> None:
    """Check that two runs at once measure every tile once, on either's boards."""
    before = boards.told("tiles")
    both = [ended(process)[0] for process in [run.measuring() for _ in range(2)]]
    measured = [report["measured"] for report in both]
    tiles, double = boards.told("tiles") - before, boards.told("overlaps")
    print(
        f"two at once: {measured[0]} and {measured[1]} measurements, {tiles} by the boards, {run.stored()} "
        f"stored, {double} double leases, {max(report['seconds'] for report in both):.0f} s",
        flush=True,
    )
    assert sum(measured) == tiles == run.stored() and double == 0 and (min(measured) > 0 or busy)


def lose_one(run: Run, boards: Boards, number: int) -> None:
    """Kill one board during the measuring."""
    before = boards.told("tiles")
    process = run.measuring()
    while boards.told("tiles") < before + run.tiles // 3 and process.poll() is None:
        time.sleep(0.02)
    boards.kill(number)
    report, errors = ended(process)
    tiles, measured = boards.told("tiles") - before, report["measured"]
    out = errors.count("a board is out")
    print(
        f"a board killed: {tiles} timed by the boards, {measured} measured, {run.stored()} stored, {out} out",
        flush=True,
    )
    assert measured == run.stored() and tiles - measured in (0, 1) and out == 1


def tune_twice(run: Run, boards: Boards) -> None:
    """Run two whole `tune` at once, which flash every board several times."""
    both = [run.tune() for _ in range(2)]
    arenas = {ended(process)[0]["arena_bytes"] for process in both}
    flashed, double = boards.told("flashed"), boards.told("overlaps")
    print(f"two tune: arena {arenas}, boards flashed {flashed} times, {double} double leases", flush=True)
    assert len(arenas) == 1 and double == 0 and flashed > 0


@contextmanager
def labgrid(programs: Path, ports: Sequence[str], folder: Path) -> Iterator[list[str]]:
    """Start a coordinator and an exporter on this computer; yield the URLs of a place for each port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        coordinator = f"127.0.0.1:{free.getsockname()[1]}"
    os.environ["LG_COORDINATOR"] = coordinator
    os.environ["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"
    lines = []
    for number, port in enumerate(ports):
        host, _, tcp = port.removeprefix("socket://").partition(":")
        lines.append(
            f"board{number}:\n  NetworkSerialPort:\n    host: {host}\n    port: {tcp}\n    protocol: raw\n"
        )
    (folder / "exporter.yaml").write_text("".join(lines))
    with ExitStack() as stack:

        def start(*command: str) -> None:
            process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
            stack.callback(process.wait)
            stack.callback(process.terminate)

        def client(*words: str) -> str:
            command = ["labgrid-client", *words]
            done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=EXPORTER_S)
            assert done.returncode == 0, (command, done.stderr)
            return done.stdout

        log = stack.enter_context((folder / "labgrid.log").open("w"))
        start("labgrid-coordinator", "-l", coordinator)
        time.sleep(2)
        start("labgrid-exporter", "-c", coordinator, "--name", "lab", str(folder / "exporter.yaml"))
        places = [f"board{number}" for number in range(len(ports))]
        end = time.monotonic() + EXPORTER_S
        while (seen := len(client("resources").split())) < len(ports):
            assert time.monotonic() < end, f"{seen} of {len(ports)} boards after {EXPORTER_S:.0f} s"
            time.sleep(0.5)
        for place in places:
            client("-p", place, "create")
            client("-p", place, "add-match", f"lab/{place}/*")
        yield [f"labgrid://{place}" for place in places]
        held = client("who")
        print(f"places still held: {sum('board' in line for line in held.splitlines())}", flush=True)
        assert "board" not in held, held


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--boards", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--tiles", type=int, default=2000, help="measured by a run")
    parser.add_argument("--busy", action="store_true", help="expect nothing of rates")
    parser.add_argument("--only", choices=("rate", "share", "lose", "tune"), help="one part of it")
    parser.add_argument("--labgrid", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, boards_of(arguments.boards, Path(name)) as (board, boards):
        folder = Path(name)
        skipping(folder / "large.onnx", 96)
        quantised_convolutions(folder / "small.onnx")

        def run(name: str, ports: Sequence[str]) -> Run:
            return Run(folder, name, ports, arguments.tiles)

        parts = {
            "rate": lambda: scale(board, boards, folder, arguments),
            "share": lambda: share(run("shared", boards.ports), boards, busy=arguments.busy),
            "lose": lambda: lose_one(run("dying", boards.ports), boards, 0),
            "tune": lambda: tune_twice(run("tuned", boards.ports[2:4]), boards),
        }
        for part in [arguments.only] if arguments.only else parts:
            parts[part]()
        if arguments.labgrid:
            with labgrid(arguments.labgrid, boards.ports[1:], folder) as places:
                share(run("places", places), boards, busy=arguments.busy)
                lose_one(run("place dies", places), boards, 1)


if __name__ == "__main__":
    FIRMWARE = (cache_dir() / "firmware").resolve()
    if sys.argv[1:2] == ["--measure"]:
        measure(Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
    else:
        main()
