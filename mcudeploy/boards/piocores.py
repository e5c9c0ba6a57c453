"""The core of a microcontroller, derived from a PlatformIO manifest."""

from __future__ import annotations

import re

from mcudeploy.common.errors import UsageError

_CPUS = re.compile(r"cortex-m(0|0plus|3|4|7|23|33|55|85)")
_MARCH = re.compile(r"rv32[ig]\w*")
_OTHERS = (
    ("atmega|attiny|at90|avr|lgt8f|atxmega", "it is an AVR: an int has 16 bits there, the kernels need 32"),
    ("msp430|pic24|mcs51|stc|stm8|n76", "an int has 16 bits there, the kernels need 32"),
    ("esp8266|esp8285", "constants in its flash can be read in whole words only, kernels read bytes"),
    ("32mx|32mz", "it is a MIPS, for which no kernel has been tried"),
    ("k210|rv64", "it has 64 bits, for which no kernel has been tried"),
)
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


def core_of(mcu: str, cpu: str, march: str) -> str:
    """Return the core by its stated name, its instruction set, or the name of the microcontroller.

    Raises UsageError for an unknown core, and for one that kernels do not run on.
    """
    name = mcu.lower()
    for known, why in _OTHERS:
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
