"""Wrapper of onnxruntime.quantization: prepare a float model, find the ranges of its tensors, quantise it.

Its calibrators receive one sample at a time, so that memory use does not depend on the number of samples.
"""

from __future__ import annotations

import contextlib
import copy
import io
import logging
import os
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, helper, numpy_helper

from mcudeploy import __version__
from mcudeploy.common.errors import DeployError, ModelError
from mcudeploy.common.text import count_text, first_line, printable
from mcudeploy.extensions.quantization.clip_ranges import DeadClip, Range, clip_ranges
from mcudeploy.extensions.quantization.data import Sample
from mcudeploy.extensions.quantization.weights import output_axis
from mcudeploy.frontend.onnx.protos import attribute_of

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # as in verify/reference.py

import onnxruntime
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantType
from onnxruntime.quantization.calibrate import HistogramCollector, TensorsData, create_calibrator
from onnxruntime.quantization.qdq_quantizer import QDQQuantizer
from onnxruntime.quantization.quant_utils import load_model_with_shape_infer
from onnxruntime.quantization.registry import QDQRegistry, QLinearOpsRegistry
from onnxruntime.quantization.shape_inference import quant_pre_process

Array = NDArray[Any]
Method = Literal["minmax", "entropy", "percentile"]
METHODS: tuple[Method, ...] = ("minmax", "entropy", "percentile")
QUANTIZED_OPS = tuple(sorted({*QDQRegistry, *QLinearOpsRegistry}))
"""Operators that ONNX Runtime can quantise; the others stay float."""

_BINS = {"entropy": 256, "percentile": 2048}
"""Bins of histograms. The library's default for entropy, 128, leaves only one way to form 128 levels; more
than 256 bins take minutes.
"""

_PERCENTILE = 99.99
_LEVELS = 128
_WARNING, _FATAL = 2, 4
Activations = Literal["int8", "int16"]
"""Integers of activations: int8 with zero points, int16 without."""

Weights = Literal["int8", "int4"]
"""Integers of the weights of convolutions and matrix products; other constants are int8."""

_TYPES: dict[Activations, QuantType] = {"int8": QuantType.QInt8, "int16": QuantType.QInt16}
_WEIGHTED = ("Conv", "Gemm", "MatMul")
"""Operators whose weights have the type `Weights`, whatever the type of activations."""
BOUNDED = ("Add", "Conv", "ConvTranspose", "Gemm", "Mul", "Sub")
"""Operators that may run in one step with a Relu or Clip of their result."""
PRODUCER = "mcudeploy"
"""The producer name in quantised files, by which other commands recognise them."""


def prepare(proto: ModelProto, folder: Path) -> Path:
    """Write the prepared model to `folder`: constants are folded, batch norms fused, shapes inferred.

    Every node gets a name. Raises ModelError if ONNX Runtime refuses the model.
    """
    source, prepared = folder / "float.onnx", folder / "prepared.onnx"
    onnx.save(_with_constants(proto), source)
    try:
        with _quiet():
            quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
    except Exception as error:  # onnxruntime has no common base of its errors
        raise ModelError(f"ONNX Runtime does not prepare the model: {first_line(error)}") from error
    model = onnx.load(prepared)
    _fit_biases(model)
    used_names = {node.name for node in model.graph.node}
    for at, node in enumerate(model.graph.node):
        if not node.name:
            node.name = next(
                name
                for name in (f"{node.op_type}_{at}{'_' * more}" for more in range(99))
                if name not in used_names
            )
            used_names.add(node.name)
    onnx.save(model, prepared)
    return prepared


def require_numbers(prepared: Path, in_float: Sequence[str]) -> None:
    """Raise ModelError for a constant with NaN, or weights with infinities, that a node to quantise reads."""
    graph = onnx.load(prepared).graph
    floats = (it for it in graph.initializer if it.data_type == onnx.TensorProto.FLOAT)
    arrays = {it.name: numpy_helper.to_array(it) for it in floats}
    nodes = [it for it in graph.node if it.op_type in QUANTIZED_OPS and it.name not in in_float]
    kinds = (("NaN", np.isnan, QUANTIZED_OPS), ("infinite value", np.isinf, _WEIGHTED))
    for node, (noun, wrong, ops) in product(nodes, kinds):
        for name in node.input if node.op_type in ops else ():
            count = int(wrong(arrays[name]).sum()) if name in arrays else 0
            if count:
                raise ModelError(
                    f"{node.op_type} {printable(node.name)!r}: its constant {printable(name)!r} has "
                    f"{count_text(count, noun)}, which no integer stands for: train or export the model again"
                )


