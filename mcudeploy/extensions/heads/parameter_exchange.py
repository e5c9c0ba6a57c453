"""The commands that make parameters from a model file, exchange them with a device, and compare them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from mcudeploy.common.errors import ConfigError, UsageError
from mcudeploy.common.files import read_limited, write_file
from mcudeploy.common.progress import SILENT, Progress
from mcudeploy.device.lease import leased
from mcudeploy.device.session import Session, connect
from mcudeploy.ir.parameter_blob import ParameterBlob
from mcudeploy.planner.files.parameter_layout import (
    LaidOutParameter,
    ParameterLayout,
    parameters_of,
    read_layout,
)

_MOST_BYTES = 2**26
_START_S = 5.0
JsonObject = dict[str, Any]


def make_parameters(model: str | Path, library: str | Path) -> bytes:
    """Return the blob of a model's parameters, for a library that `build` wrote with `replaceable`.

    Raises ModelError for a model that differs in more than these parameters.
    """
    return parameters_of(Path(model), read_layout(Path(library))).to_bytes()


def make(model: Path, library: Path, destination: Path) -> JsonObject:
    """Write the blob of a model's parameters for a library."""
    layout = read_layout(library)
    blob = parameters_of(model, layout)
    return _written(blob, destination) | {"operators": list(layout.replaceable)}


def pull(port: str, baud: int, destination: Path, progress: Progress = SILENT) -> JsonObject:
    """Write the present parameters of the program on a device to a file."""
    with _session(port, baud, progress) as session:
        return _written(session.pull_parameters(progress.advance), destination)


def push(path: Path, port: str, baud: int, progress: Progress = SILENT) -> JsonObject:
    """Replace the parameters of the program on a device, and read them back."""
    blob = read_blob(path)
    with _session(port, baud, progress) as session:
        session.push_parameters(blob, progress.advance)
        if session.pull_parameters(progress.advance).values != blob.values:
            raise ConfigError(f"the program on {port} has other parameters than {path.name}: push them again")
    return _sizes(blob)


def compare(blob: ParameterBlob, other: ParameterBlob, library: Path) -> JsonObject:
    """Report how the values of two blobs differ, for each parameter of a library.

    Raises UsageError if one of them is of another library.
    """
    layout = read_layout(library)
    for each in (blob, other):
        _require_layout(each, layout)
    rows = [_row(it, blob.values, other.values) for it in layout.parameters]
    return {"equal": blob.values == other.values, "hash": layout.hash, "parameters": rows}


def pulled_blob(port: str, baud: int, progress: Progress = SILENT) -> ParameterBlob:
    """Return the present parameters of the program on a device."""
    with _session(port, baud, progress) as session:
        return session.pull_parameters(progress.advance)


def read_blob(path: Path) -> ParameterBlob:
    """Read the blob of a file. Raises ConfigError for a file that is not a blob, or is damaged."""
    try:
        return ParameterBlob.of(read_limited(path, _MOST_BYTES))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{path} is not a blob of parameters: {error}") from error


@contextmanager
def _session(port: str, baud: int, progress: Progress) -> Iterator[Session]:
    progress.stage(f"connecting to {port}")
    with leased(port), connect(port, baud=baud, timeout_s=_START_S) as session:
        yield session


def _written(blob: ParameterBlob, destination: Path) -> JsonObject:
    write_file(destination, blob.to_bytes())
    return _sizes(blob) | {"file": str(destination)}


def _sizes(blob: ParameterBlob) -> JsonObject:
    return {"hash": blob.hash.hex(), "value_bytes": len(blob.values), "blob_bytes": len(blob.to_bytes())}


def _require_layout(blob: ParameterBlob, layout: ParameterLayout) -> None:
    if (blob.hash.hex(), len(blob.values)) != (layout.hash, layout.size_bytes):
        raise UsageError(
            f"parameters of hash {blob.hash.hex()} and {len(blob.values):,} bytes are not those of the "
            f"library, which has {layout.hash} and {layout.size_bytes:,} bytes"
        )


def _row(parameter: LaidOutParameter, values: bytes, other: bytes) -> Mapping[str, Any]:
    """Return the number of elements that differ, and the largest difference of floats."""
    dtype = np.dtype(parameter.type)
    one, two = (
        np.frombuffer(each, dtype, parameter.count, parameter.offset).astype(np.float64)
        for each in (values, other)
    )
    differ = ~((one == two) | (np.isnan(one) & np.isnan(two)))
    with np.errstate(invalid="ignore"):  # infinities may be equal
        gaps = np.abs(one - two)[differ]
    return {
        "operator": parameter.operator,
        "name": parameter.name,
        "type": parameter.type,
        "elements": parameter.count,
        "differ": int(differ.sum()),
        "largest": float(gaps.max(initial=0.0)) if parameter.type == "float32" else None,
    }
