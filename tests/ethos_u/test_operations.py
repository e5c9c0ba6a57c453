"""Commands in the functional model of an Ethos-U: where feature maps are, and what is refused."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
import pytest
from vela_streams import Array, Regions

from mcudeploy.extensions.ethos_u.registers import LONG, SHORT
from tests.weekly import examples

BAD_COMMAND, UNSUPPORTED, OUTSIDE, TIMEOUT, UNALIGNED = 1, 2, 3, 6, 9
SMALL = {name.removesuffix("_M1"): code for code, name in SHORT.items()}
LARGE = {name: code for code, name in LONG.items()}
POOL, STOP, SIGNED, BRICKS = 0x005, 0xFFFF_0000, 1, 0x40
SIZE = 1 << 14


@dataclass(frozen=True)
class Tiles:
    """A feature map in four tiles, each at its own place."""

    shape: tuple[int, int, int]
    width: int
    heights: tuple[int, int]
    bases: tuple[int, ...]
    bricks: bool

    @property
    def strides(self) -> tuple[int, int, int]:
        """Of a pixel, a row, and a brick of 16 channels."""
        _, width, depth = self.shape
        bricks = -(-depth // 16)
        return (16, 16 * width * bricks, 16 * width) if self.bricks else (depth, width * depth, 1)

    def address(self, y: int, x: int, c: int) -> int:
        """Of an element, from the definition of tiles."""
        column = int(x >= self.width)
        row = int(y >= self.heights[column])
        y, x = y - row * self.heights[column], x - column * self.width
        pixel, line, brick = self.strides
        inside = c // 16 * brick + c % 16 if self.bricks else c
        return self.bases[2 * row + column] + y * line + x * pixel + inside

    def registers(self, name: str) -> list[int]:
        """The commands that state it, as IFM or OFM."""
        pixel, line, brick = self.strides
        small = {"WIDTH0": self.width - 1, "HEIGHT0": self.heights[0] - 1, "HEIGHT1": self.heights[1] - 1}
        small |= {
            "REGION": 1 + (name == "OFM"),
            "PRECISION": SIGNED | BRICKS * self.bricks,
            "DEPTH": self.shape[2] - 1,
        }
        large = [(LARGE[f"{name}_BASE0"] + at, base) for at, base in enumerate(self.bases)]
        large += [(LARGE[f"{name}_STRIDE_X"] + at, value) for at, value in enumerate((pixel, line, brick))]
        return [
            *(SMALL[f"{name}_{it}"] | value << 16 for it, value in small.items()),
            *(word for number, value in large for word in (0x4000 | number, value)),
        ]


def copying(source: Tiles, target: Tiles) -> list[int]:
    """Commands that copy one feature map into another: a pool of one element."""
    height, width, _ = target.shape
    return [
        *source.registers("IFM"),
        *target.registers("OFM"),
        *(SMALL["OFM_HEIGHT"] | (height - 1) << 16, SMALL["OFM_WIDTH"] | (width - 1) << 16),
        *(SMALL["ACTIVATION_MIN"] | 0xFF80 << 16, SMALL["ACTIVATION_MAX"] | 0x7F << 16),
        *(POOL, STOP),
    ]


def run(model: ctypes.CDLL, words: list[int], source: Array, target: Array, writable: int = 0b100) -> int:
    """The model's code; regions 1 and 2 are the arrays."""
    regions = Regions()
    regions.give(1, source)
    regions.give(2, target)
    regions.writable = writable
    commands = np.array(words, np.uint32)
    code = model.mcud_npu_run(ctypes.c_void_p(commands.ctypes.data), len(words), ctypes.byref(regions))
    return int(code)


