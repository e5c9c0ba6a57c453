"""Inputs of a run and expected outputs, from files or drawn from a seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.common.errors import UsageError
from mcudeploy.common.text import agree, count_text, printable
from mcudeploy.ir.graph import DType, Graph, GraphIO
from mcudeploy.ops.host_io import from_device, to_device
from mcudeploy.ops.requantize import dequantize
from mcudeploy.verify.preprocessing import AS_USUAL, OnReal, Preprocessing, Wanted, read_values

Array = NDArray[Any]
_MOST_INTEGERS = 128
"""Upper end of the range of drawn integers that are not indices."""
_DRAWN_RUNS = 4
"""Number of runs in turn of a model with states, if no inputs are given."""


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One inference. `inputs` and `expected` are in the ONNX model's form by ONNX name; `stored` has the
    inputs in the device's form, by tensor name.

    `expected` is empty if the reference decides. States are inputs with their initial values.
    """

    inputs: Mapping[str, Array]
    stored: Mapping[str, Array]
    expected: Mapping[str, Array]


@dataclass(frozen=True, slots=True, eq=False)
class NamedArray:
    """Values that a caller has in memory, and how messages name them."""

    name: str
    values: Array


ValueSource = Path | NamedArray
"""A file as `--input` takes it, or an array."""


def load_samples(
    graph: Graph,
    inputs: Sequence[ValueSource],
    expected: Sequence[ValueSource],
    seed: int,
    reading: Preprocessing = AS_USUAL,
) -> list[Sample]:
    """Read samples from files or arrays: one per model input, in order, repeated for each sample.

    `reading` describes the conversion of pictures and sound. An array with a further first axis has the
    values of several samples, and so has a long sound for a model with states. Without files samples are
    drawn.
    Raises UsageError for files that do not fit the model.
    """
    if not inputs:
        if expected:
            raise UsageError("--expected needs --input: drawn inputs have no expected outputs")
        return drawn_samples(graph, seed)
    inputs_of_runs = _groups(graph, graph.own_inputs(), inputs, "input", reading)
    outputs = graph.own_outputs()
    for values in inputs_of_runs:
        require_indices(graph, values)
    wanted = (
        _groups(graph, outputs, expected, "output", reading) if expected else [{} for _ in inputs_of_runs]
    )
    if len(wanted) != len(inputs_of_runs):
        raise UsageError(
            f"{count_text(len(inputs_of_runs), 'sample')} of inputs, but {len(wanted)} of expected outputs"
        )
    return [sample_of(graph, values, results) for values, results in zip(inputs_of_runs, wanted, strict=True)]


def drawn_samples(graph: Graph, seed: int, count: int | None = None) -> list[Sample]:
    """Draw `count` samples; by default one, or several for a model with states.

    If samples are new rows of a window, others that fill it come first. Values are from the whole range for
    int8 and uint8 inputs, normally distributed for float inputs, and row numbers of the table for indices.
    """
    rng = np.random.default_rng(seed)
    count = count or (_DRAWN_RUNS if graph.states else 1)
    count += 0 if graph.hop is None else graph.hop.runs_to_fill - 1
    drawn = ({io.name: _draw(graph, io, rng) for io in graph.own_inputs()} for _ in range(count))
    return [sample_of(graph, values, {}) for values in drawn]


def _groups(
    graph: Graph,
    ios: tuple[GraphIO, ...],
    files: Sequence[ValueSource],
    label: str,
    reading: Preprocessing,
) -> list[dict[str, Array]]:
    """Return the values of each sample, by the names of these inputs or outputs."""
    if len(files) % len(ios):
        unit = "array" if any(isinstance(it, NamedArray) for it in files) else "file"
        raise UsageError(
            f"the model has {count_text(len(ios), label)}; {count_text(len(files), unit)} "
            f"{agree(len(files), 'is', 'are')} not a multiple of it"
        )
    groups: list[dict[str, Array]] = []
    for first in range(0, len(files), len(ios)):
        several = {
            io.name: _by_sample(io, source)
            if isinstance(source, NamedArray)
            else _by_sample(
                io,
                NamedArray(str(source), read_values(source, wanted_of(graph, io, reading.on_real), reading)),
            )
            for io, source in zip(ios, files[first:], strict=False)
        }
        for io in ios:
            if io.dtype.startswith("float"):
                reading.on_real(io, np.stack(several[io.name]))
        counts = {name: len(values) for name, values in several.items()}
        if len(set(counts.values())) > 1:
            texts = (f"{count} for {printable(name)!r}" for name, count in counts.items())
            raise UsageError(f"arrays with several samples need the same number: {', '.join(texts)}")
        groups += [dict(zip(several, values, strict=True)) for values in zip(*several.values(), strict=True)]
    return groups


def _by_sample(io: GraphIO, source: NamedArray) -> list[Array]:
    """Return the values of each sample in an array."""
    values = source.values
    if values.ndim == len(io.shape) + 1 and values.shape[1:] == io.shape and len(values):
        return [fitted_value(io, np.asarray(value), source.name) for value in values]
    return [fitted_value(io, values, source.name)]


