"""The network of examples/story: its gradients, and its export."""

from __future__ import annotations

import importlib.util
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from mcudeploy.extensions.attention.attend import Attend
from mcudeploy.frontend.load import load
from mcudeploy.frontend.onnx.input_choices import InputChoices

pytest.importorskip("tokenizers", reason="trains a tokenizer")
SCRIPT = Path(__file__).parents[2] / "examples" / "story" / "train.py"
STATES = {"key_*": "key_*_out", "value_*": "value_*_out"}


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script as a module; dataclasses look it up by its name."""
    spec = importlib.util.spec_from_file_location("story_train", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_gradients_are_slopes_of_the_loss(script: Any) -> None:
    rng = np.random.default_rng(0)
    start = {name: it.astype(np.float64) for name, it in script.drawn(rng).items()}
    tokens = rng.integers(1, script.VOCABULARY, (2, 9))
    tokens[1, 6:] = 0  # padding has no loss

    def loss(values: dict[str, Any], tape: Any) -> float:
        return float(tape.loss(script.logits(tape, values, tokens[:, :-1]), tokens[:, 1:]))

    values, tape = {name: script.Var(it) for name, it in start.items()}, script.Tape()
    loss(values, tape)
    tape.backward()
    for name, it in start.items():
        way = rng.standard_normal(it.shape) / it.size**0.5
        ends = [loss({**values, name: script.Var(it + sign * 1e-3 * way)}, script.Tape()) for sign in (1, -1)]
        slope = float((values[name].grad * way).sum())
        assert (ends[0] - ends[1]) / 2e-3 == pytest.approx(slope, rel=2e-3, abs=1e-5), name


def test_the_file_computes_the_logits_of_training_token_by_token(script: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    parameters, ids = script.drawn(rng), rng.integers(0, script.VOCABULARY, 7)
    values = {name: script.Var(it) for name, it in parameters.items()}
    wanted = script.logits(script.Tape(), values, ids[None]).value[0]
    model = script.network(parameters)
    onnx.checker.check_model(model)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    states = {it.name: np.zeros(it.shape, np.float32) for it in session.get_inputs()[2:]}
    for position, token in enumerate(ids):
        feeds = {"token": np.array([[token]]), "position": np.array([position])}
        logits, *after = session.run(None, feeds | states)
        states = dict(zip(states, after, strict=True))
        assert np.allclose(logits[0, 0], wanted[position], atol=1e-4)
    onnx.save(model, tmp_path / "story.onnx")
    script.pack(model)
    onnx.save(model, tmp_path / "story_int4.onnx")
    for path in tmp_path.glob("*.onnx"):
        graph = load(path, choices=InputChoices(states=STATES))
        assert sum(isinstance(it.op, Attend) for it in graph.operators) == script.LAYERS
        assert len(graph.states) == 2 * script.LAYERS
    assert any("stay packed" in note for note in graph.notes)


def test_stories_keep_their_words_and_fit_the_context(script: Any) -> None:
    texts = list(script.stories(400, seed=3))
    tokenizer = script.trained_tokenizer(texts)
    assert len(set(texts)) == len(texts)
    assert max(len(it.ids) for it in tokenizer.encode_batch(texts)) <= script.CONTEXT
    assert not any("{" in text or "  " in text for text in texts)
    grammar = tomllib.loads(SCRIPT.with_name("grammar.toml").read_text("utf-8"))
    names = [name for each in grammar["names"].values() for name in each]
    assert all(sum(f" {name}" in f" {text}" for name in names) == 1 for text in texts)
