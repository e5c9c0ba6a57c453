"""Command streams of Arm's Vela in the functional model of an Ethos-U, beside TFLite Micro; a Markdown table.

    python benchmarks/npu_streams.py [MODEL.tflite ...] [--accelerators NAME,...] [--samples 3] [--random 0]

Vela compiles each network for each accelerator, the model runs the stream on random inputs, and the bytes of
the first output are compared. Where TFLite Micro has others, LiteRT's reference kernels judge: they scale
the result of RELU6, say, which TFLite Micro only clips. A network that Vela leaves to the core in part has no
stream of its whole, and is counted as refused; so is one with inputs that nothing reads. --random: small
graphs of int8 or int16 operators as well.
Exit 1 if a byte differs. Without ethos-u-vela or tflite-micro there is nothing to compare.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "ethos_u"), str(TESTS / "frontend" / "tflite")]

from flat_files import litert  # noqa: E402
from fuzzing.flat import draw_flat  # noqa: E402
from vela_streams import (  # noqa: E402
    ACCELERATORS,
    Array,
    VelaStream,
    compiled,
    drawn_by_micro,
    macs_of,
    model_library,
)

Sample = tuple[list[Array], Array]


def differing(
    path: Path, model: ctypes.CDLL, stream: VelaStream, samples: Sequence[Sample]
) -> tuple[int, int]:
    """Return the number of bytes that differ, and of all."""
    wrong = total = 0
    for inputs, expected in samples:
        code, (output, *_) = stream.run(model, inputs)
        total += len(output)
        if code:
            wrong += len(output)
        elif output != expected.tobytes():
            judged = litert(path, inputs)[0].tobytes()
            wrong += sum(a != b for a, b in zip(output, judged, strict=True))
    return wrong, total


def placed(path: Path, folder: Path, name: str) -> Path:
    """Return a link to a file, alone in a folder of the network."""
    target = folder / name / "model.tflite"
    target.parent.mkdir(parents=True)
    target.symlink_to(path.resolve())
    return target


def cells(
    path: Path, models: dict[str, ctypes.CDLL], samples: int, folder: Path
) -> list[tuple[int, int] | None]:
    """Return the differing bytes and all, by accelerator; None where Vela or TFLite Micro refuses it."""
    try:
        drawn = [drawn_by_micro(path, seed) for seed in range(samples)]
    except (AssertionError, ValueError):
        return [None] * len(models)
    row: list[tuple[int, int] | None] = []
    for accelerator, model in models.items():
        try:
            (stream,) = compiled([(accelerator, path)], folder)
        except AssertionError:
            row.append(None)
        else:
            takes_all = len(stream.file["input_offset"]) == len(drawn[0][0])
            row.append(differing(path, model, stream, drawn) if takes_all else None)
    return row


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--accelerators", default=",".join(ACCELERATORS))
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--random", type=int, default=0)
    arguments = parser.parse_args()
    if missing := [it for it in ("ethosu", "tflite_micro") if find_spec(it) is None]:
        print(f"nothing compared: {' and '.join(missing)} not installed", file=sys.stderr)
        return
    names = arguments.accelerators.split(",")
    wrong = 0
    graphs: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        models = {}
        for name in names:
            (folder / name).mkdir()
            models[name] = model_library(folder / name, macs_of(name))
        print(f"| network | {' | '.join(names)} |\n|---|{'---:|' * len(names)}")
        for path in arguments.models:
            row = cells(placed(path, folder, path.stem), models, arguments.samples, folder)
            wrong += sum(it[0] for it in row if it)
            texts = (f"{it[0]} of {it[1]:,}" if it else "refused" for it in row)
            print(f"| {path.stem} | {' | '.join(texts)} |", flush=True)
        for seed in range(arguments.random):
            drawn = draw_flat(seed)
            if drawn.kind not in ("int8", "int16"):
                continue
            path = folder / f"random{seed}.tflite"
            path.write_bytes(drawn.content)
            one = {name: models[name] for name in names[seed % len(names) :][:1]}
            (graph_bytes,) = cells(placed(path, folder, path.stem), one, arguments.samples, folder)
            graphs["refused" if graph_bytes is None else "differs" if graph_bytes[0] else "same bytes"] += 1
            if graph_bytes and graph_bytes[0]:
                print(f"random graph {seed} differs on {next(iter(one))}: {graph_bytes}", file=sys.stderr)
    if arguments.random:
        print("\nRandom graphs: " + ", ".join(f"{count} {kind}" for kind, count in sorted(graphs.items())))
    sys.exit(wrong > 0 or graphs["differs"] > 0)


if __name__ == "__main__":
    main()
