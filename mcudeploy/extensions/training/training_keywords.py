"""The keyword arguments of `mcudeploy.train` and `build_training`: those of a search, and of `Recipe`."""

from __future__ import annotations

import functools
from collections.abc import Collection
from dataclasses import fields
from typing import Annotated, Any, TypedDict, get_type_hints

from pydantic import Field

from mcudeploy.commands.keywords import Choices, checked, options_of, with_keywords
from mcudeploy.common.errors import UsageError
from mcudeploy.extensions.training.recipe import LARGEST_FACTOR, MOST_SAMPLES, Loss, Recipe, Update
from mcudeploy.planner.plan_options import Options


class RecipeChoices(TypedDict, total=False):
    """The choices of a training step, as `Recipe` describes them; `update` as text."""

    loss: Loss
    update: str
    rate: Annotated[float, Field(gt=0, le=LARGEST_FACTOR)]
    weight_decay: Annotated[float, Field(ge=0, le=LARGEST_FACTOR)]
    momentum: Annotated[float, Field(ge=0, lt=1)]
    batch: Annotated[int, Field(ge=1, le=MOST_SAMPLES)]
    clip_norm: Annotated[float, Field(gt=0)] | None


class TrainingChoices(RecipeChoices, Choices, total=False):
    """The choices of a training step, and of the search for its plan."""


def training_of(choices: TrainingChoices, own: Collection[str]) -> tuple[Recipe, Options]:
    """The training step, and the options of a search for its plan. Raises as `options_of`."""
    recipe = {name: choices[name] for name in RecipeChoices.__annotations__ if name in choices}  # type: ignore[literal-required]
    kinds = get_type_hints(RecipeChoices, include_extras=True)
    values = {name: checked(name, value, kinds[name]) for name, value in recipe.items()}
    if "update" in values:
        values["update"] = _update(values["update"])
    rest: Any = {name: value for name, value in choices.items() if name not in recipe}
    return Recipe(**values), options_of(rest, (*own, *RecipeChoices.__annotations__))


def _update(text: str) -> Update:
    try:
        return Update.parse(text)
    except UsageError as error:
        raise UsageError(f"update={text!r}: {str(error).removeprefix(f'--update {text!r} ')}") from None


with_training_keywords = functools.partial(
    with_keywords,
    kind=TrainingChoices,
    known={it.name: getattr(Recipe(), it.name) for it in fields(Recipe)} | {"update": str(Recipe().update)},
)
"""`with_keywords` of functions that take `TrainingChoices`."""
