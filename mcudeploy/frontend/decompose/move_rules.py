"""Rules for operators that move elements by constants."""

from __future__ import annotations

import numpy as np

from mcudeploy.frontend.decompose.maker import Maker


def center_crop_pad(make: Maker) -> None:
    """Replace by one Pad, whose negative amounts crop."""
    x, wanted = make.inputs
    shape, sizes = make.shape(x), make.known(wanted)
    if shape is None or sizes is None:
        return
    rank = len(shape)
    axes = make.attributes.get("axes") or range(rank)
    amounts = [0] * (2 * rank)
    for axis, size in zip(axes, sizes.reshape(-1).tolist(), strict=True):
        more = size - shape[axis]
        before = more // 2 if more > 0 else -(-more // 2)
        amounts[axis % rank], amounts[axis % rank + rank] = before, more - before
    make.add("Pad", x, make.int64(amounts), out=make.outputs[0])


def trilu(make: Maker) -> None:
    """Select by a constant mask, not by a product with zeros, which would keep infinities."""
    x, *given = make.inputs
    shape = make.shape(x)
    diagonal = make.known(given[0]) if given and given[0] else np.zeros((), np.int64)
    if shape is None or len(shape) < 2 or diagonal is None:
        return
    zero = make.constant(0, make.dtype(x) or np.float32)
    whole = np.ones(shape[-2:], np.bool_)
    cut = np.triu if make.attributes.get("upper", 1) else np.tril
    mask = cut(whole, int(diagonal.reshape(-1)[0]))
    make.add("Where", make.constant(mask, np.bool_), x, zero, out=make.outputs[0])
