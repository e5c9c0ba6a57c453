"""One operator tile, packed for a device: records, tables and parameters as its C compiler lays them out.

The device parses nothing: the host writes an image with absolute addresses into an arena, and CALL runs it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mcudeploy.boards.board import Board
from mcudeploy.common.errors import ProtocolError
from mcudeploy.device.replies import DeviceInfo, Ticks
from mcudeploy.device.session import Session
from mcudeploy.ir.block_rows import BlockRows
from mcudeploy.ir.graph import Graph, Operator
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import UNIT_ALIGNMENT, ArrayPointer, CallTable, ConstantArray, KernelCall

_IMAGE_ALIGN = 8
_FLASH_SKIP = 64
_SHARE_FOR_IMAGES = 4
"""While tiles are timed, one part in this number of an arena is for images."""
_MERGE_BYTES = 24
"""Line bytes that a separate WRITE costs: smaller gaps between changes are sent along."""


@dataclass(frozen=True, slots=True)
class TileTensor:
    """A tensor in the first arena: block b of `block_rows` begins at byte `offsets[b]`.

    Scratch has `row_bytes` 0, and one offset for each block of the output. With `first_block`, `offsets`
    begins with that block: the ones before it must not be touched.
    """

    offsets: tuple[int, ...]
    row_bytes: int
    block_rows: BlockRows
    first_block: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Tile:
    """An operator's kernel and the offsets of its tensors; `rows` and `block_rows` are of its output."""

    call: KernelCall
    inputs: tuple[TileTensor, ...]
    output: TileTensor
    scratch: TileTensor | None
    rows: int
    block_rows: BlockRows


@dataclass(frozen=True, slots=True)
class FlashRegion:
    """Readable bytes of flash, any content."""

    base: int
    size_bytes: int

    @classmethod
    def of(cls, board: Board) -> FlashRegion | None:
        """Return the flash of a board without its first bytes, which may be at address 0.

        None if its address is unknown: for the host, and if a framework links.
        """
        if board.is_host or board.framework is not None:
            return None
        return cls(board.flash.constants.origin + _FLASH_SKIP, board.flash.bytes - _FLASH_SKIP)


@dataclass(frozen=True, slots=True)
class Image:
    """Bytes for offset `at` of the first arena; the operator's record is at the arena's byte `op_offset`."""

    at: int
    data: bytes
    op_offset: int


@dataclass(frozen=True, slots=True)
class KernelTable:
    """Names of the linked kernels (without `mcud_`) and their addresses."""

    addresses: dict[str, int]

    @classmethod
    def of(cls, session: Session, names: Sequence[str]) -> KernelTable:
        """Read the addresses from a device with the kernels `names`. ProtocolError for another number."""
        ordered = sorted(set(names))
        addresses = session.kernels()
        if len(addresses) != len(ordered):
            raise ProtocolError(f"the firmware has {len(addresses)} kernels, {len(ordered)} are expected")
        return cls(dict(zip(ordered, addresses, strict=True)))

    def __getitem__(self, kernel: str) -> int:
        if kernel not in self.addresses:
            raise ValueError(f"the firmware has no kernel {kernel}")
        return self.addresses[kernel]


class _Builder:
    """Builds an image from its parts; each part's address is known as soon as it is added."""

    def __init__(self, base: int, pointer_bytes: int) -> None:
        self._base = base
        self._pointer = {4: "I", 8: "Q"}[pointer_bytes]
        self.data = bytearray()
        self.constants: dict[int, int] = {}
        """The addresses of arrays, by their identity."""

    def add(self, part: bytes, align: int = _IMAGE_ALIGN) -> int:
        """Append a part; return its address."""
        self.data += bytes(-(self._base + len(self.data)) % align)
        address = self._base + len(self.data)
        self.data += part
        return address

    def pointers(self, addresses: Sequence[int]) -> bytes:
        """Return addresses as pointers of the device."""
        return struct.pack(f"<{len(addresses)}{self._pointer}", *addresses)


def pack(
    tile: Tile,
    kernels: KernelTable,
    info: DeviceInfo,
    *,
    at: int,
    flash: FlashRegion | None = None,
) -> Image:
    """Return the image of a tile for offset `at` (a multiple of 8) of the first arena.

    Constants become part of it. With `flash`, arrays of int8, int32 and float32 that fit point there instead,
    to any content: that is enough for kernels whose time does not depend on data.
    Raises ValueError for offsets that are misaligned or unreachable for the device, or an unknown kernel.
    """
    base = info.arenas[0].base
    if (base + at) % _IMAGE_ALIGN:
        raise ValueError(f"an image at address {base + at:#x} is not aligned to {_IMAGE_ALIGN} bytes")
    builder = _Builder(base + at, info.pointer_bytes)
    params = builder.add(_params(tile.call, builder, kernels, flash))
    inputs = builder.add(builder.pointers([_tensor(tensor, builder, info) for tensor in tile.inputs]))
    output = _tensor(tile.output, builder, info)
    scratch = 0 if tile.scratch is None else _tensor(tile.scratch, builder, info)
    record = builder.pointers([kernels[tile.call.kernel], params, inputs, output, scratch])
    record_address = builder.add(record + struct.pack("<II", tile.rows, tile.block_rows.rows))
    return Image(at, bytes(builder.data), record_address - base)


