"""Quantisation of a float model by samples to an int8 model in QDQ format, with a report of the accuracy
lost.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto

from mcudeploy.boards.board import Board
from mcudeploy.common.errors import ModelError, UsageError
from mcudeploy.common.files import same_file, work_folder, write_file
from mcudeploy.common.progress import SILENT, Progress
from mcudeploy.common.solver import require_solver
from mcudeploy.common.text import printable
from mcudeploy.extensions.quantization import agreement as compare
from mcudeploy.extensions.quantization import ort_quantizer as library
from mcudeploy.extensions.quantization import weights
from mcudeploy.extensions.quantization.adaptive_rounding import round_adaptively
from mcudeploy.extensions.quantization.agreement import Floats
from mcudeploy.extensions.quantization.data import (
    Array,
    Sample,
    Samples,
    class_numbers,
    load_labels,
    open_samples,
)
from mcudeploy.extensions.quantization.float_model import (
    FloatModel,
    FloatNode,
    excluded,
    float_nodes,
    read_float,
)
from mcudeploy.extensions.quantization.mixed_precision import fewest_bytes
from mcudeploy.extensions.quantization.mixing import Mixer, MixtureSource
from mcudeploy.extensions.quantization.ort_quantizer import (
    METHODS,
    Calibration,
    Integers,
    Method,
)
from mcudeploy.extensions.quantization.quantized_model import (
    FEWEST,
    Accuracy,
    ActivationChoice,
    MethodResult,
    MixturePoint,
    QuantizedModel,
    Rounding,
    SampleCounts,
    WeightChoice,
)
from mcudeploy.extensions.quantization.sample_faults import (
    SampleFaults,
    find_faults,
    input_facts,
    output_fault,
)
from mcudeploy.extensions.quantization.value_noise import NoiseMeter, int4_sizes
from mcudeploy.frontend.onnx.foreign_nodes import foreign_nodes
from mcudeploy.frontend.onnx.input_choices import InputChoices
from mcudeploy.frontend.onnx.shapes import Shapes
from mcudeploy.frontend.onnx.tensors import external_files
from mcudeploy.frontend.parsing import parse

_HELD_OUT = 0.25
_LAYER_SAMPLES, _MIXED_SAMPLES = 32, 150
_WITHIN = 3.0
"""Decibels less than with int16 that a mixture may have by default."""
_NEAR, _CLEARLY = 1.0, 3.0
"""Decibels: calibration samples decide between methods this near; an outlier that is reported costs more."""


@dataclass(frozen=True, slots=True)
class QuantizeRequest:
    """Options of the user. `samples` limits the samples for calibration and for comparison; `shapes` are
    input shapes; `keep_float` names nodes or operators. Activations "auto" are int8 or int16, for the least
    cycles on `board` and at most `within` decibels less than with int16, 3 by default. So are weights "auto"
    int8 or int4, for the fewest bytes.
    """

    data: Path
    labels: Path | None = None
    method: Literal["auto", "minmax", "entropy", "percentile"] = "auto"
    samples: int = 200
    seed: int = 0
    keep_float: tuple[str, ...] = ()
    activations: ActivationChoice = "int8"
    weights: WeightChoice = "int8"
    rounding: Rounding = "nearest"
    shapes: Shapes = field(default_factory=dict)
    board: Board | None = None
    within: float | None = None

    @property
    def integers(self) -> Integers:
        """The integers of values of one type, with int8 weights: int16 before layers are chosen."""
        return Integers("int16" if self.activations == "auto" else self.activations)


@dataclass(frozen=True, slots=True, eq=False)
class _SamplePart:
    """A subset of the samples, read on each iteration."""

    samples: Samples
    indices: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.indices)

    def __iter__(self) -> Iterator[Sample]:
        return map(self.load, range(len(self)))

    def load(self, number: int) -> Sample:
        """Read a sample of the part."""
        return self.samples.load(int(self.indices[number]))

    def name(self, number: int) -> str:
        """Return the name of a sample of the part."""
        return self.samples.name(int(self.indices[number]))


def quantize_model(
    path: Path, request: QuantizeRequest, destination: Path, progress: Progress = SILENT
) -> QuantizedModel:
    """Quantise a float model, and write it to `destination`.

    Raises ModelError for a model that is already quantised or that boards cannot run, and UsageError for data
    that do not fit it. Writes nothing before all results are known.
    """
    _require_board(request)
    progress.stage(f"reading {path.name}")
    _require_no_weights_in(path, destination)
    model = read_float(path, InputChoices(request.shapes))
    _require_known(model.proto)
    samples = open_samples(request.data, model.inputs)
    labels = _labels(request, samples)
    name = compare.class_output(model.inputs, model.outputs)
    if labels is not None:
        _require_classes(model, name, labels, request)
    calibration, comparison = _split(samples, request)
    progress.stage("reading samples")
    indices = sorted({int(index) for part in (calibration, comparison) for index in part.indices})
    faults = find_faults(samples, indices, str(request.data), progress.advance)
    with work_folder("mcudeploy-quantize-") as folder:
        prepared = library.prepare(model.proto, folder)
        floats = Floats(prepared, [it.name for it in model.outputs], name)
        work = _Work(request, folder, floats, calibration, comparison, progress)
        results, left = work.by_methods()
        results = work.ties_compared(results)
        best, results = work.refined(results)
        mixtures: Sequence[MixturePoint] = ()
        if request.activations == "auto":
            best, models, mixtures = work.mixed(best)
            results, left = [*results, *models], float_nodes(best.path)
        without = work.without(best, faults)
        progress.stage("comparing layers")
        shown = _SamplePart(samples, comparison.indices[:_LAYER_SAMPLES])
        layers = compare.layers(prepared, best.proto, best.path, shown)
        content = best.path.read_bytes()
        wide = weights.outliers(onnx.load(prepared))
        right = None if labels is None else labels[comparison.indices]
        facts = input_facts(best.path, chain(calibration, comparison))
    write_file(destination, content)
    return QuantizedModel(
        destination,
        best,
        results,
        layers,
        left,
        wide,
        SampleCounts(samples.count, len(calibration), len(comparison)),
        _accuracy(labels, work.classes, best.agreement.classes, comparison),
        len(model.proto.SerializeToString()),
        len(content),
        tuple(model.notes),
        faults,
        without,
        facts,
        output_fault(floats, work.classes, comparison.load, right),
        mixtures,
    )


def _require_board(request: QuantizeRequest) -> None:
    """Raise UsageError for options of mixtures without mixtures, and for mixtures without a board's costs."""
    if "auto" in (request.activations, request.weights):
        require_solver("auto")
    elif request.within is not None:
        raise UsageError("--within limits a choice for each layer: add --activations auto or --weights auto")
    if request.activations != "auto":
        if request.board is not None:
            raise UsageError("--board chooses int8 or int16 for each layer: add --activations auto")
    elif request.board is None:
        raise UsageError("--activations auto weighs cycles and RAM on a board: add --board NAME")
    elif request.board.is_host:
        raise UsageError(
            f"--activations auto needs the cycles of kernels, which {request.board.name} does not state: "
            "name a microcontroller's board"
        )


