"""From firmware to a session: on the host, in an emulator, or on a board at a serial port."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from mcudeploy.boards.board import Board
from mcudeploy.boards.emulated import emulated_twin
from mcudeploy.boards.trust import require_trusted
from mcudeploy.common.errors import FlashError, PortError, ProtocolError, UsageError
from mcudeploy.common.system.serial_ports import EXAMPLE_PORT
from mcudeploy.device.lease import Lease, leased
from mcudeploy.device.session import Session, connect
from mcudeploy.device.transport import USB, RefusedError, host_of, open_transport
from mcudeploy.toolchain import Firmware
from mcudeploy.toolchain.boot_loader import boot_loader_attached
from mcudeploy.toolchain.emulator import Emulator, emulator_of
from mcudeploy.toolchain.flash_tools import TOOLS
from mcudeploy.toolchain.flashing import choose_flasher, flash
from mcudeploy.toolchain.ports import attached_by, find_port, list_serial_ports

START_S = 10.0
"""Seconds that a board may take from reset to its first answer."""

_THIS_COMPUTER = ("", "localhost", "127.0.0.1", "::1")
_SCHEMES = ("rfc2217://", "socket://", "labgrid://")
_RUNNING_ANSWER_S = 1.0
"""Seconds that a running board may take to answer."""
_RETRY_S = 0.1
"""Seconds between two attempts to open a port that has disappeared."""


def require_kind(port: str) -> None:
    """Raise UsageError for a port of another kind than `--port` takes: pyserial has URLs that write files."""
    if ":" in port and not port.startswith(("/", *_SCHEMES)):
        raise UsageError(
            f"{port!r} is not a port: give a device such as {EXAMPLE_PORT}, or {', '.join(_SCHEMES[:-1])} or "
            f"{_SCHEMES[-1]} with an address"
        )


@dataclass(frozen=True, slots=True)
class Target:
    """The place where a program runs: a board, its port (detected by default), or its emulator.

    `guards`: a debug build, see `mcudeploy.device.guards`. `flasher`: the tool that writes the board, by
    default the first installed one of its file; `probe`: serial number of the probe.

    Raises UsageError for a board without firmware, for one that cannot be emulated, and as `require_kind`.
    """

    board: Board
    port: str | None = None
    emulate: bool = False
    guards: bool = False
    flasher: str | None = None
    probe: str | None = None

    def __post_init__(self) -> None:
        if self.board.facts_only:
            emulator = f", and {self.board.core} has no emulated board" if self.emulate else ""
            twin = "`run --emulate` runs the code of its core in QEMU; " if emulated_twin(self.board) else ""
            raise UsageError(
                f"{self.board.name}: there is no firmware for it, no start-up code and no serial driver"
                f"{emulator}. `mcudeploy build` writes the C library of a model for your own project; "
                f"{twin}`run --board host` verifies its outputs on this computer."
            )
        if self.emulate and not self.board.is_host:
            emulator_of(self.board)
        require_kind(self.port or "")

    @property
    def emulated(self) -> bool:
        """Whether the emulator runs the program: on request, or for boards that exist only there."""
        return self.board.emulated_only or (self.emulate and not self.board.is_host)

    @property
    def is_real(self) -> bool:
        """Whether the target is hardware, which is flashed."""
        return not (self.emulated or self.board.is_host)

    @property
    def title(self) -> str:
        """The board, and the flasher of a real one. Raises what `choose_flasher` raises."""
        if not self.is_real:
            return self.board.name
        return f"{self.board.name}, flashed with {choose_flasher(self.board, self.flasher).tool}"


@dataclass(frozen=True, slots=True)
class Device:
    """A board that runs our firmware. `run` waits `patience_s` at most."""

    session: Session
    port: str
    firmware: Firmware
    patience_s: float = 60.0
    why_dead: Callable[[], str | None] = lambda: None
    """Why the emulator stopped; None while it runs, and for other devices."""

    def write(self, memory: int, offset: int, data: bytes) -> None:
        """Write bytes at `offset` of arena `memory`."""
        self.session.write(memory, offset, data)

    def read(self, memory: int, offset: int, count: int) -> bytes:
        """Read `count` bytes at `offset` of arena `memory`."""
        return self.session.read(memory, offset, count)

    def run(self, first: int, count: int) -> int:
        """Run steps and return their ticks."""
        return self.session.run(first, count, self.patience_s).ticks

    def time_unit(self, target: Target) -> tuple[str, Callable[[int], int]]:
        """Return the unit of its ticks after conversion, and the conversion: instructions, cycles, or µs."""
        if target.emulated:
            return "instructions", target.board.instructions
        timer = target.board.timer.hardware
        if timer is not None and timer.unit == "cycles":
            return "cycles", lambda ticks: ticks
        rate_hz = self.session.info.ticks_hz
        return "us", lambda ticks: round(ticks * 10**6 / rate_hz)


def require_port(target: Target) -> str | None:
    """Return the port of a real board, which can be opened; None for the host and emulators.

    Call it before all long work. Raises BoardNotFoundError if no port is given and none is found, PortError
    for a port that is missing or cannot be opened, FlashError if no flasher of the board is installed,
    UsageError if none reaches it, and ConfigError for a board that is not trusted.
    """
    require_trusted(target.board)
    if not target.is_real:
        return None
    port = target.port or _awaited_port(target.board) or find_port(target.board, target.probe)
    if not port.startswith(USB):
        _require_open(target, port)
    _require_reach(target, port)
    return port


def _require_open(target: Target, port: str) -> None:
    """Raise PortError if a port cannot be opened, unless flashing starts the emulator that serves it."""
    lease = Lease(port)
    try:
        if lease.take():  # else another run of ours uses it for now
            open_transport(port, _baud(target.board)).close()
    except RefusedError:
        if not _starts_emulator(target, port):
            raise
    finally:
        lease.give_back()


def _awaited_port(board: Board) -> str | None:
    """Return the name of a port that the program on the board will show; None if the board waits for none.

    A chip whose own USB is the line shows its boot loader until it has a program.
    """
    usb_id = board.uart.usb_id if board.uart else None
    shown = any(it.usb_id == usb_id for it in list_serial_ports())
    return None if usb_id is None or shown or not boot_loader_attached(board) else f"{USB}{usb_id}"


def _starts_emulator(target: Target, port: str) -> bool:
    """Whether the board's flasher may start the emulator that listens at its port."""
    flasher = choose_flasher(target.board, target.flasher, needed=False)
    return port.startswith("socket://") and flasher.tool == "command"


