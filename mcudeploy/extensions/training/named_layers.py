"""Files that name the layers whose weights and biases are trained."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcudeploy.common.errors import UsageError
from mcudeploy.common.files import read_regular
from mcudeploy.common.text import plain

if TYPE_CHECKING:
    from mcudeploy.ir.graph import Operator

_MOST_BYTES = 2**20
_MOST_SHOWN = 8
"""Layers that an error lists."""
_ALL = "all"


@dataclass(frozen=True, slots=True)
class SparseLayers:
    """The layers that a file names by labels of their nodes. `origin`: the path as the user wrote it.

    `weights`: layers whose weights and bias are trained; `biases`: layers whose bias is; None: all layers.
    `shares`: the share of the input channels whose weights are trained, by label; absent: all channels.
    """

    origin: str
    weights: frozenset[str] | None
    biases: frozenset[str] | None
    shares: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def read(cls, origin: str) -> SparseLayers:
        """Read a TOML file, or JSON if its name ends so. Raises UsageError that names file and key."""
        try:
            text = read_regular(Path(origin), _MOST_BYTES).decode("utf-8-sig")
            table = json.loads(text) if origin.lower().endswith(".json") else tomllib.loads(text)
        except OSError as error:
            raise UsageError(f"{plain(origin)} cannot be read: {error.strerror or plain(error)}") from None
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{plain(origin)} is neither TOML nor .json: {plain(error)}") from None
        if not isinstance(table, dict) or not table.keys() & {"weights", "biases"}:
            raise UsageError(f'{plain(origin)} has neither weights nor biases, as in weights = ["conv_3"]')
        unknown = sorted(table.keys() - {"weights", "biases"})
        if unknown:
            raise UsageError(f"{plain(origin)} has the key {plain(unknown[0])!r}: it has weights and biases")
        shares = _shares(origin, table.get("weights"))
        weights = frozenset(shares) if shares else _labels(origin, table, "weights")
        return cls(origin, weights, _labels(origin, table, "biases"), shares)

    def chosen(self, layers: Sequence[Operator], kind: str) -> frozenset[str]:
        """Return the names of the layers whose "weights" or "biases" are trained.

        Raises UsageError for a label that none of them has.
        """
        wanted = self.weights if kind == "weights" else self.biases
        labels = {label for layer in layers for label in labels_of(layer)}
        for label in sorted(wanted or ()):
            if label not in labels:
                raise UsageError(
                    f"--update sparse:{plain(self.origin)}: {kind} names {plain(label)!r}, which is not a "
                    f"layer with weights; {_proposal(label, layers)}"
                )
        return frozenset(
            layer.name for layer in layers if wanted is None or not wanted.isdisjoint(labels_of(layer))
        )

    def channels(self, layers: Sequence[Operator]) -> dict[str, int]:
        """Return the number of input channels with trained weights, for each layer where that is not all.

        Raises UsageError for a layer whose weights are in groups.
        """
        result = {}
        for layer in layers:
            share = min((self.shares[it] for it in labels_of(layer) if it in self.shares), default=1.0)
            if share == 1:
                continue
            if getattr(layer.op, "groups", 1) != 1:
                raise UsageError(
                    f"--update sparse:{plain(self.origin)}: the weights of {plain(labels_of(layer)[0])!r} "
                    "are in groups of channels: train all of them, or only its bias"
                )
            depth = layer.constants["weights"].shape[-1]
            count = max(1, round(share * depth))
            if count < depth:
                result[layer.name] = count
        return result


def labels_of(layer: Operator) -> tuple[str, ...]:
    """The nodes of a layer in the model's file; a layer without any has the operator's name."""
    return layer.onnx_nodes or (layer.name,)


def _labels(origin: str, table: Mapping[str, Any], key: str) -> frozenset[str] | None:
    """The labels of a key, None for all."""
    value = table.get(key, [])
    if value == _ALL:
        return None
    if not isinstance(value, list) or not all(isinstance(label, str) for label in value):
        or_table = ", or a table of them with shares" if key == "weights" else ""
        raise UsageError(f'{plain(origin)}: {key} is "all", or a list of names of nodes{or_table}')
    return frozenset(value)


def _shares(origin: str, value: object) -> dict[str, float]:
    """The shares of a table of weights by label; none if it is not a table."""
    if not isinstance(value, dict):
        return {}
    for label, share in value.items():
        if not isinstance(share, int | float) or isinstance(share, bool) or not 0 < share <= 1:
            raise UsageError(
                f"{plain(origin)}: weights has {plain(label)!r} = {plain(share)}: a share of the input "
                "channels is above 0, and at most 1"
            )
    return {label: float(share) for label, share in value.items()}


def _proposal(label: str, layers: Sequence[Operator]) -> str:
    """Labels that the user may have meant."""
    near = difflib.get_close_matches(label, [it for layer in layers for it in labels_of(layer)], n=3)
    if near:
        return f"did you mean {' or '.join(repr(plain(it)) for it in near)}?"
    shown = [repr(plain(labels_of(layer)[0])) for layer in layers[:_MOST_SHOWN]]
    return f"layers are {', '.join(shown)}{' and others' if len(layers) > len(shown) else ''}"
