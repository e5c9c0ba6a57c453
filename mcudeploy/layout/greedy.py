"""Offsets by first fit: each buffer, in some order, at the lowest offset that is free while it lives."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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


def place(items: Sequence[Buffer], alignment: int) -> tuple[int, ...]:
    """Byte offsets of `items`, in their order: the best of first fit by size, life, area and birth."""
    candidates = (
        _first_fit(items, sorted(range(len(items)), key=lambda i: order(items[i])), alignment)
        for order in ORDERS
    )
    return min(candidates, key=lambda offsets: used_bytes(items, offsets))


def used_bytes(items: Sequence[Buffer], offsets: Sequence[int]) -> int:
    """The end of the highest buffer."""
    return max((offset + item.size_bytes for item, offset in zip(items, offsets, strict=True)), default=0)


def _first_fit(items: Sequence[Buffer], order: Sequence[int], alignment: int) -> tuple[int, ...]:
    offsets = [0] * len(items)
    placed: list[int] = []
    for index in order:
        item = items[index]
        offset = 0
        for other in placed:  # ascending in offset
            if not items[other].live.overlaps(item.live):
                continue
            if offsets[other] - offset >= item.size_bytes:
                break
            offset = max(offset, align_up(offsets[other] + items[other].size_bytes, alignment))
        offsets[index] = offset
        position = next((i for i, other in enumerate(placed) if offsets[other] > offset), len(placed))
        placed.insert(position, index)
    return tuple(offsets)
