"""`mcudeploy.tune`, `measure`, `evaluate`, `flash` and `quantize`: what these commands do, from Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, Unpack

from pydantic import Field, FiniteFloat, NonNegativeInt, PositiveInt

from mcudeploy.commands import commands as api
from mcudeploy.commands import tune as tuning
from mcudeploy.commands.keywords import (
    Choices,
    Named,
    board_of,
    checked,
    options_of,
    with_keywords,
)
from mcudeploy.commands.python import PlanResult, Report
from mcudeploy.device.target import Target
from mcudeploy.report import as_json

_Timing = Literal["instructions", "cycles-model", "traffic"]
_Method = Literal["auto", "minmax", "entropy", "percentile"]
_Activations = Literal["int8", "int16"]
_Percent = Annotated[float, Field(ge=0, le=100)]


@with_keywords
def tune(
    model: str | Path,
    board: Named,
    *,
    emulate: bool = False,
    port: str | None = None,
    **choices: Unpack[Choices],
) -> PlanResult:
    """Search for the plan with the least RAM, timing parts of the model on the device. Raises FitError if
    there is no room.
    """
    target = Target(board_of(board), port, emulate)
    tuned = tuning.tune_model(Path(model), [target], options_of(choices))
    report = as_json(tuned)
    return PlanResult(report["arena_bytes"], report["unsplit_arena_bytes"], report, tuned.made, choices)


@with_keywords
def measure(
    model: str | Path,
    board: Named = "host",
    *,
    emulate: bool = False,
    port: str | None = None,
    timing: _Timing = "instructions",
    **choices: Unpack[Choices],
) -> Report:
    """Time every operator of a model on the device: the object of `measure --json`."""
    checked("timing", timing, _Timing)
    target = Target(board_of(board), port, emulate)
    return as_json(api.measure_model(Path(model), target, options_of(choices), timing=timing))


@with_keywords
def evaluate(
    model: str | Path,
    board: Named = "host",
    *,
    data: str | Path,
    labels: str | Path | None = None,
    classes: Sequence[str] = (),
    float_model: str | Path | None = None,
    output: str | None = None,
    top: int = 5,
    threshold: float = 0.5,
    samples: int | None = None,
    min_accuracy: float | None = None,
    max_drop: float | None = None,
    emulate: bool = False,
    ports: Sequence[str] = (),
    measurers: int = 1,
    **choices: Unpack[Choices],
) -> Report:
    """Measure the accuracy over a test set: the object of `evaluate --json`, whose key `failures` names
    missed limits.

    `classes`: their names in the order of the output; `samples`: draw this number; `ports`: those of several
    boards that share the samples; `measurers`: the number of emulated ones. The others are the options of the
    command of the same name, `output` is --output-name, limits are in percent.
    """
    from mcudeploy.extensions.evaluation.dataset import DataRequest  # noqa: PLC0415
    from mcudeploy.extensions.evaluation.evaluate import EvaluateRequest, evaluate_model  # noqa: PLC0415 (loads slowly)
    from mcudeploy.extensions.evaluation.evaluation_report import evaluated  # noqa: PLC0415
    from mcudeploy.extensions.evaluation.output_task import TaskChoice  # noqa: PLC0415

    options, known = options_of(choices), board_of(board)
    count = checked("measurers", measurers, PositiveInt)
    targets = [Target(known, port, emulate) for port in ports or (None,)]
    most = checked("samples", samples, PositiveInt | None)
    asked = EvaluateRequest(
        DataRequest(
            Path(data), None if labels is None else Path(labels), tuple(classes), most=most, seed=options.seed
        ),
        TaskChoice(output, checked("top", top, PositiveInt), checked("threshold", threshold, FiniteFloat)),
        None if float_model is None else Path(float_model),
        checked("min_accuracy", min_accuracy, _Percent | None),
        checked("max_drop", max_drop, _Percent | None),
    )
    return evaluated(evaluate_model(Path(model), targets if ports else targets * count, options, asked))


@with_keywords
def flash(
    model: str | Path | None,
    board: Named,
    *,
    emulate: bool = False,
    port: str | None = None,
    dry_run: bool = False,
    **choices: Unpack[Choices],
) -> Report:
    """Write a model's firmware to the board, or with None the measurer alone: the object of `flash --json`.
    `dry_run` builds it, and lists the commands that would write the board.
    """
    target = Target(board_of(board), port, emulate)
    path = None if model is None else Path(model)
    return as_json(api.flash_board(path, target, options_of(choices), dry_run))


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
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    seed: int = 0,
) -> Report:
    """Turn a float model into integers, calibrated with the samples of `data`, and write it to `output`: the
    object of `quantize --json`.
    """
    # ONNX Runtime's quantiser loads slowly
    from mcudeploy.extensions.quantization.quantization_report import quantized  # noqa: PLC0415
    from mcudeploy.extensions.quantization.quantizer import QuantizeRequest, quantize_model  # noqa: PLC0415

    checked("method", method, _Method)
    checked("activations", activations, _Activations)
    checked("samples", samples, PositiveInt)
    checked("seed", seed, NonNegativeInt)
    classes = None if labels is None else Path(labels)
    request = QuantizeRequest(
        Path(data), classes, method, samples, seed, tuple(keep_float), activations, dict(shapes or {})
    )
    return quantized(quantize_model(Path(model), request, Path(output)))
