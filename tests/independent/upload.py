"""The `command` flasher of an emulated board: python upload.py FORM PORT ELF, with FORM elf or uf2."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from pathlib import Path

from mcudeploy.boards.board import load_board
from mcudeploy.boards.flashers import Uf2
from mcudeploy.toolchain.images import flash_content, uf2


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


FORMS: dict[str, Callable[[Path], bytes]] = {"elf": Path.read_bytes, "uf2": _rp2040_uf2}

if __name__ == "__main__":
    sys.exit(main())
