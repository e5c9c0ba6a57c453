"""Tokenizers in C, compared with the package `tokenizers`; files that are not supported, or hostile."""

from __future__ import annotations

import json
import math
import random
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mcudeploy.common.errors import ConfigError, DeployError, ModelError
from mcudeploy.common.resources import resource_dir
from mcudeploy.extensions.text.tokenizer_file import read_tokenizer
from mcudeploy.extensions.text.tokenizer_tables import render_tokenizer, tokenizer_bytes
from tests.linked import SANITIZED, STRICT
from tests.weekly import examples, sample

tokens = pytest.importorskip("tests.text.trained_tokenizers", reason="needs the package tokenizers")
MAIN = Path(__file__).with_name("tokens.c")
FIRMWARE = resource_dir("firmware") / "text"
NAMES = tuple(tokens.PRODUCERS) if hasattr(tokens, "PRODUCERS") else ()
_KINDS = (
    "abcdefghijklmnopqrstuvwxyzABC",
    "0123456789²½٣Ⅷ",
    "     \n\t\u00a0\u3000\u2003",
    "'''stmdrvel",
    "▁▁_-.,:;!?()[]{}|<>`",
    "äöüßéèçøñ",
    "中文字日本語テスト漢",
    "Ωλжш💡👩\u200d🚀\U0001f1e9𝔘",
    "\x00\x01\x7f\u0301\ufeff",
)


def texts(count: int, seed: int) -> list[str]:
    """Pieces of our documents, random characters of several kinds, and the names of added tokens."""
    rng = random.Random(seed)
    corpus = "\n".join(tokens.CORPUS)
    result = [
        "",
        " ",
        "  ",
        "a",
        "'",
        "'ll",
        "<s>",
        " <s> a",
        "<unk><0x41>",
        "▁",
        "xy<|endoftext|>",
        "    a  ",
    ]
    while len(result) < count:
        text = ""
        for _ in range(rng.randrange(1, 7)):
            start = rng.randrange(len(corpus) - 40)
            kind = rng.choice(_KINDS)
            text += rng.choice(
                [
                    corpus[start : start + rng.randrange(1, 40)],
                    "".join(rng.choice(kind) for _ in range(rng.randrange(1, 8))),
                    "".join(rng.choice(rng.choice(_KINDS)) for _ in range(rng.randrange(1, 12))),
                    rng.choice(["<|endoftext|>", "</s>", "<s>", "don't we'll", "  ", "    "]),
                ]
            )
        result.append(text)
    return result


def program(folder: Path, file: Path) -> Path:
    """The program of tokens.c for a tokenizer, under sanitizers."""
    (folder / "tables.c").write_text(render_tokenizer(read_tokenizer(file), "tokenizer"), "utf-8")
    sources = [folder / "tables.c", FIRMWARE / "mcud_tokenizer.c", MAIN]
    command = ["gcc", *STRICT, *SANITIZED, "-I", FIRMWARE, *sources, "-o", folder / "tokens"]
    subprocess.run(command, check=True)
    return folder / "tokens"


def run(path: Path, lines: Sequence[bytes], *arguments: str) -> tuple[list[list[int]], list[str]]:
    """The ids of each text, an error as a negative number alone; and the line of each id."""
    stdin = "".join(f"{line.hex()}\n" for line in lines)
    done = subprocess.run([path, *arguments], input=stdin, capture_output=True, text=True, check=True)
    answers = [[int(it) for it in line.split()] for line in done.stdout.splitlines()[: len(lines)]]
    ids = [answer[1:] if answer[0] >= 0 else answer for answer in answers]
    return ids, done.stdout.splitlines()[len(lines) :]


def expected(tokenizer: Any, text: str) -> list[int]:
    """The ids of the package, without the one that a post-processor puts after a text."""
    ids: list[int] = tokenizer.encode(text).ids
    return ids if tokenizer.post_processor is None else ids[:-1]


@pytest.mark.parametrize("name", NAMES)
def test_ids_are_those_of_the_package(name: str, tmp_path: Path) -> None:
    tokenizer = tokens.trained(name)
    file = tmp_path / "tokenizer.json"
    tokenizer.save(str(file))
    path = program(tmp_path, file)
    cases = texts(300, NAMES.index(name))
    if name == "unigram-bytes":  # SentencePiece and we do not find the names of bytes in text
        cases = [it for it in cases if "<0x" not in it]
    encoded, pieces = run(path, [it.encode() for it in cases])
    for text, ids in zip(cases, encoded, strict=True):
        assert ids == expected(tokenizer, text), repr(text)
    assert len(pieces) == tokenizer.get_vocab_size() + 2
    assert pieces[-2:] == ["0:", "0:"]


