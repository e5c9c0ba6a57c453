"""Options for the samples a model runs on: input files, how pictures are read, and expected outputs."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import rich_click as click

from mcudeploy.cli.options import Command
from mcudeploy.cli.parameter_types import InputFile, ParsedText
from mcudeploy.common.sizes import parse_numbers, parse_range

if TYPE_CHECKING:
    from mcudeploy.verify.preprocessing import Resize


def _divisors(text: str) -> tuple[float, ...]:
    numbers = parse_numbers(text)
    if 0 in numbers:
        raise ValueError("pixels cannot be divided by 0")
    return numbers


def sample_options(command: Command) -> Command:
    """Add --input and --expected, each a tuple with a path for each input or output of the model.

    Also adds the options of `reading_options`.
    """
    inputs = click.option(
        "--input",
        "inputs",
        metavar="FILE",
        type=InputFile(),
        multiple=True,
        help="Value of the next input, in the model file's layout: .npy, .csv, .bin or .raw (plain bytes), "
        ".wav, .png or .jpg. Repeat the set of inputs for more runs; without --input, values are random.",
    )
    expected = click.option(
        "--expected",
        metavar="FILE",
        type=InputFile(),
        multiple=True,
        help="Expected value of the next model output (.npy, .csv, .bin or .raw); ONNX Runtime computes "
        "it if none is given.",
    )
    return inputs(expected(reading_options(command)))


def reading_options(command: Command) -> Command:
    """Add the options for reading pictures and sound, packed as `reading: Preprocessing`."""

    @click.option(
        "--pixels",
        metavar="A..B",
        type=ParsedText(parse_range),
        help="Values that pixels 0 and 255 of a picture stand for, such as -1..1.  "
        "[default: 0..1; 0..255 for integers without a scale]",
    )
    @click.option(
        "--mean",
        metavar="M[,M,M]",
        type=ParsedText(parse_numbers),
        default="0",
        help="Mean to subtract from the pixels, one number or one for each channel.",
    )
    @click.option(
        "--std",
        metavar="S[,S,S]",
        type=ParsedText(_divisors),
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
    @click.option(
        "--sample-rate",
        metavar="HZ",
        type=click.IntRange(1, 1_000_000),
        default=16_000,
        show_default=True,
        help="Samples a second that an input of int16 takes; .wav files of other rates are refused.",
    )
    @functools.wraps(command)
    def packed(
        *args: Any,
        pixels: tuple[float, float] | None,
        mean: tuple[float, ...],
        std: tuple[float, ...],
        resize: Resize,
        sample_rate: int,
        **rest: Any,
    ) -> None:
        from mcudeploy.verify.preprocessing import Preprocessing

        reading = Preprocessing(pixels, mean, std, resize, rate=sample_rate)
        command(*args, reading=reading, **rest)

    return packed
