"""`pio:<id>`: any board that PlatformIO has a manifest of, as the facts of a board file.

`pio:<id>:<framework>` selects a framework; by default it is the first of `_HAL` that the board supports.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

from pydantic import BaseModel, ValidationError

from mcudeploy.boards.pioshipped import pio_boards, question_of, source_of
from mcudeploy.common.errors import BoardNotFoundError, ConfigError, UsageError
from mcudeploy.common.files import read_limited
from mcudeploy.common.programs import output_of, python_module

PREFIX = "pio:"
PIO_ID = r"[A-Za-z0-9][A-Za-z0-9_.-]*"
SETTINGS: Mapping[str, str] = {
    "PLATFORMIO_SETTING_ENABLE_TELEMETRY": "no",
    "PLATFORMIO_DISABLE_UPGRADE_CHECK": "true",
    "PLATFORMIO_SETTING_CHECK_PLATFORMIO_INTERVAL": "3650",
    "PLATFORMIO_SETTING_CHECK_PRUNE_SYSTEM_THRESHOLD": "0",
    "PLATFORMIO_NO_ANSI": "true",
}
"""PlatformIO without telemetry and without automatic updates."""
_USERS_OWN = ("CORE", "PLATFORMS", "PACKAGES", "CACHE", "GLOBALLIB")
_LOG = logging.getLogger(__name__)
ASK_S = 20.0
"""Seconds that PlatformIO's registry may take for an answer."""
_MOST_BYTES = 2**20
_STACK_BYTES = 2048
_CORE_BYTES = 4096
_ESP_STACK_BYTES = 7168
_ESP_CORE_BYTES = 65536
"""RAM that arenas may not have: the stack below `setup()` (8 KiB in all in the ESP32's task), and an assumed
figure for the core and its libraries (on ESP32: several FreeRTOS tasks). The linker decides in the end.
"""
_HAL = {"arduino": "arduino/sketch.cpp", "espidf": "esp/idf.c", "zephyr": "zephyr/zephyr.c"}
_FRAMEWORK_TIMERS = {"arduino": ("arduino/micros.cpp", 1_000_000), "zephyr": ("zephyr/cycles.c", None)}
"""The counter of a framework, for cores without one of cycles, and its rate in Hz; None: the core's clock."""
_CPUS = re.compile(r"cortex-m(0|0plus|3|4|7|23|33|55|85)")
_MARCH = re.compile(r"rv32[ig]\w*")
_UNSUPPORTED = (
    ("atmega|attiny|at90|avr|lgt8f|atxmega", "it is an AVR: an int has 16 bits there, the kernels need 32"),
    ("msp430|pic24|mcs51|stc|stm8|n76", "an int has 16 bits there, the kernels need 32"),
    ("esp8266|esp8285", "constants in its flash can be read in whole words only, kernels read bytes"),
    ("32mx|32mz", "it is a MIPS, for which no kernel has been tried"),
    ("k210|rv64", "it has 64 bits, for which no kernel has been tried"),
)
"""Prefixes of microcontroller names, and the reason."""
_BY_MCU = (
    ("esp32p4", "rv32imafc"),
    ("esp32(c|h)", "rv32imc"),
    ("esp32s", "xtensa-lx7"),
    ("esp32", "xtensa-lx6"),
    ("stm32(c0|g0|l0|u0)", "cortex-m0plus"),
    ("stm32f0|nrf51|lpc11u|nuc1", "cortex-m0"),
    ("stm32(f1|f2|l1)|gd32f(1|30)|at91sam3|lpc17|efm32gg|cc13", "cortex-m3"),
    ("stm32(f3|f4|g4|l4|wb5|wl)|nrf52|samd51|same5|mk(20|64|66)|gd32f4|ra4m1|max32|apollo3", "cortex-m4"),
    ("stm32(f7|h7)|imxrt1|same7", "cortex-m7"),
    ("stm32(h5|l5|u5|wba)|nrf(53|91)|rp2350|ra(6m5|4m2)|lpc55", "cortex-m33"),
    ("rp2040|samd21|same2|saml2|mkl|mk02", "cortex-m0plus"),
)
"""Prefixes of microcontroller names; the first that matches counts."""


class _Build(BaseModel):
    mcu: str = ""
    cpu: str = ""
    march: str = ""
    f_cpu: str | int = ""
    hwids: tuple[tuple[str, str], ...] = ()


class _Upload(BaseModel):
    maximum_ram_size: int = 0
    maximum_size: int = 0
    require_upload_port: bool = False


class _Manifest(BaseModel):
    """The keys of a board's manifest that mcudeploy reads."""

    name: str = ""
    frameworks: tuple[str, ...] = ()
    build: _Build = _Build()
    upload: _Upload = _Upload()


@dataclass(frozen=True, slots=True)
class _ListedBoard:
    """A manifest, its source, and its platform with its version ("" if not installed)."""

    manifest: _Manifest
    source: str
    platform: str
    version: str


def is_pio(name: str) -> bool:
    """Whether a name is that of a board of PlatformIO."""
    return name.startswith(PREFIX)