def _altered(content: dict[str, Any], rng: random.Random, first: int) -> dict[str, Any]:
    """The tokenizer with fewer merges in another order, or other scores, and with more added tokens."""
    model = content["model"]
    if model["type"] == "BPE":
        rng.shuffle(model["merges"])
        kept = rng.uniform(0.7, 1)
        model["merges"] = [it for it in model["merges"] if rng.random() < kept]
    for piece in model["vocab"][3:] if model["type"] == "Unigram" else ():
        if rng.random() < 0.5 and not piece[0].startswith("<0x"):
            piece[1] = rng.choice([rng.uniform(-12, 0), round(rng.uniform(-12, -1))])
    known = {it["content"] for it in content["added_tokens"]} | {
        it if isinstance(it, str) else it[0] for it in model["vocab"]
    }
    names = {"".join(rng.choices("ab <|>é", k=rng.randrange(1, 4))) for _ in range(4)} - known
    off = dict.fromkeys(("single_word", "lstrip", "rstrip"), False)
    content["added_tokens"] += [
        {"id": number, "content": name, "special": rng.random() < 0.5, **off}
        | {"normalized": content["normalizer"] is None and rng.random() < 0.5}
        for number, name in enumerate(sorted(names), first)
    ]
    return content


@pytest.mark.parametrize("name", sample(NAMES, ["llama-converted"]))
def test_altered_tokenizers_have_the_ids_of_the_package(name: str, tmp_path: Path) -> None:
    rng = random.Random(name)
    for _ in range(examples(1, 5)):
        usual = tokens.trained(name)
        content = _altered(json.loads(usual.to_str()), rng, usual.get_vocab_size())
        file = tmp_path / "tokenizer.json"
        file.write_text(json.dumps(content), "utf-8")
        altered = tokens.Tokenizer.from_file(str(file))
        cases = [it for it in texts(150, rng.randrange(1000)) if "<0x" not in it]
        encoded, _ = run(program(tmp_path, file), [it.encode() for it in cases])
        for text, ids in zip(cases, encoded, strict=True):
            assert ids == expected(altered, text), repr(text)


