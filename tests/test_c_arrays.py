"""Models as C arrays, as firmware holds them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

from mcudeploy.common.c_arrays import model_file
from mcudeploy.common.errors import ModelError

TFLITE = b"\x1c\0\0\0TFL3" + bytes(range(256))
ONNX = b"\x08\x09" + bytes(range(60))
OTHER = bytes(range(40))


def xxd(content: bytes, name: str = "g_model", number: str = "0x{:02x}") -> str:
    """The output of `xxd -i`."""
    rows = [content[at : at + 12] for at in range(0, len(content), 12)]
    body = ",\n".join("  " + ", ".join(map(number.format, row)) for row in rows)
    return f"unsigned char {name}[] = {{\n{body}\n}};\nunsigned int {name}_len = {len(content)};\n"


def read(text: str, folder: Path, name: str = "person.model.cc") -> tuple[str, bytes]:
    """The name and content of the model in a C file."""
    path = folder / name
    path.write_text(text)
    found = model_file(path)
    return found.name, found.read_bytes()


@pytest.mark.parametrize(
    "text",
    [
        xxd(TFLITE),
        xxd(TFLITE, number="{}"),
        xxd(TFLITE, number="0X{:X}u"),
        xxd(TFLITE, number="0{:o}"),
        xxd(TFLITE).replace("\n};", ",\n};"),
        xxd(TFLITE).replace("unsigned char g_model[]", "alignas(16) const uint8_t g_model[264] PROGMEM"),
        xxd(TFLITE).replace("g_model[]", "model[] __attribute__((aligned(4)))"),
        "/* { 1, 2 } */ // {3}\n" + xxd(TFLITE).replace("0x54", "/* T */ 0x54 // 4\n"),
        "#include <model.h>\n" + xxd(OTHER, "picture") + xxd(TFLITE) + "int f(void) { return 0; }\n",
        xxd(TFLITE, "one") + xxd(TFLITE, "same"),
    ],
    ids=str,
)
def test_a_file_with_one_model(text: str, tmp_path: Path) -> None:
    assert read(text, tmp_path) == ("person.tflite", TFLITE)


def test_an_array_of_signed_bytes(tmp_path: Path) -> None:
    signed = ", ".join(map(str, np.frombuffer(TFLITE, np.int8)))
    assert read(f"const int8_t model[] = {{{signed}}};", tmp_path) == ("person.tflite", TFLITE)


def test_an_onnx_file_in_an_array_and_another_ending(tmp_path: Path) -> None:
    assert read(xxd(ONNX), tmp_path, "net.txt") == ("net.onnx", ONNX)


@pytest.mark.parametrize("name", ["net.onnx", "net.tflite", "net.json"])
@pytest.mark.parametrize("content", [TFLITE, b"{}", b"", b"int x = { 1 };"])
def test_other_files_are_what_they_are(name: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert model_file(path) == path


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("int main(void);", "no array of 32 bytes or more"),
        (xxd(OTHER, "picture"), r"no array of this C file is a model.*Its arrays are picture \(40 B\)"),
        (xxd(TFLITE, number="{}.0"), "no array of 32 bytes"),
        (xxd(TFLITE).replace("0x54", "0x154"), "no array of 32 bytes"),
        (xxd(TFLITE).replace("0x54", "-200"), "no array of 32 bytes"),
        (xxd(TFLITE).replace("0x54", "09"), "no array of 32 bytes"),
        (xxd(TFLITE, "one") + xxd(TFLITE + b"2", "two"), "arrays one, two are models: leave one of them"),
    ],
)
def test_files_without_one_model_are_refused(text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=why):
        read(text, tmp_path, "model.h")


@pytest.mark.parametrize("text", ["/*" * 300_000, "{" * 500_000, "{0," * 200_000, "{1}" * 200_000])
def test_no_text_takes_long(text: str, tmp_path: Path) -> None:
    begin = time.process_time()
    with pytest.raises(ModelError):
        read(text, tmp_path, "model.h")
    assert time.process_time() - begin < 3


def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.onnx")
    assert model_file(tmp_path / "model.onnx") == tmp_path / "model.onnx"
