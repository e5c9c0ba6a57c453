"""Boards of PlatformIO whose facts are shipped, so that they need neither a platform nor a network.

Their file is boards/platformio/boards.toml.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from mcudeploy.common.resources import resource_dir

_LEAST_LETTERS = 2
_MOST_NEAREST = 3
_CUTOFF = 0.75
Bytes = Annotated[int, Field(gt=0)]
Radio = Literal["wifi", "bluetooth", "zigbee", "thread"]


class PioBoard(BaseModel):
    """The used facts of a manifest. `ram` and `flash` are bytes, `clock` is Hz, `upload` is the uploader."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    name: str
    platform: str
    mcu: str
    cpu: str = ""
    clock: Annotated[int, Field(gt=0)]
    ram: Bytes
    flash: Bytes
    frameworks: tuple[str, ...]
    usb_ids: tuple[str, ...] = ()
    upload: str = ""
    needs_port: bool = False
    radio: tuple[Radio, ...] = ()

    def manifest(self) -> dict[str, Any]:
        """Return the facts in the form of PlatformIO's manifests."""
        return {
            "name": self.name,
            "frameworks": self.frameworks,
            "build": {
                "mcu": self.mcu,
                "cpu": self.cpu,
                "f_cpu": self.clock,
                "hwids": [it.split(":") for it in self.usb_ids],
            },
            "upload": {
                "maximum_ram_size": self.ram,
                "maximum_size": self.flash,
                "require_upload_port": self.needs_port,
            },
        }


class _PioFile(BaseModel):
    model_config = ConfigDict(defer_build=True)

    platforms: Mapping[str, str]
    boards: Mapping[str, PioBoard]


@cache
def _file() -> _PioFile:
    text = (resource_dir("boards") / "platformio" / "boards.toml").read_text("utf-8")
    return _PioFile.model_validate(tomllib.loads(text))


def pio_boards() -> Mapping[str, PioBoard]:
    """Return the shipped boards by PlatformIO's id."""
    return _file().boards


def source_of(board: PioBoard) -> str:
    """Return the origin of a board's facts."""
    return f"manifest of PlatformIO's platform {board.platform} {_file().platforms[board.platform]}"


def question_of(name: str, names: tuple[str, ...]) -> str:
    """Return the question whether an unknown name means one of its `nearest` boards; "" if there are none."""
    near = nearest(name, names)
    return f"Is it {' or '.join(near)}? " if near else ""


def nearest(name: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return up to three boards that an unknown name may mean: of `names`, or `pio:<id>`.

    First come boards whose name contains it, then boards whose microcontroller's name starts with it. If
    there are none of these, they are boards with a similar name.
    """
    wanted = without_signs(name.removeprefix("pio:").partition(":")[0])
    if len(wanted) < _LEAST_LETTERS:
        return ()
    known: dict[str, tuple[str, ...]] = {it: (without_signs(it.removeprefix("pio:")),) for it in names}
    known |= {f"pio:{key}": (without_signs(key), without_signs(it.mcu)) for key, it in pio_boards().items()}
    containing = [it for it, (plain_name, *_) in known.items() if wanted in plain_name]
    with_chip = [it for it, (_, *mcu) in known.items() if mcu and mcu[0].startswith(wanted)]
    found = [*containing, *with_chip]
    if not found:
        every = [word for words in known.values() for word in words]
        similar = difflib.get_close_matches(wanted, every, _MOST_NEAREST, _CUTOFF)
        found = [it for word in similar for it, words in known.items() if word in words]
    return tuple(dict.fromkeys(found))[:_MOST_NEAREST]


def without_signs(name: str) -> str:
    """Return the letters, in lower case, and the digits of a name."""
    return re.sub("[^a-z0-9]", "", name.lower())
