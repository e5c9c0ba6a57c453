"""Rewriting of contents before translation: inputs and outputs of wide integers, zeros, dilations."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.tflite.constant_folding import folded
from mcudeploy.frontend.tflite.contents import Contents, TfliteOperator, TfliteTensor, readers_of
from mcudeploy.ir.graph import Declared, Quantization

_CONVERSIONS = frozenset(("DEQUANTIZE", "QUANTIZE"))
_REAL_WRITERS = frozenset((*_CONVERSIONS, "SOFTMAX"))
_WIDE = ("INT16", "INT32")
_ACTIVATIONS = ("INT8", "INT16", "UINT8")


def with_real_io(contents: Contents) -> tuple[Contents, dict[int, Declared]]:
    """Replace quantised inputs and outputs of int16 and int32 by float32.

    Also returns, by number, their types and scales in the file. Only inputs that QUANTIZE or DEQUANTIZE
    alone read are replaced, and outputs that QUANTIZE, DEQUANTIZE or SOFTMAX write. Those of an operator from
    INT16 to INT16 stay, for it computes with the integers.
    """
    ios = _wide_io(contents)
    tensors = tuple(
        replace(tensor, kind="FLOAT32", scales=None) if number in ios else tensor
        for number, tensor in enumerate(contents.tensors)
    )
    declared = {
        number: _declared(contents.tensors[number])
        for number in (*contents.inputs, *contents.outputs)
        if number in ios
    }
    return replace(contents, tensors=tensors), declared


def _wide_io(contents: Contents) -> set[int]:
    """The numbers of the tensors to replace: inputs, outputs, and what QUANTIZE makes outputs of."""
    readers = readers_of(contents)
    ios = {
        number
        for number in contents.inputs
        if _is_wide(contents.tensors[number])
        and all(_is_conversion(contents, it) for it in readers.get(number, ()))
    }
    for operator in reversed(contents.operators):
        writes_real = operator.op in _REAL_WRITERS and not _computes_int16(contents, operator)
        for number in operator.outputs if writes_real else ():
            results = [out for reader in readers.get(number, ()) for out in reader.outputs]
            converted = all(_is_conversion(contents, it) for it in readers.get(number, ()))
            is_io = number in contents.outputs or bool(results)
            if _is_wide(contents.tensors[number]) and is_io and converted and ios.issuperset(results):
                ios.add(number)
    return ios


def _is_conversion(contents: Contents, operator: TfliteOperator) -> bool:
    return operator.op in _CONVERSIONS and not _computes_int16(contents, operator)


def _computes_int16(contents: Contents, operator: TfliteOperator) -> bool:
    """Whether the input and the result of an operator are INT16."""
    numbers = (*operator.inputs[:1], *operator.outputs[:1])
    return {contents.tensors[number].kind for number in numbers} == {"INT16"}


def _is_wide(tensor: TfliteTensor) -> bool:
    scales = tensor.scales
    return tensor.kind in _WIDE and tensor.data is None and scales is not None and scales.single


def _declared(tensor: TfliteTensor) -> Declared:
    assert tensor.scales is not None
    quantization = Quantization(tensor.scales.scale[0], tensor.scales.zero_point[0])
    return Declared(tensor.kind.lower(), quantization)


def io_notes(contents: Contents, declared: Mapping[int, Declared]) -> tuple[str, ...]:
    """The notes to the user about inputs and outputs that are float32 here."""
    return tuple(
        _note(label, contents.tensors[number], declared[number])
        for label, numbers in (("input", contents.inputs), ("output", contents.outputs))
        for number in numbers
        if number in declared
    )


def int16_notes(contents: Contents) -> tuple[str, ...]:
    """The notes to the user about the scales of inputs and outputs that stay INT16."""
    return tuple(
        f"{label} {tensor.label} is int16: real = {tensor.scales.scale[0]:.9g} * q"
        for label, numbers in (("input", contents.inputs), ("output", contents.outputs))
        for tensor in (contents.tensors[number] for number in numbers)
        if tensor.kind == "INT16" and tensor.scales is not None and tensor.scales.single
    )


def _note(label: str, tensor: TfliteTensor, declared: Declared) -> str:
    scale, zero_point = declared.quantization.scale, declared.quantization.zero_point
    return (
        f"{label} {tensor.label} is {declared.dtype.upper()} in the file, and here the real number that it "
        f"stands for: {scale:.9g} * (q - ({zero_point})); arrays may have either"
    )


_CONVOLUTIONS = ("CONV_2D", "DEPTHWISE_CONV_2D")
_VALID = 1


@dataclass(frozen=True, slots=True)
class _Dilated:
    """A dilated convolution that the file computes on a batch of images, each with every n-th pixel.

    `before` makes this batch, `after` joins it; `block`: the dilations; `pads`: the padding of the image.
    """

    before: TfliteOperator
    conv: TfliteOperator
    after: TfliteOperator
    block: tuple[int, int]
    pads: tuple[tuple[int, int], tuple[int, int]]


def with_constants(contents: Contents) -> Contents:
    """Make results constant that follow from shapes and constants of the file; their operators stay.

    The padding of a dilated convolution is such a result.
    """
    tensors = list(contents.tensors)
    for operator in contents.operators:
        sources = [tensors[number] for number in operator.inputs if number >= 0]
        if len(operator.outputs) == 1 and operator.outputs[0] not in contents.outputs:
            with suppress(ArithmeticError, LookupError, TypeError, ValueError, Unsupported):
                result = folded(operator, sources, tensors[operator.outputs[0]])
                tensors[operator.outputs[0]] = result or tensors[operator.outputs[0]]
    return replace(contents, tensors=tuple(tensors))


def with_dilations(contents: Contents) -> Contents:
    """Replace convolutions between SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND by dilated ones with padding."""
    readers = readers_of(contents)
    for number in contents.outputs:  # two more readers, so that no output has a single one
        readers.setdefault(number, []).extend(contents.operators[:2])
    tensors = list(contents.tensors)
    changed: dict[int, TfliteOperator | None] = {}
    for operator in contents.operators:
        dilated = _dilated(contents, readers, operator)
        if dilated is not None:
            changed |= _replacement(tensors, dilated)
    if not changed:
        return contents
    operators = (changed.get(it.index, it) for it in contents.operators)
    return replace(
        contents, tensors=tuple(tensors), operators=tuple(it for it in operators if it is not None)
    )


def _dilated(
    contents: Contents, readers: Mapping[int, list[TfliteOperator]], before: TfliteOperator
) -> _Dilated | None:
    """The dilated convolution that begins with the operator `before`; None if there is none."""
    conv = _only_reader(readers, before, "SPACE_TO_BATCH_ND", _CONVOLUTIONS)
    after = None if conv is None else _only_reader(readers, conv, conv.op, ("BATCH_TO_SPACE_ND",))
    if conv is None or after is None or conv.inputs[0] != before.outputs[0]:
        return None
    constants = [contents.tensors[number] for each in (before, after) for number in each.inputs[1:3]]
    image, result = (contents.tensors[number] for number in (before.inputs[0], after.outputs[0]))
    conv_result = contents.tensors[conv.outputs[0]]
    same_scales = conv_result.kind == result.kind and conv_result.scales == result.scales
    if not same_scales or len(image.shape) != 4 or not all(_is_constant(it) for it in constants):
        return None
    plain = all(conv.options.get(name) == 1 for name in ("StrideH", "StrideW", "Padding"))
    plain &= all(conv.options.get(name, 1) == 1 for name in ("DilationHFactor", "DilationWFactor"))
    block, amounts, block_after, crops = ([int(x) for x in it.array().reshape(-1)] for it in constants)
    fits = block == block_after and len(block) == 2 and len(amounts) == len(crops) == 4
    if not plain or not fits or min(block) < 1:
        return None
    pads = [amount - crop for amount, crop in zip(amounts, crops, strict=True)]
    if min(pads) < 0:
        return None
    return _Dilated(before, conv, after, (block[0], block[1]), ((pads[0], pads[1]), (pads[2], pads[3])))


def _only_reader(
    readers: Mapping[int, list[TfliteOperator]], operator: TfliteOperator, op: str, wanted: tuple[str, ...]
) -> TfliteOperator | None:
    """The only reader of the result of an operator of kind `op`, if it is one of the wanted kinds."""
    if operator.op != op or len(operator.outputs) != 1:
        return None
    others = readers.get(operator.outputs[0], [])
    return others[0] if len(others) == 1 and others[0].op in wanted else None


def _is_constant(tensor: TfliteTensor) -> bool:
    return tensor.data is not None and tensor.kind in ("INT32", "INT64")


def _replacement(tensors: list[TfliteTensor], dilated: _Dilated) -> dict[int, TfliteOperator | None]:
    """The operators that replace those of a dilated convolution, by index; adds the padding to `tensors`."""
    image, padded = tensors[dilated.before.inputs[0]], dilated.before.outputs[0]
    amounts = np.array([(0, 0), *dilated.pads, (0, 0)], "<i4")
    shape = tuple(size + sum(ends) for size, ends in zip(image.shape, amounts.tolist(), strict=True))
    tensors[padded] = replace(tensors[padded], shape=shape)
    number = len(tensors)
    data = memoryview(amounts.tobytes())
    tensors.append(TfliteTensor(number, f"{image.name}/padding", amounts.shape, "INT32", data, None))
    pad = replace(dilated.before, op="PAD", inputs=(dilated.before.inputs[0], number), options={})
    rows, cols = dilated.block
    options = {**dilated.conv.options, "DilationHFactor": rows, "DilationWFactor": cols, "Padding": _VALID}
    conv = replace(dilated.conv, outputs=dilated.after.outputs, options=options)
    return {pad.index: pad, conv.index: conv, dilated.after.index: None}


_SUMS = ("ADD", "SUB")
_SAME_SCALE = ("CONCATENATION", "MAXIMUM", "MINIMUM", "PACK")
"""Operators whose operands get the scale of the result."""


def with_scaled_zeros(contents: Contents) -> Contents:
    """Give a scale to constants of zeros whose scale is 0: converters write initial states so.

    The scale is that of the operand to which the zeros are added, or that of the result. Products with zeros
    become constants of zeros.
    """
    tensors, operators = list(contents.tensors), list[TfliteOperator]()
    for operator in contents.operators:
        zeros = [number for number in operator.inputs if number >= 0 and _is_unscaled_zero(tensors[number])]
        result = tensors[operator.outputs[0]] if operator.outputs else None
        if not zeros or result is None or result.scales is None:
            operators.append(operator)
            continue
        if operator.op == "MUL" and result.index not in contents.outputs:
            tensors[result.index] = _zeros(result)
            continue
        others = [number for number in operator.inputs if number not in zeros]
        source = tensors[others[0]] if operator.op in _SUMS and others else result
        numbers = dict[int, int]()
        for number in zeros if operator.op in (*_SUMS, *_SAME_SCALE) else ():
            numbers[number] = len(tensors)
            tensors.append(_zeros(replace(tensors[number], index=len(tensors), scales=source.scales)))
        inputs = tuple(numbers.get(number, number) for number in operator.inputs)
        operators.append(replace(operator, inputs=inputs))
    return replace(contents, tensors=tuple(tensors), operators=tuple(operators))


def _is_unscaled_zero(tensor: TfliteTensor) -> bool:
    scales = tensor.scales
    if tensor.data is None or scales is None or not scales.single or tensor.kind not in _ACTIVATIONS:
        return False
    tiny = scales.scale[0] < float(np.finfo(np.float32).tiny)
    return tiny and bool(np.all(tensor.array() == scales.zero_point[0]))


def _zeros(tensor: TfliteTensor) -> TfliteTensor:
    """The tensor as a constant of real zeros."""
    zero = 0 if tensor.scales is None else tensor.scales.zero_point[0]
    return replace(tensor, data=memoryview(np.full(tensor.shape, zero, tensor.dtype).tobytes()))
