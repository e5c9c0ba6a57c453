"""The Fourier transforms as ONNX functions, stage by stage, each stage on all points at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mcudeploy.extensions.audio.fourier import RealFft, radices, twiddles, unpacking
from mcudeploy.frontend.tflite.formula import Expression, Formula

_Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    """Complex points [rows, count]."""

    re: Expression
    im: Expression

    def at(self, places: _Places) -> _Point:
        return _Point(self.re.at(places, 1), self.im.at(places, 1))


@dataclass(frozen=True, slots=True)
class _Arithmetic:
    """The arithmetic of a transform: fixed point of `bits` bits, or float32 if `bits` is 0."""

    f: Formula
    bits: int

    def wrap(self, value: Expression) -> Expression:
        return value.wrapped(self.bits) if self.bits else value

    def rounded(self, product: Expression) -> Expression:
        if not self.bits:
            return product
        return self.wrap((product + (1 << (self.bits - 2))) >> (self.bits - 1))

    def constant(self, values: NDArray[np.generic]) -> Expression:
        return self.f.constant(values, self.f.number)

    def part(self, point: _Point, radix: int) -> _Point:
        """The point divided by the radix in fixed point, so that the sums of a stage fit."""
        if not self.bits:
            return point
        factor = (2 ** (self.bits - 1) - 1) // radix
        return _Point(self.rounded(point.re * factor), self.rounded(point.im * factor))

    def plus(self, a: _Point, b: _Point) -> _Point:
        return _Point(self.wrap(a.re + b.re), self.wrap(a.im + b.im))

    def minus(self, a: _Point, b: _Point) -> _Point:
        return _Point(self.wrap(a.re - b.re), self.wrap(a.im - b.im))

    def product(self, a: _Point, b: _Point) -> _Point:
        re = self.rounded(a.re * b.re - a.im * b.im)
        return _Point(re, self.rounded(a.re * b.im + a.im * b.re))

    def half(self, value: Expression) -> Expression:
        return value >> 1 if self.bits else value * 0.5

    def half_sum(self, value: Expression) -> Expression:
        """Half of a sum. A sum of 16-bit numbers is halved before it wraps, one of 32-bit numbers after."""
        return self.wrap(self.half(self.wrap(value) if self.bits == 32 else value))

    def factors(self, table: NDArray[np.generic], places: _Places) -> _Point:
        """Complex constants: the entries of a table at these places."""
        return _Point(*(self.constant(table[places, at]) for at in (0, 1)))


def transform(f: Formula, op: RealFft, shape: tuple[int, ...], dtype: str) -> Expression:
    """The transform of the input x, of this shape and type, along its last axis."""
    numbers = _Arithmetic(f, {"int16": 16, "int32": 32, "float32": 0}[dtype])
    x = f.given("x").reshaped(-1, shape[-1])
    result = _backward(numbers, op, x, dtype) if op.inverse else _forward(numbers, op, x, shape[-1], dtype)
    result = result.reshaped(*shape[:-1], op.length if op.inverse else op.length + 2)
    return f.cast(result, dtype) if numbers.bits else result


def _forward(n: _Arithmetic, op: RealFft, x: Expression, count: int, dtype: str) -> Expression:
    points = op.length // 2
    if count < op.length:
        pads = n.f.constant([0, 0, 0, op.length - count])
        x = n.f.node("Pad", x, pads)
    places = np.arange(points)
    spectrum = _complex_transform(n, op, _Point(x.at(2 * places, 1), x.at(2 * places + 1, 1)), dtype)
    ends = n.part(spectrum.at(np.array([0])), 2)
    zero = ends.re - ends.re
    first = _Point(n.wrap(ends.re + ends.im), zero)
    last = _Point(n.wrap(ends.re - ends.im), zero)
    low = np.arange(1, points // 2 + 1)
    a, b = spectrum.at(low), spectrum.at(points - low)
    a, b = n.part(a, 2), n.part(_Point(b.re, n.wrap(-b.im)), 2)
    sums = n.plus(a, b)
    turned = n.product(n.minus(a, b), n.factors(unpacking(op.length, dtype), low - 1))
    below = _Point(n.half_sum(sums.re + turned.re), n.half_sum(sums.im + turned.im))
    above = _Point(n.half_sum(sums.re - turned.re), n.half_sum(turned.im - sums.im))
    below = below.at(np.arange((points - 1) // 2))  # a point in the middle is in `above`
    above = above.at(np.arange(len(low))[::-1].copy())
    return _flat(n, [first, below, above, last])


def _backward(n: _Arithmetic, op: RealFft, x: Expression, dtype: str) -> Expression:
    points = op.length // 2
    places = np.arange(points + 1)
    spectrum = _Point(x.at(2 * places, 1), x.at(2 * places + 1, 1))
    zero, end = spectrum.at(np.array([0])), spectrum.at(np.array([points]))
    ends = n.part(_Point(n.wrap(zero.re + end.re), n.wrap(zero.re - end.re)), 2)
    low = np.arange(1, points // 2 + 1)
    a, b = n.part(spectrum.at(low), 2), spectrum.at(points - low)
    b = n.part(_Point(b.re, n.wrap(-b.im)), 2)
    sums = n.plus(a, b)
    factors = n.factors(unpacking(op.length, dtype, inverse=True), low - 1)
    turned = n.product(n.minus(a, b), factors)
    below = n.plus(sums, turned).at(np.arange((points - 1) // 2))
    above = n.minus(sums, turned)
    above = _Point(above.re, n.wrap(-above.im)).at(np.arange(len(low))[::-1].copy())
    parts = [ends, below, above]
    packed = _Point(n.f.joined([it.re for it in parts], 1), n.f.joined([it.im for it in parts], 1))
    samples = _flat(n, [_complex_transform(n, op, packed, dtype)])
    return samples if n.bits else n.f.node("Div", samples, op.length)


def _flat(n: _Arithmetic, parts: Sequence[_Point]) -> Expression:
    """Real and imaginary parts in turn, [rows, 2 * points]."""
    re, im = (n.f.joined([getattr(it, name) for it in parts], 1) for name in ("re", "im"))
    axis = n.f.constant([2])
    both = n.f.joined([n.f.node("Unsqueeze", it, axis) for it in (re, im)], 2)
    return n.f.node("Flatten", both, axis=1)


def _complex_transform(n: _Arithmetic, op: RealFft, values: _Point, dtype: str) -> _Point:
    """The complex transform of points in their natural order."""
    points, factors = op.length // 2, radices(op.length)
    result, size = values.at(_first_order(factors)), 1
    table = twiddles(op.length, dtype, inverse=op.inverse)
    for radix in reversed(factors):
        stride = points // (radix * size)
        block, within = np.divmod(np.arange(points // radix), size)
        legs = [block * radix * size + within + leg * size for leg in range(radix)]
        inputs = [n.part(result.at(leg), radix) for leg in legs]
        turned = [
            n.product(point, n.factors(table, leg * within * stride)) if leg else point
            for leg, point in enumerate(inputs)
        ]
        results = _BUTTERFLIES[radix](
            n, turned, table[[stride * size % points, 2 * stride * size % points]], op
        )
        order = np.argsort(np.concatenate(legs), kind="stable")
        result = _Point(
            n.f.joined([it.re for it in results], 1), n.f.joined([it.im for it in results], 1)
        ).at(order)
        size *= radix
    return result


def _first_order(factors: Sequence[int]) -> _Places:
    """The natural places of the points, in the order in which the first stage takes them."""
    order, step = np.zeros(1, np.int64), 1
    for radix in factors:
        order = (order[:, np.newaxis] + step * np.arange(radix)).reshape(-1)
        step *= radix
    return order


def _two(n: _Arithmetic, x: Sequence[_Point], _: NDArray[np.generic], __: RealFft) -> list[_Point]:
    return [n.plus(*x), n.minus(*x)]


def _three(n: _Arithmetic, x: Sequence[_Point], roots: NDArray[np.generic], _: RealFft) -> list[_Point]:
    a, b, c = x
    sums, gap, sine = n.plus(b, c), n.minus(b, c), n.constant(roots[0, 1])
    middle = _Point(n.wrap(a.re - n.half(sums.re)), n.wrap(a.im - n.half(sums.im)))
    turned = _Point(n.rounded(gap.re * sine), n.rounded(gap.im * sine))
    second = _Point(n.wrap(middle.re - turned.im), n.wrap(middle.im + turned.re))
    third = _Point(n.wrap(middle.re + turned.im), n.wrap(middle.im - turned.re))
    return [n.plus(a, sums), second, third]


def _four(n: _Arithmetic, x: Sequence[_Point], _: NDArray[np.generic], op: RealFft) -> list[_Point]:
    a, b, c, d = x
    even, gap, odd = n.plus(a, c), n.minus(a, c), n.plus(b, d)
    turned = n.minus(d, b) if op.inverse else n.minus(b, d)
    second = _Point(n.wrap(gap.re + turned.im), n.wrap(gap.im - turned.re))
    fourth = _Point(n.wrap(gap.re - turned.im), n.wrap(gap.im + turned.re))
    return [n.plus(even, odd), second, n.minus(even, odd), fourth]


def _five(n: _Arithmetic, x: Sequence[_Point], roots: NDArray[np.generic], _: RealFft) -> list[_Point]:
    a, b, c, d, e = x
    outer, outer_gap, inner, inner_gap = n.plus(b, e), n.minus(b, e), n.plus(c, d), n.minus(c, d)
    (one_re, one_im), (two_re, two_im) = ([n.constant(value) for value in root] for root in roots)

    def even(first: Expression, second: Expression) -> _Point:
        return _Point(
            n.wrap(a.re + n.rounded(outer.re * first) + n.rounded(inner.re * second)),
            n.wrap(a.im + n.rounded(outer.im * first) + n.rounded(inner.im * second)),
        )

    def times(value: Expression, factor: Expression) -> Expression:
        return n.rounded(value * factor)

    one, two = even(one_re, two_re), even(two_re, one_re)
    one_turn = _Point(
        n.wrap(times(outer_gap.im, one_im) + times(inner_gap.im, two_im)),
        n.wrap(-times(outer_gap.re, one_im) - times(inner_gap.re, two_im)),
    )
    two_turn = _Point(
        n.wrap(-times(outer_gap.im, two_im) + times(inner_gap.im, one_im)),
        n.wrap(times(outer_gap.re, two_im) - times(inner_gap.re, one_im)),
    )
    sums = n.plus(a, n.plus(outer, inner))
    return [
        sums,
        n.minus(one, one_turn),
        n.plus(two, two_turn),
        n.minus(two, two_turn),
        n.plus(one, one_turn),
    ]


_BUTTERFLIES = {2: _two, 3: _three, 4: _four, 5: _five}
"""By radix, the function that combines the legs of a stage, each times its factor. It also takes the first
two roots of the radix.
"""
