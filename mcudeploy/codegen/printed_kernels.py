"""Kernels without a file in firmware/: those of scalar functions are printed from a table, twins, which round
results twice, from the sources of the kernels that round once.

The source of a twin defines MCUD_TWICE; see firmware/arith/int8/mcud_simd.h.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from mcudeploy.codegen.templates import fill
from mcudeploy.ir.opdef import TWICE
from mcudeploy.ops.conv.conv_twice import TWINS
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


_SHARED = {
    "mcud_wide_s8": ("mcud_wide_multiply", "mcud_wide_expand_fours"),
    "mcud_pixels_s8": ("mcud_vector_pixels",),
}
"""Sources with functions that several kernels call, and these functions."""
PRINTED_TWINS: Mapping[str, str] = {
    f"{name}{TWICE}.{kind}": f"{name}.{kind}" for name in (*_SHARED, *TWINS) for kind in "ch"
}
"""The names of the sources and headers of twins, and those of the files that they are printed from."""


def print_twin(name: str, original: str) -> str:
    """Return the text of a file of PRINTED_TWINS, from that of its original."""
    stem = PRINTED_TWINS[name][:-2]
    if name.endswith(".c"):
        text = re.sub(rf'"({"|".join((stem, *_SHARED))})\.h"', rf'"\1{TWICE}.h"', original)
        return "#define MCUD_TWICE\n" + re.sub(rf"\bmcud_{stem}\(", f"mcud_{stem}{TWICE}(", text)
    if stem in _SHARED:
        return "".join(f"#define {it} {it}{TWICE}\n" for it in _SHARED[stem]) + original
    guard = f"MCUD_{stem}{TWICE}_H".upper()
    return f"""/* {stem}.h with results that are rounded twice: a channel has two factors, see mcud_simd.h. */
#ifndef {guard}
#define {guard}

#include "{stem}.h"

typedef mcud_{stem}_params mcud_{stem}{TWICE}_params;

mcud_kernel mcud_{stem}{TWICE};

#endif
"""
