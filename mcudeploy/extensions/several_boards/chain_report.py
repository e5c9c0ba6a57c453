"""The report of `run --chain`: each board, and the bottleneck of the frame rate."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from mcudeploy.extensions.several_boards.run import BoardRun, ChainRun


def report(chain_run: ChainRun) -> dict[str, Any]:
    """Return the JSON object of `run --chain`.

    All seconds but those of `piped` are modelled: from the latency of each board alone, the work for its
    links, and the payloads over the link's rate.
    """
    boards = [_board(board_run, chain_run) for board_run in chain_run.boards]
    in_sequence = sum(float(board["seconds"]) for board in boards)
    stages = [board["seconds"] + board["link_seconds"] for board in boards]
    transfers = [board["sent_bytes"] / chain_run.request.link.bytes_per_second for board in boards[:-1]]
    longest = max([*stages, *transfers])
    kind, seconds = ("board", stages) if longest in stages else ("link", transfers)
    return {
        "model": chain_run.boards[0].member.deployment.model.path.name,
        "link": chain_run.request.link.text,
        "boards": boards,
        "transfer_seconds": transfers,
        "frame_seconds": longest,
        "latency_seconds": sum(stages) + sum(transfers),
        "throughput_ratio": in_sequence / longest,
        "bottleneck": f"{kind} {seconds.index(longest) + 1}",
        "piped": asdict(chain_run.times) | {"throughput_ratio": in_sequence / chain_run.times.frame_seconds},
        "frames": chain_run.request.frames,
        "verified": not chain_run.verdict.reasons,
        "reasons": list(chain_run.verdict.reasons),
    }


def _board(board_run: BoardRun, chain_run: ChainRun) -> dict[str, Any]:
    stage, state = board_run.member.stage, board_run.state
    received = 0 if board_run is chain_run.boards[0] else stage.received.size_bytes
    sent = 0 if board_run is chain_run.boards[-1] else stage.sent.size_bytes
    board, plan = board_run.member.target.board, board_run.member.deployment.plan
    operators = [operator.name for operator in plan.graph.operators]
    return {
        "board": board.name,
        "first_operator": operators[0],
        "last_operator": operators[-1],
        "arena_bytes": plan.layout.arena_bytes,
        "payload_bytes": board_run.member.buffer_bytes,
        "ram_bytes": board_run.firmware.sizes.static_ram_bytes,
        "board_ram_bytes": sum(memory.bytes for memory in board.memories),
        "flash_bytes": board_run.firmware.sizes.flash_bytes,
        "board_flash_bytes": board.flash_bytes,
        "stack_bytes": board_run.alone.stack_bytes,
        "latency": board_run.alone.latency,
        "unit": board_run.alone.unit,
        "seconds": _seconds(board_run),
        "link_seconds": chain_run.request.link.core_seconds(board, received, sent),
        "link_share": state.link_ticks / max(state.ticks + state.link_ticks, 1),
        "received_bytes": stage.received.size_bytes,
        "sent_bytes": stage.sent.size_bytes,
        "resends": state.resends,
        "damaged": state.damaged,
    }


def _seconds(board_run: BoardRun) -> float:
    """Return the seconds of a run: an instruction counts as a clock."""
    if board_run.alone.unit == "us":
        return board_run.alone.latency / 1e6
    return board_run.alone.latency / board_run.member.target.board.clock_hz
