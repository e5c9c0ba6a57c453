"""The choices of a training step: loss, learning rate, and the parameters that are trained."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import TYPE_CHECKING, Literal, get_args

from mcudeploy.common.errors import UsageError
from mcudeploy.common.text import count_text

if TYPE_CHECKING:
    from mcudeploy.extensions.training.named_layers import SparseLayers
    from mcudeploy.ir.graph import Operator

Loss = Literal["cross-entropy", "mse"]
"""cross-entropy: of a softmax over the classes, against a probability for each; mse: the mean of the squared
errors.
"""
LOSSES: tuple[Loss, ...] = get_args(Loss)

MOST_SAMPLES = 2**20
"""The largest batch. float32 counts samples up to it exactly."""

LARGEST_FACTOR = 1e6
"""Limit of the rate and of the weight decay."""
MOST_STEPS = 100_000
"""Limit of the training steps of a run."""

FACTORS = ("lora_a", "lora_b")
"""Suffixes of the names of low-rank factors A and B."""
_SPARSE = "sparse:"
_COUNTED = re.compile(r"(last|lora):([1-9][0-9]{0,3})")


@dataclass(frozen=True, slots=True)
class Trained:
    """Names of the operators whose weights are trained, and of the operators whose bias is.

    `channels`: by operator, the number of leading input channels whose weights are trained; absent: all.
    """

    weights: frozenset[str] = frozenset()
    biases: frozenset[str] = frozenset()
    channels: Mapping[str, int] = field(default_factory=dict)

    @property
    def operators(self) -> frozenset[str]:
        """Names of all operators with something trained."""
        return self.weights | self.biases


@dataclass(frozen=True, slots=True)
class Update:
    """The choice of trained parameters. A layer is an operator with weights.

    `kind`: "full" trains all parameters, "last" those of the last `count` layers, "bias" all biases and the
    weights of the last layer, "sparse" what a file names, and "lora" the factors of rank `count` that
    `lora.adapted` adds.
    """

    kind: Literal["full", "last", "bias", "sparse", "lora"]
    count: int = 0
    sparse: SparseLayers | None = None

    @classmethod
    def parse(cls, text: str) -> Update:
        """Read full, last:K, bias, lora:R or sparse:FILE, and the file. Raises UsageError for other texts."""
        counted = _COUNTED.fullmatch(text)
        if counted is not None:
            return cls("last" if counted[1] == "last" else "lora", int(counted[2]))
        if text == "full":
            return cls("full")
        if text == "bias":
            return cls("bias")
        if text == _SPARSE:
            raise UsageError("--update sparse: lacks the file: take sparse:FILE, as in sparse:layers.toml")
        if text.startswith(_SPARSE):
            from mcudeploy.extensions.training.named_layers import SparseLayers

            return cls("sparse", sparse=SparseLayers.read(text.removeprefix(_SPARSE)))
        raise UsageError(
            f"--update {text!r} is none of full, bias, last:K, as in last:1, lora:R, as in lora:4, and "
            "sparse:FILE"
        )

    def __str__(self) -> str:
        if self.sparse is not None:
            return f"{_SPARSE}{self.sparse.origin}"
        return f"{self.kind}:{self.count}" if self.count else self.kind

    def trained(self, layers: Sequence[Operator]) -> Trained:
        """Return the trained operators among `layers`, which are in the order of the graph.

        Raises UsageError if there are fewer than `count`, or if the file names others.
        """
        if self.sparse is not None:
            whole = self.sparse.chosen(layers, "weights")
            biases = whole | self.sparse.chosen(layers, "biases")
            return Trained(whole, biases, self.sparse.channels(layers))
        operators = [layer.name for layer in layers]
        if self.kind == "full":
            return Trained(frozenset(operators), frozenset(operators))
        if self.kind == "lora":
            factors = frozenset(name for name in operators if name.endswith(FACTORS))
            return Trained(factors, factors)
        if self.kind == "bias":
            return Trained(frozenset(operators[-1:]), frozenset(operators))
        if self.count > len(operators):
            number = count_text(len(operators), "layer")
            raise UsageError(f"--update last:{self.count}: the model has {number} with weights")
        return Trained(frozenset(operators[-self.count :]), frozenset(operators[-self.count :]))


@dataclass(frozen=True, slots=True)
class Recipe:
    """A training step: after each batch of samples, w becomes w - rate * (direction + weight_decay * w).

    The direction is the mean gradient of the batch. With momentum it is momentum * last direction + gradient,
    without the decay, as in SGDW (Loshchilov and Hutter, ICLR 2019). The device may change `rate`.
    `clip_norm`: the largest norm of all mean gradients together; a larger one is scaled down to it.
    """

    loss: Loss = "cross-entropy"
    update: Update = field(default_factory=lambda: Update("last", 1))
    rate: float = 0.01
    weight_decay: float = 0.0
    momentum: float = 0.0
    batch: int = 1
    clip_norm: float | None = None

    def __post_init__(self) -> None:
        if not isfinite(self.rate) or self.rate <= 0:
            raise UsageError(f"--rate {self.rate:g}: a learning rate must be above 0")
        if not isfinite(self.weight_decay) or not 0 <= self.rate * self.weight_decay < 1:
            raise UsageError(f"--weight-decay {self.weight_decay:g}: times the rate it must be in [0, 1)")
        if not 0 <= self.momentum < 1:
            raise UsageError(f"--momentum {self.momentum:g}: it must be in [0, 1)")
        if not 1 <= self.batch <= MOST_SAMPLES:
            raise UsageError(f"--batch {self.batch}: it must be from 1 to {MOST_SAMPLES:,}")
        if self.clip_norm is not None and not 0 < self.clip_norm < inf:
            raise UsageError(f"--clip-norm {self.clip_norm:g}: a norm must be above 0")
        if self.clip_norm is not None and self.momentum:
            raise UsageError(
                "--clip-norm is not for --momentum, which sums in place, so that no gradient exists whole: "
                "leave one of them out"
            )

    @property
    def keeps_sums(self) -> bool:
        """Whether sums of gradients stay between training steps."""
        return self.momentum > 0 or self.batch > 1 or self.clip_norm is not None
