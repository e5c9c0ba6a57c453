"""Devices by their USB ids: the facts of boards/usb/devices.toml."""

from __future__ import annotations

import tomllib
from functools import cache
from typing import Annotated, Literal

from pydantic import Field

from mcudeploy.boards.catalogue import list_boards
from mcudeploy.boards.fact_types import Facts, Identifier, UsbId
from mcudeploy.common.resources import resource_dir


class UsbKind(Facts):
    """Devices with these ids, or with this part in their product name."""

    name: str
    kind: Literal["probe", "boot loader", "serial bridge", "serial port"]
    ids: tuple[UsbId, ...] = ()
    product: str = ""
    families: tuple[Identifier, ...] = ()

    def covers(self, usb_id: str, product: str) -> bool:
        """Whether a device is of this kind."""
        return usb_id in self.ids or bool(self.product and self.product.lower() in product.lower())


class _UsbFile(Facts):
    devices: Annotated[tuple[UsbKind, ...], Field(alias="device")]


@cache
def usb_kinds() -> tuple[UsbKind, ...]:
    """Return all known kinds of devices."""
    text = (resource_dir("boards") / "usb" / "devices.toml").read_text("utf-8")
    return _UsbFile.model_validate(tomllib.loads(text)).devices


def kind_of(usb_id: str, product: str) -> UsbKind | None:
    """Return the kind of a device; None if it is unknown."""
    return next((it for it in usb_kinds() if it.covers(usb_id, product)), None)


def boards_reached_by(usb_id: str, product: str) -> tuple[str, ...]:
    """Return the names of the boards that a device may be, or lead to."""
    kind = kind_of(usb_id, product)
    families = kind.families if kind else ()
    return tuple(it.name for it in list_boards() if usb_id in it.usb_ids or it.family in families)
