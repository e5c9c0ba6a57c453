"""Texts made from the facts of a board: mcud_board.h, linker scripts, PlatformIO's board and environments."""

from __future__ import annotations

import configparser
import io
import json
from collections.abc import Iterable, Mapping

from mcudeploy.boards.board import CORE_STACK_BYTES, Board, Memory, Timer
from mcudeploy.boards.fact_types import pin_number
from mcudeploy.boards.facts import SerialLine, Uart
from mcudeploy.boards.flashers import OpenOcd
from mcudeploy.codegen.kernelfiles import read_source
from mcudeploy.common.resources import resource_dir
from mcudeploy.toolchain import framework

CONSTANTS = "constants"
"""The linker's region of flash where constants are read, if code is read elsewhere."""


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
            *((f"MCUD_UART_{name}_PIN", f"{pin_number(pin)}u") for name, pin in uart_pins(board.uart)),
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


def _usb_device(uart: Uart) -> list[tuple[str, str]]:
    """Return the facts of a line that is the chip's own USB device."""
    facts = []
    if uart.usb_id is not None:
        vendor, product = uart.usb_id.split(":")
        facts = [("MCUD_USB_VENDOR", f"0x{vendor}"), ("MCUD_USB_PRODUCT", f"0x{product}")]
    if uart.touch_baud is not None:
        facts.append(("MCUD_TOUCH_BAUD", f"{uart.touch_baud}u"))
    return facts


def uart_pins(uart: Uart) -> list[tuple[str, str]]:
    """Return the pins of the line to the host that the board file names."""
    return [(name, pin) for name, pin in (("TX", uart.tx), ("RX", uart.rx)) if pin is not None]


def _chip_facts(memory: Memory) -> list[tuple[str, str]]:
    """Return the place of a memory that the firmware starts, and the facts of its chip, for the driver."""
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

    They poll the unit's status, since its interrupt would need functions of the application.
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
