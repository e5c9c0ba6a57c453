"""Operators as the templates print them: parameters, the records of parts, the tapes of cores."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from types import MappingProxyType

import numpy as np

from mcudeploy.codegen.comments import LINE_WIDTH
from mcudeploy.codegen.ctext import c_elements, c_float, c_int, c_type
from mcudeploy.codegen.texts import ConstantText, LaneText, OperatorText, StageText, TensorText
from mcudeploy.ir.opdef import (
    UNIT_ALIGNMENT,
    ArrayPointer,
    CallTable,
    ConstantArray,
    KernelCall,
    ParamValue,
    Symbol,
)
from mcudeploy.ir.parameter_table import ParameterTable
from mcudeploy.planner.tape.core_tables import SliceEntry, SliceRecord

NO_PARAMETERS = ParameterTable()
PARAMETER_VALUES = "parameters"
"""The C name of the table in RAM."""
_NO_BREAK = "\N{NO-BREAK SPACE}"


class ConstantPool:
    """Arrays in flash, of which equal ones are stored once, and the parameters in RAM.

    `loaded`: by operator and parameter, the C expression of the byte in an arena where a loaded array begins.
    """

    def __init__(
        self,
        prefix: str,
        table: ParameterTable = NO_PARAMETERS,
        loaded: Mapping[tuple[str, str], str] = MappingProxyType({}),
    ) -> None:
        self._prefix, self._loaded = prefix, loaded
        self._parameters = {(it.operator, it.name) for it in table.parameters}
        self._values = f"{prefix}_initial_parameters" if table.in_flash else PARAMETER_VALUES
        self._names: dict[tuple[str, bytes, int], str] = {}
        self.texts: list[ConstantText] = []
        self.size_bytes = 0

    def name_of(self, operator: str, name: str, array: ConstantArray, alignment: int = 0) -> str:
        """Return the C expression of an operator's array: the parameter `name` of its kernel."""
        suffix = f"{operator}_{name}"
        if (operator, name) in self._parameters:
            return f"{self._values}.{suffix}"
        if (place := self._loaded.get((operator, name))) is not None:
            return f"(const {c_type(array)} *)(const void *)({place})"
        return self.stored(suffix, array, alignment)

    def stored(self, suffix: str, array: ConstantArray, alignment: int) -> str:
        """Return the C name of an array in flash: the prefix and this suffix, or that of an equal array."""
        key = (array.dtype.name, array.tobytes(), alignment)
        if key not in self._names:
            name = f"{self._prefix}_{suffix}"
            while name in self._names.values():
                name += "_"
            self._names[key] = name
            self.texts.append(
                ConstantText(name, c_type(array), array.size, list(_lines(*key[:2])), alignment)
            )
            self.size_bytes += array.nbytes
        return self._names[key]


@lru_cache(maxsize=256)
def _lines(dtype: str, content: bytes) -> tuple[str, ...]:
    """Return the lines of an array's elements; cached, since all plans of a model have the same weights."""
    return tuple(c_elements(np.frombuffer(content, dtype)))


def params_lines(operator: str, call: KernelCall, constants: ConstantPool) -> list[str]:
    """Return the initialisers of a call's parameters: lines for each array, each group, and the numbers
    between them.
    """
    lines: list[str] = []
    alignment = UNIT_ALIGNMENT if call.isa.unit else 0
    for (group, _), params in groupby(call.params.items(), _line_of):
        fields = [
            f".{name.removeprefix(f'{group}.')} = {_value_text(operator, name, value, constants, alignment)}"
            for name, value in params
        ]
        lines += _wrapped(f".{group} = {{", fields, "},") if group else _wrapped("", fields, ",")
    return lines


def stage_table(operator: str) -> str:
    """Return the C name of an operator's table of calls."""
    return f"stages_{operator}"


def stage_texts(operator: str, call: KernelCall, constants: ConstantPool) -> tuple[StageText, ...]:
    """Return the calls that a kernel makes; equal parameters are stored once."""
    table = next((value for value in call.params.values() if isinstance(value, CallTable)), None)
    texts: list[StageText] = []
    known: dict[tuple[str, ...], str] = {}
    for number, stage in enumerate(table.calls if table else ()):
        lines = params_lines(f"{operator}_{number}", stage, constants)
        key = (stage.kernel, *lines)
        is_new = key not in known
        symbol = known.setdefault(key, f"p{number}_{operator}" if lines else "")
        texts.append(StageText(stage.kernel, lines if is_new else [], symbol))
    return tuple(texts)


