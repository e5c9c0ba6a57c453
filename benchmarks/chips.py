"""A model in Unicorn, against the host, on chips that no emulator has.

python benchmarks/chips.py [BOARD ...] [--model MODEL.onnx]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mcudeploy.common.errors import FitError
from mcudeploy.device.target import open_device
from tests.chips.facts import IN_UNICORN
from tests.chips.programs import HOST, built, deployed, ran, started

MODEL = Path(__file__).resolve().parents[1] / "examples/vww/model.onnx"


def main() -> None:
    """Print a row for each board."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("boards", metavar="BOARD", nargs="*")
    parser.add_argument("--model", type=Path, default=MODEL)
    options = parser.parse_args()
    print("| board | halfwords of code run, 10^6 | seconds here | equals the host |\n|---|---|---|---|")
    for board in options.boards or IN_UNICORN:
        try:
            deployment, (sample,) = deployed(board, options.model)
        except FitError:
            print(f"| `{board}` | does not fit | | |", flush=True)
            continue
        with open_device(HOST, deployment.build(HOST)) as device:
            _, expected = ran(deployment, device, sample)
        with tempfile.TemporaryDirectory() as folder, started(built(deployment, Path(folder))) as (_, device):
            start = time.monotonic()
            ticks, outputs = ran(deployment, device, sample)
            seconds = time.monotonic() - start
        print(f"| `{board}` | {ticks / 1e6:.1f} | {seconds:.0f} | {outputs == expected} |", flush=True)


if __name__ == "__main__":
    main()
