"""The JSON object of `quantize`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mcudeploy.common.text import count_text, printable
from mcudeploy.extensions.quantization.agreement import Agreement, Layer
from mcudeploy.extensions.quantization.float_model import float_nodes_note
from mcudeploy.extensions.quantization.quantized_model import MixturePoint, QuantizedModel
from mcudeploy.extensions.quantization.sample_faults import fault_notes
from mcudeploy.report.fits import latency
from mcudeploy.report.outputs import inputs
from mcudeploy.verify.data_faults import clipping_warnings, with_cause

JsonObject = dict[str, Any]

_WORST = 8
_LOW_AGREEMENT, _LOW_DECIBELS = 0.95, 15.0


def quantized(result: QuantizedModel) -> JsonObject:
    """Report methods, the worst layers and channels, accuracy, sizes, and the next command."""
    best, samples, accuracy = result.best, result.samples, result.accuracy
    return {
        "method": best.method,
        "activations": best.activations,
        "weights": best.weights,
        "int4_nodes": list(best.int4_nodes),
        "rounding": best.rounding,
        "methods": [
            {"method": one.method, "activations": one.activations}
            | {"weights": one.weights, "rounding": one.rounding}
            | _figures(one.agreement)
            | {"all_samples_sqnr_db": one.all_decibels}
            for one in result.results
        ],
        "mixtures": [_mixture(it) for it in result.mixtures],
        "outputs": [
            {"name": name, "sqnr_db": noise.decibels, "max_abs_error": noise.worst}
            for name, noise in best.agreement.outputs.items()
        ],
        "top1_agreement": best.agreement.agreement,
        "layers": [
            {"node": it.node, "op": it.op, "sqnr_db": it.decibels, "input_sqnr_db": it.input_decibels}
            for it in result.layers[:_WORST]
        ],
        "worst_step": _worst_step(result.layers),
        "float_nodes": [{"nodes": it.nodes, "op": it.op} for it in result.float_nodes],
        "output": str(result.destination),
        "samples": {
            "found": samples.total,
            "calibration": samples.calibration,
            "comparison": samples.comparison,
            "held_out": samples.held_out,
            "constant": [it.sample for it in result.faults.constant],
            "copies": [copy for copy, _ in result.faults.copies],
            "outliers": [
                {
                    "sample": it.sample,
                    "input": it.input,
                    "value": it.value,
                    "sqnr_db_without": result.without_far,
                }
                for it in (result.faults.far if result.without_far is not None else ())
            ],
        },
        "inputs": inputs(result.inputs),
        "accuracy": accuracy and {"float": accuracy.float_model, "int8": accuracy.int8_model},
        "weight_outliers": [
            {"node": it.node, "channel": it.channel, "range": it.range, "times_median": it.times}
            for it in result.outliers[:_WORST]
        ],
        "dead_nodes": [{"node": it.node, "op": it.op, "range": list(it.range)} for it in best.dead],
        "size_bytes": {"float": result.float_bytes, "int8": result.int8_bytes},
        "notes": _notes(result),
        "next": f"mcudeploy run {shlex.quote(str(result.destination))} --board BOARD",
    }


def _mixture(point: MixturePoint) -> JsonObject:
    fit = point.mixed.fit
    return {
        "int16_nodes": list(point.mixed.int16_nodes),
        "within_db": point.mixed.within,
        "sqnr_db": point.agreement.decibels,
        "latency": latency(fit.latency),
        "arena_bytes": fit.chosen.plan.layout.arena_bytes,
        "chosen": point.chosen,
    }


def _figures(agreement: Agreement) -> JsonObject:
    return {
        "top1_agreement": agreement.agreement,
        "sqnr_db": agreement.decibels,
        "max_abs_error": max(noise.worst for noise in agreement.outputs.values()),
    }


def _worst_step(layers: Sequence[Layer]) -> str | None:
    """The node that adds most noise to that of its inputs."""
    return max(layers, key=lambda layer: layer.added_noise).node if layers else None


def _notes(result: QuantizedModel) -> list[str]:
    notes = list(result.model_notes)
    notes += fault_notes(result.faults, result.best.agreement.decibels, result.without_far)
    notes += clipping_warnings(result.inputs)
    if result.output_fault is not None:
        floats = [replace(it, levels=None, clipped=0) for it in result.inputs]
        notes.append(with_cause(f"float model: {result.output_fault}", floats))
    if not result.samples.held_out:
        notes.append(
            f"{count_text(result.samples.total, 'sample')}: too few to hold any out, so the comparison uses "
            "the calibration samples; about 100 samples of real use improve calibration and comparison"
        )
    if result.float_nodes:
        notes.append(float_nodes_note(result.float_nodes))
    notes += [
        f"{it.op} {printable(it.node)} is 0 for all samples, and its range [0, 0] has no scale: the int8 "
        f"model takes {it.range[0]:g} to {it.range[1]:g}. Add samples for which it is not 0"
        for it in result.best.dead[:_WORST]
    ]
    agreement = result.best.agreement
    same = agreement.reliable_agreement
    is_far = agreement.decibels < _LOW_DECIBELS if same is None else same < _LOW_AGREEMENT
    if is_far and result.without_far is None:
        notes.append(
            "the int8 model is far from the float model: more samples help, or --keep-float with the worst "
            "nodes; docs/quantize.md says more"
        )
    return notes
