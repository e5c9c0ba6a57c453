"""Chains that run: emulated boards of several kinds, lines with faults, and boards that die."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from fuzzing.wires import FaultyWire, over_wires

from mcudeploy.boards.catalogue import load_board
from mcudeploy.common.errors import FitError, ProtocolError
from mcudeploy.common.progress import SILENT
from mcudeploy.device.target import Target, open_device
from mcudeploy.device.transport import ProcessTransport
from mcudeploy.extensions.several_boards.chain_firmware import ChainBoard, built
from mcudeploy.extensions.several_boards.chain_report import report
from mcudeploy.extensions.several_boards.frames import Chain, RunningBoard
from mcudeploy.extensions.several_boards.link import parse_link
from mcudeploy.extensions.several_boards.run import ChainRequest, plan_chain, resend_us, run_chain
from mcudeploy.planner.model.model import load_model
from mcudeploy.planner.plan_options import Options

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "vww" / "model.onnx"
LINE = parse_link("uart:2M")
QUICK = Options(time_limit=1.5, split=False)
CLEAN = 10**12


@cache
def _members(*names: str) -> tuple[ChainBoard, ...]:
    targets = tuple(Target(load_board(name), emulate=name != "host") for name in names)
    return plan_chain(load_model(EXAMPLE), ChainRequest(targets, LINE, 1), QUICK, SILENT)


def test_a_limit_that_the_parts_exceed_is_answered_by_one_that_they_keep() -> None:
    request = ChainRequest((Target(load_board("host")),) * 2, LINE, 1)
    with pytest.raises(FitError, match=r"(?s)board 1: .*--ram-limit") as caught:
        plan_chain(load_model(EXAMPLE), request, replace(QUICK, ram_limit=1024), SILENT)
    (proposal,) = caught.value.proposals
    limit = int(proposal.option.removeprefix("--ram-limit "))
    members = plan_chain(load_model(EXAMPLE), request, replace(QUICK, ram_limit=limit), SILENT)
    assert max(it.deployment.plan.layout.arena_bytes for it in members) == limit > 1024


def _frames(members: tuple[ChainBoard, ...], count: int) -> list[bytes]:
    rng = np.random.default_rng(3)
    size = members[0].stage.received.size_bytes
    return [rng.integers(0, 256, size, np.uint8).tobytes() for _ in range(count)]


def _run(
    members: tuple[ChainBoard, ...], frames: list[bytes], seed: int, mean: int
) -> tuple[list[bytes], Counter[str]]:
    wires = [FaultyWire(seed + number, mean) for number in range(len(members) - 1)]
    with over_wires(members, LINE, wires) as nodes:
        run = Chain(nodes, 60).run(frames, members[-1].stage.sent.size_bytes)
    return run, sum((wire.faults for wire in wires), Counter[str]())


def test_faults_on_lines_change_no_frame() -> None:
    members = _members("host", "host", "host")
    frames = _frames(members, 8)
    expected, none = _run(members, frames, 0, CLEAN)
    assert not none and len(set(expected)) > 1
    received, faults = _run(members, frames, 100, 800)
    assert len(faults) == 5 and faults.total() >= 20, faults
    assert received == expected


def test_emulated_boards_of_two_kinds_are_verified(tmp_path: Path) -> None:
    targets = tuple(Target(load_board(name), emulate=True) for name in ("stm32f405", "mps2-an505"))
    ran = run_chain(EXAMPLE, ChainRequest(targets, LINE, 6), QUICK, inputs=[], expected=[], progress=SILENT)
    summary = report(ran)
    assert summary["verified"], summary["reasons"]
    for board in summary["boards"]:
        assert board["ram_bytes"] < board["board_ram_bytes"]
        assert board["flash_bytes"] < board["board_flash_bytes"]
        assert board["stack_bytes"] > 0 and board["latency"] > 10_000
    assert json.loads(json.dumps(summary)) == summary
    assert summary["frame_seconds"] <= summary["latency_seconds"]
    piped = summary["piped"]
    assert piped["method"] == "replay"
    assert piped["frame_seconds"] == pytest.approx(summary["frame_seconds"], rel=0.05)
    assert piped["latency_seconds"] == pytest.approx(summary["latency_seconds"], rel=0.05)


def test_a_run_can_begin_anew_in_the_middle_of_a_frame() -> None:
    members = _members("host", "host", "host")
    frames = _frames(members, 2)
    wires = [FaultyWire(0, CLEAN), FaultyWire(1, CLEAN)]
    size = members[-1].stage.sent.size_bytes
    with over_wires(members, LINE, wires) as nodes:
        chain = Chain(nodes, 30)
        first = chain.run(frames, size)
        nodes[0].put(frames[1])  # under way when the next session begins
        assert chain.run(frames, size) == first


def _while_running(nodes: list[RunningBoard], frames: list[bytes], size: int, act: Callable[[], None]) -> str:
    """The error of a run in whose middle something happens."""
    later = threading.Timer(0.3, act)
    later.start()
    try:
        with pytest.raises(ProtocolError) as error:
            Chain(nodes, 3).run(frames * 2000, size)
    finally:
        later.join()
    return str(error.value)


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_a_dead_board_is_one_error_that_names_it(victim: int) -> None:
    members = _members("host", "host", "host")
    with over_wires(members, LINE, [FaultyWire(0, CLEAN), FaultyWire(1, CLEAN)]) as nodes:
        line = nodes[victim].session._line
        assert isinstance(line, ProcessTransport)
        size = members[-1].stage.sent.size_bytes
        message = _while_running(nodes, _frames(members, 1), size, line._process.kill)
    assert message.startswith(f"board {victim + 1} (host): ") and "killed" in message, message


def test_a_cut_line_is_one_error_that_names_both_ends() -> None:
    members = _members("host", "host", "host")
    wires = [FaultyWire(0, CLEAN), FaultyWire(1, CLEAN)]
    with over_wires(members, LINE, wires) as nodes:
        size = members[-1].stage.sent.size_bytes
        message = _while_running(nodes, _frames(members, 1), size, wires[1].close)
    assert "nothing goes from board 2 (host) to board 3 (host)" in message, message


def test_a_reset_board_is_one_error_that_names_it(tmp_path: Path) -> None:
    """It has forgotten its session: what it computes would be of another frame."""
    members = _members("host", "stm32f405")
    left, right = socket.socketpair()
    monitor = tmp_path / "monitor"
    console = ("-chardev", f"socket,id=console,path={monitor},server=on,wait=off", "-mon", "chardev=console")
    with (
        left,
        right,
        open_device(members[0].target, built(members[0], 2, LINE), wires=(None, left.fileno())) as first,
        open_device(
            members[1].target,
            built(members[1], 2, LINE),
            emulator_arguments=console,
            wires=(right.fileno(), None),
        ) as second,
    ):
        nodes = [
            RunningBoard(member.title, device, resend_us(member.target, LINE))
            for member, device in zip(members, (first, second), strict=True)
        ]

        def reset() -> None:
            with socket.socket(socket.AF_UNIX) as line:
                line.connect(str(monitor))
                line.sendall(b"system_reset\n")
                time.sleep(0.2)

        size = members[-1].stage.sent.size_bytes
        message = _while_running(nodes, _frames(members, 1), size, reset)
    assert message.startswith("board 2 (stm32f405): ") and "was reset" in message, message