def _tensor(tensor: TileTensor, builder: _Builder, info: DeviceInfo) -> int:
    """Add a tensor's record and its table of offsets; return the record's address."""
    if any(offset % info.align for offset in tensor.offsets):
        raise ValueError(f"offsets {tensor.offsets} are not multiples of {info.align}")
    units = np.asarray(tensor.offsets, np.int64) // info.align
    if units.size and int(units.max()) >= 1 << 8 * info.offset_bytes:
        raise ValueError(f"offset {max(tensor.offsets)} does not fit the {info.offset_bytes}-byte tables")
    offsets = builder.add(units.astype({2: "<u2", 4: "<u4"}[info.offset_bytes]).tobytes())
    of_block_0 = offsets - tensor.first_block * info.offset_bytes  # which may lie before the table
    head = builder.pointers([info.arenas[0].base, of_block_0])
    return builder.add(head + struct.pack("<III", tensor.row_bytes, *tensor.block_rows))


def _params(call: KernelCall, builder: _Builder, kernels: KernelTable, flash: FlashRegion | None) -> bytes:
    """Add the constants of a call; return its parameters: the pointers, then the scalars."""
    addresses: list[int] = []
    scalars = bytearray()
    align = UNIT_ALIGNMENT if call.isa.unit else _IMAGE_ALIGN
    for name, value in call.params.items():
        if value is None or isinstance(value, np.ndarray | CallTable | ArrayPointer):
            if scalars:
                raise ValueError(f"{call.kernel}: pointer {name} follows a scalar")
            if isinstance(value, CallTable):
                stages = [
                    (kernels[it.kernel], builder.add(_params(it, builder, kernels, flash)))
                    for it in value.calls
                ]
                addresses.append(builder.add(builder.pointers([each for stage in stages for each in stage])))
            elif isinstance(value, ArrayPointer):
                begin = _constant(value.array, builder, flash, align)
                addresses.append(begin + value.first * value.array.itemsize)
            else:
                addresses.append(0 if value is None else _constant(value, builder, flash, align))
        elif isinstance(value, int | np.integer):
            scalars += struct.pack("<i", value)
        else:
            scalars += struct.pack("<f", value)
    return builder.pointers(addresses) + bytes(scalars)


def _constant(array: ConstantArray, builder: _Builder, flash: FlashRegion | None, align: int) -> int:
    """Return the address of an array, added once, or of flash that takes its place."""
    # Unsigned arrays are positions: with other values a kernel would read anywhere.
    if flash is not None and array.dtype.kind in "if" and array.nbytes <= flash.size_bytes:
        return flash.base
    if id(array) not in builder.constants:
        content = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
        builder.constants[id(array)] = builder.add(content, align)
    return builder.constants[id(array)]


class TileTimer:
    """Times tiles on one device; of each image only the changes against the previous one are sent.

    With `flash` (see `pack`) the constants of operators that multiply are not sent. Their results then often
    clamp, which costs kernels that branch there up to 3 % (vww on stm32f405: 1 % in total, the same for all
    tiles). The tape's cost of a step, some 20 instructions, is not part of a tile's time.
    """

    def __init__(
        self,
        session: Session,
        kernels: KernelTable,
        *,
        flash: FlashRegion | None = None,
    ) -> None:
        self._session, self._kernels, self._flash = session, kernels, flash
        self._sent = b""
        self._changes = session.changes  # the count when `_sent` was on the device

    def time(
        self,
        graph: Graph,
        operator: Operator,
        call: KernelCall,
        rows: Interval,
        *,
        input_block_rows: Sequence[int] | None = None,
        timeout_s: float = 60.0,
    ) -> Ticks:
        """Return the ticks of computing output rows `rows` by `call` in one step, on any data.

        `input_block_rows` states how each input is cut (whole by default): it only changes how a kernel finds
        its rows. The arena holds only blocks that the step touches. If they do not fit, blocks share
        addresses, which does not matter to a kernel whose time is independent of data. Raises ValueError if a
        single block or the image does not fit the arena.
        """
        info = self._session.info
        size = info.arenas[0].size_bytes
        tile, used = timing_tile(graph, operator, call, rows, info, input_block_rows=input_block_rows)
        flash = self._flash if graph.loops(operator).multiplies else None
        home = image_home(size)
        at = max(home, used)
        image = pack(tile, self._kernels, info, at=at, flash=flash)
        if at + len(image.data) > size:  # the time may depend on the constants, but they do not fit
            image = pack(tile, self._kernels, info, at=at, flash=self._flash)
        if at + len(image.data) > size:
            raise ValueError(f"{operator.name} with its constants does not fit the arena for timing")
        known = at == home and self._changes == self._session.changes
        for part in _changes(self._sent if known else b"", image.data):
            self._session.write(0, at + part.lo, image.data[part.lo : part.hi])
        ticks = self._session.call(0, image.op_offset, rows.lo, rows.hi, timeout_s=timeout_s)
        self._sent, self._changes = image.data if at == home else b"", self._session.changes
        return ticks