def _fit_biases(model: ModelProto) -> None:
    """Rewrite biases for ONNX Runtime's quantiser, which takes a vector with one scale for each channel.

    The bias of a grouped transposed convolution becomes a separate Add, since its weights have a scale for
    each group. So does a bias of several rows. The bias row of a Gemm becomes a vector, multiplied by the
    node's beta, which the quantiser would apply to the scale alone.
    """
    nodes = list(model.graph.node)
    del model.graph.node[:]
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for unchanged in nodes:
        node = model.graph.node.add()
        node.CopyFrom(unchanged)
        weights, bias = (constants.get(name) for name in (*node.input, "", "", "")[1:3])
        fitted = None if weights is None or bias is None else _fitted_bias(node, weights, bias)
        if fitted is None:
            continue
        output, name = node.output[0], f"{node.output[0]}/bias"
        model.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(fitted), name))
        for item in node.attribute:
            if item.name == "beta":
                item.f = 1.0
        if fitted.ndim == 1:
            node.input[2] = name
            continue
        del node.input[2:]
        node.output[0] = f"{output}/without bias"
        added = helper.make_node("Add", [node.output[0], name], [output], f"{node.name}/bias")
        model.graph.node.append(added)


def _fitted_bias(node: NodeProto, weights: Array, bias: Array) -> Array | None:
    """The new bias: a vector of the channels, or the operand of a separate Add; None if the old one fits."""
    if node.op_type == "ConvTranspose" and attribute_of(node, "group", 1) > 1:
        return bias.reshape(-1, *(1,) * (weights.ndim - 2))
    if node.op_type != "Gemm":
        return None
    beta, channels = attribute_of(node, "beta", 1.0), weights.shape[output_axis(node)]
    if beta == 1 and bias.shape == (channels,):
        return None
    scaled = (beta * bias).astype(bias.dtype)
    is_row = bias.ndim < 2 or len(bias) == 1
    return np.broadcast_to(scaled.reshape(-1), channels) if is_row else scaled


def _with_constants(proto: ModelProto) -> ModelProto:
    """Remove inputs with a value: older exporters list weights as inputs, which prevents quantisation."""
    model = ModelProto()
    model.CopyFrom(proto)
    constants = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in constants]
    if len(inputs) < len(model.graph.input):
        del model.graph.input[:]
        model.graph.input.extend(inputs)
        model.ir_version = max(model.ir_version, 4)  # the first version that separates constants from inputs
    return model


class Calibration:
    """Finds the ranges of a prepared model's tensors, by each method in turn."""

    def __init__(self, prepared: Path, folder: Path) -> None:
        self._prepared = prepared
        self._augmented = str(folder / "augmented.onnx")
        self._minmax: Any = None

    def ranges(self, method: Method, samples: Iterable[Sample]) -> TensorsData:
        """The range of every tensor over all samples. "minmax" comes first: histograms need its ranges.
        Raises ModelError if ONNX Runtime fails.
        """
        try:
            with _quiet():
                ranges = self._computed_ranges(method, samples)
        except DeployError:  # of a sample that can no longer be read
            raise
        except Exception as error:  # as in prepare
            raise ModelError(f"ONNX Runtime does not calibrate by {method}: {first_line(error)}") from error
        if method == "minmax":
            self._minmax = ranges
        return ranges

    def _computed_ranges(self, method: Method, samples: Iterable[Sample]) -> TensorsData:
        kind = {
            "minmax": CalibrationMethod.MinMax,
            "entropy": CalibrationMethod.Entropy,
            "percentile": CalibrationMethod.Percentile,
        }[method]
        calibrator = create_calibrator(
            self._prepared,
            list(QUANTIZED_OPS),
            augmented_model_path=self._augmented,
            calibrate_method=kind,
            extra_options={"symmetric": False},
        )
        if method != "minmax":
            calibrator.collector = self._histograms(method)
        for sample in samples:
            calibrator.collect_data(_CalibrationReader([sample]))
        return calibrator.compute_data()

    def _histograms(self, method: Method) -> HistogramCollector:
        """Empty histograms over the ranges of minmax, so that no sample moves the edges of bins."""
        collector = HistogramCollector(
            method=method,
            symmetric=False,
            num_bins=_BINS[method],
            num_quantized_bins=_LEVELS,
            percentile=_PERCENTILE,
            scenario="same",
        )
        for name, data in self._minmax.data.items():
            low, high = (np.asarray(value, np.float32).reshape(()) for value in data.range_value)
            widest = np.maximum(np.abs(low), np.abs(high))
            counts, edges = np.histogram(
                np.empty(0, np.float32), _BINS[method], range=(-float(widest), float(widest))
            )
            collector.histogram_dict[name] = (counts, edges.astype(np.float32), low, high, widest)
        return collector


