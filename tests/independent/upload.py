"""The `command` flasher of an emulated board: python upload.py FORM PORT ELF; the forms are in `FORMS`."""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from mcudeploy.boards.catalogue import load_board
from mcudeploy.boards.flashers import Uf2
from mcudeploy.toolchain.images import flash_content, uf2

_ELF_HEADER, _ELF_SEGMENT = 52, 32


def main() -> int:
    """Send a program to the boot loader at a port of this computer; 0 if it has started."""
    form, port, elf = sys.argv[1:]
    answer = ask(int(port), FORMS[form](Path(elf)))
    sys.stdout.write(f"{answer}\n")
    return answer != "started"


def ask(port: int, request: bytes) -> str:
    """Return the boot loader's answer to one request."""
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.sendall(request)
        line.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: line.recv(4096), b"")).decode().strip()


def _rp2040_uf2(elf: Path) -> bytes:
    board = load_board("rp2040")
    family = next(it.family for it in board.flashers if isinstance(it, Uf2))
    return uf2(flash_content(elf, board.flash), board.flash.origin, family)


def _direct_boot(board: str, elf: Path) -> bytes:
    """Return the flash as the boot ROM maps it: the plain image, at one or two addresses, started after its
    mark.

    As an ELF file, which labwired takes; nothing else of the program's own ELF file is in it.
    """
    flash = load_board(board).flash
    content = flash_content(elf, flash)
    if content[:8] != bytes.fromhex("1d04dbae") * 2:
        raise ValueError("the boot ROM starts no image without its mark")
    entry, windows = flash.origin + 8, tuple(dict.fromkeys((flash.origin, flash.constants.origin)))
    header = struct.pack(
        "<16sHHIIIIIHHHHHH",
        *(
            b"\x7fELF\1\1\1",
            2,
            243,
            1,
            entry,
            _ELF_HEADER,
            0,
            1,
            _ELF_HEADER,
            _ELF_SEGMENT,
            len(windows),
            0,
            0,
            0,
        ),
    )
    start = _ELF_HEADER + len(windows) * _ELF_SEGMENT
    size = len(content)
    segments = (struct.pack("<8I", 1, start, address, address, size, size, 5, 4) for address in windows)
    return header + b"".join(segments) + content


FORMS: dict[str, Callable[[Path], bytes]] = {
    "elf": Path.read_bytes,
    "uf2": _rp2040_uf2,
    "esp32c3": partial(_direct_boot, "esp32c3"),
    "esp32c6": partial(_direct_boot, "esp32c6"),
}

if __name__ == "__main__":
    sys.exit(main())