def wanted_of(graph: Graph, io: GraphIO, on_real: OnReal = AS_USUAL.on_real) -> Wanted:
    """Return the target of a file for an input or an output."""
    meaning = None if io.dtype == "bool" else graph.tensors[io.tensor].quantization
    sequence = bool(graph.states) and io in graph.own_inputs()
    return Wanted(io, meaning, sequence, on_real)


def fitted_value(io: GraphIO, value: Array, name: str) -> Array:
    """Return an array in the type of an input or output; `name` is the array's name in messages.

    Raises UsageError if it does not fit.
    """
    declared = io.declared
    if declared is not None and value.dtype.name == declared.dtype:
        value = dequantize(value.astype(np.int64), declared.quantization)
    if value.dtype.name != io.dtype:
        either = io.dtype if declared is None else f"{declared.dtype}, or the {io.dtype} it stands for"
        holds = "text" if value.dtype.kind in "SU" else value.dtype.name
        raise UsageError(f"{name} holds {holds}, {io.name} of the model is {either}")
    if value.shape != io.shape:
        raise UsageError(f"{name} has the shape {list(value.shape)}, {io.name} of the model {list(io.shape)}")
    if value.dtype.kind == "f" and not np.isfinite(value).all():
        where = np.flatnonzero(~np.isfinite(value))
        further = f" and {len(where) - 1:,} more" if len(where) > 1 else ""
        raise UsageError(
            f"{name} has values that are not finite: {value.flat[where[0]]} at element {where[0]} of "
            f"{printable(io.name)!r}{further}. No output could be verified; replace them by finite values"
        )
    if value.dtype == np.int64 and not np.array_equal(value, value.astype(np.int32)):
        raise UsageError(f"{name} has integers beyond 32 bits, in which {io.name} of the model is held")
    return value


def require_indices(graph: Graph, values: Mapping[str, Array]) -> None:
    """Raise UsageError for indices outside of their table; the device would take the nearest row."""
    for io in graph.own_inputs():
        rows = min(tables_rows(graph, io.tensor, unchanged=True), default=None)
        value = values[io.name]
        if rows is not None and (value.min() < -rows or value.max() >= rows):
            raise UsageError(
                f"{printable(io.name)!r} has indices from {value.min()} to {value.max()}: its table has "
                f"{count_text(rows, 'row')}"
            )


def _draw(graph: Graph, io: GraphIO, rng: np.random.Generator) -> Array:
    if io.dtype.startswith("float"):
        return rng.standard_normal(io.shape).astype(io.dtype)
    if io.dtype == "bool":
        return rng.integers(0, 2, io.shape).astype(np.bool_)
    if graph.tensors[io.tensor].dtype is DType.INT32:
        end = min(tables_rows(graph, io.tensor), default=_MOST_INTEGERS)
        return rng.integers(0, end, io.shape, io.dtype)
    limits = np.iinfo(io.dtype)
    return rng.integers(limits.min, limits.max, io.shape, io.dtype, endpoint=True)


def tables_rows(graph: Graph, tensor: str, *, unchanged: bool = False, rings: bool = True) -> list[int]:
    """Return the number of rows of each table that a tensor indexes, directly or through other operators.

    `unchanged`: only through operators that move values. A remainder counts as an index below its divisor.
    `rings`: include states whose rows are written at a remainder.
    """
    tables = []
    for operator in graph.operators:
        if tensor not in operator.inputs:
            continue
        rows = operator.op.indexed_rows(operator, graph.input_tensors(operator))
        if rows is not None and tensor == operator.inputs[0]:
            tables.append(rows)
            continue
        passes = operator.op.moves or not unchanged
        if passes and graph.tensors[operator.output].dtype is DType.INT32:
            further = tables_rows(graph, operator.output, unchanged=unchanged, rings=rings)
            divisor = operator.op.divisor(operator)
            if further and divisor > 0:
                readers = (it.op for it in graph.operators if operator.output in it.inputs)
                in_ring = any(op.continues is not None for op in readers)
                further = [min(divisor, *further)] if rings or not in_ring else []
            tables += further
    return tables


def sample_of(graph: Graph, inputs: Mapping[str, Array], expected: Mapping[str, Array]) -> Sample:
    """Return a sample of inputs and outputs by name, in the ONNX model's form."""
    stored = stored_inputs(graph, inputs) | {state.tensor: state.initial for state in graph.states}
    return Sample({**inputs, **initial_states(graph)}, stored, expected)


def stored_inputs(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return the inputs in stored form, by tensor name."""
    return {io.tensor: to_device(io, graph.tensors[io.tensor], inputs[io.name]) for io in graph.own_inputs()}


def initial_states(graph: Graph) -> dict[str, Array]:
    """Return the initial states by ONNX name, in the ONNX model's form."""
    return {
        it.before.name: from_device(it.before, graph.tensors[it.tensor], it.initial) for it in graph.states
    }
