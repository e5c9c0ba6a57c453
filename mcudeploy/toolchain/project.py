"""The sources of one firmware as a PlatformIO project: the path of each file. Writes nothing to disk."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Literal, get_args

from mcudeploy.boards.board import Board, Timer
from mcudeploy.codegen.kernelfiles import (
    AWAIT,
    ON_UNIT,
    RUN_CORES,
    START,
    UNIT_SUFFIX,
    kernel_files,
    read_source,
)
from mcudeploy.common.errors import BuildError, ConfigError, UsageError
from mcudeploy.common.resources import resource_dir
from mcudeploy.extension import added
from mcudeploy.toolchain import framework
from mcudeploy.toolchain.board_texts import (
    arena_script,
    board_header,
    board_json,
    environments,
    memory_script,
    uart_pins,
)
from mcudeploy.toolchain.emulator import emulated_board

SoftEngine = Literal["start", "wait", "half"]
"""When a software engine copies: at the start of a transfer, at its wait, or half at each.

For tests: it overwrites bytes that nobody may read (firmware/hal/dma_soft.c).
"""
_SOFT_ENGINE = "dma_soft.c"
_DRIVER_INTERFACE = "mcud_dma.h"
_CORE_INTERFACES = ("mcud_cores.h", "mcud_unit.h")  # one HAL may serve both
_PUSHED_SYMBOL = "mcud_deployed_parameters"
"""The name by which the measurer finds parameters that a host may push."""
_MACROS_OF_DRIVERS = {"sdram": "MCUD_SDRAM_RAS_NS", "psram": "MCUD_PSRAM_MOST_HZ"}
"""A macro that every driver of this kind of memory chip uses."""
_INTERFACES = (
    "mcud_cores.h",
    "mcud_hal.h",
    "mcud_measurer.h",
    "mcud_ports.h",
)  # beside the kernels' headers


@dataclass(frozen=True, slots=True)
class Project:
    """The files of one firmware by path. `digest`: the hash of all inputs, which `assemble` computes."""

    board: Board
    files: Mapping[str, str]
    emulated: bool
    digest: str
    defines: Mapping[str, int] = field(default_factory=dict)
    """Macros of the compiler beside the board's."""

    @property
    def firmware_hash(self) -> int:
        """The 32-bit hash that the firmware reports."""
        return int(self.digest[:8], 16)

    @property
    def name(self) -> str:
        """The name of the cache entry."""
        return f"{self.board.name.replace(':', '-')}-{self.digest[:20]}"


def assemble(
    board: Board,
    files: Mapping[str, str],
    kernels: Sequence[str],
    *,
    emulate: bool,
    measurer: bool = True,
    engine: SoftEngine | None = None,
    port_baud: int | None = None,
    salt: str = "",
) -> Project:
    """Collect all sources of a firmware.

    `files` are the generated C and header files by name; `kernels` the kernels to compile in, with what they
    include. Without `measurer` the generated files contain a main(). `engine`: software does the transfers,
    see `SoftEngine`. `port_baud`: the rate of the lines to other boards of a chain. `salt` stands for all
    other inputs of the result (compiler, options).

    Raises UsageError if the board has no such firmware, emulated or not, BuildError if a source is missing.
    """
    timer = None if board.is_host else _timer(board, emulate)
    chained = port_baud is not None
    _require_hal(board, kernels, chained=chained)
    drivers = _drivers(board, kernels, engine)
    linked = bool(drivers) and engine is None
    collected = {
        **{f"src/generated/{name}": text for name, text in files.items()},
        **_interface_files(board, kernels, with_drivers=bool(drivers)),
        "include/mcud_board.h": board_header(board, timer, linked=linked, port_baud=port_baud),
        **_kernel_files(kernels),
        **(_measurer_files(board, chained=chained) if measurer else {}),
    }
    hal = [*board.hal, *([timer.source] if timer else []), *_other_cores(board, kernels), *drivers]
    hal += [*_stream_sources(board, kernels), *(board.port_hal if chained else ())]
    for source in hal:
        collected |= _hal_files(source)
    _check_parts(board, collected)
    collected |= _hal_headers()
    if board.framework is not None:
        collected |= framework.project_files(board, 0, {})
    elif not board.is_host:
        collected |= _platform(emulated_board(board) if emulate else board, resource_dir("firmware"))
    inputs = json.dumps([board.name, board.cpu_flags, emulate, engine, salt, sorted(collected.items())])
    digest = hashlib.sha256(inputs.encode()).hexdigest()
    defines = _defines(board, engine, chained=chained, pushed=_PUSHED_SYMBOL in files.get("deployed.c", ""))
    if board.framework is not None:
        collected |= framework.project_files(board, int(digest[:8], 16), defines)
    elif not board.is_host:
        collected[f"boards/{board.name}.json"] = board_json(board, emulate, int(digest[:8], 16), defines)
    return Project(board, collected, emulate, digest, defines)


