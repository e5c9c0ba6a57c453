"""Wake words with manifests, and components of ESPHome that are built of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner, Result
from flat_files import NONE, FlatFile

from mcudeploy.cli.main import cli

ROWS = 3
HOSTILE = 'say "hi" \\ */ ${x} {{ y }} %s é'
MANIFEST: dict[str, Any] = {
    "type": "micro",
    "wake_word": HOSTILE,
    "author": "A. Person",
    "model": "hey.tflite",
    "version": 2,
    "micro": {
        "probability_cutoff": 0.6,
        "sliding_window_size": 4,
        "feature_step_size": 10,
        "tensor_arena_size": 22348,
        "minimum_esphome_version": "2024.7.0",
    },
}


def wake_word(
    folder: Path, seed: int = 1, shape: tuple[int, ...] = (1, ROWS, 40), name: str = "hey", **kinds: Any
) -> Path:
    """A stateful model of two windows of rows, whose probability changes often."""
    f = FlatFile()
    f.random = np.random.default_rng(seed)
    x = f.int8(*shape, scale=0.1, zero=-128) if kinds.get("x") is None else f.add(*shape, kind=kinds["x"])
    size = int(np.prod(shape))
    if kinds.get("x") is None:
        handle = f.variable("rows")
        before = f.operator("READ_VARIABLE", [handle], f.int8(*shape, scale=0.1, zero=-128))
        whole = f.int8(1, 2 * shape[1], *shape[2:], scale=0.1, zero=-128)
        f.operator("CONCATENATION", [before, x], whole, Axis=1, FusedActivationFunction=NONE)
        f.operator("ASSIGN_VARIABLE", [handle, x], [])
        flat = f.operator(
            "RESHAPE", [whole, f.constant([1, 2 * size])], f.int8(1, 2 * size, scale=0.1, zero=-128)
        )
        y = f.int8(1, kinds.get("outputs", 1), scale=1 / 256, zero=-128)
        weights = f.weights(kinds.get("outputs", 1), 2 * size, axis=None, scale=0.0008)
        bias = f.bias(flat, weights, kinds.get("outputs", 1))
        f.operator("FULLY_CONNECTED", [flat, weights, bias], y, FusedActivationFunction=NONE)
    else:
        y = f.operator("RESHAPE", [x, f.constant([1, size])], f.add(1, size, kind=kinds["x"]))
    path = folder / f"{name}.tflite"
    path.write_bytes(f.content([x], [y]))
    return path


def manifest(folder: Path, stem: str = "hey", **changes: Any) -> Path:
    """The manifest; a change of None leaves the key out, and one of a key of `micro` is made there."""
    content = json.loads(json.dumps(MANIFEST))
    for key, value in changes.items():
        part = content["micro"] if key in content["micro"] else content
        part[key] = value
        if value is None:
            del part[key]
    path = folder / f"{stem}.json"
    path.write_text(json.dumps(content), "utf-8")
    return path


def build(*words: object) -> Result:
    return CliRunner().invoke(cli, ["build", "--board", "host", *map(str, words), "--for", "esphome"])
