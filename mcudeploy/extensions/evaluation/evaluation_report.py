"""The JSON object of `evaluate`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from mcudeploy.extensions.evaluation.evaluation_results import Comparison, Evaluation, ModelResults
from mcudeploy.report.objects import report_of
from mcudeploy.report.outputs import inputs

JsonObject = dict[str, Any]

_MOST_LAYERS = 8
_LARGEST_MATRIX = 64
"""Number of classes above which a report has no confusion matrix."""


def evaluation_object(result: Evaluation) -> JsonObject:
    """Report the figures of every model, their agreement, the worst samples, and limits that were missed.

    `run`: the object of the run that verified the plan on the first sample.
    """
    names = result.data.classes
    return {
        "passed": result.passed,
        "failures": list(result.failures),
        "warnings": list(result.warnings),
        "inputs": inputs(result.inputs),
        "samples": result.data.count,
        "labelled": result.task.labels is not None,
        "task": result.task.kind,
        "output": result.task.output,
        "classes": list(names) if names else None,
        "class_count": result.task.classes or None,
        "top": result.task.choice.k,
        "devices": result.devices,
        "models": [_model(result, it) for it in result.results],
        "agreement": [_agreement(it) for it in result.compared],
        "worst": [asdict(it) for it in result.worst],
        "layers": [
            {"node": it.node, "op": it.op, "sqnr_db": it.decibels, "input_sqnr_db": it.input_decibels}
            for it in result.layers[:_MOST_LAYERS]
        ],
        "run": report_of(result.run),
    }


def _model(result: Evaluation, one: ModelResults) -> JsonObject:
    quality, names = one.quality, result.data.classes
    figures = quality.by_class()
    return {
        "model": one.origin,
        "accuracy": quality.accuracy,
        "top_k": quality.top_k,
        "auc": quality.auc,
        "mse": quality.mse,
        "mae": quality.mae,
        "by_class": [
            {"class": number, "name": names[number] if number < len(names) else None, **asdict(it)}
            for number, it in enumerate(figures)
        ],
        "confusion": quality.confusion.tolist()
        if quality.confusion is not None and len(figures) <= _LARGEST_MATRIX
        else None,
    }


def _agreement(one: Comparison) -> JsonObject:
    figures = one.figures
    return {
        "models": [one.first, one.second],
        "same_class": None if figures.flips is None else 1 - figures.flips / figures.samples,
        "flips": figures.flips,
        "lost": figures.lost,
        "gained": figures.gained,
        "equal_outputs": figures.equal,
        "largest_difference": figures.largest,
    }
