"""Random networks with caches that are outputs and inputs: runs in turn, each against ONNX Runtime.

ONNX Runtime keeps separate states. ONNX defines no result for positions outside a cache: for these the same
network is drawn again, with a Where by the position in place of each operator that writes rows there.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto

from fuzzing import plans, programs
from fuzzing.plans import HOST, JudgedPlan
from mcudeploy.common.errors import DeployError, ModelError
from mcudeploy.frontend.onnx.input_choices import InputChoices
from mcudeploy.ops.host_io import from_device
from mcudeploy.ops.move.scatter import ScatterRows
from mcudeploy.planner.model.model import load_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.verify.compare import Storage, run_once
from mcudeploy.verify.samples import sample_of
from tests.networks.onnx_files import build, node, save

_RUNS = 5
_FAR = np.iinfo(np.int64).max
_SPLITTING = Options(time_limit=0.1, max_overhead=100)
_NEVER = float(np.finfo(np.float32).min)
Array = NDArray[Any]


@dataclass
class Drawn:
    """A network under construction, and its states: the output of each input.

    `defined`: rows are written as ONNX defines it; else by Where.
    """

    random: np.random.Generator
    defined: bool = True
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    inputs: dict[str, Any] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    positions: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Of inputs that are positions, the least one and the end of the range that ONNX defines."""
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
        self.nodes.append(node(op, " ".join(it or "-" for it in names), name, **attributes))
        return name

    def whole(self, least: int, most: int) -> int:
        """An integer of these limits."""
        return int(self.random.integers(least, most + 1))

    def floats(self, *shape: int) -> Array:
        """Normal numbers."""
        return self.random.standard_normal(shape).astype(np.float32)

    def model(self, total: str) -> onnx.ModelProto:
        """The network, whose first output is a number."""
        outputs = [total, *self.states.values()]
        domains = {"com_microsoft": 1} if any(it.domain for it in self.nodes) else {}
        if not domains:
            return build(self.nodes, self.inputs, outputs, self.constants, opset=24)
        # Shapes of operators beyond ONNX's own are not inferred.
        kinds = {after: self.inputs[before] for before, after in self.states.items()}
        ends = {total: np.zeros((), np.float32)} | kinds
        return build(self.nodes, self.inputs, ends, self.constants, opset=24, **domains)


