"""Files with the signal operators of TensorFlow Lite Micro, of random sizes and constants."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from flat_files import NONE, FlatFile

INT16, INT32, FLOAT32 = 7, 2, 0
"""Element types as the option T numbers them."""


@dataclass
class SignalFile:
    """A file with one int16 input `x`. `valid`: by output, the output that says whether it is."""

    size: int
    seed: int
    flat: FlatFile = field(default_factory=FlatFile)
    outputs: list[int] = field(default_factory=list)
    valid: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.flat.random = np.random.default_rng(self.seed)
        self.x = self.short(1, self.size)

    @property
    def random(self) -> np.random.Generator:
        return self.flat.random

    def short(self, *shape: int) -> int:
        return self.flat.add(*shape, kind="INT16")

    def word(self, *shape: int) -> int:
        return self.flat.add(*shape, kind="UINT32")

    def shape(self, tensor: int) -> tuple[int, ...]:
        return tuple(self.flat.tensors[tensor].shape)

    def out(self, tensor: int) -> int:
        self.outputs.append(tensor)
        return tensor

    def flattened(self, tensor: int) -> int:
        size = int(np.prod(self.shape(tensor)))
        output = self.flat.add(size, kind=self.flat.tensors[tensor].kind)
        return self.flat.operator("RESHAPE", [tensor, self.flat.constant([size])], output)

    def cast(self, tensor: int, kind: str) -> int:
        output = self.flat.add(*self.shape(tensor), kind=kind)
        return self.flat.operator("CAST", [tensor], output)

    # -- one of each ------------------------------------------------------------------------------

    def window(self) -> int:
        weights = self.flat.constant(self.random.integers(-4096, 4097, self.size), np.int16)
        shift = int(self.random.integers(8, 16))
        y = self.short(1, self.size)
        return self.out(self.flat.operator("SignalWindow", [self.x, weights], y, shift=shift))

    def auto_scale(self) -> tuple[int, int]:
        y, bits = self.short(self.size), self.flat.add(kind="INT32")
        self.flat.operator("SignalFftAutoScale", [self.flattened(self.x)], [y, bits])
        return self.out(y), self.out(bits)

    def fourier(self, x: int, length: int, kind: int) -> int:
        """The spectrum and its way back."""
        name = self.flat.tensors[x].kind
        options = {"T": kind, "fft_length": length}
        rows = self.shape(x)[:-1]
        spectrum = self.flat.add(*rows, length + 2, kind=name)
        self.flat.operator("SignalRfft", [x], spectrum, **options)
        back = self.flat.add(*rows, length, kind=name)
        self.flat.operator("SignalIrfft", [spectrum], back, **options)
        self.out(back)
        return self.out(spectrum)

    def energy(self, spectrum: int) -> int:
        """All energies: TensorFlow Lite Micro leaves others as they are."""
        points = int(np.prod(self.shape(spectrum))) // 2
        y = self.word(points)
        options = {"start_index": 0, "end_index": points}
        return self.out(self.flat.operator("SignalEnergy", [self.flattened(spectrum)], y, **options))

    def filter_bank(self, energy: int, bits: int) -> int:
        points, channels = self.shape(energy)[0], int(self.random.integers(2, 12))
        widths = self.random.integers(0, 7, channels + 1)
        places = np.concatenate([[0], np.cumsum(widths)[:-1]])
        firsts = self.random.integers(0, points - 7, channels + 1)
        tables = [self.random.integers(0, 4097, int(widths.sum()) or 1) for _ in range(2)]
        constants = [self.flat.constant(it, np.int16) for it in (*tables, firsts, places, widths)]
        sums = self.flat.add(channels, kind="UINT64")
        self.flat.operator("SignalFilterBank", [energy, *constants], sums, num_channels=channels)
        return self.out(self.flat.operator("SignalFilterBankSquareRoot", [sums, bits], self.word(channels)))

    def noise(self, signal: int) -> tuple[int, int]:
        (channels,) = self.shape(signal)
        y, estimate = self.word(channels), self.word(channels)
        random = self.random
        bits = int(random.integers(8, 15))
        shares = [int(random.integers(0, (1 << bits) + 1)) for _ in range(3)]
        self.flat.operator(
            "SignalFilterBankSpectralSubtraction",
            [signal],
            [y, estimate],
            alternate_one_minus_smoothing=(1 << bits) - shares[0],
            alternate_smoothing=shares[0],
            clamping=bool(random.integers(0, 2)),
            min_signal_remaining=shares[1],
            num_channels=channels,
            one_minus_smoothing=(1 << bits) - shares[2],
            smoothing=shares[2],
            smoothing_bits=int(random.integers(0, 12)),
            spectral_subtraction_bits=bits,
        )
        return self.out(y), self.out(estimate)

    def pcan(self, signal: int, estimate: int) -> int:
        gains = self.flat.constant(self.random.integers(-(2**15), 2**15, 125), np.int16)
        y = self.word(*self.shape(signal))
        shift = int(self.random.integers(0, 16))
        return self.out(self.flat.operator("SignalPCAN", [signal, estimate, gains], y, snr_shift=shift))

    def log(self, signal: int) -> int:
        y = self.short(*self.shape(signal))
        options = {
            "input_correction_bits": int(self.random.integers(0, 8)),
            "output_scale": int(self.random.integers(1, 2000)),
        }
        return self.out(self.flat.operator("SignalFilterBankLog", [signal], y, **options))

    def framer(self, step: int, size: int, *, prefill: bool) -> int:
        y = self.short(1, self.size // step, size)
        valid = self.flat.add(kind="BOOL")
        options = {"frame_size": size, "frame_step": step, "prefill": prefill}
        self.flat.operator("SignalFramer", [self.x], [y, valid], **options)
        self.valid[y] = valid
        self.out(valid)
        return self.out(y)

    def overlap_add(self, frames: int, step: int, kind: int) -> int:
        _, count, _ = self.shape(frames)
        y = self.flat.add(1, count * step, kind=self.flat.tensors[frames].kind)
        return self.out(self.flat.operator("SignalOverlapAdd", [frames], y, T=kind, frame_step=step))

    def stacker(self) -> int:
        left, right = (int(value) for value in self.random.integers(0, 4, 2))
        frames = left + right + 1
        options = {
            "num_channels": self.size,
            "stacker_left_context": left,
            "stacker_right_context": right,
            "stacker_step": int(self.random.integers(1, frames + 1)),
        }
        y, valid = self.short(self.size * frames), self.flat.add(kind="BOOL")
        self.flat.operator("SignalStacker", [self.flattened(self.x)], [y, valid], **options)
        self.valid[y] = valid
        self.out(valid)
        return self.out(y)

    def delay(self, length: int) -> int:
        y = self.short(1, self.size)
        return self.out(self.flat.operator("SignalDelay", [self.x], y, delay_length=length))


def every_operator(seed: int) -> SignalFile:
    """A file with every operator."""
    random = np.random.default_rng(seed)
    step = int(random.choice([4, 5, 8, 10]))
    file = SignalFile(step * int(random.integers(2, 5)), seed)
    file.window()
    scaled, bits = file.auto_scale()
    half = int(random.choice([8, 12, 15, 20, 24, 27, 30, 32, 45, 50, 64, 100, 128, 256]))
    length = 2 * max(half, (file.size + 1) // 2)
    while not _is_supported(length // 2):
        length += 2
    spectrum = file.fourier(scaled, length, INT16)
    file.fourier(file.cast(file.x, "INT32"), length, INT32)
    file.fourier(file.cast(file.x, "FLOAT32"), length, FLOAT32)
    channels = file.filter_bank(file.energy(spectrum), bits)
    signal, estimate = file.noise(channels)
    file.log(file.pcan(signal, estimate))
    size = step + int(random.integers(0, 3 * step))
    for prefill in (True, False):
        frames = file.framer(step, size, prefill=prefill)
        if prefill:
            file.overlap_add(frames, step, INT16)
            file.overlap_add(file.cast(frames, "FLOAT32"), step, FLOAT32)
    file.stacker()
    file.delay(int(random.integers(0, 30)))
    return file


def _is_supported(points: int) -> bool:
    for factor in (2, 3, 5):
        while points % factor == 0:
            points //= factor
    return points == 1


def preprocessor(*, quantized: bool) -> SignalFile:
    """The shape of micro_speech's front end, with constants of ours: 480 samples to 40 channels."""
    file = SignalFile(480, 7)
    f = file.flat
    hann = np.round(4096 * (0.5 - 0.5 * np.cos(2 * np.pi * (np.arange(480) + 0.5) / 480)))
    window = f.operator("SignalWindow", [file.x, f.constant(hann, np.int16)], file.short(1, 480), shift=12)
    scaled, bits = file.short(480), f.add(kind="INT32")
    f.operator("SignalFftAutoScale", [file.flattened(window)], [scaled, bits])
    spectrum = f.operator("SignalRfft", [scaled], file.short(514), T=INT16, fft_length=512)
    energy = f.operator("SignalEnergy", [spectrum], file.word(257), start_index=5, end_index=241)
    signed = file.cast(energy, "INT32")
    inner = f.add(236, kind="INT32")
    masks = dict.fromkeys(("BeginMask", "EndMask", "EllipsisMask", "NewAxisMask", "ShrinkAxisMask"), 0)
    ends = [f.constant([value]) for value in (5, 241, 1)]
    f.operator("STRIDED_SLICE", [signed, *ends], inner, **masks)
    zeros = [f.constant(np.zeros(count), np.int32) for count in (5, 16)]
    whole = f.add(257, kind="INT32")
    options = {"Axis": 0, "FusedActivationFunction": NONE}
    f.operator("CONCATENATION", [zeros[0], inner, zeros[1]], whole, **options)
    edges = np.round(5 + 236 * (np.arange(42) / 41) ** 1.6).astype(int)
    widths = np.diff(edges)
    rise = np.concatenate([(np.arange(width) + 1) / (width + 1) for width in widths])
    tables = (np.round(4096 * (1 - rise)), np.round(4096 * rise), edges[:-1], edges[:-1] - 5, widths)
    sums = f.add(40, kind="UINT64")
    constants = [f.constant(table, np.int16) for table in tables]
    f.operator("SignalFilterBank", [file.cast(whole, "UINT32"), *constants], sums, num_channels=40)
    roots = f.operator("SignalFilterBankSquareRoot", [sums, bits], file.word(40))
    signal, estimate = file.noise(roots)
    file.outputs.clear()
    gains = np.round(2000 / (1 + np.arange(125)))
    pcan = f.operator(
        "SignalPCAN", [signal, estimate, f.constant(gains, np.int16)], file.word(40), snr_shift=6
    )
    log = file.short(40)
    f.operator("SignalFilterBankLog", [pcan], log, input_correction_bits=3, output_scale=64)
    file.out(_int8(file, log) if quantized else file.cast(log, "FLOAT32"))
    return file


def _int8(file: SignalFile, log: int) -> int:
    f = file.flat
    value = file.cast(log, "INT32")
    steps: tuple[tuple[str, int], ...] = (
        ("MUL", 256),
        ("ADD", 333),
        ("DIV", 666),
        ("ADD", -128),
        ("MINIMUM", 127),
        ("MAXIMUM", -128),
    )
    for op, number in steps:
        output = f.add(40, kind="INT32")
        options: dict[str, Any] = (
            {} if op.startswith("M") and op != "MUL" else {"FusedActivationFunction": NONE}
        )
        value = f.operator(op, [value, f.constant(np.array(number))], output, **options)
    return file.cast(value, "INT8")
