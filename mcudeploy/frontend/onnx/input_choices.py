"""Choices of the user for the inputs of a model."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from mcudeploy.frontend.onnx.shapes import Shapes


@dataclass(frozen=True, slots=True)
class InputChoices:
    """The user's choices for the inputs of a model; false if there are none.

    `shapes`: the shape of each named input. `constants`: for each input that becomes a constant, the value of
    all its elements. `states`: for each input, the output whose value it has in the next run; both names may
    have a `*`, which stands for any text. `int8_caches`: names, or patterns of names, of states with int8
    rows.
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
        left_out = {*self.constants, *self.for_inputs(list(self.shapes)).states}
        return {name: sizes for name, sizes in self.shapes.items() if name not in left_out}

    def for_inputs(self, inputs: Collection[str], outputs: Collection[str] | None = None) -> InputChoices:
        """Return these choices with a state for each of the inputs that fit a pattern with `*`.

        `outputs`: the outputs of the model; None if any is allowed. A pattern that fits no input stays.
        """
        states: dict[str, str] = {}
        for pattern, after in self.states.items():
            pairs = {name: after.replace("*", text) for name in inputs if (text := _text(pattern, name))}
            known = {name: it for name, it in pairs.items() if outputs is None or it in outputs}
            states |= known or {pattern: after}
        return replace(self, states=states)

    @property
    def digest_text(self) -> str:
        """A text that is equal for equal choices only."""
        choices = (self.shapes, self.constants, self.states)
        texts = [str(sorted(each.items())) for each in choices if each]
        return " ".join([*texts, *self.int8_caches])


def _text(pattern: str, name: str) -> str:
    """The text for which the `*` of a pattern stands in a name; "" if the name does not fit."""
    before, star, after = pattern.partition("*")
    fits = star and name.startswith(before) and name.endswith(after)
    return name[len(before) : len(name) - len(after)] if fits else ""


AS_IN_FILE = InputChoices()
