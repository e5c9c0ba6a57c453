"""Where programs run: PlatformIO builds, QEMU machines, probes, and what must be installed for them."""

from mcudeploy.targets.build import build_firmware
from mcudeploy.targets.emulator import Emulator
from mcudeploy.targets.firmware import Firmware, Sizes

__all__ = ["Emulator", "Firmware", "Sizes", "build_firmware"]
