"""`generate`: a text from a device, compared with ONNX Runtime."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result

from mcudeploy.cli.main import cli
from mcudeploy.extensions.text import generating
from mcudeploy.extensions.text.generate_command import _Writer
from mcudeploy.extensions.text.tokenizer_file import read_tokenizer
from tests.weekly import sample

decoders = pytest.importorskip("tests.text.decoders", reason="needs the package tokenizers")
QUICK = ("--no-split", "--time-limit", "0.3")


def states(cache: str = "scatter") -> list[str]:
    """The options that name the caches."""
    return [it for before, after in decoders.options(cache).states for it in ("--state", f"{after}={before}")]


def generate(path: Path, *arguments: str, board: str = "host", cache: str = "scatter") -> Result:
    """The result of the command."""
    tokenizer = ("--tokenizer", str(path.with_name("tokenizer.json")))
    line = ("generate", str(path), "--board", board, *tokenizer, *states(cache), *QUICK, *arguments)
    return CliRunner().invoke(cli, line)


def report(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_greedy_tokens_are_those_of_onnx_runtime(tmp_path: Path) -> None:
    path = decoders.teller(tmp_path)
    text = report(generate(path, "--prompt", "a model", "--json", board="mps2-an386"))
    prompt = decoders.trained("llama").encode("a model").ids[:-1]
    wanted = decoders.reference(path, prompt, decoders.POSITIONS - len(prompt) + 1)
    assert (text["prompt_tokens"], text["tokens"]) == (prompt, wanted)
    assert text["verified"] and text["ended_by"] == "positions" and text["largest_error"] < 1e-4
    names = [decoders.trained("llama").id_to_token(it) for it in wanted]
    parts = [bytes([int(it[3:5], 16)]) if it[:3] == "<0x" else it.replace("▁", " ").encode() for it in names]
    assert text["text"] == b"".join(parts).decode("utf-8", "replace")
    assert text["latency"]["unit"] == "cycles (model)" and text["tokens_per_second"] > 10


def test_the_text_is_on_stdout_and_the_figures_on_stderr(tmp_path: Path) -> None:
    path = decoders.in_int8(decoders.teller(tmp_path, "slide"))
    drawn = ("--temperature", "1.5", "--top-k", "40", "--top-p", "0.95", "--tokens", "8")
    results = [generate(path, *drawn, "--seed", seed, cache="slide") for seed in ("1", "1", "2")]
    assert [it.exit_code for it in results] == [0, 0, 0]
    assert results[0].stdout == results[1].stdout != results[2].stdout
    assert results[0].stdout.endswith("\n") and "arena" not in results[0].stdout
    assert "verified: the logits of every token" in results[0].stderr
    assert "8 after 1 of the prompt" in results[0].stderr


def test_a_token_reads_all_constants_but_of_tables_one_row(tmp_path: Path) -> None:
    path = decoders.teller(tmp_path)
    text = report(generate(path, "--prompt", "a", "--tokens", "1", "--json"))
    model = onnx.load(path)
    arrays = {it.name: onnx.numpy_helper.to_array(it) for it in model.graph.initializer}
    names = [it.input[1] for it in model.graph.node if it.op_type == "MatMul" and it.input[1] in arrays]
    products = sum(arrays[it].size + arrays[it].shape[1] for it in names)  # with biases, which are zero
    size = decoders.SIZES
    least = 4 * (products + size.dim + 2 * size.head + (2 * size.layers + 1) * size.dim)
    assert (
        least <= text["constants_read_bytes"] <= 1.01 * least < 0.6 * sum(it.nbytes for it in arrays.values())
    )
    shown = generate(path, "--prompt", "a", "--tokens", "1").stderr
    assert f"{text['constants_read_bytes']:,} B read for a token" in " ".join(shown.split())


@pytest.mark.parametrize("board", sample(("host", "mps2-an386", "mps2-an500"), 1))
def test_a_text_with_int8_caches(board: str, tmp_path: Path) -> None:
    path, packed = decoders.teller(tmp_path), ("--int8-cache", "*")
    if board != "host":
        text = report(generate(path, *packed, "--json", board=board))
        assert text["verified"] and text["int8_caches"]["runs"] == decoders.POSITIONS
        assert text["int8_caches"]["sqnr_db"] > 30 and text["largest_error"] < 1e-4
        return
    shown = " ".join(generate(path, *packed, "--prompt", "a model", "--tokens", "3").stderr.split())
    assert "dB beside the outputs with float32 caches, over 5 runs; largest difference" in shown
    assert "verified: the logits of every token" in shown


def test_a_difference_is_exit_code_11(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, right = decoders.teller(tmp_path), generating._expected

    def other(*arguments: Any) -> list[Any]:
        expected = right(*arguments)
        expected[3] = expected[3] + np.float32(0.5) * (np.arange(expected[3].size) == 9)
        return expected

    monkeypatch.setattr(generating, "_expected", other)
    result = generate(path, "--tokens", "6")
    assert result.exit_code == 11
    assert "not verified: position 3: logit 9 is" in result.stderr
    monkeypatch.setattr(generating, "_expected", lambda *it: [np.roll(each, 1) for each in right(*it)])
    assert "the token is" in report_reason(generate(path, "--tokens", "2", "--json"))


def test_logits_of_no_value_are_exit_code_11(tmp_path: Path) -> None:
    path = decoders.teller(tmp_path)
    model = onnx.load(path)
    (logits,) = (it for it in model.graph.node if "logits" in it.output)
    logits.output[0] = "real"
    for op, before, after in (("Abs", "real", "size"), ("Neg", "size", "below"), ("Log", "below", "logits")):
        model.graph.node.append(onnx.helper.make_node(op, [before], [after], after))
    onnx.save(model, path)
    reason = report_reason(generate(path, "--tokens", "2", "--json"))
    assert reason.startswith("position 0: the largest logit of ONNX Runtime is nan") and "1:" not in reason
    run = CliRunner().invoke(cli, ["run", str(path), "--board", "host", *states(), *QUICK])
    assert "No output is finite" in run.stdout  # though the caches are


def report_reason(result: Result) -> str:
    assert result.exit_code == 11
    return str(json.loads(result.stdout)["reason"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--prompt", "a b c d e f g h i j k l m n o p q r s t u v w x y z"),
            "the model 24 positions: shorten it",
        ),
        (("--prompt", "a\udcff"), "the prompt is not UTF-8"),
        (("--stop-token", "<x>"), "the tokenizer has no token '<x>', which --stop-token names"),
        (("--positions", "30"), "the model has tables of 24 positions"),
    ],
)
def test_what_cannot_be_generated_is_refused(
    arguments: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    result = generate(decoders.teller(tmp_path), *arguments)
    assert result.exit_code in (2, 4) and message in result.stderr


def test_characters_of_several_tokens_and_controls_are_data(tmp_path: Path) -> None:
    decoders.trained("byte-level").save(str(tmp_path / "tokenizer.json"))
    tokenizer = read_tokenizer(tmp_path / "tokenizer.json")
    ids = {tokenizer.pieces[it]: it for it in range(257)}
    written: list[str] = []
    writer = _Writer(tokenizer, written.append)
    for byte in "ü💡\n\x1b[2J\u202e".encode() + b"\xe2\x82":
        writer.add(ids[bytes([byte])])
    assert "".join(written) == "ü💡\n\\x1b[2J\\u202e"
    writer.end()
    assert "".join(written).endswith("\ufffd\n")
    assert writer.text == "ü💡\n\x1b[2J\u202e\ufffd"
