"""Small language models with their tokenizers, and the tokens that ONNX Runtime generates."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from mcudeploy.planner.plan_options import Options
from tests.networks.decoder import Sizes, decoder, states
from tests.networks.onnx_files import build, node, save
from tests.text.byte_tokenizer import TOKENS, save_byte_tokenizer
from tests.text.trained_tokenizers import trained

POSITIONS = 24
SIZES = Sizes(dim=16, layers=1, heads=2, kv_heads=1, context=POSITIONS, hidden=24)


@cache
def options(cache_kind: str = "scatter") -> Options:
    """The options that name the caches."""
    names = states(decoder(SIZES, cache_kind))
    pairs = tuple(names.items())
    return Options(time_limit=0.5, states=pairs, split=False)


def teller(folder: Path, cache_kind: str = "scatter", tokenizer: str = "llama") -> Path:
    """A decoder with random weights, and beside it its tokenizer.json.

    Its logits are those of other ids: with the same first and last matrices it would repeat a token.
    """
    trained(tokenizer).save(str(folder / "tokenizer.json"))
    sizes = replace(SIZES, vocabulary=trained(tokenizer).get_vocab_size())
    model = decoder(sizes, cache_kind, seed=5)
    (last,) = (it.input[1] for it in model.graph.node if "logits" in it.output)
    (weights,) = (it for it in model.graph.initializer if it.name == last)
    weights.CopyFrom(numpy_helper.from_array(np.roll(numpy_helper.to_array(weights), 37, 1), last))
    return save(model, folder, "teller")


def recurrent(path: Path) -> Path:
    """A GRU that reads the bytes of byte_tokenizer.py, without a position."""
    rng, size = np.random.default_rng(2), 8
    shapes = {
        "table": (TOKENS, size),
        "w": (1, 3 * size, size),
        "r": (1, 3 * size, size),
        "last": (size, TOKENS),
    }
    constants = {name: rng.normal(size=it).astype(np.float32) for name, it in shapes.items()}
    nodes = [
        node("Gather", "table token", "x"),
        node("GRU", "x w r", "y h", hidden_size=size),
        node("Squeeze", "h", "flat", name="squeeze"),
        node("MatMul", "flat last", "logits"),
    ]
    save_byte_tokenizer(path.with_name("tokenizer.json"))
    return save(build(nodes, {"token": (np.int64, (1, 1))}, ["logits"], constants), path.parent, path.stem)


def in_int8(path: Path) -> Path:
    """The decoder with its logits as int8."""
    model = onnx.load(path)
    (logits,) = (it for it in model.graph.node if "logits" in it.output)
    logits.output[0] = "real"
    constants = {"scale": np.float32(0.25), "zero": np.int8(3)}
    model.graph.initializer.extend(
        numpy_helper.from_array(np.array(it), name) for name, it in constants.items()
    )
    model.graph.node.append(
        helper.make_node("QuantizeLinear", ["real", "scale", "zero"], ["logits"], "steps")
    )
    model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.INT8
    onnx.save(model, path)
    return path


def reference(path: Path, prompt: list[int], count: int) -> list[int]:
    """The tokens after a prompt, the most probable one each time, with states of ONNX Runtime."""
    session = onnxruntime.InferenceSession(str(path))
    values = {
        it.name: np.zeros(it.shape, np.float32)
        for it in session.get_inputs()
        if it.name not in ("token", "position")
    }
    tokens = list(prompt)
    for position in range(len(prompt) + count - 1):
        feeds = {"token": np.array([[tokens[position]]]), "position": np.array([position])}
        logits, *after = session.run(None, feeds | values)
        values = dict(zip(values, after, strict=True))
        if position >= len(prompt) - 1:
            tokens.append(int(logits.argmax()))
    return tokens[len(prompt) :]
