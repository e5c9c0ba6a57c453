"""Random networks with caches that are outputs and inputs: runs in turn, each against ONNX Runtime."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands.commands import run_model
from mcudeploy.common.errors import DeployError
from mcudeploy.device.target import Target
from mcudeploy.execution.parts import RunRequest
from mcudeploy.planner.plan_options import Options
from mcudeploy.report import as_json
from tests.networks.onnx_files import build, node, save

_RUNS = 5
_FAR = np.iinfo(np.int64).max


@dataclass
class Drawn:
    """A network under construction, and its states: the output of each input."""

    random: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    inputs: dict[str, Any] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    positions: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Of inputs that are positions, the least one and the end of the range."""
    read: list[str] = field(default_factory=list)
    """Values that the output depends on."""

    def add(self, op: str, *inputs: Any, **attributes: Any) -> str:
        """Add a node; operands that are not names become constants."""
        names = []
        for each in inputs:
            names.append(each if isinstance(each, str) else f"c{len(self.constants)}")
            if not isinstance(each, str):
                self.constants[names[-1]] = np.asarray(each)
        name = f"v{len(self.nodes)}"
        self.nodes.append(node(op, " ".join(names), name, **attributes))
        return name

    def whole(self, least: int, most: int) -> int:
        """An integer of these limits."""
        return int(self.random.integers(least, most + 1))


def _rows(draft: Drawn, shape: list[int], axis: int, count: int) -> str:
    """New rows of a cache, computed from the input."""
    sizes = [count if at == axis else size for at, size in enumerate(shape)]
    total = int(np.prod(sizes))
    weights = draft.random.standard_normal((4, total)).astype(np.float32)
    flat = draft.add("MatMul", "x", weights)
    return draft.add("Reshape", draft.add("Tanh", flat), np.array(sizes))


def _position(draft: Drawn, least: int, end: int) -> str:
    name = f"position_{len(draft.inputs)}"
    draft.inputs[name], draft.positions[name] = np.zeros((1,), np.int64), (least, end)
    return name


def _scattered(draft: Drawn, cache: str, shape: list[int], axis: int) -> str:
    """Rows written at a position by one of the operators, between two Transposes or without."""
    row, rows, form = _rows(draft, shape, axis, 1), shape[axis], draft.whole(0, 3)
    if form == 1 and shape[0] == 1 and axis > 0:
        mode = "circular" if draft.whole(0, 1) else "linear"
        position = _position(draft, 0, rows * (3 if mode == "circular" else 1))
        return draft.add("TensorScatter", cache, row, position, axis=axis, mode=mode)
    position = _position(draft, -rows, rows)
    if form == 0:
        sizes = [1 if at == axis else size for at, size in enumerate(shape)]
        line = draft.add("Reshape", position, np.ones(len(shape), np.int64))
        places = draft.add("Expand", line, np.array(sizes))
        return draft.add("ScatterElements", cache, places, row, axis=axis - draft.whole(0, 1) * len(shape))
    perm = [axis, *(at for at in range(len(shape)) if at != axis)]
    turned, line = (draft.add("Transpose", it, perm=perm) for it in (cache, row))
    put = draft.add("ScatterND", turned, draft.add("Unsqueeze", position, np.array([-1])), line)
    if draft.whole(0, 1):
        draft.read.append(put)
    return draft.add("Transpose", put, perm=[int(at) for at in np.argsort(perm)])


def _queue(draft: Drawn, cache: str, shape: list[int], axis: int) -> str:
    count = draft.whole(1, shape[axis])
    joined = draft.add("Concat", cache, _rows(draft, shape, axis, count), axis=axis)
    draft.read.append(joined)
    return draft.add("Slice", joined, np.array([count]), np.array([_FAR]), np.array([axis]))


def _computed(draft: Drawn, cache: str, shape: list[int], axis: int) -> str:
    return draft.add("Tanh", draft.add("Add", cache, _rows(draft, shape, axis, shape[axis])))


def _in_parts(draft: Drawn, cache: str, shape: list[int], axis: int) -> str:
    """The parts of a cache along an axis, each in its own way, and joined again."""
    if shape[axis] < 2:
        return _computed(draft, cache, shape, axis)
    middle = draft.whole(1, shape[axis] - 1)
    parts = []
    for first, last in ((0, middle), (middle, shape[axis])):
        sizes = [last - first if at == axis else size for at, size in enumerate(shape)]
        part = draft.add("Slice", cache, np.array([first]), np.array([last]), np.array([axis]))
        other = draft.whole(0, len(shape) - 1)
        parts.append(_WAYS[draft.whole(0, 2)](draft, part, sizes, other))
    return draft.add("Concat", *parts, axis=axis)


_WAYS = (_scattered, _queue, _computed, _in_parts)


def draw_caches(seed: int) -> tuple[onnx.ModelProto, Drawn]:
    """A network with up to three caches."""
    draft = Drawn(np.random.default_rng((seed, 61)))
    draft.inputs["x"] = np.zeros((1, 4), np.float32)
    for number in range(draft.whole(1, 3)):
        shape = [draft.whole(1, 4) for _ in range(draft.whole(2, 4))]
        shape[0] = 1 if draft.whole(0, 2) else shape[0]
        cache, axis = f"cache_{number}", draft.whole(0, len(shape) - 1)
        draft.inputs[cache] = np.zeros(shape, np.float32)
        after = _WAYS[draft.whole(0, len(_WAYS) - 1)](draft, cache, shape, axis)
        draft.states[cache] = after
        draft.read += [after, *([cache] if draft.whole(0, 3) == 0 else [])]
    sums = [draft.add("ReduceSum", draft.add("Sin", name), keepdims=0) for name in draft.read]
    total = draft.add("Sum", *sums, "largest")
    draft.nodes.insert(0, node("ReduceMax", "x", "largest", keepdims=0))
    model = build(draft.nodes, draft.inputs, [total, *draft.states.values()], draft.constants, opset=24)
    return model, draft


def examine_caches(seed: int, folder: Path) -> tuple[str, str]:
    """Run one network on this computer; return `verified` or what is wrong, and the reason."""
    model, draft = draw_caches(seed)
    path = save(model, folder, f"c{seed}")
    random, inputs = np.random.default_rng(seed), []
    for info in model.graph.input:
        if info.name not in draft.states:
            shape = (_RUNS, *(it.dim_value for it in info.type.tensor_type.shape.dim))
            values = random.standard_normal(shape).astype(np.float32)
            if info.name in draft.positions:
                values = random.integers(*draft.positions[info.name], shape)
            np.save(folder / f"{info.name}.npy", values)
            inputs.append(folder / f"{info.name}.npy")
    options = Options(time_limit=0.2, states=tuple(draft.states.items()))
    try:
        result = run_model(path, Target(load_board("host")), options, RunRequest(inputs=inputs, expected=[]))
        report = as_json(result)
    except DeployError as error:
        return "refused", f"{type(error).__name__}: {error}"
    return ("verified", "") if report["verified"] else ("wrong", str(report["reason"]))
