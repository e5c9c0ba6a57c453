"""Conversion between float32 and int8, at float inputs and outputs and around float operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mcudeploy.ir.graph import Operator, Quantization, Tensor
from mcudeploy.ir.opdef import KernelCall, Params
from mcudeploy.ops.common import ElementwiseOperator, is_int8
from mcudeploy.ops.requantize import quantization_of


def _params(quantized: Tensor) -> Params:
    quantization = quantization_of(quantized)
    return {
        "row_elements": quantized.shape[1] * quantized.shape[2],
        "zero_point": quantization.zero_point,
        "scale": float(quantization.scale),
    }


@dataclass(frozen=True, slots=True)
class Quantize(ElementwiseOperator):
    """float32 -> int8 in the output's quantisation: rint(x / scale) + zero_point, half to even, saturated."""

    kind: ClassVar[str] = "Quantize"
    takes_rows: ClassVar[bool] = True
    links_vectors: ClassVar[bool] = True

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `quantize`."""
        if is_int8(inputs[0]) or not is_int8(output):
            raise ValueError("Quantize makes int8 from float32")
        return KernelCall("quantize", _params(output))

    def quantization(self, output: Tensor) -> Quantization | None:
        """Return the quantisation of the output."""
        return output.quantization


@dataclass(frozen=True, slots=True)
class Dequantize(ElementwiseOperator):
    """int8 -> float32 with the input's quantisation: scale * (q - zero_point)."""

    kind: ClassVar[str] = "Dequantize"
    takes_rows: ClassVar[bool] = True
    links_vectors: ClassVar[bool] = True

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `dequantize`."""
        if not is_int8(inputs[0]) or is_int8(output):
            raise ValueError("Dequantize makes float32 from int8")
        return KernelCall("dequantize", _params(inputs[0]))
