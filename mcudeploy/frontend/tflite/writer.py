"""The ONNX model of a .tflite file under construction, in QDQ form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import inf, isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from onnx import FunctionProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from mcudeploy.common.errors import ModelError
from mcudeploy.common.text import printable
from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.onnx.protos import element_type, live
from mcudeploy.frontend.onnx.rounding import DOMAIN, TRANSLATOR, ExactRounding
from mcudeploy.frontend.onnx.states import KeptState
from mcudeploy.frontend.tflite.constant_folding import folded
from mcudeploy.frontend.tflite.contents import Contents, Scales, TfliteOperator, TfliteTensor, names_of
from mcudeploy.frontend.tflite.reshaping import infer, shape_in, stated_shape
from mcudeploy.frontend.tflite.scales import Bounds, parameters, stored_bounds
from mcudeploy.ir.graph import Quantization
from mcudeploy.ops.pool.pool import Ties

OPSET = 17
_IR_VERSION, _IR_VERSION_OF_OVERLOADS = 8, 10
_TO_CHANNELS_FIRST, _TO_CHANNELS_LAST = [0, 3, 1, 2], [0, 2, 3, 1]


class Writer:
    """Collects nodes and constants. Translations use ONNX names of values; tensors keep their names.

    `_journal`: functions that undo the changes of the current operator.
    """

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._tensors = list(contents.tensors)
        self._label = ""
        self._labels: dict[str, int] = {}
        self._names = names_of(contents)
        self._used_names = dict.fromkeys(self._names, 1)
        self._nodes: list[NodeProto] = []
        self._constants: dict[str, TensorProto] = {}
        self._available: dict[int, TfliteTensor] = {}
        self.notes: list[str] = list(contents.notes)
        self.states: list[KeptState] = []
        self.functions: list[FunctionProto] = []
        self.roundings: dict[str, ExactRounding] = {}
        self._state_inputs: list[ValueInfoProto] = []
        self._state_names: dict[tuple[int, int], str] = {}
        self._state_place = 0, 0
        self._continues = False
        self._declared: list[ValueInfoProto] = []
        self._reals: dict[tuple[int, Scales | None], str] = {}
        self._first = 0
        self._fresh: set[str] = set()
        self._journal: list[Callable[[], object]] = []
        for number in contents.inputs:
            self._inform(contents.tensors[number])
        self._infos_now = {info.name: info for info in self._infos(self._available.values())}

    # -- operands ------------------------------------------------------------------------------

    def begin(self, operator: TfliteOperator) -> None:
        """Begin an operator: all nodes until the next call belong to it."""
        self._label = operator.label
        self._continues = operator.index in self._contents.continued
        self._state_place = self._contents.continued.get(operator.index, operator.index), 0
        self._first = len(self._nodes)
        self._fresh.clear()
        self._journal.clear()

    def undo(self) -> None:
        """Discard the nodes of the current operator, and its other changes."""
        del self._nodes[self._first :]
        for undo_change in self._journal:
            undo_change()
        self._journal.clear()
        self._fresh.clear()

    def note_once(self, text: str) -> None:
        """Add a note to the user, unless there is one with this text."""
        if text not in self.notes:
            self.notes.append(text)
            self._journal.append(lambda: self.notes.remove(text))

    def optional_input(self, operator: TfliteOperator, position: int) -> TfliteTensor | None:
        """An input tensor; None if it is left out."""
        number = operator.inputs[position] if position < len(operator.inputs) else -1
        return None if number < 0 else self._tensors[number]

    def input(self, operator: TfliteOperator, position: int) -> TfliteTensor:
        """An input tensor. Raises Unsupported if it is left out."""
        tensor = self.optional_input(operator, position)
        if tensor is None:
            raise Unsupported(f"it has no input {position}")
        return tensor

    def inputs(self, operator: TfliteOperator) -> list[TfliteTensor]:
        """All input tensors. Raises Unsupported if one is left out."""
        return [self.input(operator, position) for position in range(len(operator.inputs))]

    def numbered(self, number: int) -> TfliteTensor:
        """A tensor by its number."""
        return self._tensors[number]

    def output(self, operator: TfliteOperator, position: int = 0) -> TfliteTensor:
        """An output tensor. Raises Unsupported if there is none."""
        if position >= len(operator.outputs):
            raise Unsupported(f"it has no output {position}")
        return self._tensors[operator.outputs[position]]

    def integers(self, operator: TfliteOperator, position: int, label: str) -> list[int]:
        """A constant input of integers. Raises Unsupported, naming `label`, if it is computed."""
        tensor = self.input(operator, position)
        if tensor.data is None or tensor.kind not in ("INT32", "INT64"):
            raise Unsupported(f"{label} must be constant integers")
        return [int(item) for item in tensor.array().reshape(-1)]

    def fold(self, operator: TfliteOperator) -> bool:
        """Make the result a constant if it follows from shapes and integers of the file."""
        if len(operator.outputs) != 1 or operator.outputs[0] in self._contents.outputs:
            return False
        sources = [self._tensors[number] for number in operator.inputs if number >= 0]
        constant = folded(operator, sources, self.output(operator))
        if constant is not None:
            self._tensors[constant.index] = constant
        return constant is not None

    def state_shape(self, operator: TfliteOperator, file: Sequence[TfliteTensor]) -> None:
        """Set the shape of the result of an operator whose translation reads the shape.

        `file` has all tensors of the file, with their shapes in it.
        """
        numbers = [*(number for number in operator.inputs if number >= 0), *operator.outputs[:1]]
        now = [self._tensors[number] for number in numbers]
        shape = stated_shape(operator, [file[number] for number in numbers], now)
        if shape is not None:
            self.set_shape(now[-1], shape)

    def infer_shapes(self, operator: TfliteOperator) -> None:
        """Set the shapes of the current operator's results to the inferred ones."""
        infer(self._nodes[self._first :], self._constants, self._infos_now, OPSET)
        for number in operator.outputs:
            tensor = self._tensors[number]
            self.set_shape(tensor, shape_in(self._infos_now, self.name(tensor)))

    def set_shape(self, tensor: TfliteTensor, shape: tuple[int, ...]) -> None:
        """Replace the shape of a tensor, which may be wrong in the file."""
        self._tensors[tensor.index] = replace(tensor, shape=shape)
        if tensor.index in self._available:
            self._available[tensor.index] = self._tensors[tensor.index]

    def raw(self, tensor: TfliteTensor) -> str:
        """The tensor as in the file: integers if it is quantised."""
        if tensor.variable:
            raise Unsupported(
                f"tensor {tensor.label} keeps its value between inferences, which is not supported"
            )
        name = self.name(tensor)
        if tensor.data is not None and name not in self._constants:
            self._constants[name] = numpy_helper.from_array(_native(tensor.array()), name)
        return name

    def real(self, tensor: TfliteTensor) -> str:
        """The tensor as float32: after a DequantizeLinear if it is quantised.

        Raises Unsupported for other element types, and for integers without a scale.
        """
        if tensor.kind == "FLOAT32":
            return self.raw(tensor)
        key = tensor.index, tensor.scales
        if key not in self._reals:
            name = self._dequantized(tensor)
            self._reals[key] = name
            self._fresh.discard(name)
            self._journal.append(lambda: self._reals.pop(key, None))
        return self._reals[key]

    def _dequantized(self, tensor: TfliteTensor) -> str:
        if tensor.kind == "FLOAT16" and tensor.data is not None:
            return self.part("Cast", [self.raw(tensor)], to=TensorProto.FLOAT)
        scales = parameters(tensor)
        if tensor.data is None and not scales.single:
            raise Unsupported(f"tensor {tensor.label} has a scale for each channel; only constants may")
        return self.dequantized(self.raw(tensor), scales.scale, tensor.dtype or "", scales)

    def dequantized(self, name: str, scale: Sequence[float], dtype: str, scales: Scales) -> str:
        """Add a DequantizeLinear of integers by `scale`, which may differ from that of `scales`."""
        inputs = [name, *self._constants_of(scale, scales.zero_point, dtype)]
        if len(scale) == 1:
            return self.part("DequantizeLinear", inputs)
        return self.part("DequantizeLinear", inputs, axis=scales.axis)

    def parameters(self, tensor: TfliteTensor) -> tuple[str, str]:
        """The names of scale and zero point of a quantised tensor."""
        scales = parameters(tensor)
        return self._constants_of(scales.scale, scales.zero_point, tensor.dtype or "")

    def _constants_of(self, scale: Sequence[float], zero_point: Sequence[int], dtype: str) -> tuple[str, str]:
        limits = np.iinfo(dtype)
        if any(not limits.min <= zero <= limits.max for zero in zero_point):
            raise Unsupported(f"a zero point is outside {dtype}")
        scales, zeros = np.array(scale, np.float32), np.array(zero_point, dtype)
        if len(scale) == 1:
            scales, zeros = scales.reshape(()), zeros.reshape(())
        return self.constant(scales), self.constant(zeros)

    def image(self, tensor: TfliteTensor) -> str:
        """Transpose a float image [N, H, W, C] to [N, C, H, W]. Raises Unsupported for other ranks."""
        return self.channels_first(self.real(tensor), tensor)

    def channels_first(self, name: str, tensor: TfliteTensor) -> str:
        """Transpose a value of the tensor's shape, [N, H, W, C], to [N, C, H, W].

        Raises Unsupported for other ranks.
        """
        if len(tensor.shape) != 4:
            raise Unsupported(
                f"{tensor.label} has the shape {list(tensor.shape)}; an image has four dimensions"
            )
        return self.part("Transpose", [name], perm=_TO_CHANNELS_FIRST)

    def channels_last(self, name: str) -> str:
        """Transpose a value [N, C, H, W] to [N, H, W, C]."""
        return self.part("Transpose", [name], perm=_TO_CHANNELS_LAST)

    def state(self, tensor: TfliteTensor, shape: Sequence[int], dtype: str = "float32") -> str:
        """Add a graph input of this shape for a variable tensor that persists between inferences.

        Raises Unsupported for a tensor that is not variable, or that several operators write.
        """
        self.require_one_run()
        name = self.name(tensor)
        if not tensor.variable:
            raise Unsupported(f"tensor {tensor.label}, its state, is not a variable tensor")
        if any(value.name == name for value in self._state_inputs):
            raise Unsupported(f"tensor {tensor.label}, its state, is that of another operator too")
        self._state_inputs.append(_info(name, shape, dtype))
        self._journal.append(self._state_inputs.pop)
        return name

    def kept_input(self, tensor: TfliteTensor, shape: Sequence[int]) -> str:
        """Add a graph input of this shape and the tensor's type for a state; return its name.

        An operator that continues the states of an earlier one gets the last content of its state instead.
        """
        operator, number = place = self._state_place
        self._state_place = operator, number + 1
        if place in self._state_names:
            return next(it.after for it in self.states if it.before == self._state_names[place])
        name = self._unique(f"{self.name(tensor)}:state")
        self._state_names[place] = name
        self._journal.append(lambda: self._state_names.pop(place, None))
        self._state_inputs.append(_info(name, shape, tensor.dtype or ""))
        self._journal.append(self._state_inputs.pop)
        return name

    def keep_state(self, before: str, after: str, initial: str = "") -> None:
        """Register a state, whose content is `before` in a run and `after` in the next one.

        It is initially the constant `initial`, or zeros. If `before` is the content that an earlier operator
        has left, both operators change the same state.
        """
        earlier = list(self.states)
        self.states = [replace(it, after=after) if it.after == before else it for it in earlier]
        if self.states == earlier:
            self.states.append(KeptState(before, after, initial))
        self._journal.append(lambda: setattr(self, "states", earlier))

    def require_one_run(self) -> None:
        """Raise Unsupported if the operator, whose state changes in place, runs several times in each run."""
        if self._continues:
            raise Unsupported(
                "it runs several times in a run, and its state changes in place. SignalFramer with prefill, "
                "SignalDelay, the noise of a filter bank and variables can do that"
            )

    def declare(self, name: str, shape: Sequence[int], dtype: str = "float32") -> None:
        """State the shape and type of a value that ONNX cannot infer."""
        self._declared.append(_info(name, shape, dtype))
        self._journal.append(self._declared.pop)

    # -- results -------------------------------------------------------------------------------

    def constant(self, value: NDArray[np.generic]) -> str:
        """Add a constant; return its name."""
        name = self._unique("constant")
        self._constants[name] = numpy_helper.from_array(
            np.ascontiguousarray(value).reshape(value.shape), name
        )
        return name

    def int64(self, values: int | Sequence[int]) -> str:
        """Add a constant of int64; return its name."""
        return self.constant(np.array(values, np.int64))

    def float32(self, values: ArrayLike) -> str:
        """Add a constant of float32; return its name."""
        return self.constant(np.array(values, np.float32))

    def reshaped(self, name: str, shape: Sequence[int]) -> str:
        """Add a Reshape as a part of the current operator; return the name of its result."""
        return self.part("Reshape", [name, self.int64(shape)])

    def node(self, op: str, inputs: Sequence[str], **attributes: Any) -> str:
        """Add the main node of the current operator, which has its label; return the name of its output."""
        return self.nodes(op, inputs, 1, **attributes)[0]

    def part(self, op: str, inputs: Sequence[str], **attributes: Any) -> str:
        """Add another node of the current operator; return the name of its only output."""
        return self.nodes(op, inputs, 1, main=False, **attributes)[0]

    def nodes(
        self, op: str, inputs: Sequence[str], count: int, *, main: bool = True, **attributes: Any
    ) -> list[str]:
        """Add a node of several outputs, by default the main one of the operator; return their names."""
        label = self._label if main and self._label not in self._labels else f"{self._label} ({op})"
        outputs = [self._unique(f"{self._label}:{op}") for _ in range(count)]
        self._nodes.append(helper.make_node(op, inputs, outputs, self._numbered(label), **attributes))
        self._fresh.update(outputs)
        return outputs

    def overload(self, function: Callable[[str], FunctionProto]) -> str:
        """Add the function that defines one node of an operator that ONNX lacks; return its overload name."""
        name = str(len(self.functions))
        self.functions.append(function(name))
        self._journal.append(self.functions.pop)
        return name

    def producer(self, tensor: TfliteTensor) -> TfliteOperator | None:
        """The operator that computes a tensor; None for inputs and constants."""
        return next((it for it in self._contents.operators if tensor.index in it.outputs), None)

    def readers(self, tensor: TfliteTensor) -> list[TfliteOperator]:
        """The operators that read a tensor."""
        return [it for it in self._contents.operators if tensor.index in it.inputs]

    def is_output(self, tensor: TfliteTensor) -> bool:
        """Whether a tensor is an output of the file."""
        return tensor.index in self._contents.outputs

    def _numbered(self, label: str) -> str:
        """The label, with a number if another node has it."""
        number = self._labels.get(label, 0) + 1
        self._labels[label] = number
        self._journal.append(lambda: self._labels.pop(label, None))
        return label if number == 1 else f"{label} {number}"

    def round_exactly(self, name: str, tensor: TfliteTensor) -> None:
        """State that the last node, of the value `name`, rounds like TFLite, on the tensor's scale.

        It is a mean of integers, with ties away from zero.
        """
        scales, label = parameters(tensor), self._nodes[-1].name
        assert name in self._nodes[-1].output
        ties: Ties = "up" if tensor.kind == "UINT8" else "away"
        self.roundings[label] = ExactRounding(ties, Quantization(scales.scale[0], scales.zero_point[0]))
        self._journal.append(lambda: self.roundings.pop(label, None))

    def finish(self, tensor: TfliteTensor, name: str, bounds: Bounds = None, *, late: bool = False) -> None:
        """Assign a float value to the tensor: clipped to `bounds`, and quantised if the tensor is.

        A clip that the quantisation implies is omitted. `late`: values are quantised, then clipped.
        """
        if late and tensor.kind != "FLOAT32" and self._limits(tensor, bounds) is not None:
            name = self.as_stored(name, tensor)
        name = self._clip(name, self._limits(tensor, bounds))
        self._define(tensor, name if tensor.kind == "FLOAT32" else self.quantized(name, tensor))

    def as_stored(self, name: str, tensor: TfliteTensor, bounds: Bounds = None) -> str:
        """Clip a float value and quantise it as the tensor; return it dequantised."""
        name = self._clip(name, self._limits(tensor, bounds))
        if tensor.kind == "FLOAT32":
            return name
        scales = parameters(tensor)
        return self.dequantized(self.quantized(name, tensor), scales.scale, tensor.dtype or "", scales)

    def _limits(self, tensor: TfliteTensor, bounds: Bounds) -> Bounds:
        """The bounds in the tensor's quantisation. Raises Unsupported if its scales differ."""
        if tensor.kind == "FLOAT32":
            return bounds
        scales = parameters(tensor)
        if not scales.single:
            raise Unsupported(f"its result {tensor.label} has a scale for each channel; it needs one")
        return stored_bounds(bounds, scales, tensor.dtype or "")

    def quantized(self, name: str, tensor: TfliteTensor) -> str:
        """Add the QuantizeLinear of a float value to the tensor's integers."""
        return self.part("QuantizeLinear", [name, *self.parameters(tensor)])

    def _clip(self, name: str, bounds: Bounds) -> str:
        if bounds is None:
            return name
        if bounds == (0.0, inf):
            return self.part("Relu", [name])
        limits = [self.float32(bound) if isfinite(bound) else "" for bound in bounds]
        return self.part("Clip", [name, *limits])

    def keep(self, tensor: TfliteTensor, name: str) -> None:
        """Assign a value to the tensor as it is; it must be integers if the tensor is quantised."""
        self._define(tensor, name)

    def _define(self, tensor: TfliteTensor, name: str) -> None:
        """Give the value the tensor's name, by an Identity if it is not the result of the last node."""
        own = self.name(tensor)
        last = self._nodes[-1] if self._nodes else None
        if last is not None and list(last.output) == [name] and name in self._fresh:
            last.output[0] = own
            self._fresh.discard(name)
        else:
            label = self._numbered(f"{self._label} (Identity)")
            self._nodes.append(helper.make_node("Identity", [name], [own], label))
        self._inform(tensor)

    def refuse(self, operator: TfliteOperator) -> None:
        """Add a node of DOMAIN for an operator that cannot be translated; lowering will refuse it by name."""
        tensors = self._tensors
        inputs = [self.name(tensors[number]) for number in operator.inputs if number in self._available]
        results = [tensors[number] for number in operator.outputs]
        outputs = [self.name(tensor) for tensor in results] or [self._unique(f"{self._label}:nothing")]
        op = printable(operator.op)
        self._nodes.append(helper.make_node(op, inputs, outputs, operator.label, domain=DOMAIN))
        for tensor in results:
            self._inform(tensor)

    # -- names and the model --------------------------------------------------------------------

    def name(self, tensor: TfliteTensor) -> str:
        """The ONNX name of a tensor."""
        return self._names[tensor.index]

    def _unique(self, wish: str) -> str:
        while True:
            number = self._used_names.get(wish, 0)
            self._used_names[wish] = number + 1
            name = f"{wish}#{number}" if number else wish
            if number == 0 or name not in self._used_names:
                self._used_names.setdefault(name, 1)
                return name

    def _inform(self, tensor: TfliteTensor) -> None:
        """Mark the tensor as available."""
        if tensor.index not in self._available:
            self._available[tensor.index] = tensor
            self._journal.append(lambda: self._available.pop(tensor.index, None))

    def _infos(self, tensors: Iterable[TfliteTensor]) -> list[ValueInfoProto]:
        """Shapes and types of the tensors whose type ONNX has."""
        return [
            _info(self.name(tensor), tensor.shape, tensor.dtype)
            for tensor in tensors
            if tensor.dtype is not None
        ]

    def model(self) -> ModelProto:
        """The complete model. Raises ModelError for inputs and outputs of types that ONNX lacks."""
        inputs, outputs = (
            [self._tensors[number] for number in numbers]
            for numbers in (self._contents.inputs, self._contents.outputs)
        )
        for tensor in (*inputs, *outputs):
            if tensor.dtype is None:
                raise ModelError(
                    f"input or output {tensor.label} is {tensor.kind}; FLOAT32, INT8 and UINT8 are supported"
                )
        for tensor in outputs:
            if tensor.data is not None and tensor.index not in self._available:
                self._keep_constant(tensor)
        state_names = (name for it in self.states for name in (it.after, it.initial))
        nodes = live(self._nodes, {*(self.name(tensor) for tensor in outputs), *state_names})
        values = {name for node in nodes for name in (*node.input, *node.output)}
        values |= {it.initial for it in self.states}
        ios = {tensor.index for tensor in (*inputs, *outputs)}
        inner = [
            tensor
            for number, tensor in self._available.items()
            if number not in ios and self.name(tensor) in values
        ]
        graph = helper.make_graph(
            nodes,
            self._contents.name,
            [*self._infos(inputs), *self._state_inputs],
            self._infos(outputs),
            [tensor for name, tensor in self._constants.items() if name in values],
            value_info=[*self._infos(inner), *(info for info in self._declared if info.name in values)],
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(DOMAIN, 1)]
        version = _IR_VERSION_OF_OVERLOADS if self.functions else _IR_VERSION
        return helper.make_model(graph, opset_imports=opsets, ir_version=version, producer_name=TRANSLATOR)

    def _keep_constant(self, tensor: TfliteTensor) -> None:
        """Make a constant of the file an output: an Identity of a constant with another name."""
        self._constants.pop(self.name(tensor), None)
        value = self.constant(_native(tensor.array()))
        for node in self._nodes:
            node.input[:] = [value if name == self.name(tensor) else name for name in node.input]
        label = self._numbered(f"output {printable(tensor.name)} (Identity)")
        self._nodes.append(helper.make_node("Identity", [value], [self.name(tensor)], label))
        self._inform(tensor)


def _info(name: str, shape: Sequence[int], dtype: str) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, element_type(dtype), shape)


def _native(array: NDArray[np.generic]) -> NDArray[np.generic]:
    return np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="))).reshape(array.shape)
