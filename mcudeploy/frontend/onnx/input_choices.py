"""Choices of the user for the inputs of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mcudeploy.frontend.onnx.shapes import Shapes


@dataclass(frozen=True, slots=True)
class InputChoices:
    """The user's choices for the inputs of a model; falsy without any.

    `shapes`: by input. `constants`: the value of every element, by input that is a constant. `states`: the
    output whose value the next run reads, by input. `int8_caches`: names of states, and patterns of them,
    whose rows are int8.
    """

    shapes: Shapes = field(default_factory=dict)
    constants: Mapping[str, float] = field(default_factory=dict)
    states: Mapping[str, str] = field(default_factory=dict)
    int8_caches: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.shapes or self.constants or self.states or self.int8_caches)

    @property
    def remaining_shapes(self) -> Shapes:
        """The shapes of inputs that are neither constants nor states."""
        left_out = {*self.constants, *self.states}
        return {name: sizes for name, sizes in self.shapes.items() if name not in left_out}

    @property
    def digest_text(self) -> str:
        """The choices as text that identifies them."""
        choices = (self.shapes, self.constants, self.states)
        texts = [str(sorted(each.items())) for each in choices if each]
        return " ".join([*texts, *self.int8_caches])


AS_IN_FILE = InputChoices()
