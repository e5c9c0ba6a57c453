"""Figures that others published, or that were measured outside of this repository, each with its source."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcudeploy.boards.board import Board
from peers.networks import Network
from peers.rows import Row

FILE = Path(__file__).with_name("quoted.toml")


@dataclass(frozen=True, slots=True)
class Published:
    """A published figure; `figures` in words, with units."""

    network: str
    tool: str
    device: str
    figures: str
    source: str
    date: str


def read() -> dict[str, Any]:
    return tomllib.loads(FILE.read_text("utf-8"))


def published() -> list[Published]:
    """Return the published figures in the order of the file."""
    return [Published(**it) for it in read()["published"]]


def reasons() -> dict[tuple[str, str], str]:
    """Return why comparisons are lost, by network and figure: `ram` or `time`."""
    return {
        (network, it["figure"]): it["reason"] for it in read().get("reason", ()) for network in it["networks"]
    }


def quoted_rows(networks: Iterable[Network], boards: Iterable[Board]) -> list[Row]:
    """Return rows measured outside of this repository, for these networks and boards."""
    known = {it.name: it for it in networks}
    names = {it.name for it in boards}
    return [
        Row(
            it["network"],
            it["board"],
            it["tool"],
            known[it["network"]].is_int8,
            known[it["network"]].is_convolutional,
            it.get("ram_bytes"),
            it.get("stack_bytes"),
            it.get("flash_bytes"),
            it.get("instructions"),
            it.get("cycles"),
            it.get("level", ""),
            it.get("difference"),
            remark=it["remark"],
        )
        for it in read()["measured"]
        if it["network"] in known and it["board"] in names
    ]