def users_environment() -> dict[str, str]:
    """Return this process's environment for a PlatformIO with the user's platforms and packages."""
    own = {f"PLATFORMIO_{name}_DIR" for name in _USERS_OWN}
    kept = {
        key: value
        for key, value in os.environ.items()
        if key in own or not key.startswith(("PLATFORMIO_", "SCONS"))
    }
    folders = {key: str(Path(kept[key]).expanduser().absolute()) for key in own if kept.get(key)}
    return {**kept, **folders, **SETTINGS}


def pio_facts(name: str) -> dict[str, Any]:
    """Return the facts of `pio:<id>` as a board file contains them.

    Raises BoardNotFoundError, with the command that installs the platform, if PlatformIO has no such board.
    Raises ConfigError for a damaged manifest, UsageError for a core or framework without a measurer.
    """
    board, _, framework_name = name.removeprefix(PREFIX).partition(":")
    if not re.fullmatch(PIO_ID, board):
        raise BoardNotFoundError(
            f"{name!r} names no board: write {PREFIX} and the id of one of `pio boards`."
        )
    listed = _installed(board) or _shipped(board) or _registered(board)
    shipped = pio_boards().get(board)
    build, upload = listed.manifest.build, listed.manifest.upload
    core = _core_of(build.mcu, build.cpu, build.march)
    framework = _framework(name, framework_name, listed.manifest.frameworks)
    clock_hz = int("".join(it for it in str(build.f_cpu) if it.isdigit()) or 0)
    sizes = {"maximum_size": upload.maximum_size, "maximum_ram_size": upload.maximum_ram_size}
    facts = {"build.f_cpu": clock_hz, **{f"upload.{key}": size for key, size in sizes.items()}}
    lacking = next((fact for fact, value in facts.items() if value <= 0), None)
    if lacking is not None:
        raise ConfigError(f"{name}: its manifest lacks {lacking} ({listed.source}): write a board file.")
    esp = build.mcu.lower().startswith("esp32")
    stack_bytes = _ESP_STACK_BYTES if esp else _STACK_BYTES
    reserved_bytes = stack_bytes + (_ESP_CORE_BYTES if esp else _CORE_BYTES)
    title = "".join(it for it in listed.manifest.name[:80] if it.isprintable())
    return {
        "name": name,
        "title": f"{title or board} ({build.mcu}), by PlatformIO",
        "family": "platformio",
        "core": core,
        "toolchain": "platformio",
        "cpu_flags": (),
        "clock_hz": clock_hz,
        "stack_bytes": stack_bytes,
        "usb_ids": _usb_ids(build.hwids),
        "radio": shipped.radio if shipped else (),
        "hal": (_HAL[framework],),
        "source": listed.source,
        # The framework's linker script places them at unknown addresses: only their sizes are used.
        "flash": {"origin": 0, "bytes": upload.maximum_size},
        "memory": (
            {
                "name": "sram",
                "origin": 0x2000_0000,
                "bytes": upload.maximum_ram_size,
                "alignment": 4,
                "arena_limit": max(0, upload.maximum_ram_size - reserved_bytes),
            },
        ),
        "framework": {
            "name": framework,
            "platform": listed.platform,
            "version": listed.version,
            "board": board,
        },
        "timer": {"hardware": _timer(core, clock_hz, framework, esp)},
        "flasher": ({"tool": "platformio", "needs_port": upload.require_upload_port},),
    }


