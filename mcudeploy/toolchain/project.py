"""The sources of one firmware as a PlatformIO project: the path of each file. Writes nothing to disk."""

from __future__ import annotations

import configparser
import hashlib
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Literal, get_args

from mcudeploy.boards.board import CORE_STACK_BYTES, Board, Memory, Timer
from mcudeploy.boards.fact_types import pin_number
from mcudeploy.boards.facts import SerialLine, Uart
from mcudeploy.boards.flashers import OpenOcd
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
from mcudeploy.toolchain.emulator import emulated_board

SoftEngine = Literal["start", "wait", "half"]
"""When a software engine copies: at the start of a transfer, at its wait, or half at each.

For tests: it overwrites bytes that nobody may read (firmware/hal/dma_soft.c).
"""
_SOFT_ENGINE = "dma_soft.c"
_DRIVER_INTERFACE = "mcud_dma.h"
_CORE_INTERFACES = ("mcud_cores.h", "mcud_unit.h")  # one HAL may serve both
_PUSHED = "mcud_deployed_parameters"
"""The name by which the measurer finds parameters that a host may push."""
_TAKEN_BY_DRIVERS = {"sdram": "MCUD_SDRAM_RAS_NS", "psram": "MCUD_PSRAM_MOST_HZ"}
"""A macro that each driver of a memory chip needs."""
CONSTANTS = "constants"
"""The linker's region of flash where constants are read, if code is read elsewhere."""
_INTERFACES = (
    "mcud_cores.h",
    "mcud_hal.h",
    "mcud_measurer.h",
    "mcud_ports.h",
)  # beside the kernels' headers


@dataclass(frozen=True, slots=True)
class Project:
    """The files of one firmware by path, and the hash of all of them (and of `compiler`)."""

    board: Board
    files: Mapping[str, str]
    emulated: bool
    digest: str
    defines: Mapping[str, int] = field(default_factory=dict)
    """Macros of the compiler beside the board's."""

    @property
    def firmware_hash(self) -> int:
        """Return the 32-bit hash that the firmware reports."""
        return int(self.digest[:8], 16)

    @property
    def name(self) -> str:
        """Return the name of the cache entry."""
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
    _check_pins(board, collected)
    collected |= _hal_headers()
    if board.framework is not None:
        collected |= framework.project_files(board, 0, {})
    elif not board.is_host:
        collected |= _platform(emulated_board(board) if emulate else board, resource_dir("firmware"))
    inputs = json.dumps([board.name, board.cpu_flags, emulate, engine, salt, sorted(collected.items())])
    digest = hashlib.sha256(inputs.encode()).hexdigest()
    defines = _defines(board, engine, chained=chained, pushed=_PUSHED in files.get("deployed.c", ""))
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


def _usb_device(uart: Uart) -> list[tuple[str, str]]:
    """Return the facts of a line that is the chip's own USB device."""
    facts = []
    if uart.usb_id is not None:
        vendor, product = uart.usb_id.split(":")
        facts = [("MCUD_USB_VENDOR", f"0x{vendor}"), ("MCUD_USB_PRODUCT", f"0x{product}")]
    if uart.touch_baud is not None:
        facts.append(("MCUD_TOUCH_BAUD", f"{uart.touch_baud}u"))
    return facts


def _pins(uart: Uart) -> list[tuple[str, str]]:
    """Return the pins of the line to the host that the board file names."""
    return [(name, pin) for name, pin in (("TX", uart.tx), ("RX", uart.rx)) if pin is not None]


def unstarted(board: Board) -> list[str]:
    """Return the memories that nothing in the board's firmware starts; none for a board without firmware."""
    if board.facts_only or board.framework is not None:
        return []
    chips = {it.name: it.chip[0] for it in board.memories if it.chip is not None}
    hal = "".join(text for source in board.hal if chips for text in _hal_files(source).values())
    lost = [name for name, chip in chips.items() if _TAKEN_BY_DRIVERS[chip] not in hal]
    return lost + [it.name for it in board.memories if not it.started and it.name not in lost]


def _check_pins(board: Board, files: Mapping[str, str]) -> None:
    """Raise ConfigError if the board names pins that its HAL does not take, or lacks required ones."""
    if board.uart is None:
        return
    sources = (name for name in files if name.startswith("src/hal/") and not name.endswith(".h"))
    hal = "".join(files[name] for name in sources)
    memories = {it.chip[0]: it.name for it in board.memories if it.chip is not None}
    for chip, macro in _TAKEN_BY_DRIVERS.items():
        if chip in memories and macro not in hal:
            raise ConfigError(f"{board.name}: no source of its hal starts {memories[chip]}, an {chip}")
        if macro in hal and chip not in memories:
            fault = f"a source of its hal starts an {chip}: add its facts, [memory.{chip}]"
            raise ConfigError(f"{board.name}: {fault}")
    named = dict(_pins(board.uart))
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


