"""The report of `run --chain` for people."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from mcudeploy.cli.output import Values, cell, lines
from mcudeploy.cli.table_grids import facts, table_of
from mcudeploy.common.text import count_text


def run(console: Console, report: Values) -> None:
    """Print one row per board, then what limits the rate of frames, and the verdict."""
    headings = ("board", "operators", "arena>", "payloads>", "RAM>", "flash>", "latency>", "ms>", "sends>")
    table = table_of(*headings)
    for number, board in enumerate(report["boards"], 1):
        table.add_row(
            cell(f"{number} {board['board']}"),
            cell(f"{board['first_operator']}..{board['last_operator']}"),
            f"{board['arena_bytes']:,}",
            f"{board['payload_bytes']:,}",
            f"{board['ram_bytes']:,} of {board['board_ram_bytes']:,}",
            f"{board['flash_bytes']:,} of {board['board_flash_bytes']:,}",
            f"{board['latency']:,} {board['unit']}",
            f"{1000 * board['seconds']:.2f}",
            f"{board['sent_bytes']:,}",
        )
    console.print(table)
    resends = sum(board["resends"] for board in report["boards"])
    facts(
        console,
        [
            ("link", f"{report['link']}, modelled: bytes over its rate"),
            ("a frame every", f"{1000 * report['frame_seconds']:.2f} ms, limited by {report['bottleneck']}"),
            ("throughput", f"{report['throughput_ratio']:.2f} times all operators in sequence"),
            ("piped", _piped(report)),
            ("first frame after", f"{1000 * report['latency_seconds']:.2f} ms"),
            ("sent again", count_text(resends, "packet")),
        ],
    )
    verdict(console, report)


def _piped(report: Values) -> str:
    times = report["piped"]
    how = {
        "clock": "measured by the clocks of the host and the last board",
        "replay": "counted by the boards, replayed over the lines' rate",
    }[times["method"]]
    ratio = times["throughput_ratio"]
    return f"a frame every {1000 * times['frame_seconds']:.2f} ms, {ratio:.2f} times, {how}"


def verdict(console: Console, report: Values) -> None:
    """Print whether the frames are verified, and the first reasons if they are not."""
    verified = report["verified"]
    text = f"{count_text(report['frames'], 'frame')} {'verified' if verified else 'run, NOT verified'}"
    console.print(Text(text, "bold green" if verified else "bold red"))
    for reason in report["reasons"][:10]:
        console.print(Text(lines(reason)), soft_wrap=True)
