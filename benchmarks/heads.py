"""Heads that learn on the device: their accuracy after a shift of the data, and their cost. Prints Markdown.

    pip install scikit-learn
    python benchmarks/heads.py accuracy [--trials 20]
    python benchmarks/heads.py drift [--trials 20]
    python benchmarks/heads.py cost MODEL.onnx --features average_pool_0 --classes 12

`accuracy`: a network of 64-64-64-10 learns 1,000 of scikit-learn's digits. The 797 others are shifted. Heads
learn from some examples a class of them, drawn in each trial, and classify the rest. Features are the second
hidden layer in int8. `drift`: heads learn from 20 examples a class before the sensor drifts, then see 100
drifted inputs without labels. `cost`: instructions of a call on an emulated board, with the run of the model.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.boards.catalogue import load_board
from mcudeploy.codegen.render import render_head_check
from mcudeploy.codegen.texts import FeatureStatistics
from mcudeploy.commands.commands import plan_model
from mcudeploy.device.transport import open_transport
from mcudeploy.extensions.heads.adapt import features_model
from mcudeploy.extensions.heads.head_kinds import HEADS, HeadSize, Ridge
from mcudeploy.extensions.heads.head_statistics import SeenInputs
from mcudeploy.extensions.heads.heads import HeadAnswer, HeadPart, call_head, head_bytes, with_head
from mcudeploy.planner.plan_options import Options
from mcudeploy.toolchain import Emulator, build_firmware
from mcudeploy.verify.samples import drawn_samples

CLASSES, TRAINED = 10, 1000
STEP = 1 / 32
"""The real value of 1 in an int8 feature: they cover 0 to 8."""
Array = NDArray[Any]


@dataclass(frozen=True)
class Network:
    """A trained dense network: weights and biases of its layers, of which the last one classifies.

    `known`: the features that it was trained on.
    """

    weights: list[Array]
    biases: list[Array]
    known: Array

    def features(self, images: Array) -> Array:
        """Return int8 features, as float64: [images, 64]."""
        values = images.reshape(len(images), -1)
        for weights, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            values = np.maximum(values @ weights + bias, 0)
        return np.clip(np.rint(values / STEP) - 128, -128, 127)

    def recalibrated(self, features: Array, unlabelled: Array) -> Array:
        """Return features whose channels have the means and scales of `known`, by those of new features."""
        spread = np.maximum(unlabelled.std(axis=0), 1)
        return (features - unlabelled.mean(axis=0)) / spread * self.known.std(axis=0) + self.known.mean(
            axis=0
        )

    def real(self, features: Array) -> Array:
        """Return the values that features stand for."""
        return (features + 128) * STEP

    def classify(self, features: Array) -> Array:
        """Return the labels that the network itself gives."""
        return (self.real(features) @ self.weights[-1] + self.biases[-1]).argmax(axis=1)


@dataclass(frozen=True)
class Lesson:
    """Examples with their labels, and queries."""

    examples: Array
    labels: Array
    queries: Array


def train() -> tuple[Network, Array, Array]:
    """Return a network, and the images and labels that it has not seen."""
    from sklearn.datasets import load_digits  # noqa: PLC0415
    from sklearn.neural_network import MLPClassifier  # noqa: PLC0415

    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    images, labels = digits.images[order] / 16, digits.target[order]
    seen = images[:TRAINED].reshape(TRAINED, -1)
    trained = MLPClassifier((64, 64), random_state=0).fit(seen, labels[:TRAINED])
    network = Network(trained.coefs_, trained.intercepts_, np.empty(0))
    network = replace(network, known=network.features(seen))
    return network, images[TRAINED:], labels[TRAINED:]


def shifts(images: Array) -> Mapping[str, Array]:
    """Return shifted images by the name of the shift."""
    from scipy.ndimage import rotate  # noqa: PLC0415

    noise = np.random.default_rng(1).normal(0, 0.35, images.shape)
    turned = {
        f"rotated by {it} degrees": rotate(images, it, (1, 2), reshape=False, order=1) for it in (30, 60)
    }
    return {
        "none": images,
        "noise of 0.35": np.clip(images + noise, 0, 1),
        **turned,
        "moved by 2 of 8 pixels": np.pad(images, ((0, 0), (0, 0), (2, 0)))[:, :, :8],
        "transposed": images.transpose(0, 2, 1),
        "inverted": 1 - images,
    }


def by_prototypes(lesson: Lesson) -> Array:
    """Return the labels of the nearest means."""
    means = np.stack([lesson.examples[lesson.labels == it].mean(axis=0) for it in range(CLASSES)])
    return ((lesson.queries[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)


def by_ridge(lesson: Lesson) -> Array:
    """Return the labels of the head's reference."""
    size = HeadSize(CLASSES, lesson.examples.shape[1], len(lesson.labels))
    return (
        Ridge(size, tuple(lesson.examples), tuple(lesson.labels.tolist()))
        .scores(lesson.queries)
        .argmax(axis=1)
    )


