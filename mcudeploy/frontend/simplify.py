"""Rewriting before lowering: nodes that do nothing, nodes nobody reads, padding that a window can take over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

import numpy as np

from mcudeploy.frontend.model import Model, Node

_PADDED_WINDOWS = frozenset({"Conv", "AveragePool"})


def drop_identities(model: Model) -> Model:
    """Without Identity and Dropout (inference) nodes. A graph output keeps its name."""
    renamed: dict[str, str] = {}
    kept: list[Node] = []
    outputs = {info.name for info in model.outputs}
    for node in model.nodes:
        inputs = tuple(renamed.get(name, name) for name in node.inputs)
        if _does_nothing(model, node) and node.output not in outputs:
            renamed[node.output] = inputs[0]
            continue
        kept.append(replace(node, inputs=inputs))
    return replace(model, nodes=tuple(kept))


def _does_nothing(model: Model, node: Node) -> bool:
    if node.domain:
        return False
    if node.op == "Identity":
        return True
    if node.op != "Dropout" or len([name for name in node.outputs if name]) > 1:
        return False
    mode = model.constants.get(node.input(2))
    return node.input(2) == "" or (mode is not None and not np.any(mode.value))


def drop_dead(model: Model) -> Model:
    """Without nodes whose results no output depends on."""
    wanted = {info.name for info in model.outputs}
    kept: list[Node] = []
    for node in reversed(model.nodes):
        if wanted.isdisjoint(node.outputs):
            continue
        wanted.update(node.inputs)
        kept.append(node)
    return replace(model, nodes=tuple(reversed(kept)))


def fold_pads(model: Model) -> Model:
    """Zero padding in front of convolutions and average pools becomes their own padding.

    In a quantised file the padding stands in a pair of its own (DQ, Pad, Q, DQ, Conv): as zero is exactly
    the zero point, it commutes with the pair. Only where every reader of the padded value can take it.
    """
    consumers = model.consumers()
    outputs = {info.name for info in model.outputs}
    replaced: dict[str, Node] = {}
    renamed: dict[str, str] = {}
    for node in model.nodes:
        if node.op != "Pad" or node.domain or node.output in outputs:
            continue
        amounts = zero_padding(model, node)
        if amounts is None:
            continue
        windows = _windows_behind(node, consumers, outputs)
        if windows is None:
            continue
        padded = [_with_pads(replaced.get(window.output, window), amounts) for window in windows]
        if any(item is None for item in padded):
            continue
        replaced.update({item.output: item for item in padded if item is not None})
        renamed[node.output] = node.inputs[0]
    if not renamed:
        return model
    nodes = []
    for node in model.nodes:
        if node.op == "Pad" and node.output in renamed:
            continue
        current = replaced.get(node.output, node)
        nodes.append(replace(current, inputs=tuple(_resolve(renamed, name) for name in current.inputs)))
    return replace(model, nodes=tuple(nodes))


def _resolve(renamed: Mapping[str, str], name: str) -> str:
    while name in renamed:
        name = renamed[name]
    return name


def zero_padding(model: Model, node: Node) -> tuple[int, ...] | None:
    """The pads (befores, then afters) of a Pad node that pads spatial axes with zeros, else None."""
    amounts = model.constants.get(node.input(1))
    value = model.constants.get(node.input(2))
    if amounts is None or node.input(3) or node.text("mode", "constant") != "constant":
        return None
    if node.input(2) and (value is None or value.value.size != 1 or float(value.value.reshape(-1)[0]) != 0.0):
        return None
    pads = tuple(int(amount) for amount in amounts.value.reshape(-1))
    rank = len(pads) // 2
    if rank < 3 or min(pads) < 0 or any(pads[axis] or pads[axis + rank] for axis in (0, 1)):
        return None
    return pads


def _windows_behind(
    pad: Node, consumers: Mapping[str, list[Node]], outputs: set[str]
) -> list[Node] | None:
    """The convolutions and pools that read a padded value, through Q and DQ; None where others do."""
    found: list[Node] = []
    waiting = [(pad.output, node) for node in consumers.get(pad.output, [])]
    while waiting:
        name, node = waiting.pop()
        if node.domain or node.inputs.index(name) != 0 or node.inputs.count(name) > 1:
            return None
        if node.op in ("QuantizeLinear", "DequantizeLinear") and node.output not in outputs:
            waiting.extend((node.output, reader) for reader in consumers.get(node.output, []))
        elif node.op in _PADDED_WINDOWS:
            found.append(node)
        else:
            return None
    return found


def _with_pads(window: Node, amounts: tuple[int, ...]) -> Node | None:
    """The convolution or pool with more padding, or None where that would change its result."""
    spatial = len(amounts) // 2 - 2
    extra = amounts[2 : 2 + spatial] + amounts[4 + spatial :]
    if prod(amount + 1 for amount in extra) == 1:
        return window
    own = window.integers("pads") or (0,) * (2 * spatial)
    if window.text("auto_pad", "NOTSET") not in ("NOTSET", "VALID") or len(own) != len(extra):
        return None
    attributes = dict(window.attributes)
    if window.op == "AveragePool":
        counted = window.integer("count_include_pad", 0) == 1
        if window.integer("ceil_mode", 0) or (any(own) and not counted):
            return None
        attributes["count_include_pad"] = 1
    attributes["pads"] = tuple(a + b for a, b in zip(own, extra, strict=True))
    attributes["auto_pad"] = "NOTSET"
    return replace(window, attributes=attributes)
