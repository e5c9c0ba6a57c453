"""16-bit and 32-bit integer inputs and outputs of int8 networks, replaced by their real numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mcudeploy.frontend.tflite.contents import Contents, TfliteOperator, TfliteTensor, readers_of
from mcudeploy.ir.graph import Declared, Quantization

_CONVERSIONS = frozenset(("DEQUANTIZE", "QUANTIZE"))
_MAKERS = frozenset((*_CONVERSIONS, "SOFTMAX"))
_WIDE = ("INT16", "INT32")


def with_real_borders(contents: Contents) -> tuple[Contents, dict[int, Declared]]:
    """Replace such integers by float32; return, by number, the inputs and outputs of the file.

    Only QUANTIZE and DEQUANTIZE read such an input; QUANTIZE, DEQUANTIZE or SOFTMAX write such an output.
    What an operator makes of INT16, or makes INT16 of, stays: it computes with the integers.
    """
    found = _borders(contents)
    tensors = tuple(
        replace(tensor, kind="FLOAT32", scales=None) if number in found else tensor
        for number, tensor in enumerate(contents.tensors)
    )
    declared = {
        number: _declared(contents.tensors[number])
        for number in (*contents.inputs, *contents.outputs)
        if number in found
    }
    return replace(contents, tensors=tensors), declared


def _borders(contents: Contents) -> set[int]:
    readers = readers_of(contents)
    found = {
        number
        for number in contents.inputs
        if _is_wide(contents.tensors[number])
        and all(_is_conversion(contents, it) for it in readers.get(number, ()))
    }
    for operator in reversed(contents.operators):
        makes = operator.op in _MAKERS and not _computes_int16(contents, operator)
        for number in operator.outputs if makes else ():
            ends = [out for reader in readers.get(number, ()) for out in reader.outputs]
            converted = all(_is_conversion(contents, it) for it in readers.get(number, ()))
            taken = number in contents.outputs or bool(ends)
            if _is_wide(contents.tensors[number]) and taken and converted and found.issuperset(ends):
                found.add(number)
    return found


def _is_conversion(contents: Contents, operator: TfliteOperator) -> bool:
    return operator.op in _CONVERSIONS and not _computes_int16(contents, operator)


def _computes_int16(contents: Contents, operator: TfliteOperator) -> bool:
    """Whether input and result are INT16."""
    numbers = (*operator.inputs[:1], *operator.outputs[:1])
    return {contents.tensors[number].kind for number in numbers} == {"INT16"}


def _is_wide(tensor: TfliteTensor) -> bool:
    scales = tensor.scales
    return tensor.kind in _WIDE and tensor.data is None and scales is not None and scales.single


def _declared(tensor: TfliteTensor) -> Declared:
    assert tensor.scales is not None
    meaning = Quantization(tensor.scales.scale[0], tensor.scales.zero_point[0])
    return Declared(tensor.kind.lower(), meaning)


def border_notes(contents: Contents, declared: Mapping[int, Declared]) -> tuple[str, ...]:
    """The note to the user about such inputs and outputs."""
    return tuple(
        _note(what, contents.tensors[number], declared[number])
        for what, numbers in (("input", contents.inputs), ("output", contents.outputs))
        for number in numbers
        if number in declared
    )


def int16_notes(contents: Contents) -> tuple[str, ...]:
    """The note to the user about inputs and outputs that stay INT16: what their integers stand for."""
    return tuple(
        f"{what} {tensor.label} is int16: real = {tensor.scales.scale[0]:.9g} * q"
        for what, numbers in (("input", contents.inputs), ("output", contents.outputs))
        for tensor in (contents.tensors[number] for number in numbers)
        if tensor.kind == "INT16" and tensor.scales is not None and tensor.scales.single
    )


def _note(what: str, tensor: TfliteTensor, declared: Declared) -> str:
    meaning = declared.quantization
    return (
        f"{what} {tensor.label} is {declared.dtype.upper()} in the file, and here the real number that it "
        f"stands for: {meaning.scale:.9g} * (q - ({meaning.zero_point})); arrays may have either"
    )
