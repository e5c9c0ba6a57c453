"""One operator tile, packed for a device: records, tables and parameters as its C compiler lays them out.

The device parses nothing: the host writes an image with absolute addresses into an arena, and CALL runs it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mcudeploy.graph import Graph, Operator
from mcudeploy.interval import Interval
from mcudeploy.measurer.session import DeviceInfo, Session, Ticks
from mcudeploy.ops.opdef import ConstantArray, KernelCall

_IMAGE_ALIGN = 8


@dataclass(frozen=True, slots=True)
class TileTensor:
    """A tensor in an arena: block b of `block_rows` rows begins at byte `offsets[b]`.

    Scratch has `row_bytes` 0, and one offset for each block of the output.
    """

    offsets: tuple[int, ...]
    row_bytes: int
    block_rows: int
    memory: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Tile:
    """An operator's kernel and where its tensors lie; `rows` and `block_rows` are of its output."""

    call: KernelCall
    inputs: tuple[TileTensor, ...]
    output: TileTensor
    scratch: TileTensor | None
    rows: int
    block_rows: int


@dataclass(frozen=True, slots=True)
class Region:
    """Readable bytes of flash, any content."""

    base: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Image:
    """Bytes for offset `at` of arena `memory`; the operator record is at byte `op_offset` of that arena."""

    memory: int
    at: int
    data: bytes
    op_offset: int


@dataclass(frozen=True, slots=True)
class KernelTable:
    """Names of the linked kernels (without `mcud_`) and their addresses."""

    addresses: dict[str, int]

    @classmethod
    def of(cls, session: Session, names: Sequence[str]) -> KernelTable:
        """Ask a device that was built with the kernels `names`. Raises ValueError where it has others."""
        ordered = sorted(set(names))
        addresses = session.kernels()
        if len(addresses) != len(ordered):
            raise ValueError(f"the firmware has {len(addresses)} kernels, {len(ordered)} are expected")
        return cls(dict(zip(ordered, addresses, strict=True)))

    def __getitem__(self, kernel: str) -> int:
        if kernel not in self.addresses:
            raise ValueError(f"the firmware has no kernel {kernel}")
        return self.addresses[kernel]


class _Builder:
    """Collects an image from its parts; each part's address is known as soon as it is added."""

    def __init__(self, base: int, pointer_bytes: int) -> None:
        self._base = base
        self._pointer = {4: "I", 8: "Q"}[pointer_bytes]
        self.data = bytearray()

    def add(self, part: bytes) -> int:
        """Append; the address."""
        self.data += bytes(-len(self.data) % _IMAGE_ALIGN)
        address = self._base + len(self.data)
        self.data += part
        return address

    def pointers(self, addresses: Sequence[int]) -> bytes:
        """Pointers one after the other."""
        return struct.pack(f"<{len(addresses)}{self._pointer}", *addresses)


def pack(
    tile: Tile,
    kernels: KernelTable,
    info: DeviceInfo,
    *,
    at: int,
    memory: int = 0,
    flash: Region | None = None,
) -> Image:
    """The image of a tile for offset `at` (a multiple of 8) of arena `memory`.

    Constants become part of it. With `flash`, arrays of int8, int32 and float32 that fit are taken to be
    there instead, whatever its content: right for timing kernels whose time depends on no data.
    Raises ValueError for offsets that are misaligned or out of the device's reach, or an unknown kernel.
    """
    base = info.arenas[memory].base
    if (base + at) % _IMAGE_ALIGN:
        raise ValueError(f"an image at address {base + at:#x} is not aligned to {_IMAGE_ALIGN} bytes")
    builder = _Builder(base + at, info.pointer_bytes)
    params = builder.add(_params(tile.call, builder, flash))
    inputs = builder.add(builder.pointers([_tensor(tensor, builder, info) for tensor in tile.inputs]))
    output = _tensor(tile.output, builder, info)
    scratch = 0 if tile.scratch is None else _tensor(tile.scratch, builder, info)
    record = builder.pointers([kernels[tile.call.kernel], params, inputs, output, scratch])
    op = builder.add(record + struct.pack("<II", tile.rows, tile.block_rows))
    return Image(memory, at, bytes(builder.data), op - base)


def _tensor(tensor: TileTensor, builder: _Builder, info: DeviceInfo) -> int:
    if any(offset % info.align for offset in tensor.offsets):
        raise ValueError(f"offsets {tensor.offsets} are no multiples of {info.align}")
    units = np.asarray(tensor.offsets, np.int64) // info.align
    if units.size and int(units.max()) >= 1 << 8 * info.offset_bytes:
        raise ValueError(f"offset {max(tensor.offsets)} does not fit the {info.offset_bytes}-byte tables")
    offsets = builder.add(units.astype({2: "<u2", 4: "<u4"}[info.offset_bytes]).tobytes())
    head = builder.pointers([info.arenas[tensor.memory].base, offsets])
    return builder.add(head + struct.pack("<II", tensor.row_bytes, tensor.block_rows))


