"""One input and the program's outputs, as C: a check for the user's own compiler and chip."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.codegen.ctext import c_elements, c_float
from mcudeploy.codegen.header import IoText


@dataclass(frozen=True, slots=True, eq=False)
class SelfTest:
    """Stored inputs and outputs by tensor name, and the tolerance of floats as a share of their range."""

    inputs: Mapping[str, NDArray[Any]]
    outputs: Mapping[str, NDArray[Any]]
    share: float

    @property
    def is_possible(self) -> bool:
        """Whether all outputs can be compared: a NaN cannot."""
        return not any(np.isnan(value).any() for value in self.outputs.values())

    def texts(self, inputs: list[IoText], outputs: list[IoText]) -> dict[str, Any]:
        """Return the templates' variables: the elements of each input and output, and output tolerances."""
        input_texts = [(io, c_elements(self.inputs[io.tensor])) for io in inputs]
        expected = [
            (io, c_elements(value), self._margin(value))
            for io in outputs
            for value in (self.outputs[io.tensor],)
        ]
        lines = [line for _, part in input_texts for line in part] + [
            line for _, part, _ in expected for line in part
        ]
        return {
            "inputs": input_texts,
            "outputs": expected,
            "share": f"{self.share:g}",
            "has_floats": any(margin for *_, margin in expected),
            "uses_infinity": any("INFINITY" in line for line in lines),
        }

    def _margin(self, value: NDArray[Any]) -> str:
        """Return the tolerance of floats; "" for integers, which must be equal."""
        if value.dtype.kind != "f":
            return ""
        finite = value[np.isfinite(value)]
        reach = max(finite.max(initial=0), -finite.min(initial=0), np.ptp(finite) if finite.size else 0)
        return c_float(self.share * float(reach))