@dataclass(frozen=True, slots=True)
class Mixture:
    """Names of the nodes that read and write int16 values, and the int8 range of each value."""

    int16_nodes: Collection[str]
    ranges: Mapping[str, Range]

    def override(self, tensor: str, *, wide: bool) -> dict[str, Any]:
        """The library's settings of a tensor, in int16 if `wide`, else in int8."""
        if wide:
            return {"quant_type": QuantType.QInt16, "symmetric": True}
        low, high = map(np.float32, self.ranges[tensor])
        return {"quant_type": QuantType.QInt8, "symmetric": False, "rmin": low, "rmax": high}


@dataclass(frozen=True, slots=True)
class Integers:
    """The integers of a quantised model. `mixture`: the activations, if these differ by node. `int4_nodes`:
    the nodes with int4 weights, if `weights` is "int4"; None for all nodes.
    """

    activations: Activations = "int8"
    weights: Weights = "int8"
    mixture: Mixture | None = None
    int4_nodes: Collection[str] | None = None


def insert(
    prepared: Path, ranges: TensorsData, excluded: Sequence[str], integers: Integers = Integers()
) -> tuple[ModelProto, Sequence[DeadClip]]:
    """Quantise the prepared model, by pairs of QuantizeLinear and DequantizeLinear around activations.

    Activations are int8 and asymmetric, or int16 and symmetric; weights are symmetric integers with a scale
    for each channel. The nodes `excluded` stay float, and so do Clip nodes that exclude 0. Also returns the
    nodes whose results are 0 for all samples. Raises ModelError if ONNX Runtime fails.
    """
    clips = clip_ranges(onnx.load(prepared), _single_ranges(ranges))
    ranges = _with_ranges(ranges, clips.changed)
    excluded = (*excluded, *clips.float_nodes)
    overrides: dict[str, list[dict[str, Any]]] = {}
    if integers.weights == "int4":
        overrides |= _int4_overrides(prepared, integers.int4_nodes)
    if integers.mixture is not None:
        overrides |= _mixture_overrides(prepared, integers.mixture)
    wide = integers.activations == "int16" or integers.mixture is not None
    try:
        with _quiet():
            quantizer = QDQQuantizer(
                load_model_with_shape_infer(prepared),
                True,
                False,
                QuantType.QInt8,
                _TYPES["int16" if wide else "int8"],
                ranges,
                [],
                list(excluded),
                list(QUANTIZED_OPS),
                {
                    "ActivationSymmetric": wide,
                    "WeightSymmetric": True,
                    "TensorQuantOverrides": overrides,
                },
            )
            quantizer.quantize_model()
            quantizer.model.topological_sort()
    except Exception as error:  # as in prepare
        raise ModelError(f"ONNX Runtime does not quantise the model: {first_line(error)}") from error
    if wide:
        _join_activations(quantizer.model.model)
        quantizer.model.clean_initializers()
    return _tidied(quantizer.model.model), clips.dead


