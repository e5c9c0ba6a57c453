"""Topology files: their valid content, and one clear error for each mistake."""

from __future__ import annotations

import re
from math import inf
from pathlib import Path

import pytest

from mcudeploy.boards.catalogue import load_board
from mcudeploy.common.errors import ConfigError
from mcudeploy.extensions.several_boards.pipeline.topology import load_topology

DOCS = Path(__file__).parents[2] / "docs" / "pipeline.md"
GOOD = 'width = 2\nboard = "nrf52840"\n[link]\nbytes_per_second = 1_000_000\n'


def written(folder: Path, text: str) -> Path:
    path = folder / "t.toml"
    path.write_text(text)
    return path


def test_a_board_says_what_the_file_does_not(tmp_path: Path) -> None:
    topology, board = load_topology(written(tmp_path, GOOD)), load_board("nrf52840")
    assert (topology.count, topology.clock, topology.unit_text) == (2, board.clock_hz, "nrf52840")
    assert topology.units.ram_bytes == sum(map(board.room, board.memories))
    assert topology.units.flash_bytes == board.flash_bytes
    assert topology.ticks_link.rate == 1_000_000 / board.clock_hz
    limited = load_topology(written(tmp_path, f"ram_bytes = 1000\nclock_hz = 1e6\n{GOOD}"))
    assert (limited.units.ram_bytes, limited.ticks_link.rate) == (1000, 1)


def test_cores_and_arrays_without_limits(tmp_path: Path) -> None:
    for unit in ('core = "cortex-m4"', "systolic = 16"):
        text = GOOD.replace('board = "nrf52840"', f"{unit}\nclock_hz = 2e6\nheight = 3")
        topology = load_topology(written(tmp_path, f"{text}latency_seconds = 0.5\nlinks = 2\n"))
        assert (topology.count, topology.units.ram_bytes, topology.units.flash_bytes) == (6, inf, inf)
        assert (topology.ticks_link.latency, topology.ticks_link.links) == (1e6, 2)


def test_the_examples_of_the_docs(tmp_path: Path) -> None:
    blocks = re.findall(r"```toml\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert [load_topology(written(tmp_path, block)).count for block in blocks] == [4, 36]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD.replace("width = 2", "width = 0"), "width: Input should be greater than or equal to 1"),
        (GOOD.replace("width = 2\n", ""), "width: Field required"),
        (GOOD.replace("2", "'two'", 1), "width: Input should be a valid integer"),
        (GOOD.replace("2", "true", 1), "width: Input should be a valid integer"),
        ("hight = 2\n" + GOOD, "hight: Extra inputs are not permitted"),
        (GOOD.replace("nrf52840", "nrf53"), "board: no board 'nrf53'"),
        (GOOD.replace("board", "core"), "clock_hz is missing"),
        (
            GOOD.replace('board = "nrf52840"', 'core = "z80"\nclock_hz = 1.0'),
            "core: no costs of kernels on z80",
        ),
        ("systolic = 4\n" + GOOD, "one of board, core and systolic says what a unit is, not 2 of them"),
        (GOOD.replace('board = "nrf52840"\n', ""), "one of board, core and systolic"),
        (GOOD.replace("1_000_000", "0"), "link.bytes_per_second: Input should be greater than 0"),
        (GOOD.replace("1_000_000", "nan"), "link.bytes_per_second: Input should be"),
        (GOOD.replace("1_000_000", "inf"), "link.bytes_per_second: Input should be a finite number"),
        (
            GOOD + "latency_seconds = -1.0\n",
            "link.latency_seconds: Input should be greater than or equal to 0",
        ),
        (GOOD.partition("[link]")[0], "link: Field required"),
        ("height = 200\n" + GOOD, "width x height are 400 units; the limit is 256"),
        ("ram_bytes = 0\n" + GOOD, "ram_bytes: Input should be greater than 0"),
        ("width = = 2", "t.toml is not valid TOML"),
        ("\udcff", "t.toml is not valid TOML"),
    ],
)
def test_mistakes_are_named(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "t.toml"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ConfigError, match=re.escape(message)) as caught:
        load_topology(path)
    fault, *way_out = str(caught.value).splitlines()
    assert "t.toml" in fault and len(way_out) <= 1
