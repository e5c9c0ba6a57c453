"""`mcudeploy.evaluate`: the command `evaluate` as a function."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Unpack

from pydantic import Field, FiniteFloat, PositiveInt

from mcudeploy.commands.keywords import Choices, Named, board_of, checked, options_of, with_keywords
from mcudeploy.commands.python import Report
from mcudeploy.device.target import Target
from mcudeploy.extensions.evaluation.dataset import DataRequest
from mcudeploy.extensions.evaluation.evaluate import EvaluateRequest, evaluate_model
from mcudeploy.extensions.evaluation.evaluation_report import evaluation_object
from mcudeploy.extensions.evaluation.output_task import TaskChoice

_Percent = Annotated[float, Field(ge=0, le=100)]


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
    options, target_board = options_of(choices), board_of(board)
    count = checked("measurers", measurers, PositiveInt)
    targets = [Target(target_board, port, emulate) for port in ports or (None,)]
    most = checked("samples", samples, PositiveInt | None)
    request = EvaluateRequest(
        DataRequest(
            Path(data), None if labels is None else Path(labels), tuple(classes), most=most, seed=options.seed
        ),
        TaskChoice(output, checked("top", top, PositiveInt), checked("threshold", threshold, FiniteFloat)),
        None if float_model is None else Path(float_model),
        checked("min_accuracy", min_accuracy, _Percent | None),
        checked("max_drop", max_drop, _Percent | None),
    )
    result = evaluate_model(Path(model), targets if ports else targets * count, options, request)
    return evaluation_object(result)
