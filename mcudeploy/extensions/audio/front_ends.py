"""The front ends that `mcudeploy frontend` writes: from a hop of samples to a row of features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mcudeploy.common.errors import UsageError
from mcudeploy.frontend.tflite.contents import SAME_OPTIONS, Contents, FileDraft

_INT16, _FLOAT32 = 7, 0
"""Numbers of element types in the option T of the Fourier transforms."""
_WEIGHT_BITS = 12
_SUBTRACTION_BITS, _SMOOTHING_BITS = 14, 10
_EVEN_SMOOTHING, _ODD_SMOOTHING, _LEAST_SIGNAL = 0.025, 0.06, 0.05
_GAIN_STRENGTH, _GAIN_OFFSET, _GAIN_BITS, _GAIN_SHIFT = 0.95, 80.0, 21, 6
_LOG_SCALE = 64
_FLOAT_SCALE = 25.6
_INT8_RANGE = 26
_FULL_SCALE = 32768.0
_LOG_FLOOR = 1e-6


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """The sizes of a front end. Each `hop` of samples gives a frame, the last `window` samples, at `rate` a
    second. The channels lie between the frequencies `low` and `high` in Hz.
    """

    rate: int = 16_000
    window: int = 480
    hop: int = 320
    channels: int = 40
    low: float = 125.0
    high: float = 7_500.0

    def __post_init__(self) -> None:
        if not 1 <= self.hop <= self.window:
            raise UsageError(f"a hop of {self.hop} samples does not fit a window of {self.window}")
        if not 0 <= self.low < self.high <= self.rate / 2:
            raise UsageError(
                f"{self.low:g} to {self.high:g} Hz is not a range below {self.rate / 2:,g} Hz (half the rate)"
            )

    @property
    def length(self) -> int:
        """The length of the transform: the least power of two that holds the window."""
        return max(4, 1 << (self.window - 1).bit_length())


def micro_speech(front: FrontEnd, *, quantized: bool, esphome: bool = False) -> Contents:
    """The front end of TensorFlow Lite Micro's micro_speech, with int8 features if `quantized`, else float32.

    Its features are channels in fixed point, with noise suppression and gain control. `esphome`: the tables
    are those of ESPHome, in float32 and rounded to nearest; TensorFlow Lite Micro rounds them down.
    """
    correction = front.length.bit_length() - 1 - _WEIGHT_BITS // 2
    if correction < 0:
        raise UsageError(
            f"a window of {front.window} samples is too short for micro-speech, which takes 33 or more"
        )
    draft = FileDraft()

    # the spectrum of the windowed frame, scaled to use all bits
    samples, frame = _framed(draft, front)
    weights = _single_hann(front.window) if esphome else _hann(front.window, 0.5)
    weights = np.floor((1 << _WEIGHT_BITS) * weights + 0.5)
    window = draft.constant(weights, np.int16)
    frame = draft.add("SignalWindow", [frame, window], (front.window,), "INT16", shift=_WEIGHT_BITS)
    scaled, bits = draft.tensor("INT16", (front.window,)), draft.tensor("INT32", ())
    draft.operator("SignalFftAutoScale", [frame], [scaled, bits])
    parts = front.length + 2
    spectrum = draft.add("SignalRfft", [scaled], (parts,), "INT16", T=_INT16, fft_length=front.length)

    # the root of the energy in each channel
    bank = _filter_bank(front, 0.5 if esphome else 0.0)
    ends = {"start_index": bank.first, "end_index": bank.end}
    energy = draft.add("SignalEnergy", [spectrum], (parts // 2,), "UINT32", **ends)
    tables = [draft.constant(table, np.int16) for table in bank.tables]
    channels = (front.channels,)
    sums = draft.add("SignalFilterBank", [energy, *tables], channels, "UINT64", num_channels=front.channels)
    roots = draft.add("SignalFilterBankSquareRoot", [sums, bits], channels, "UINT32")

    # without noise, at an even loudness, and as logarithms
    signal, noise = draft.tensor("UINT32", channels), draft.tensor("UINT32", channels)
    unit = 1 << _SUBTRACTION_BITS
    even, odd, least = (int(share * unit) for share in (_EVEN_SMOOTHING, _ODD_SMOOTHING, _LEAST_SIGNAL))
    draft.operator(
        "SignalFilterBankSpectralSubtraction",
        [roots],
        [signal, noise],
        alternate_one_minus_smoothing=unit - odd,
        alternate_smoothing=odd,
        clamping=False,
        min_signal_remaining=least,
        num_channels=front.channels,
        one_minus_smoothing=unit - even,
        smoothing=even,
        smoothing_bits=_SMOOTHING_BITS,
        spectral_subtraction_bits=_SUBTRACTION_BITS,
    )
    gains = draft.constant(_gains(_SMOOTHING_BITS - correction), np.int16)
    gained = draft.add("SignalPCAN", [signal, noise, gains], channels, "UINT32", snr_shift=_GAIN_SHIFT)
    options = {"input_correction_bits": correction, "output_scale": _LOG_SCALE}
    log = draft.add("SignalFilterBankLog", [gained], channels, "INT16", **options)
    row = _in_int8(draft, log, channels) if quantized else _in_float(draft, log, channels)
    return draft.contents([samples], [_reshaped(draft, row, (1, front.channels))])


def log_mel(front: FrontEnd) -> Contents:
    """The front end of float32 logarithms of mel channels: triangular filters over powers of a spectrum."""
    draft = FileDraft()
    samples, frame = _framed(draft, front)
    size, parts, points = front.window, front.length + 2, front.length // 2 + 1
    frame = draft.add("CAST", [frame], (size,), "FLOAT32")
    window = draft.constant(_hann(size, 0.0) / _FULL_SCALE, np.float32)
    frame = draft.add("MUL", [frame, window], (size,), "FLOAT32", **SAME_OPTIONS)
    options = {"T": _FLOAT32, "fft_length": front.length}
    spectrum = draft.add("SignalRfft", [frame], (parts,), "FLOAT32", **options)
    pairs = _reshaped(draft, spectrum, (points, 2))
    powers = draft.add("MUL", [pairs, pairs], (points, 2), "FLOAT32", **SAME_OPTIONS)
    axis = draft.constant([1])
    energies = draft.add("SUM", [powers, axis], (points,), "FLOAT32", KeepDims=False)
    row = _reshaped(draft, energies, (1, points))
    filters = draft.constant(mel_filters(front, points).T, np.float32)
    dense = {"WeightsFormat": 0, **SAME_OPTIONS}
    band_energies = draft.add("FULLY_CONNECTED", [row, filters, -1], (1, front.channels), "FLOAT32", **dense)
    floor = draft.constant(_LOG_FLOOR, np.float32)
    band_energies = draft.add("MAXIMUM", [band_energies, floor], (1, front.channels), "FLOAT32")
    return draft.contents([samples], [draft.add("LOG", [band_energies], (1, front.channels), "FLOAT32")])


def mel_filters(front: FrontEnd, points: int) -> NDArray[np.float64]:
    """Triangular filters over the points of a spectrum, [points, channels]; tops equally spaced in mel."""
    hertz = np.arange(points) * front.rate / front.length
    mels = np.linspace(_mel(front.low), _mel(front.high), front.channels + 2)
    edges = 700 * np.expm1(mels / 1127)
    rise = (hertz[:, np.newaxis] - edges[:-2]) / (edges[1:-1] - edges[:-2])
    fall = (edges[2:] - hertz[:, np.newaxis]) / (edges[2:] - edges[1:-1])
    filters: NDArray[np.float64] = np.maximum(0.0, np.minimum(rise, fall))
    return filters


def _mel(hertz: float) -> float:
    return 1127 * float(np.log1p(hertz / 700))


def _hann(size: int, offset: float) -> NDArray[np.float64]:
    return 0.5 - 0.5 * np.cos(2 * np.pi * (np.arange(size) + offset) / size)


def _single_hann(size: int) -> NDArray[np.float64]:
    """The window `_hann(size, 0.5)`, computed with rounding to float32 in each step."""
    single = np.float32
    angles = single(single(np.pi) * single(2) / single(size)) * (np.arange(size, dtype=single) + single(0.5))
    cosines = np.cos(angles.astype(np.float64)).astype(single)
    return (single(0.5) - single(0.5) * cosines).astype(np.float64)


def _framed(draft: FileDraft, front: FrontEnd) -> tuple[int, int]:
    """The input, a hop of samples, and the frame: the last window of samples, with zeros before the first."""
    samples = draft.tensor("INT16", (1, front.hop), "samples")
    frames, valid = draft.tensor("INT16", (1, 1, front.window)), draft.tensor("BOOL", ())
    sizes = {"frame_size": front.window, "frame_step": front.hop, "prefill": True}
    draft.operator("SignalFramer", [samples], [frames, valid], **sizes)
    return samples, _reshaped(draft, frames, (front.window,))


def _reshaped(draft: FileDraft, tensor: int, shape: tuple[int, ...]) -> int:
    sizes = draft.constant(list(shape))
    return draft.add("RESHAPE", [tensor, sizes], shape, draft.tensors[tensor].kind)


@dataclass(frozen=True, slots=True, eq=False)
class _FilterBank:
    """The tables of SignalFilterBank in the order of its inputs; it reads the points `first` to `end` - 1."""

    tables: tuple[NDArray[np.int64], ...]
    first: int
    end: int


def _filter_bank(front: FrontEnd, rounding: float) -> _FilterBank:
    """Triangular filters that overlap by half: a point belongs to a channel by its weight, to the next by the
    rest. The arithmetic is float32, as in TensorFlow Lite Micro. `rounding`: added to weights before they are
    rounded down.
    """
    single = np.float32

    def mel(hertz: float) -> np.float32:
        return single(single(1127) * np.log1p(single(hertz) / single(700)))

    low, high, count = mel(front.low), mel(front.high), front.channels + 1
    centers = low + (high - low) / single(count) * np.arange(1, count + 1, dtype=single)
    point_hertz = front.rate / front.length
    first = point = round(1 + front.low / point_hertz)
    firsts, widths, weights = [], [], []
    for number, center in enumerate(centers):
        firsts.append(point)
        below = low if number == 0 else centers[number - 1]
        while mel(point * point_hertz) <= center:
            weights.append(single(center - mel(point * point_hertz)) / single(center - below))
            point += 1
        widths.append(point - firsts[-1])
    if point > front.length // 2:
        raise UsageError(f"{front.high:g} Hz is too near half of {front.rate:,} samples a second")
    shares = np.array(weights, np.float64)
    weight, rest = (np.floor(it * (1 << _WEIGHT_BITS) + rounding) for it in (shares, 1 - shares))
    places = np.concatenate([[0], np.cumsum(widths)[:-1]])
    tables = (weight, rest, firsts, places, widths)
    return _FilterBank(tuple(np.asarray(table, np.int64) for table in tables), first, point)


def _gains(input_bits: int) -> NDArray[np.int64]:
    """The table of gains by noise: a parabola between each two powers of two."""

    def gain(noise: int) -> int:
        x = np.float32(noise) / np.float32(1 << input_bits) + np.float32(_GAIN_OFFSET)
        value = np.float32(1 << _GAIN_BITS) * np.power(x, np.float32(-_GAIN_STRENGTH))
        return int(min(value + np.float32(0.5), np.iinfo(np.int16).max))

    table = [gain(0), gain(1)]
    for bits in range(2, 33):
        low = 1 << (bits - 1)
        first, middle, last = gain(low), gain(low + low // 2), gain(min(2 * low, 2**32 - 1))
        bend = 4 * (middle - first) - (last - first)
        table += [first, bend, last - first - bend, 0]
    return np.array(table[:125], np.int64)


def _in_float(draft: FileDraft, log: int, shape: tuple[int, ...]) -> int:
    value = draft.add("CAST", [log], shape, "FLOAT32")
    factor = draft.constant(1 / _FLOAT_SCALE, np.float32)
    return draft.add("MUL", [value, factor], shape, "FLOAT32", **SAME_OPTIONS)


def _in_int8(draft: FileDraft, log: int, shape: tuple[int, ...]) -> int:
    """The features as int8: 0 to 26 of the float features become -128 to 127."""
    value = draft.add("CAST", [log], shape, "INT32")
    divisor = int(_FLOAT_SCALE * _INT8_RANGE + 0.5)
    for op, number in (("MUL", 256), ("ADD", divisor // 2), ("DIV", divisor), ("ADD", -128)):
        value = draft.add(op, [value, draft.constant(number)], shape, "INT32", **SAME_OPTIONS)
    for op, number in (("MINIMUM", 127), ("MAXIMUM", -128)):
        value = draft.add(op, [value, draft.constant(number)], shape, "INT32")
    return draft.add("CAST", [value], shape, "INT8")
