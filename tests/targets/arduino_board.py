"""Emulated boards as PlatformIO boards: a platform with an Arduino core, and a desk that takes uploads."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import load_board
from mcudeploy.common.resources import resource_dir
from mcudeploy.toolchain.board_texts import arena_script, board_header, memory_script
from mcudeploy.toolchain.emulator import emulated_board, qemu_command

_FIRMWARE = resource_dir("firmware")
_LIBC = {"arm-none-eabi": "--specs=nano.specs", "riscv64-unknown-elf": "--specs=picolibc.specs"}


def install(core: Path, boards: dict[str, dict[str, object]]) -> None:
    """The platform `shim` in a core folder of PlatformIO's; `boards`: the "build" part of their manifests by
    id, whose variant is a board of ours.
    """
    platform = core / "platforms" / "shim"
    shutil.copytree(Path(__file__).parent / "arduino", platform)
    text = (_FIRMWARE / "platform" / "platform.py").read_text(encoding="utf-8")
    (platform / "platform.py").write_text(text.replace("McudeployPlatform", "ShimPlatform"), encoding="utf-8")
    (platform / "boards").mkdir()
    for name, build in boards.items():
        board = load_board(str(build["variant"]))
        (platform / "boards" / f"{name}.json").write_text(json.dumps(_manifest(name, board, build)))
        _write_variant(emulated_board(board), platform / "variants" / board.name)


def _manifest(name: str, board: Board, build: dict[str, object]) -> dict[str, object]:
    sizes = {"maximum_size": board.flash_bytes, "maximum_ram_size": board.ram_bytes}
    return {
        "name": name,
        "url": "",
        "vendor": "",
        "frameworks": ["arduino"],
        "build": {"f_cpu": f"{board.clock_hz}L"} | build,
        "upload": sizes | {"require_upload_port": True},
    }


def _write_variant(board: Board, folder: Path) -> None:
    timer = board.timer.emulated
    assert timer is not None
    for name in ("hal", "include"):
        (folder / name).mkdir(parents=True)
    for source in (*board.hal, timer.source):
        shutil.copy(_FIRMWARE / "hal" / source, folder / "hal")
    headers = [*(_FIRMWARE / "hal").rglob("*.h"), *(_FIRMWARE / "include").glob("mcud_*.h")]
    for header in headers:
        shutil.copy(header, folder / "include")
    flags = [*board.cpu_flags, _LIBC[board.toolchain]]
    files = {
        "include/mcud_board.h": board_header(board, timer),
        "memory.ld": memory_script(board),
        "arenas.ld": arena_script(board),
        "mcudeploy.ld": (_FIRMWARE / "linker" / "mcudeploy.ld").read_text(encoding="utf-8"),
        "facts.json": json.dumps({"toolchain": board.toolchain, "flags": flags}),
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


class Desk:
    """Context manager: a board on the port `url`, which runs in its emulator whatever was uploaded last.
    Before, it answers nothing.
    """

    def __init__(self, board: str, folder: Path) -> None:
        self.board = load_board(board)
        self.folder = folder
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(0.02)
        self.url = f"socket://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)
        self._qemu: subprocess.Popen[bytes] | None = None
        self._left = threading.Event()

    def __enter__(self) -> Desk:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._left.set()
        self._thread.join()
        self._stop()
        self._listener.close()

    def _serve(self) -> None:
        new, program = self.folder / "uploaded.elf", self.folder / "running.elf"
        while not self._left.wait(0.01):
            if new.exists():
                self._stop()
                self._start(new.rename(program))
                continue
            if self._qemu is None:
                with suppress(TimeoutError):
                    self._listener.accept()[0].close()

    def _start(self, program: Path) -> None:
        descriptor = self._listener.fileno()
        chardev = f"socket,id=uart,fd={descriptor},server=on,wait=on"
        command = qemu_command(self.board, program, ("-chardev", chardev, "-serial", "chardev:uart"))
        self._qemu = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=(descriptor,))

    def _stop(self) -> None:
        if self._qemu is not None:
            self._qemu.kill()
            self._qemu.wait()
