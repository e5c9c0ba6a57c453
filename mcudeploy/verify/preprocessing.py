"""Values of a model's input or output from a file: an array, a picture, sound, text, or raw bytes."""

from __future__ import annotations

import math
import re
import wave
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mcudeploy.common.errors import UsageError
from mcudeploy.common.files import read_limited
from mcudeploy.common.text import agree, count_text, printable
from mcudeploy.ir.graph import UNSIGNED_OFFSET, GraphIO, Quantization
from mcudeploy.ops.requantize import quantize

Array = NDArray[Any]
Resize = Literal["stretch", "crop", "none"]
OnReal = Callable[[GraphIO, Array], object]
_MOST_BYTES = 512 * 2**20
"""Limit in bytes of the values; no tensor of a deployable model is larger."""
_HEADING_BYTES, _NUMBER_BYTES = 2**16, 64
_MOST_PIXELS = 2**26
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}
"""Pillow's pixel modes, by number of channels."""
_KINDS = "a .npy, .png, .jpg, .wav, .csv, .bin or .raw file"
_ENDINGS = (".npy", ".png", ".jpg", ".jpeg", ".wav")
"""Endings of files that are recognised by their first bytes."""


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """Conversion of pictures and sound to an input.

    `pixels`: the values of pixels 0 and 255; None: 0 and 1, or 0 and 255 for an integer input without a
    scale. `mean` is subtracted, and `std` divides; each is one number or one per channel. `resize`: the way a
    picture gets the input's size. Sound for an input of int16 has `rate` samples a second. `on_note` receives
    notes, `on_real` the real numbers of an input before they become integers.
    """

    pixels: tuple[float, float] | None = None
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    resize: Resize = "stretch"
    on_note: Callable[[str], object] = lambda _: None
    rate: int = 16_000
    on_real: OnReal = lambda *_: None


AS_USUAL = Preprocessing()


@dataclass(frozen=True, slots=True)
class Wanted:
    """The target of a file: an input or output of the model, and the meaning of its int8 values, if any.

    `sequence`: it is an input of runs that follow each other, so sound may last for several runs. `on_real`
    receives the real numbers that its scale quantises.
    """

    io: GraphIO
    quantization: Quantization | None
    sequence: bool = False
    on_real: OnReal = lambda *_: None

    @property
    def counts(self) -> bool:
        """Whether its elements are plain integers without a scale."""
        return not self.io.dtype.startswith("float") and self.quantization is None


def read_values(path: Path, wanted: Wanted, reading: Preprocessing = AS_USUAL) -> Array:
    """Return the values of a file, in the target's shape and type; a .npy file keeps its type.

    Raises UsageError naming the file, its content and the expected one.
    """
    try:
        content = read_limited(path, _MOST_BYTES)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    if content.startswith(b"\x93NUMPY"):
        return _array(path, content)
    if content.startswith((b"\x89PNG\r\n", b"\xff\xd8\xff")):
        return _picture(path, content, wanted, reading)
    if content.startswith(b"RIFF") and content[8:12] == b"WAVE":
        return _sound(path, content, wanted, reading)
    ending = path.suffix.lower()
    if ending == ".csv":
        return _text(path, content, wanted.io, reading)
    if ending in (".bin", ".raw"):
        return _raw(path, content, wanted.io)
    if not content:
        raise UsageError(f"{path} is empty")
    if ending == ".npz":
        raise UsageError(
            f"{path} is an archive of arrays: give one .npy file for each array, which numpy.save writes. "
            "The first axis may count runs. evaluate --data reads an .npz"
        )
    if ending in _ENDINGS:
        raise UsageError(f"{path} is damaged: it does not begin as {ending} files do")
    raise UsageError(f"{path} is not {_KINDS}: write the values with numpy.save")


