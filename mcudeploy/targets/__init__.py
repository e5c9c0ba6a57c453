"""Where programs run: PlatformIO builds, QEMU machines, probes, and what must be installed for them."""

from mcudeploy.targets.build import build_firmware
from mcudeploy.targets.doctor import Check, checks, lacking, versions
from mcudeploy.targets.emulator import Emulator
from mcudeploy.targets.firmware import Firmware, Sizes
from mcudeploy.targets.flashing import flash, flash_commands

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
