"""Trains a network that tells six gestures apart by an accelerometer, on made-up movements.

    python train.py

Writes `gesture.onnx`, its samples for `quantize` and `evaluate` (`train.npz`, `test.npz`), the names of the
classes (`classes.txt`), and a minute of gestures in rows of 4 samples (`stream.npy`, `stream.txt`).
For your own gestures replace `recording()` by recordings of your board; all else stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

CLASSES = ("rest", "shake", "circle", "tap", "tilt", "swing")
RATE = 50
"""Samples a second."""
WINDOW, HOP = 100, 4
"""Samples that the network sees, and those of them that are new in a run."""
KERNELS = ((8, 3, 5), (16, 8, 5), (24, 16, 5))
"""Of each convolution: output channels, input channels, taps. The first two have a stride of 2."""
STRIDES = (2, 2, 1)

Array = np.ndarray


def unit(rng: np.random.Generator) -> Array:
    """A random direction."""
    it = rng.normal(size=3)
    return it / np.linalg.norm(it)


def rotated(vector: Array, axis: Array, angles: Array) -> Array:
    """Return the vector rotated about an axis by each of the angles (Rodrigues), [len(angles), 3]."""
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    return vector * cos + np.cross(axis, vector) * sin + axis * (axis @ vector) * (1 - cos)


def gesture(label: str, gravity: Array, rng: np.random.Generator) -> Array:
    """Return one gesture of a board that feels this gravity before it, in g: [samples, 3]."""
    seconds = rng.uniform(1.2, 1.8)
    time = np.arange(int(seconds * RATE)) / RATE
    level = np.cross(gravity, unit(rng))
    level /= np.linalg.norm(level)
    fade = np.minimum(1, np.minimum(time, time[::-1]) / 0.15)[:, None]
    if label == "shake":  # to and fro along one direction, fast
        phase = 2 * np.pi * rng.uniform(4, 6.5) * time
        return gravity + fade * rng.uniform(0.9, 2.2) * np.sin(phase)[:, None] * unit(rng)
    if label == "circle":  # the acceleration turns in a plane
        phase = rng.choice((-1, 1)) * 2 * np.pi * rng.uniform(1.4, 2.2) * time
        return gravity + fade * rng.uniform(0.5, 1.1) * rotated(level, np.cross(level, unit(rng)), phase)
    if label == "tap":  # two short knocks
        knocks = np.zeros(len(time))
        for at in 0.4 + np.array((0, rng.uniform(0.16, 0.4))):
            since = time - at
            knocks += (since >= 0) * np.exp(-np.maximum(since, 0) / 0.02) * rng.uniform(0.8, 2.5)
        return gravity + knocks[:, None] * (gravity + rng.normal(0, 0.2, 3)) * rng.choice((-1, 1))
    if label == "tilt":  # turned by a quarter, and held
        turn = rng.choice((-1, 1)) * rng.uniform(1.0, 1.8) / (1 + np.exp(-(time - 0.6) * rng.uniform(7, 14)))
        return rotated(gravity, level, turn)
    if label == "swing":  # a pendulum: gravity tilts to and fro, and the pull is greatest in the middle
        phase = 2 * np.pi * rng.uniform(0.8, 1.2) * time
        reach = rng.uniform(0.5, 1.0)
        pull = 1 + 0.6 * reach**2 * (np.cos(phase) ** 2)[:, None]
        return (1 - fade) * gravity + fade * pull * rotated(gravity, level, reach * np.sin(phase))
    return np.tile(gravity, (len(time), 1))


def recording(labels: list[str], rng: np.random.Generator) -> tuple[Array, list[tuple[int, int, int]]]:
    """Return what one person does, [samples, 3] in g, and class, start and end of each gesture."""
    gravity = unit(rng)
    parts: list[Array] = []
    marks = []
    at = 0
    for label in labels:
        pause = np.tile(gravity, (int(rng.uniform(1.5, 3) * RATE), 1))
        moved = gesture(label, gravity, rng)
        marks.append((CLASSES.index(label), at + len(pause), at + len(pause) + len(moved)))
        parts += [pause, moved]
        at = marks[-1][2]
        gravity = moved[-1] / np.linalg.norm(moved[-1])
    parts.append(np.tile(gravity, (WINDOW, 1)))
    moved = np.concatenate(parts)
    drift = np.cumsum(rng.normal(0, rng.uniform(0, 0.006), moved.shape), axis=0)
    drift -= np.linspace(0, 1, len(moved))[:, None] * drift[-1]
    noise = rng.normal(0, rng.uniform(0.005, 0.04), moved.shape)
    return np.clip(moved + drift + noise + rng.normal(0, 0.02, 3), -4, 4).astype(np.float32), marks


def windows(recordings: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return windows of many recordings, [N, 3, WINDOW], and their classes.

    A window belongs to a gesture if it has 80 % of it, and is rest if it has less than half of each.
    Others are left out. So a gesture that has just begun, or is about to leave, is not taken for another.
    """
    samples, labels = [], []
    for _ in range(recordings):
        moved, marks = recording(list(rng.permutation(CLASSES[1:])), rng)
        for start in range(int(rng.integers(0, 12)), len(moved) - WINDOW, 12):
            shares = [
                max(0, min(start + WINDOW, end) - max(start, begin)) / (end - begin)
                for _, begin, end in marks
            ]
            most = int(np.argmax(shares))
            if 0.5 <= shares[most] < 0.8:
                continue
            samples.append(moved[start : start + WINDOW].T)
            labels.append(marks[most][0] if shares[most] >= 0.8 else 0)
    return np.stack(samples), np.array(labels)