def array_header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return shape and type of the array in a .npy file, from its header; ValueError for another file."""
    formats = np.lib.format
    try:
        read = formats.read_array_header_1_0 if formats.read_magic(stream) == (1, 0) else None
        shape, _, dtype = (read or formats.read_array_header_2_0)(stream)
    except (SyntaxError, TokenError, TypeError, LookupError, RecursionError) as error:  # it is read as Python
        raise ValueError("its header is damaged") from error
    if any(isinstance(size, bool) or size < 0 for size in shape):
        raise ValueError(f"its header states the shape {shape}")
    return shape, dtype


def _array(path: Path, content: bytes) -> Array:
    try:
        shape, dtype = array_header(BytesIO(content))
        if math.prod(shape) * dtype.itemsize > len(content):  # before memory is allocated
            raise ValueError("it is not whole")
        return np.asarray(np.load(BytesIO(content), allow_pickle=False))
    except (OSError, ValueError, EOFError, OverflowError, MemoryError) as error:
        raise UsageError(f"{path} is damaged, or holds no plain numbers") from error


def _picture(path: Path, content: bytes, wanted: Wanted, reading: Preprocessing) -> Array:
    """Return the pixels of a picture in the layout of the target, scaled as stated."""
    shape = image_shape(wanted.io.shape)
    if shape is None:
        raise UsageError(
            f"{path} is a picture; {printable(wanted.io.name)!r} of the model has the shape "
            f"{list(wanted.io.shape)}, which is none of one image with 1, 3 or 4 channels"
        )
    height, width, channels = shape.height, shape.width, shape.channels
    pixels = _decoded(path, content, (width, height), channels, reading.resize)
    low, high = reading.pixels or ((0.0, 255.0) if wanted.counts else (0.0, 1.0))
    for name, values in (("mean", reading.mean), ("std", reading.std)):
        if len(values) not in (1, channels):
            raise UsageError(
                f"--{name} has {count_text(len(values), 'number')}, the picture for "
                f"{printable(wanted.io.name)!r} has {count_text(channels, 'channel')}: give one for all, "
                "or one for each"
            )
    size = f"{width} x {height} pixels of {count_text(channels, 'channel')}"
    reading.on_note(f"{path.name} as {size} from {low:g} to {high:g}{_normalised(reading)}")
    real = low + pixels.astype(np.float64) * ((high - low) / 255)
    real = (real - np.array(reading.mean)) / np.array(reading.std)
    if shape.channels_first:
        real = np.moveaxis(real, -1, 0)
    return as_stated(str(path), real.reshape(wanted.io.shape), wanted)


def _normalised(reading: Preprocessing) -> str:
    if (reading.mean, reading.std) == (AS_USUAL.mean, AS_USUAL.std):
        return ""
    mean, std = (", ".join(f"{it:g}" for it in values) for values in (reading.mean, reading.std))
    return f", less {mean}, divided by {std}"


class ImageShape(NamedTuple):
    """The sizes of an image, and whether its channels come first."""

    height: int
    width: int
    channels: int
    channels_first: bool

    @property
    def dims(self) -> tuple[int, int, int]:
        """The dimensions in their order."""
        if self.channels_first:
            return self.channels, self.height, self.width
        return self.height, self.width, self.channels


def image_shape(shape: tuple[int, ...]) -> ImageShape | None:
    """Return the sizes of an image of this shape; None for another shape."""
    shape = shape[1:] if len(shape) == 4 and shape[0] == 1 else shape
    for channels in (3, 1, 4) if len(shape) == 3 else ():
        if shape[0] == channels:
            return ImageShape(shape[1], shape[2], channels, channels_first=True)
        if shape[2] == channels:
            return ImageShape(shape[0], shape[1], channels, channels_first=False)
    return ImageShape(*shape, 1, channels_first=False) if len(shape) == 2 else None


def _decoded(
    path: Path, content: bytes, size: tuple[int, int], channels: int, resize: Resize
) -> NDArray[np.uint8]:
    """Return the pixels [height, width, channels] of a picture of this size (width, height)."""
    try:
        from PIL import Image, ImageOps  # noqa: PLC0415
    except ImportError as error:
        raise UsageError(
            f"{path} is a picture, which Pillow reads: pip install pillow, or give a .npy file"
        ) from error
    try:
        opened = Image.open(BytesIO(content), formats=("PNG", "JPEG"))
        if opened.width * opened.height > _MOST_PIXELS:
            size_text = f"{opened.width} x {opened.height} pixels"
            raise UsageError(f"{path} has {size_text}; the limit is {_MOST_PIXELS:,}")
        image = ImageOps.exif_transpose(opened).convert(_MODES[channels])
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise UsageError(f"{path} is a damaged picture: {error}") from error
    if image.size != size:
        if resize == "none":
            raise UsageError(
                f"{path} has {image.width} x {image.height} pixels, the model needs {size[0]} x {size[1]}: "
                "resize it, or choose --resize stretch or crop"
            )
        resample = Image.Resampling.BILINEAR
        image = (
            image.resize(size, resample)
            if resize == "stretch"
            else ImageOps.fit(image, size, method=resample)
        )
    return np.asarray(image, np.uint8).reshape(size[1], size[0], channels)


def _sound(path: Path, content: bytes, wanted: Wanted, reading: Preprocessing) -> Array:
    """Return the samples of a WAV file, from -1 to 1; integers without a scale are samples of 16 bits."""
    try:
        with wave.open(BytesIO(content)) as file:
            channels, width, rate = file.getnchannels(), file.getsampwidth(), file.getframerate()
            frames = file.readframes(file.getnframes())
    except (wave.Error, EOFError, ValueError, RuntimeError) as error:
        raise UsageError(f"{path} is not a WAV file of plain samples (PCM): {error}") from error
    if channels != 1 or width not in (1, 2, 3, 4):
        size_text = f"{count_text(channels, 'channel')} of {8 * width} bits"
        raise UsageError(f"{path} has {size_text}: give one channel of 8 to 32 bits")
    io, count = wanted.io, len(frames) // width
    if io.dtype == "int16" and (width, rate) != (2, reading.rate):
        raise UsageError(
            f"{path} has {8 * width} bits and {rate:,} samples a second, {printable(io.name)!r} of the "
            f"model takes 16 bits and {reading.rate:,}: convert it, such as with ffmpeg -i {path.name} -ac 1 "
            f"-ar {reading.rate} -c:a pcm_s16le new.wav, or state another rate with --sample-rate"
        )
    needed = math.prod(io.shape)
    runs = max(count // needed, 1) if wanted.sequence else 1
    if runs == 1:
        _require_count(path, count, "sample", io)
    reach = "as they are" if io.dtype == "int16" else "from -1 to 1"
    hops = _hops(count, runs, needed)
    reading.on_note(f"{path.name} as {count_text(count, 'sample')}, {rate:,} a second, {reach}{hops}")
    if width == 1:
        codes = (np.frombuffer(frames, np.uint8).astype(np.int64) - 128) << 24
    else:
        wide = np.zeros((count, 4), np.uint8)
        wide[:, 4 - width :] = np.frombuffer(frames[: count * width], np.uint8).reshape(-1, width)
        codes = wide.view("<i4").reshape(-1).astype(np.int64)
    real = codes[: runs * needed] / (2.0**16 if wanted.counts else 2.0**31)
    several = (runs,) if runs > 1 else ()
    return as_stated(str(path), real.reshape(*several, *io.shape), wanted)


def _hops(count: int, runs: int, hop: int) -> str:
    """Return the samples of each run and the rest at the end, for a note; "" for one run."""
    if runs == 1:
        return ""
    rest = count - runs * hop
    return f"; {hop:,} in each of {runs:,} runs" + (f", the last {rest:,} in none" if rest else "")


def _text(path: Path, content: bytes, io: GraphIO, reading: Preprocessing) -> Array:
    """Return the numbers in a text, in the model's order and type; a first line of words is a heading."""
    most = _HEADING_BYTES + _NUMBER_BYTES * math.prod(io.shape)
    if len(content) > most:  # a number takes far more memory than its text
        raise UsageError(
            f"{path} has {len(content):,} bytes; the limit for {printable(io.name)!r} of the model, "
            f"{list(io.shape)}, is {most:,}"
        )
    try:
        rows = [line for line in content.decode("utf-8-sig").splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not text: write numbers in the order of the model") from error
    values: list[float] = []
    for number, row in enumerate(rows):
        cells = [cell for cell in re.split(r"[,;\s]+", row.strip()) if cell]
        try:
            values += map(_number, cells)
        except ValueError as error:
            if number == 0 and len(rows) > 1 and not any(map(_is_number, cells)):
                reading.on_note(f"{path.name} without its first line, {printable(row)[:40]!r}")
                continue
            raise UsageError(f"{path}: {error}") from error
    _require_count(path, len(values), "number", io)
    numbers = np.array(values, np.float64)
    if not io.dtype.startswith("float") and (numbers != np.round(numbers)).any():
        raise UsageError(f"{path} has fractions, {printable(io.name)!r} of the model is {io.dtype}")
    return _typed(str(path), numbers, io).reshape(io.shape)


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise ValueError(f"{printable(cell)[:40]!r} is not a number") from None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _raw(path: Path, content: bytes, io: GraphIO) -> Array:
    """Return plain values of the model's type, in its order, the least significant byte first."""
    dtype = np.dtype(io.dtype).newbyteorder("<")
    needed = int(np.prod(io.shape)) * dtype.itemsize
    if len(content) != needed:
        raise UsageError(
            f"{path} has {count_text(len(content), 'byte')}; {printable(io.name)!r} of the model, "
            f"{io.dtype} {list(io.shape)}, has {needed:,}"
        )
    return np.frombuffer(content, dtype).astype(io.dtype).reshape(io.shape)


def _require_count(path: Path, count: int, label: str, io: GraphIO) -> None:
    needed = int(np.prod(io.shape))
    if count != needed:
        raise UsageError(
            f"{path} has {count_text(count, label)}; {printable(io.name)!r} of the model, "
            f"{list(io.shape)}, {agree(needed, 'needs one', f'needs {needed:,}')}"
        )


def as_stated(where: str, real: NDArray[np.float64], wanted: Wanted) -> Array:
    """Convert real numbers to the target's type, by the scale of its quantised values if they have one.

    `where` names the values in errors. Raises UsageError for integers without a scale that the type lacks.
    """
    io = wanted.io
    if wanted.quantization is not None and not io.dtype.startswith("float"):
        wanted.on_real(io, real)
    if wanted.quantization is not None and io.dtype == "int16":
        steps = np.rint(real / wanted.quantization.scale)
        return np.asarray(np.clip(steps, -(2**15), 2**15 - 1), np.int16)
    if wanted.quantization is not None and not io.dtype.startswith("float"):
        codes = quantize(real.astype(np.float32), wanted.quantization)
        if io.dtype == "uint8":
            return (codes.astype(np.int16) + UNSIGNED_OFFSET).astype(np.uint8)
        return codes.astype(io.dtype)
    return _typed(where, real if io.dtype.startswith("float") else np.round(real), io)


def _typed(where: str, values: NDArray[np.float64], io: GraphIO) -> Array:
    dtype = np.dtype(io.dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if values.size and not (values.min() >= limits.min and values.max() <= limits.max):
            raise UsageError(
                f"{where} has values from {values.min():g} to {values.max():g}: {printable(io.name)!r} "
                f"of the model is {io.dtype}"
            )
    with np.errstate(over="ignore"):
        return values.astype(dtype)