def _labels(request: QuantizeRequest, samples: Samples) -> NDArray[np.int64] | None:
    """The class of each sample, from the file of labels or else from the samples' own."""
    if request.labels is not None:
        return load_labels(request.labels, samples.count)
    within = samples.labels
    return None if within is None else class_numbers(within, samples.count, str(request.data))


def _require_known(proto: ModelProto) -> None:
    if foreign := foreign_nodes(proto):
        node = foreign[0]
        raise ModelError(
            f"{printable(node.name)!r} is {node.domain}::{printable(node.op_type)} of an extension, which "
            "ONNX Runtime cannot calibrate: quantise the model without it (onnx.utils.extract_model cuts it "
            "off), or where you train"
        )


def _require_no_weights_in(path: Path, destination: Path) -> None:
    """Raise UsageError for a destination that contains weights of the float model."""
    if any(same_file(destination, file) for file in external_files(parse(path).proto.graph, path)):
        raise UsageError(f"--output {destination} holds weights of {path.name}: choose another file")


@dataclass(slots=True)
class _Work:
    """Common data of all methods, and their ranges. `classes` are the float model's, once it has run."""

    request: QuantizeRequest
    folder: Path
    floats: Floats
    calibration: _SamplePart
    comparison: _SamplePart
    progress: Progress
    classes: Array | None = None
    ranges: dict[Method, Any] = field(default_factory=dict)

    @property
    def prepared(self) -> Path:
        """The float model that is quantised."""
        return self.floats.path

    @property
    def in_float(self) -> list[str]:
        """The nodes that stay float."""
        return excluded(self.prepared, self.request.keep_float)

    def by_methods(self) -> tuple[list[MethodResult], list[FloatNode]]:
        """Quantise by all requested methods; return the int8 models and their float operators."""
        request, floats, in_float = self.request, self.floats, self.in_float
        library.require_numbers(self.prepared, in_float)
        calibration = Calibration(self.prepared, self.folder)
        wanted = METHODS if request.method == "auto" else (request.method,)
        results: list[MethodResult] = []
        left: list[FloatNode] = []
        for method in METHODS:
            if method != "minmax" and method not in wanted:
                continue
            ranges = calibration.ranges(method, self._staged(f"calibrating: {method}", self.calibration))
            if method not in wanted:
                continue
            self.ranges[method] = ranges
            proto, dead = library.insert(self.prepared, ranges, in_float, request.integers)
            path = self.folder / f"{method}.onnx"
            onnx.save(proto, path)
            if not results:  # report unsupported operators before the other methods take their time
                left = float_nodes(path)
                self.progress.stage("running the float model")
                self.classes = floats.run(self.comparison, self._advance)
            self.progress.stage(f"comparing: {method}")
            agreement = floats.against(path, self.comparison, self._advance)
            activations = request.integers.activations
            results.append(MethodResult(method, proto, path, agreement, dead, activations=activations))
        return results, left

    def refined(self, results: list[MethodResult]) -> tuple[MethodResult, list[MethodResult]]:
        """Return the best model, with the requested weights and rounding, and all models."""
        start = max(results, key=_preference)
        best, models = self._finished(start, self.request.integers)
        return best, [*(it for it in results if it.method != start.method), *models]

    def _finished(self, start: MethodResult, integers: Integers) -> tuple[MethodResult, list[MethodResult]]:
        """Return a model with the requested weights and rounding, and all models on the way."""
        kind, rounding = self.request.weights, self.request.rounding
        if self.request.activations == kind == "auto" and integers.mixture is None:
            kind, rounding = "int8", "adaptive"  # those of the mixture are chosen, not of int16
        if kind == "auto":
            return self._some_in_int4(start, integers)
        if kind != "int8":
            integers = replace(integers, weights=kind)
            proto, _ = library.insert(self.prepared, self.ranges[start.method], self.in_float, integers)
            best = self._rounded(replace(start, proto=proto, weights=kind, all_decibels=None))
            return best, [start, best]
        if rounding == "nearest":
            return start, [start]
        pair = self._on_all_samples((start, self._rounded(start)))
        return max(pair, key=_least_noise), pair

    def _some_in_int4(
        self, start: MethodResult, integers: Integers
    ) -> tuple[MethodResult, list[MethodResult]]:
        """Return a model with int4 weights where these cost little, and that with int8 weights.

        The choice is repeated with half the noise if the model has more than allowed; else all stay int8.
        """
        request, ranges, in_float = self.request, self.ranges[start.method], self.in_float

        def rounded(nodes: tuple[str, ...] | None) -> MethodResult:
            own = replace(integers, weights="int4", int4_nodes=nodes)
            proto, _ = library.insert(self.prepared, ranges, in_float, own)
            narrow = replace(start, proto=proto, weights="auto", int4_nodes=nodes or (), all_decibels=None)
            return self._rounded(narrow)

        whole, narrow, meter = self._rounded(start), rounded(None), self._meter()
        self.progress.stage("choosing int4 or int8")
        reference = meter.agreement(whole.proto)
        budgets = meter.budgets(reference, _WITHIN if request.within is None else request.within)
        sizes = int4_sizes(narrow.proto)
        noises = {it: meter.noise_of_weights(narrow.proto, it) for it in sizes}
        for share in (1.0, 0.5):
            nodes = fewest_bytes(sizes, noises, {name: share * it for name, it in budgets.items()})
            if not nodes:
                break
            best = rounded(nodes)
            outputs = meter.agreement(best.proto).outputs
            if all(outputs[it].noise <= reference.outputs[it].noise + budgets[it] for it in budgets):
                return best, [start, whole, best]
        return whole, [start, whole]

    def _meter(self) -> NoiseMeter:
        part = replace(self.calibration, indices=self.calibration.indices[:_MIXED_SAMPLES])
        return NoiseMeter(onnx.load(self.prepared), list(part), self.folder / "one.onnx")

    def mixed(self, int16: MethodResult) -> tuple[MethodResult, list[MethodResult], list[MixturePoint]]:
        """Return the mixture of int8 and int16 that is wanted, both its roundings, and all mixtures.

        `int16` is the int16 model with the requested weights and rounding, which may be the only choice.
        """
        request, meter, others = self.request, self._meter(), dict(self.ranges)
        assert request.board is not None
        self.progress.stage("comparing int8 with int16")
        ranges = (others.pop(int16.method), *others.values())
        mixer = Mixer.of(
            MixtureSource(self.prepared, ranges, self.in_float, request.board),
            meter,
            meter.agreement(int16.proto),
            self.progress.advance,
        )
        self.progress.stage("choosing int8 or int16")
        within = _WITHIN if request.within is None else request.within
        chosen, mixtures = mixer.mixtures(within)
        points, path = [], self.folder / "mixed.onnx"
        for it in sorted(mixtures, key=lambda it: len(it.int16_nodes)):
            onnx.save(it.proto, path)
            agreement = self.floats.against(path, self.comparison, lambda _: None)
            points.append(MixturePoint(it, agreement, it.int16_nodes == chosen.int16_nodes))
        if points[-1].chosen:  # int16 throughout
            return int16, [], points
        onnx.save(chosen.proto, path)
        agreement = next(it.agreement for it in points if it.chosen)
        start = MethodResult(int16.method, chosen.proto, path, agreement, int16.dead, activations="auto")
        best, models = self._finished(start, Integers(mixture=chosen.mixture))
        return best, models, points

    def _rounded(self, best: MethodResult) -> MethodResult:
        """Round the weights of a quantised model again, by the calibration samples."""
        self.progress.stage("rounding weights")
        samples, prepared = list(self.calibration), onnx.load(self.prepared)
        proto = round_adaptively(best.proto, prepared, samples, self.folder, self.progress.advance)
        path = self.folder / f"rounded {len([*self.folder.iterdir()])}.onnx"
        onnx.save(proto, path)
        self.progress.stage("comparing: rounded weights")
        agreement = self.floats.against(path, self.comparison, self._advance)
        return replace(best, proto=proto, path=path, agreement=agreement, rounding="adaptive")

    def ties_compared(self, results: list[MethodResult]) -> list[MethodResult]:
        """Compare methods within 1 dB of the best on the calibration samples too."""
        share, decibels = max(one.agreement.rank for one in results)
        near = [it for it in results if it.agreement.rank >= (share, decibels - _NEAR)]
        if len(near) < 2 or math.isinf(decibels):
            return results
        self.progress.stage("comparing methods on all samples")
        compared = {it.method: it for it in self._on_all_samples(near)}
        return [compared.get(it.method, it) for it in results]

    def _on_all_samples(self, results: Sequence[MethodResult]) -> list[MethodResult]:
        """Compare models on the calibration samples too, if there are others than those compared."""
        if not self._others():
            return list(results)
        others = replace(self.calibration, indices=np.array(self._others(), np.int64))
        more = Floats(self.prepared, self.floats.names, self.floats.class_name)
        more.run(others, lambda _: None)
        agreements = [more.against(it.path, others, lambda _: None) for it in results]
        return [
            replace(it, all_decibels=it.agreement.decibels_with(agreement))
            for it, agreement in zip(results, agreements, strict=True)
        ]

    def _others(self) -> list[int]:
        """The calibration samples that are not compared."""
        compared = set(self.comparison.indices.tolist())
        return [int(index) for index in self.calibration.indices if int(index) not in compared]

    def without(self, best: MethodResult, faults: SampleFaults) -> float | None:
        """The signal to noise ratio without the samples far beyond the others, if it is clearly better."""
        outliers = [it.number for it in faults.far]
        parts = [
            replace(part, indices=part.indices[~np.isin(part.indices, outliers)])
            for part in (self.calibration, self.comparison)
        ]
        if not outliers or not all(map(len, parts)) or best.weights != "int8" or best.activations == "auto":
            return None
        self.progress.stage("comparing without outliers")
        calibration, path = Calibration(self.prepared, self.folder), self.folder / "without.onnx"
        for method in dict.fromkeys(("minmax", best.method)):  # other methods begin with the ranges of minmax
            ranges = calibration.ranges(method, parts[0])
        onnx.save(library.insert(self.prepared, ranges, self.in_float, self.request.integers)[0], path)
        floats = Floats(self.prepared, self.floats.names, None)
        floats.run(parts[1], lambda _: None)
        decibels = floats.against(path, parts[1], lambda _: None).decibels
        return decibels if decibels > best.agreement.decibels + _CLEARLY else None

    def _advance(self, done: int) -> None:
        self.progress.advance(done, len(self.comparison))

    def _staged(self, stage: str, part: _SamplePart) -> Iterator[Sample]:
        self.progress.stage(stage)
        for done, sample in enumerate(part, 1):
            yield sample
            self.progress.advance(done, len(part))