def by_sgd(network: Network, lesson: Lesson, rate: float, passes: int, *, own_layer: bool) -> Array:
    """Return labels after steps of softmax cross-entropy, from zero or from the network's last layer."""
    weights, bias = (network.weights[-1].copy(), network.biases[-1].copy())
    if not own_layer:
        weights, bias = np.zeros_like(weights), np.zeros_like(bias)
    examples = network.real(lesson.examples)
    for _ in range(passes):
        for values, label in zip(examples, lesson.labels, strict=True):
            scores = values @ weights + bias
            slope = np.exp(scores - scores.max())
            slope = slope / slope.sum() - np.eye(CLASSES)[label]
            weights -= rate * np.outer(values, slope)
            bias -= rate * slope
    return (network.real(lesson.queries) @ weights + bias).argmax(axis=1)


def methods(network: Network) -> Mapping[str, Callable[[Lesson], Array]]:
    """Return every way to classify, by its name."""
    return {
        "nothing done": lambda it: network.classify(it.queries),
        "statistics alone": lambda it: network.classify(network.recalibrated(it.queries, it.examples)),
        "prototypes": by_prototypes,
        "ridge": by_ridge,
        "SGD from zero": lambda it: by_sgd(network, it, 0.01, 1, own_layer=False),
        "SGD from the last layer": lambda it: by_sgd(network, it, 0.01, 1, own_layer=True),
        "the same, 20 passes": lambda it: by_sgd(network, it, 0.01, 20, own_layer=True),
    }


def lessons(features: Array, labels: Array, count: int, trials: int) -> Iterator[tuple[Lesson, Array]]:
    """Yield lessons with `count` examples a class, and the labels of their queries."""
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(labels))
        own = rng.permutation(np.concatenate([order[labels[order] == it][:count] for it in range(CLASSES)]))
        rest = np.setdiff1d(order, own)
        yield Lesson(features[own], labels[own], features[rest]), labels[rest]


def accuracy(trials: int) -> None:
    """Print a line for each shift and number of examples."""
    network, images, labels = train()
    ways = methods(network)
    print(f"| shift | examples a class | {' | '.join(ways)} |\n|---|---|{'---|' * len(ways)}")
    for name, shifted in shifts(images).items():
        features = network.features(shifted)
        for count in (1, 5, 20):
            rights = [
                [np.mean(way(lesson) == truth) for way in ways.values()]
                for lesson, truth in lessons(features, labels, count, trials)
            ]
            cells = " | ".join(f"{100 * it:.0f} %" for it in np.mean(rights, axis=0))
            print(f"| {name} | {count} | {cells} |", flush=True)


