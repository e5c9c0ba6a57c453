"""Every flasher's command line, by a fake tool on PATH that records it, fails or hangs; images."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import mcudeploy
from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import list_boards, load_board
from mcudeploy.boards.trust import trust
from mcudeploy.common.errors import FlashError, ProtocolError, UsageError
from mcudeploy.common.resources import resource_dir
from mcudeploy.common.system import drives
from mcudeploy.device import target
from mcudeploy.toolchain import boot_loader, flash, flash_commands, flashing, ports
from mcudeploy.toolchain.flash_tools import TOOLS, Attached
from mcudeploy.toolchain.images import flash_content, intel_hex, uf2
from mcudeploy.toolchain.tools import run_tool

FAKE = """#!/bin/sh
printf '%s\\n' "${0##*/}" "$@" end-of-call >> "$FAKE_LOG"
echo "$FAKE_SAYS"
if [ -n "$FAKE_HANGS" ]; then /bin/sleep 600 & echo $! > "$FAKE_LOG.pid"; wait; fi
if [ "${0##*/}" = cp ]; then /bin/cp "$1" "$2" && { [ -n "$FAKE_KEEPS" ] || /bin/rm "$2/INFO_UF2.TXT"; }; fi
exit ${FAKE_STATUS:-0}
"""
LINKER_SCRIPT = """
SECTIONS
{{
    .text {origin:#x} : {{ *(.text) }}
    .rodata {origin:#x} + 0x140 : {{ *(.rodata) }}
    .data 0x20000000 : AT({origin:#x} + 0x400) {{ *(.data) }}
    .bss : {{ *(.bss) }}
}}
"""
PROGRAM = (
    "const char text[300] = {1, 2, 3};\nint value = 0x12345678, empty[9];\nint main(void) { return value; }\n"
)
GCC, OBJCOPY, OBJDUMP = (str(shutil.which(f"arm-none-eabi-{it}")) for it in ("gcc", "objcopy", "objdump"))
PROBE = Attached("/dev/ttyACM1", "066DFF48", "0483:374b")
Fake = Callable[..., None]
Calls = Callable[[], list[list[str]]]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Installs tools of these names, and no others."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "log"))

    def install(*names: str, **behaviour: str) -> None:
        for name in names:
            (folder / name).write_text(FAKE)
            (folder / name).chmod(0o755)
        for key, value in behaviour.items():
            monkeypatch.setenv(f"FAKE_{key.upper()}", value)

    return install


@pytest.fixture
def calls(tmp_path: Path) -> Calls:
    """The command lines that fake tools were called with."""

    def read() -> list[list[str]]:
        text = (tmp_path / "log").read_text() if (tmp_path / "log").exists() else ""
        return [call.strip("\n").split("\n") for call in text.split("end-of-call\n")[:-1]]

    return read


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Board], Path]:
    """Links a program with a gap in flash, initialised data and .bss for a board's flash."""

    def link(board: Board) -> Path:
        folder = tmp_path_factory.mktemp("a program")
        (folder / "p.c").write_text(PROGRAM)
        (folder / "p.ld").write_text(LINKER_SCRIPT.format(origin=board.flash.origin))
        command = [GCC, "-mcpu=cortex-m0", "-mthumb", "-nostdlib", "-Tp.ld", "-Wl,-emain"]
        subprocess.run([*command, "p.c", "-o", "firmware.elf"], cwd=folder, check=True)
        return folder / "firmware.elf"

    return link


@pytest.mark.parametrize(
    ("name", "tool", "expected"),
    [
        ("stm32f405", "openocd", ["openocd -f interface/stlink.cfg -f target/stm32f4x.cfg "
         "-c 'adapter serial 066DFF48' -c 'program {DIR/firmware.elf} verify reset exit'"]),
        ("stm32f405", "st-flash", ["st-flash --reset --serial 066DFF48 write DIR/firmware.bin 0x08000000"]),
        ("stm32f405", "pyocd",
         ["pyocd load --no-wait --target stm32f405rgtx --uid 066DFF48 --format elf DIR/firmware.elf"]),
        ("stm32f405", "probe-rs",
         ["probe-rs download --chip STM32F405RGTx --probe 0483:374b:066DFF48 --verify DIR/firmware.elf",
          "probe-rs reset --chip STM32F405RGTx --probe 0483:374b:066DFF48"]),
        ("stm32f405", "dfu-util",
         ["dfu-util -d 0483:df11 -S 066DFF48 -a 0 -s 0x08000000:leave -D DIR/firmware.bin"]),
        ("rp2040", "picotool", ["picotool load -v -x DIR/firmware.elf --ser 066DFF48"]),
        ("teensy41", "teensy_loader_cli", ["teensy_loader_cli --mcu=TEENSY41 -w -v DIR/firmware.hex"]),
        ("esp32s3", "esptool",
         ["esptool --chip esp32s3 elf2image -o DIR/firmware.esp.bin DIR/firmware.elf",
          "esptool --chip esp32s3 --port /dev/ttyACM1 write_flash 0x10000 DIR/firmware.esp.bin"]),
        ("esp32c3", "esptool",
         ["esptool --chip esp32c3 --port /dev/ttyACM1 write_flash 0x0 DIR/firmware.bin"]),
    ],
)  # fmt: skip
def test_command_lines(
    name: str, tool: str, expected: list[str], fake: Fake, calls: Calls, program: Callable[[Board], Path]
) -> None:
    board = load_board(name)
    elf = program(board)
    lines = [[word.replace("DIR", str(elf.parent)) for word in shlex.split(line)] for line in expected]
    assert flash_commands(board, elf, PROBE, tool) == lines and calls() == []  # a dry run calls nothing
    fake(tool)
    flash(board, elf, PROBE, tool)
    assert calls() == lines
    without = flash_commands(board, elf, None, tool)
    assert not any("066DFF48" in word or "tty" in word for line in without for word in line)


def test_the_first_installed_flasher_is_taken(
    fake: Fake, calls: Calls, program: Callable[[Board], Path]
) -> None:
    board = load_board("stm32f405")
    fake("pyocd", "probe-rs")
    assert flashing.choose_flasher(board).tool == "pyocd"
    flash(board, program(board))
    assert [call[0] for call in calls()] == ["pyocd"]
    fake("openocd")
    assert flashing.choose_flasher(board).tool == "openocd"
    assert flashing.choose_flasher(board, "probe-rs").tool == "probe-rs"
    with pytest.raises(UsageError, match="stm32f405 is not flashed by esptool; its board file names openocd"):
        flashing.choose_flasher(board, "esptool")
    with pytest.raises(UsageError, match="mps2-an386 cannot be flashed"):
        flashing.choose_flasher(load_board("mps2-an386"))


def test_esptool_has_two_names(fake: Fake, calls: Calls, program: Callable[[Board], Path]) -> None:
    board = load_board("esp32s3")
    fake("esptool.py")
    flash(board, program(board))
    assert [call[0] for call in calls()] == ["esptool.py"] * 2


def test_a_program_of_the_users_own(
    fake: Fake, calls: Calls, program: Callable[[Board], Path], tmp_path: Path
) -> None:
    """It lies beside the board file, and is told what it needs; what it is told goes through no shell."""
    text = (resource_dir("boards") / "stm32f405.toml").read_text()
    line = '["./bin/flash-far", "{elf}", "--to={port};x", "{probe}", "{board}", "{port}{other}"]'
    (tmp_path / "mine.toml").write_text(f'{text}\n[[flasher]]\ntool = "command"\nline = {line}\n')
    board = load_board(str(tmp_path / "mine.toml"))
    elf = program(board)
    fake("flash-far")
    trust(board)
    flash(board, elf, Attached("socket://{board}:1", "066D"), "command")
    far = "socket://{board}:1"
    assert calls() == [["flash-far", str(elf), f"--to={far};x", "066D", "stm32f405", far + "{other}"]]


def test_missing_tools_are_named_with_what_installs_them(
    fake: Fake, program: Callable[[Board], Path]
) -> None:
    named = {it.tool for board in list_boards() for it in board.flashers}
    assert named | {"platformio", "command"} == set(TOOLS)  # of pio:<id>, and of the user's own files
    for board in list_boards():
        for flasher in board.flashers:
            tool = TOOLS[flasher.tool]
            if tool.programs:
                with pytest.raises(FlashError) as caught:
                    flash(board, Path("x.elf"), None, flasher.tool)
                assert f"{flasher.tool} is not installed" in str(caught.value)
                assert tool.install in str(caught.value) and "install" in tool.install
    with pytest.raises(
        FlashError, match=r"none of its flashers is installed: openocd: sudo apt-get .*; or st-"
    ):
        flash(load_board("stm32f405"), Path("x.elf"))


@pytest.mark.parametrize("tool", [name for name, it in TOOLS.items() if it.programs])
def test_a_flasher_that_fails_is_one_error_with_its_last_lines(
    tool: str, fake: Fake, calls: Calls, program: Callable[[Board], Path]
) -> None:
    board = next(it for it in list_boards() if tool in {flasher.tool for flasher in it.flashers})
    fake(tool, status="3", says="first\nlast line 1\nlast line 2\nlast line 3.")
    with pytest.raises(FlashError) as caught:
        flash(board, program(board), None, tool)
    assert len(calls()) == 1  # nothing after the one that failed
    message = str(caught.value)
    assert message.startswith(
        f"{board.name} was not flashed, {tool} failed: last line 1; last line 2; last line 3."
    )
    assert "\n" not in message and f"whole output: {tool} " in message and "first" not in message


@pytest.mark.parametrize(
    ("tool", "output", "remedy"),
    [
        ("openocd", "Error: open failed\n** OpenOCD init failed **", "No probe is attached"),
        ("openocd", "Error: libusb_open() failed with LIBUSB_ERROR_ACCESS\nError: open failed", "udev rules"),
        ("openocd", "Error: init mode failed (unable to connect to the target)", "check power and SWD wires"),
        ("pyocd", "No connected debug probes", "No probe is attached"),
        ("st-flash", "WARN usb.c: Couldn't find any ST-Link devices", "No probe is attached"),
        ("dfu-util", "dfu-util: No DFU capable USB device available", "BOOT0"),
    ],
)
def test_known_complaints_have_their_remedy(
    tool: str, output: str, remedy: str, fake: Fake, program: Callable[[Board], Path]
) -> None:
    fake(tool, status="1", says=output)
    board = load_board("stm32f405")
    with pytest.raises(FlashError, match=remedy) as caught:
        flash(board, program(board), None, tool)
    assert output.splitlines()[0].split(" ")[0] in str(caught.value)


def test_a_flasher_that_hangs_is_ended_with_its_children(
    fake: Fake, program: Callable[[Board], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = load_board("stm32f405")
    fake("openocd", hangs="1", says="Info : waiting")
    monkeypatch.setattr(flashing, "_TIMEOUT_S", 0.4)
    with pytest.raises(
        FlashError, match=r"did not finish within 0\.4 s \(Info : waiting\): unplug the board"
    ):
        flash(board, program(board))
    _await_end(tmp_path)
    teensy = load_board("teensy41")
    fake("teensy_loader_cli", says="Waiting for Teensy device...")
    with pytest.raises(FlashError, match=r"0\.4 s \(Waiting for Teensy device\): press the button"):
        flash(teensy, program(teensy))
    _await_end(tmp_path)


@pytest.mark.usefixtures("default_signals")
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupt_leaves_no_child(
    ending: signal.Signals, fake: Fake, program: Callable[[Board], Path], tmp_path: Path
) -> None:
    board = load_board("stm32f405")
    fake("openocd", hangs="1")
    script = "import sys, pathlib; from mcudeploy.toolchain import flash\n"
    script += "from mcudeploy.boards.catalogue import load_board"
    script += "\nflash(load_board('stm32f405'), pathlib.Path(sys.argv[1]))"
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(program(board))],
        env=os.environ | {"PYTHONPATH": str(Path(mcudeploy.__file__).parents[1])},
        stderr=subprocess.PIPE,
    )
    _await(lambda: (tmp_path / "log.pid").exists() and (tmp_path / "log.pid").read_text().endswith("\n"))
    process.send_signal(ending)
    _, said = process.communicate(timeout=20)
    assert (b"KeyboardInterrupt" in said) == (ending is signal.SIGINT)
    _await_end(tmp_path)


def test_a_program_that_does_not_start_is_an_error(fake: Fake, program: Callable[[Board], Path]) -> None:
    board = load_board("stm32f405")
    fake("openocd")
    tool = Path(os.environ["PATH"]) / "openocd"
    tool.write_bytes(b"\x7fELF, damaged")
    with pytest.raises(FlashError, match="openocd does not start: Exec format error"):
        flash(board, program(board))


def test_a_drive_takes_a_file_and_goes(
    fake: Fake,
    calls: Calls,
    program: Callable[[Board], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    board, media = load_board("rp2040"), tmp_path / "media"
    elf = program(board)
    monkeypatch.setattr(drives, "_DRIVE_FOLDERS", (str(media),))
    monkeypatch.setattr(flashing, "_LEAVES_S", 0.2)
    fake("cp")
    with pytest.raises(FlashError, match=r"no drive RPI-RP2 is mounted\. Hold the button"):
        flash(board, elf)
    assert flash_commands(board, elf, name="uf2") == [["cp", str(elf.with_suffix(".uf2")), "/media/RPI-RP2"]]
    drive = media / "RPI-RP2"
    drive.mkdir(parents=True)
    (drive / "INFO_UF2.TXT").write_text("UF2 Bootloader v3.0")
    flash(board, elf)
    assert calls() == [["cp", str(elf.with_suffix(".uf2")), str(drive)]]
    assert (drive / "firmware.uf2").read_bytes() == uf2(
        flash_content(elf, board.flash), 0x10000000, 0xE48BFF56
    )
    (drive / "INFO_UF2.TXT").write_text("UF2 Bootloader v3.0")
    fake("cp", keeps="1")
    with pytest.raises(FlashError, match="its boot loader has not taken the file"):
        flash(board, elf)
    other = media / "RPI-RP21"
    other.mkdir()
    (other / "INFO_UF2.TXT").write_text("")
    with pytest.raises(FlashError, match="2 boards wait for a file"):
        flash(board, elf)


@pytest.fixture
def program_on_usb(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The serial port of a program on an RP2040: a terminal of this computer, whose other end is returned."""
    controller, terminal = os.openpty()
    port = SimpleNamespace(device=os.ttyname(terminal), vid=0x2E8A, pid=0x000A, description="Serial USB")
    monkeypatch.setattr(ports.list_ports, "comports", lambda: [port])
    yield controller
    os.close(controller)
    os.close(terminal)


def test_a_touch_brings_the_drive(
    fake: Fake,
    calls: Calls,
    program: Callable[[Board], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    program_on_usb: int,
) -> None:
    """The port's program restarts in the boot loader at 1200 baud; the drive appears after some time."""
    board, drive = load_board("rp2040-usb"), tmp_path / "media/RPI-RP2"
    elf = program(board)
    monkeypatch.setattr(drives, "_DRIVE_FOLDERS", (str(drive.parent),))
    fake("cp")

    def appear() -> None:
        _await(lambda: termios.tcgetattr(program_on_usb)[4] == termios.B1200)
        time.sleep(0.2)
        drive.mkdir(parents=True)
        (drive / "INFO_UF2.TXT").write_text("UF2 Bootloader v3.0")

    chip = threading.Thread(target=appear)
    chip.start()
    flash(board, elf)
    chip.join()
    assert calls() == [["cp", str(elf.with_suffix(".uf2")), str(drive)]]


@pytest.mark.usefixtures("program_on_usb")
def test_a_touch_without_effect_is_an_error(
    fake: Fake, program: Callable[[Board], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = load_board("rp2040-usb")
    monkeypatch.setattr(drives, "_DRIVE_FOLDERS", (str(tmp_path / "media"),))
    monkeypatch.setattr(boot_loader, "_APPEARS_S", 0.2)
    monkeypatch.setattr(drives, "_LABELS", tmp_path)
    fake("picotool", "cp")
    with pytest.raises(FlashError, match=r"its boot loader did not appear\. Hold the button"):
        flash(board, program(board))
    with pytest.raises(FlashError, match=r"no drive RPI-RP2 is mounted\. Hold the button"):
        flash(board, program(board), None, "uf2")
    (tmp_path / "RPI-RP2").touch()
    with pytest.raises(FlashError, match=r"RPI-RP2 is there, and not mounted \(udisksctl mount -b"):
        flash(board, program(board), None, "uf2")


def test_another_program_is_not_touched(
    fake: Fake, calls: Calls, program: Callable[[Board], Path], program_on_usb: int
) -> None:
    before = termios.tcgetattr(program_on_usb)
    fake("picotool")
    for name in ("rp2040", "rp2350-usb"):
        flash(load_board(name), program(load_board(name)))
    elsewhere = Attached("rfc2217://127.0.0.1:4000")
    flash(load_board("rp2040-usb"), program(load_board("rp2040-usb")), elsewhere)
    assert termios.tcgetattr(program_on_usb) == before
    assert [it[0] for it in calls()] == ["picotool"] * 3


def test_images_are_those_of_objcopy(program: Callable[[Board], Path], tmp_path: Path) -> None:
    for name in ("stm32f405", "teensy41"):
        board = load_board(name)
        elf = program(board)
        content = flash_content(elf, board.flash)
        subprocess.run([OBJCOPY, "-O", "binary", "--gap-fill=0xff", elf, tmp_path / "a.bin"], check=True)
        assert content == (tmp_path / "a.bin").read_bytes() and len(content) == 0x404
        (tmp_path / "a.hex").write_text(intel_hex(content, board.flash.origin))
        subprocess.run([OBJCOPY, "-I", "ihex", "-O", "binary", "a.hex", "b.bin"], cwd=tmp_path, check=True)
        assert (tmp_path / "b.bin").read_bytes() == content
        headers = subprocess.run(
            [OBJDUMP, "-h", tmp_path / "a.hex"], capture_output=True, text=True, check=True
        )
        assert f"{board.flash.origin:08x}" in headers.stdout
    far = load_board("rp2040")
    with pytest.raises(FlashError, match=r"firmware.elf has \d+ bytes at 0x60000000, outside of the flash"):
        flash_content(elf, far.flash)
    crossing = intel_hex(bytes(32), 0x0800FFF0).splitlines()
    assert (
        crossing[0] == ":020000040800F2" and crossing[2] == ":020000040801F1" and crossing[3][3:7] == "0000"
    )


def test_uf2_blocks() -> None:
    """Fields by the specification: 512 bytes, magic numbers, the family in the last word of the header."""
    content = bytes(range(256)) * 2 + b"tail"
    made = uf2(content, 0x10000000, 0xE48BFF56)
    assert len(made) == 3 * 512
    found = b""
    for number in range(3):
        block = made[512 * number : 512 * (number + 1)]
        header = struct.unpack_from("<8I", block)
        assert header[:2] == (0x0A324655, 0x9E5D5157) and block[508:] == bytes.fromhex("306fb10a")
        assert header[2:] == (0x2000, 0x10000000 + 256 * number, 256, number, 3, 0xE48BFF56)
        found += block[32 : 32 + 256]
        assert block[288:508] == bytes(220)
    assert found == content.ljust(768, b"\xff")


def test_a_tool_that_ends_in_time_says_all() -> None:
    ended = run_tool(["/bin/sh", "-c", "echo one; echo two >&2; exit 4"], 10)
    assert (ended.status, ended.output) == (4, "one\ntwo\n")


def _await(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _await_end(folder: Path) -> None:
    """The child of the fake tool is gone."""
    child = int((folder / "log.pid").read_text())

    def gone() -> bool:
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            return Path(f"/proc/{child}/stat").read_text().split()[2] == "Z"
        return True

    _await(gone)


def test_what_a_target_says_reaches_the_flasher(
    fake: Fake, calls: Calls, program: Callable[[Board], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the port and the probe of a target to the tool, nothing before a flasher is known to be there."""
    board, port = load_board("stm32f405"), SimpleNamespace(close=lambda: None)
    firmware = SimpleNamespace(elf=program(board), hash=1)
    asked = target.Target(board, "/dev/ttyACM7", flasher="st-flash", probe="066DFF48")
    monkeypatch.setattr(target, "open_transport", lambda *_: port)
    with pytest.raises(FlashError, match="st-flash is not installed"):
        target.require_port(asked)
    fake("st-flash", "openocd")
    assert target.require_port(asked) == "/dev/ttyACM7"
    assert asked.title == "stm32f405, flashed with st-flash"

    def silent(*_: object, **__: object) -> None:
        raise ProtocolError("nobody answers")

    monkeypatch.setattr(target, "connect", silent)
    with pytest.raises(ProtocolError, match="nobody answers"), target.open_device(asked, firmware):
        pass
    image = str(firmware.elf.with_suffix(".bin"))
    assert calls() == [["st-flash", "--reset", "--serial", "066DFF48", "write", image, "0x08000000"]]
