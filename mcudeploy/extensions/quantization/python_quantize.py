"""`mcudeploy.quantize`: the command `quantize` from Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, FiniteFloat, NonNegativeInt, PositiveInt

from mcudeploy.commands.keywords import Named, board_of, checked
from mcudeploy.commands.python import Report

_Method = Literal["auto", "minmax", "entropy", "percentile"]
_Activations = Literal["int8", "int16", "auto"]
_Decibels = Annotated[FiniteFloat, Field(gt=0)]
_Weights = Literal["int8", "int4", "auto"]
_Rounding = Literal["nearest", "adaptive"]


def quantize(
    model: str | Path,
    data: str | Path,
    output: str | Path,
    *,
    labels: str | Path | None = None,
    method: _Method = "auto",
    samples: int = 200,
    keep_float: Sequence[str] = (),
    activations: _Activations = "int8",
    weights: _Weights = "int8",
    rounding: _Rounding = "nearest",
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    seed: int = 0,
    board: Named | None = None,
    within: float | None = None,
) -> Report:
    """Quantise a float model by the samples of `data`, and write it to `output`. Returns the object of
    `quantize --json`.
    """
    # ONNX Runtime's quantiser loads slowly
    from mcudeploy.extensions.quantization.quantization_report import quantized
    from mcudeploy.extensions.quantization.quantizer import QuantizeRequest, quantize_model

    checked("method", method, _Method)
    checked("activations", activations, _Activations)
    checked("weights", weights, _Weights)
    checked("rounding", rounding, _Rounding)
    checked("samples", samples, PositiveInt)
    checked("seed", seed, NonNegativeInt)
    request = QuantizeRequest(
        data=Path(data),
        labels=None if labels is None else Path(labels),
        method=method,
        samples=samples,
        seed=seed,
        keep_float=tuple(keep_float),
        activations=activations,
        weights=weights,
        rounding=rounding,
        shapes=dict(shapes or {}),
        board=None if board is None else board_of(board),
        within=None if within is None else checked("within", within, _Decibels),
    )
    return quantized(quantize_model(Path(model), request, Path(output)))
