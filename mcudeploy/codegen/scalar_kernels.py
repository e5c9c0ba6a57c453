"""The kernels of scalar functions: printed from a table, they have no files in firmware/."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mcudeploy.codegen.templates import fill
from mcudeploy.ops.scalar.functions import BINARY, UNARY, BinaryFunction, UnaryFunction

FOLDER = "kernels/elementwise"
"""The folder of firmware/ with what they include."""
_MATH = re.compile(r"\b[a-z0-9]+f\(")

_FUNCTIONS: tuple[UnaryFunction | BinaryFunction, ...] = (*UNARY.values(), *BINARY.values())
PRINTED: Mapping[str, UnaryFunction | BinaryFunction] = {
    f"{function.name}_f32.{kind}": function for function in _FUNCTIONS for kind in "ch" if function.code
}
"""The functions by the names of their kernels' sources and headers."""


def print_kernel(name: str) -> str:
    """Return the text of a file of PRINTED."""
    function, kind = PRINTED[name], name[-1]
    math = _MATH.search(function.code) is not None
    if isinstance(function, BinaryFunction):
        return fill(f"kernels/binary.{kind}.j2", f=function, math=math)
    body = function.code if "return" in function.code else f"return {function.code};"
    return fill(
        f"kernels/unary.{kind}.j2",
        f=function,
        math=math,
        exponential="mcud_" in body,
        unused=[name for name in ("alpha", "beta") if not re.search(rf"\b{name}\b", body)],
        lines=body.splitlines(),
    )
