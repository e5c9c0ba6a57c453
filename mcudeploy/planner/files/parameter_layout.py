"""The file beside a library that states its parameters, and what a model that replaces them must share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal, cast

import numpy as np
from pydantic import Field, model_validator

from mcudeploy.common.errors import ConfigError, ModelError
from mcudeploy.common.json_file import read_json
from mcudeploy.frontend.onnx.input_choices import InputChoices
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.operator_facts import OperatorFacts, facts_hash, operator_facts
from mcudeploy.ir.parameter_blob import ParameterBlob
from mcudeploy.ir.plan import Plan, Rewrites
from mcudeploy.ops.requantize import Rounding
from mcudeploy.planner.files.lanefile import FileModel, Offset, Rows
from mcudeploy.planner.model.model import Model, load_model
from mcudeploy.planner.plan_options import Options

_MOST_BYTES = 2**24
LAYOUT_SUFFIX = "_parameters.json"
"""The end of the name of the file, after the prefix of the model."""
_RETRAIN = "Only weights and biases of the replaceable operators may change"


class _ReadingChoices(FileModel):
    """How the model is read: the fields of `Options` that decide it."""

    float_io: bool
    shapes: dict[str, list[int]]
    constants: dict[str, float]
    states: dict[str, str]
    int8_caches: tuple[str, ...] = ()
    stateful: bool
    rounding: Rounding | None


class _StoredFacts(FileModel):
    kernel: str
    scalars: dict[str, str]
    arrays: dict[str, str]
    tensors: list[str]


ElementType = Literal["int8", "int16", "int32", "float32", "uint16", "uint32"]


class LaidOutParameter(FileModel):
    """A parameter: the element type (a numpy name), the number of elements, and the offset in bytes."""

    operator: str
    name: str
    type: ElementType
    count: Rows
    offset: Offset


class ParameterLayout(FileModel):
    """The parameters of a library, and all that a model must have in common with the library's model."""

    format: Literal[1]
    model: str
    isa: Isa
    reading: _ReadingChoices
    streamed: bool
    accumulating: bool
    in_flash: bool
    hash: Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
    size_bytes: Rows
    parameters: list[LaidOutParameter]
    operators: dict[str, _StoredFacts]

    @model_validator(mode="after")
    def _require_inside(self) -> ParameterLayout:
        for it in self.parameters:
            end = it.offset + it.count * np.dtype(it.type).itemsize
            if end > self.size_bytes:
                raise ValueError(f"{it.name} of {it.operator} ends at byte {end:,} of {self.size_bytes:,}")
        return self

    @property
    def replaceable(self) -> tuple[str, ...]:
        """Names of the replaceable operators, in order."""
        return tuple(dict.fromkeys(it.operator for it in self.parameters))


def layout_text(plan: Plan, model: Model, options: Options) -> str:
    """Return the file of a model's parameters: the same text for the same plan."""
    facts = operator_facts(plan.graph, model.calls, model.replaceable)
    layout = ParameterLayout(
        format=1,
        model=model.path.name,
        isa=model.isa,
        reading=_ReadingChoices(
            float_io=options.float_io,
            shapes={name: list(shape) for name, shape in options.shapes},
            constants=dict(options.constants),
            states=dict(options.states),
            int8_caches=options.int8_caches,
            stateful=options.stateful,
            rounding=options.rounding,
        ),
        streamed=plan.form.streamed,
        accumulating=plan.form.accumulating,
        in_flash=plan.parameters.in_flash,
        hash=facts_hash(facts).hex(),
        size_bytes=plan.parameters.size_bytes,
        parameters=[
            LaidOutParameter(
                operator=it.operator,
                name=it.name,
                type=cast("ElementType", it.values.dtype.name),
                count=it.values.size,
                offset=it.offset,
            )
            for it in plan.parameters.parameters
        ],
        operators={
            name: _StoredFacts(**{**asdict(it), "tensors": list(it.tensors)}) for name, it in facts.items()
        },
    )
    return layout.model_dump_json(indent=1) + "\n"