def _line_of(param: tuple[str, ParamValue]) -> tuple[str, str]:
    """Return the group of a parameter, and its name if it has a separate line, as arrays have."""
    name, value = param
    is_number = isinstance(value, int | float)
    return name.rpartition(".")[0], "" if is_number else name


def _value_text(operator: str, name: str, value: ParamValue, constants: ConstantPool, alignment: int) -> str:
    match value:
        case None:
            return "0"
        case CallTable():
            return stage_table(operator)
        case Symbol():
            return value.name
        case ArrayPointer() if value.owner:
            return f"(const void *)({constants.stored(value.owner, value.array, alignment)} + {value.first})"
        case ArrayPointer():
            return f"{constants.name_of(operator, name, value.array)} + {value.first}"
        case np.ndarray():
            return constants.name_of(operator, name, value, alignment)
        case float():
            return c_float(value)
        case _:
            return c_int(int(value))


def _wrapped(start: str, fields: Sequence[str], end: str) -> list[str]:
    """Wrap initialisers between fields."""
    unbroken = [field.replace(" ", _NO_BREAK) for field in fields]
    text = start.replace(" ", _NO_BREAK) + ", ".join(unbroken) + end
    lines = textwrap.wrap(
        text, LINE_WIDTH, subsequent_indent=" " * len(start), break_long_words=False, break_on_hyphens=False
    )
    return [line.replace(_NO_BREAK, " ") for line in lines]


def pointing_lines(symbol: str, operator: str, call: KernelCall) -> list[str]:
    """Return the statements that point the arrays of a record at members of the struct `values`."""
    lines = []
    for name, value in call.params.items():
        first = f" + {value.first}" if isinstance(value, ArrayPointer) else ""
        if isinstance(value, ArrayPointer | np.ndarray):
            lines.append(f"{symbol}.{name} = values->{operator}_{name}{first};")
    return lines


def part_text(
    number: int,
    part: SliceRecord,
    base: OperatorText,
    tensors: Mapping[str, TensorText],
    constants: ConstantPool,
) -> OperatorText:
    """Return the record of the parts of a step: the step's record, with the tensors and parameters that
    differ.
    """
    mark, about = f"k{part.core}", f"{base.name}, whole rows on core {part.core}"
    if part.columns is not None:
        mark += f"c{part.columns.lo}to{part.columns.hi}"
        where = f" on core {part.core}" if part.core else ""
        about = f"{base.name}, cells {part.columns.lo} to {part.columns.hi - 1} of a row{where}"
    part_tensors: list[TensorText] = []

    def shifted(role: str, symbol: str, shift: int) -> str:
        if not shift:
            return symbol
        own = replace(tensors[symbol], symbol=mark + role + symbol, shift=shift)
        if own not in part_tensors:
            part_tensors.append(own)
        return own.symbol

    inputs = [shifted("i", symbol, part.input_shift) for symbol in base.inputs]
    output = shifted("o", base.output, part.output_shift)
    scratch = base.scratch
    if scratch != "0":
        scratch = "&" + shifted("s", scratch[1:], part.scratch_shift)
    params = params_lines(base.name, part.call, constants) if part.call else []
    return replace(
        base,
        params=params,
        params_symbol=f"{mark}p_{base.name}" if params else base.params_symbol,
        tensors=part_tensors,
        about=about,
        summary=f"{number}: {about}",
        inputs=inputs,
        inputs_symbol=mark + base.inputs_symbol,
        output=output,
        scratch=scratch,
    )


def each_once(operators: Iterable[OperatorText]) -> list[OperatorText]:
    """Return the records, each without the parameters and tensors that an earlier one defines."""
    known: set[str] = set()
    distinct = []
    for each in operators:
        params = [] if each.params_symbol in known else each.params
        tensors = [tensor for tensor in each.tensors if tensor.symbol not in known]
        known |= {each.params_symbol, *(tensor.symbol for tensor in tensors)}
        distinct.append(replace(each, params=params, tensors=tensors))
    return distinct


def lane_text(core: int, entries: Sequence[SliceEntry]) -> LaneText:
    """Return the tape of a core, four entries to a line."""
    lines = [
        f"{{{it.entry}, {'MCUD_CORE_WAIT' if it.record is None else it.record}, {it.first}, {it.end}}}"
        for it in entries
    ]
    rows = [", ".join(lines[at : at + 4]) for at in range(0, len(lines), 4)]
    return LaneText(core, len(lines), rows)