def _interface_files(board: Board, kernels: Sequence[str], *, with_drivers: bool) -> dict[str, str]:
    """Return the headers between the generated program, the HAL and the measurer, as far as they are used."""
    names = [
        *_INTERFACES,
        *([_DRIVER_INTERFACE] if with_drivers else []),
        *(_CORE_INTERFACES if _other_cores(board, kernels) else ()),
        *(["mcud_cache.h"] if board.npu is not None else []),
    ]
    folder = resource_dir("firmware") / "include"
    return {f"include/{name}": read_source(folder / name) for name in names}


def _kernel_files(kernels: Sequence[str]) -> dict[str, str]:
    """Return the sources of kernels, with all that they include."""
    return {
        f"{'include' if it.folder == 'include' else 'src/kernels'}/{it.name}": it.text
        for it in kernel_files(kernels)
    }


def _measurer_files(board: Board, *, chained: bool) -> dict[str, str]:
    """Return the measurer, with the exchange of packets in a chain; a framework has its own main()."""
    folders = ("measurer", "chain") if chained else ("measurer",)
    paths = sorted(it for name in folders for it in (resource_dir("firmware") / name).glob("*.[ch]"))
    own = "main.c" if framework.has_entry(board) else ""
    return {f"src/measurer/{it.name}": read_source(it) for it in paths if it.name != own}


def _hal_headers() -> dict[str, str]:
    """Return the headers that the sources of every HAL share."""
    paths = sorted((resource_dir("firmware") / "hal").glob("*.h"))
    return {f"src/hal/{path.name}": read_source(path) for path in paths}


def _defines(board: Board, engine: SoftEngine | None, *, chained: bool, pushed: bool) -> dict[str, int]:
    """Return the macros of the compiler; `pushed`: a host may push parameters."""
    defines = engine_defines(engine)
    defines |= {"MCUD_CHAIN": 1} if chained else {}
    defines |= {"MCUD_PARAMETERS": 1} if pushed else {}
    if board.npu is not None and board.npu.base is None:
        defines["MCUD_NPU_MACS"] = board.npu.macs
    return defines


def _require_hal(board: Board, kernels: Sequence[str], *, chained: bool) -> None:
    """Raise BuildError if the board file names no HAL for a form of program: units, cores, or a chain."""
    if ON_UNIT in kernels and not board.unit_hal:
        raise BuildError(
            f"nothing runs steps on the other compute units of {board.name}: name the source of a HAL that "
            "does as unit_hal in its board file, or plan without --assign."
        )
    if RUN_CORES in kernels and not board.core_hal:
        raise BuildError(
            f"nothing runs programs on several cores of {board.name}: name the source of a HAL that does as "
            "core_hal in its board file, or plan for one core."
        )
    if chained and not board.has_ports:
        raise BuildError(
            f"{board.name} cannot be one of a chain: name its lines to other boards as [[port]] in its file."
        )


