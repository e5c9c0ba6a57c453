"""The codec by itself, and the same bytes from the device's."""

from __future__ import annotations

import os
import select
import subprocess
import zlib
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mcudeploy.device.frame import Frame, Receiver, cobs_decode, cobs_encode, decode, encode
from mcudeploy.device.session import Session

lengths = st.sampled_from([0, 1, 2, 253, 254, 255, 300, 508])
run = st.builds(lambda byte, count: bytes([byte]) * count, st.integers(0, 255), lengths)
runs = st.lists(run, max_size=6)
payloads = st.one_of(st.binary(max_size=600), runs.map(b"".join))


@given(payloads)
@settings(max_examples=200, deadline=None)
def test_cobs_round_trip(raw: bytes) -> None:
    wire = cobs_encode(raw)
    assert 0 not in wire
    assert len(wire) <= len(raw) + len(raw) // 254 + 1
    assert cobs_decode(wire) == raw


def test_cobs_examples() -> None:
    assert cobs_encode(b"") == b"\x01"
    assert cobs_encode(b"\0") == b"\x01\x01"
    assert cobs_encode(b"\x11\x22\0\x33") == b"\x03\x11\x22\x02\x33"
    assert cobs_encode(bytes(range(1, 255))) == b"\xff" + bytes(range(1, 255)) + b"\x01"


@given(st.binary(max_size=80))
@settings(max_examples=200, deadline=None)
def test_decoding_anything_is_safe(wire: bytes) -> None:
    frame = decode(wire)
    assert frame is None or encode(frame)[:-1] == wire or cobs_decode(wire) is not None


@given(st.integers(0, 255), st.integers(0, 255), payloads, st.data())
@settings(max_examples=100, deadline=None)
def test_a_damaged_frame_is_noticed(kind: int, seq: int, data: bytes, draw: st.DataObject) -> None:
    wire = bytearray(encode(Frame(kind, seq, data)))
    assert decode(bytes(wire[:-1])) == Frame(kind, seq, data)
    at = draw.draw(st.integers(0, len(wire) - 2))
    wire[at] ^= draw.draw(st.integers(1, 255))
    receiver = Receiver()
    assert Frame(kind, seq, data) not in receiver.feed(bytes(wire))


@given(st.lists(st.binary(max_size=40), max_size=5), st.lists(st.integers(1, 30), max_size=20))
@settings(max_examples=100, deadline=None)
def test_frames_in_any_pieces(datas: list[bytes], cuts: list[int]) -> None:
    frames = [Frame(3, index, data) for index, data in enumerate(datas)]
    stream = b"noise" + b"\0" + b"\0".join(encode(frame) for frame in frames)
    receiver, received, at = Receiver(), [], 0
    for size in [*cuts, len(stream)]:
        received += receiver.feed(stream[at : at + size])
        at += size
    assert received == frames
    assert receiver.garbage_bytes == 5


def exchange(process: subprocess.Popen[bytes], wire: bytes, timeout_s: float = 2.0) -> bytes:
    """Send bytes; what comes back until a frame ends or nothing more does."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(wire)
    process.stdin.flush()
    answer = b""
    while not answer.endswith(b"\0") and select.select([process.stdout], [], [], timeout_s)[0]:
        part = os.read(process.stdout.fileno(), 65536)
        if not part:
            break
        answer += part
    return answer


def test_the_device_encodes_as_we_do(program: Path) -> None:
    rng = np.random.default_rng(5)
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        exchange(process, encode(Frame(1, 9, b"abcd")))
        seq = 9
        for size in (0, 1, 3, 100, 236, 240, 241):
            half = bytes(size // 2) + b"\xff" * (size - size // 2)
            for fill in (rng.bytes(size), bytes(size), b"\x01" * size, half):
                seq = seq + 1 & 255
                reply = encode(Frame(0x82, seq, b""))
                assert exchange(process, encode(Frame(2, seq, bytes(5) + fill))) == reply
                seq = seq + 1 & 255
                request = Frame(3, seq, bytes(5) + size.to_bytes(2, "little"))
                assert exchange(process, encode(request)) == encode(Frame(0x83, seq, fill))
        process.stdin.close()


def test_the_device_survives_anything(program: Path) -> None:
    """Garbage, cut and spoilt frames, intact ones of random content (not GUARD: it is meant to hurt)."""
    rng = np.random.default_rng(11)
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        seq = 0
        exchange(process, encode(Frame(1, seq, b"abcd")))
        for index in range(1500):
            kind = int(rng.choice([0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 77, 128, 254, 255]))
            data = rng.bytes(int(rng.choice([0, 1, 4, 5, 7, 8, 10, 17, int(rng.integers(0, 247))])))
            if rng.random() < 0.5 and len(data) >= 5:  # likelier to be in range
                data = bytes([0, data[1], data[2] & 3, 0, 0]) + data[5:]
            wire = encode(Frame(kind, seq + 1 & 255, data))
            choice = rng.random()
            if choice < 0.2:
                wire = rng.bytes(int(rng.integers(1, 700)))
            elif choice < 0.3:
                wire = wire[: int(rng.integers(0, len(wire)))] + b"\0"
            else:
                seq = seq + 1 & 255
            process.stdin.write(b"\0" + wire)
            process.stdin.flush()
            if index % 50 == 49:
                while select.select([process.stdout], [], [], 0.02)[0]:
                    assert os.read(process.stdout.fileno(), 65536), "the process ended"
                seq = 200
                reply = exchange(process, b"\0" + encode(Frame(1, seq, b"wxyz")))
                assert cobs_decode(reply.split(b"\0")[-2])[:8][4:8] == b"wxyz"
        process.stdin.close()
    assert process.returncode == 0


def test_bad_call_records_are_refused(session: Session) -> None:
    rng = np.random.default_rng(3)
    for _ in range(30):
        session.write(0, 64, rng.bytes(48))
        try:
            session.call(0, 64 + 8 * int(rng.integers(0, 3)), 0, int(rng.integers(0, 5)))
        except Exception as error:  # any refusal will do, but the device must live on
            assert "refuses" in str(error)
    assert session.hello().steps == 41
    assert zlib.crc32(session.read(0, 64, 48)) >= 0
