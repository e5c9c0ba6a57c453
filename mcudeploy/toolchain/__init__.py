"""Tools that build and run programs: PlatformIO builds, QEMU machines, probes, and required packages."""

from mcudeploy.toolchain.doctor import Check, checks, lacking, versions
from mcudeploy.toolchain.emulator import Emulator
from mcudeploy.toolchain.firmware import Firmware, Sizes
from mcudeploy.toolchain.firmware_build import build_firmware
from mcudeploy.toolchain.flashing import flash, flash_commands

__all__ = [
    "Check",
    "Emulator",
    "Firmware",
    "Sizes",
    "build_firmware",
    "checks",
    "flash",
    "flash_commands",
    "lacking",
    "versions",
]
