"""The boards of benchmarks/fleet.py: a process with one TCP port each.

A board with the firmware for timing is a stand-in: it speaks the wire protocol, and answers a tile after 50
ms without computing (16 QEMUs would need more cores than a desktop computer has). With any other firmware it
is QEMU, at the same port. The firmware changes when the board is flashed, by a line to the control port.
"""

from __future__ import annotations

import asyncio
import json
import struct
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcudeploy.boards.catalogue import load_board
from mcudeploy.device.frame import Frame, Receiver, encode
from mcudeploy.device.requests import BUSY, ERROR, REPLY, UNSYNCHRONISED, Request
from mcudeploy.toolchain.emulator import Emulator

TICKS_A_ROW = 1000


@dataclass(frozen=True)
class Bench:
    """A stand-in's description of itself: data of a HELLO reply after the nonce, addresses of the kernels."""

    board_file: str
    elf: str
    hello: bytes
    kernels: tuple[int, ...]
    tile_s: float


@dataclass
class Board:
    """One board.

    `tiles`: timed so far; `overlaps`: requests of a connection after those of a later one, so the board had
    two masters.
    """

    bench: Bench
    tiles: int = 0
    overlaps: int = 0
    flashed: int = 0
    connected: int = 0
    dead: bool = False
    emulator: Emulator | None = None
    server: asyncio.Server | None = None
    connections: set[asyncio.StreamWriter] = field(default_factory=set)

    @property
    def port(self) -> int:
        """The board's TCP port."""
        assert self.server is not None
        return int(self.server.sockets[0].getsockname()[1])

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        self.connections.add(writer)
        try:
            with suppress(ConnectionError):
                await (self._emulated(reader, writer) if self.emulator else self._stand_in(reader, writer))
        finally:
            self.connections.discard(writer)
            writer.close()

    async def flash(self, elf: str) -> None:
        """Run this program from now on."""
        self.flashed += 1
        if self.emulator is not None:
            await asyncio.to_thread(self.emulator.close)
            self.emulator = None
        if elf != self.bench.elf:
            emulator = Emulator(load_board(self.bench.board_file), Path(elf))
            self.emulator = await asyncio.to_thread(emulator.__enter__)

    async def die(self) -> None:
        """Break the connection, and refuse others."""
        self.dead = True
        assert self.server is not None
        self.server.close()
        for writer in self.connections:
            writer.transport.abort()

    async def _emulated(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self.emulator is not None
        first = await reader.read(65536)
        if not first:
            return  # a client only checked that the port exists
        from_board, to_board = await asyncio.open_unix_connection(self.emulator.url.removeprefix("unix://"))
        to_board.write(first)
        ways = [asyncio.create_task(_pump(*way)) for way in ((reader, to_board), (from_board, writer))]
        _, left = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in left:
            way.cancel()
        to_board.close()

    async def _stand_in(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        receiver, greeted = Receiver(), False
        while received := await reader.read(65536):
            if not greeted:
                self.connected += 1
                mine = self.connected
            for frame in receiver.feed(received):
                self.overlaps += mine != self.connected
                greeted |= frame.type == Request.HELLO
                if not greeted:
                    writer.write(encode(Frame(ERROR, frame.seq, bytes([UNSYNCHRONISED]))))
                    continue
                if frame.type == Request.CALL:
                    writer.write(encode(Frame(BUSY, frame.seq, b"")))
                    await asyncio.sleep(self.bench.tile_s)
                    self.tiles += 1
                writer.write(encode(Frame(frame.type | REPLY, frame.seq, self._reply(frame))))

    def _reply(self, frame: Frame) -> bytes:
        if frame.type == Request.HELLO:
            return frame.data + self.bench.hello
        if frame.type == Request.KERNELS:
            (first,) = struct.unpack("<I", frame.data)
            part = self.bench.kernels[first : first + 30]
            return struct.pack(f"<{len(part)}Q", *part)
        if frame.type == Request.CALL:
            _, _, first, end, repeat = struct.unpack("<BIIII", frame.data)
            return struct.pack("<BQ", 0, (end - first) * repeat * TICKS_A_ROW)
        return b""


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()


async def _control(boards: list[Board], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Execute `flash PORT ELF`, `kill PORT`, or `tell`."""
    words = (await reader.readline()).decode().split()
    by_port = {str(board.port): board for board in boards if not board.dead}
    answer: Any = "ok"
    if words[0] == "flash":
        await by_port[words[1]].flash(words[2])
    elif words[0] == "kill":
        await by_port[words[1]].die()
    else:
        answer = {
            name: [getattr(board, name) for board in boards] for name in ("tiles", "overlaps", "flashed")
        }
    writer.write(json.dumps(answer).encode() + b"\n")
    await writer.drain()
    writer.close()


async def main(count: int, path: str) -> None:
    """Start the boards; print control port and board ports on the first line. End when stdin ends."""
    said = json.loads(Path(path).read_text())
    bench = Bench(
        said["board_file"], said["elf"], bytes.fromhex(said["hello"]), tuple(said["kernels"]), said["tile_s"]
    )
    boards = [Board(bench) for _ in range(count)]
    for board in boards:
        board.server = await asyncio.start_server(board.serve, "127.0.0.1", 0)
    control = await asyncio.start_server(lambda *ends: _control(boards, *ends), "127.0.0.1", 0)
    print(json.dumps([control.sockets[0].getsockname()[1], *(board.port for board in boards)]), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    for board in boards:
        if board.emulator is not None:
            board.emulator.close()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
