"""Choices of the user for the inputs of a model."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from mcudeploy.frontend.onnx.shapes import Shapes


@dataclass(frozen=True, slots=True)
class InputChoices:
    """The user's choices for the inputs of a model; falsy without any.

    `shapes`: by input. `constants`: the value of every element, by input that is a constant. `states`: the
    output whose value the next run reads, by input; both names may have a `*`, which stands for any text.
    `int8_caches`: names of states, and patterns of them, whose rows are int8.
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
        """Return these choices with a state for each of the inputs that a `*` stands for.

        `outputs`: those that the model has; None: all. A `*` that stands for no input stays.
        """
        states: dict[str, str] = {}
        for pattern, after in self.states.items():
            pairs = {name: after.replace("*", text) for name in inputs if (text := _text(pattern, name))}
            known = {name: it for name, it in pairs.items() if outputs is None or it in outputs}
            states |= known or {pattern: after}
        return replace(self, states=states)

    @property
    def digest_text(self) -> str:
        """The choices as text that identifies them."""
        choices = (self.shapes, self.constants, self.states)
        texts = [str(sorted(each.items())) for each in choices if each]
        return " ".join([*texts, *self.int8_caches])


def _text(pattern: str, name: str) -> str:
    """The text for which the `*` of a pattern stands in a name; "" for none."""
    before, star, after = pattern.partition("*")
    fits = star and name.startswith(before) and name.endswith(after)
    return name[len(before) : len(name) - len(after)] if fits else ""


AS_IN_FILE = InputChoices()
