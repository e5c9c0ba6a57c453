"""Options for the samples a model runs on: input files, how pictures are read, and expected outputs."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from mcudeploy.cli.config import parse_numbers, parse_range
from mcudeploy.cli.options import Command
from mcudeploy.cli.parameter_types import InputFile

if TYPE_CHECKING:
    from mcudeploy.verify.preprocessing import Resize


class _Range(click.ParamType[tuple[float, float]]):
    """Two numbers: -1..1."""

    name = "range"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, float]:
        """Return the ends of a range; fail with a usage error for other text."""
        try:
            return value if isinstance(value, tuple) else parse_range(str(value))
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)


class _Numbers(click.ParamType[tuple[float, ...]]):
    """Numbers separated by commas: 0.485,0.456,0.406."""

    name = "numbers"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, ...]:
        """Return the numbers; fail with a usage error for other text, or if a divisor is 0."""
        try:
            found = value if isinstance(value, tuple) else parse_numbers(str(value))
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)
        if 0 in found and param is not None and param.name == "std":
            self.fail("pixels cannot be divided by 0.", param, ctx)
        return found


def sample_options(command: Command) -> Command:
    """Add --input and --expected, tuples of paths, one per input and output of the model.

    Options for reading pictures are packed as `reading: Reading`.
    """

    @click.option(
        "--input",
        "inputs",
        metavar="FILE",
        type=InputFile(),
        multiple=True,
        help="Value of the next input, in the model file's layout: .npy, .csv, .bin or .raw (plain bytes), "
        ".wav, .png or .jpg. Repeat the set of inputs for more runs; values are drawn if none is given.",
    )
    @click.option(
        "--expected",
        metavar="FILE",
        type=InputFile(),
        multiple=True,
        help="Expected value of the next model output (.npy, .csv, .bin or .raw); ONNX Runtime computes "
        "it if none is given.",
    )
    @click.option(
        "--pixels",
        metavar="A..B",
        type=_Range(),
        help="Values that pixels 0 and 255 of a picture stand for, such as -1..1.  "
        "[default: 0..1; 0..255 for integers without a scale]",
    )
    @click.option(
        "--mean",
        metavar="M[,M,M]",
        type=_Numbers(),
        default="0",
        help="Mean to subtract from the pixels, one number or one for each channel.",
    )
    @click.option(
        "--std",
        metavar="S[,S,S]",
        type=_Numbers(),
        default="1",
        help="Divisor of the pixels after the mean is subtracted.",
    )
    @click.option(
        "--resize",
        type=click.Choice(["stretch", "crop", "none"]),
        default="stretch",
        show_default=True,
        help="How a picture gets the model's size: stretched, cropped to its middle, or not at all.",
    )
    @functools.wraps(command)
    def packed(
        *args: Any,
        inputs: tuple[Path, ...],
        expected: tuple[Path, ...],
        pixels: tuple[float, float] | None,
        mean: tuple[float, ...],
        std: tuple[float, ...],
        resize: Resize,
        **rest: Any,
    ) -> None:
        from mcudeploy.verify.preprocessing import Preprocessing

        reading = Preprocessing(pixels, mean, std, resize)
        command(*args, inputs=inputs, expected=expected, reading=reading, **rest)

    return packed