def drifts(images: Array) -> Mapping[str, Array]:
    """Return images of a sensor that has drifted, by the name of the drift."""
    fixed = np.random.default_rng(2)
    gains, offsets = fixed.uniform(0.3, 1, (8, 8)), fixed.uniform(0, 0.6, (8, 8))
    return {
        "half the contrast": images / 2,
        "half the contrast, brighter by 0.4": images / 2 + 0.4,
        "brighter by 0.4": images + 0.4,
        "own gain of each pixel, 0.3 to 1": images * gains,
        "own offset of each pixel, 0 to 0.6": images + offsets,
    }


def drift(trials: int, seen: int = 100) -> None:
    """Print a line for each drift and head: accuracy before it, after it, and with statistics."""
    network, images, labels = train()
    training = FeatureStatistics(
        tuple(network.known.mean(axis=0).tolist()), tuple(network.known.std(axis=0).tolist())
    )
    before = network.features(images)
    print("| drift | head | before it | after it | after it, with statistics |\n|---|---|---|---|---|")
    for name, drifted in drifts(images).items():
        after = network.features(drifted)
        for head, way in (("prototypes", by_prototypes), ("ridge", by_ridge)):
            rights = []
            for seed in range(trials):
                order = np.random.default_rng(seed).permutation(len(labels))
                own = np.concatenate([order[labels[order] == it][:20] for it in range(CLASSES)])
                rest = np.setdiff1d(order, own)
                observed, queries = np.split(np.random.default_rng(seed).permutation(rest), [seen])
                moved = SeenInputs(training, tuple(after[observed])).in_training(after[queries])
                kinds = (before[queries], after[queries], np.rint(moved))
                rights.append(
                    [np.mean(way(Lesson(before[own], labels[own], it)) == labels[queries]) for it in kinds]
                )
            cells = " | ".join(f"{100 * it:.0f} %" for it in np.mean(rights, axis=0))
            print(f"| {name} | {head} | {cells} |", flush=True)


def cost(path: Path, features: str, classes: int, board_name: str) -> None:
    """Print a line for each head, after 5 examples a class."""
    board, options = load_board(board_name), Options(time_limit=1)
    print("| head | RAM beside the arena | enrol | classify | the first one after examples |")
    print("|---|---|---|---|---|")
    with TemporaryDirectory() as folder:
        part = features_model(path, board, options, features, Path(folder))
        deployment = plan_model(part, board, options)
        (io,) = deployment.plan.graph.own_inputs()
        inputs = [
            it.stored[io.tensor].tobytes() for it in drawn_samples(deployment.plan.graph, 0, 5 * classes)
        ]
        for kind in HEADS:
            program = with_head(deployment, deployment.program, HeadPart(kind, classes))
            head = program.head
            assert head is not None
            files = render_head_check(program, deployment.plan, deployment.source)
            firmware = build_firmware(board, files, program.sources, emulate=True, measurer=False)
            with Emulator(board, firmware.elf) as emulator, closing(open_transport(emulator.url)) as line:

                def call(label: int | None, stored: bytes) -> HeadAnswer:
                    return call_head(line, head, label, stored, 60)  # noqa: B023

                enrols = [call(number % classes, it).ticks for number, it in enumerate(inputs)]
                first, second = call(None, inputs[0]).ticks, call(None, inputs[0]).ticks
            cells = [board.instructions(it) for it in (enrols[-1], second, first)]
            print(f"| {kind} | {head_bytes(head):,} B | {' | '.join(f'{it:,}' for it in cells)} |")


def main() -> None:
    """Parse the command line and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("accuracy", "drift"):
        commands.add_parser(name).add_argument("--trials", type=int, default=20)
    of_cost = commands.add_parser("cost")
    of_cost.add_argument("model", type=Path)
    of_cost.add_argument("--features", required=True)
    of_cost.add_argument("--classes", type=int, required=True)
    of_cost.add_argument("--board", default="mps2-an386", help="one with an emulator")
    arguments = parser.parse_args()
    if arguments.command == "accuracy":
        accuracy(arguments.trials)
    elif arguments.command == "drift":
        drift(arguments.trials)
    else:
        cost(arguments.model, arguments.features, arguments.classes, arguments.board)


if __name__ == "__main__":
    main()
