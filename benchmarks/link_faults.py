"""Faults on the lines between the boards of a chain: lost, changed, repeated, delayed or inserted bytes.

Runs under the sanitizers. Exits 1 if a frame is wrong or missing.

    python benchmarks/link_faults.py --faults 1000 --seed 0 [--chain host,host,host] MODEL

Emulated boards work as well.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from itertools import count
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / part) for part in ("tests", ".")]

from fuzzing.wires import FaultyWire, over_wires  # noqa: E402

from mcudeploy.boards.catalogue import load_board  # noqa: E402
from mcudeploy.common.errors import ProtocolError  # noqa: E402
from mcudeploy.common.progress import SILENT  # noqa: E402
from mcudeploy.device.target import Target  # noqa: E402
from mcudeploy.extensions.several_boards.chain_firmware import ChainBoard  # noqa: E402
from mcudeploy.extensions.several_boards.frames import Chain  # noqa: E402
from mcudeploy.extensions.several_boards.link import parse_link  # noqa: E402
from mcudeploy.extensions.several_boards.run import ChainRequest, plan_chain  # noqa: E402
from mcudeploy.planner.model.model import load_model  # noqa: E402
from mcudeploy.planner.plan_options import Options  # noqa: E402

_FRAMES = 20
_MEAN_BYTES = 2000
_NO_FAULTS = 10**12
_LINE = parse_link("uart:2M")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", metavar="MODEL", type=Path)
    parser.add_argument("--faults", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--chain", default="host,host,host")
    arguments = parser.parse_args()
    targets = tuple(Target(load_board(name), emulate=name != "host") for name in arguments.chain.split(","))
    request = ChainRequest(targets, _LINE, _FRAMES)
    members = plan_chain(load_model(arguments.model), request, Options(time_limit=3), SILENT)
    frames = _frames(members, arguments.seed)
    expected, _, _ = _run(members, frames, arguments.seed, _NO_FAULTS)
    start, faults, resends = time.monotonic(), Counter[str](), 0
    for runs in count(1):
        try:
            received, happened, again = _run(members, frames, arguments.seed * 1000 + runs, _MEAN_BYTES)
        except ProtocolError as error:
            print(f"run {runs}: {error}")
            return 1
        wrong = sum(one != other for one, other in zip(received, expected, strict=True))
        if wrong:
            print(f"run {runs}: {wrong} of {_FRAMES} frames are wrong")
            return 1
        faults, resends = faults + happened, resends + again
        if faults.total() >= arguments.faults:
            break
    kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(faults.items()))
    print(f"{arguments.model} on {arguments.chain}: {runs} runs of {_FRAMES} frames, 0 wrong")
    print(f"  {faults.total()} faults ({kinds}), {resends} packets sent again")
    print(f"  {time.monotonic() - start:.0f} s")
    return 0


def _frames(members: tuple[ChainBoard, ...], seed: int) -> list[bytes]:
    size = members[0].stage.received.size_bytes
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 256, size, np.uint8).tobytes() for _ in range(_FRAMES)]


def _run(
    members: tuple[ChainBoard, ...], frames: list[bytes], seed: int, mean_bytes: int
) -> tuple[list[bytes], Counter[str], int]:
    """Return results, faults that happened, packets sent again."""
    wires = [FaultyWire(seed * 10 + number, mean_bytes) for number in range(len(members) - 1)]
    with over_wires(members, _LINE, wires) as nodes:
        received = Chain(nodes, 60).run(frames, members[-1].stage.sent.size_bytes)
        resends = sum(node.state().resends for node in nodes)
    return received, sum((wire.faults for wire in wires), Counter[str]()), resends


if __name__ == "__main__":
    sys.exit(main())
