"""The loss by int8 caches: outputs beside those of the same model with float32 caches, by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.frontend.load import load
from mcudeploy.frontend.onnx.input_choices import InputChoices
from mcudeploy.verify.reference import Reference
from mcudeploy.verify.samples import initial_states

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class CacheLoss:
    """The loss over `runs` in turn. `sqnr_db`: the ratio of outputs to the noise of int8 caches; None without
    noise. `largest_difference` and `range`: of all outputs, in their unit.
    """

    runs: int
    sqnr_db: float | None
    largest_difference: float
    range: float


def cache_loss(
    path: Path, choices: InputChoices, names: Sequence[str], runs: Sequence[Mapping[str, Array]]
) -> CacheLoss:
    """Run a model in turn on inputs by name, with int8 and with float32 caches, each with its own states.

    `names`: the outputs that are compared.
    """
    exact, rounded = (
        _outputs(path, each, names, runs) for each in (replace(choices, int8_caches=()), choices)
    )
    difference = np.abs(exact - rounded)
    noise = float((difference**2).sum())
    sqnr = 10 * float(np.log10((exact**2).sum() / noise)) if noise else None
    return CacheLoss(len(runs), sqnr, float(difference.max()), float(np.ptp(exact)))


def _outputs(
    path: Path, choices: InputChoices, names: Sequence[str], runs: Sequence[Mapping[str, Array]]
) -> Array:
    """Return the outputs of all runs as one array."""
    graph = load(path, choices=choices)
    states = initial_states(graph)
    after = {it.before.name: it.after.name for it in graph.states}
    reference = Reference(path, [*names, *after.values()], choices, list(states))
    outputs = []
    for inputs in runs:
        results = reference.run({**inputs, **states})
        outputs += [results[name].astype(np.float64).reshape(-1) for name in names]
        states = {name: results[it] for name, it in after.items()}
    return np.concatenate(outputs)
