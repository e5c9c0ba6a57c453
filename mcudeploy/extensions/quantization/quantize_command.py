"""`quantize`: convert a float model to int8, or int16 with int8 weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from mcudeploy.cli.devices import board_option
from mcudeploy.cli.options import (
    destination_option,
    files_option,
    is_typed,
    model_argument,
    output_options,
    packed_as,
    planning_options,
)
from mcudeploy.cli.output import Output
from mcudeploy.cli.parameter_types import Finite, InputData, InputFile
from mcudeploy.common import interrupts
from mcudeploy.common.errors import UsageError
from mcudeploy.common.files import same_file
from mcudeploy.extensions.quantization import quantizetable
from mcudeploy.planner.plan_options import Options

if TYPE_CHECKING:
    from mcudeploy.extensions.quantization.quantizer import QuantizeRequest


@click.command()
@model_argument
@click.option(
    "--data",
    metavar="FOLDER|FILE",
    type=InputData(),
    required=True,
    help="Representative samples, preprocessed as in training: a folder with one .npy file per sample, an "
    ".npz with one array per input, or one .npy; the first axis of an .npz or .npy counts samples.",
)
@destination_option("Write the quantised model to this file.", "FILE.onnx", required=True)
@click.option(
    "--labels",
    metavar="FILE",
    type=InputFile(),
    help="Class of each sample, from 0, in the order of the samples: .npy, or text with one per line. "
    "Reports the accuracy of both models.",
)
@click.option(
    "--method",
    type=click.Choice(("auto", "minmax", "entropy", "percentile")),
    default="auto",
    show_default=True,
    help="Calibration method of the ranges; auto tries all three and keeps the closest to the float model.",
)
@click.option(
    "--samples",
    metavar="N",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    help="Maximum number of samples for calibration, and of other samples for the comparison.",
)
@click.option(
    "--keep-float",
    metavar="NODE[,NODE...]",
    multiple=True,
    callback=lambda _, __, texts: tuple(
        name.strip() for text in texts for name in text.split(",") if name.strip()
    ),
    help="Nodes that stay float, by name (globs) or operator; the table names the worst.",
)
@click.option(
    "--activations",
    type=click.Choice(("int8", "int16", "auto")),
    default="int8",
    show_default=True,
    help="Integers of activations. int16 is more exact, and takes twice the RAM and more time; auto takes "
    "int16 for the layers that need it, with --board.",
)
@board_option(required=False)
@click.option(
    "--within",
    metavar="DB",
    type=Finite(min=0, min_open=True),
    help="How many decibels of SQNR the outputs may lose: by --activations auto from those of int16, by "
    "--weights auto from those of int8 weights. Default 3.",
)
@click.option(
    "--weights",
    type=click.Choice(("int8", "int4", "auto")),
    default="int8",
    show_default=True,
    help="Integers of the weights of convolutions and matrix products. int4 takes half the file, and is "
    "always rounded adaptively; auto takes int4 for the layers that lose little.",
)
@click.option(
    "--round",
    "rounding",
    type=click.Choice(("nearest", "adaptive")),
    default="nearest",
    show_default=True,
    help="Rounding of weights: to the nearest integers, or so that the results of each layer differ least.",
)
@planning_options("shapes")
@click.option(
    "--seed",
    metavar="N",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed that selects the samples for calibration and for the comparison.",
)
@files_option
@output_options
@packed_as(
    "request",
    "mcudeploy.extensions.quantization.quantizer:QuantizeRequest",
    *("data", "labels", "method", "samples", "seed", "keep_float", "activations", "weights", "rounding"),
    *("board", "within"),
)
def quantize(
    *, model: Path, destination: Path, request: QuantizeRequest, options: Options, output: Output
) -> None:
    """Quantise a float model to integers, and report the loss of every layer."""
    from mcudeploy.extensions.quantization.quantization_report import quantized
    from mcudeploy.extensions.quantization.quantizer import quantize_model

    if destination.suffix.lower() == ".tflite":
        raise UsageError(f"--output {destination} would be an ONNX file: give it the ending .onnx")
    data = request.data
    if destination.resolve().parent == data.resolve() or same_file(destination, data):
        raise UsageError(f"--output {destination} is among the samples of --data: choose another file")
    request = replace(_without_defaults(request), shapes=dict(options.shapes))
    with output.progress() as progress:
        result = quantize_model(model, request, destination, progress)
        interrupts.close()
    output.result(quantized(result), quantizetable.quantize)


def _without_defaults(request: QuantizeRequest) -> QuantizeRequest:
    """Leave out a board and a distance that `mcudeploy.toml` or a variable states for other commands.

    Raises UsageError for --round nearest with weights that are always rounded adaptively.
    """
    if request.weights != "int8" and request.rounding == "nearest" and is_typed("rounding"):
        raise UsageError(f"--weights {request.weights} always rounds adaptively: leave out --round nearest")
    if request.activations != "auto" and not is_typed("board"):
        request = replace(request, board=None)
    if "auto" not in (request.activations, request.weights) and not is_typed("within"):
        request = replace(request, within=None)
    return request
