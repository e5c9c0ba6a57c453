"""labwired as a board: its UART at one port of this computer, and a boot loader at another one.

    LABWIRED-PYTHON labwired_board.py CHIP [UART [FRAGMENT]]

FRAGMENT is YAML in the form of labwired's chip files: peripherals that its file of this chip lacks. The
script runs in a separate virtual environment and imports nothing of mcudeploy. The first line of the output
names both ports. A connection to the boot loader sends an ELF file and closes its half: the chip restarts
with it, and the answer is "started" or the reason. The request "?" is answered with the cycles that the chip
has run, as JSON.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import tempfile
from pathlib import Path

import labwired  # type: ignore[import-not-found]

SLICE_S = 1e-3
"""Virtual seconds between two looks at the sockets."""
STARTS_S = 2e-3
"""Virtual seconds from reset to the first byte that the chip receives."""
BUSY = b"\xfe"
"""The measurer's frame that announces a later answer: its type comes after the first byte of COBS."""


class Board:
    """The chip and its two ports. It runs while it owes an answer: its sleep costs as much as its work."""

    def __init__(self, machine: dict[str, str], folder: Path) -> None:
        self.machine, self.elf = machine, folder / "firmware.elf"
        self.serial, self.loader = (socket.create_server(("127.0.0.1", 0)) for _ in range(2))
        self.host: socket.socket | None = None
        self.sim: labwired.Sim | None = None
        self.owes = False
        self.frame = b""

    def serve(self) -> None:
        """Run the chip and answer, until the process is ended."""
        ports = (it.getsockname()[1] for it in (self.serial, self.loader))
        sys.stdout.write(f"{' '.join(map(str, ports))}\n")
        sys.stdout.flush()
        while True:
            sockets = [it for it in (self.serial, self.loader, self.host) if it is not None]
            ready, _, _ = select.select(sockets, [], [], 0 if self.owes else None)
            if self.loader in ready:
                self._load(self.loader.accept()[0])
            if self.serial in ready:
                self._drop()
                self.host = self.serial.accept()[0]
                self.host.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            elif self.host in ready:
                self._receive(self.host)
            if self.sim is not None and self.owes:
                self._run(self.sim)

    def _receive(self, host: socket.socket) -> None:
        try:
            data = host.recv(4096)
        except OSError:
            data = b""
        if not data:
            self._drop()
        elif self.sim is not None:
            self.sim.send_bytes(data)
            self.owes = True

    def _run(self, sim: labwired.Sim) -> None:
        sim.run_for(SLICE_S)
        sent = sim.read_uart_bytes()
        *frames, self.frame = (self.frame + sent).split(b"\0")
        complete = [it for it in frames if it]
        if complete:
            self.owes = complete[-1][1:2] == BUSY
        if sent and self.host is not None:
            self.host.sendall(sent)

    def _drop(self) -> None:
        if self.host is not None:
            self.host.close()
            self.host = None

    def _load(self, line: socket.socket) -> None:
        with line:
            request = b"".join(iter(lambda: line.recv(65536), b""))
            if request == b"?":
                cycles = None if self.sim is None else self.sim.cycles
                answer = json.dumps({"cycles": cycles})
            else:
                answer = self._start(request)
            line.sendall(f"{answer}\n".encode())

    def _start(self, elf: bytes) -> str:
        if self.sim is not None:
            self.sim.close()
        self.elf.write_bytes(elf)
        self.owes, self.frame = False, b""
        try:
            self.sim = labwired.Sim(self.elf, **self.machine)
            self.sim.run_for(STARTS_S)
        except Exception as error:
            self.sim = None
            return f"{type(error).__name__}: {error}"
        return "started"


def machine(chip: str, uart: str, fragment: str, folder: Path) -> dict[str, str]:
    """Return the arguments that select a packaged chip, or with a fragment the file made of it."""
    chosen = {"uart": uart} if uart else {}
    if not fragment:
        return {"chip": chip} | chosen
    configs = Path(labwired.__file__).parent / "configs"
    facts = (configs / "chips" / f"{chip}.yaml").read_text(encoding="utf-8")
    facts = facts.replace('"../peripherals', f'"{configs}/peripherals').rstrip()
    (folder / "chip.yaml").write_text(f"{facts}\n{fragment}", encoding="utf-8")
    system = folder / "system.yaml"
    system.write_text(f'name: "{chip}"\nchip: "{folder}/chip.yaml"\n', encoding="utf-8")
    return {"system": str(system)} | chosen


if __name__ == "__main__":
    name, console, lacking = (*sys.argv[1:], "", "")[:3]
    with tempfile.TemporaryDirectory() as scratch:
        Board(machine(name, console, lacking, Path(scratch)), Path(scratch)).serve()
