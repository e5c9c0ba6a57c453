"""The measurer without a model, with a tenth of its kernels: all of them take 20 seconds to compile.

tests/bounds/test_effects.py builds it with all kernels for mps2-an386, and once a week for mps3-an547.
"""

from __future__ import annotations

from mcudeploy.codegen.bench import kernels_for
from mcudeploy.device import image, timer
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import TWICE

PLACES = (image, timer)
"""The modules whose `kernels_for` chooses the kernels of the measurer."""


def few_kernels(isa: Isa) -> tuple[str, ...]:
    """Kernels of int8 convolutions that round once."""
    wanted = ("add_s8", "conv2d_s8", "copy", "feed", "fused_rows")
    return tuple(it for it in kernels_for(isa) if it.startswith(wanted) and not it.endswith(TWICE))
