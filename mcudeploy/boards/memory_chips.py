"""Memory chips beside a microcontroller, which the firmware starts: facts of their data sheets."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from mcudeploy.boards.fact_types import Facts, Nanoseconds, Pin, pin_number


class Sdram(Facts):
    """An SDRAM of four banks at the FMC of an STM32, which the firmware starts. `pins`: all that it uses.

    `width`: bits of the bus. `clock_divider`: clocks of the FMC in one clock of the memory; `read_pipe`:
    clocks by which the FMC delays the data that it reads. Times are those of the memory's data sheet: tRAS,
    tRC (tRFC, if that is longer), tRP, tRCD and tXSR, the refresh of one row, and the pause after the clock
    starts.
    """

    width: Literal[8, 16, 32]
    row_bits: Annotated[int, Field(ge=11, le=13)]
    column_bits: Annotated[int, Field(ge=8, le=11)]
    cas_latency: Literal[1, 2, 3]
    clock_divider: Literal[2, 3]
    read_pipe: Literal[0, 1, 2] = 0
    ras_ns: Nanoseconds
    rc_ns: Nanoseconds
    rp_ns: Nanoseconds
    rcd_ns: Nanoseconds
    xsr_ns: Nanoseconds
    refresh_ns: Annotated[int, Field(ge=3900, le=32000)]
    power_up_us: Annotated[int, Field(ge=100, le=1000)]
    pins: Annotated[tuple[Pin, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _has_all_pins(self) -> Self:
        # Addresses, two of the bank, data, one a byte; clock, its enable, the chip select, commands.
        needed = self.row_bits + 2 + self.width + self.width // 8 + 6
        if len(set(self.pins)) != len(self.pins) or len(self.pins) != needed:
            raise ValueError(f"an sdram of this width and these rows has {needed} different pins")
        return self

    @property
    def bytes(self) -> int:
        """The size of the memory as far as the bus reaches it."""
        return 4 * self.width // 8 << (self.row_bits + self.column_bits)

    @property
    def macros(self) -> dict[str, str]:
        """The facts for the driver, by the names of their macros."""
        numbers = self.model_dump(exclude={"pins"})
        pins = ", ".join(f"{pin_number(it)}u" for it in self.pins)
        return {name.upper(): f"{value}u" for name, value in numbers.items()} | {"PINS": pins}


class Psram(Facts):
    """A PSRAM with the commands of an APS6404L, on four pins, which the firmware starts.

    `select_pin`: GPIO of its chip select, at an RP2350; elsewhere the driver knows its pins. Of its data
    sheet: the maximum clock, the maximum time of an access, and the minimum time between two.
    """

    select_pin: Literal[0, 8, 19, 47] | None = None
    most_hz: Annotated[int, Field(ge=10_000_000, le=200_000_000)]
    select_ns: Annotated[int, Field(ge=1000, le=16000)]
    deselect_ns: Nanoseconds

    @property
    def macros(self) -> dict[str, str]:
        """The facts for the driver, by the names of their macros."""
        return {name.upper(): f"{value}u" for name, value in self.model_dump(exclude_none=True).items()}
