"""Reports of the device, and the errors a user meets when the line, the port or the board fails."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from bad_line import HASH, PATIENT, BadLine, Faults

from mcudeploy.common.errors import PortError, ProtocolError
from mcudeploy.device.frame import Frame, Receiver, encode
from mcudeploy.device.session import Session, Timing, connect
from mcudeploy.device.tile import Image, KernelTable, Tile, TileTensor, pack
from mcudeploy.device.transport import ProcessTransport, SerialTransport, open_transport
from mcudeploy.ir.block_rows import BlockRows
from mcudeploy.ir.opdef import KernelCall

KERNELS = ("count", "crash", "deep", "hang", "sleep")
QUICK = Timing(answer_s=0.4, resend_s=0.05, busy_resend_s=0.2)


def image(session: Session, kernel: str, rows: int = 1000) -> Image:
    out = TileTensor((0,), 0, BlockRows(rows))
    tile = Tile(KernelCall(kernel), (), out, None, rows, out.block_rows)
    packed = pack(tile, KernelTable.of(session, KERNELS), session.info, at=4096)
    session.write(0, packed.at, packed.data)
    return packed


class Fake:
    """A line whose other end is a function from requests to raw replies."""

    name = "/dev/ttyFAKE0"
    bytes_per_second = float("inf")

    def __init__(self, answer: Callable[[Frame], bytes]) -> None:
        self._answer, self._receiver, self._waiting = answer, Receiver(), b""

    def write(self, data: bytes) -> None:
        self._waiting += b"".join(self._answer(frame) for frame in self._receiver.feed(data))

    def read(self, timeout_s: float) -> bytes:
        found, self._waiting = self._waiting, b""
        if not found:
            time.sleep(min(timeout_s, 0.01))
        return found

    def close(self) -> None:
        """Nothing to give back."""


def test_hello(session: Session) -> None:
    info = session.hello(HASH)
    assert (info.pointer_bytes, info.offset_bytes, info.align) == (8, 4, 4)
    assert (info.board, info.steps, info.kernel_count) == ("host", 41, 5)
    assert [arena.size_bytes for arena in info.arenas] == [65536]
    assert info.max_data_bytes == 246


def test_total_ticks_survive_wraps_of_the_counter(session: Session) -> None:
    step = 0x70000000
    session.write(0, 0, struct.pack("<III", 0, 0, step))
    ticks = session.run(0, 40).ticks
    assert ticks == 40 * step + sum(range(40)) > 2**36
    assert session.time_steps(0, 40).ticks == tuple(step + i for i in range(40))


def test_call_repeats_and_subtracts_the_empty_reading(session: Session) -> None:
    session.write(0, 0, struct.pack("<III", 0, 0, 1000))
    record = image(session, "count")
    assert session.call(0, record.op_offset, 5, 9, repeat=6).ticks == 6 * 1005
    assert struct.unpack("<II", session.read(0, 0, 8)) == (6, 54)
    assert session.call(0, record.op_offset, 0, 1, repeat=0).ticks == 0


def test_stack_is_that_of_the_last_run(session: Session) -> None:
    session.run(0, 1)
    shallow = session.stack()
    session.run(40, 1)
    deep = session.stack()
    assert shallow.used_bytes < 5000 < deep.used_bytes < 60000
    assert deep.size_bytes == 65536


def test_progress_is_told(session: Session) -> None:
    progress_calls: list[tuple[int, int]] = []
    session.write(0, 0, bytes(1000), lambda done, total: progress_calls.append((done, total)))
    session.read(0, 0, 500, lambda done, total: progress_calls.append((done, total)))
    written = [(241, 1000), (482, 1000), (723, 1000), (964, 1000), (1000, 1000)]
    assert progress_calls == [*written, (246, 500), (492, 500), (500, 500)]


@pytest.mark.parametrize("request_it", [
    lambda s: s.write(0, 65530, bytes(7)),
    lambda s: s.write(1, 0, b"x"),
    lambda s: s.write(0, 2**32 - 1, b"x"),
    lambda s: s.read(0, 65536, 1),
    lambda s: s.run(0, 42),
    lambda s: s.run(2**32 - 1, 2),
    lambda s: s.time_steps(41, 1),
    lambda s: s.call(0, 1, 0, 1),
    lambda s: s.call(0, 65536 - 8, 0, 1),
])  # fmt: skip
def test_out_of_range_is_refused(session: Session, request_it: Callable[[Session], object]) -> None:
    with pytest.raises(ProtocolError, match="out of range"):
        request_it(session)
    assert session.read(0, 0, 4) == bytes(4)


def test_a_foreign_kernel_or_rows_are_refused(session: Session) -> None:
    record = image(session, "count", rows=10)
    for rows in ((0, 11), (5, 5), (7, 3)):
        with pytest.raises(ProtocolError, match="out of range"):
            session.call(0, record.op_offset, *rows)
    session.write(0, record.op_offset, struct.pack("<Q", session.info.arenas[0].base))
    with pytest.raises(ProtocolError, match="not linked"):
        session.call(0, record.op_offset, 0, 1)


def test_bytes_during_a_run_are_reported(program: Path) -> None:
    timing = Timing(busy_resend_s=0.05)
    with Session(ProcessTransport([program]), timing=timing) as session:
        record = image(session, "sleep")
        assert session.call(0, record.op_offset, 0, 300).disturbed
        assert not session.call(0, record.op_offset, 0, 1).disturbed
        assert session.hello().steps == 41


def test_wrong_firmware(session: Session) -> None:
    with pytest.raises(ProtocolError, match=r"c0ffee11 .*0badf00d is needed.*mcudeploy flash --board host"):
        session.hello(0x0BADF00D)
    assert ProtocolError.exit_code == 10


def test_nobody_answers() -> None:
    with Session(Fake(lambda frame: b""), board="stm32f405", timing=QUICK) as session:  # noqa: SIM117
        with pytest.raises(ProtocolError) as caught:
            session.hello()
    assert str(caught.value) == (
        "no answer from /dev/ttyFAKE0 for 0.4 s after connecting: is another program holding the port, or no "
        'measurer on the board? Run "mcudeploy doctor --board stm32f405".'
    )


def test_somebody_else_answers() -> None:
    with Session(Fake(lambda frame: b"Hello from Zephyr\r\n"), timing=QUICK) as session:  # noqa: SIM117
        with pytest.raises(ProtocolError, match=r"bytes that are not frames: another firmware .*baud rate"):
            session.hello()


def test_an_echo_is_not_an_answer() -> None:
    with Session(Fake(encode), timing=QUICK) as session, pytest.raises(ProtocolError, match="no answer"):
        session.hello()


FACTS = {
    "version": 1, "pointer_bytes": 4, "offset_bytes": 2, "align": 4, "firmware_hash": 7, "clock_hz": 1,
    "ticks_hz": 1, "steps": 9, "kernels": 3, "max_data": 246, "max_times": 15, "arenas": 1,
    "base of arena 0": 0x20000000, "bytes of arena 0": 2048,
}  # fmt: skip


def said(facts: dict[str, int], board: bytes = b"\4host") -> Callable[[Frame], bytes]:
    """A device that answers HELLO with these facts."""
    data = struct.pack("<BBBBIIIIIHBBQI", *facts.values()) + board
    return lambda frame: encode(Frame(frame.type | 0x80, frame.seq, frame.data[:4] + data))


@pytest.mark.parametrize(("field", "value", "bound"), [
    ("version", 2, "1"),
    ("pointer_bytes", 2, "4, 8"),
    ("offset_bytes", 8, "2, 4"),
    ("align", 0, "1, 2, 4"),
    ("align", 12, "1, 2, 4"),
    ("clock_hz", 0, "1 to 4,294,967,295"),
    ("ticks_hz", 0, "1 to 4,294,967,295"),
    ("steps", 2**24 + 1, "0 to 16,777,216"),
    ("kernels", 2**32 - 1, "0 to 4,096"),
    ("max_data", 0, "128 to 65,535"),
    ("max_data", 5, "128 to 65,535"),
    ("max_times", 0, "1 to 61"),
    ("max_times", 62, "1 to 61"),
    ("arenas", 0, "1 to 255"),
    ("base of arena 0", 2**32 - 2044, "0 to 4,294,965,248"),
    ("base of arena 0", 0x20000002, "a multiple of align = 4"),
    ("bytes of arena 0", 0, "1 to 2,147,483,648"),
])  # fmt: skip
def test_fields_of_hello_have_bounds(field: str, value: int, bound: str) -> None:
    with Session(Fake(said(FACTS))) as session:
        assert session.hello().max_times == 15
    with Session(Fake(said(FACTS | {field: value}))) as session:  # noqa: SIM117
        with pytest.raises(ProtocolError, match=rf"FAKE0 answers HELLO with {field} = .*{bound}.* allowed"):
            session.hello()


def test_a_hello_of_a_wrong_length_or_board() -> None:
    line = Fake(lambda frame: encode(Frame(frame.type | 0x80, frame.seq, frame.data + b"\x01\x04")))
    with Session(line) as session, pytest.raises(ProtocolError, match="length = 6 bytes: 34 or more"):
        session.hello()
    for board, field in ((b"\5host", "length = 49 bytes: 50"), (b"\4h\x1b[m", r"board = 'h\\x1b\[m'")):
        with Session(Fake(said(FACTS, board))) as session, pytest.raises(ProtocolError, match=field):
            session.hello()
    with Session(Fake(said(FACTS | {"arenas": 3}))) as session:  # noqa: SIM117
        with pytest.raises(ProtocolError, match="length = 49 bytes: 70"):
            session.hello()


@pytest.mark.parametrize(("data", "request_it", "field"), [
    (struct.pack("<BQ", 2, 1), lambda s: s.run(), "disturbed = 2: 0 to 1"),
    (struct.pack("<BQ", 0, 9 * 2**32), lambda s: s.run(), "ticks = "),
    (struct.pack("<BQ", 0, 2**32), lambda s: s.call(0, 0, 0, 1), "ticks = "),
    (struct.pack("<B9I", 7, *range(9)), lambda s: s.time_steps(), "disturbed = 7"),
    (struct.pack("<II", 2049, 2048), lambda s: s.stack(), "used = 2,049: 0 to 2,048"),
    (struct.pack("<4Q", 1, 2, 3, 4), lambda s: s.kernels(), "length = 32 bytes"),
    (b"", lambda s: s.kernels(), "length = 0 bytes"),
    (struct.pack("<Q", 2**32), lambda s: s.kernels(), "address = 4,294,967,296: 1 to 4,294,967,295"),
    (b"\1", lambda s: s.reset(), "RESET with 1 byte, needed: 0"),
])  # fmt: skip
def test_fields_of_replies_have_bounds(
    data: bytes, request_it: Callable[[Session], object], field: str
) -> None:
    def answer(frame: Frame) -> bytes:
        return said(FACTS)(frame) if frame.type == 1 else encode(Frame(frame.type | 0x80, frame.seq, data))

    with Session(Fake(answer)) as session, pytest.raises(ProtocolError, match=field) as caught:
        request_it(session)
    assert caught.value.exit_code == 10


@pytest.mark.parametrize("kind", [0xFE, 0x83])
def test_busy_or_useless_frames_for_ever_end(kind: int) -> None:
    """Frames that come faster than they are read are not answer."""

    class Stream(Fake):
        def read(self, timeout_s: float) -> bytes:
            found = super().read(0)
            seq = self._last + (kind != 0xFE)
            return found or encode(Frame(kind, seq & 0xFF, b"")) * 100

        _last = 0

    def answer(frame: Frame) -> bytes:
        line._last = frame.seq
        return said(FACTS)(frame) if frame.type == 1 else b""

    line = Stream(answer)
    with Session(line, timing=QUICK) as session:
        session.hello()
        start = time.monotonic()
        with pytest.raises(ProtocolError, match="has not finished after" if kind == 0xFE else "no answer"):
            session.run(timeout_s=0.6)
        assert time.monotonic() - start < 5


def test_answers_that_are_slow_all_together_end() -> None:
    """Each answer comes within its limit; a transfer of two weeks is given up all the same."""

    class Slow(Fake):
        def read(self, timeout_s: float) -> bytes:
            time.sleep(0.02)
            return super().read(timeout_s)

    line = Slow(lambda frame: said(FACTS)(frame) if frame.type == 1 else encode(Frame(0x82, frame.seq, b"")))
    for factor, match in ((1.0, "takes too long: .* of WRITE"), (1000.0, None)):
        timing = Timing(answer_s=0.03, resend_s=0.05, factor=factor)
        with Session(line, timing=timing) as session:
            session._info = replace(session.hello(), max_data_bytes=6)
            if match is None:
                session.write(0, 0, bytes(20))
            else:
                with pytest.raises(ProtocolError, match=match):
                    session.write(0, 0, bytes(2000))


def test_a_reset_in_the_middle_is_noticed_and_run_is_not_repeated(program: Path) -> None:
    first, second = ProcessTransport([program]), ProcessTransport([program])
    with Session(first, timing=QUICK) as session:
        session.write(0, 0, bytes(12))
        session._line = second  # the same port, the board started again
        with pytest.raises(ProtocolError, match="was reset in the middle of the session"):
            session.run()
        session.hello()
        assert struct.unpack("<II", session.read(0, 0, 8)) == (0, 0)
    first.close()


def test_two_programs_on_one_board(session: Session) -> None:
    session.hello()
    other = Session(session._line)
    other.hello()
    other.stack()
    with pytest.raises(ProtocolError, match="another program"):
        session._seq = (session._seq + 100) & 0xFF
        session.stack()


def test_a_hanging_kernel(program: Path) -> None:
    with Session(ProcessTransport([program]), timing=QUICK) as session:
        record = image(session, "hang")
        start = time.monotonic()
        with pytest.raises(ProtocolError, match=r"began CALL and has not finished after 1 s"):
            session.call(0, record.op_offset, 0, 1, timeout_s=1.0)
        assert time.monotonic() - start < 3


def test_patience_outlasts_silence(program: Path) -> None:
    with Session(ProcessTransport([program]), timing=QUICK) as session:
        record = image(session, "sleep")
        session.call(0, record.op_offset, 0, 900, timeout_s=10.0)  # longer than answer_s


def test_a_crash_says_how(program: Path) -> None:
    with Session(ProcessTransport([program])) as session:
        record = image(session, "crash")
        with pytest.raises(ProtocolError, match=r"was killed by signal 6|ended with code"):
            session.call(0, record.op_offset, 0, 1)


def test_a_sanitizer_report_is_shown(session: Session) -> None:
    session.guard(0, 512, 64, True)
    with pytest.raises(ProtocolError, match="use-after-poison"):
        session.write(0, 520, b"x")


def test_ports_that_do_not_open(tmp_path: Path) -> None:
    with pytest.raises(PortError, match=r"no such port; this machine has (no serial ports|\S)"):
        connect("/dev/ttyNOSUCH9")
    with pytest.raises(PortError, match="Is the emulator running"):
        connect("socket://127.0.0.1:1")
    with pytest.raises(PortError, match="is not an address"):
        connect("socket://127.0.0.1:99999")
    with pytest.raises(PortError, match="cannot start"):
        connect(f"process:{tmp_path / 'nothing'}")
    assert PortError.exit_code == 8


@pytest.mark.skipif(os.name == "nt", reason="pseudo terminals are POSIX")
def test_a_serial_port_and_its_lock(pty_line: Callable[[], str]) -> None:
    name = pty_line()
    with connect(name, board="host") as session:
        session.write(0, 0, bytes(range(256)) * 8)
        assert session.read(0, 0, 2048) == bytes(range(256)) * 8
        with pytest.raises(PortError, match="another program holds it"):
            open_transport(name)
    line = BadLine(open_transport(name), Faults(drop=0.001, insert=0.001), 3)
    with Session(line, timing=PATIENT) as session:
        assert session.read(0, 0, 2048) == bytes(range(256)) * 8


@pytest.mark.skipif(os.name == "nt", reason="pseudo terminals are POSIX")
def test_a_closed_port_is_free_whoever_has_a_copy_of_its_descriptor(pty_line: Callable[[], str]) -> None:
    """A child has one between fork and exec, also if another thread starts it."""
    name = pty_line()
    port = SerialTransport(name)
    copy = os.dup(port._port.fileno())
    port.close()
    SerialTransport(name).close()
    os.close(copy)
