"""A quantised model: its methods and mixtures, their agreement with the float model, and its samples."""

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

FEWEST = 8
"""Number of samples below which none are held out."""


@dataclass(frozen=True, slots=True, eq=False)
class MethodResult:
    """An int8 model by one calibration method, and its agreement with the float model. `dead`: nodes that are
    0 for all samples. `all_decibels`: the signal to noise ratio with the calibration samples, if needed.
    `int4_nodes`: those with int4 weights, if they differ.
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
    """A mixture of int8 and int16, and its agreement with weights to the nearest int8. `chosen`: the wanted
    one.
    """

    mixed: MixedModel
    agreement: Agreement
    chosen: bool


@dataclass(frozen=True, slots=True)
class SampleCounts:
    """Numbers of samples: in all, for calibration, for the comparison; `held_out` if those two are apart."""

    total: int
    calibration: int
    comparison: int

    @property
    def held_out(self) -> bool:
        """Return whether the samples of the comparison take no part in the calibration."""
        return self.total >= FEWEST


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Shares of the samples whose class is that of the labels."""

    float_model: float
    int8_model: float


@dataclass(frozen=True, slots=True)
class QuantizedModel:
    """A quantised model, written to `destination`, and its distance from the float model.

    `layers` are in order, the worst first; `accuracy` is None without labels; sizes are in bytes.
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
