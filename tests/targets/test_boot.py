"""Every emulated board boots: memory, FPU, UART with interrupts, exact instruction count, stack, exit."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from mcudeploy.boards.catalogue import list_boards, load_board
from mcudeploy.device.transport import open_transport
from mcudeploy.toolchain import Emulator, Firmware
from mcudeploy.toolchain.emulator import qemu_command
from mcudeploy.toolchain.firmware_build import run_logged

from .board_line import Line

EMULATED = tuple(board.name for board in list_boards() if board.emulator is not None)
Build = Callable[..., Firmware]


@pytest.mark.parametrize("name", EMULATED)
def test_board_boots_and_works(name: str, boot: Build) -> None:
    firmware = boot(name)
    board = firmware.board
    with Emulator(board, firmware.elf) as emulator:
        line = Line(emulator.url)
        assert line.ask(b"M", answers=3) == [0x12345678, 0, int(1000 * math.exp(2))]

        line.send(b"C")
        clock_hz, ticks_hz = (int.from_bytes(line.read(4), "little") for _ in range(2))
        assert board.timer.emulated is not None
        assert (clock_hz, ticks_hz) == (board.clock_hz, board.timer.emulated.hz)

        # A known loop counts exactly, whatever its length: only the measurement's own instructions remain.
        own = {line.instructions(board, n) - 2 * n for n in (1, 2, 3, 100, 4567, 123_456, 4_000_000)}
        assert len(own) == 1
        assert 3 <= min(own) < 40

        stack, here_is_inside = line.ask(b"S", answers=2)
        assert here_is_inside
        assert board.stack_bytes <= stack <= board.ram_bytes - firmware.sizes.static_ram_bytes

        burst = bytes(at % 251 for at in range(3000))
        line.send(b"E", len(burst), data=burst)
        assert line.read(len(burst)) == burst

        # Nothing is lost when the receive ring runs full while the program is busy.
        line.send(b"H", 300_000)
        line.send(b"E", len(burst), data=burst)
        assert line.read(1 + len(burst)) == b"h" + burst

        line.send(b"X", 7)
        assert emulator.wait(10) == 7
        assert not emulator.alive()
        assert emulator.why_dead() == "the emulator ended with status 7"
        line.close()


@pytest.mark.parametrize("name", ["stm32f405", "microbit", "riscv32-virt"])
def test_a_fault_ends_the_emulator_with_its_place(name: str, boot: Build) -> None:
    firmware = boot(name)
    with Emulator(firmware.board, firmware.elf) as emulator:
        line = Line(emulator.url)
        assert emulator.why_dead() is None
        line.send(b"F")
        assert emulator.wait(10) == 86
        assert "the program faulted: " in str(emulator.why_dead())
        assert any(place in str(emulator.why_dead()) for place in (" pc ", " mepc "))
        line.close()


@pytest.mark.parametrize("name", ["mps2-an505", "mps3-an547"])
def test_a_stack_overflow_is_a_fault_where_the_core_has_a_limit(name: str, boot: Build) -> None:
    firmware = boot(name)
    with Emulator(firmware.board, firmware.elf) as emulator:
        line = Line(emulator.url)
        line.send(b"O")
        assert emulator.wait(10) == 86
        line.close()


@pytest.mark.parametrize("name", ["stm32f405", "stm32f100", "microbit"])
def test_firmware_for_hardware_starts_without_clock_hardware(name: str, boot: Build) -> None:
    """The emulator has no clock tree: every wait for one must end, on the internal oscillator."""
    firmware = boot(name, emulate=False)
    with Emulator(firmware.board, firmware.elf) as emulator:
        line = Line(emulator.url)
        line.send(b"C")
        oscillator = {"stm32f405": 16_000_000, "stm32f100": 8_000_000, "microbit": 16_000_000}
        assert int.from_bytes(line.read(4), "little") == oscillator[name]
        line.close()


def test_a_program_that_is_none_is_reported(tmp_path: Path, boot: Build) -> None:
    board = boot("stm32f405").board
    rubbish = tmp_path / "rubbish.elf"
    rubbish.write_bytes(b"\0" * (board.flash_bytes + 1))
    with Emulator(board, rubbish) as emulator:
        open_transport(emulator.url).close()
        assert emulator.wait(10) == 1
        assert "rubbish.elf" in str(emulator.why_dead())


def test_emulators_run_side_by_side_and_end_with_their_block(boot: Build) -> None:
    firmware = boot("mps2-an386")
    with Emulator(firmware.board, firmware.elf) as one, Emulator(firmware.board, firmware.elf) as other:
        assert one.url != other.url
        lines = [Line(one.url), Line(other.url)]
        counts = [line.instructions(firmware.board, 1000) for line in lines]
        assert counts[0] == counts[1]
        assert one.alive()
    assert not one.alive()
    assert not other.alive()


def test_a_thread_that_started_an_emulator_may_end(boot: Build) -> None:
    firmware = boot("mps2-an386")
    emulator = Emulator(firmware.board, firmware.elf)
    thread = threading.Thread(target=emulator.__enter__)
    thread.start()
    thread.join()
    line = Line(emulator.url)
    assert emulator.alive()
    line.close()
    emulator.close()
    emulator.close()


def test_the_emulator_ends_when_its_owner_is_killed(boot: Build) -> None:
    firmware = boot("mps2-an386")
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from mcudeploy.boards.catalogue import load_board\n"
        "from mcudeploy.toolchain import Emulator\n"
        "with Emulator(load_board('mps2-an386'), Path(sys.argv[1])) as it:\n"
        "    print(it._process.pid, flush=True)\n"
        "    time.sleep(60)\n"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", program, str(firmware.elf)],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert owner.stdout is not None
    emulator = int(owner.stdout.readline())
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    assert ends(emulator)
    owner.stdout.close()


def test_an_interrupt_while_a_program_starts_leaves_none(
    boot: Build, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One that comes when the child is there, and its Popen object is not."""
    firmware, started = boot("mps2-an386"), list[int]()
    popen = subprocess.Popen

    def start(command: list[str], **named: object) -> object:
        process = popen(command, **named)
        if "kill -KILL 0" not in command[-1]:  # the guard of the group
            started.append(process.pid)
            raise KeyboardInterrupt
        return process

    monkeypatch.setattr(subprocess, "Popen", start)
    with pytest.raises(KeyboardInterrupt), Emulator(load_board("mps2-an386"), firmware.elf):
        pass
    with pytest.raises(KeyboardInterrupt):
        run_logged(["sleep", "60"], None, tmp_path)
    assert len(started) == 2 and all(ends(process) for process in started)


