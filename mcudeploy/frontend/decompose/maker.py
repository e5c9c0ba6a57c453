"""The Maker, by which a rule reads a node and adds the nodes that replace it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from onnx import NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from mcudeploy.common.text import printable
from mcudeploy.frontend.onnx.constants import Constant, Quantized
from mcudeploy.frontend.onnx.nodes import Infos, Unsupported
from mcudeploy.frontend.onnx.protos import element_type

_AXES_IN_INPUTS = 18
"""First opset in which all reductions take their axes as an input; ReduceSum does so from opset 13."""


@dataclass(frozen=True, slots=True, eq=False)
class ModelFacts:
    """Facts about a model that rules read.

    `constants` by name, to which rules add; `dequantized`: results of DequantizeLinear on constants. `read`:
    names of values that a node or output reads; `computed`: of those that depend on inputs. `float_sums` maps
    an int32 value to the float32 value of the same sums. `stated`: types and shapes of values that inference
    cannot find.
    """

    opset: int
    infos: Infos
    constants: dict[str, TensorProto]
    dequantized: Mapping[str, Constant]
    read: frozenset[str]
    computed: frozenset[str]
    float_sums: dict[str, str] = field(default_factory=dict)
    stated: list[ValueInfoProto] = field(default_factory=list)


class Maker:
    """Collects the nodes that replace one node. They keep its name, which errors quote."""

    def __init__(self, node: NodeProto, label: str, facts: ModelFacts) -> None:
        self.node, self.nodes = node, list[NodeProto]()
        self.op, self.inputs, self.outputs = str(node.op_type), list(node.input), list(node.output)
        self.attributes: dict[str, Any] = {
            item.name: helper.get_attribute_value(item) for item in node.attribute
        }
        self._folded: set[str] = set()
        self.label, self.stem = label, f"{next(filter(None, node.output), label)}/{node.op_type}"
        self.opset, self._infos, self._constants = facts.opset, facts.infos, facts.constants
        self._dequantized, self._read = facts.dequantized, facts.read
        self._computed = facts.computed
        self.float_sums, self._stated = facts.float_sums, facts.stated

    def input(self, position: int) -> str:
        """The name of an input, "" if it is left out."""
        return self.inputs[position] if position < len(self.inputs) else ""

    def all_inputs(self, count: int) -> list[str]:
        """The names of the operator's `count` inputs, "" for those that are left out."""
        return [self.input(position) for position in range(count)]

    def output(self, position: int) -> str:
        """The name of an output, "" if it is left out."""
        return self.outputs[position] if position < len(self.outputs) else ""

    def is_read(self, name: str) -> bool:
        """Whether a node reads a value of the file, or the value is a graph output."""
        return name in self._read

    def is_computed(self, name: str) -> bool:
        """Whether a value of the file depends on an input."""
        return name in self._computed

    def integer(self, name: str, default: int = 0) -> int:
        """An integer attribute."""
        return int(self.attributes.get(name, default))

    def number(self, name: str, default: float = 0.0) -> float:
        """A float attribute."""
        return float(self.attributes.get(name, default))

    def only(self, *names: str) -> dict[str, Any]:
        """Return the given attributes that the node has."""
        return {name: self.attributes[name] for name in names if name in self.attributes}

    def add(self, op: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        """Add a node; return the name of its output."""
        name = out or f"{self.stem}/{len(self.nodes)}"
        if all(self.is_constant(source) for source in inputs if source):
            self._folded.add(name)
        self.nodes.append(helper.make_node(op, inputs, [name], name=self.label, **attributes))
        return name

    def state(self, name: str, dtype: Any, shape: Sequence[int]) -> None:
        """State the type and shape of a value that a node of another domain than ONNX's computes."""
        kind = element_type(dtype)
        self._stated.append(helper.make_tensor_value_info(name, kind, shape))

    def constant(self, value: ArrayLike, dtype: Any = np.float32) -> str:
        """Add a constant; return its name."""
        name = f"{self.stem}/constant {len(self._constants)}"
        self._constants[name] = numpy_helper.from_array(np.asarray(value, dtype), name)
        return name

    def int64(self, values: ArrayLike) -> str:
        """Add a constant of int64; return its name."""
        return self.constant(values, np.int64)

    def known(self, name: str) -> NDArray[Any] | None:
        """The value of a constant, or None if it is computed."""
        constant = self._constants.get(name)
        if constant is not None:
            return numpy_helper.to_array(constant)
        return self._dequantized[name].value.astype(np.float32) if name in self._dequantized else None

    def quantized(self, name: str) -> Quantized | None:
        """The integer form of a constant that is dequantised; None for others."""
        return self._dequantized[name].quantized if name in self._dequantized else None

    def require_float(self) -> None:
        """Raise Unsupported if the first input holds integers."""
        kind = self.dtype(self.inputs[0])
        if kind is not None and not kind.endswith(("float16", "float32", "float64")):
            raise Unsupported(f"it computes on {kind}; a Cast to float32 must stand before it")

    def is_constant(self, name: str) -> bool:
        """Whether a value is constant, or added nodes compute it from constants."""
        return name in self._constants or name in self._dequantized or name in self._folded

    def constant_of(self, name: str, label: str) -> NDArray[Any]:
        """The value of a constant. Raises Unsupported, naming `label`, if it is computed."""
        constant = self.known(name)
        if constant is None:
            raise Unsupported(f"{label} must be constant")
        return constant

    def sizes(self, name: str) -> tuple[int, ...]:
        """The shape of a value of the file. Raises Unsupported if it is not known."""
        shape = self.shape(name)
        if shape is None:
            raise Unsupported(
                f"the shape of {printable(name)!r} is not known; simplify the model, with onnxsim for example"
            )
        return shape

    def shape(self, name: str) -> tuple[int, ...] | None:
        """The shape of a value of the file; None if it is not known."""
        constant = self._constants.get(name)
        if constant is not None:
            return tuple(constant.dims)
        return self._infos[name].shape if name in self._infos else None

    def dtype(self, name: str) -> str | None:
        """The element type of a value of the file, by its numpy name; None if it is not known."""
        constant = self._constants.get(name)
        if constant is not None:
            return str(helper.tensor_dtype_to_np_dtype(constant.data_type))
        return self._infos[name].dtype if name in self._infos else None

    def reduce(self, op: str, x: str, axes: Sequence[int] | None, *, keep: bool = True, out: str = "") -> str:
        """Add a reduction over axes (None: all); `keep`: they remain, with size 1."""
        keepdims = int(keep)
        if axes is None:
            return self.add(op, x, out=out, keepdims=keepdims)
        if op == "ReduceSum" or self.opset >= _AXES_IN_INPUTS:
            return self.add(op, x, self.int64(axes), out=out, keepdims=keepdims)
        return self.add(op, x, out=out, axes=list(axes), keepdims=keepdims)

    def normalized(self, x: str, axes: Sequence[int], epsilon: float) -> tuple[str, str]:
        """Return `x` minus its mean over the axes, and its standard deviation over them."""
        centred = self.add("Sub", x, self.reduce("ReduceMean", x, axes))
        variance = self.reduce("ReduceMean", self.add("Mul", centred, centred), axes)
        if epsilon:
            variance = self.add("Add", variance, self.constant(epsilon))
        return centred, self.add("Sqrt", variance)

    def slice(self, x: str, *bounds: Sequence[int], out: str = "") -> str:
        """Select a part of `x` by starts, ends and, if given, axes and steps."""
        return self.add("Slice", x, *(self.int64(bound) for bound in bounds), out=out)

    def reshaped(self, x: str, shape: Sequence[int], out: str = "") -> str:
        """Reshape `x`."""
        return self.add("Reshape", x, self.int64(shape), out=out)
