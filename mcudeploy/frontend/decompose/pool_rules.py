"""Rules for pools: norms of windows."""

from __future__ import annotations

from math import prod

from mcudeploy.frontend.decompose.maker import Maker
from mcudeploy.frontend.onnx.nodes import Unsupported

_DILATED_MEANS = 19
"""First opset in which AveragePool has dilations; LpPool has them earlier."""


def lp_pool(make: Maker) -> None:
    """Replace LpPool: the mean of powers in a window times their number, and the root of that."""
    shape, made = make.sizes(make.inputs[0])[2:], make.sizes(make.outputs[0])[2:]
    kernel = [int(size) for size in make.attributes["kernel_shape"]]
    ones = (1,) * len(kernel)
    strides, dilations = (make.attributes.get(name, ones) for name in ("strides", "dilations"))
    before, after = list[int](), list[int]()
    for axis, size in enumerate(kernel):
        reach = (made[axis] - 1) * strides[axis] + dilations[axis] * (size - 1) + 1
        before.append(_before(make, axis, len(kernel), max(reach - shape[axis], 0)))
        after.append(max(reach - shape[axis] - before[-1], 0))
    attributes = {"kernel_shape": kernel, "strides": strides, "pads": before + after, "count_include_pad": 1}
    if any(step != 1 for step in dilations):
        if make.opset < _DILATED_MEANS:
            raise Unsupported(
                f"dilations {list(dilations)} need opset {_DILATED_MEANS}: export the model with it"
            )
        attributes["dilations"] = dilations
    powers = _power(make, make.inputs[0])
    sums = make.add("Mul", make.add("AveragePool", powers, **attributes), make.constant(float(prod(kernel))))
    _root(make, sums)


def _before(make: Maker, axis: int, rank: int, total: int) -> int:
    """Padding before an axis, given its total padding, if the sizes determine it."""
    match make.attributes.get("auto_pad", b"NOTSET"):
        case b"SAME_UPPER":
            return total // 2
        case b"SAME_LOWER":
            return total - total // 2
        case b"VALID":
            return 0
    return int(make.attributes.get("pads", (0,) * (2 * rank))[axis])


def global_lp_pool(make: Maker) -> None:
    """Replace GlobalLpPool by LpPool over the whole image."""
    axes = range(2, len(make.sizes(make.inputs[0])))
    _root(make, make.reduce("ReduceSum", _power(make, make.inputs[0]), axes))


def _power(make: Maker, x: str) -> str:
    p = make.integer("p", 2)
    if p < 1:
        raise Unsupported(f"p {p} is not supported; 1 and greater are")
    if p == 2:
        return make.add("Mul", x, x)
    size = make.add("Abs", x)
    return size if p == 1 else make.add("Pow", size, make.constant(float(p)))


def _root(make: Maker, sums: str) -> None:
    p, out = make.integer("p", 2), make.outputs[0]
    if p == 1:
        make.add("Identity", sums, out=out)
    elif p == 2:
        make.add("Sqrt", sums, out=out)
    else:
        make.add("Pow", sums, make.constant(1 / p), out=out)
