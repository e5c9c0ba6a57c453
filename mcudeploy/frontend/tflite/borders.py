"""Integers of 16 and 32 bits at the borders of a network of int8: the real numbers that they stand for."""

from __future__ import annotations

from dataclasses import replace

from mcudeploy.frontend.tflite.contents import Contents, Operator, Tensor

_CONVERSIONS = frozenset(("DEQUANTIZE", "QUANTIZE"))
_MAKERS = frozenset((*_CONVERSIONS, "SOFTMAX"))
_WIDE = ("INT16", "INT32")


def with_real_borders(contents: Contents) -> tuple[Contents, tuple[str, ...]]:
    """The file with float32 in place of such integers, and notes on inputs and outputs that they are.

    An input must be read by QUANTIZE and DEQUANTIZE only; what QUANTIZE, DEQUANTIZE or SOFTMAX make, by these
    or by the caller.
    """
    readers: dict[int, list[Operator]] = {}
    makers: dict[int, Operator] = {}
    for operator in contents.operators:
        makers.update(dict.fromkeys(operator.outputs, operator))
        for number in operator.inputs:
            readers.setdefault(number, []).append(operator)
    tensors, notes = list(contents.tensors), list[str]()
    for number, tensor in enumerate(contents.tensors):
        maker = makers.get(number)
        fed = number in contents.inputs if maker is None else maker.op in _MAKERS
        converted = all(operator.op in _CONVERSIONS for operator in readers.get(number, ()))
        if not (_is_wide(tensor) and fed and converted):
            continue
        tensors[number] = replace(tensor, kind="FLOAT32", scales=None)
        if number in contents.inputs or number in contents.outputs:
            notes.append(_note(tensor, "input" if maker is None else "output"))
    return replace(contents, tensors=tuple(tensors)), tuple(notes)


def _is_wide(tensor: Tensor) -> bool:
    scales = tensor.scales
    return tensor.kind in _WIDE and tensor.data is None and scales is not None and scales.single


def _note(tensor: Tensor, what: str) -> str:
    assert tensor.scales is not None
    scale, zero_point = tensor.scales.scale[0], tensor.scales.zero_point[0]
    return (
        f"{what} {tensor.label} is {tensor.kind} in the file, and here the real number that it stands for: "
        f"{scale:.9g} * (q - ({zero_point}))"
    )
