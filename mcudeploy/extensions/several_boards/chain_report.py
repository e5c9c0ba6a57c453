"""The report of `run --chain`: each board, and the bottleneck of the frame rate."""

from __future__ import annotations

from typing import Any

from mcudeploy.extensions.several_boards.run import ChainRan, RanBoard


def report(ran: ChainRan) -> dict[str, Any]:
    """Return the JSON object of `run --chain`. Seconds are modelled: latencies, and payloads over rates."""
    boards = [_board(each) for each in ran.boards]
    stages = [float(board["seconds"]) for board in boards]
    transfers = [board["sent_bytes"] / ran.asked.line.bytes_per_second for board in boards[:-1]]
    longest = max([*stages, *transfers])
    kind, among = ("board", stages) if longest in stages else ("link", transfers)
    return {
        "model": ran.boards[0].member.made.model.path.name,
        "link": ran.asked.line.text,
        "boards": boards,
        "transfer_seconds": transfers,
        "frame_seconds": longest,
        "latency_seconds": sum(stages) + sum(transfers),
        "throughput_ratio": sum(stages) / longest,
        "bottleneck": f"{kind} {among.index(longest) + 1}",
        "frames": ran.asked.frames,
        "verified": not ran.verdict.reasons,
        "reasons": list(ran.verdict.reasons),
    }


def _board(ran: RanBoard) -> dict[str, Any]:
    board, plan = ran.member.target.board, ran.member.made.plan
    operators = [operator.name for operator in plan.graph.operators]
    return {
        "board": board.name,
        "first_operator": operators[0],
        "last_operator": operators[-1],
        "arena_bytes": plan.layout.arena_bytes,
        "payload_bytes": ran.member.buffer_bytes,
        "ram_bytes": ran.firmware.sizes.static_ram_bytes,
        "board_ram_bytes": sum(memory.bytes for memory in board.memories),
        "flash_bytes": ran.firmware.sizes.flash_bytes,
        "board_flash_bytes": board.flash_bytes,
        "stack_bytes": ran.alone.stack_bytes,
        "latency": ran.alone.latency,
        "unit": ran.alone.unit,
        "seconds": _seconds(ran),
        "received_bytes": ran.member.stage.received.size_bytes,
        "sent_bytes": ran.member.stage.sent.size_bytes,
        "resends": ran.state.resends,
        "damaged": ran.state.damaged,
    }


def _seconds(ran: RanBoard) -> float:
    """Return the seconds of a run: an instruction counts as a clock."""
    if ran.alone.unit == "us":
        return ran.alone.latency / 1e6
    return ran.alone.latency / ran.member.target.board.clock_hz
