"""`build --tokenizer`: MODEL_generate() on this computer, compared with ONNX Runtime."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mcudeploy.boards.catalogue import load_board
from mcudeploy.cli.main import cli
from mcudeploy.common.errors import UsageError
from mcudeploy.common.resources import resource_dir
from mcudeploy.extensions.text.decoder_io import DecoderChoice
from mcudeploy.extensions.text.generate_part import GeneratePart
from mcudeploy.extensions.text.tokenizer_file import read_tokenizer
from mcudeploy.planner.plan_options import Options
from tests import reports
from tests.linked import SANITIZED, linked

decoders = pytest.importorskip("tests.text.decoders", reason="needs the package tokenizers")
MAIN = r"""
#include <stdio.h>
#include <stdlib.h>

#include "teller_generate.h"

static int32_t on_text(void *user, uint32_t token, const uint8_t *text, uint32_t bytes)
{
    (void)text;
    int32_t *left = user;
    printf("%u:%u ", (unsigned)token, (unsigned)bytes);
    return --*left == 0;
}

/* prompt, most tokens, tokens until the callback says stop, temperature, seed */
int main(int count, char **arguments)
{
    for (int i = 1; i + 4 < count; i += 5) {
        mcud_generate_options options = {0};
        int32_t left = (int32_t)atoi(arguments[i + 2]);
        options.tokens = (uint32_t)atoi(arguments[i + 1]);
        options.temperature = (float)atof(arguments[i + 3]);
        options.top_p = 0.9f;
        options.seed = (uint64_t)atoi(arguments[i + 4]);
        int32_t result = teller_generate(arguments[i], options.tokens ? &options : NULL, on_text, &left);
        printf("%d\n", (int)result);
    }
    return 0;
}
"""


USUAL = DecoderChoice()


def built(path: Path, options: Options, choice: DecoderChoice = USUAL, **asked: Any) -> Any:
    tokenizer = read_tokenizer(path.with_name("tokenizer.json"))
    parts = [GeneratePart(tokenizer, choice)]
    asked = {"library_only": True, "parts": parts, "board": load_board("host"), **asked}
    return reports.build_models([path], asked.pop("board"), options, path.parent / "out", **asked)


def generated(program: Path, *calls: Sequence[object]) -> list[tuple[list[int], int]]:
    """The tokens and the result of each call."""
    arguments = [str(it) for call in calls for it in call]
    lines = subprocess.run([program, *arguments], capture_output=True, text=True, check=True).stdout
    split = [line.split() for line in lines.splitlines()]
    return [([int(it.split(":")[0]) for it in words[:-1]], int(words[-1])) for words in split]


def test_the_tokens_are_those_of_onnx_runtime(tmp_path: Path) -> None:
    path = decoders.teller(tmp_path)
    report = built(path, decoders.options())
    tokens = decoders.trained("llama")
    text = report["text"]
    assert (text["tokens"], text["positions"]) == (tokens.get_vocab_size(), decoders.POSITIONS)
    assert 0 < text["constants_read_bytes"] < 0.8 * report["weights_bytes"]
    program = linked(tmp_path / "out", MAIN, *SANITIZED)
    prompt = "the arena of a model"
    ids = tokens.encode(prompt).ids[:-1]
    room = decoders.POSITIONS - len(ids) + 1  # the last token is not read
    wanted = decoders.reference(path, ids, room)
    assert 2 not in wanted
    long_prompt = "a b c d e f g h i j k l m n o p q r s t u v w x y z"
    calls = [
        (prompt, 0, 0, 0, 0),  # all positions
        (prompt, 5, 0, 0, 0),
        (prompt, 9, 3, 0, 0),  # the callback says stop
        ("", 4, 0, 0, 0),  # BOS alone
        (long_prompt, 1, 0, 0, 0),
        ("x" * 64, 1, 0, 0, 0),
        (prompt, 6, 0, 1.5, 3),
        (prompt, 6, 0, 1.5, 3),
        (prompt, 6, 0, 1.5, 4),
    ]
    texts = generated(program, *calls)
    assert texts[0] == (wanted, room)
    assert texts[1] == (wanted[:5], 5)
    assert texts[2] == (wanted[:3], 3)
    assert texts[3] == (decoders.reference(path, [1], 4), 4)
    assert texts[4] == ([], -4)
    assert texts[5] == ([], -1)
    assert texts[6] == texts[7] != texts[8]


def test_int8_logits_until_the_end_with_clang_and_licences(tmp_path: Path) -> None:
    path = decoders.in_int8(decoders.teller(tmp_path, tokenizer="byte-level"))
    tokens = decoders.trained("byte-level")
    wanted = decoders.reference(path, tokens.encode("a model").ids, 20)
    place = next(at for at, it in enumerate(wanted) if at > 1 and it not in wanted[:at])
    end = tokens.id_to_token(wanted[place])
    parts = [GeneratePart(read_tokenizer(path.with_name("tokenizer.json"), [end]), USUAL)]
    built(path, decoders.options(), parts=parts, verify=False)
    names = {it.name for it in (resource_dir("firmware") / "text").iterdir()}
    files = {it.name: it for it in (tmp_path / "out").rglob("*.[ch]")}
    assert names < set(files)
    assert [name for name, it in files.items() if "SPDX" not in it.read_text("utf-8")] == []
    program = linked(tmp_path / "out", MAIN, compiler="clang")
    texts = generated(program, ("a model", 20, 0, 0, 0), ("", 9, 0, 0, 0))
    assert texts == [(wanted[:place], place), ([], -3)]


def test_a_recurrent_model_without_positions(tmp_path: Path) -> None:
    path = decoders.recurrent(tmp_path / "teller.onnx")
    options = Options(stateful=True, time_limit=0.3, split=False)
    assert built(path, options)["text"]["positions"] is None
    texts = generated(linked(tmp_path / "out", MAIN), ("ab" * 30, 12, 0, 0, 0), ("b", 3, 0, 0, 0))
    line = [
        "generate",
        str(path),
        "--tokenizer",
        str(tmp_path / "tokenizer.json"),
        "--stateful",
        "--no-split",
    ]
    run = CliRunner().invoke(
        cli, [*line, "--board", "host", "--prompt", "ab" * 30, "--tokens", "12", "--json"]
    )
    assert texts[0] == (json.loads(run.stdout)["tokens"], 12) and json.loads(run.stdout)["verified"]
    assert texts[1][1] == 3 and len(set(texts[0][0])) > 2
    endless = CliRunner().invoke(cli, [*line, "--board", "host"])
    assert endless.exit_code == 2 and "state its most tokens by --tokens" in endless.stderr


@pytest.mark.parametrize(
    ("options", "choice", "asked", "message"),
    [
        ({"states": ()}, {}, {}, "keeps no states"),
        ({"states": None}, {}, {}, "neither the id of a token nor a position"),
        ({}, {"token": "x"}, {}, "--token x: the inputs are 'token', 'position'"),
        ({}, {"token": "position"}, {}, "has 24 rows: take the tokenizer of this model"),
        ({}, {"logits": "x"}, {}, "and the name of --logits"),
        ({}, {"positions": 25}, {}, "the model has tables of 24 positions"),
        ({}, {}, {"kind": "zephyr"}, "leave out --for zephyr"),
        ({"stream_input": True}, {}, {}, "leave out --hop and --stream-input"),
    ],
)
def test_what_no_text_can_be_generated_with_is_refused(
    options: dict[str, Any], choice: dict[str, Any], asked: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = decoders.teller(tmp_path)
    if options.get("states", ()) is None:
        options = {"states": decoders.options().states[:1]}
    with pytest.raises(UsageError) as caught:
        built(path, replace(decoders.options(), **options), DecoderChoice(**choice), verify=False, **asked)
    assert message in str(caught.value)


def test_the_tokenizer_of_another_model_is_refused(tmp_path: Path) -> None:
    path = decoders.teller(tmp_path)
    decoders.trained("metaspace-first").save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(UsageError, match="Take the tokenizer of this model"):
        built(path, decoders.options(), DecoderChoice(token="token"), verify=False)
    with pytest.raises(UsageError, match=r"no input chooses from .* of the 500 ids .*'position': 24"):
        built(path, decoders.options(), verify=False)
