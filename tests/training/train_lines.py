"""Command lines of `train`, and the model that they train."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from click.testing import CliRunner, Result
from float64_steps import Array

from mcudeploy.cli.main import cli
from tests.networks.trained import Network

CLASSES = 4
RUN = "train run net.onnx --board host --no-split --rate 0.2"


def network(tail: str = "Softmax") -> Network:
    """A convolution, a depthwise one, a mean, a dense layer and `tail`."""
    net = Network(3, (2, 8, 8))
    net.conv(6, 3, stride=2)
    net.activation("Relu")
    net.conv(6, 3, group=6)
    net.activation("Clip6")
    net.node("GlobalAveragePool", [net.value])
    net.size = (6, 1, 1)
    net.dense(CLASSES)
    net.activation(tail)
    return net


def invoked(line: str) -> Result:
    return CliRunner().invoke(cli, line.split())


def report(line: str) -> dict[str, Any]:
    result = invoked(f"{line} --json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)  # type: ignore[no-any-return]


def refused(line: str, *messages: str, code: int = 2) -> None:
    result = invoked(line)
    assert result.exit_code == code, result.output
    text = " ".join(result.output.replace("│", " ").split())
    for message in messages:
        assert message in text, text


def outputs_of(model: Path, inputs: Array) -> Array:
    """The first output by ONNX Runtime."""
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": inputs})[0])
