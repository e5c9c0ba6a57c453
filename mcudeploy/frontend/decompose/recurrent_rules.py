"""Rules for recurrent networks: layouts with the batch first, and the sequences of a batch in turn."""

from __future__ import annotations

import numpy as np
from onnx import helper

from mcudeploy.frontend.decompose.maker import Maker
from mcudeploy.frontend.onnx.nodes import Unsupported

_SEQUENCE, _LENGTHS, _FIRST, _LAST = 0, 4, 5, 7
_BATCH_AXES = (2, 1, 1)
"""Order of the result axes if the steps come first."""
_BATCH_FIRST = ((2, 0, 1, 3), (1, 0, 2), (1, 0, 2))
"""Order of the result axes if the batch comes first."""


def batched(make: Maker) -> None:
    """Replace LSTM, GRU and RNN with layout 1, or a batch: a node for each sequence, the steps first."""
    by_batch = make.integer("layout")
    sizes = make.shape(make.inputs[0])
    batch = 1 if sizes is None else sizes[0 if by_batch else 1]
    if batch == 1 and not by_batch:
        return
    inputs = list(make.inputs)
    if by_batch:
        for position in (_SEQUENCE, *range(_FIRST, min(_LAST, len(inputs)))):
            if inputs[position]:
                inputs[position] = make.add("Transpose", inputs[position], perm=[1, 0, 2])
    if batch > 1:
        _require_whole(make, sizes or (), by_batch)
    results = [_one(make, inputs, at if batch > 1 else None) for at in range(batch)]
    for number, name in enumerate(make.outputs):
        if not name:
            continue
        made = [result[number] for result in results]
        whole = made[0] if batch == 1 else make.add("Concat", *made, axis=_BATCH_AXES[number])
        if by_batch:
            make.add("Transpose", whole, out=name, perm=list(_BATCH_FIRST[number]))
        else:
            make.add("Identity", whole, out=name)


def _require_whole(make: Maker, sizes: tuple[int, ...], by_batch: int) -> None:
    """Raise Unsupported for sequences that end early, and for initial states of another batch."""
    steps, batch = sizes[by_batch], sizes[1 - by_batch]
    lengths = make.input(_LENGTHS)
    if lengths and not np.all(make.constant_of(lengths, "sequence_lens") == steps):
        raise Unsupported(f"sequences shorter than the input's {steps} steps are not supported")
    for position in range(_FIRST, _LAST):
        name = make.input(position)
        if name and make.sizes(name)[0 if by_batch else 1] != batch:
            raise Unsupported(
                f"its states are not those of {batch} sequences: a kept state has a batch of 1. Export the "
                "model for one sequence, or leave out --stateful"
            )


def _one(make: Maker, inputs: list[str], sequence: int | None) -> list[str]:
    """Results for one sequence of a batch; None: for the whole batch."""
    own = list(inputs)
    if sequence is not None:
        bounds = [make.int64(bound) for bound in ([sequence], [sequence + 1], [1])]
        for position in (_SEQUENCE, *range(_FIRST, min(_LAST, len(inputs)))):
            if inputs[position]:
                own[position] = make.add("Slice", inputs[position], *bounds)
        if len(own) > _LENGTHS:
            own[_LENGTHS] = ""
    outputs = [
        f"{make.stem}/{len(make.nodes)}/{number}" if name else "" for number, name in enumerate(make.outputs)
    ]
    attributes = {name: value for name, value in make.attributes.items() if name != "layout"}
    make.nodes.append(helper.make_node(make.op, own, outputs, name=make.label, **attributes))
    return outputs
