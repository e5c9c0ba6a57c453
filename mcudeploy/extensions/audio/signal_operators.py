"""Translation of TensorFlow Lite Micro's signal operators, which are custom operators of .tflite files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from mcudeploy.extensions.audio import fourier_functions, signal_functions
from mcudeploy.extensions.audio.filter_bank import (
    GAINS,
    FilterBankLog,
    NoiseEstimate,
    NoiseSubtract,
    Pcan,
    Smoothing,
)
from mcudeploy.extensions.audio.fourier import RealFft, radices
from mcudeploy.extensions.audio.signal import OverlapAdd, RunCount, SignalEnergy, require_bits
from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.tflite.contents import TfliteOperator, TfliteTensor
from mcudeploy.frontend.tflite.formula import Formula, formula_node, formula_nodes
from mcudeploy.frontend.tflite.variable_states import Translation, queue_node
from mcudeploy.frontend.tflite.writer import Writer

_TYPES_OF_T = {0: "FLOAT32", 2: "INT32", 7: "INT16"}
"""Element types by the number in the option T, as TensorFlow Lite numbers them."""
_MOST_FRAMES = 1024
"""Limit of the frames of a run, since each becomes a node."""
_MOST_SUM = 1 << 62
"""Limit of the sums of a filter bank. The reference has 64 bits."""
_MOST_FACTOR = 1 << 16


def window(writer: Writer, operator: TfliteOperator) -> None:
    """SignalWindow: every len(weights) samples times the weights."""
    x, y = writer.input(operator, 0), writer.output(operator)
    weights = _constant(writer, operator, 1, "its window")
    _require(("INT16", x), ("INT16", weights), ("INT16", y))
    shift = operator.integer("shift")
    require_bits(31, shift=shift)
    if x.elements % max(weights.elements, 1) or y.elements != x.elements:
        raise Unsupported(f"{weights.elements} weights do not fit {list(x.shape)} samples")
    rows = writer.reshaped(writer.raw(x), (-1, weights.elements))
    value = signal_functions.window(Formula(), shift)
    inputs = {"x": rows, "weights": writer.raw(weights)}
    onnx_name = formula_node(writer, "SignalWindow", inputs, value, shift=shift)
    writer.declare(onnx_name, (x.elements // weights.elements, weights.elements), "int16")
    writer.keep(y, writer.reshaped(onnx_name, y.shape))


def auto_scale(writer: Writer, operator: TfliteOperator) -> None:
    """SignalFftAutoScale: the samples shifted left as far as all fit, and the number of bits."""
    x, y, scale = writer.input(operator, 0), writer.output(operator), writer.output(operator, 1)
    _require(("INT16", x), ("INT16", y), ("INT32", scale))
    if x.shape != y.shape or scale.elements != 1:
        raise Unsupported(f"{list(x.shape)} cannot become {list(y.shape)} with scales {list(scale.shape)}")
    name, value = writer.raw(x), signal_functions.headroom(Formula())
    bits = formula_node(writer, "SignalHeadroom", {"x": name}, value)
    writer.declare(bits, (), "int32")
    value = signal_functions.shift(Formula())
    onnx_name = formula_node(writer, "SignalShift", {"x": name, "bits": bits}, value)
    writer.declare(onnx_name, x.shape, "int16")
    writer.keep(scale, bits)
    writer.keep(y, onnx_name)


def fourier(writer: Writer, operator: TfliteOperator) -> None:
    """SignalRfft and SignalIrfft of int16, int32 and float32, along the last dimension."""
    x, y, length = writer.input(operator, 0), writer.output(operator), operator.integer("fft_length")
    inverse = operator.op == "SignalIrfft"
    kind = _TYPES_OF_T.get(operator.integer("T"))
    if kind is None:
        raise Unsupported(f"its option T is {operator.integer('T')}; INT16, INT32 and FLOAT32 are supported")
    _require((kind, x), (kind, y))
    op = RealFft(length, inverse)
    radices(length)
    ends = (length + 2, length) if inverse else (min(x.shape[-1], length), length + 2)
    if (x.shape[-1], y.shape[-1]) != ends or x.shape[:-1] != y.shape[:-1]:
        raise Unsupported(f"{list(x.shape)} and {list(y.shape)} do not fit a transform of {length} numbers")
    value = fourier_functions.transform(
        Formula(np.float32 if kind == "FLOAT32" else np.int64), op, x.shape, x.dtype or ""
    )
    onnx_name = formula_node(
        writer, "RealFft", {"x": writer.raw(x)}, value, length=length, inverse=int(inverse)
    )
    _finish(writer, y, onnx_name)


def energy(writer: Writer, operator: TfliteOperator) -> None:
    """SignalEnergy of a spectrum, 0 for points outside of its range."""
    x, y = writer.input(operator, 0), writer.output(operator)
    _require(("INT16", x), ("UINT32", y))
    op = SignalEnergy(operator.integer("start_index"), operator.integer("end_index"))
    if x.elements != 2 * y.elements or not 0 <= op.first <= op.end <= y.elements:
        raise Unsupported(f"{list(x.shape)} has no points {op.first} to {op.end} of {y.elements}")
    value = signal_functions.energy(Formula(), op, y.elements)
    onnx_name = formula_node(writer, "SignalEnergy", {"x": writer.raw(x)}, value, first=op.first, end=op.end)
    _finish(writer, y, onnx_name)


def filter_bank_root(writer: Writer, operator: TfliteOperator) -> None:
    """SignalFilterBankSquareRoot and the SignalFilterBank before it as one node, with 64-bit sums inside."""
    sums, bits, y = writer.input(operator, 0), writer.input(operator, 1), writer.output(operator)
    bank = writer.producer(sums)
    if bank is None or bank.op != "SignalFilterBank":
        raise Unsupported("it needs the sums of 64 bits that a SignalFilterBank makes")
    channels, x = bank.integer("num_channels"), writer.input(bank, 0)
    tables = [_constant(writer, bank, at, "its weights and ranges") for at in range(1, 6)]
    _require(("UINT32", x), *(("INT16", it) for it in tables), ("INT32", bits), ("UINT32", y))
    weights, rest, points, places, widths = (it.array().reshape(-1).astype(np.int64) for it in tables)
    if not len(points) == len(places) == len(widths) == channels + 1 or y.elements != channels:
        raise Unsupported(f"{channels} channels need {channels + 1} ranges, and make {channels} values")
    if min(points.min(), places.min(), widths.min(), weights.min(initial=0), rest.min(initial=0)) < 0:
        raise Unsupported("a weight or a range of its filter bank is negative")
    if len(weights) != len(rest):
        raise Unsupported("its filter bank has weights for one side of a range alone")
    if np.any(points + widths > x.elements) or np.any(places + widths > len(weights)):
        raise Unsupported("a range of its filter bank ends beyond the spectrum or the weights")
    if int(weights.sum() + rest.sum()) * 2**32 > _MOST_SUM:
        raise Unsupported("the sums of its filter bank may overflow")
    value = signal_functions.filter_bank_root(Formula(), (points.tolist(), places.tolist()), widths.tolist())
    named = dict(zip(("weights", "rest", "points", "places", "widths"), map(writer.raw, tables), strict=True))
    inputs = {"x": writer.raw(x), "bits": writer.raw(bits), **named}
    _finish(writer, y, formula_node(writer, "FilterBankRoot", inputs, value, channels=channels))


def filter_bank(writer: Writer, operator: TfliteOperator) -> None:
    """SignalFilterBank, which is part of the node of SignalFilterBankSquareRoot."""
    sums = writer.output(operator)
    others = [it for it in writer.readers(sums) if it.op != "SignalFilterBankSquareRoot"]
    if others or writer.is_output(sums):
        raise Unsupported("its sums have 64 bits: SignalFilterBankSquareRoot alone may read them")


def noise(writer: Writer, operator: TfliteOperator) -> None:
    """SignalFilterBankSpectralSubtraction. Its estimate of the noise is a state and an output."""
    x, y, estimate = writer.input(operator, 0), writer.output(operator), writer.output(operator, 1)
    _require(("UINT32", x), ("UINT32", y), ("UINT32", estimate))
    even = _smoothing(operator, "")
    odd = _smoothing(operator, "alternate_")
    scale_bits, bits = operator.integer("smoothing_bits"), operator.integer("spectral_subtraction_bits")
    least, clamped = operator.integer("min_signal_remaining"), operator.flag("clamping")
    require_bits(31, smoothing_bits=scale_bits)
    require_bits(62, spectral_subtraction_bits=bits)
    channels = x.elements
    if operator.integer("num_channels") != channels or not y.elements == estimate.elements == channels:
        raise Unsupported(f"its input and results need {operator.integer('num_channels')} channels each")
    if not 0 <= least < _MOST_FACTOR:
        raise Unsupported(f"min_signal_remaining is {least}; 0 to {_MOST_FACTOR - 1} are possible")

    mean = NoiseEstimate(scale_bits, bits, even, odd, clamped)
    rest = NoiseSubtract(scale_bits, least, bits)
    state, name = writer.kept_input(estimate, x.shape), writer.raw(x)
    value = signal_functions.noise_estimate(Formula(), mean, channels)
    factors = [even.newest, even.earlier, odd.newest, odd.earlier, int(clamped)]
    inputs = {"x": name, "state": state}
    after = formula_node(
        writer, "NoiseEstimate", inputs, value, scale_bits=scale_bits, bits=bits, factors=factors
    )
    writer.declare(after, x.shape, "uint32")
    writer.keep_state(state, after)

    value = signal_functions.noise_subtract(Formula(), rest)
    inputs = {"x": name, "noise": after}
    onnx_name = formula_node(
        writer, "NoiseSubtract", inputs, value, scale_bits=scale_bits, least=least, bits=bits
    )
    writer.declare(onnx_name, x.shape, "uint32")
    writer.keep(estimate, after)
    writer.keep(y, onnx_name)


def _smoothing(operator: TfliteOperator, prefix: str) -> Smoothing:
    newest = operator.integer(f"{prefix}smoothing")
    earlier = operator.integer(f"{prefix}one_minus_smoothing")
    if not (0 <= newest < _MOST_FACTOR and 0 <= earlier < _MOST_FACTOR):
        most = _MOST_FACTOR - 1
        raise Unsupported(f"{prefix}smoothing is {newest} and {earlier}; 0 to {most} are possible")
    return Smoothing(newest, earlier)


def pcan(writer: Writer, operator: TfliteOperator) -> None:
    """SignalPCAN: the signal times a gain, which a table states by noise."""
    x, noise_tensor, y = writer.input(operator, 0), writer.input(operator, 1), writer.output(operator)
    gains = _constant(writer, operator, 2, "its table of gains")
    _require(("UINT32", x), ("UINT32", noise_tensor), ("INT16", gains), ("UINT32", y))
    op = Pcan(operator.integer("snr_shift"))
    require_bits(63, snr_shift=op.shift)
    if gains.elements < GAINS or not x.elements == noise_tensor.elements == y.elements:
        raise Unsupported(f"it needs as many noises as channels, and {GAINS} gains")
    value = signal_functions.pcan(Formula(), op)
    inputs = {"x": writer.raw(x), "noise": writer.raw(noise_tensor), "gains": writer.raw(gains)}
    _finish(writer, y, formula_node(writer, "Pcan", inputs, value, shift=op.shift))


def filter_bank_log(writer: Writer, operator: TfliteOperator) -> None:
    """SignalFilterBankLog: a natural logarithm in fixed point."""
    x, y = writer.input(operator, 0), writer.output(operator)
    _require(("UINT32", x), ("INT16", y))
    op = FilterBankLog(operator.integer("input_correction_bits"), operator.integer("output_scale"))
    require_bits(31, input_correction_bits=op.shift)
    if not 0 <= op.scale < _MOST_FACTOR or x.elements != y.elements:
        raise Unsupported(f"output_scale is {op.scale}; 0 to {_MOST_FACTOR - 1} are possible")
    value = signal_functions.filter_bank_log(Formula(), op)
    onnx_name = formula_node(
        writer, "FilterBankLog", {"x": writer.raw(x)}, value, shift=op.shift, scale=op.scale
    )
    _finish(writer, y, onnx_name)


def delay(writer: Writer, operator: TfliteOperator) -> None:
    """SignalDelay: earlier samples, which a queue keeps; zeros before the first."""
    x, y, length = writer.input(operator, 0), writer.output(operator), operator.integer("delay_length")
    _require(("INT16", x), ("INT16", y))
    if length < 0 or x.shape != y.shape or not x.shape:
        raise Unsupported(f"a delay of {length} of {list(x.shape)} does not make {list(y.shape)}")
    axis = len(x.shape) - 1
    queue = _queue(writer, x, length + x.shape[-1])
    writer.keep(y, _part(writer, queue, (0, x.shape[-1]), axis))


def framer(writer: Writer, operator: TfliteOperator) -> None:
    """SignalFramer: overlapping frames of samples, which a queue keeps.

    Without `prefill` the first valid frame begins with the first sample. Earlier frames contain zeros, and
    the second output is false for them.
    """
    x, y, valid = writer.input(operator, 0), writer.output(operator), writer.output(operator, 1)
    _require(("INT16", x), ("INT16", y), ("BOOL", valid))
    size, step = operator.integer("frame_size"), operator.integer("frame_step")
    if not 1 <= step <= size or not x.shape or x.shape[-1] < step or x.shape[-1] % step:
        raise Unsupported(f"frames of {size} by steps of {step} do not fit {list(x.shape)} samples")
    _require_one(x.shape[:-1])
    frames = x.shape[-1] // step
    if frames > _MOST_FRAMES:
        raise Unsupported(f"it makes {frames:,} frames; the limit is {_MOST_FRAMES:,}")
    if y.shape != (*x.shape[:-1], frames, size):
        raise Unsupported(f"its result is {list(y.shape)}, not {frames} frames of {size}")
    steps = -(-size // step)
    prefill = operator.flag("prefill")
    kept_samples = (size if prefill else steps * step) - step
    flat = replace(x, shape=(x.shape[-1],))
    queue = _queue(writer, flat, kept_samples + x.shape[-1])
    parts = [_part(writer, queue, (at * step, at * step + size)) for at in range(frames)]
    joined = parts[0] if len(parts) == 1 else writer.part("Concat", parts, axis=0)
    writer.keep(y, writer.reshaped(joined, y.shape))
    if prefill:
        writer.keep(valid, writer.constant(np.array(True).reshape(valid.shape)))
        return
    flags = _run_count(writer, valid, RunCount(-(-(steps - 1) // frames), 1))
    writer.keep(valid, writer.reshaped(_part(writer, flags, (0, 1)), valid.shape))


def stacker(writer: Writer, operator: TfliteOperator) -> None:
    """SignalStacker: the last frames as one vector.

    The second output is false in runs that are not due; the first output has the last frames in all runs.
    """
    x, y, valid = writer.input(operator, 0), writer.output(operator), writer.output(operator, 1)
    _require(("INT16", x), ("INT16", y), ("BOOL", valid))
    channels, step = operator.integer("num_channels"), operator.integer("stacker_step")
    left, right = (operator.integer(f"stacker_{side}_context") for side in ("left", "right"))
    frames = left + right + 1
    if left < 0 or right < 0 or not 1 <= step <= frames:
        raise Unsupported(f"contexts of {left} and {right} frames and a step of {step} do not fit")
    if x.elements != channels or y.elements != channels * frames:
        raise Unsupported(f"{frames} frames of {channels} do not fit {list(x.shape)} and {list(y.shape)}")
    flags = _run_count(writer, valid, RunCount(right, step))
    state = writer.kept_input(replace(x, index=y.index), (1, frames, channels))
    value = signal_functions.stack(Formula(), frames, channels)
    onnx_name = formula_node(
        writer, "SignalStack", {"x": writer.raw(x), "state": state, "flags": flags}, value, frames=frames
    )
    writer.declare(onnx_name, (1, frames, channels), "int16")
    writer.keep_state(state, onnx_name)
    writer.keep(y, writer.reshaped(onnx_name, y.shape))
    writer.keep(valid, writer.reshaped(_part(writer, flags, (0, 1)), valid.shape))


def overlap_add(writer: Writer, operator: TfliteOperator) -> None:
    """SignalOverlapAdd of int16 and float32; incomplete sums are a state."""
    x, y, step = writer.input(operator, 0), writer.output(operator), operator.integer("frame_step")
    kind = _TYPES_OF_T.get(operator.integer("T"), "")
    if kind not in ("INT16", "FLOAT32"):
        raise Unsupported(f"its option T is {operator.integer('T')}; INT16 and FLOAT32 are supported")
    _require((kind, x), (kind, y))
    if len(x.shape) < 2 or not 1 <= step <= x.shape[-1] or y.elements != prod(x.shape[:-1]) * step:
        raise Unsupported(f"frames {list(x.shape)} by steps of {step} do not make {list(y.shape)}")
    _require_one(x.shape[:-2])
    frames, size = x.shape[-2:]
    writer.require_one_run()
    f = Formula(np.float32 if kind == "FLOAT32" else np.int64)
    values, after = signal_functions.overlap_add(f, OverlapAdd(step), frames, size)
    f.result("y", values)
    f.result("after", after)
    state = writer.kept_input(x, (1, 1, size))
    onnx_name, next_state = formula_nodes(
        writer, "OverlapAdd", {"x": writer.raw(x), "state": state}, f, step=step
    )
    writer.declare(onnx_name, (frames, step), x.dtype or "")
    writer.declare(next_state, (1, 1, size), x.dtype or "")
    writer.keep_state(state, next_state)
    writer.keep(y, writer.reshaped(onnx_name, y.shape))


TRANSLATIONS: dict[str, dict[str, Translation]] = {
    "CUSTOM": {
        "SignalDelay": delay,
        "SignalEnergy": energy,
        "SignalFftAutoScale": auto_scale,
        "SignalFilterBank": filter_bank,
        "SignalFilterBankLog": filter_bank_log,
        "SignalFilterBankSpectralSubtraction": noise,
        "SignalFilterBankSquareRoot": filter_bank_root,
        "SignalFramer": framer,
        "SignalIrfft": fourier,
        "SignalOverlapAdd": overlap_add,
        "SignalPCAN": pcan,
        "SignalRfft": fourier,
        "SignalStacker": stacker,
        "SignalWindow": window,
    }
}
"""Translation of each custom operator."""


def _run_count(writer: Writer, valid: TfliteTensor, op: RunCount) -> str:
    """The flags of RunCount; its state is named after the tensor `valid`."""
    writer.require_one_run()
    state = writer.kept_input(replace(valid, kind="INT32"), (1,))
    f = Formula()
    flags, after = signal_functions.run_count(f, op)
    f.result("y", flags)
    f.result("after", after)
    onnx_name, next_state = formula_nodes(
        writer, "RunCount", {"state": state}, f, first=op.first, period=op.period
    )
    writer.declare(onnx_name, (2,), "bool")
    writer.declare(next_state, (1,), "int32")
    writer.keep_state(state, next_state)
    return onnx_name


def _queue(writer: Writer, x: TfliteTensor, length: int) -> str:
    """A queue of the last `length` samples along the last dimension, zeros before the first sample."""
    axis, count = len(x.shape) - 1, x.shape[-1]
    shape = (*x.shape[:-1], length)
    state = writer.kept_input(x, shape)
    newest = writer.reshaped(writer.raw(x), x.shape)
    queue = queue_node(writer, (newest, state), axis, count)
    writer.declare(queue, shape, x.dtype or "")
    writer.keep_state(state, queue)
    return queue


def _part(writer: Writer, name: str, ends: tuple[int, int], axis: int = 0) -> str:
    limits = [writer.int64([value]) for value in (*ends, axis)]
    return writer.part("Slice", [name, *limits])


def _finish(writer: Writer, tensor: TfliteTensor, name: str) -> None:
    """Define the result of a new node, which may have another shape, as a tensor of the file."""
    writer.declare(name, tensor.shape, tensor.dtype or "")
    writer.keep(tensor, name)


def _constant(writer: Writer, operator: TfliteOperator, position: int, label: str) -> TfliteTensor:
    tensor = writer.input(operator, position)
    if tensor.data is None:
        raise Unsupported(f"{label} must be constant")
    return tensor


def _require(*kinds: tuple[str, TfliteTensor]) -> None:
    for kind, tensor in kinds:
        if tensor.kind != kind:
            raise Unsupported(f"tensor {tensor.label} is {tensor.kind}; it must be {kind}")


def _require_one(sizes: Sequence[int]) -> None:
    if prod(sizes) != 1:
        raise Unsupported(f"it works on {prod(sizes)} signals at once; give each one a separate operator")
