"""Contents rewritten before translation: wide integers as inputs and outputs, zeros, dilated convolutions."""

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
    """Replace inputs and outputs of int16 and int32 by float32; return, by number, those of the file.

    Only QUANTIZE and DEQUANTIZE read such an input; QUANTIZE, DEQUANTIZE or SOFTMAX write such an output.
    An operator from INT16 to INT16 computes with the integers, so they stay.
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
            ends = [out for reader in readers.get(number, ()) for out in reader.outputs]
            converted = all(_is_conversion(contents, it) for it in readers.get(number, ()))
            is_io = number in contents.outputs or bool(ends)
            if _is_wide(contents.tensors[number]) and is_io and converted and ios.issuperset(ends):
                ios.add(number)
    return ios


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


def io_notes(contents: Contents, declared: Mapping[int, Declared]) -> tuple[str, ...]:
    """The note to the user about such inputs and outputs."""
    return tuple(
        _note(label, contents.tensors[number], declared[number])
        for label, numbers in (("input", contents.inputs), ("output", contents.outputs))
        for number in numbers
        if number in declared
    )


def int16_notes(contents: Contents) -> tuple[str, ...]:
    """The note to the user about the meaning of inputs and outputs that stay INT16."""
    return tuple(
        f"{label} {tensor.label} is int16: real = {tensor.scales.scale[0]:.9g} * q"
        for label, numbers in (("input", contents.inputs), ("output", contents.outputs))
        for tensor in (contents.tensors[number] for number in numbers)
        if tensor.kind == "INT16" and tensor.scales is not None and tensor.scales.single
    )


def _note(label: str, tensor: TfliteTensor, declared: Declared) -> str:
    meaning = declared.quantization
    return (
        f"{label} {tensor.label} is {declared.dtype.upper()} in the file, and here the real number that it "
        f"stands for: {meaning.scale:.9g} * (q - ({meaning.zero_point})); arrays may have either"
    )


_CONVOLUTIONS = ("CONV_2D", "DEPTHWISE_CONV_2D")
_VALID = 1


@dataclass(frozen=True, slots=True)
class _Dilated:
    """A convolution of an image in batches: the operators before and after it, block, and effective pads."""

    before: TfliteOperator
    conv: TfliteOperator
    after: TfliteOperator
    block: tuple[int, int]
    pads: tuple[tuple[int, int], tuple[int, int]]


def with_constants(contents: Contents) -> Contents:
    """Replace results that follow from shapes and constants of the file by constants, such as the padding of
    a dilated convolution. Their operators stay.
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
    """Replace each convolution of an image in batches by one with a dilation on the padded image."""
    readers = readers_of(contents)
    for number in contents.outputs:  # further readers, so that nothing is replaced
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
    """The convolution after SPACE_TO_BATCH_ND if its result only becomes an image again; else None."""
    conv = _sole(readers, before, "SPACE_TO_BATCH_ND", _CONVOLUTIONS)
    after = None if conv is None else _sole(readers, conv, conv.op, ("BATCH_TO_SPACE_ND",))
    if conv is None or after is None or conv.inputs[0] != before.outputs[0]:
        return None
    constants = [contents.tensors[number] for each in (before, after) for number in each.inputs[1:3]]
    image, result = (contents.tensors[number] for number in (before.inputs[0], after.outputs[0]))
    conv_result = contents.tensors[conv.outputs[0]]
    alike = conv_result.kind == result.kind and conv_result.scales == result.scales
    if not alike or len(image.shape) != 4 or not all(_is_constant(it) for it in constants):
        return None
    plain = all(conv.options.get(name) == 1 for name in ("StrideH", "StrideW", "Padding"))
    plain &= all(conv.options.get(name, 1) == 1 for name in ("DilationHFactor", "DilationWFactor"))
    block, amounts, block_after, crops = ([int(x) for x in it.array().reshape(-1)] for it in constants)
    sound = block == block_after and len(block) == 2 and len(amounts) == len(crops) == 4
    if not plain or not sound or min(block) < 1:
        return None
    pads = [amount - crop for amount, crop in zip(amounts, crops, strict=True)]
    if min(pads) < 0:
        return None
    return _Dilated(before, conv, after, (block[0], block[1]), ((pads[0], pads[1]), (pads[2], pads[3])))


def _sole(
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
    """The operators that replace the three, by index; adds the padding to the tensors."""
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
_OF_ONE_SCALE = ("CONCATENATION", "MAXIMUM", "MINIMUM", "PACK")


def with_scaled_zeros(contents: Contents) -> Contents:
    """Give a scale to constants of zeros whose scale is 0, as converters write first states.

    It is the scale of the operand to which they are added, or of the result. Products with them become such
    constants.
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
        for number in zeros if operator.op in (*_SUMS, *_OF_ONE_SCALE) else ():
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