@pytest.mark.parametrize("name", ["byte-level", "llama", "unigram-bytes"])
def test_pieces_join_to_the_text(name: str, tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    tokens.trained(name).save(str(file))
    path = program(tmp_path, file)
    cases = ["one two", "für 💡 alle", "a\tb\n\nc"]
    encoded, lines = run(path, [it.encode() for it in cases])
    for text, ids in zip(cases, encoded, strict=True):
        joined = b"".join(bytes.fromhex(lines[it][2:]) for it in ids).decode()
        assert joined == (text if name == "byte-level" else f" {text}")
    ends = [place for place, line in enumerate(lines) if line.startswith("1:")]
    assert ends == [0 if name == "byte-level" else 2]


def test_a_small_buffer_and_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    tokens.trained("llama").save(str(file))
    path = program(tmp_path, file)
    for room in (0, 1, 3, 4, 7, 8, 40, 43):
        assert run(path, [b"a" * 200, b"abc " * 40], str(room))[0] == [[-1], [-1]]
    words, _ = run(path, [b"abcd efgh"], "64")
    assert words == [tokens.trained("llama").encode("abcd efgh").ids[:-1]]
    wrong = [
        b"\xff",
        b"a\x80",
        b"\xc0\x80",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xe2\x96",
        b"\xe0\x80\x80",
    ]
    assert run(path, wrong)[0] == [[-2]] * len(wrong)


def test_merges_take_a_byte_where_ranks_ascend(tmp_path: Path) -> None:
    """Ids in another order than the merges need ranks, and give the same tokens."""
    tokenizer = tokens.trained("byte-level")
    file = tmp_path / "tokenizer.json"
    tokenizer.save(str(file))
    small = tokenizer_bytes(read_tokenizer(file))
    content = json.loads(file.read_text("utf-8"))
    vocab = content["model"]["vocab"]
    last = len(vocab) - 1
    content["model"]["vocab"] = {
        text: number if number < 257 else 257 + last - number for text, number in vocab.items()
    }
    file.write_text(json.dumps(content), "utf-8")
    turned = read_tokenizer(file)
    assert tokenizer_bytes(turned) == small + 3 * len(content["model"]["merges"])
    cases = texts(60, 5)
    encoded, _ = run(program(tmp_path, file), [it.encode() for it in cases])
    for text, ids in zip(cases, encoded, strict=True):
        assert [it if not 257 <= it <= last else 257 + last - it for it in ids] == tokenizer.encode(text).ids


def _changed(change: Callable[[dict[str, Any]], object], folder: Path, name: str = "llama") -> Path:
    content = json.loads(tokens.trained(name).to_str())
    change(content)
    file = folder / "tokenizer.json"
    file.write_text(json.dumps(content), "utf-8")
    return file


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda it: it.pop("model"), ConfigError, "model: Field required"),
        (lambda it: it["model"].update(vocab=5), ConfigError, "model.vocab"),
        (lambda it: it["model"]["vocab"].update(x=-1), ConfigError, "model.vocab"),
        (lambda it: it["model"]["vocab"].update(x=2**31), ConfigError, "less than 524288"),
        (lambda it: it["model"]["vocab"].update(x=True), ConfigError, "model.vocab"),
        (lambda it: it["model"]["vocab"].update(x=7), ModelError, "two tokens have the id 7"),
        (lambda it: it["model"]["vocab"].update({"x" * 256: 9999}), ModelError, "256 bytes"),
        (lambda it: it["model"].update(type="WordPiece"), ModelError, "model.type is WordPiece"),
        (lambda it: it["model"].update(type="Unigram"), ModelError, "not that of a Unigram model"),
        (lambda it: it["model"].update(dropout=0.1), ModelError, "model.dropout is 0.1"),
        (lambda it: it["model"].update(unk_token="x\x1b[31m"), ModelError, "'x?[31m' is not in"),
        (lambda it: it["model"].update(merges=[["a"]]), ConfigError, "model.merges.0"),
        (lambda it: it["model"].update(merges=["a"]), ModelError, "is not a pair of tokens"),
        (lambda it: it["model"].update(merges=["a b c"]), ModelError, "is not a pair of tokens"),
        (lambda it: it["model"].update(merges=["q §"]), ModelError, "is not in model.vocab"),
        (lambda it: it["model"]["merges"].append(it["model"]["merges"][0]), ModelError, "is there twice"),
        (lambda it: it["model"]["vocab"].pop("<0x41>"), ModelError, "<0x41> is missing"),
        (lambda it: it["added_tokens"][0].update(lstrip=True), ModelError, "'<unk>' has lstrip"),
        (lambda it: it["added_tokens"][0].update(normalized=True), ModelError, "is normalized"),
        (lambda it: it["added_tokens"][0].update(content="<x>"), ModelError, "two tokens have the id 0"),
        (lambda it: it["added_tokens"][0].update(content=""), ConfigError, "at least 1 character"),
        (lambda it: it["added_tokens"][0].update(id=3), ModelError, "in the vocabulary it is 0"),
        (lambda it: it.update(normalizer={"type": "NFC"}), ModelError, "NFC of a BPE model is not supported"),
        (lambda it: it.update(normalizer=None), ModelError, "null of a BPE model are not supported"),
        (lambda it: it.update(decoder={"type": "CTC"}), ModelError, "decoder: CTC"),
        (lambda it: it.update(post_processor={"type": "BertProcessing"}), ModelError, "BertProcessing"),
        (lambda it: it["post_processor"].update(single=[]), ModelError, "has no Sequence A"),
        (lambda it: it["post_processor"].update(special_tokens={}), ModelError, "lacks the ids of '<s>'"),
        (
            lambda it: it["post_processor"].update(special_tokens=[]),
            ConfigError,
            "post_processor.special_tokens",
        ),
        (
            lambda it: it["post_processor"].update(single=[{"Sequence": "A"}]),
            ConfigError,
            "post_processor.single",
        ),
        (lambda it: it.update(normalizer={"type": ["x"]}), ConfigError, "normalizer.type"),
        (lambda it: it["normalizer"].update(normalizers=5), ConfigError, "normalizer.normalizers"),
        (
            lambda it: it.update(decoder={"type": "Sequence", "decoders": [7]}),
            ConfigError,
            "decoder.decoders.0",
        ),
        (
            lambda it: it["post_processor"]["special_tokens"]["<s>"].update(ids=[99999]),
            ModelError,
            "ids of the vocabulary",
        ),
        (
            lambda it: it["post_processor"]["special_tokens"]["<s>"].update(ids=[1] * 9),
            ConfigError,
            "at most 8 items",
        ),
    ],
)
def test_a_hostile_or_unsupported_file_is_one_error(
    change: Callable[[dict[str, Any]], object], error: type[DeployError], message: str, tmp_path: Path
) -> None:
    file = _changed(change, tmp_path)
    with pytest.raises(error) as caught:
        read_tokenizer(file)
    assert str(caught.value).startswith(str(file)) and message in str(caught.value)
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("byte-level", lambda it: it["model"]["vocab"].pop("Ā"), "lacks 1 of the 256 bytes"),
        (
            "byte-level-split",
            lambda it: it["pre_tokenizer"]["pretokenizers"][0].update(pattern={"Regex": r"\w+"}),
            "has to be that of GPT-2",
        ),
        ("unigram", lambda it: it["model"].update(unk_id=None), "model.unk_id is None"),
        (
            "unigram",
            lambda it: it["model"]["vocab"].append(["z", math.nan]),
            "400.1: Input should be a finite",
        ),
        ("unigram", lambda it: it["model"]["vocab"].append(["z", 1e300]), "less than or equal to 1000000000"),
        ("unigram", lambda it: it["model"].update(unk_id=9999), "model.unk_id is 9999"),
        ("unigram", lambda it: it["model"]["vocab"].append(["</s>", 0.0]), "'</s>' twice"),
        ("unigram", lambda it: it["pre_tokenizer"].update(replacement="_"), "not U+2581"),
        ("unigram", lambda it: it["pre_tokenizer"].update(prepend_scheme="last"), "prepend_scheme last"),
        (
            "byte-level",
            lambda it: it["pre_tokenizer"].update(type="Whitespace"),
            "Whitespace of a BPE model is",
        ),
        ("metaspace-first", lambda it: it["model"].update(unk_token=None), "Set unk_token"),
    ],
)
def test_other_kinds_state_what_they_lack(
    name: str, change: Callable[[dict[str, Any]], object], message: str, tmp_path: Path
) -> None:
    with pytest.raises((ConfigError, ModelError)) as caught:
        read_tokenizer(_changed(change, tmp_path, name))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[" * 200_000, "recursion limit"),
        (b'{"normalizer":' + b'{"type":"Sequence","normalizers":[' * 5000, "recursion limit"),
        (b'{"model":{"vocab":{"\xff":1}}}', "invalid unicode"),
        (b'{"model":{"vocab":{"\\ud800":1}}}', "hex escape"),
        (b'{"model":{"vocab":{"x":1' + b"0" * 10**6 + b"}}}", "out of range"),
        (b" " * (1 << 24) + b"{}", "larger than 16 MiB"),
    ],
)
def test_hostile_bytes_are_one_short_error(content: bytes, message: str, tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read_tokenizer(file)
    assert message in str(caught.value) and len(str(caught.value)) < len(str(file)) + 120


@pytest.mark.parametrize("name", ["llama", "byte-level", "unigram"])
def test_random_bytes_in_a_file_are_errors_or_tokenizers(name: str, tmp_path: Path) -> None:
    rng, file = random.Random(name), tmp_path / "tokenizer.json"
    for _ in range(120):
        content = bytearray(tokens.trained(name).to_str().encode())
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(content))
            rest = bytes(rng.choices(b'"{}[],:-19.\\\x00\xff', k=rng.randrange(4)))
            content[at : at + rng.choice((0, 1, 30))] = rest
        file.write_bytes(content[: rng.randrange(len(content))] if rng.random() < 0.1 else content)
        with suppress(DeployError):
            tokenizer_bytes(read_tokenizer(file))


