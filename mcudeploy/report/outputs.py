"""Outputs of a run in the model's terms: the largest values, with the names of their classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.common.errors import UsageError
from mcudeploy.common.files import read_limited
from mcudeploy.common.text import count_text, printable
from mcudeploy.ir.graph import Graph, GraphIO
from mcudeploy.ops.host_io import from_device
from mcudeploy.ops.requantize import dequantize
from mcudeploy.verify.data_faults import InputFacts

ClassNames = tuple[str, ...]
_MOST_BYTES = 2**20
_TOP = 5
_SPACE = 0x20
_MOST_VALUES = 1024
"""Larger outputs are reported by their largest and least values only."""


def read_classes(path: Path) -> ClassNames:
    """Return the classes in a text file, one per line. Raises UsageError for another kind of file."""
    try:
        text = read_limited(path, _MOST_BYTES).decode("utf-8-sig").rstrip()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise _no_classes(path, "is not UTF-8 text") from error
    names = tuple(line.strip() for line in text.splitlines())
    if not text:
        raise _no_classes(path, "is empty")
    if "\t" in text or (path.suffix.lower() == ".csv" and any("," in it or ";" in it for it in names)):
        raise _no_classes(path, "is a table of several columns")
    if any(ord(it) < _SPACE and it not in "\r\n" for it in text):
        raise _no_classes(path, "is not text, it has control characters")
    return names


def _no_classes(path: Path, why: str) -> UsageError:
    return UsageError(f"--classes {path} {why}: write UTF-8 text with the name of one class a line")


def require_classes(graph: Graph, classes: ClassNames) -> None:
    """Raise UsageError if no output has as many elements as there are names."""
    ios = graph.own_outputs()
    if not any(_is_named(io, classes) for io in ios):
        sizes = ", ".join(f"{printable(it.name)!r} {list(it.shape)}" for it in ios)
        raise UsageError(
            f"--classes has {count_text(len(classes), 'name')}; the model has the outputs {sizes}"
        )


def inputs(facts: Sequence[InputFacts]) -> list[dict[str, Any]]:
    """Report the values of every input against the range of its integers; null if it has none."""
    return [
        {
            "name": it.name,
            "values": it.values,
            "least": it.least,
            "most": it.most,
            "clipped": it.clipped,
            "range": it.levels and [it.levels.least, it.levels.most],
        }
        for it in facts
    ]


def outputs(
    graph: Graph, results: Sequence[Mapping[str, Any]], classes: ClassNames = ()
) -> list[dict[str, Any]]:
    """Report every output of every sample, from stored outputs by tensor name."""
    return [
        {"sample": number, **_output(graph, io, stored[io.tensor], classes)}
        for number, stored in enumerate(results)
        for io in graph.own_outputs()
    ]


def _output(graph: Graph, io: GraphIO, stored: NDArray[Any], classes: ClassNames) -> dict[str, Any]:
    tensor = graph.tensors[io.tensor]
    values = from_device(io, tensor, stored).reshape(-1)
    real: NDArray[Any] | None = None
    if tensor.quantization is not None and io.dtype in ("int8", "uint8"):
        real = dequantize(stored.reshape(-1)[io.order], tensor.quantization)
    known = classes if _is_named(io, classes) else ()
    top = np.argsort(-values.astype(np.float64), kind="stable")[:_TOP]
    return {
        "name": io.name,
        "type": io.dtype,
        "shape": list(io.shape),
        "elements": values.size,
        "least": values.min().item(),
        "most": values.max().item(),
        "top": [
            {
                "index": at,
                "value": values[at].item(),
                "real": None if real is None else real[at].item(),
                "label": known[at] if known else None,
            }
            for at in map(int, top)
        ],
        "values": values.tolist() if values.size <= _MOST_VALUES else None,
    }


def _is_named(io: GraphIO, classes: ClassNames) -> bool:
    """Whether an output has a value for each class, and nothing else."""
    return bool(classes) and max(io.shape, default=1) == int(np.prod(io.shape)) == len(classes)
