"""The flow of `quantize`: a float model becomes integers by samples, and is compared with the float model."""

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
from mcudeploy.extensions.quantization.agreement import FloatOutputs
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
    FEWEST_TO_SPLIT,
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
"""Share of the samples that are held out of the calibration, for the comparison."""
_LAYER_SAMPLES, _MIXED_SAMPLES = 32, 150
"""Limits of the samples for the comparison of layers, and for the choice of types."""
_WITHIN = 3.0
"""Decibels that a choice of types for each layer may lose by default."""
_NEAR, _CLEARLY = 1.0, 3.0
"""Decibels. All samples decide between methods within the first; reported outliers cost over the second."""


@dataclass(frozen=True, slots=True)
class QuantizeRequest:
    """Options of the user. `samples`: limit of the samples for calibration, and of those for comparison.
    `shapes`: of inputs. `keep_float`: names of nodes (globs), or operators.

    Activations "auto" are int8 or int16 by layer, for the least cycles on `board`; weights "auto" are int8 or
    int4, for the fewest bytes. Both lose at most `within` decibels, 3 by default, from int16 or int8.
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
        """The integers of a model with activations of one type and int8 weights; for "auto" int16."""
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
    class_output = compare.class_output(model.inputs, model.outputs)
    if labels is not None:
        _require_classes(model, class_output, labels, request)
    calibration, comparison = _split(samples, request)
    progress.stage("reading samples")
    indices = sorted({int(index) for part in (calibration, comparison) for index in part.indices})
    faults = find_faults(samples, indices, str(request.data), progress.advance)
    with work_folder("mcudeploy-quantize-") as folder:
        prepared = library.prepare(model.proto, folder)
        floats = FloatOutputs(prepared, [it.name for it in model.outputs], class_output)
        work = _Quantization(request, folder, floats, calibration, comparison, progress)
        results, in_float = work.by_methods()
        results = work.ties_compared(results)
        best, results = work.refined(results)
        mixtures: Sequence[MixturePoint] = ()
        if request.activations == "auto":
            best, models, mixtures = work.mixed(best)
            results, in_float = [*results, *models], float_nodes(best.path)
        without_far = work.decibels_without(best, faults)
        progress.stage("comparing layers")
        layer_samples = _SamplePart(samples, comparison.indices[:_LAYER_SAMPLES])
        layers = compare.layers(prepared, best.proto, best.path, layer_samples)
        content = best.path.read_bytes()
        outliers = weights.outliers(onnx.load(prepared))
        facts = input_facts(best.path, chain(calibration, comparison))
    write_file(destination, content)
    compared_labels = None if labels is None else labels[comparison.indices]
    return QuantizedModel(
        destination=destination,
        best=best,
        results=results,
        layers=layers,
        float_nodes=in_float,
        outliers=outliers,
        samples=SampleCounts(samples.count, len(calibration), len(comparison)),
        accuracy=_accuracy(compared_labels, work.classes, best.agreement.classes),
        float_bytes=len(model.proto.SerializeToString()),
        int8_bytes=len(content),
        model_notes=tuple(model.notes),
        faults=faults,
        without_far=without_far,
        inputs=facts,
        output_fault=output_fault(floats, work.classes, comparison.load, compared_labels),
        mixtures=mixtures,
    )


def _require_board(request: QuantizeRequest) -> None:
    """Raise UsageError for --board and --within without "auto", and for "auto" without a board's costs."""
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
    """The class of each sample, from the file of labels or else from the file of samples."""
    if request.labels is not None:
        return load_labels(request.labels, samples.count)
    if samples.labels is None:
        return None
    return class_numbers(samples.labels, samples.count, str(request.data))


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
class _Quantization:
    """The steps of a quantisation, and their common data.

    `classes`: of the compared samples by the float model, once it has run; `ranges`: by calibration method.
    """

    request: QuantizeRequest
    folder: Path
    floats: FloatOutputs
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
        """Quantise by all requested methods; return the quantised models and their float operators."""
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
        """Return the best of these models, with the requested weights and rounding, and all models."""
        start = max(results, key=_preference)
        best, models = self._finished(start, self.request.integers)
        return best, [*(it for it in results if it.method != start.method), *models]

    def _finished(self, start: MethodResult, integers: Integers) -> tuple[MethodResult, list[MethodResult]]:
        """Return a model with the requested weights and rounding, and all models on the way."""
        kind, rounding = self.request.weights, self.request.rounding
        if self.request.activations == kind == "auto" and integers.mixture is None:
            kind, rounding = "int8", "adaptive"  # int4 is chosen later, for the mixture
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
        """Return a model with int4 weights where these cost little, and all models on the way.

        A model with more noise than allowed is chosen again for half the noise; if that fails, all weights
        stay int8.
        """
        request, ranges, in_float = self.request, self.ranges[start.method], self.in_float

        def with_int4(nodes: tuple[str, ...] | None) -> MethodResult:
            some_int4 = replace(integers, weights="int4", int4_nodes=nodes)
            proto, _ = library.insert(self.prepared, ranges, in_float, some_int4)
            result = replace(start, proto=proto, weights="auto", int4_nodes=nodes or (), all_decibels=None)
            return self._rounded(result)

        int8, int4, meter = self._rounded(start), with_int4(None), self._meter()
        self.progress.stage("choosing int4 or int8")
        reference = meter.agreement(int8.proto)
        budgets = meter.budgets(reference, _WITHIN if request.within is None else request.within)
        sizes = int4_sizes(int4.proto)
        noises = {it: meter.noise_of_weights(int4.proto, it) for it in sizes}
        for share in (1.0, 0.5):
            nodes = fewest_bytes(sizes, noises, {name: share * it for name, it in budgets.items()})
            if not nodes:
                break
            best = with_int4(nodes)
            outputs = meter.agreement(best.proto).outputs
            if all(outputs[it].noise <= reference.outputs[it].noise + budgets[it] for it in budgets):
                return best, [start, int8, best]
        return int8, [start, int8]

    def _meter(self) -> NoiseMeter:
        part = replace(self.calibration, indices=self.calibration.indices[:_MIXED_SAMPLES])
        return NoiseMeter(onnx.load(self.prepared), list(part), self.folder / "one.onnx")

    def mixed(self, int16: MethodResult) -> tuple[MethodResult, list[MethodResult], list[MixturePoint]]:
        """Return the wanted mixture of int8 and int16, its models on the way, and all mixtures.

        `int16`: the int16 model with the requested weights and rounding. It is returned if no layer can be
        int8.
        """
        request, meter, other_ranges = self.request, self._meter(), dict(self.ranges)
        assert request.board is not None
        self.progress.stage("comparing int8 with int16")
        ranges = (other_ranges.pop(int16.method), *other_ranges.values())
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
        if points[-1].chosen:  # all layers in int16
            return int16, [], points
        onnx.save(chosen.proto, path)
        agreement = next(it.agreement for it in points if it.chosen)
        start = MethodResult(int16.method, chosen.proto, path, agreement, int16.dead, activations="auto")
        best, models = self._finished(start, Integers(mixture=chosen.mixture))
        return best, models, points

    def _rounded(self, best: MethodResult) -> MethodResult:
        """Round the weights of a quantised model adaptively, by the calibration samples."""
        self.progress.stage("rounding weights")
        samples, prepared = list(self.calibration), onnx.load(self.prepared)
        proto = round_adaptively(best.proto, prepared, samples, self.folder, self.progress.advance)
        path = self.folder / f"rounded {len([*self.folder.iterdir()])}.onnx"
        onnx.save(proto, path)
        self.progress.stage("comparing: rounded weights")
        agreement = self.floats.against(path, self.comparison, self._advance)
        return replace(best, proto=proto, path=path, agreement=agreement, rounding="adaptive")

    def ties_compared(self, results: list[MethodResult]) -> list[MethodResult]:
        """Compare the methods within 1 dB of the best one on the calibration samples too."""
        share, decibels = max(one.agreement.rank for one in results)
        near = [it for it in results if it.agreement.rank >= (share, decibels - _NEAR)]
        if len(near) < 2 or math.isinf(decibels):
            return results
        self.progress.stage("comparing methods on all samples")
        compared = {it.method: it for it in self._on_all_samples(near)}
        return [compared.get(it.method, it) for it in results]

    def _on_all_samples(self, results: Sequence[MethodResult]) -> list[MethodResult]:
        """Compare models on the calibration samples too, if these are not the compared samples."""
        indices = self.calibration.indices
        others = indices[~np.isin(indices, self.comparison.indices)]
        if not others.size:
            return list(results)
        part = replace(self.calibration, indices=others)
        floats = FloatOutputs(self.prepared, self.floats.names, self.floats.class_name)
        floats.run(part, lambda _: None)
        agreements = [floats.against(it.path, part, lambda _: None) for it in results]
        return [
            replace(it, all_decibels=it.agreement.decibels_with(agreement))
            for it, agreement in zip(results, agreements, strict=True)
        ]

    def decibels_without(self, best: MethodResult, faults: SampleFaults) -> float | None:
        """The signal to noise ratio without the samples far beyond the others; None unless clearly better."""
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
        floats = FloatOutputs(self.prepared, self.floats.names, None)
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
    """The samples for calibration and for comparison, in an order drawn from the seed."""
    order = np.random.default_rng(request.seed).permutation(samples.count)
    if samples.count < FEWEST_TO_SPLIT:
        return _SamplePart(samples, order[: request.samples]), _SamplePart(samples, order)
    held_out = min(request.samples, max(1, int(samples.count * _HELD_OUT)))
    calibration = order[held_out:][: request.samples]
    return _SamplePart(samples, calibration), _SamplePart(samples, order[:held_out])


def _preference(result: MethodResult) -> tuple[float, float, float]:
    """Sort key, the best last: share of equal classes; decibels over all samples if known; decibels."""
    share, decibels = result.agreement.rank
    return (share, -math.inf if result.all_decibels is None else result.all_decibels, decibels)


def _least_noise(result: MethodResult) -> float:
    """Sort key, the best last: the signal to noise ratio, over all samples if known."""
    return result.agreement.decibels if result.all_decibels is None else result.all_decibels


def _accuracy(
    labels: NDArray[np.int64] | None, float_classes: Array | None, int8_classes: Array | None
) -> Accuracy | None:
    if labels is None or float_classes is None or int8_classes is None:
        return None
    return Accuracy(*(compare.share_of_equal(it, labels) for it in (float_classes, int8_classes)))