def _require_reach(target: Target, port: str) -> None:
    """Raise an error if no installed flasher reaches the board."""
    is_remote = host_of(port) not in _THIS_COMPUTER and target.probe is None
    flasher = choose_flasher(target.board, target.flasher, needed=not is_remote)
    if is_remote and not TOOLS[flasher.tool].by_port:
        raise UsageError(_out_of_reach(target, port, flasher.tool))
    choose_flasher(target.board, target.flasher)


def _out_of_reach(target: Target, port: str, tool: str) -> str:
    """Return the error text for a board on another computer, which the flasher does not reach."""
    is_emulated = target.board.emulator or emulated_twin(target.board)
    emulated = "; or --emulate runs it in QEMU here, without a port" if is_emulated else ""
    return (
        f"{port} is the serial line of {target.board.name} on {host_of(port)}, and {tool} writes boards "
        "whose probe is on this computer. Run this command on the one with the probe; or say in a board file "
        'what writes it from here ([[flasher]] with tool = "command", see docs/fleet.md); or name with '
        f"--probe a probe here that reaches it{emulated}."
    )


def _baud(board: Board) -> int:
    return board.uart.baud if board.uart else 115200


def _connect(
    board: Board,
    port: str,
    firmware: Firmware,
    timeout_s: float = START_S,
    wires: Sequence[int | None] = (),
) -> Session:
    return connect(
        port,
        baud=_baud(board),
        board=board.name,
        firmware_hash=firmware.hash,
        timeout_s=timeout_s,
        wires=wires,
        patience=board.patience,
    )


