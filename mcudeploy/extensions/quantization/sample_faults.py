"""Faults of calibration samples: constant samples, copies, and samples with values far beyond the others."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mcudeploy.common.errors import UsageError
from mcudeploy.common.text import count_text, printable
from mcudeploy.extensions.quantization.agreement import FloatOutputs
from mcudeploy.extensions.quantization.data import Array, Sample, Samples
from mcudeploy.frontend.load import load
from mcudeploy.verify.data_faults import InputFacts, InputTally, one_class, same_arrays, unchanged

_REPORTED_SHARE = 0.1
"""Share of constant samples, or of copies, above which they are reported. Some are real, such as silence."""

_FAR, _LEAST_SAMPLES, _FAR_SHARE = 8.0, 4, 20
"""A sample is far beyond the others if its largest value is over 8 times theirs; at most one sample in 20 is,
and only among 4 samples or more.
"""

_SMALL = 8
"""Number of elements below which an input may well be constant."""


@dataclass(frozen=True, slots=True)
class SampleFault:
    """A sample, by number and name, and its input with the fault.

    `value`: of all elements if constant, else of the largest element; `times`: that value as a multiple of
    the largest value of the other samples.
    """

    number: int
    sample: str
    input: str
    value: float
    times: float = 1.0


@dataclass(frozen=True, slots=True)
class SampleFaults:
    """Faults among `total` samples. `copies`: each with the earlier sample that it equals."""

    total: int
    constant: Sequence[SampleFault] = ()
    copies: Sequence[tuple[str, str]] = ()
    far: Sequence[SampleFault] = ()


def find_faults(
    samples: Samples, indices: Sequence[int], source: str, advance: Callable[[int, int], None]
) -> SampleFaults:
    """Read these samples, and report their faults. `source`: the name of the data in messages.

    Raises UsageError for a file that does not fit, and if all values of all samples are 0.
    """
    peaks: dict[str, list[float]] = {}
    constant: list[SampleFault] = []
    copies: list[tuple[str, str]] = []
    first: dict[bytes, int] = {}
    for done, index in enumerate(indices, 1):
        sample = samples.load(index)
        original = first.setdefault(_digest(sample), index)
        if original != index:
            copies.append((samples.name(index), samples.name(original)))
        for name, value in sample.items():
            flat = value.reshape(-1)
            peaks.setdefault(name, []).append(float(flat[np.abs(flat).argmax()]))
            if flat.size >= _SMALL and (flat == flat[0]).all():
                constant.append(SampleFault(index, samples.name(index), name, float(flat[0])))
        advance(done, len(indices))
    if not any(map(any, peaks.values())):
        raise UsageError(
            f"{source}: all values of {', '.join(repr(printable(it)) for it in peaks)} are 0 in "
            f"{count_text(len(indices), 'sample')}, so no tensor has a range. Give samples from real use, "
            "prepared as in training"
        )
    most = _REPORTED_SHARE * len(indices)
    return SampleFaults(
        len(indices),
        constant if len(constant) > most else (),
        copies if len(copies) > most else (),
        [fault for name, values in peaks.items() for fault in _far(samples, indices, name, values)],
    )


def _digest(sample: Sample) -> bytes:
    digest = hashlib.sha256()
    for value in sample.values():
        digest.update(np.ascontiguousarray(value).tobytes())
    return digest.digest()


def _far(samples: Samples, indices: Sequence[int], name: str, peaks: Sequence[float]) -> list[SampleFault]:
    """The samples whose largest magnitude is far beyond that of nearly all samples; `peaks`: by sample."""
    if len(peaks) < _LEAST_SAMPLES:
        return []
    sizes = sorted(map(abs, peaks), reverse=True)
    usual = sizes[max(1, len(sizes) // _FAR_SHARE)]
    return [
        SampleFault(index, samples.name(index), name, peak, abs(peak) / usual)
        for index, peak in zip(indices, peaks, strict=True)
        if usual > 0 and abs(peak) > _FAR * usual
    ]


def fault_notes(faults: SampleFaults, decibels: float, without: float | None) -> list[str]:
    """Describe faults. `without`: the signal to noise ratio without samples far beyond the others."""
    notes = []
    if faults.constant:
        first = faults.constant[0]
        notes.append(
            f"{len(faults.constant):,} of {count_text(faults.total, 'sample')} have one value in all "
            f"elements of {printable(first.input)!r} ({printable(first.sample)}: {first.value:g}): their "
            "ranges fit no other samples. Give samples from real use"
        )
    if faults.copies:
        copy, original = faults.copies[0]
        notes.append(
            f"{len(faults.copies):,} of {count_text(faults.total, 'sample')} are copies of others "
            f"({printable(copy)} of {printable(original)}): they add nothing to the ranges"
        )
    if without is not None:
        named = ", ".join(
            f"{printable(it.sample)} has {it.value:.6g} in {printable(it.input)!r}, {it.times:,.0f} times "
            "the largest of the others"
            for it in faults.far[:3]
        )
        notes.append(f"{named}: {decibels:.1f} dB with it, {without:.1f} dB without. Remove or clip it")
    return notes


def input_facts(path: Path, samples: Iterable[Sample]) -> list[InputFacts]:
    """Return how the values of samples fit the ranges of the int8 model's inputs."""
    graph = load(path)
    tally = InputTally(graph)
    for sample in samples:
        for io in graph.own_inputs():
            tally.add(io, sample[io.name])
    return tally.facts()


def output_fault(
    floats: FloatOutputs, classes: Array | None, load: Callable[[int], Sample], labels: Array | None
) -> str | None:
    """Report a float model whose class, or whose outputs, are the same for all samples; None for others.

    `load` reads the samples that the model ran on, and `labels` are the labels of these samples.
    """
    name = floats.class_name
    if classes is not None and name is not None:
        scores = np.array([values[name].reshape(-1) for values in floats.values])
        fault = one_class(classes, labels, scores)
        if fault is not None:
            return fault
    keys = [b"".join(value.tobytes() for value in values.values()) for values in floats.values]
    return unchanged(keys, lambda one, other: same_arrays(load(one), load(other)))
