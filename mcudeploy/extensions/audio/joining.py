"""A front end and a model, joined as one .tflite file.

The input of the model is a window of rows, which a queue holds: the front end makes the newest row. A model
with states takes only new rows, so the front end runs once for each row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mcudeploy.common.errors import ModelError, UsageError
from mcudeploy.extensions.audio.file_writer import tflite_file
from mcudeploy.frontend.onnx.tensors import MAX_FILE_BYTES
from mcudeploy.frontend.tflite.contents import (
    SAME_OPTIONS,
    Contents,
    FileDraft,
    Scales,
    TfliteOperator,
    TfliteTensor,
)
from mcudeploy.frontend.tflite.flatbuffer import IDENTIFIER, contents_of
from mcudeploy.frontend.tflite.operator_options import CALLS

_QUEUE, _MODEL = "rows of the front end", "model/"
"""The name of the queue's variable, and the prefix of the model's variables, since both files may use a name.
"""


def joined_file(front: Path, model: Path) -> bytes:
    """The bytes of a file that runs the front end, then the model on its rows.

    Raises UsageError for files that do not fit each other, ModelError for unreadable files.
    """
    return tflite_file(joined(contents_of_file(front), contents_of_file(model)))


def contents_of_file(path: Path) -> Contents:
    """The contents of a .tflite file. Raises UsageError for other files, ModelError for unreadable files."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ModelError(f"{path} is larger than {MAX_FILE_BYTES // 2**20} MiB")
        content = path.read_bytes()
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from error
    if content[4:8] != IDENTIFIER:
        raise UsageError(
            f"--before joins .tflite files, and {path} is not one: convert it, or call both libraries"
        )
    return contents_of(content, str(path))


def joined(front: Contents, model: Contents) -> Contents:
    """The contents of both files joined. Raises UsageError if they do not fit each other."""
    if len(front.outputs) != 1 or len(model.inputs) != 1:
        raise UsageError(
            f"the front end has {len(front.outputs)} outputs and the model {len(model.inputs)} inputs: "
            "--before joins one to one"
        )
    if front.called:
        raise UsageError(
            "the front end calls subgraphs, such as initial values of variables: --before does not join them"
        )
    if front.bodies or model.bodies:
        raise UsageError("--before joins no files with IF or WHILE: call both libraries")
    row, window = front.tensors[front.outputs[0]], model.tensors[model.inputs[0]]
    rows = _rows(row, window)
    if rows > 1 and _has_states(model):
        front, rows = _repeated(front, rows, window.scales), 1
        row = front.tensors[front.outputs[0]]
    draft = FileDraft(list(front.tensors), list(front.operators))
    first = len(draft.tensors)
    model_tensors = [replace(tensor, index=tensor.index + first) for tensor in model.tensors]
    draft.tensors += model_tensors
    window = model_tensors[model.inputs[0]]
    rows_tensor = row.index if rows == 1 else _queued(draft, row.index, window, rows)
    shape = draft.constant(list(window.shape))
    draft.operator("RESHAPE", [rows_tensor, shape], window.index)

    renamed = [replace(it, operators=tuple(map(_renamed, it.operators))) for it in model.called.values()]
    called = dict(enumerate([*front.called.values(), *renamed], start=1))
    numbers = dict(zip(model.called, list(called)[len(front.called) :], strict=True))
    draft.operators += [_shifted(_renamed(it), first, numbers) for it in model.operators]
    draft.operators.sort(key=lambda it: it.op != "CALL_ONCE")  # the runtime runs these first
    ordered = tuple(replace(it, index=at) for at, it in enumerate(draft.operators))
    outputs = [number + first for number in model.outputs]
    contents = draft.contents(front.inputs, outputs, model.name)
    return replace(contents, operators=ordered, called=called)


def _rows(row: TfliteTensor, window: TfliteTensor) -> int:
    """The number of rows in the model's input. Raises UsageError for another layout, type or scale."""
    if row.kind != window.kind:
        raise UsageError(
            f"the front end makes {row.kind}, the model takes {window.kind}: `mcudeploy frontend "
            "--features` chooses int8 or float32"
        )
    if row.scales is not None and row.scales != window.scales:
        raise UsageError(
            "the front end and the model have different scales: quantise the model with the scale of the "
            "front end, or write a front end without a scale"
        )
    if not row.elements:
        raise UsageError(f"the front end makes {list(row.shape)}: no features")
    rows, rest = divmod(window.elements, row.elements)
    sizes = [size for size in window.shape if size != 1]
    channels = [size for size in row.shape if size != 1]
    layouts = ([rows, *channels], [rows * row.elements], channels if rows == 1 else [])
    if rest or not rows or sizes not in layouts:
        raise UsageError(
            f"the model's input {list(window.shape)} is not a window of rows {list(row.shape)}, oldest "
            "first: one row after another, channels last"
        )
    return rows


def _has_states(model: Contents) -> bool:
    """Whether a model keeps values from one run to the next."""
    return any(it.op == "READ_VARIABLE" for it in model.operators) or any(it.variable for it in model.tensors)


def _repeated(front: Contents, rows: int, scales: Scales | None) -> Contents:
    """A front end that calls `front` for each of `rows` rows; `scales`: of the rows.

    Its input has the inputs of all calls, its output the rows, along the first dimension.
    """
    if len(front.inputs) != 1 or not front.tensors[front.inputs[0]].shape:
        raise UsageError(
            f"the model takes {rows} rows in each run: its front end needs one input with a dimension"
        )
    draft = FileDraft()
    source, row = front.tensors[front.inputs[0]], front.tensors[front.outputs[0]]
    samples = draft.tensor(source.kind, _times(source.shape, rows), source.name, source.scales)
    hops = [draft.tensor(source.kind, source.shape, scales=source.scales) for _ in range(rows)]
    draft.operator("SPLIT", [draft.constant(0), samples], hops)
    shape = draft.constant(list(row.shape))
    repeats = []
    for hop in hops:
        result = draft.add("CALL", [hop], row.shape, row.kind, Subgraph=1)
        scaled = draft.tensor(row.kind, row.shape, scales=scales)  # a concatenation needs its scale
        repeats.append(draft.operator("RESHAPE", [result, shape], scaled))
    whole = draft.tensor(row.kind, _times(row.shape, rows), scales=scales)
    draft.operator("CONCATENATION", repeats, whole, Axis=0, **SAME_OPTIONS)
    return replace(draft.contents([samples], [whole], front.name), called={1: front})


def _times(shape: tuple[int, ...], rows: int) -> tuple[int, ...]:
    return (rows * shape[0], *shape[1:])


def _renamed(operator: TfliteOperator) -> TfliteOperator:
    """The operator of the model, with a name for its variable that no variable of the front end has."""
    if operator.op != "VAR_HANDLE":
        return operator
    options = dict(operator.options)
    return replace(operator, options=options | {"SharedName": f"{_MODEL}{options.get('SharedName', '')}"})


def _shifted(operator: TfliteOperator, first: int, numbers: Mapping[int, int]) -> TfliteOperator:
    """The operator after its tensors are numbered from `first` on; `numbers`: the new ones of subgraphs."""
    options = dict(operator.options)
    if operator.op in CALLS:
        options[CALLS[operator.op]] = numbers[operator.integer(CALLS[operator.op])]
    return replace(
        operator,
        inputs=_shift(operator.inputs, first),
        outputs=_shift(operator.outputs, first),
        options=options,
    )


def _shift(numbers: Sequence[int], first: int) -> tuple[int, ...]:
    return tuple(number + first if number >= 0 else number for number in numbers)


def _queued(draft: FileDraft, row: int, window: TfliteTensor, rows: int) -> int:
    """Add a queue, and return the last rows [1, rows, elements]; a variable keeps all but the newest row."""
    elements = draft.tensors[row].elements

    def tensor(count: int) -> int:
        return draft.tensor(window.kind, (1, count, elements), scales=window.scales)

    shape = draft.constant([1, 1, elements])
    newest = draft.operator("RESHAPE", [row, shape], tensor(1))
    variables = {it.options.get("SharedName") for it in draft.operators if it.op == "VAR_HANDLE"}
    name = _QUEUE
    while name in variables:
        name += "_"
    names = {"Container": "", "SharedName": name}
    handle = draft.operator("VAR_HANDLE", [], draft.tensor("RESOURCE", ()), **names)
    older_rows = draft.operator("READ_VARIABLE", [handle], tensor(rows - 1))
    all_rows = draft.operator("CONCATENATION", [older_rows, newest], tensor(rows), Axis=1, **SAME_OPTIONS)
    limits = [draft.constant(values) for values in ([0, 1, 0], [1, rows - 1, elements])]
    newer_rows = draft.operator("SLICE", [all_rows, *limits], tensor(rows - 1))
    draft.operator("ASSIGN_VARIABLE", [handle, newer_rows], [])
    return all_rows
