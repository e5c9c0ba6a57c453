"""Passes before lowering: they remove identities and unread nodes, and merge padding into windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from mcudeploy.frontend.onnx.nodes import Node, OnnxModel

_PADDED_WINDOWS = frozenset({"Conv", "AveragePool"})


def drop_identities(model: OnnxModel) -> OnnxModel:
    """Remove Identity nodes, Dropout in inference, and Casts that change no type.

    Such a node that writes a graph output becomes an Identity.
    """
    renamed: dict[str, str] = {}
    nodes: list[Node] = []
    outputs = {info.name for info in model.outputs}
    read = outputs | set(model.consumers())
    for node in model.nodes:
        inputs = tuple(renamed.get(name, name) for name in node.inputs)
        if not _does_nothing(model, node, read):
            nodes.append(replace(node, inputs=inputs))
        elif node.output in outputs:
            nodes.append(replace(node, op="Identity", inputs=inputs[:1], outputs=node.outputs[:1]))
        else:
            renamed[node.output] = inputs[0]
    return replace(model, nodes=tuple(nodes))


def _does_nothing(model: OnnxModel, node: Node, read: set[str]) -> bool:
    if node.domain:
        return False
    if node.op == "Identity":
        return True
    if node.op == "Cast":
        types = {model.infos[name].dtype for name in (node.inputs[0], node.output) if name in model.infos}
        return len(types) == 1 and node.inputs[0] in model.infos and node.output in model.infos
    if node.op != "Dropout" or not read.isdisjoint(node.outputs[1:]):
        return False
    mode = model.constants.get(node.input(2))
    return node.input(2) == "" or (mode is not None and not np.any(mode.value))


def drop_dead(model: OnnxModel) -> OnnxModel:
    """Remove nodes that no output depends on."""
    wanted = {info.name for info in model.outputs}
    wanted |= {name for state in model.states for name in (state.initial, state.after)}
    nodes: list[Node] = []
    for node in reversed(model.nodes):
        if wanted.isdisjoint(node.outputs):
            continue
        wanted.update(node.inputs)
        nodes.append(node)
    return replace(model, nodes=tuple(reversed(nodes)))


def fold_pads(model: OnnxModel) -> OnnxModel:
    """Merge zero padding into the convolutions and average pools after it.

    In a quantised file, QuantizeLinear and DequantizeLinear lie between the Pad and the convolution. The
    padding commutes with them, because 0 is exactly the zero point. Every reader of the padded value must
    take the padding. Values in between lose it, so their shapes in the file become invalid.
    """
    consumers = model.consumers()
    outputs = {info.name for info in model.outputs}
    replaced: dict[str, Node] = {}
    renamed: dict[str, str] = {}
    changed_shapes: set[str] = set()
    for node in model.nodes:
        padded_value = _padded(model, node)
        if padded_value is None or node.output in outputs:
            continue
        between: set[str] = {node.output}
        windows = _windows_after(model, padded_value, consumers, between)
        if windows is None:
            continue
        padded = [_with_pads(replaced.get(window.output, window), pads) for window, pads in windows]
        if any(item is None for item in padded):
            continue
        replaced.update({item.output: item for item in padded if item is not None})
        renamed[node.output] = node.inputs[0]
        changed_shapes |= between
    if not renamed:
        return model
    nodes = []
    for node in model.nodes:
        if node.output in renamed:
            continue
        current = replaced.get(node.output, node)
        nodes.append(replace(current, inputs=tuple(_resolve(renamed, name) for name in current.inputs)))
    infos = dict(model.infos)
    infos |= {name: replace(infos[name], shape=None) for name in changed_shapes if name in infos}
    return replace(model, nodes=tuple(nodes), infos=infos)


@dataclass(frozen=True, slots=True)
class _Padded:
    """A value between a Pad and the windows after it, and its padding: first all starts, then all ends.

    `filling` is the integer in the padding of an integer value; None: the padding is the float zero.
    """

    name: str
    amounts: tuple[int, ...]
    filling: int | None


def _resolve(renamed: Mapping[str, str], name: str) -> str:
    while name in renamed:
        name = renamed[name]
    return name


def _padded(model: OnnxModel, node: Node) -> _Padded | None:
    """The padding of a Pad with one constant; None if a window cannot apply it."""
    if node.op != "Pad" or node.domain or node.input(3):
        return None
    if node.attributes.get("mode", "constant") != "constant":
        return None
    amounts = model.constants.get(node.input(1))
    if amounts is None or amounts.value.size % 2 or amounts.value.size < 6:
        return None
    pads = tuple(int(amount) for amount in amounts.value.reshape(-1))
    value = _scalar(model, node.input(2))
    if min(pads) < 0 or value is None:
        return None
    info = model.infos.get(node.inputs[0])
    if info is not None and info.dtype in ("int8", "uint8"):
        return _Padded(node.output, pads, int(value))
    if info is not None and info.dtype == "float32" and value == 0:
        return _Padded(node.output, pads, None)
    return None


def _scalar(model: OnnxModel, name: str) -> float | None:
    """A constant of one element, 0 if the input is omitted; None for others."""
    if not name:
        return 0
    constant = model.constants.get(name)
    return float(constant.value.reshape(-1)[0]) if constant is not None and constant.value.size == 1 else None


def _windows_after(
    model: OnnxModel, padded: _Padded, consumers: Mapping[str, list[Node]], between: set[str]
) -> list[tuple[Node, tuple[int, ...]]] | None:
    """The convolutions and pools that read a padded value, each with the padding that it has to add.

    Quantisers and transposes may lie in between; their results are added to `between`. None if other nodes
    read one of these values.
    """
    outputs = {info.name for info in model.outputs}
    windows: list[tuple[Node, tuple[int, ...]]] = []
    waiting = [padded]
    while waiting:
        current = waiting.pop()
        for node in consumers.get(current.name, []):
            if node.domain or node.inputs.index(current.name) != 0 or node.inputs.count(current.name) > 1:
                return None
            if node.label in model.roundings:
                return None
            if node.op in _PADDED_WINDOWS:
                windows.append((node, current.amounts))
                continue
            after = _after(model, node, current)
            if after is None or node.output in outputs:
                return None
            between.add(node.output)
            waiting.append(after)
    return windows


def _after(model: OnnxModel, node: Node, padded: _Padded) -> _Padded | None:
    """The padded value after a node with which padding commutes; None after other nodes."""
    if node.op in ("QuantizeLinear", "DequantizeLinear"):
        zero_point = _scalar(model, node.input(2))
        if zero_point is None:
            return None
        if node.op == "QuantizeLinear":
            return _Padded(node.output, padded.amounts, int(zero_point))
        return _Padded(node.output, padded.amounts, None) if padded.filling == zero_point else None
    perm = node.attributes.get("perm")
    rank = len(padded.amounts) // 2
    if node.op != "Transpose" or not isinstance(perm, tuple) or sorted(perm) != list(range(rank)):
        return None
    axes = [int(axis) for axis in perm]
    amounts = (*(padded.amounts[axis] for axis in axes), *(padded.amounts[axis + rank] for axis in axes))
    return _Padded(node.output, amounts, padded.filling)


def _with_pads(window: Node, amounts: tuple[int, ...]) -> Node | None:
    """The convolution or pool with more padding; None if it cannot take the padding."""
    rank = len(amounts) // 2
    if any(amounts[axis] or amounts[axis + rank] for axis in (0, 1)):
        return None
    extra = amounts[2:rank] + amounts[rank + 2 :]
    if not any(extra):
        return window
    own_pads = window.attributes.get("pads") or (0,) * len(extra)
    if not isinstance(own_pads, tuple) or len(own_pads) != len(extra):
        return None
    pads = [item for item in own_pads if isinstance(item, int)]
    if len(pads) != len(own_pads):
        return None
    if window.attributes.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        return None
    attributes = dict(window.attributes)
    if window.op == "AveragePool":
        counted = attributes.get("count_include_pad", 0) == 1
        if attributes.get("ceil_mode", 0) or (any(own_pads) and not counted):
            return None
        attributes["count_include_pad"] = 1
    attributes["pads"] = tuple(a + b for a, b in zip(pads, extra, strict=True))
    attributes["auto_pad"] = "NOTSET"
    return replace(window, attributes=attributes)
