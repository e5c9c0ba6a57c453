"""Tables of functions of 16-bit fixed-point numbers, as gemmlowp computes them for TFLite's LSTM.

A number with b bits of integers stands for value / 2^(15 - b). Results have none: 32767 stands for 1.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

_Integers = NDArray[np.int64]
_MOST, _LEAST = 2**15 - 1, -(2**15)
_FACTORS = (
    (-2, 1672461947),
    (-1, 1302514674),
    (0, 790015084),
    (1, 290630308),
    (2, 39332535),
    (3, 720401),
    (4, 242),
)
"""Logarithms to the base of 2 of arguments, and exp of the negative arguments times 2^31."""
_EXP_OF_EIGHTH, _THIRD = 1895147668, 715827883
_OF_48_BY_17, _OF_32_BY_17 = 1515870810, -1010580540
_CLAMPED_BITS = 5


@cache
def logistic_values(bits: int) -> NDArray[np.int16]:
    """int16[65536]: 1 / (1 + exp(-x)) of the numbers from -32768 on with this many bits of integers."""
    x = _numbers()
    positive = _saturated(_reciprocal(_exp(_negative(x), bits)) << 1)
    return _chosen(x, 1 << 14, positive, _MOST - positive)


@cache
def tanh_values(bits: int) -> NDArray[np.int16]:
    """int16[65536]: tanh(x), likewise."""
    x = _numbers()
    positive = _saturated((_reciprocal(_exp(_negative(x), bits + 1)) - (1 << 13)) << 2)
    return _chosen(x, 0, positive, -positive)


def _numbers() -> _Integers:
    return np.arange(_LEAST, _MOST + 1, dtype=np.int64)


def _negative(x: _Integers) -> _Integers:
    return np.where(x > 0, -x, x)


def _chosen(x: _Integers, of_zero: int, positive: _Integers, negative: _Integers) -> NDArray[np.int16]:
    return np.where(x == 0, of_zero, np.where(x > 0, positive, negative)).astype(np.int16)


def _saturated(x: _Integers) -> _Integers:
    return np.asarray(np.clip(x, _LEAST, _MOST))


def _constant(value: int) -> _Integers:
    """16 of 32 bits."""
    return _divided(np.array(value, np.int64), 16)


def _product(a: _Integers, b: _Integers) -> _Integers:
    """The product / 2^15, rounded and saturated; a tie goes up."""
    return np.asarray(np.minimum((a * b + (1 << 14)) >> 15, _MOST))


def _divided(x: _Integers, bits: int) -> _Integers:
    """The quotient by 2^bits, halves away from zero."""
    rest, half = x & ((1 << bits) - 1), (1 << bits) >> 1
    return np.asarray((x >> bits) + (rest >= half + (x < 0)))


def _exp(x: _Integers, bits: int) -> _Integers:
    """Powers of e of numbers that are not positive: of the last quarter by a polynomial, times others."""
    fraction = 15 - bits
    quarter = 1 << (fraction - 2)
    below = (x & (quarter - 1)) - quarter
    result, rest = _exp_of_quarter(_saturated(below << bits)), below - x
    for exponent, factor in _FACTORS:
        if bits > exponent:
            has = rest & (1 << (fraction + exponent)) != 0
            result = np.where(has, _product(result, _constant(factor)), result)
    if bits > _CLAMPED_BITS:
        result = np.where(x < -(1 << (20 - bits)), 0, result)
    return np.where(x == 0, _MOST, result)


def _exp_of_quarter(x: _Integers) -> _Integers:
    """Powers of e of numbers without integers from -1/4 to 0: a Taylor expansion around -1/8."""
    middle = _constant(_EXP_OF_EIGHTH)
    x1 = x + (1 << 12)
    x2 = _product(x1, x1)
    x3, x4 = _product(x2, x1), _product(x2, x2)
    further = _divided(_product(_divided(x4, 2) + x3, _constant(_THIRD)) + x2, 1)
    return _saturated(middle + _product(middle, x1 + further))


def _reciprocal(x: _Integers) -> _Integers:
    """2 / (1 + x) with 2 bits of integers, by Newton's method."""
    half = (x + _MOST + 1) >> 1
    result = _constant(_OF_48_BY_17) + _product(half, _constant(_OF_32_BY_17))
    for _ in range(3):
        missing = (1 << 13) - _product(half, result)
        result = result + _saturated(_product(result, missing) << 2)
    return result
