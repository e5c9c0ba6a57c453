"""Nodes that read and replace states, as ONNX functions for the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import FunctionProto

from mcudeploy.frontend.onnx.protos import function_of
from mcudeploy.frontend.onnx.rounding import DOMAIN

QUEUE = "Queue"
"""Operator on the newest rows and a state: the state without its oldest rows, and the newest at its end."""
LOAD = "Load"
"""Operator on a state: a copy of it."""


def queue_attributes(axis: int, rows: int) -> dict[str, Any]:
    """The attributes of a QUEUE that `rows` new rows enter along an axis."""
    return {"axis": axis, "axes": [axis], "first": [rows]}


def state_functions(opset: int) -> list[FunctionProto]:
    """The nodes as functions of ONNX operators."""
    queue = f"""
    {QUEUE} <axis, axes, first> (x, state) => (y) {{
      start = Constant <value_ints: ints = @first> ()
      along = Constant <value_ints: ints = @axes> ()
      end = Constant <value_ints = [{np.iinfo(np.int32).max}]> ()
      younger = Slice (state, start, end, along)
      y = Concat <axis: int = @axis> (younger, x)
    }}
    """
    load = f"{LOAD} (state) => (y) {{ y = Identity (state) }}"
    return [function_of(text, DOMAIN, opset) for text in (queue, load)]