def unstarted_memories(board: Board) -> list[str]:
    """Return the memories that nothing in the board's firmware starts; none for a board without firmware."""
    if board.facts_only or board.framework is not None:
        return []
    chips = {it.name: it.chip[0] for it in board.memories if it.chip is not None}
    hal = "".join(text for source in board.hal if chips for text in _hal_files(source).values())
    undriven = [name for name, chip in chips.items() if _MACROS_OF_DRIVERS[chip] not in hal]
    return undriven + [it.name for it in board.memories if not it.started and it.name not in undriven]


def _check_parts(board: Board, files: Mapping[str, str]) -> None:
    """Raise ConfigError if the board names pins or memory chips without use to its HAL, or lacks some."""
    if board.uart is None:
        return
    sources = (name for name in files if name.startswith("src/hal/") and not name.endswith(".h"))
    hal = "".join(files[name] for name in sources)
    memories = {it.chip[0]: it.name for it in board.memories if it.chip is not None}
    for chip, macro in _MACROS_OF_DRIVERS.items():
        if chip in memories and macro not in hal:
            raise ConfigError(f"{board.name}: no source of its hal starts {memories[chip]} ({chip})")
        if macro in hal and chip not in memories:
            fault = f"a source of its hal starts memory of the kind {chip}: add its facts, [memory.{chip}]"
            raise ConfigError(f"{board.name}: {fault}")
    named = dict(uart_pins(board.uart))
    for name in ("TX", "RX"):
        if (f"MCUD_UART_{name}_PIN" in hal) != (name in named):
            fault = "no source of its hal takes it" if name in named else "its hal needs this pin"
            raise ConfigError(f"{board.name}: [uart] {name.lower()}: {fault}")


def _hal_files(source: str) -> dict[str, str]:
    """Return a source of the HAL and the headers beside it; files beside the board file go into `own`."""
    path = resource_dir("firmware") / "hal" / source
    own = Path(source).is_absolute()
    folder = Path("src/hal/own") if own else Path("src/hal", source).parent
    paths = (path, *sorted(path.parent.glob("*.h")))
    return {(folder / it.name).as_posix(): read_source(it) for it in paths}


def engine_defines(engine: SoftEngine | None) -> dict[str, int]:
    """Return the macros that select a software engine."""
    return {"MCUD_DMA_SOFT": 1 + get_args(SoftEngine).index(engine)} if engine else {}


def _drivers(board: Board, kernels: Sequence[str], engine: SoftEngine | None) -> list[str]:
    """Return the HAL sources of the transfer engine; none if the core itself copies."""
    if engine is not None:
        return [_SOFT_ENGINE]
    used = {START, AWAIT}.intersection(kernels)
    return sorted({link.source for link in board.links if link.source and used})


def _stream_sources(board: Board, kernels: Sequence[str]) -> list[str]:
    """Return the HAL sources that run command streams, if a kernel has some."""
    units = added("unit") if any(kernel.endswith(UNIT_SUFFIX) for kernel in kernels) else ()
    return [source for unit in units for source in unit.hal_sources(board)]


def _other_cores(board: Board, kernels: Sequence[str]) -> list[str]:
    """Return the HAL sources of other compute units and of further cores, which may be the same."""
    used = (board.unit_hal if ON_UNIT in kernels else (), board.core_hal if RUN_CORES in kernels else ())
    return sorted({*chain(*used)})


def _timer(board: Board, emulate: bool) -> Timer:
    timer = board.timer.emulated if emulate else board.timer.hardware
    if timer is None:
        way_out = "it cannot be emulated" if emulate else "it exists only in the emulator: add --emulate"
        raise UsageError(f"{board.name}: {way_out}.")
    return timer


def _platform(board: Board, firmware: Path) -> dict[str, str]:
    script = "mcudeploy.ld" if board.flash.constants_origin is None else "data_bus.ld"
    files = {
        "platformio.ini": environments(read_source(firmware / "platformio.ini"), board),
        "linker/mcudeploy.ld": read_source(firmware / "linker" / script),
        "linker/memory.ld": memory_script(board),
        "linker/arenas.ld": arena_script(board),
    }
    for path in sorted((firmware / "platform").rglob("*")):
        if path.suffix in (".json", ".py"):
            files[path.relative_to(firmware).as_posix()] = read_source(path)
    return files