def ends(process: int, timeout_s: float = 10.0) -> bool:
    """Whether a process that is not our child ends (or is but a zombie) within that time."""
    done = threading.Event()
    for _ in range(int(timeout_s / 0.02)):
        try:
            state = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        done.wait(0.02)
    return False


OPENS = """\
#include <stdint.h>
static uint32_t ask(uint32_t operation, const void *argument)
{
    register uint32_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}
static void start(void)
{
    static const char name[] = "NAME";
    static const char command[] = "touch NAME";
    const uint32_t opened[3] = {(uint32_t)name, 4, sizeof name - 1};
    const uint32_t run[2] = {(uint32_t)command, sizeof command - 1};
    const uint32_t status[2] = {0x20026, 7};
    ask(0x01, opened);
    ask(0x12, run);
    ask(0x20, status);
}
__attribute__((section(".vectors"), used)) const void *const vectors[] = {(void *)0x20001000, start};
"""


def test_a_program_reaches_no_file_of_this_computer(tmp_path: Path) -> None:
    """It asks QEMU to open a file for writing and to run a command, then for its exit."""
    (tmp_path / "p.c").write_text(OPENS.replace("NAME", str(tmp_path / "canary")))
    flags = ("-mcpu=cortex-m4", "-mthumb", "-nostdlib", "-Wl,-Ttext=0x100,--section-start=.vectors=0,-estart")
    subprocess.run(["arm-none-eabi-gcc", *flags, "p.c", "-o", "p.elf"], cwd=tmp_path, check=True)
    board = load_board("mps2-an386")
    with Emulator(board, tmp_path / "p.elf") as emulator:
        open_transport(emulator.url).close()
        assert emulator.wait(10) == 7
    assert not (tmp_path / "canary").exists()
    native = [it.replace("target=gdb", "target=native") for it in qemu_command(board, tmp_path / "p.elf", ())]
    subprocess.run(native, check=False, timeout=10)
    assert (tmp_path / "canary").exists()  # so the program does ask


def test_the_line_of_an_emulator_is_this_users(boot: Build) -> None:
    firmware = boot("mps2-an386")
    with Emulator(firmware.board, firmware.elf) as emulator:
        folder = Path(emulator.url.removeprefix("unix://")).parent
        assert folder.stat().st_mode & 0o777 == 0o700
    assert not folder.exists()