@pytest.mark.parametrize("name", ["llama", "byte-level-split", "unigram"])
def test_random_changes_of_a_file_are_errors_or_tokenizers(name: str, tmp_path: Path) -> None:
    rng, whole = random.Random(name), tokens.trained(name).to_str()
    values: list[Any] = [
        None,
        True,
        -1,
        2**70,
        0.5,
        "",
        "x\x00",
        [],
        {},
        [[]],
        {"type": "Sequence"},
        ["▁"],
        7,
    ]
    for _ in range(60):
        content = json.loads(whole)
        for _ in range(rng.randrange(1, 3)):
            at: Any = content
            while isinstance(at, dict | list) and at:
                keys = list(at) if isinstance(at, dict) else range(len(at))
                key, holder = rng.choice(list(keys)), at
                at = at[key]
                if rng.random() < 0.3:
                    break
            holder[key] = rng.choice(values)
        (tmp_path / "tokenizer.json").write_text(json.dumps(content), "utf-8")
        with suppress(DeployError):
            tokenizer_bytes(read_tokenizer(tmp_path / "tokenizer.json"))


def test_the_end_is_named_or_known(tmp_path: Path) -> None:
    file = _changed(lambda _: None, tmp_path)
    assert read_tokenizer(file).ends == [2]
    assert read_tokenizer(file, ["<s>", "<unk>"]).ends == [0, 1]
    with pytest.raises(ModelError, match="the tokenizer has no token '<eos>', which --stop-token names"):
        read_tokenizer(file, ["<eos>"])


def test_not_json_and_not_a_file(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    for content in (b"", b"\xff\xfe", b'{"model": ' * 5000, b"[]"):
        file.write_bytes(content)
        with pytest.raises(ConfigError, match="is not a tokenizer"):
            read_tokenizer(file)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_tokenizer(tmp_path)