def read_layout(path: Path) -> ParameterLayout:
    """Read the file of a library's parameters: the file itself, or the folder of a library of one model.

    Raises ConfigError for a folder without one, and for another file.
    """
    if path.is_dir():
        layouts = sorted(path.glob(f"*{LAYOUT_SUFFIX}"))
        if len(layouts) != 1:
            some = ", ".join(it.name for it in layouts)
            reason = f"has several models: name one of {some}" if layouts else "has no replaceable operators"
            raise ConfigError(f"the library in {path} {reason}")
        path = layouts[0]
    return read_json(path, ParameterLayout, "the layout of a library's parameters")


def parameters_of(path: Path, layout: ParameterLayout) -> ParameterBlob:
    """Return the parameters of another model file for a library.

    Raises ModelError for a model that differs in more than these parameters: it names the first difference.
    """
    try:
        model = _like(path, layout)
    except ValueError as error:
        raise ModelError(f"{path.name} cannot replace {layout.model}: {error}. {_RETRAIN}") from error
    facts = operator_facts(model.graph, model.calls, model.replaceable)
    fault = next(_differences(layout.operators, facts, layout.replaceable), None)
    if fault is not None:
        raise ModelError(f"{path.name} cannot replace {layout.model}: {fault}")
    return ParameterBlob(facts_hash(facts), model.parameters.content())


def _like(path: Path, layout: ParameterLayout) -> Model:
    """Return the model of a file, read as that of the library, in its form and with its kernels."""
    reading = layout.reading
    shapes = {name: tuple(shape) for name, shape in reading.shapes.items()}
    model = load_model(
        path,
        reading.float_io,
        isa=layout.isa,
        keep_constant=True,
        choices=InputChoices(shapes, reading.constants, reading.states, reading.int8_caches),
        stateful=reading.stateful,
        rounding=reading.rounding,
    )
    form = Rewrites(layout.streamed, layout.accumulating)
    names = [operator.name for operator in model.in_form(form).graph.operators]
    lone = sorted(set(layout.operators) ^ set(names))
    if lone:
        raise ValueError(f"only one of them has {lone[0]}")
    if names != list(layout.operators):
        raise ValueError("their operators are in different orders")
    model = model.with_replaceable(layout.replaceable, in_flash=layout.in_flash).in_form(form)
    return model.with_kernels({name: it.kernel for name, it in layout.operators.items() if it.kernel})


def _differences(
    wanted: Mapping[str, _StoredFacts], facts: Mapping[str, OperatorFacts], replaceable: tuple[str, ...]
) -> Iterator[str]:
    """Yield how the operators of a model differ from those of a library."""
    for name, library in wanted.items():
        own = facts[name]
        for theirs, its in zip(library.tensors, own.tensors, strict=False):
            if theirs != its:
                yield f"{name} has the tensor {its}, in the library {theirs}: activations must not change"
        for key, value in library.scalars.items():
            if own.scalars.get(key) != value:
                yield (
                    f"{name} needs {key} = {own.scalars.get(key)}, the library has {value}, not a parameter. "
                    "Take scales of the weights that are nearer to the old ones, or build the library again"
                )
        changed = next((key for key, value in library.arrays.items() if own.arrays.get(key) != value), None)
        if changed is not None and name in replaceable:
            yield f"{changed} of {name} is {own.arrays.get(changed)}, not {library.arrays[changed]}"
        elif changed is not None:
            yield (
                f"{changed} of {name} differs, and {name} is not replaceable. The library needs "
                f"--replaceable {','.join((*replaceable, name))}"
            )
        if (own.kernel, len(own.arrays), len(own.scalars)) != (
            library.kernel,
            len(library.arrays),
            len(library.scalars),
        ):
            yield f"{name} has another kernel than in the library"
