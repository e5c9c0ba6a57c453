"""Functions of gemmlowp's fixedpoint.h, on which TFLite's int8 kernels are built."""

from __future__ import annotations

from mcudeploy.ops.requantize import INT32_MAX

_QUARTER = 1 << 24
"""1/4 with 26 fraction bits."""
_POWERS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
"""exp(-1/4), exp(-1/2), exp(-1) ... exp(-16), with 31 fraction bits."""
_EXP_EIGHTH = 1895147668
"""exp(-1/8), with 31 fraction bits."""
_THIRD = 715827883


def exponential(x: int) -> int:
    """exp(x) with 31 fraction bits, for -2^31 < x <= 0 with 26: exp_on_negative_values."""
    if x == 0:
        return INT32_MAX
    past = (x & (_QUARTER - 1)) - _QUARTER
    result = _near_zero(past << 5)
    for bit, power in enumerate(_POWERS, 24):
        if (past - x) >> bit & 1:
            result = _product(result, power)
    return result


def _near_zero(x: int) -> int:
    """exp(x), -1/4 <= x < 0: four terms of a Taylor series around -1/8."""
    x += 1 << 28
    x2 = _product(x, x)
    x3, x4 = _product(x2, x), _product(x2, x2)
    terms = _halved(_product(_halved(x4, 2) + x3, _THIRD) + x2, 1)
    return _EXP_EIGHTH + _product(_EXP_EIGHTH, x + terms)


def _product(a: int, b: int) -> int:
    """The product a * b / 2^31, rounded half up."""
    return (a * b + (1 << 30)) >> 31


def _halved(x: int, times: int) -> int:
    """The quotient x / 2^times, rounded half away from zero."""
    return (x + (1 << (times - 1)) - (x < 0)) >> times
