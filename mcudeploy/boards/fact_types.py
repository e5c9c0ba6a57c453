"""Types of the values in board files, and the base of their tables."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, model_validator

from mcudeploy.boards.platformio import PIO_ID

Address = Annotated[int, Field(ge=0, lt=2**32)]
Size = Annotated[int, Field(gt=0, le=2**32)]
Hertz = Annotated[int, Field(gt=0, lt=2**32)]
"""A rate that the firmware has as an uint32_t."""
Baud = Annotated[int, Field(ge=9600, lt=2**32)]


def spelled(pattern: str, rule: str) -> AfterValidator:
    """Return a check of a text's characters. `rule` names the allowed ones, for the error."""

    def checked(text: str) -> str:
        if re.fullmatch(pattern, text) is None:
            raise ValueError(f"{text[:80]!r} is not possible: {rule}")
        return text

    return AfterValidator(checked)


_LOWER = "lower-case letters, digits and"
WORD = "letters, digits and _ . -, the first of them a letter, a digit or _"
Identifier = Annotated[str, spelled(r"[a-z][a-z0-9_]*", f"{_LOWER} _, the first of them a letter")]
Core = Annotated[
    str,
    Field(max_length=40),
    spelled(r"[a-z0-9][a-z0-9-]*", f"{_LOWER} -, the first of them no -"),
]
BoardName = Annotated[
    str,
    spelled(
        rf"[a-z0-9][a-z0-9-]*|pio:{PIO_ID}(:[a-z]+)?",
        f"the name of a board has {_LOWER} -, the first of them no -",
    ),
]

UsbId = Annotated[
    str, spelled(r"[0-9a-f]{4}:[0-9a-f]{4}", "a USB id is four hexadecimal digits, a colon, and four more")
]
"""Vendor and product."""


def _placed(source: str, info: ValidationInfo) -> str:
    """Return a source beside its board file as an absolute path. Raises ValueError if it is missing."""
    if not source.startswith(".") or info.context is None:
        return source
    folder: Path = info.context["folder"]
    path = (folder / source).resolve()
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    return str(path)


HalSource = Annotated[
    str,
    Field(max_length=200),
    spelled(
        r"(([a-z0-9_]+/)*[a-z0-9_]+|(\./|(\.\./)+)([^/\x00-\x1f]+/)*[A-Za-z0-9_-]+)\.(c|cpp|S)",
        "a source is a .c, .cpp or .S file of the HAL, or its path from the board file on, from ./ or ../",
    ),
    AfterValidator(_placed),
]
"""A file below firmware/hal. A path that begins with `./` or `../` lies beside the board file; it becomes
absolute when the file is read.
"""
Line = Annotated[
    str, spelled(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029]*", "a text of one line, without control characters")
]
"""A text to show, safe in a one-line comment."""
CpuFlag = Annotated[
    str,
    spelled(
        r"-m((cpu|arch|abi|fpu|float-abi|tune|cmodel)=[A-Za-z0-9._+-]+"
        r"|thumb|arm|cmse|longcalls|(no-)?unaligned-access)",
        "flags are -mcpu=, -march=, -mabi=, -mfpu=, -mfloat-abi=, -mtune=, -mcmodel=, -mthumb, -marm, "
        "-mcmse, -mlongcalls, -munaligned-access and -mno-unaligned-access",
    ),
]
"""A compiler's option about the core: a board file may contain no other."""
Machine = Annotated[str, spelled(r"[A-Za-z0-9][A-Za-z0-9_.-]*", f"a machine is named by {WORD}")]
EMULATOR_OPTIONS = re.compile(
    r"((^| )(-bios none|-cpu [A-Za-z0-9_-]+(,[A-Za-z0-9_-]+=[A-Za-z0-9.]+)*"
    r"|-global [A-Za-z0-9_-]+\.[A-Za-z0-9_.-]+=[A-Za-z0-9_-]+|-m [0-9]+[KMG]?|-smp [0-9]+))*"
)
"""QEMU's options about the machine itself; none of them names a file or a device of this computer."""
Rate = Annotated[float, Field(ge=1e-4, le=1e6)]
"""Bytes per cycle."""
Patience = Annotated[float, Field(ge=1, le=1000)]
Pin = Annotated[
    str,
    spelled(r"P[A-K](\d|1[0-5])|P[01]\.([0-2]\d|3[01])", "a pin is named like PD8 (STM32) or P1.03 (nRF)"),
]
Nanoseconds = Annotated[int, Field(gt=0, le=100)]
"""A time of a memory chip: at most 12 clocks at 120 MHz."""
Clocks = Annotated[float, Field(ge=0, le=1e9)]
"""Cycles of the first unit."""


class Facts(BaseModel):
    """Base of all facts: unknown keys are errors; instances are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _booleans(cls, facts: Any) -> Any:
        """Refuse a boolean in place of a number, and any other value in place of a boolean."""
        for name, value in facts.items() if isinstance(facts, dict) else ():
            kind = cls.model_fields[name].annotation if name in cls.model_fields else None
            if kind and isinstance(value, bool) and bool not in (kind, *get_args(kind)):
                raise ValueError(f"{name} = {str(value).lower()}: expected a value that is not a boolean")
            if kind is bool and not isinstance(value, bool):
                raise ValueError(f"{name}: expected true or false, found {value!r}")
        return facts


def pin_number(pin: str) -> int:
    """Return the number of a pin for the HAL: 16 pins per lettered port, 32 per numbered port."""
    if "." in pin:
        port, number = pin[1:].split(".")
        return 32 * int(port) + int(number)
    return 16 * (ord(pin[1]) - ord("A")) + int(pin[2:])
