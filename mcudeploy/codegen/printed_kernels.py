"""Kernels without a file in firmware/. Those of scalar functions are printed from a table.

A twin rounds results twice, or has weights of four bits. It is printed from the source of an int8 kernel that
rounds once. If it rounds twice, it defines MCUD_TWICE; see firmware/arith/int8/mcud_simd.h. If it has weights
of four bits, it calls the functions of mcud_s4w.h.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from mcudeploy.codegen.templates import fill
from mcudeploy.ir.opdef import S4W, TWICE
from mcudeploy.ops.conv.conv_s4w import S4W_TWINS
from mcudeploy.ops.conv.conv_twice import TWINS
from mcudeploy.ops.scalar.functions import BINARY, UNARY, BinaryFunction, UnaryFunction

FOLDER = "kernels/elementwise"
"""The folder of firmware/ to which they belong, with the headers that they include."""
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


_OF_FOUR_BITS = {
    r'"mcud_dot(_row)?_s8\.h"': '"mcud_s4w.h"',
    r"\bmcud_(multiply|pixel)_s8\(": r"mcud_\1_s4w(",
    re.escape("(params->group_outputs + 1) / 2 * (2 + 2 * MCUD_FACTORS + 2 * params->patch_groups)"): (
        "mcud_words_s4w(params->group_outputs, params->patch_groups)"
    ),
    re.escape("left > 4 || left == 3"): "0",
}
"""Replacements in a source for weights of four bits: functions, the words of a group, blocks of three pixels.

The source itself has no switch for them, so compilers make the same code of the int8 kernels as before.
"""
_SHARED = {
    "mcud_wide_s8": ("mcud_wide_multiply", "mcud_wide_expand_fours"),
    "mcud_pixels_s8": ("mcud_vector_pixels",),
    "mcud_s4w": ("mcud_multiply_s4w", "mcud_pixel_s4w"),
}
"""Sources with functions that several kernels call, and these functions."""
_ORIGINALS = (
    {f"{name}{TWICE}": name for name in _SHARED}
    | {f"{name}{TWICE}": name.removesuffix(S4W) for name in TWINS}
    | {name: name.removesuffix(S4W) for name in S4W_TWINS}
)
PRINTED_TWINS: Mapping[str, str] = {
    f"{twin}.{kind}": f"{name}.{kind}" for twin, name in _ORIGINALS.items() for kind in "ch"
}
"""The names of the sources and headers of twins, and those of the files that they are printed from."""


def print_twin(name: str, original: str) -> str:
    """Return the text of a file of PRINTED_TWINS, from that of its original."""
    stem = PRINTED_TWINS[name][:-2]
    suffix = name[:-2].removeprefix(stem)
    twice = TWICE if suffix.endswith(TWICE) else ""
    if name.endswith(".c"):
        text = original.replace(f'"{stem}.h"', f'"{stem}{suffix}.h"')
        if suffix.startswith(S4W):
            for pattern, replacement in _OF_FOUR_BITS.items():
                text = re.sub(pattern, replacement, text)
        text = re.sub(rf'"({"|".join(_SHARED)})\.h"', rf'"\1{twice}.h"', text)
        text = re.sub(rf"\bmcud_{stem}\(", f"mcud_{stem}{suffix}(", text)
        return f"#define MCUD_TWICE\n{text}" if twice else text
    if stem in _SHARED:
        return "".join(f"#define {it} {it}{twice}\n" for it in _SHARED[stem]) + original
    guard = f"MCUD_{stem}{suffix}_H".upper()
    of_bits = "weights of four bits, see mcud_s4w.h" if suffix.startswith(S4W) else ""
    of_results = "results that are rounded twice: a channel has two factors, see mcud_simd.h" if twice else ""
    return f"""/* {stem}.h with {", and ".join(filter(None, (of_bits, of_results)))}. */
#ifndef {guard}
#define {guard}

#include "{stem}.h"

typedef mcud_{stem}_params mcud_{stem}{suffix}_params;

mcud_kernel mcud_{stem}{suffix};

#endif
"""
