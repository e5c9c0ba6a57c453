"""A program for an emulated board that runs one network: built, counted, its outputs read."""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import load_board
from mcudeploy.common.errors import DeployError
from mcudeploy.device.target import Target
from mcudeploy.device.transport import Transport, open_transport
from mcudeploy.execution.cycles.plugin import Counts, plugin_arguments, read_windows
from mcudeploy.execution.cycles.profile import CORES, profile
from mcudeploy.toolchain import Firmware
from mcudeploy.toolchain.disassembly import Functions
from mcudeploy.toolchain.emulator import Emulator
from mcudeploy.toolchain.firmware import measure
from mcudeploy.toolchain.project import assemble
from peers.generated import NOTHING, Generated, NetworkRefusedError, adapter

HERE = Path(__file__).parent
LIBC = {"arm-none-eabi": "--specs=nano.specs", "riscv64-unknown-elf": "--specs=picolibc.specs"}
CXX = ("-std=gnu++17", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics")
FLAGS = ("-g", "-ffunction-sections", "-fdata-sections")
PATIENCE_S = 300.0
STACK_FULL = 1
"""The exit status of a program whose stack reached the last byte of its memory."""
_CONFIG = """\
#include <stdint.h>
typedef uint32_t mcud_offset;
typedef uint32_t mcud_code;
#define MCUD_ALIGN 4
"""
_MOST_LINES = 3
_COMPLAINT = re.compile(r"error: (?!ld returned)|overflowed|undefined reference")


@dataclass(frozen=True, slots=True)
class Needs:
    """Figures of one run. Bytes are without those of the program around the network.

    `ram_bytes` = .data + .bss + stack. `cycles`: modelled; None for a core without a model.
    """

    static_bytes: int
    stack_bytes: int
    flash_bytes: int
    instructions: int
    cycles: int | None

    @property
    def ram_bytes(self) -> int:
        return self.static_bytes + self.stack_bytes

    @property
    def time(self) -> int:
        """Cycles, or instructions of a core without a model."""
        return self.instructions if self.cycles is None else self.cycles


@dataclass(frozen=True, slots=True)
class Run:
    """The bytes of each output, and what the run needed."""

    outputs: tuple[bytes, ...]
    needs: Needs


def run(generated: Generated, board: Board, level: str) -> Run:
    """Build and run the network once. Raises NetworkRefusedError with the message of compiler or emulator."""
    with tempfile.TemporaryDirectory(prefix="league-") as folder:
        elf = _linked(generated, board, level, Path(folder))
        _require_room(elf, board, Path(folder) / "network")
        stack, outputs, counts = _counted(generated, board, elf, Path(folder) / "counts")
        sizes, around = measure(elf), _around(board.name)
        cycles = _cycles(board, elf, counts)
    needs = Needs(
        sizes.static_ram_bytes - around.static_bytes - generated.spare_bytes,
        stack,
        sizes.flash_bytes - around.flash_bytes,
        counts.total,
        cycles,
    )
    return Run(outputs, needs)


def _require_room(elf: Path, board: Board, objects: Path) -> None:
    """Raise NetworkRefusedError if the frame of one function does not fit; it would destroy the data."""
    frames = (line.split("\t")[1] for it in objects.rglob("*.su") for line in it.read_text().splitlines())
    largest = max(map(int, frames), default=0)
    room = board.memories[0].bytes - measure(elf).static_ram_bytes
    if largest > room:
        raise NetworkRefusedError(
            f"one function needs {largest:,} B of stack; {board.name} has {room:,} B of RAM for it"
        )


@dataclass(frozen=True, slots=True)
class _Around:
    static_bytes: int
    flash_bytes: int


@cache
def _around(name: str) -> _Around:
    """Return the bytes of the program around a network."""
    with tempfile.TemporaryDirectory(prefix="league-") as folder:
        sizes = measure(_linked(NOTHING, load_board(name), "-O2", Path(folder)))
        return _Around(sizes.static_ram_bytes, sizes.flash_bytes)


def _linked(generated: Generated, board: Board, level: str, folder: Path) -> Path:
    """Compile the board's files at -O2 and the network's at its level; return the linked program."""
    files = assemble(board, {"mcud_config.h": _CONFIG}, [], emulate=True, measurer=False).files
    for name, text in files.items():
        path = folder / "board" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "adapter.c").write_text(adapter(generated), encoding="utf-8")
    base = folder / "board"
    ours = [*sorted((base / "src" / "hal").rglob("*.[cS]")), HERE / "program.c"]
    inside = [base / "include", HERE, *(it for it in (base / "src").rglob("*") if it.is_dir())]
    macros = ["MCUD_EMULATED=1", "MCUD_FIRMWARE_HASH=0u", f'MCUD_BOARD_NAME="{board.name}"']
    around = _Compilation(board, ("-O2", "-std=c99"), inside, macros)
    # GNU C: tools use the inline assembler and attributes of GCC
    inner = _Compilation(
        board, (level, "-std=gnu11", *generated.options), [HERE, *generated.includes], generated.defines
    )
    harness = around.objects(ours, folder / "harness")
    network = inner.objects([folder / "adapter.c", *generated.sources], folder / "network")
    elf = folder / "program.elf"
    link = [*_compiler(board), *FLAGS, "-nostartfiles", "-Wl,--gc-sections", "-T", "mcudeploy.ld"]
    objects = [*harness, *network, *(it.resolve() for it in generated.libraries)]
    link += [f"-L{base / 'linker'}", *map(str, objects), "-lc", "-lm", "-lgcc", "-o"]
    _called([*link, str(elf)], folder)
    return elf