def _params(call: KernelCall, builder: _Builder, flash: Region | None) -> bytes:
    addresses: list[int] = []
    scalars = bytearray()
    for name, value in call.params.items():
        if value is None or isinstance(value, np.ndarray):
            if scalars:
                raise ValueError(f"{call.kernel}: pointer {name} stands behind a scalar")
            addresses.append(0 if value is None else _constant(value, builder, flash))
        elif isinstance(value, int | np.integer):
            scalars += struct.pack("<i", value)
        else:
            scalars += struct.pack("<f", value)
    return builder.pointers(addresses) + bytes(scalars)


def _constant(array: ConstantArray, builder: _Builder, flash: Region | None) -> int:
    # unsigned arrays are positions: with any others a kernel would read anywhere
    if flash is not None and array.dtype.kind in "if" and array.nbytes <= flash.size_bytes:
        return flash.base
    return builder.add(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes())


def run_tile(
    session: Session, image: Image, rows: Interval, *, repeat: int = 1, timeout_s: float = 60.0
) -> Ticks:
    """Write an image and call its kernel for output rows `rows`, which lie in one block."""
    session.write(image.memory, image.at, image.data)
    return session.call(image.memory, image.op_offset, rows.lo, rows.hi, repeat=repeat, timeout_s=timeout_s)


def time_tile(
    session: Session,
    kernels: KernelTable,
    graph: Graph,
    operator: Operator,
    rows: Interval,
    *,
    input_block_rows: Sequence[int] | None = None,
    memory: int = 0,
    flash: Region | None = None,
    timeout_s: float = 60.0,
) -> Ticks:
    """The ticks of computing output rows `rows` of an operator in one step, on any data.

    `input_block_rows` says how each input is cut (whole by default): it changes nothing but how a kernel
    finds its rows. Only what the step touches takes room in the arena; where even that is too much, blocks
    share addresses, which is no matter to a kernel whose time depends on no data. With `flash` (see `pack`)
    the constants of operators that multiply are not sent. Raises ValueError where a single block or the
    image does not fit the arena.
    """
    tile, at = timing_tile(
        graph, operator, rows, session.info, input_block_rows=input_block_rows, memory=memory
    )
    multiplies = graph.loops(operator).multiplies
    image = pack(tile, kernels, session.info, at=at, memory=memory, flash=flash if multiplies else None)
    if at + len(image.data) > session.info.arenas[memory].size_bytes:
        raise ValueError(f"{operator.name} with its constants does not fit the arena for timing")
    return run_tile(session, image, rows, timeout_s=timeout_s)


def timing_tile(
    graph: Graph,
    operator: Operator,
    rows: Interval,
    info: DeviceInfo,
    *,
    input_block_rows: Sequence[int] | None = None,
    memory: int = 0,
) -> tuple[Tile, int]:
    """A tile for timing and the offset behind its tensors, where the image goes.

    The tensors lie behind one another from offset 0; see `time_tile`. Raises ValueError for rows that are
    no block of any cut.
    """
    if len(rows) == 0 or (rows.lo % len(rows) and rows.lo < len(rows)):
        raise ValueError(f"rows {rows} of {operator.name} are no block of any cut")
    inputs = graph.input_tensors(operator)
    output = graph.tensors[operator.output]
    call = operator.op.kernel(operator, inputs, output)
    loops = graph.loops(operator)
    arena = _Arena(info.arenas[memory].size_bytes, memory)
    block_rows = len(rows)
    if rows.lo % block_rows:  # the last, shorter block of a cut
        block_rows = rows.lo
    touched = Interval(rows.lo // block_rows, (rows.hi - 1) // block_rows + 1)
    scratch = arena.place(touched, call.scratch_bytes, 0, block_rows) if call.scratch_bytes else None
    made = arena.place(touched, len(rows) * output.row_bytes, output.row_bytes, block_rows)
    placed = []
    for operand, tensor in enumerate(inputs):
        cut = tensor.shape[0] if input_block_rows is None else input_block_rows[operand]
        read = loops.rows_read(operand, rows, tensor.shape[0])
        blocks = Interval(read.lo // cut, -(-read.hi // cut)) if len(read) else Interval(0, 0)
        block_bytes = min(cut, tensor.shape[0]) * tensor.row_bytes
        placed.append(arena.place(blocks, block_bytes, tensor.row_bytes, cut))
    return Tile(call, tuple(placed), made, scratch, output.shape[0], block_rows), arena.used


class _Arena:
    """Hands out addresses from offset 0; starts over within a tensor where it is full."""

    _RESERVE = 4  # a quarter of the arena stays free for the image

    def __init__(self, size_bytes: int, memory: int) -> None:
        self._limit = size_bytes - size_bytes // self._RESERVE
        self._memory = memory
        self.used = 0

    def place(self, blocks: Interval, block_bytes: int, row_bytes: int, block_rows: int) -> TileTensor:
        """A tensor of which `blocks` are touched."""
        size = -(-block_bytes // _IMAGE_ALIGN) * _IMAGE_ALIGN
        start = self.used
        distinct = min(len(blocks), max(1, (self._limit - start) // max(size, 1)))
        offsets = [start] * blocks.hi
        for block in range(blocks.lo, blocks.hi):
            offsets[block] = start + (block - blocks.lo) % distinct * size
        self.used = start + distinct * size
        return TileTensor(tuple(offsets), row_bytes, block_rows, self._memory)