@contextmanager
def open_device(
    target: Target,
    firmware: Firmware,
    patience_s: float = 60.0,
    emulator_arguments: Sequence[str] = (),
    wires: Sequence[int | None] = (),
) -> Iterator[Device]:
    """Start (or flash) the firmware and open a session; everything started ends with the block.

    `wires`: descriptors for the ports to other boards, on the host and in the emulator.
    Raises FlashError, BoardNotFoundError, PortError, or ProtocolError if the firmware does not answer.
    """
    board, port = target.board, require_port(target)  # errors come before flashing
    if board.is_host:
        name = f"process:{firmware.elf}"
        with _connect(board, name, firmware, wires=wires) as session:
            yield Device(session, name, firmware, patience_s)
    elif port is None:
        with Emulator(board, firmware.elf, emulator_arguments, wires) as emulator:
            try:
                with _connect_emulated(emulator, firmware) as session:
                    yield Device(session, emulator.url, firmware, patience_s, emulator.why_dead)
            except (PortError, ProtocolError) as error:  # a program that died at once refuses connections
                reason = emulator.why_dead()
                if reason is None or reason in str(error):
                    raise
                if "ended by SIG" in reason:  # the lost connection is its consequence
                    again = "Run the command again; where memory is short, the kernel ends processes"
                    raise ProtocolError(f"{reason} while it ran {board.name}. {again}") from error
                raise ProtocolError(f"{reason}\n{error}") from error
    else:
        with leased(port), open_board(target, port, firmware, patience_s) as device:
            yield device


@contextmanager
def open_board(
    target: Target, port: str, firmware: Firmware, patience_s: float = 60.0, *, reuse: bool = False
) -> Iterator[Device]:
    """Flash a real board, whose port is leased, and open a session. `reuse`: skip flashing if it runs this
    firmware.
    """
    board = target.board
    session = _session_if_running(board, port, firmware) if reuse else None
    if session is None:
        _flash(target, port, firmware)
        session = _session_after_flashing(target, port, firmware)
    with session:
        yield Device(session, port, firmware, patience_s)


def _flash(target: Target, port: str, firmware: Firmware) -> None:
    """Write the firmware. If that fails for a network port, the error says where its probe may be."""
    try:
        flash(target.board, firmware.elf, attached_by(target.board, port, target.probe), target.flasher)
    except FlashError as error:
        tool = choose_flasher(target.board, target.flasher).tool
        if not host_of(port) or target.probe is not None or TOOLS[tool].by_port:
            raise
        raise FlashError(f"{error}\n{_out_of_reach(target, port, tool)}") from error


def _session_after_flashing(target: Target, port: str, firmware: Firmware) -> Session:
    """Return a session with the board that was just written.

    If the board's own USB is the port, it disappears during flashing and returns; under a framework it may.
    An emulator takes time until it listens.
    """
    board = target.board
    over_usb = board.uart is not None and board.uart.usb_id is not None
    may_reappear = over_usb or board.framework is not None or _starts_emulator(target, port)
    deadline = time.monotonic() + (START_S * board.patience if may_reappear else 0.0)
    while True:
        try:
            return _connect(board, port, firmware)
        except PortError:
            if time.monotonic() > deadline:
                raise
        time.sleep(_RETRY_S)


def _connect_emulated(emulator: Emulator, firmware: Firmware) -> Session:
    """Connect to an emulator. Try again while it runs: it may not have opened its port yet."""
    deadline = time.monotonic() + START_S
    while True:
        try:
            return _connect(emulator.board, emulator.url, firmware)
        except RefusedError:
            if not emulator.alive() or time.monotonic() > deadline:
                raise
        time.sleep(_RETRY_S)


def _session_if_running(board: Board, port: str, firmware: Firmware) -> Session | None:
    """Return a session with the board if it runs this firmware."""
    try:
        return _connect(board, port, firmware, _RUNNING_ANSWER_S)
    except (ProtocolError, RefusedError):
        return None