def _usb_ids(hwids: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    ids = (f"{vendor}:{product}".lower().replace("0x", "") for vendor, product in hwids)
    return tuple(dict.fromkeys(it for it in ids if re.fullmatch("[0-9a-f]{4}:[0-9a-f]{4}", it)))


def _framework(name: str, wanted: str, offered: tuple[str, ...]) -> str:
    framework = next((it for it in _HAL if it in offered and wanted in ("", it)), None)
    if framework is None:
        raise UsageError(
            f"{name}: the measurer is for {', '.join(_HAL)}; "
            f"the board has {', '.join(offered) or 'no framework'}."
        )
    return framework


def _timer(core: str, clock_hz: int, framework: str, esp: bool) -> dict[str, object]:
    """Return the core's counter of cycles, or else the framework's counter."""
    if core in ("cortex-m3", "cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55", "cortex-m85"):
        return {"source": "cortexm/dwt.c", "base": 0xE0001000, "hz": clock_hz, "unit": "cycles"}
    if esp and framework != "zephyr":
        return {"source": "esp/cycles.c", "base": 0, "hz": clock_hz, "unit": "cycles"}
    source, rate_hz = _FRAMEWORK_TIMERS[framework]
    return {"source": source, "base": 0, "hz": rate_hz or clock_hz}


def _installed(board: str) -> _ListedBoard | None:
    """Return the manifest in the folder of an installed platform."""
    for path in sorted(_platforms().glob(f"*/boards/{board}.json")):
        about = _read(path.parents[1] / "platform.json")
        platform, version = (str(about.get(it, "")) for it in ("name", "version"))
        return _ListedBoard(_checked(_read(path), str(path)), str(path), platform, version)
    return None


def _shipped(board: str) -> _ListedBoard | None:
    """Return the shipped facts of a board, whose platform is not installed."""
    facts = pio_boards().get(board)
    if facts is None:
        return None
    return _ListedBoard(_Manifest.model_validate(facts.manifest()), source_of(facts), facts.platform, "")


def _installed_ids() -> set[str]:
    return {path.stem for path in _platforms().glob("*/boards/*.json")}


def _platforms() -> Path:
    home = Path(os.environ.get("PLATFORMIO_CORE_DIR") or "~/.platformio").expanduser()
    return Path(os.environ.get("PLATFORMIO_PLATFORMS_DIR") or home / "platforms")


def _registered(board: str) -> _ListedBoard:
    """Return PlatformIO's facts on a board whose platform is not installed, from its registry.

    A shortened id of a shipped board is not looked up in the registry.
    """
    if any(it.lower().startswith(board.lower()) for it in pio_boards()):
        raise BoardNotFoundError(
            f"{PREFIX}{board}: neither an installed platform of PlatformIO nor mcudeploy has this board. "
            f"{question_of(board, ())}If `pio boards {board}` lists it, install its platform: "
            "`pio pkg install -g -p PLATFORM`."
        )
    listed = _listed(board)
    entry = next((it for it in listed if it["id"] == board and it["platform"]), None)
    if entry is None:
        if all(it["id"] in _installed_ids() for it in listed):  # they are listed without a network, too
            raise _unreachable(board, "PlatformIO lists installed boards only")
        question = question_of(board, tuple(f"{PREFIX}{it['id']}" for it in listed))
        raise BoardNotFoundError(
            f"{PREFIX}{board}: neither an installed platform of PlatformIO nor its registry has this board. "
            f"{question}`pio boards WORD` searches for boards; else write a board file: "
            "`mcudeploy boards --new`."
        )
    brief = {
        "name": entry.get("name"),
        "frameworks": entry.get("frameworks") or (),
        "build": {"mcu": entry.get("mcu"), "f_cpu": entry.get("fcpu")},
        "upload": {"maximum_ram_size": entry.get("ram"), "maximum_size": entry.get("rom")},
    }
    source = f"PlatformIO's registry; platform {entry['platform']}, not installed"
    return _ListedBoard(_checked(brief, source), source, str(entry["platform"]), "")


def _listed(board: str) -> list[dict[str, Any]]:
    """Return all boards that PlatformIO lists, including the registry's if it is reachable."""
    command = [*python_module("platformio"), "boards", "--json-output"]
    _LOG.warning("asking PlatformIO's registry for %s%s, for %g s at most", PREFIX, board, ASK_S)
    try:
        output = output_of(command, ASK_S, users_environment())
        return [{"id": str(it["id"]), "platform": it["platform"]} | it for it in json.loads(output)]
    except TimeoutExpired as error:
        raise _unreachable(board, f"PlatformIO gave no answer in {ASK_S:g} s") from error
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise _unreachable(board, "PlatformIO gave no list of boards") from error


def _unreachable(board: str, why: str) -> BoardNotFoundError:
    question = question_of(board, tuple(f"{PREFIX}{it}" for it in _installed_ids()))
    return BoardNotFoundError(
        f"{PREFIX}{board}: no installed platform of PlatformIO has this board, and its registry could not be "
        f"asked: {why}. {question}Where there is a network, `pio boards {board}` names its platform and "
        "`pio pkg install -g -p PLATFORM` installs it."
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(read_limited(path, _MOST_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    if not isinstance(manifest, dict):
        raise ConfigError(f"{path} is not a manifest of PlatformIO")
    return manifest


def _checked(manifest: object, source: str) -> _Manifest:
    try:
        return _Manifest.model_validate(manifest)
    except ValidationError as error:
        lines = (f"  {'.'.join(map(str, it['loc']))}: {it['msg']}" for it in error.errors())
        raise ConfigError(f"{source} is not a board manifest of PlatformIO:\n" + "\n".join(lines)) from error


def _core_of(mcu: str, cpu: str, march: str) -> str:
    """Return the core by its stated name, its instruction set, or the name of the microcontroller.

    Raises UsageError for an unknown core, and for one that kernels do not run on.
    """
    name = mcu.lower()
    for known, why in _UNSUPPORTED:
        if re.match(known, name):
            raise UsageError(f"{mcu} is not supported: {why}.")
    if _CPUS.fullmatch(cpu.lower()):
        return cpu.lower()
    if _MARCH.fullmatch(march.lower()):
        return "rv32imafc" if re.match(r"rv32(im?a?f|g)", march.lower()) else "rv32imc"
    if not cpu or cpu.lower().startswith("cortex-m"):
        core = next((core for known, core in _BY_MCU if re.match(known, name)), None)
        if core is not None:
            return core
    raise UsageError(
        f"the core of {mcu or 'the board'} is not known ({cpu or march or 'its manifest names none'}): there "
        "are costs of kernels for Cortex-M, ESP32 and 32-bit RISC-V. `mcudeploy boards --new` makes the file "
        "for your own board."
    )
