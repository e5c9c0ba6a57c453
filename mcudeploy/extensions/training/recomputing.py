"""Tensors as the backward part reads them: kept from the forward part, or recomputed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from mcudeploy.extensions.training.forward import Forward
from mcudeploy.extensions.training.recipe import Trained
from mcudeploy.ir.graph import Graph, Operator

_MOST_CHOICES = 3


def keep_choices(graph: Graph, trained: Trained) -> tuple[frozenset[str], ...]:
    """Return at most 3 sets of tensors to keep, the largest set first.

    Each set has the tensors smaller than the input of some trained layer, and all tensors of one row.
    """
    inputs = {io.tensor for io in graph.inputs}
    layers = (operator for operator in graph.operators if operator.name in trained.weights)
    read = (graph.tensors[layer.inputs[0]] for layer in layers)
    sizes = sorted({it.size_bytes for it in read if it.name not in inputs and it.shape[0] > 1}, reverse=True)
    count = min(len(sizes), _MOST_CHOICES)
    chosen = {sizes[round(at * (len(sizes) - 1) / max(1, count - 1))] for at in range(count)}
    return tuple(
        frozenset(it.name for it in graph.tensors.values() if it.shape[0] == 1 or it.size_bytes < size)
        for size in sorted(chosen, reverse=True)
    )


@dataclass(slots=True)
class KeptTensors:
    """Tensors of the forward part. The backward part recomputes all others from these and the inputs.

    `keep`: the names of the kept tensors; None: all. `recomputed`: the image of each recomputed tensor.
    """

    forward: Forward
    operators: Sequence[Operator]
    keep: Collection[str] | None
    recomputed: dict[str, str] = field(default_factory=dict)

    def image(self, tensor: str) -> str:
        """Return the image of a tensor; add the operators that recompute it, unless it is kept."""
        producers = {operator.output: operator for operator in self.operators}
        needed, pending = set[str](), [tensor]
        while pending:
            name = pending.pop()
            if name in producers and not self._has_image(name) and name not in needed:
                needed.add(name)
                pending += producers[name].inputs
        images = self.forward.images
        self.forward.images = images | self.recomputed
        self.forward.compute([operator for operator in self.operators if operator.output in needed])
        self.recomputed |= {name: self.forward.images[name] for name in needed}
        self.forward.images = images
        return self.recomputed.get(tensor, images[tensor])

    def _has_image(self, tensor: str) -> bool:
        return self.keep is None or tensor in self.keep or tensor in self.recomputed
