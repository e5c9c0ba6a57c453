"""Selection of the C kernels of fused operators: whole rows, or groups of channels of a bottleneck."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from mcudeploy.ir.graph import DType, Operator, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import TWICE, ArrayPointer, CallTable, Counts, KernelCall, Params, StageCall
from mcudeploy.ops.common import SUM_BYTES
from mcudeploy.ops.conv.conv import Conv2d, Conv2dByRows
from mcudeploy.ops.conv.conv_constants import FOUR
from mcudeploy.ops.conv.packing import GROUP, padded
from mcudeploy.ops.fused.row_window import RowWindow

_GROUPS = (8, 16, 32)
"""The numbers of channels of a group for which there is a call; the last group has the rest."""
_BOTTLENECK = 3
"""Stages of a bottleneck."""
_BATCHES = (1, 2, 4)
"""The numbers of output rows that a pass computes, a call for each."""
_ALIGN = 8
"""Bytes that parts of the scratch are aligned to."""
_ROW_BY_ROW = ("dwconv2d_s8_rows", "dwconv2d_s8_pairs")
"""The portable kernels that are fast on a single row, though their scratch is large."""
_FOUR_ROWS = "dwconv2d_s8_rows_mve"
"""The kernel that takes four rows together, and is slow on fewer."""


@dataclass(frozen=True, slots=True, eq=False)
class _Stage:
    """A stage, or a group of its channels: its operator, its two tensors and its window of rows."""

    operator: Operator
    source: Tensor
    output: Tensor
    window: RowWindow

    def call(self) -> KernelCall:
        return self.operator.op.kernel(self.operator, (self.source,), self.output)

    def group(self, channels: Interval, source: Tensor) -> _Stage:
        """Return the stage for some of its output channels."""
        conv, count = self.operator.op, len(channels)
        assert isinstance(conv, Conv2d)
        op = replace(conv, out_channels=count, groups=count if conv.groups > 1 else 1)
        part = slice(channels.lo, channels.hi)
        constants = {name: array[part] for name, array in self.operator.constants.items()}
        output = replace(self.output, shape=(*self.output.shape[:2], count))
        return _Stage(replace(self.operator, op=op, constants=constants), source, output, self.window)


def fused_kernel(
    operators: Sequence[Operator], tensors: Sequence[Tensor], windows: Sequence[RowWindow]
) -> KernelCall:
    """fused_rows for all channels, and for groups of channels of a bottleneck; see Fused.kernel."""
    stages = tuple(map(_Stage, operators, tensors, tensors[1:], windows))
    calls: list[KernelCall] = [*_whole_rows(stages), *(_by_groups(stages) if _is_bottleneck(stages) else ())]
    calls.sort(key=lambda call: call.isa is not Isa.ANY)
    return replace(calls[0], others=tuple(calls[1:]))


def _is_bottleneck(stages: Sequence[_Stage]) -> bool:
    """Whether the stages are an int8 bottleneck: expansion, depthwise filter, and 1x1 projection."""
    convs = [stage.operator.op for stage in stages if isinstance(stage.operator.op, Conv2d)]
    if not len(convs) == len(stages) == _BOTTLENECK:
        return False
    weights = [stage.operator.constants["weights"].dtype for stage in stages]
    expand, middle, project = convs
    channels = stages[1].source.shape[2]
    return (
        stages[0].source.dtype is DType.INT8
        and all(dtype == np.int8 for dtype in weights)
        and expand.groups == 1
        and project.groups == 1
        and project.kernel_shape == project.stride == (1, 1)
        and not any(project.pads)
        and middle.groups == middle.out_channels == channels > 1
    )


def _isas(stages: Sequence[KernelCall]) -> list[Isa]:
    """The instruction sets for which some call has a variant; Isa.ANY, which every core has, is the first."""
    used = {call.isa for stage in stages for call in (stage, *stage.others)}
    return [isa for isa in Isa if isa is Isa.ANY or isa in used]


def _row_calls(call: KernelCall, isa: Isa, lean: bool) -> KernelCall:
    """The variant for few rows: the fastest, or, if `lean`, that with the least scratch."""
    variants = [it for it in call.variants(isa) if it.once != _FOUR_ROWS]
    if lean:
        return min(variants, key=lambda it: it.scratch_bytes)
    of_isa = (it for it in variants if it.isa is isa is not Isa.ANY)
    return next(of_isa, None) or next((it for it in variants if it.once in _ROW_BY_ROW), variants[0])


def _whole_rows(stages: Sequence[_Stage]) -> Iterator[KernelCall]:
    """Yield the calls that compute all channels at a time."""
    calls = [stage.call() for stage in stages]
    most = stages[-1].output.shape[0]
    for isa in _isas(calls):
        for lean in (False, True):
            chosen = [_row_calls(call, isa, lean) for call in calls]
            if lean and chosen == [_row_calls(call, isa, False) for call in calls]:
                continue
            for batch in _BATCHES:
                if batch <= most:
                    mode = f"{batch}rows{'lean' if lean else ''}"
                    yield _Assembly(stages, [chosen], batch).call(isa, mode)


def _by_groups(stages: Sequence[_Stage]) -> Iterator[KernelCall]:
    """Yield the calls that compute groups of the expanded channels, and sum their products."""
    expand, middle, project = stages
    channels, most = expand.output.shape[2], project.output.shape[0]
    whole = expand.call(), middle.call()
    if channels % GROUP or project.call().kernel.endswith("asymmetric"):
        return
    for size in _GROUPS:
        if size >= channels:
            continue
        begins = range(0, channels, size)
        groups = [Interval(begin, min(begin + size, channels)) for begin in begins]
        (first, second), last = ([*_pair(expand, middle, groups[at])] for at in (0, -1))
        of_groups = [
            _StageByGroups(one, (of_first.call(), of_last.call()), groups)
            for one, of_first, of_last in zip(whole, (first, second), last, strict=True)
        ]
        sums = _sums(project, size)
        for isa in _isas(whole):
            for lean in (False, True):
                chosen = [one.calls(isa, lean) for one in of_groups]
                for batch in _BATCHES if all(chosen) else ():
                    if batch <= most:
                        mode = f"{batch}rows{size}{'lean' if lean else ''}"
                        calls = [[*pair, sums] for pair in zip(*chosen, strict=True)]
                        yield _Assembly((first, second, project), calls, batch, channels).call(isa, mode)


def _pair(expand: _Stage, middle: _Stage, channels: Interval) -> tuple[_Stage, _Stage]:
    """Return the first two stages of a bottleneck for some of the expanded channels."""
    first = expand.group(channels, expand.source)
    return first, middle.group(channels, first.output)


@dataclass(frozen=True, slots=True, eq=False)
class _StageByGroups:
    """A stage by groups of channels: its call for all channels, and those for the first and last group."""

    whole: KernelCall
    ends: tuple[KernelCall, KernelCall]
    channels: Sequence[Interval]
    """The channels of each group."""

    def calls(self, isa: Isa, lean: bool) -> list[KernelCall]:
        """The calls of all groups, whose arrays are parts of those of the whole call.

        Empty if the arrays of the first or last group are not such parts, or if a scalar depends on all
        channels.
        """
        whole = _row_calls(self.whole, isa, lean)
        calls: list[KernelCall] = []
        for number, of_group in zip((0, -1), self.ends, strict=True):
            call = next((it for it in of_group.variants(isa) if it.variant == whole.variant), None)
            if call is None or not self._is_part(call, whole, number):
                return []
            calls.append(call)
        first, last = calls
        return [
            self._pointed(last if channels is self.channels[-1] else first, whole, channels)
            for channels in self.channels
        ]

    def _is_part(self, call: KernelCall, whole: KernelCall, number: int) -> bool:
        """Whether a call for a group has the scalars of the whole call, and a part of each of its arrays."""
        for name, value in call.params.items():
            if name.startswith(("quant.", "act.")) and value != whole.params[name]:
                return False
            if isinstance(value, np.ndarray):
                all_values, channels = whole.params.get(name), self.channels[number]
                if not isinstance(all_values, np.ndarray):
                    return False
                begin = self._begin(all_values, channels)
                right_size = value.size * self._count == all_values.size * len(channels)
                if not right_size or not np.array_equal(all_values[begin : begin + value.size], value):
                    return False
        return True

    def _pointed(self, call: KernelCall, whole: KernelCall, channels: Interval) -> KernelCall:
        arrays = {name: value for name, value in whole.params.items() if isinstance(value, np.ndarray)}
        pointers = {name: ArrayPointer(array, self._begin(array, channels)) for name, array in arrays.items()}
        return replace(call, params=dict(call.params) | pointers)

    @property
    def _count(self) -> int:
        return self.channels[-1].hi

    def _begin(self, array: np.ndarray, channels: Interval) -> int:
        """The index in an array of all channels at which a group begins."""
        return array.size * channels.lo // self._count


def _sums(project: _Stage, size: int) -> KernelCall:
    """The call that adds the products of groups of `size` input channels to sums."""
    conv, channels = project.operator.op, project.source.shape[2]
    assert isinstance(conv, Conv2d)
    shape = (channels // GROUP, GROUP)
    weights = project.operator.constants["weights"].reshape(conv.out_channels, *shape, 1)
    op = Conv2dByRows(conv.out_channels, shape, conv.low, conv.high, conv.rounding)
    operator = replace(project.operator, op=op, constants={**project.operator.constants, "weights": weights})
    source = replace(project.source, shape=(*shape, 1))
    by_rows = op.kernel(operator, (source,), replace(project.output, shape=(1, 1, conv.out_channels)))
    params = dict(by_rows.params)
    return KernelCall(
        "conv2d_s8_1x1_sums" + (TWICE if by_rows.kernel.endswith(TWICE) else ""),
        {
            "packed_weights": params.pop("packed_weights"),
            "group_values": size,
            "input_channels": channels,
            "output_channels": conv.out_channels,
        }
        | {name: value for name, value in params.items() if "." in name},
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Assembly:
    """The kernel calls that fused_rows makes, by group and stage, for `batch` rows of the output at a time.

    `summed_channels`: the number of channels that come in groups, whose products the last stage adds to
    sums; 0 without groups.
    """

    stages: Sequence[_Stage]
    calls: Sequence[Sequence[KernelCall]]
    batch: int
    summed_channels: int = 0

    def call(self, isa: Isa, mode: str) -> KernelCall:
        """Return the call of fused_rows. Its scratch has stages' rows, sums, and stages' scratch."""
        table, at = [], 0
        for number, stage in enumerate(self.stages):
            slots = len(self._needed(number, Interval(0, self.batch))) if number + 1 < len(self.stages) else 0
            window, row_bytes = stage.window, stage.output.row_bytes
            last_group_bytes = row_bytes * self._last_channels // self._group_channels if slots else row_bytes
            rows_read = window.stride, window.lo, window.hi
            table.append((stage.output.shape[0], *rows_read, slots, row_bytes, last_group_bytes, at))
            at += padded(slots * row_bytes, _ALIGN)
        last = self.stages[-1].output
        if self.summed_channels:
            table[-1] = (*table[-1][:-1], at)
            at += padded(self.batch * self._pixels * SUM_BYTES * last.shape[2], _ALIGN)
        params: Params = {
            "calls": CallTable(tuple(call for group in self.calls for call in group)),
            "stages": np.array(table, np.int32).astype(np.uint32),
            "stage_count": len(self.stages),
            "group_count": len(self.calls),
            "batch_rows": self.batch,
            "summed_pixels": self._pixels if self.summed_channels else 0,
            "work_at": at,
        }
        scratch = at + max(call.scratch_bytes for group in self.calls for call in group)
        return KernelCall(
            "fused_rows",
            params,
            scratch,
            mode=mode,
            isa=isa,
            counts=self._counts,
            stages=tuple(self._stage_calls()),
        )

    @property
    def _pixels(self) -> int:
        return self.stages[-2].output.shape[1]

    @property
    def _group_channels(self) -> int:
        return self.stages[-2].output.shape[2]

    @property
    def _last_channels(self) -> int:
        """The channels of the last group."""
        return (self.summed_channels - 1) % self._group_channels + 1

    def _needed(self, number: int, rows: Interval, *, clipped: bool = False) -> Interval:
        """The rows of a stage that `rows` of the output need; without `clipped` also those in padding."""
        for later in reversed(self.stages[number + 1 :]):
            total = later.source.shape[0] if clipped else 1 << 30
            lo = later.window.stride * rows.lo + later.window.lo
            hi = later.window.stride * (rows.hi - 1) + later.window.hi
            rows = Interval(max(lo, 0), min(hi, total)) if clipped else Interval(lo, hi)
        return rows

    def _stage_calls(self) -> Iterator[StageCall]:
        """Yield the calls of the first group, which represent those of all groups."""
        for number, (stage, call) in enumerate(zip(self.stages, self.calls[0], strict=True)):
            last = number == len(self.stages) - 1
            if last and self.summed_channels:
                return
            tensors = {stage.operator.inputs[0]: stage.source, stage.operator.output: stage.output}
            size = self.batch if last or self._needed(number, Interval(0, 1)) == Interval(0, 1) else 1
            size = min(size, stage.output.shape[0])
            middle = (stage.output.shape[0] - size) // 2
            rows = Interval(middle, middle + size)
            yield StageCall(stage.operator, tensors, call, rows, self._times(number, size))

    def _times(self, number: int, size: int) -> Callable[[Interval], float]:
        """The number of calls of `size` rows that a stage makes for some rows of the output."""
        groups = self.summed_channels / self._group_channels

        def times(rows: Interval) -> float:
            if not self.summed_channels:
                return len(self._needed(number, rows, clipped=True)) / size
            starts = range(rows.lo, rows.hi, self.batch)
            batches = (Interval(lo, min(lo + self.batch, rows.hi)) for lo in starts)
            return groups * sum(len(self._needed(number, each, clipped=True)) for each in batches) / size

        return cache(times)

    def _counts(self, rows: Interval) -> Counts:
        passes = -(-len(rows) // self.batch) * len(self.calls)
        counts: Counts = {"calls": 1, "stages": passes * len(self.stages)}
        if self.summed_channels:
            pixels, channels = len(rows) * self._pixels, self.stages[-1].output.shape[2]
            fours, ones = divmod(channels, FOUR)
            pixels_of_groups = pixels * len(self.calls)
            counts |= {
                "summed": passes,
                "fours": pixels_of_groups * fours,
                "groups": pixels * fours * self.summed_channels / GROUP,
                "ones": pixels * ones * self.summed_channels + pixels_of_groups * ones * GROUP,
                "results": pixels * channels,
            }
        return counts