def _mixture_overrides(prepared: Path, mixture: Mixture) -> dict[str, list[dict[str, Any]]]:
    """The library's settings of tensors by which values have the types of a mixture.

    A value has the type of the node that computes it; readers of the other type read a converted copy.
    """
    graph = load_model_with_shape_infer(prepared).graph
    readers: dict[str, list[NodeProto]] = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    written_wide = {name: node.name in mixture.int16_nodes for node in graph.node for name in node.output}
    overrides: dict[str, list[dict[str, Any]]] = {}
    for name in mixture.ranges:
        of_readers = {it.name: it.name in mixture.int16_nodes for it in readers.get(name, ())}
        is_wide = written_wide.get(name, all(of_readers.values()))
        entry = mixture.override(name, wide=is_wide)
        others = {reader for reader, wide in of_readers.items() if wide != is_wide}
        if others:
            entry["convert"] = mixture.override(name, wide=not is_wide) | {"recv_nodes": others}
        overrides[name] = [entry]
    operands = {it.name for it in graph.initializer if it.data_type == onnx.TensorProto.FLOAT}
    for node in graph.node:
        if node.name not in mixture.int16_nodes and node.op_type not in _WEIGHTED:
            overrides |= {it: [{"quant_type": QuantType.QInt8}] for it in operands.intersection(node.input)}
    return overrides


def _join_activations(model: ModelProto) -> None:
    """Remove the QuantizeLinear and DequantizeLinear between an operator and its Relu or Clip, so that both
    can run in one step.
    """
    producers = {name: node for node in model.graph.node for name in node.output}
    readers = Counter(name for node in model.graph.node for name in node.input)
    readers.update(it.name for it in model.graph.output)
    for node in model.graph.node:
        if node.op_type not in ("Clip", "Relu"):
            continue
        restored = producers.get(node.input[0])
        stored = None if restored is None or len(restored.input) < 2 else producers.get(restored.input[0])
        if restored is None or stored is None or stored.op_type != "QuantizeLinear":
            continue
        producer = producers.get(stored.input[0])
        passed = stored.input[0], stored.output[0], restored.output[0]
        if producer is not None and producer.op_type in BOUNDED and all(readers[it] == 1 for it in passed):
            node.input[0] = stored.input[0]
            model.graph.node.remove(stored)
            model.graph.node.remove(restored)


def _int4_overrides(prepared: Path, nodes: Collection[str] | None) -> dict[str, list[dict[str, Any]]]:
    """The library's settings of tensors by which the weights of these nodes become int4."""
    graph = onnx.load(prepared).graph
    sizes = {tensor.name: len(tensor.dims) for tensor in graph.initializer}
    return {
        node.input[1]: [{"quant_type": QuantType.QInt4, "symmetric": True, "axis": output_axis(node)}]
        for node in graph.node
        if node.op_type in _WEIGHTED and sizes.get(node.input[1], 0) > 1
        if nodes is None or node.name in nodes
    }


def value_ranges(prepared: Path, ranges: TensorsData) -> dict[str, Range]:
    """The range of each value by name, as `clip_ranges` changes it for Relu and Clip nodes."""
    single = _single_ranges(ranges)
    return {**single, **clip_ranges(onnx.load(prepared), single).changed}


def _single_ranges(ranges: TensorsData) -> dict[str, Range]:
    """The range of each value for which the calibration has one range, by name."""
    return {
        name: (np.asarray(data.lowest).item(), np.asarray(data.highest).item())
        for name, data in ranges.items()
        if np.size(getattr(data, "lowest", ())) == 1
    }


def _with_ranges(ranges: TensorsData, changed: Mapping[str, Range]) -> TensorsData:
    result = copy.copy(ranges)
    result.data = dict(ranges.data)
    for name, (low, high) in changed.items():
        data = copy.copy(result.data[name])
        data.lowest, data.highest = (np.full_like(data.lowest, end) for end in (low, high))
        result.data[name] = data
    return result


def _tidied(model: ModelProto) -> ModelProto:
    """Remove unused operator sets, and set the producer name."""
    used = {node.domain or "" for node in model.graph.node} | {""}
    imports = [entry for entry in model.opset_import if (entry.domain or "") in used]
    del model.opset_import[:]
    model.opset_import.extend(imports)
    del model.metadata_props[:]
    model.producer_name, model.producer_version = PRODUCER, __version__
    return model


class _CalibrationReader(CalibrationDataReader):  # type: ignore[misc]
    """Passes samples to a calibrator."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._samples = iter(samples)

    def get_next(self) -> dict[str, Any] | None:
        """The next sample, None after the last."""
        sample = next(self._samples, None)
        return None if sample is None else dict(sample)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence the library, which prints and logs: stdout is for results, and failures are exceptions."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    onnxruntime.set_default_logger_severity(_FATAL)
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
        onnxruntime.set_default_logger_severity(_WARNING)
        root.handlers[:] = handlers