@dataclass
class Network:
    """Three convolutions in time, a mean over time, and a dense layer: float32, trained by Adam."""

    parameters: list[Array]

    @staticmethod
    def drawn(rng: np.random.Generator) -> Network:
        """Random weights (He), and biases of zero."""
        parameters = []
        for shape in (*KERNELS, (len(CLASSES), KERNELS[-1][0])):
            scale = (2 / np.prod(shape[1:])) ** 0.5
            parameters += [rng.normal(0, scale, shape).astype(np.float32), np.zeros(shape[0], np.float32)]
        return Network(parameters)

    def gradients(self, samples: Array, labels: Array) -> tuple[list[Array], float]:
        """Return the gradients of the mean cross-entropy, by parameter, and the accuracy."""
        x = samples
        kept = []
        for at, stride in enumerate(STRIDES):
            w, b = self.parameters[2 * at : 2 * at + 2]
            view = np.lib.stride_tricks.sliding_window_view(x, w.shape[2], axis=2)[:, :, ::stride]
            columns = view.transpose(0, 2, 1, 3).reshape(len(x), view.shape[2], -1)
            y = np.maximum(columns @ w.reshape(len(w), -1).T + b, 0)
            kept.append((x.shape, columns, y))
            x = y.transpose(0, 2, 1)
        w, b = self.parameters[-2:]
        mean = x.mean(axis=2)
        scores = mean @ w.T + b
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        odds /= odds.sum(axis=1, keepdims=True)
        accuracy = float((odds.argmax(axis=1) == labels).mean())
        odds[np.arange(len(labels)), labels] -= 1
        odds /= len(labels)
        result = [odds.T @ mean, odds.sum(axis=0)]
        back = np.repeat((odds @ w)[:, None] / x.shape[2], x.shape[2], axis=1)
        for at in reversed(range(len(STRIDES))):
            w = self.parameters[2 * at]
            shape, columns, y = kept[at]
            back = back * (y > 0)
            flat = back.reshape(-1, len(w))
            result = [(flat.T @ columns.reshape(len(flat), -1)).reshape(w.shape), flat.sum(axis=0), *result]
            if at:
                taps = (back @ w.reshape(len(w), -1)).reshape(*back.shape[:2], *w.shape[1:])
                before = np.zeros(shape, np.float32)
                for tap in range(w.shape[2]):
                    before[:, :, tap : tap + STRIDES[at] * back.shape[1] : STRIDES[at]] += taps[
                        ..., tap
                    ].transpose(0, 2, 1)
                back = before.transpose(0, 2, 1)
        return result, accuracy

    def train(self, samples: Array, labels: Array, epochs: int, rng: np.random.Generator) -> None:
        """Adam, with a learning rate that falls to zero."""
        first = [np.zeros_like(it) for it in self.parameters]
        second = [np.zeros_like(it) for it in self.parameters]
        batch = 64
        steps = epochs * (len(samples) // batch)
        step = 0
        for epoch in range(epochs):
            order = rng.permutation(len(samples))
            right = []
            for start in range(0, len(order) - batch + 1, batch):
                taken = order[start : start + batch]
                gradients, accuracy = self.gradients(samples[taken], labels[taken])
                right.append(accuracy)
                step += 1
                rate = 0.004 * (1 - step / steps)
                for at, gradient in enumerate(gradients):
                    first[at] += 0.1 * (gradient - first[at])
                    second[at] += 0.001 * (gradient**2 - second[at])
                    scale = (1 - 0.999**step) ** 0.5 / (1 - 0.9**step)
                    self.parameters[at] -= rate * scale * first[at] / (np.sqrt(second[at]) + 1e-8)
            print(f"epoch {epoch + 1}: accuracy {np.mean(right):.1%}")

    def save(self, path: Path, mean: float, spread: float) -> None:
        """Write the network as ONNX. It reads g: the normalisation becomes part of the first weights."""
        model = onnx.parser.parse_model(f"""
<ir_version: 8, opset_import: ["": 17]>
gesture (float[1,3,{WINDOW}] acceleration) => (float[1,{len(CLASSES)}] classes) {{
    a = Conv<strides=[{STRIDES[0]}]>(acceleration, w0, b0)
    b = Relu(a)
    c = Conv<strides=[{STRIDES[1]}]>(b, w1, b1)
    d = Relu(c)
    e = Conv<strides=[{STRIDES[2]}]>(d, w2, b2)
    f = Relu(e)
    g = GlobalAveragePool(f)
    h = Flatten(g)
    i = Gemm<transB=1>(h, w3, b3)
    classes = Softmax(i)
}}""")
        parameters = list(self.parameters)
        parameters[0] = parameters[0] / spread
        parameters[1] = parameters[1] - mean * parameters[0].sum(axis=(1, 2))
        for at, values in enumerate(parameters):
            name = "wb"[at % 2] + str(at // 2)
            model.graph.initializer.append(onnx.numpy_helper.from_array(values.astype(np.float32), name))
        onnx.save(model, path)


def main() -> None:
    """Make the movements, train, and write all files."""
    rng = np.random.default_rng(0)
    samples, labels = windows(300, rng)
    mean, spread = float(samples.mean()), float(samples.std())
    network = Network.drawn(rng)
    network.train((samples - mean) / spread, labels, 12, rng)
    network.save(Path("gesture.onnx"), mean, spread)
    np.savez("train.npz", acceleration=samples[:400], y=labels[:400])
    samples, labels = windows(40, np.random.default_rng(1))
    np.savez("test.npz", acceleration=samples, y=labels)
    _, accuracy = network.gradients((samples - mean) / spread, labels)
    print(f"{len(labels)} windows of other people: accuracy {accuracy:.1%}")
    rng = np.random.default_rng(2)
    moved, marks = recording(list(rng.permutation(CLASSES[1:] * 3)), rng)
    runs = len(moved) // HOP
    np.save("stream.npy", moved[: runs * HOP].reshape(runs, 1, HOP, 3).transpose(0, 1, 3, 2))
    Path("stream.txt").write_text(
        "".join(f"{end / RATE:.1f} s {CLASSES[it]}\n" for it, _, end in marks), "utf-8"
    )
    Path("classes.txt").write_text("\n".join(CLASSES) + "\n", "utf-8")


if __name__ == "__main__":
    main()
