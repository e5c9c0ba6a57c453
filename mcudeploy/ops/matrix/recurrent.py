"""Recurrent networks: all steps of time in one row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.graph import Operator, Shape, Tensor
from mcudeploy.ir.opdef import (
    Axis,
    ConstantArray,
    Counts,
    CountsOf,
    Index,
    KernelCall,
    LoopNest,
    Params,
    PlainOperator,
)
from mcudeploy.ops.common import is_int8, reduced_axis, require_same_dtype
from mcudeploy.ops.conv.packing import pack_fours, padded, scaled_weights

Cell = Literal["lstm", "gru", "rnn_tanh", "rnn_relu", "rnn_sigmoid", "rnn"]
CurveKind = Literal["line", "sigmoid", "tanh", "leaky", "elu", "threshold", "softsign"]
Result = Literal["steps", "last", "cell"]

GATES: dict[Cell, int] = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1, "rnn_sigmoid": 1, "rnn": 1}
STATES: dict[Cell, int] = {cell: 2 if cell == "lstm" else 1 for cell in GATES}
SCALED: tuple[Cell, ...] = ("lstm", "gru")
"""Cells whose weights may be int8."""
_SCALES = {"weights": "weight_scale", "recurrent": "recurrent_scale"}
_FLOAT_BYTES = 4
_CURVES = get_args(CurveKind)


@dataclass(frozen=True, slots=True)
class CellFunction:
    """A function in a cell; firmware/include/mcud_params.h defines each kind."""

    kind: CurveKind
    alpha: float = 1.0
    beta: float = 1.0
    low: float = -inf
    high: float = inf


@dataclass(frozen=True, slots=True)
class CellFunctions:
    """The functions of a cell that differ from ONNX's defaults: of gates, candidate, and state.

    `gate` is the function of h in a plain RNN; `state` that of the cell state of an LSTM. `clip`: limit of
    the absolute value of a gate's sum; `coupled`: the forget gate is 1 minus the input gate.
    """

    gate: CellFunction
    candidate: CellFunction
    state: CellFunction
    clip: float = inf
    coupled: bool = False


@dataclass(frozen=True, slots=True)
class Recurrent(PlainOperator):
    """A recurrent network over (1, steps, inputs), float32, with ONNX's order of gates.

    Its initial h, and the cell state of an LSTM, are constants or further inputs of (1, 1, hidden). With
    `keeps` the final states are left in these inputs, which no other operator reads: the next run continues
    from them.

    Its result is (1, steps, hidden), h of every step, or (1, 1, hidden), the last h or cell state. Constants,
    float32, gate by gate: "weights" [gates * hidden, inputs], "recurrent" [gates * hidden, hidden], "bias"
    [gates * hidden], "candidate_bias" [hidden] of a GRU that resets after the product; "initial" [2 *
    hidden], h and the cell state; an LSTM may have "peepholes" [3 * hidden]. Weights of an LSTM or GRU may
    both be int8, with "weight_scale" and "recurrent_scale" [gates * hidden].
    """

    kind: ClassVar[str] = "Recurrent"

    cell: Cell
    hidden: int
    result: Result = "steps"
    reverse: bool = False
    reset_after: bool = False
    keeps: bool = False
    cell_clip: float = inf
    """Limit of the absolute value of the cell state of an LSTM."""
    saturates: bool = False
    """Whether a NaN or infinite gate of an LSTM or GRU enters its function as the largest float32."""
    functions: CellFunctions | None = None
    """Functions of the cell "rnn", and of an LSTM or GRU without ONNX's default functions."""

    def label(self, inputs: tuple[Shape, ...]) -> str:
        """The cell."""
        return self.cell

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Any result needs any input; every gate of a step multiplies the input and the state."""
        (rows, steps, depth), *states = inputs
        if rows != 1:
            raise ValueError(f"the steps are columns of one row, found {rows} rows")
        if len(states) not in (0, STATES[self.cell]) or any(it != (1, 1, self.hidden) for it in states):
            raise ValueError(f"the states are vectors of {self.hidden}, found the shapes {states}")
        if self.keeps and not states:
            raise ValueError("only initial states that are inputs can keep the final states")
        # Axis "in" runs through the inputs, then the state; positions past the end of either are padding.
        all_steps = self.result == "steps"
        axes = (
            Axis("row", 1),
            Axis("step", steps) if all_steps else reduced_axis("step", steps),
            Axis("ch", self.hidden),
            reduced_axis("in", depth + self.hidden),
            reduced_axis("gate", GATES[self.cell]),
        )
        read = Index.of(row=1), Index.of(step=1), Index.of(**{"in": 1})
        col = Index.of(step=1) if all_steps else Index()
        state = Index.of(row=1), Index(), Index.of(**{"in": 1})
        reads = (read, *[state] * len(states))
        return LoopNest(axes, reads, (Index.of(row=1), col, Index.of(ch=1)), multiplies=True)

    def last_state(self, steps: int) -> tuple[int, Recurrent] | None:
        """The step whose h is the last state, and the operator that returns it alone."""
        if self.result != "steps":
            return None
        return 0 if self.reverse else steps - 1, replace(self, result="last")

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """lstm_f32, gru_f32, rnn_tanh_f32, rnn_relu_f32 or rnn_sigmoid_f32; cells_f32 for other functions.

        Raises ValueError for int8 tensors, and for constants that do not fit.
        """
        require_same_dtype(*inputs, output)
        if is_int8(output):
            raise ValueError("a recurrent network is for float32 only")
        _, steps, depth = inputs[0].shape
        constants, hidden = operator.constants, self.hidden
        self._require_fitting(constants, depth)
        if ("initial" in constants) != (len(inputs) == 1):
            raise ValueError("the first states are either constants or inputs")
        cell: Params = {
            "cell.steps": steps,
            "cell.inputs": depth,
            "cell.hidden": hidden,
            "cell.reverse": int(self.reverse),
            "cell.result": ("steps", "last", "cell").index(self.result),
            "cell.reset_after": int(self.reset_after),
            "cell.states": len(inputs) - 1,
            "cell.keeps": int(self.keeps),
            "cell.cell_clip": self.cell_clip,
            "cell.saturates": int(self.saturates),
        }
        arrays: Params = {
            "bias": _padded_floats(constants["bias"]),
            "candidate_bias": _padded_floats(constants["candidate_bias"]) if self.reset_after else None,
            "peepholes": constants.get("peepholes"),
            "initial": constants.get("initial"),
        }
        states_in_scratch = 2 - (len(inputs) - 1 if self.keeps else 0)
        gates = padded(GATES[self.cell] * hidden, 4)
        scratch = _FLOAT_BYTES * (states_in_scratch * padded(hidden, 4) + gates + 4)
        name, counts = f"{self.cell}_f32", self._counts(steps, depth)
        params = self._weights(_real_weights(constants)) | arrays | cell
        if self.functions is not None:
            return KernelCall("cells_f32", params | self._functions(self.functions), scratch, counts=counts)
        call = KernelCall(name, params, scratch, counts=counts)
        if "weight_scale" not in constants:
            return call
        params = self._weights(constants) | self._scales(constants) | arrays | cell
        return replace(call, others=(KernelCall(f"{name}_s8w", params, scratch, counts=counts),))

    def _functions(self, functions: CellFunctions) -> Params:
        """The parameters of cells_f32 beyond those of the usual cells."""
        params: Params = {}
        for name in ("gate", "candidate", "state"):
            curve: CellFunction = getattr(functions, name)
            params |= {
                f"{name}.kind": _CURVES.index(curve.kind),
                f"{name}.alpha": curve.alpha,
                f"{name}.beta": curve.beta,
                f"{name}.min": curve.low,
                f"{name}.max": curve.high,
            }
        gates, coupled = GATES[self.cell], int(functions.coupled)
        return params | {"clip": functions.clip, "gates": gates, "coupled": coupled}

    def _weights(self, constants: Mapping[str, ConstantArray]) -> Params:
        """The packed weights; those of a GRU's candidate are separate."""
        recurrent, candidate = self._gates(constants["recurrent"])
        return {
            "input_weights": _packed(constants["weights"]),
            "recurrent_weights": _packed(recurrent),
            "candidate_weights": None if candidate is None else _packed(candidate),
        }

    def _scales(self, constants: Mapping[str, ConstantArray]) -> Params:
        """The scales of int8 weights."""
        recurrent, candidate = self._gates(constants["recurrent_scale"])
        return {
            "input_scale": _padded_floats(constants["weight_scale"]),
            "recurrent_scale": _padded_floats(recurrent),
            "candidate_scale": None if candidate is None else _padded_floats(candidate),
        }

    def _gates(self, values: ConstantArray) -> tuple[ConstantArray, ConstantArray | None]:
        """The values of all gates; for a GRU, of its two gates and of its candidate."""
        if self.cell != "gru":
            return values, None
        return values[: 2 * self.hidden], values[2 * self.hidden :]

    def _require_fitting(self, constants: Mapping[str, ConstantArray], depth: int) -> None:
        hidden, rows = self.hidden, GATES[self.cell] * self.hidden
        shapes = {
            "weights": (rows, depth),
            "recurrent": (rows, hidden),
            "bias": (rows,),
            "candidate_bias": (hidden,),
            "initial": (2 * hidden,),
            "peepholes": (3 * hidden,),
            "weight_scale": (rows,),
            "recurrent_scale": (rows,),
        }
        for name, array in constants.items():
            if array.shape != shapes[name]:
                raise ValueError(f"{name} need the shape {list(shapes[name])}, found {list(array.shape)}")
        for name, scale in _SCALES.items():
            if (scale in constants) != (constants[name].dtype == np.int8):
                raise ValueError(f"{name} that are int8 need {scale}, and others none")
        if "weight_scale" in constants and ("recurrent_scale" not in constants or self.cell not in SCALED):
            raise ValueError("both weights of an LSTM or GRU are int8, or none")

    def _counts(self, steps: int, depth: int) -> CountsOf:
        gates, hidden = GATES[self.cell] * self.hidden, self.hidden
        products = [(gates, depth)]  # results and depth of each product
        products += [(2 * hidden, hidden), (hidden, hidden)] if self.cell == "gru" else [(gates, hidden)]
        eights = [(results // 8, length) for results, length in products]
        fours = [(-(-(results % 8) // 4), length) for results, length in products]
        each: Counts = {
            "calls": 1,
            "steps": steps,
            "states": steps * hidden,
            "eights": steps * sum(blocks for blocks, _ in eights),
            "eight_terms": steps * sum(blocks * length for blocks, length in eights),
            "fours": steps * sum(blocks for blocks, _ in fours),
            "four_terms": steps * sum(blocks * length for blocks, length in fours),
        }
        if self.functions is not None:
            each["functions"] = steps * (gates + hidden * (self.cell == "lstm"))
        if self.cell == "gru":
            each["reset_after"] = steps * hidden * int(self.reset_after)
        return lambda _: each


def _real_weights(constants: Mapping[str, ConstantArray]) -> dict[str, ConstantArray]:
    """The weights of both products as float32."""
    return {
        name: scaled_weights(constants[name].astype(np.int8), constants[scale].astype(np.float32))
        if scale in constants
        else constants[name].astype(np.float32)
        for name, scale in _SCALES.items()
    }


def _packed(weights: ConstantArray) -> ConstantArray:
    if weights.dtype == np.int8:
        return pack_fours(weights.astype(np.int8), 1).reshape(-1)
    return pack_fours(weights.astype(np.float32), 1).reshape(-1)


def _padded_floats(values: ConstantArray) -> NDArray[np.float32]:
    return np.pad(values.astype(np.float32), (0, padded(values.size, 4) - values.size))