def drawn(random: np.random.Generator, shape: tuple[int, int, int]) -> Tiles:
    """Tiles of random sizes, whose places do not overlap."""
    height, width, _ = shape
    bases = tuple(int(it) for it in random.permutation(4) * (SIZE // 4) + random.integers(0, 64))
    heights = tuple(int(it) for it in random.integers(1, height + 1, 2))
    return Tiles(
        shape, int(random.integers(1, width + 1)), (heights[0], heights[1]), bases, bool(random.integers(2))
    )


def test_elements_are_where_tiles_and_bricks_say(model: ctypes.CDLL) -> None:
    random = np.random.default_rng(1)
    for number in range(examples(60, 2000)):
        shape = (int(random.integers(1, 7)), int(random.integers(1, 7)), int(random.integers(1, 40)))
        source, target = drawn(random, shape), drawn(random, shape)
        memory, made = random.integers(0, 256, SIZE).astype(np.uint8), np.zeros(SIZE, np.uint8)
        expected = made.copy()
        for place in np.ndindex(shape):
            expected[target.address(*place)] = memory[source.address(*place)]
        assert run(model, copying(source, target), memory, made) == 0
        assert (made == expected).all(), number


def test_a_negative_stride_reverses_rows(model: ctypes.CDLL) -> None:
    plain = Tiles((4, 1, 8), 1, (4, 4), (0, 0, 0, 0), bricks=False)
    memory, made = np.arange(64, dtype=np.uint8), np.zeros(64, np.uint8)
    words = copying(plain, plain)
    at = words.index(0x4000 | LARGE["OFM_STRIDE_Y"])
    words[at : at + 2] = [0x4000 | LARGE["OFM_STRIDE_Y"] | 0xFF << 16, 0xFFFF_FFF8]  # 40 bits of -8
    words[words.index(0x4000 | LARGE["OFM_BASE0"]) + 1] = 24
    assert run(model, words, memory, made) == 0
    assert (made[:32].reshape(4, 8) == memory[:32].reshape(4, 8)[::-1]).all()


def test_accesses_end_at_their_regions(model: ctypes.CDLL) -> None:
    plain = Tiles((4, 4, 8), 4, (4, 4), (0, 0, 0, 0), bricks=False)
    words, size = copying(plain, plain), 4 * 4 * 8
    whole = np.zeros(2 * size, np.uint8)
    memory = whole[-whole.ctypes.data % 16 :][:size]
    assert run(model, words, memory, memory.copy()) == 0
    assert run(model, words, memory[: size - 1], memory.copy()) == OUTSIDE
    assert run(model, words, memory, memory.copy()[: size - 1]) == OUTSIDE
    assert run(model, words, memory, memory.copy(), writable=0b010) == OUTSIDE
    assert run(model, words, memory[1:], memory.copy()) == UNALIGNED


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([], BAD_COMMAND),
        ([0x4000], BAD_COMMAND),
        ([0x004, STOP], BAD_COMMAND),  # no operation
        ([0x106, STOP], BAD_COMMAND),  # no register of 16 bits
        ([0x4007, 0, STOP], BAD_COMMAND),  # no register of 32 bits
        ([0x8000, 0, STOP], BAD_COMMAND),  # a payload that no command has
        ([0x0400 | 0x100, STOP], BAD_COMMAND),  # a reserved bit
        ([0x123 | 1 << 16, POOL, STOP], UNSUPPORTED),  # two cores
        ([0x131 | 0x200 << 16, 0x010, STOP], UNSUPPORTED),  # a transfer of rows
        ([0x012, 0x011, 0x001, 0x013, STOP], 0),
    ],
)
def test_commands_that_are_refused(words: list[int], code: int, model: ctypes.CDLL) -> None:
    memory = np.zeros(256, np.uint8)
    assert run(model, words, memory, memory) == code


def test_a_run_without_an_end_is_given_up(model: ctypes.CDLL) -> None:
    far = Tiles((100, 100, 100), 100, (100, 100), (0, 0, 0, 0), bricks=False)
    memory = np.zeros(1_000_000, np.uint8)
    assert run(model, copying(far, far), memory, memory.copy()) == TIMEOUT