def board_header(
    board: Board, timer: Timer | None, *, linked: bool = False, port_baud: int | None = None
) -> str:
    """Return the board's facts for the HAL as mcud_board.h.

    `linked`: the engines of its links are included; with `port_baud`, also its lines to other boards.
    """
    facts = [("MCUD_CLOCK_HZ", f"{board.clock_hz}u")]
    if board.framework is not None:
        facts += framework.header_facts(board)
    if board.cores > 1:
        facts += [("MCUD_CORES", f"{board.cores}u"), ("MCUD_CORE_STACK_BYTES", f"{CORE_STACK_BYTES}u")]
    irqs = [link.irq for link in board.links if linked and link.irq is not None]
    if board.uart is not None:
        ports = board.ports if port_baud else ()
        uarts: list[SerialLine] = [board.uart, *ports]
        send_irqs = [it.irq if it.send_irq is None else it.send_irq for it in ports]
        handlers = {board.uart.irq: "uart_interrupt"}
        for number, (port, send_irq) in enumerate(zip(ports, send_irqs, strict=True)):
            handlers |= dict.fromkeys((port.irq, send_irq), f"port{number}_interrupt")
        facts += [
            ("MCUD_UART_BASE", f"{board.uart.base:#010x}u"),
            ("MCUD_UART_IRQ", str(board.uart.irq)),
            ("MCUD_UART_BAUD", f"{board.uart.baud}u"),
            *((f"MCUD_UART_{name}_PIN", f"{pin_number(pin)}u") for name, pin in _pins(board.uart)),
            *_usb_device(board.uart),
            ("MCUD_UARTS", str(len(uarts))),
            ("MCUD_UART_BASES", ", ".join(f"{it.base:#010x}u" for it in uarts)),
            ("MCUD_UART_IRQS", ", ".join(str(it.irq) for it in uarts)),
            ("MCUD_UART_SEND_IRQS", ", ".join(map(str, [board.uart.irq, *send_irqs]))),
            ("MCUD_UART_VECTORS", " ".join(f"[{irq}] = {it}," for irq, it in sorted(handlers.items()))),
            *([("MCUD_PORT_BAUD", f"{port_baud}u")] if port_baud else ()),
            ("MCUD_LAST_IRQ", str(max([*handlers, *irqs]))),
            ("MCUD_DMA_VECTORS", " ".join(f"[{irq}] = dma_interrupt," for irq in irqs)),
        ]
    if timer is not None:
        facts += [
            ("MCUD_TIMER_BASE", f"{timer.base:#010x}u"),
            ("MCUD_TIMER_HZ", f"{timer.hz}u"),
        ]
    if timer is not None and timer is board.timer.emulated and board.emulator is not None:
        facts.append(("MCUD_ICOUNT_SHIFT", str(board.emulator.icount_shift)))
    if linked:
        facts += [
            ("MCUD_DMA_ENGINES", f"{len(board.links)}u"),
            ("MCUD_DMA_BASES", ", ".join(f"{link.base:#010x}u" for link in board.links)),
            ("MCUD_DMA_IRQS", ", ".join(map(str, irqs))),
        ]
    facts += _npu_facts(board)
    for it in board.memories:
        facts += _chip_facts(it)
    for number, unit in enumerate(board.units):
        if unit.stack is not None:
            facts += [
                (f"MCUD_UNIT{number}_STACK_BYTES", f"{unit.stack.bytes}u"),
                (f"MCUD_UNIT{number}_STACK_SECTION", f'".arena.{unit.name}_stack"'),
            ]
    return _header(board, facts)


def _chip_facts(memory: Memory) -> list[tuple[str, str]]:
    """Return where a memory that the firmware starts lies, and the facts of its chip for the driver."""
    if memory.chip is None:
        return []
    kind, chip = memory.chip
    place = {"ORIGIN": f"{memory.origin:#010x}u", "LOG2_BYTES": f"{memory.bytes.bit_length() - 1}u"}
    return [(f"MCUD_{kind.upper()}_{name}", value) for name, value in (place | chip.macros).items()]


def _header(board: Board, facts: Iterable[tuple[str, str]], note: str = "") -> str:
    """Return macros as mcud_board.h, with a further comment."""
    lines = [
        f"/* Made from the board file of {board.name}. {note}*/",
        "#ifndef MCUD_BOARD_H",
        "#define MCUD_BOARD_H",
        "",
        *(f"#define {name} {value}" for name, value in facts),
        "",
        "#endif",
    ]
    return "\n".join(lines) + "\n"


def unit_files(board: Board) -> dict[str, str]:
    """Return the drivers of the chip's unit beside the core, for a library; nothing for other boards.

    They read the unit's status: the interrupt needs functions of the application.
    """
    facts = dict(_npu_facts(board))
    if not facts:
        return {}
    irq = facts.pop("MCUD_NPU_IRQ", None)
    note = f"With MCUD_NPU_IRQ {irq} the core sleeps, by the core_...() of hal_parts.h. " if irq else ""
    firmware = resource_dir("firmware")
    paths = [
        *(firmware / "hal" / "ethos_u" / f"ethos_u_driver{kind}.c" for kind in ("", "_core")),
        *(firmware / "hal" / name for name in ("registers.h", "hal_parts.h", "cortexm/cache.c")),
        firmware / "include" / "mcud_cache.h",
    ]
    files = {f"npu/{path.name}": read_source(path) for path in paths}
    return files | {"npu/mcud_board.h": _header(board, facts.items(), note)}


