"""UF2 files, read by Adafruit's port of Microsoft's reader, and by picotool where it is installed."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from mcudeploy.boards.catalogue import load_board
from mcudeploy.toolchain import Firmware, flash_commands
from mcudeploy.toolchain.images import flash_content
from tests.chips.programs import built, deployed
from tests.chips.roms import boot
from tests.independent.tools import PYTHON, require
from tests.networks.small import small_model

READS = """
import pathlib, sys, adafruit_uf2
pathlib.Path(sys.argv[2]).write_bytes(adafruit_uf2.convert_from_uf2(pathlib.Path(sys.argv[1]).read_bytes()))
"""
FAMILIES = {"rp2040": 0xE48BFF56, "rp2350": 0xE48BFF59, "rp2040-usb": 0xE48BFF56, "rp2350-usb": 0xE48BFF59}


class Flash:
    """The memories of a chip with a program in its flash, as tests/chips has them."""

    def __init__(self, origin: int, content: bytes) -> None:
        self._origin, self._content = origin, content

    def mem_read(self, address: int, size: int) -> bytearray:
        """Return bytes of the flash, erased after the program."""
        start = address - self._origin
        return bytearray(self._content[start : start + size].ljust(size, b"\xff"))

    def mem_write(self, address: int, data: bytes) -> None:
        """Take the second stage of the boot, which is not kept."""


@pytest.fixture(scope="module", params=FAMILIES)
def firmware(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Firmware:
    folder = tmp_path_factory.mktemp(request.param)
    elf = built(deployed(request.param, small_model(folder / "small.onnx"))[0], folder)
    flash_commands(elf.board, elf.elf, None, "uf2")
    return elf


def test_another_reader_finds_the_program_and_the_boot_rom_would_start_it(firmware: Firmware) -> None:
    """A checksum of the RP2040's second stage, an image definition of the RP2350."""
    require("adafruit-uf2")
    board, read = firmware.board, firmware.elf.with_suffix(".read")
    words = [PYTHON, "-c", READS, firmware.elf.with_suffix(".uf2"), read]
    output = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    families = re.findall(r"hex value is (0x[0-9a-f]+)\nTarget Address is (0x[0-9a-f]+)", output)
    assert [(int(family, 16), int(start, 16)) for family, start in families] == [
        (FAMILIES[board.name], board.flash.origin)
    ]
    assert "All block flag values consistent, 0x2000" in output
    content = flash_content(firmware.elf, board.flash)
    assert read.read_bytes() == content.ljust(-(-len(content) // 256) * 256, b"\xff")
    chip = board.name.removesuffix("-usb")
    entry = boot(chip, board.flash.origin, Flash(board.flash.origin, read.read_bytes()))
    assert entry.start % 2 == 1 and (chip == "rp2040" or entry.vectors == board.flash.origin)


def test_picotool_describes_the_program(firmware: Firmware) -> None:
    picotool = shutil.which("picotool")
    if picotool is None:
        pytest.skip("picotool is not installed (Debian 13 has it)")
    words = [picotool, "info", "-a", firmware.elf.with_suffix(".uf2")]
    text = " ".join(subprocess.run(words, check=True, capture_output=True, text=True).stdout.split())
    rp2350 = load_board(firmware.board.name).core == "cortex-m33"
    assert f"family ID '{'rp2350-arm-s' if rp2350 else 'rp2040'}'" in text
    definition = "block type: image def target chip: RP2350 image type: ARM Secure"
    assert (definition in text) == rp2350
