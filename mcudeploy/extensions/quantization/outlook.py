"""Preview of a float model as int8 without calibration samples, for the proposal to quantise it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx

from mcudeploy.boards.board import Board
from mcudeploy.common.errors import DeployError, Proposal
from mcudeploy.common.files import work_folder
from mcudeploy.extensions.quantization.data import Sample
from mcudeploy.extensions.quantization.float_model import read_float
from mcudeploy.extensions.quantization.ort_quantizer import Calibration, insert, prepare
from mcudeploy.ir.graph import DType
from mcudeploy.planner.model.model import Model, load_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.suggest import WaysOut
from mcudeploy.planner.tape.footprint import weights_bytes

_MOST_BYTES = 64 * 2**20
"""Limit of the model's file: a proposal is not worth the time that a larger model takes."""


def proposals(model: Model, board: Board, options: Options) -> Sequence[Proposal]:
    """Return the proposal to quantise a float model, if its int8 model would fit the board."""
    int8_model = None if model.window is not None else as_int8(model)
    plan = None if int8_model is None else WaysOut(int8_model, board, options).plan()
    if int8_model is None or plan is None:
        return ()
    weights = weights_bytes(int8_model.with_kernels(plan.kernels).calls)
    if weights > options.limited(board).constants_room:
        return ()
    result = f"int8 needs an arena of {plan.layout.arena_bytes:,} bytes, and {weights:,} of weights"
    command = f"mcudeploy quantize {shlex.quote(str(model.path))} --data SAMPLES -o int8.onnx"
    return (Proposal(command, result),)


def as_int8(model: Model) -> Model | None:
    """The model as `quantize` makes it, but with the ranges of one random input: its sizes are right, its
    outputs wrong.

    None if the model is already int8, too large to try, has named states, or cannot be quantised.
    """
    if not any(tensor.dtype is DType.FLOAT32 for tensor in model.graph.tensors.values()):
        return None
    if model.choices.states or model.path.stat().st_size > _MOST_BYTES:
        return None
    try:
        with work_folder("mcudeploy-int8-") as folder:
            path = folder / "int8.onnx"
            _quantise(model, folder, path)
            quantised = load_model(path, isa=model.isa)
    except DeployError:
        return None
    return replace(quantised, path=model.path)


def _quantise(model: Model, folder: Path, path: Path) -> None:
    float_model = read_float(model.path, model.choices)
    prepared = prepare(float_model.proto, folder)
    generator = np.random.default_rng(0)
    sample: Sample = {
        info.name: generator.standard_normal(info.shape or ()).astype(np.float32)
        for info in float_model.inputs
    }
    ranges = Calibration(prepared, folder).ranges("minmax", [sample])
    onnx.save(insert(prepared, ranges, ())[0], path)
