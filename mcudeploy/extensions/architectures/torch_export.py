"""Torch modules as ONNX models. torch is not a dependency: a module is there only if torch is."""

from __future__ import annotations

import copy
import sys
from typing import Any

from mcudeploy.common.errors import ModelError, UsageError
from mcudeploy.common.text import described, plain


def without_torch(model: Any, sample: tuple[Any, ...] | None) -> Any:
    """Return the ONNX model of a torch module, and any other model as it is.

    Raises UsageError for a module without a sample, or a sample without a module, and ModelError for a module
    that torch cannot export.
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(model, torch.nn.Module):
        if sample is not None:
            raise UsageError(f"sample= is for torch modules, not for {type(model).__name__}: leave it out")
        return model
    name = type(model).__name__
    if not isinstance(sample, tuple):
        raise UsageError(f"{name} is a torch module: add sample=(torch.zeros(1, 3, 96, 96),), its inputs")
    try:
        program = torch.onnx.export(copy.deepcopy(model).eval(), sample, dynamo=True, verbose=False)
        return program.model_proto
    except Exception as fault:  # the code of the module raises anything
        cause = fault.__cause__ if isinstance(fault.__cause__, Exception) else fault  # a text of many lines
        raise ModelError(f"torch cannot export {name}: {plain(described(cause))}") from fault
