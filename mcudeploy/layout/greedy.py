"""Offsets by first fit: each buffer, in some order, at the lowest offset that is free while it lives."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Mapping, Sequence

from mcudeploy.simulator.live import Buffer


def align_up(value: int, alignment: int) -> int:
    """The smallest multiple of `alignment` (bytes) that is not below `value`."""
    return -(-value // alignment) * alignment


def _by_size(item: Buffer) -> tuple[int, ...]:
    return (-item.size_bytes, -len(item.live), item.live.lo)


def _by_life(item: Buffer) -> tuple[int, ...]:
    return (-len(item.live), -item.size_bytes, item.live.lo)


def _by_area(item: Buffer) -> tuple[int, ...]:
    return (-len(item.live) * item.size_bytes, item.live.lo)


def _by_birth(item: Buffer) -> tuple[int, ...]:
    return (item.live.lo, -item.size_bytes)


ORDERS: tuple[Callable[[Buffer], tuple[int, ...]], ...] = (_by_size, _by_life, _by_area, _by_birth)


def place(items: Sequence[Buffer], alignment: int, fixed: Mapping[int, int] | None = None) -> tuple[int, ...]:
    """Byte offsets of `items`, in their order: the best of first fit by size, life, area and birth.

    `fixed` gives offsets that are not free to choose, by the index of the item.
    """
    pinned = fixed or {}
    free = [index for index in range(len(items)) if index not in pinned]
    candidates = (
        _first_fit(items, sorted(free, key=lambda i: order(items[i])), alignment, pinned) for order in ORDERS
    )
    return min(candidates, key=lambda offsets: used_bytes(items, offsets))


def used_bytes(items: Sequence[Buffer], offsets: Sequence[int]) -> int:
    """The end of the highest buffer."""
    return max((offset + item.size_bytes for item, offset in zip(items, offsets, strict=True)), default=0)


def _first_fit(
    items: Sequence[Buffer], order: Sequence[int], alignment: int, fixed: Mapping[int, int]
) -> tuple[int, ...]:
    offsets = [fixed.get(index, 0) for index in range(len(items))]
    spans = [(item.live.lo, item.live.hi, item.size_bytes) for item in items]
    placed = sorted((offset, index) for index, offset in fixed.items())  # ascending in offset
    for index in order:
        lo, hi, size = spans[index]
        offset = 0
        for start, other in placed:
            other_lo, other_hi, other_size = spans[other]
            if other_hi <= lo or hi <= other_lo:
                continue
            if start - offset >= size:
                break
            offset = max(offset, align_up(start + other_size, alignment))
        offsets[index] = offset
        insort(placed, (offset, index))
    return tuple(offsets)