def _require_classes(
    model: FloatModel, name: str | None, labels: NDArray[np.int64], request: QuantizeRequest
) -> None:
    """Raise UsageError if no output can be compared with the labels, or a label is not one of its classes."""
    if name is None:
        shapes = ", ".join(str(list(info.shape or ())) for info in model.outputs)
        raise UsageError(f"--labels needs an output that is a vector of classes; the model's have {shapes}")
    shape = next(info.shape for info in model.outputs if info.name == name) or ()
    if labels.max() >= max(shape):
        raise UsageError(
            f"{request.labels or request.data} has the label {labels.max()}; "
            f"the model has {max(shape)} classes, from 0"
        )


def _split(samples: Samples, request: QuantizeRequest) -> tuple[_SamplePart, _SamplePart]:
    """Split the samples for calibration and comparison, in an order drawn from the seed."""
    order = np.random.default_rng(request.seed).permutation(samples.count)
    if samples.count < FEWEST:
        return _SamplePart(samples, order[: request.samples]), _SamplePart(samples, order)
    held_out = min(request.samples, max(1, int(samples.count * _HELD_OUT)))
    calibration = order[held_out:][: request.samples]
    return _SamplePart(samples, calibration), _SamplePart(samples, order[:held_out])


def _preference(result: MethodResult) -> tuple[float, float, float]:
    """Sort key, the best last: by the class, then the noise over all samples if that was needed."""
    share, decibels = result.agreement.rank
    return (share, -math.inf if result.all_decibels is None else result.all_decibels, decibels)


def _least_noise(result: MethodResult) -> float:
    """Sort key, the best last: the signal to noise ratio over all compared samples."""
    return result.agreement.decibels if result.all_decibels is None else result.all_decibels


def _accuracy(
    labels: NDArray[np.int64] | None, wanted: Array | None, computed: Array | None, part: _SamplePart
) -> Accuracy | None:
    if labels is None or wanted is None or computed is None:
        return None
    right = labels[part.indices]
    return Accuracy(compare.share_of_equal(wanted, right), compare.share_of_equal(computed, right))