@dataclass(frozen=True, slots=True)
class _Compilation:
    """How sources are compiled: `level` has the compiler's level and the language of files in C."""

    board: Board
    level: Sequence[str]
    includes: Sequence[Path]
    macros: Sequence[str]

    def objects(self, sources: Sequence[Path], folder: Path) -> list[Path]:
        """Compile sources, each into its own folder: names may repeat."""
        words = [*(f"-I{it.resolve()}" for it in self.includes), *(f"-D{it}" for it in self.macros)]
        command = [*_compiler(self.board), *FLAGS, *self.level, "-w", "-fstack-usage", *words, "-c"]
        objects = []
        for number, source in enumerate(sources):
            target = folder / str(number) / f"{source.stem}.o"
            target.parent.mkdir(parents=True)
            cxx = CXX if source.suffix == ".cc" else ()
            _called([*command, *cxx, str(source.resolve()), "-o", str(target)], folder)
            objects.append(target)
        return objects


def _compiler(board: Board) -> list[str]:
    return [f"{board.toolchain}-gcc", *board.cpu_flags, LIBC[board.toolchain]]


def _called(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [it for it in done.stderr.splitlines() if _COMPLAINT.search(it)]
        raise NetworkRefusedError("; ".join((lines or done.stderr.splitlines())[:_MOST_LINES]))


def _counted(
    generated: Generated, board: Board, elf: Path, out: Path
) -> tuple[int, tuple[bytes, ...], Counts]:
    """Run the program; return its bytes of stack, its outputs and its counts."""
    functions, facts = Functions(elf), board.emulator
    assert facts is not None
    begin, end = (functions.named(name).address for name in ("network_run", "network_done"))
    try:
        with Emulator(board, elf, plugin_arguments(facts.qemu, begin, end, out)) as emulator:
            with _Line(emulator) as line:
                line.read(1)
                for each in generated.sent:
                    line.write(each)
                stack = int.from_bytes(line.read(4), "little")
                outputs = tuple(line.read(it.count) for it in generated.outputs)
            status = emulator.wait(PATIENCE_S)
            if status != 0:
                raise NetworkRefusedError(_why(emulator, status))
    except DeployError as error:
        raise NetworkRefusedError(str(error)) from error
    return stack, outputs, next(iter(read_windows(out)))


def _why(emulator: Emulator, status: int | None) -> str:
    if status == STACK_FULL:
        return f"needs more stack than {emulator.board.name} has RAM"
    return emulator.why_dead() or f"no end in {PATIENCE_S:g} s"


class _Line:
    """The serial line of an emulated board, as a context manager."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator
        self._port: Transport
        self._arrived = b""

    def __enter__(self) -> _Line:
        self._port = open_transport(self._emulator.url)
        return self

    def __exit__(self, *_: object) -> None:
        self._port.close()

    def write(self, data: bytes) -> None:
        self._port.write(data)

    def read(self, count: int) -> bytes:
        """Return exactly `count` bytes. Raises NetworkRefusedError if the program ends or takes too long."""
        until = time.monotonic() + PATIENCE_S
        while len(self._arrived) < count:
            try:
                self._arrived += self._port.read(0.5)
            except DeployError as error:
                raise NetworkRefusedError(self._emulator.why_dead() or str(error)) from error
            if time.monotonic() > until:
                raise NetworkRefusedError(f"no result in {PATIENCE_S:g} s")
        data, self._arrived = self._arrived[:count], self._arrived[count:]
        return data


def _cycles(board: Board, elf: Path, counts: Counts) -> int | None:
    core = CORES.get(board.core)
    if core is None:
        return None
    firmware = Firmware(elf, board, 0, True, measure(elf))
    counted = profile(Target(board, emulate=True), firmware, {"network": counts})
    return round(sum(it.typical for it in counted.cycles(counts, core).values()))