def _changes(before: bytes, after: bytes) -> list[Interval]:
    """Return the parts of `after` that differ from `before` or lie beyond it, near ones merged."""
    common = min(len(before), len(after))
    differ = np.ones(len(after), np.bool_)
    differ[:common] = np.frombuffer(before, np.uint8, common) != np.frombuffer(after, np.uint8, common)
    where = np.flatnonzero(differ)
    if where.size == 0:
        return []
    starts = np.flatnonzero(np.diff(where, prepend=-_MERGE_BYTES - 1) > _MERGE_BYTES)
    ends = np.append(starts[1:] - 1, where.size - 1)
    return [Interval(int(where[lo]), int(where[hi]) + 1) for lo, hi in zip(starts, ends, strict=True)]


def image_home(arena_bytes: int) -> int:
    """Return the offset of images for timing in an arena of this size."""
    return (arena_bytes - arena_bytes // _SHARE_FOR_IMAGES) // _IMAGE_ALIGN * _IMAGE_ALIGN


def timing_tile(
    graph: Graph,
    operator: Operator,
    call: KernelCall,
    rows: Interval,
    info: DeviceInfo,
    *,
    input_block_rows: Sequence[int] | None = None,
) -> tuple[Tile, int]:
    """Return a tile for timing, and the offset after its tensors, where the image may begin.

    The tensors are contiguous from offset 0; see `TileTimer.time`. Raises ValueError if there are no rows.
    """
    if len(rows) == 0:
        raise ValueError(f"rows {rows} of {operator.name} are not a block of any cut")
    inputs = graph.input_tensors(operator)
    output = graph.tensors[operator.output]
    loops = graph.loops(operator)
    accumulates = operator.op.accumulates
    total_rows = inputs[0].shape[0] if accumulates else output.shape[0]
    arena = _Arena(info.arenas[0].size_bytes)
    block_rows = BlockRows(len(rows), -rows.lo % len(rows))
    touched = Interval(block_rows.block_of(rows.lo), block_rows.block_of(rows.lo) + 1)
    scratch = None
    if call.state_bytes:
        scratch = arena.place(Interval(0, 1), call.state_bytes, 0, BlockRows(total_rows))
    if call.scratch_bytes:
        scratch = arena.place(touched, call.scratch_bytes, 0, block_rows)
    if accumulates:
        result = arena.place(Interval(0, 1), output.size_bytes, output.row_bytes, BlockRows(output.shape[0]))
    else:
        result = arena.place(touched, len(rows) * output.row_bytes, output.row_bytes, block_rows)
    placed = []
    for operand, tensor in enumerate(inputs):
        if operand == operator.op.continues:
            placed.append(result)
            continue
        cut = tensor.shape[0] if input_block_rows is None else input_block_rows[operand]
        rows_of = loops.rows_taken if accumulates else loops.rows_read
        read = rows_of(operand, rows, tensor.shape[0])
        blocks = Interval(read.lo // cut, -(-read.hi // cut)) if len(read) else Interval(0, 0)
        block_bytes = min(cut, tensor.shape[0]) * tensor.row_bytes
        placed.append(arena.place(blocks, block_bytes, tensor.row_bytes, BlockRows(cut)))
    return Tile(call, tuple(placed), result, scratch, total_rows, block_rows), arena.used


class _Arena:
    """Allocates offsets from 0; if a tensor does not fit, its blocks share them."""

    def __init__(self, size_bytes: int) -> None:
        self._limit = image_home(size_bytes)
        self.used = 0

    def place(self, blocks: Interval, block_bytes: int, row_bytes: int, block_rows: BlockRows) -> TileTensor:
        """Place a tensor of which `blocks` are touched."""
        size = -(-block_bytes // _IMAGE_ALIGN) * _IMAGE_ALIGN
        start = self.used
        distinct = min(len(blocks), max(1, (self._limit - start) // max(size, 1)))
        offsets = tuple(start + index % distinct * size for index in range(len(blocks)))
        self.used = start + distinct * size
        return TileTensor(offsets, row_bytes, block_rows, blocks.lo)