def _product(draft: Drawn, x: str, depth: int, outs: int) -> str:
    """x [1, depth] by weights of floats, or of 2, 4 or 8 bits in blocks."""
    if draft.whole(0, 2):
        return draft.add("MatMul", x, draft.floats(depth, outs))
    bits, block = (4, 4, 8)[draft.whole(0, 2)], (16, 32)[draft.whole(0, 1)]
    blocks, random = -(-depth // block), draft.random
    weights = random.integers(0, 256, (outs, blocks, block * bits // 8)).astype(np.uint8)
    parts: list[Any] = [weights, draft.floats(outs * blocks) / (1 << bits)]
    if draft.whole(0, 1):
        parts.append(random.integers(0, 256, (outs * -(-blocks * bits // 8),)).astype(np.uint8))
    sizes = {"K": depth, "N": outs, "bits": bits, "block_size": block}
    return draft.add("MatMulNBits", x, *parts, domain="com.microsoft", **sizes)


def _rows(draft: Drawn, shape: list[int], axis: int, count: int, kind: Any = np.float32) -> str:
    """New rows of a cache, computed from the input, or for integers chosen from an input of integers."""
    sizes = [count if at == axis else size for at, size in enumerate(shape)]
    total = int(np.prod(sizes))
    if kind is np.float32:
        depth = draft.inputs["x"].shape[1]
        return draft.add("Reshape", draft.add("Tanh", _product(draft, "x", depth, total)), np.array(sizes))
    draft.inputs.setdefault("i", np.zeros((3,), np.int32))
    chosen = draft.add("Gather", "i", draft.random.integers(0, 3, sizes))
    return chosen if kind is np.int32 else draft.add("Cast", chosen, to=TensorProto.INT8)


def _position(draft: Drawn, least: int, end: int, count: int = 1) -> str:
    """An int64 [1], the first of `count` positions below `end`, from an input of int32 or int64."""
    name, kind = f"position_{len(draft.inputs)}", (np.int64, np.int64, np.int32)[draft.whole(0, 2)]
    shape = ((1,), (), (1, 1))[draft.whole(0, 2)]
    draft.inputs[name] = np.zeros(shape, kind)
    draft.positions[name] = (least, max(least + 1, end - count + 1))
    value = name if kind is np.int64 else draft.add("Cast", name, to=TensorProto.INT64)
    return value if shape == (1,) else draft.add("Reshape", value, np.array([1]))


@dataclass(frozen=True)
class _Write:
    """Rows that a run writes into a cache along an axis, from a position on."""

    cache: str
    rows: str
    shape: list[int]
    axis: int
    position: str
    count: int

    def along(self, size: int) -> list[int]:
        """The shape of a vector of this size along the axis."""
        return [size if at == self.axis else 1 for at in range(len(self.shape))]


def _where(draft: Drawn, write: _Write, *, is_ring: bool) -> str:
    """The cache with each row that is within it; those of a ring all are."""
    end, value = write.shape[write.axis], write.cache
    places = np.arange(end).reshape(write.along(end))
    for at in range(write.count):
        one = draft.add("Gather", write.position, np.array([at])) if write.count > 1 else write.position
        below = draft.add("Less", one, np.array([0]))
        one = draft.add("Where", below, draft.add("Add", one, np.array([end])), one)
        one = draft.add("Mod", one, np.array([end])) if is_ring else one
        row = draft.add("Gather", write.rows, np.array([at]), axis=write.axis)
        value = draft.add("Where", draft.add("Equal", places, one), row, value)
    return value


def _scattered(draft: Drawn, cache: str, shape: list[int], axis: int, kind: Any = np.float32) -> str:
    """Rows written at a position by one of the operators, between two Transposes or without."""
    form, end = draft.whole(0, 3), shape[axis]
    count = 2 if end > 2 and draft.whole(0, 3) == 0 else 1
    rows = _rows(draft, shape, axis, count, kind)
    if form == 1 and shape[0] == 1 and axis > 0:
        is_ring = bool(draft.whole(0, 1))
        first = _position(draft, 0, 3 * end if is_ring else end, 1 if is_ring else count)
        if draft.defined:
            mode = "circular" if is_ring else "linear"
            return draft.add("TensorScatter", cache, rows, first, axis=axis, mode=mode)
        position = first if count == 1 else draft.add("Add", first, np.arange(count))
        return _where(draft, _Write(cache, rows, shape, axis, position, count), is_ring=is_ring)
    first = _position(draft, -end, end, count)
    position = first if count == 1 else draft.add("Add", first, np.arange(count))
    write = _Write(cache, rows, shape, axis, position, count)
    if form == 0:
        back = axis - draft.whole(0, 1) * len(shape)
        if not draft.defined:
            return _where(draft, write, is_ring=False)
        line = draft.add("Reshape", position, np.array(write.along(count)))
        sizes = [count if at == axis else size for at, size in enumerate(shape)]
        return draft.add(
            "ScatterElements", cache, draft.add("Expand", line, np.array(sizes)), rows, axis=back
        )
    perm = [axis, *(at for at in range(len(shape)) if at != axis)]
    is_read = draft.whole(0, 1)
    if not draft.defined:
        put = draft.add("Transpose", _where(draft, write, is_ring=False), perm=perm)
    else:
        turned, line = (draft.add("Transpose", it, perm=perm) for it in (cache, rows))
        put = draft.add("ScatterND", turned, draft.add("Unsqueeze", position, np.array([-1])), line)
    if is_read and kind is np.float32:
        draft.read.append(put)
    return draft.add("Transpose", put, perm=[int(at) for at in np.argsort(perm)])


def _queue(draft: Drawn, cache: str, shape: list[int], axis: int, kind: Any = np.float32) -> str:
    count = draft.whole(1, shape[axis])
    joined = draft.add("Concat", cache, _rows(draft, shape, axis, count, kind), axis=axis)
    if kind is np.float32:
        draft.read.append(joined)
    return draft.add("Slice", joined, np.array([count]), np.array([_FAR]), np.array([axis]))


def _computed(draft: Drawn, cache: str, shape: list[int], axis: int, kind: Any = np.float32) -> str:
    if kind is not np.float32:
        return _queue(draft, cache, shape, axis, kind)
    return draft.add("Tanh", draft.add("Add", cache, _rows(draft, shape, axis, shape[axis])))


def _in_parts(draft: Drawn, cache: str, shape: list[int], axis: int, kind: Any = np.float32) -> str:
    """The parts of a cache along an axis, each in its own way, and joined again."""
    if shape[axis] < 2:
        return _computed(draft, cache, shape, axis, kind)
    middle = draft.whole(1, shape[axis] - 1)
    parts = []
    for first, last in ((0, middle), (middle, shape[axis])):
        sizes = [last - first if at == axis else size for at, size in enumerate(shape)]
        part = draft.add("Slice", cache, np.array([first]), np.array([last]), np.array([axis]))
        other = draft.whole(0, len(shape) - 1)
        parts.append(_WAYS[draft.whole(0, 2)](draft, part, sizes, other, kind))
    return draft.add("Concat", *parts, axis=axis)


_WAYS = (_scattered, _queue, _computed, _in_parts)


def _attention(draft: Drawn, number: int) -> None:
    """One query for each head over caches of keys and values that heads may share, with a mask or without."""
    shared, groups = draft.whole(1, 3), draft.whole(1, 3)
    head, rows = (2, 4, 6)[draft.whole(0, 2)], draft.whole(2, 9)
    heads, shape = shared * groups, [1, shared, rows, head]
    slides = draft.whole(0, 3) == 0
    position = _position(draft, 0, rows)
    depth = draft.inputs["x"].shape[1]
    query = draft.add("Reshape", _product(draft, "x", depth, heads * head), np.array([1, heads, 1, head]))
    query = draft.add("Mul", query, np.float32(head**-0.5)) if draft.whole(0, 2) == 0 else query
    whole = [_kept(draft, f"{role}_{number}", shape, position, slides) for role in ("key", "value")]
    if groups > 1:
        wide = np.array([1, shared, groups, rows, head])
        apart = [draft.add("Expand", draft.add("Unsqueeze", it, np.array([2])), wide) for it in whole]
        whole = [draft.add("Reshape", it, np.array([1, heads, rows, head])) for it in apart]
    keys, values = whole
    scores = draft.add("MatMul", query, draft.add("Transpose", keys, perm=[0, 1, 3, 2]))
    scale = draft.whole(0, 2)
    scores = draft.add("Mul", scores, np.float32(head**-0.5)) if scale == 1 else scores
    scores = draft.add("Div", scores, np.float32(head**0.5)) if scale == 2 else scores
    scores = _masked(draft, scores, rows, position, slides)
    mixed = draft.add("MatMul", draft.add("Softmax", scores, axis=-1), values)
    flat = draft.add("Reshape", draft.add("Transpose", mixed, perm=[0, 2, 1, 3]), np.array([1, heads * head]))
    draft.read.append(_product(draft, flat, heads * head, draft.whole(1, 9)))


def _kept(draft: Drawn, name: str, shape: list[int], position: str, slides: bool) -> str:
    """A cache with its new row: a window, or rows at the position, with the heads before or after them."""
    _, shared, rows, head = shape
    row = _rows(draft, shape, 2, 1)
    if slides:
        draft.inputs[name] = np.zeros((1, shared, rows - 1, head), np.float32)
        joined = draft.add("Concat", name, row, axis=2)
        draft.states[name] = draft.add("Slice", joined, np.array([1]), np.array([_FAR]), np.array([2]))
        return joined
    turned, form, axis = draft.whole(0, 1), draft.whole(0, 1), 2
    if turned:
        shape, axis = [1, rows, shared, head], 1
        row = draft.add("Transpose", row, perm=[0, 2, 1, 3])
    draft.inputs[name] = np.zeros(shape, np.float32)
    write = _Write(name, row, shape, axis, position, 1)
    if not draft.defined:
        after = _where(draft, write, is_ring=False)
    elif form:
        after = draft.add("TensorScatter", name, row, position, axis=axis)
    else:
        sizes = [1 if at == axis else size for at, size in enumerate(shape)]
        line = draft.add("Reshape", position, np.array(write.along(1)))
        after = draft.add("ScatterElements", name, draft.add("Expand", line, np.array(sizes)), row, axis=axis)
    draft.states[name] = after
    return draft.add("Transpose", after, perm=[0, 2, 1, 3]) if turned else after


def _masked(draft: Drawn, scores: str, rows: int, position: str, slides: bool) -> str:
    """Scores with a causal mask, with one of a window, or with one that no kernel of live rows takes."""
    form, places = draft.whole(0, 5), np.arange(rows)
    if form == 5:
        return scores
    if slides:
        first = draft.add("Sub", np.array([rows - 1]), position)
        seen = draft.add("GreaterOrEqual", places, first)
    else:
        seen = draft.add("LessOrEqual", places, position)
    if form == 1:
        width = draft.whole(1, rows)
        since = draft.add("Sub", position, np.array([width]))
        seen = draft.add("And", seen, draft.add("Greater", places, since))
    if form == 2:
        return draft.add("Where", seen, scores, np.float32(-1e9))
    kept = draft.floats(rows) if form == 3 else np.float32(0)
    mask = draft.add("Where", seen, kept, np.float32(_NEVER))
    if form == 4:
        mask = draft.add("Mul", draft.add("Cast", draft.add("Not", seen), to=1), np.float32(-1e8))
    return draft.add("Add", scores, mask)


def _table(draft: Drawn) -> None:
    """A row of a table of floats or of 4 bits in blocks, which a position chooses."""
    rows, width, is_packed = draft.whole(2, 9), 32 * draft.whole(1, 2), draft.whole(0, 1)
    position = _position(draft, 0, rows)
    if not draft.defined:
        below = draft.add("Less", position, np.array([0]))
        position = draft.add("Where", below, draft.add("Add", position, np.array([rows])), position)
        position = draft.add("Clip", position, np.array(0), np.array(rows - 1))
    if not is_packed:
        draft.read.append(draft.add("Gather", draft.floats(rows, width), position, axis=0))
        return
    integers = draft.random.integers(0, 256, (rows, width // 2)).astype(np.uint8)
    sizes = {"gather_axis": 0, "quantize_axis": 1, "bits": 4, "block_size": 16}
    scales = draft.floats(rows, width // 16)
    domain = "com.microsoft"
    draft.read.append(draft.add("GatherBlockQuantized", integers, position, scales, domain=domain, **sizes))


def draw_caches(seed: int, *, defined: bool = True) -> tuple[onnx.ModelProto, Drawn]:
    """A network with up to three caches, attention, and a table."""
    draft = Drawn(np.random.default_rng((seed, 61)), defined)
    draft.inputs["x"] = np.zeros((1, (4, 20, 32)[draft.whole(0, 2)]), np.float32)
    for number in range(draft.whole(0, 3)):
        shape = [draft.whole(1, 4) for _ in range(draft.whole(2, 4))]
        shape[0] = 1 if draft.whole(0, 2) else shape[0]
        kind = (np.float32, np.float32, np.int32, np.int8)[draft.whole(0, 3)]
        cache, axis = f"cache_{number}", draft.whole(0, len(shape) - 1)
        draft.inputs[cache] = np.zeros(shape, kind)
        after = _WAYS[draft.whole(0, len(_WAYS) - 1)](draft, cache, shape, axis, kind)
        draft.states[cache] = after
        read = [after, *([cache] if draft.whole(0, 3) == 0 else [])]
        draft.read += read if kind is np.float32 else [draft.add("Cast", it, to=1) for it in read]
    for number in range(draft.whole(0 if draft.states else 1, 1)):
        _attention(draft, number)
    if draft.whole(0, 1):
        _table(draft)
    sums = [draft.add("ReduceSum", draft.add("Sin", name), keepdims=0) for name in draft.read]
    total = draft.add("Sum", *sums, "largest")
    draft.nodes.insert(0, node("ReduceMax", "x", "largest", keepdims=0))
    return draft.model(total), draft


@dataclass(frozen=True)
class CacheFinding:
    """How one network went: `verified`, `refused`, or what is wrong with it."""

    seed: int
    verdict: str
    reason: str = ""
    programs: int = 0


@dataclass(frozen=True, eq=False)
class _Subject:
    seed: int
    drawn: Drawn
    paths: tuple[Path, Path]
    """The network as ONNX defines it, and with Where."""
    ways: Sequence[JudgedPlan]
    written: Sequence[programs.Written]


def examine_caches(seeds: Sequence[int], folder: Path) -> list[CacheFinding]:
    """Try the networks of seeds in an empty folder: build all programs under sanitizers, and run them."""
    subjects, findings = [], []
    for seed in seeds:
        try:
            subject = _planned(seed, folder)
            for written in subject.written:
                programs.compile_program(written)
            subjects.append(subject)
        except ModelError as error:
            problems = "; ".join(f"{it.op}: {it.reason}" for it in error.problems)
            findings.append(CacheFinding(seed, "refused", problems or str(error)))
        except DeployError as error:
            findings.append(CacheFinding(seed, "refused", f"{type(error).__name__}: {error}"))
        except Exception:
            findings.append(CacheFinding(seed, "traceback", traceback.format_exc()))
    if not subjects:
        return findings
    executable, first = programs.link([one for it in subjects for one in it.written], folder), 0
    for subject in subjects:
        findings.append(_compared(subject, executable, first))
        first += len(subject.written)
    return findings


def _planned(seed: int, folder: Path) -> _Subject:
    (model, drawn), (other, _) = draw_caches(seed), draw_caches(seed, defined=False)
    paths = save(model, folder, f"c{seed}"), save(other, folder, f"c{seed}_where")
    loaded = load_model(paths[0], choices=InputChoices(states=drawn.states))
    ways = [plans.unsplit(loaded), plans.searched("split", loaded, HOST, _SPLITTING)]
    written = [programs.write(judged, f"c{seed}_{at}", folder) for at, judged in enumerate(ways)]
    return _Subject(seed, drawn, paths, ways, written)


def _compared(subject: _Subject, executable: Path, first: int) -> CacheFinding:
    """Two sequences of runs: with positions that ONNX defines, and with any."""
    try:
        for number, judged in enumerate(subject.ways):
            for is_defined in (True, False):
                with programs.Runner(executable) as runner:
                    runner.select(first + number, subject.seed)
                    if reason := _differing(subject, judged, runner, is_defined):
                        where = "defined" if is_defined else "any"
                        text = f"{judged.way}, positions {where}: {reason}"
                        return CacheFinding(subject.seed, "wrong", text)
    except programs.RunError as error:
        kind = "sanitizer" if "Sanitizer" in str(error) or "runtime error" in str(error) else "fault"
        return CacheFinding(subject.seed, kind, str(error))
    except Exception:
        return CacheFinding(subject.seed, "traceback", traceback.format_exc())
    return CacheFinding(subject.seed, "verified", programs=len(subject.ways))


def _differing(subject: _Subject, judged: JudgedPlan, runner: programs.Runner, is_defined: bool) -> str:
    """Return what differs in runs in turn from ONNX Runtime with separate states; "" if nothing does."""
    drawn, graph, storage = subject.drawn, judged.plan.graph, Storage.of(judged.plan)
    # Where a cache is copied, ScatterElements takes positions modulo its size: the sanitizers alone judge.
    is_copied = any(isinstance(it.op, ScatterRows) for it in graph.operators)
    paths = subject.paths if is_defined else () if is_copied else subject.paths[1:]
    sessions = [(_session(path), {name: drawn.inputs[name] for name in drawn.states}) for path in paths]
    for run, inputs in enumerate(_inputs(subject, is_defined)):
        sample = sample_of(graph, inputs, {})
        kept = {state.tensor for state in graph.states} if run else set()
        run_once(runner, storage, {name: it for name, it in sample.stored.items() if name not in kept})
        (io,) = graph.own_outputs()
        got = {"": from_device(io, graph.tensors[io.tensor], storage.get_tensor(runner, io.tensor))}
        for it in graph.states:
            value = storage.get_tensor(runner, it.after.tensor)
            if it.before.name in drawn.states:  # others are parts, or have the new rows too
                got[it.before.name] = from_device(it.before, graph.tensors[it.tensor], value)
        for at, (session, states) in enumerate(sessions):
            total, *after = session.run(None, {**inputs, **states})
            sessions[at] = session, dict(zip(drawn.states, after, strict=True))
            expected = {"": total, **sessions[at][1]}
            for name, wanted in expected.items():
                if name in got and not np.allclose(got[name], wanted, 1e-3, 2e-3):
                    most = np.abs(got[name].astype(np.float64) - wanted).max()
                    return f"run {run}, {name or 'output'} differs by {most:.3g} from {paths[at].stem}"
    return ""


def _session(path: Path) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def _inputs(subject: _Subject, is_defined: bool) -> Iterator[dict[str, Array]]:
    random, drawn = np.random.default_rng((subject.seed, is_defined)), subject.drawn
    for _ in range(_RUNS):
        values: dict[str, Array] = {}
        for name, kind in drawn.inputs.items():
            if name in drawn.states:
                continue
            values[name] = random.standard_normal(kind.shape).astype(kind.dtype)
            if name == "i":
                values[name] = random.integers(-128, 128, kind.shape).astype(kind.dtype)
            if name in drawn.positions:
                least, end = drawn.positions[name]
                if not is_defined and random.integers(2):
                    far = np.iinfo(np.int32)
                    end = 3 * end + 3
                    least = -end if least < 0 else least
                    choices = [
                        random.integers(least, end),
                        end,
                        *([far.min, -1] if least < 0 else []),
                        far.max - 1,
                    ]
                    position = choices[int(random.integers(len(choices)))]
                else:
                    position = random.integers(least, end)
                values[name] = np.full(kind.shape, position, kind.dtype)
        yield values