def _npu_facts(board: Board) -> list[tuple[str, str]]:
    """Return the facts of the chip's unit beside the core, for its driver."""
    npu = board.npu
    if npu is None or npu.base is None:
        return []
    facts = [
        ("MCUD_NPU_BASE", f"{npu.base:#010x}u"),
        ("MCUD_NPU_MACS", str(npu.macs)),
        ("MCUD_NPU_PRODUCT", "1u" if npu.kind == "ethos-u65" else "0u"),
        ("MCUD_NPU_ACCESS", "1u" if npu.secure else "3u"),
    ]
    if npu.irq is not None:
        facts.append(("MCUD_NPU_IRQ", f"{npu.irq}u"))
    return facts + ([("MCUD_NPU_CACHED", "1")] if board.units[0].cached else [])


def board_json(board: Board, emulated: bool, firmware_hash: int, defines: Mapping[str, int]) -> str:
    """Return PlatformIO's description of the board; `defines`: macros beside the board's."""
    build = {
        "mcu": board.core,
        "f_cpu": f"{board.clock_hz}L",
        "mcud": {
            "board": board.name,
            "toolchain": board.toolchain,
            "cpu_flags": list(board.cpu_flags),
            "emulated": emulated,
            "firmware_hash": f"{firmware_hash:#010x}",
            "defines": dict(defines),
        },
    }
    openocd = openocd_of(board)
    upload = {
        "maximum_size": board.flash_bytes,
        "maximum_ram_size": board.ram_bytes,
        "openocd": list(openocd.args) if openocd else [],
        "mcudeploy": openocd is None and bool(board.flashers),
    }
    manifest = {"name": board.title, "vendor": "mcudeploy", "url": "", "build": build, "upload": upload}
    return json.dumps(manifest, indent=2) + "\n"


def openocd_of(board: Board) -> OpenOcd | None:
    """Return the flasher of PlatformIO's upload; None if mcudeploy uploads, as to a board on its own USB."""
    if board.uart is not None and board.uart.usb_id is not None:
        return None
    return next((it for it in board.flashers if isinstance(it, OpenOcd)), None)


def memory_script(board: Board) -> str:
    """Return the linker's regions: flash, memories by name, RAM for the first one, stacks of other units."""
    regions = [
        f"  {name} ({access}) : ORIGIN = {region.origin:#010x}, LENGTH = {region.bytes:#x}"
        for name, access, region in (
            ("flash", "rx", board.flash),
            *(() if board.flash.constants_origin is None else ((CONSTANTS, "r", board.flash.constants),)),
            *(() if board.flash.external is None else (("external", "r", board.flash.external),)),
            *((it.name, "rwx", it) for it in board.memories),
            *((f"{it.name}_stack", "rw", it.stack) for it in board.units if it.stack is not None),
        )
    ]
    return (
        f"/* Made from the board file of {board.name}. */\n"
        + "MEMORY\n{\n"
        + "\n".join(regions)
        + f'\n}}\nREGION_ALIAS("RAM", {board.memories[0].name});\n'
        + f'REGION_ALIAS("WEIGHTS", {"external" if board.flash.external else "flash"});\n'
        + f"mcud_stack_bytes = {board.stack_bytes};\n"
    )


def arena_script(board: Board) -> str:
    """Return output sections .arena.<region> for arrays in further memories, and stacks; not cleared."""
    regions = [(it.name, max(it.alignment, 8)) for it in board.memories[1:]]
    regions += [(f"{it.name}_stack", 8) for it in board.units if it.stack is not None]
    lines = [
        f"  .arena.{name} (NOLOAD) : ALIGN({alignment}) {{ *(.arena.{name}) }} > {name}\n"
        for name, alignment in regions
    ]
    return f"/* Made from the board file of {board.name}. */\n" + "".join(lines)


def environments(text: str, board: Board) -> str:
    """Return platformio.ini with the environments of a board."""
    ini = configparser.ConfigParser(interpolation=None)
    ini.read_string(text)
    ini[f"env:{board.name}"] = {"extends": "local", "board": board.name}
    out = io.StringIO()
    out.write(f"; pio run -e {board.name}: compilers of the system\n")
    if board.registry is not None:
        out.write(f"; pio run -e {board.name}_registry: packages of PlatformIO's registry\n")
        known = {"platform": board.registry.platform, "board": board.registry.board}
        ini[f"env:{board.name}_registry"] = {"extends": "registry", **known, "custom_mcud_board": board.name}
    out.write("\n")
    ini.write(out)
    return out.getvalue()


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
