"""The graph under construction: emitted operators, values by name, and rearranged tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from mcudeploy.frontend.lower.taking import depth_to_space, taking
from mcudeploy.frontend.onnx.constants import Constant
from mcudeploy.frontend.onnx.names import Names
from mcudeploy.frontend.onnx.nodes import (
    MAX_MADE_ELEMENTS,
    BatchEntry,
    Node,
    OnnxModel,
    Unsupported,
    require_bounded,
)
from mcudeploy.frontend.onnx.quantization import IntegerTable, activation_parameters, is_identity
from mcudeploy.frontend.onnx.values import IndexArray, OnnxValue, is_storage_order, permutation
from mcudeploy.ir.graph import DType, GraphIO, Operator, Quantization, Shape, State, Tensor
from mcudeploy.ir.opdef import ConstantArray, OperatorDef
from mcudeploy.ops.move.quantize import Dequantize
from mcudeploy.ops.move.transpose import Transpose
from mcudeploy.ops.move.view import Reshape
from mcudeploy.ops.requantize import dequantize, dequantize_table, quantize
from mcudeploy.ops.scalar.elementwise import Binary, Lut

Lowering = Callable[["Builder", Node], None]
"""A function that emits the operators of a node."""
RealLowering = Callable[["Builder", Node], OnnxValue]
"""A function that lowers the first output of a node to float tensors, without fusion and tables."""


@dataclass(frozen=True, slots=True)
class OperatorLowering:
    """How an ONNX operator is lowered, and the row of docs/operators.md about it.

    `on_int8`: how an operator between DequantizeLinear and QuantizeLinear is computed; `only`: its
    restrictions. `real`: the lowering to floats, for operators whose result may be a table on an int8 tensor.
    """

    lowering: Lowering
    on_int8: str = "float"
    only: str = ""
    real: RealLowering | None = None


_BORDER_DTYPES = {
    DType.FLOAT32: ("float32",),
    DType.INT32: ("int32", "int64", "uint32"),
    DType.INT16: ("int16",),
    DType.INT8: ("int8", "uint8"),
}


class Builder:
    """State of the lowering; `tensors`, `operators` and `references` become the Graph.

    `done`: outputs of nodes that earlier operators cover. `contents`: by ONNX value, the tensor that is the
    new content of a state. `float_causes`: by node label, why a node that the file quantises is computed in
    float32. `widened`: the number of elements of weights in blocks that become float32.
    """

    def __init__(self, model: OnnxModel, real_lowerings: Mapping[str, RealLowering]) -> None:
        self.model = model
        self.constants: dict[str, Constant] = dict(model.constants)
        self.values: dict[str, OnnxValue] = {}
        self.tensors: dict[str, Tensor] = {}
        self.operators: list[Operator] = []
        self.references: dict[str, GraphIO] = {}
        self.done: set[str] = set()
        self.notes: list[str] = []
        self.float_causes: dict[str, str] = {}
        self.widened = 0
        self.consumers = model.consumers()
        self.producers = model.producers()
        self.outputs = {info.name for info in model.outputs}
        self.states: list[State] = []
        self.contents: dict[str, str] = {}
        self._names = Names()
        self._elements = 0
        self._real_lowerings = real_lowerings
        self._reals: dict[str, OnnxValue] = {}
        self._shared: dict[tuple[object, ...], str] = {}

    # -- looking up -----------------------------------------------------------------------------

    def value(self, name: str) -> OnnxValue:
        """The activation of this name. Raises Unsupported if it is a constant or left out."""
        value = self.values.get(name)
        if value is None:
            raise Unsupported("an input that must be computed at run time is constant or left out")
        return value

    def constant(self, name: str, label: str) -> Constant:
        """The constant of this name. Raises Unsupported, naming `label`, if the value is computed."""
        constant = self.constants.get(name)
        if constant is None:
            raise Unsupported(f"{label} must be constant")
        return constant

    def operand(self, name: str) -> OnnxValue | Constant:
        """An activation or a constant."""
        constant = self.constants.get(name)
        return constant if constant is not None else self.value(name)

    def is_read(self, name: str) -> bool:
        """Whether a node reads an ONNX value, or it is a graph output."""
        return name in self.consumers or name in self.outputs

    def shape_of(self, tensor: str) -> Shape:
        """The stored shape of a tensor."""
        return self.tensors[tensor].shape

    def output_shape(self, op: OperatorDef, inputs: Sequence[str]) -> Shape:
        """The stored shape of an operator's result."""
        return op.loops(tuple(map(self.shape_of, inputs))).output_shape()

    # -- values ---------------------------------------------------------------------------------

    def define(self, name: str, value: OnnxValue) -> None:
        """Define an ONNX value, and make it the reference of its tensor if the tensor stores nothing else."""
        self.values[name] = value
        info = self.model.infos.get(name)
        entry = self.model.entries.get(name)
        if value.table is not None or info is None or info.shape != value.shape:
            return
        if (name if entry is None else entry.whole) in self.model.introduced:
            return
        tensor = self.tensors[value.tensor]
        if value.real != (tensor.dtype is DType.FLOAT32) or info.dtype not in _BORDER_DTYPES[tensor.dtype]:
            return
        if value.tensor not in self.references:
            io = self.io(name, value, info.dtype)
            self.references[value.tensor] = io if entry is None else self._in_batch(io, entry)

    def _in_batch(self, io: GraphIO, entry: BatchEntry) -> GraphIO:
        """The input or output of one entry of a batch, as a part of the file's value."""
        order = np.full((entry.batch, io.order.size), -1, np.int32)
        order[entry.number] = io.order
        shape = (entry.batch, *io.shape[1:])
        dtype = self.model.file_types.get(entry.whole, io.dtype)
        return GraphIO(io.tensor, entry.whole, shape, dtype, order.reshape(-1))

    def io(self, name: str, value: OnnxValue, dtype: str) -> GraphIO:
        """Describe the relation of the value's tensor to the ONNX value of this name."""
        order = np.ascontiguousarray(value.index.reshape(-1), np.int32)
        file_dtype = self.model.file_types.get(name, dtype)
        off_by_one = name in self.model.off_by_one and self.tensors[value.tensor].dtype is DType.INT16
        return GraphIO(
            value.tensor, name, value.shape, file_dtype, order, self.model.declared.get(name), off_by_one
        )

    def dequantized(self, node: Node) -> OnnxValue:
        """Lower DequantizeLinear of an activation: the stored values seen through a table."""
        source = self.value(node.inputs[0])
        if source.real:
            raise Unsupported("DequantizeLinear needs integers, its input is float32")
        dtype = self.model.dtype_of(node.inputs[0])
        quantization = activation_parameters(self.constants, node, dtype)
        if source.table is None:
            return replace(source, real=True, table=dequantize_table(quantization), quantization=quantization)
        return replace(source, real=True, table=dequantize(source.table, quantization), quantization=None)

    def int8_form(self, name: str) -> OnnxValue | None:
        """The dequantised int8 tensor that a float value is; None for other values."""
        value = self.value(name)
        if not value.real or value.table is None:
            return None
        if value.quantization is None:
            node = self.producers.get(name)
            if node is None or node.op != "DequantizeLinear":
                return None
            self.integers(node.inputs[0])
            value = self.values[name] = self.dequantized(node)
        if value.quantization is None:
            return None
        return replace(value, tensor=self.reinterpreted(value.tensor, value.quantization))

    def integers(self, name: str) -> OnnxValue:
        """Store an integer value as a separate int8 tensor; a pending table is emitted as Lut."""
        value = self.value(name)
        if value.real:
            raise Unsupported("integers are needed here, the input is float32")
        if value.table is None:
            return value
        quantization = value.quantization or Quantization(1.0, 0)
        tensor = self.looked_up(value.tensor, value.table.astype(np.int8), quantization, self.nodes_of(name))
        stored = OnnxValue(tensor, value.index, real=False, quantization=quantization)
        self.define(name, stored)
        return stored

    def as_tensor(self, name: str) -> OnnxValue:
        """Store a value as a tensor without a pending table, floats as float32."""
        return self.real(name) if self.value(name).real else self.integers(name)

    def requantized(self, name: str, quantization: Quantization) -> OnnxValue:
        """Convert a float value that is a table on an int8 tensor to this quantisation, rounded once."""
        value = self.value(name)
        if value.table is None or not value.real:
            raise Unsupported("a value on an int8 tensor is needed here")
        int8_form = self.int8_form(name)
        if int8_form is not None and int8_form.quantization == quantization:
            return int8_form
        value = self.value(name)
        table = quantize(np.asarray(value.table, np.float32), quantization)
        tensor = self.looked_up(value.tensor, table, quantization, self.nodes_of(name))
        floats = dequantize_table(quantization)
        return OnnxValue(tensor, value.index, real=True, table=floats, quantization=quantization)

    def real(self, name: str) -> OnnxValue:
        """Store a float value as a float32 tensor; a pending table is computed in float."""
        value = self.value(name)
        if not value.real:
            raise Unsupported("an operator on integers: only QuantizeLinear and DequantizeLinear handle them")
        if value.table is None:
            return value
        if name not in self._reals:
            self._reals[name] = self._computed(name)
        return self._reals[name]

    def converted(self, name: str) -> OnnxValue:
        """Store a float value as `real` does, but do not share the float32 copy of an int8 tensor."""
        int8_form = self.int8_form(name) if self.value(name).table is not None else None
        return self.real(name) if int8_form is None else self._dequantized(name, int8_form)

    def _dequantized(self, name: str, int8_form: OnnxValue) -> OnnxValue:
        shape = self.shape_of(int8_form.tensor)
        nodes = self.nodes_of(name)
        tensor = self.emit(Dequantize(), (int8_form.tensor,), shape, DType.FLOAT32, nodes=nodes)
        return OnnxValue(tensor, int8_form.index, real=True)

    def _computed(self, name: str) -> OnnxValue:
        int8_form = self.int8_form(name)
        if int8_form is not None:
            key = ("dequantize", int8_form.tensor)
            tensor = self._shared.get(key)
            if tensor is None:
                tensor = self._shared[key] = self._dequantized(name, int8_form).tensor
            return OnnxValue(tensor, int8_form.index, real=True)
        node = self.producers.get(name)
        lowering = None if node is None else self._real_lowerings.get(node.op)
        if node is None or lowering is None:
            raise Unsupported("its input has no float form")
        return lowering(self, node)

    def nodes_of(self, name: str) -> tuple[Node, ...]:
        """The node that computes an ONNX value, if there is one."""
        node = self.producers.get(name)
        return () if node is None else (node,)

    # -- making tensors -------------------------------------------------------------------------

    def tensor(
        self, name: str, shape: Shape, dtype: DType, quantization: Quantization | None = None
    ) -> Tensor:
        """Add a tensor. Raises Unsupported for sizes beyond the limits of mcudeploy."""
        require_bounded(shape, "a result")
        self._elements += prod(shape)
        if self._elements > MAX_MADE_ELEMENTS:
            raise Unsupported(
                f"the operators of it and all before it have more than {MAX_MADE_ELEMENTS:,} "
                "elements, a limit of mcudeploy: export the model with smaller inputs"
            )
        tensor = Tensor(name, shape, dtype, quantization)
        self.tensors[name] = tensor
        return tensor

    def input_name(self, wish: str) -> str:
        """A unique tensor name for a graph input, like `wish` if possible."""
        return self._names.like(wish, "input")

    def emit(
        self,
        op: OperatorDef,
        inputs: Sequence[str],
        shape: Shape,
        dtype: DType,
        quantization: Quantization | None = None,
        *,
        constants: Mapping[str, ConstantArray] | None = None,
        nodes: Sequence[Node] = (),
    ) -> str:
        """Add an operator and return the name of its output.

        `shape` is the output shape that the caller expects. Raises ValueError if the loop nest differs.
        """
        constants = constants or {}
        for label, array in constants.items():
            if array.dtype != np.float32 or np.all(np.isfinite(array)):
                continue
            if np.any(np.isnan(array)):
                raise Unsupported(
                    f"its {label} hold NaN, which spreads to the results; export the model without NaN"
                )
            # A mask that is added may hold infinities; sums of products with infinities differ from ONNX's.
            if not isinstance(op, Binary) and label not in op.compared:
                raise Unsupported(f"its {label} hold infinities: only operands of two-input operators may")
        types = {dtype, *(self.tensors[name].dtype for name in inputs)}
        if DType.INT32 in types - op.accepts:
            raise Unsupported("it does not take int32 values: put a Cast to float32 before it")
        if DType.INT16 in types - op.accepts:
            raise Unsupported("it does not take int16 values: put a Cast to int32 or float32 before it")
        out_shape = self.output_shape(op, inputs)
        if out_shape != shape:
            raise ValueError(f"its output is {out_shape}, the model says {shape}")
        name = self._names.numbered(_stem(op))
        self.tensor(name, shape, dtype, quantization)
        labels = tuple(dict.fromkeys(node.label for node in nodes))
        self.operators.append(Operator(name, op, tuple(inputs), name, constants, labels))
        return name

    def looked_up(
        self, tensor: str, table: IntegerTable, quantization: Quantization, nodes: Sequence[Node]
    ) -> str:
        """Apply a lookup table and return the int8 tensor; an identity table only reinterprets the tensor."""
        if is_identity(table):
            return self.reinterpreted(tensor, quantization)
        key = ("lut", tensor, table.tobytes(), quantization)
        if key not in self._shared:
            shape = self.shape_of(tensor)
            constants = {"table": np.ascontiguousarray(table, np.int8)}
            self._shared[key] = self.emit(
                Lut(), (tensor,), shape, DType.INT8, quantization, constants=constants, nodes=nodes
            )
        return self._shared[key]

    def reinterpreted(self, tensor: str, quantization: Quantization) -> str:
        """Reinterpret the bytes under another quantisation: a view, or the tensor itself if both agree."""
        source = self.tensors[tensor]
        if source.quantization == quantization:
            return tensor
        return self._view(tensor, source.shape, quantization)

    def viewed(self, tensor: str, shape: Shape) -> str:
        """The tensor under another shape."""
        source = self.tensors[tensor]
        return tensor if source.shape == shape else self._view(tensor, shape, source.quantization)

    def _view(self, tensor: str, shape: Shape, quantization: Quantization | None) -> str:
        key = ("view", tensor, shape, quantization)
        if key not in self._shared:
            dtype = self.tensors[tensor].dtype
            self._shared[key] = self.emit(Reshape(shape), (tensor,), shape, dtype, quantization)
        return self._shared[key]

    def arranged(self, tensor: str, wanted: IndexArray, nodes: Sequence[Node] = ()) -> str:
        """Return a tensor of shape `wanted.shape` with the elements of `tensor` at the positions `wanted`.

        The result is the tensor itself, a view, a DepthToSpace, a Transpose, or else a selection by a table.
        """
        shape = (wanted.shape[0], wanted.shape[1], wanted.shape[2])
        source = self.tensors[tensor]
        takes_all = prod(shape) == source.elements
        if takes_all and is_storage_order(wanted):
            return self.viewed(tensor, shape)
        op: OperatorDef | None = depth_to_space(wanted, source.shape)
        if op is None:
            order = permutation(wanted) if takes_all else None
            op = taking(wanted, source.shape) if order is None else Transpose(order.dims, order.perm, shape)
        key = (tensor, op)
        if key not in self._shared:
            self._shared[key] = self.emit(
                op, (tensor,), shape, source.dtype, source.quantization, nodes=nodes
            )
        return self._shared[key]


def _stem(op: OperatorDef) -> str:
    return op.stem or op.kind.removesuffix("Int8").removesuffix("Int16").lower()
