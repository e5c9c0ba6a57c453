"""The inputs and outputs of a language model that reads one token a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mcudeploy.common.errors import UsageError
from mcudeploy.common.text import printable
from mcudeploy.ir.graph import DType, Graph, GraphIO
from mcudeploy.planner.tape.plan_view import PlanView
from mcudeploy.verify.samples import tables_rows

_PADDING, _ROUND = 1024, 64
"""Vocabularies of models are padded to a multiple of 64: by less than 1,024 in published ones."""


@dataclass(frozen=True, slots=True)
class DecoderChoice:
    """The user's choices for a model; None for what follows from its inputs and outputs."""

    token: str | None = None
    logits: str | None = None
    positions: int | None = None


@dataclass(frozen=True, slots=True)
class DecoderIo:
    """The roles of a model's inputs and outputs."""

    token: GraphIO
    position: GraphIO | None
    """The input with the position of the token, if the model reads it."""
    logits: GraphIO
    positions: int | None
    """The most tokens of prompt and text together; None: no limit."""


def decoder_io(graph: Graph, ids: int, choice: DecoderChoice) -> DecoderIo:
    """Return the roles of a model's inputs and outputs. `ids`: the number of ids of its tokenizer.

    Raises UsageError for a model that does not read one token a run, or whose inputs can be mistaken.
    """
    if graph.hop is not None or len(graph.resident_inputs()) < len(graph.inputs):
        raise UsageError("a text is generated token by token: leave out --hop and --stream-input")
    if not graph.states:
        raise UsageError(
            "the model keeps no states between runs, so it would forget the text: name its caches, "
            "--state OUTPUT=INPUT for each, or --stateful for recurrent nodes"
        )
    token, position = _inputs(graph, ids, choice)
    logits = _logits(graph, ids, choice)
    rows = None if position is None else min(_rows(graph, position), default=None)
    positions = choice.positions or rows
    if position is not None and positions is None:
        raise UsageError(
            f"nothing in the model limits its position {printable(position.name)!r}: state the number of "
            "positions for which it was trained by --positions"
        )
    if rows is not None and positions is not None and positions > rows:
        raise UsageError(f"--positions {positions}: the model has tables of {rows} positions")
    return DecoderIo(token, position, logits, positions)


def constants_read_bytes(view: PlanView) -> int:
    """Return the bytes of constants that a run reads at least once; of a table it reads the chosen rows."""
    graph, total = view.plan.graph, 0.0
    by_name = {operator.name: operator for operator in graph.operators}
    for name, call in view.calls.items():
        inputs = graph.input_tensors(by_name[name])
        rows = by_name[name].op.indexed_rows(by_name[name], inputs)
        total += call.constant_bytes * (1 if rows is None else min(1, inputs[0].elements / rows))
    return round(total)


def _inputs(graph: Graph, ids: int, choice: DecoderChoice) -> tuple[GraphIO, GraphIO | None]:
    """The input with the token, and the one with its position."""
    inputs = graph.own_inputs()
    for it in inputs:
        if it.dtype not in ("int32", "int64") or len(it.order) != 1:
            shape = list(it.shape)
            raise UsageError(
                f"the input {printable(it.name)!r} is {it.dtype} {shape}, neither the id of a token nor a "
                "position. Make it a state (--state OUTPUT=INPUT) or a constant (--bind INPUT=NUMBER), "
                "export the model for one token a run (--shape), or let it compute its mask from the position"
            )
    if not 1 <= len(inputs) <= 2:
        raise UsageError(
            f"the model has the inputs {_names(inputs) or 'none'}: there may be a token and a position. "
            "--bind makes others constants"
        )
    token = _token(graph, inputs, ids, choice)
    least = min(_rows(graph, token), default=ids)
    if least < ids:
        raise UsageError(
            f"the tokenizer has {ids:,} ids, and the table of the input {printable(token.name)!r} has "
            f"{least:,} rows: take the tokenizer of this model"
        )
    return token, next((it for it in inputs if it is not token), None)


def _token(graph: Graph, inputs: Sequence[GraphIO], ids: int, choice: DecoderChoice) -> GraphIO:
    """The input that --token names, or else the input that indexes a table with a row for each id."""
    tokens = [it for it in inputs if choice.token in (None, it.name)]
    if not tokens:
        raise UsageError(f"--token {printable(str(choice.token))}: the inputs are {_names(inputs)}")
    if len(tokens) > 1:
        tokens = [it for it in inputs if _is_vocabulary(min(_rows(graph, it), default=0), ids)]
    if not tokens:
        rows = {it.name: ", ".join(f"{count:,}" for count in sorted({*_rows(graph, it)})) for it in inputs}
        tables = "; ".join(f"{printable(name)!r}: {counts or 'none'}" for name, counts in rows.items())
        raise UsageError(
            f"no input chooses from a table with a row for each of the {ids:,} ids of the tokenizer (rows of "
            f"the tables: {tables}): the tokenizer is probably that of another model. If it is not, name the "
            "token by --token"
        )
    if len(tokens) > 1:
        raise UsageError(
            f"either of the inputs {_names(inputs)} may be the token: both choose from tables with the "
            f"{ids:,} rows of the tokenizer. Name it by --token"
        )
    return tokens[0]


def _names(inputs: Sequence[GraphIO]) -> str:
    return ", ".join(repr(printable(it.name)) for it in inputs)


def _logits(graph: Graph, ids: int, choice: DecoderChoice) -> GraphIO:
    """The output with a logit for each id."""
    outputs = graph.own_outputs()
    shown = ", ".join(f"{printable(it.name)!r} {list(it.shape)}" for it in outputs)
    fitting = [
        it for it in outputs if _is_vocabulary(len(it.order), ids) and choice.logits in (None, it.name)
    ]
    if len(fitting) != 1:
        raise UsageError(
            f"{len(fitting)} of the outputs {shown} have a logit for each of the {ids:,} ids of the tokenizer"
            f"{' and the name of --logits' if choice.logits else ''}: there has to be one. "
            f"{'Name it by --logits' if fitting else 'Take the tokenizer of this model'}"
        )
    tensor, name = graph.tensors[fitting[0].tensor], printable(fitting[0].name)
    if tensor.dtype not in (DType.FLOAT32, DType.INT8):
        raise UsageError(f"the logits {name!r} are {tensor.dtype.value}: they have to be float32 or int8")
    if not np.array_equal(fitting[0].order, np.arange(tensor.elements)):
        raise UsageError(f"the logits {name!r} are stored in another order than their ids")
    return fitting[0]


def _is_vocabulary(count: int, ids: int) -> bool:
    return count == ids or (ids < count < ids + _PADDING and count % _ROUND == 0)


def _rows(graph: Graph, io: GraphIO) -> Sequence[int]:
    """The number of rows of each table that an input indexes, without rings, which take any position."""
    return tables_rows(graph, io.tensor, rings=False)
