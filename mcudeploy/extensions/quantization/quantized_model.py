"""The result of `quantize`: the quantised model, its distance from the float model, and its samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from onnx import ModelProto

from mcudeploy.extensions.quantization import weights
from mcudeploy.extensions.quantization.agreement import Agreement, Layer
from mcudeploy.extensions.quantization.clip_ranges import DeadClip
from mcudeploy.extensions.quantization.float_model import FloatNode
from mcudeploy.extensions.quantization.mixing import MixedModel
from mcudeploy.extensions.quantization.ort_quantizer import Activations, Method, Weights
from mcudeploy.extensions.quantization.sample_faults import SampleFaults
from mcudeploy.verify.data_faults import InputFacts

ActivationChoice = Activations | Literal["auto"]
"""Integers of activations; "auto" is a mixture of int8 and int16."""
WeightChoice = Weights | Literal["auto"]
"""Integers of weights; "auto" is int4 for some layers, int8 for the others."""
Rounding = Literal["nearest", "adaptive"]
"""Rounding of weights: each to the nearest integer, or all so that the results of layers differ least."""

FEWEST_TO_SPLIT = 8
"""With fewer samples, none are held out for the comparison."""


@dataclass(frozen=True, slots=True, eq=False)
class MethodResult:
    """A model quantised by one calibration method, and its agreement with the float model.

    `dead`: nodes that are 0 for all samples. `all_decibels`: the signal to noise ratio over the samples of
    comparison and calibration, if it was computed. `int4_nodes`: nodes with int4 weights, if `weights` is
    "auto".
    """

    method: Method
    proto: ModelProto
    path: Path
    agreement: Agreement
    dead: Sequence[DeadClip] = ()
    weights: WeightChoice = "int8"
    rounding: Rounding = "nearest"
    all_decibels: float | None = None
    activations: ActivationChoice = "int8"
    int4_nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class MixturePoint:
    """A mixture of int8 and int16, and its agreement if weights are rounded to the nearest int8.

    `chosen`: whether it is the mixture that `quantize` writes.
    """

    mixed: MixedModel
    agreement: Agreement
    chosen: bool


@dataclass(frozen=True, slots=True)
class SampleCounts:
    """Numbers of samples: in total, for calibration, and for the comparison."""

    total: int
    calibration: int
    comparison: int

    @property
    def held_out(self) -> bool:
        """Return whether the samples of the comparison take no part in the calibration."""
        return self.total >= FEWEST_TO_SPLIT


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Shares of the compared samples whose class is the class of the label."""

    float_model: float
    int8_model: float


@dataclass(frozen=True, slots=True)
class QuantizedModel:
    """A quantised model, written to `destination`, and its distance from the float model.

    `results`: of all tried methods; `layers`: the worst first; `accuracy`: None without labels.
    `without_far`: the decibels without `faults.far`, the samples far beyond the others, if clearly better.
    """

    destination: Path
    best: MethodResult
    results: Sequence[MethodResult]
    layers: Sequence[Layer]
    float_nodes: Sequence[FloatNode]
    outliers: Sequence[weights.Outlier]
    samples: SampleCounts
    accuracy: Accuracy | None
    float_bytes: int
    int8_bytes: int
    model_notes: tuple[str, ...]
    faults: SampleFaults
    without_far: float | None
    inputs: Sequence[InputFacts]
    output_fault: str | None
    mixtures: Sequence[MixturePoint] = ()
