"""Models as C arrays, as firmware holds them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

from mcudeploy.commands.loaded import load
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


def character(byte: int) -> str:
    """A character literal."""
    plain = chr(byte) if 32 <= byte < 127 and chr(byte) not in "'\"\\" else ""
    return f"'{plain or {10: chr(92) + 'n', 39: chr(92) + chr(39)}.get(byte, f'{chr(92)}x{byte:02x}')}'"


def read(text: str, folder: Path, name: str = "person.model.cc") -> tuple[str, bytes]:
    """The name and content of the model in a C file."""
    path = folder / name
    path.write_text(text)
    model = model_file(path)
    return model.name, model.read_bytes()


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
        xxd(TFLITE, number="(const unsigned char)0x{:02x}"),
        xxd(TFLITE, number="static_cast<uint8_t>({})"),
        xxd(TFLITE, number="((std::uint8_t) 0b{:b})"),
        xxd(TFLITE, number="0b0'{:b}"),
        xxd(TFLITE, number="0x0'{:x}"),
        xxd(TFLITE, number="(char)'\\x{:02x}'"),
        xxd(TFLITE, number="'\\{:o}'"),
        "char g_model[] = {" + ", ".join(map(character, TFLITE)) + "};",
        'const char model[] =\n  "' + "".join(f"\\{each:03o}" for each in TFLITE) + '";',
        "char model[] = {" + " ".join(f'"{character(each)[1:-1]}"' for each in TFLITE) + "};",
        f"/* {xxd(ONNX)} */\n#if 0\n#if A\n#else\n{xxd(ONNX)}#endif\n#else\n{xxd(TFLITE)}#endif",
        f"#if 0 || A\n{xxd(TFLITE)}#endif",
        f"#if 1\n{xxd(TFLITE)}#elif B\n{xxd(ONNX)}#else\n{xxd(ONNX)}#endif // don't",
        xxd(TFLITE).replace("264", "08"),
        "#include <a.h>\nfloat scales[] = {8, " + "0.5, " * 40 + "};\n" + xxd(TFLITE),
    ],
)
def test_a_file_with_one_model(text: str, tmp_path: Path) -> None:
    assert read(text, tmp_path) == ("person.tflite", TFLITE)


def test_an_array_of_signed_bytes(tmp_path: Path) -> None:
    signed = ", ".join(map(str, np.frombuffer(TFLITE, np.int8)))
    assert read(f"const int8_t model[] = {{{signed}}};", tmp_path) == ("person.tflite", TFLITE)


def test_an_onnx_file_in_an_array_and_another_ending(tmp_path: Path) -> None:
    assert read(xxd(ONNX), tmp_path, "net.txt") == ("net.onnx", ONNX)


@pytest.mark.parametrize("name", ["net.onnx", "net.tflite", "net.json"])
@pytest.mark.parametrize(
    "content", [TFLITE, b"{}", b"", b"int x = { 1 };", b"<a b='%d' c = \"%d\">" % (8**40, 8**40)]
)
def test_other_files_are_what_they_are(name: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert model_file(path) == path


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("int main(void);", "no array of 32 bytes or more"),
        (xxd(OTHER, "picture"), r"no array of this C file is a model.*Its arrays are picture \(40 B\)"),
        ("", r"model\.h is empty"),
        (" /* no code */ ", "no array of 32 bytes or more outside comments"),
        (f"/* {xxd(TFLITE)} */", "no array of 32 bytes or more outside comments"),
        (f"#if 0\n{xxd(TFLITE)}#endif\n", "no array of 32 bytes or more outside comments and #if 0"),
        (xxd(TFLITE, number="{}.0"), r"on line 2: element 0 of the array g_model is 28\.0, not a number"),
        (
            xxd(TFLITE).replace("0x54", "0x154"),
            "not of bytes, on line 2: element 4 of the array g_model is 0x154, not",
        ),
        (
            xxd(TFLITE).replace("0xfe", "0x1fe"),
            "is damaged on line 23: element 262 .* is 0x1fe, not a number",
        ),
        (xxd(TFLITE).replace("0xfe", "-200"), "element 262 of the array g_model is -200, not a number from"),
        (xxd(TFLITE).replace("0xfe", "0x" + "9" * 9999), "element 262 .* is 0x9999"),
        (xxd(TFLITE).replace("0xfe", "09"), "element 262 of the array g_model is 09, not a number"),
        (xxd(TFLITE).replace("0xfe", "?"), "element 262 of the array g_model is .*, not a number"),
        (xxd(TFLITE).replace("0xfe", ""), "on line 23: element 262 of the array g_model is missing"),
        (
            xxd(TFLITE).replace("};", ";"),
            "on line 23: the array g_model has no closing brace after 264 elements",
        ),
        (xxd(TFLITE)[:900], "the array g_model has no closing brace after 14. elements"),
        (xxd(TFLITE).replace("= 264", "= 300"), "g_model has 264 bytes, and g_model_len is 300"),
        (xxd(TFLITE).replace("= 264", "= 0x107u"), "g_model has 264 bytes, and g_model_len is 0x107u"),
        (xxd(TFLITE).replace("= 264", "= 0x" + "9" * 9999), "g_model_len is 0x999"),
        (f"#ifdef SMALL\n{xxd(TFLITE)}#else\n{xxd(TFLITE + b'2')}#endif", "g_model, g_model are models"),
        (xxd(TFLITE, "one") + xxd(TFLITE + b"2", "two"), "arrays one, two are models: leave one of them"),
    ],
)
def test_files_without_one_model_are_refused(text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=why):
        read(text, tmp_path, "model.h")


@pytest.mark.parametrize(
    "text",
    [
        *("/*" * 300_000, "{" * 500_000, "{0," * 200_000, "{1}" * 200_000, '"' * 400_000, "'" * 400_000),
        *("#if 0\n" * 99_999, "a={1," * 99_999, "a={" + "'1'," * 99_999 + "2", "x={" + "(" * 400_000 + "}"),
        "= " + '"x" ' * 99_999 + "'",
    ],
)
def test_no_text_takes_long(text: str, tmp_path: Path) -> None:
    begin = time.process_time()
    with pytest.raises(ModelError):
        read(text, tmp_path, "model.h")
    assert time.process_time() - begin < 3


def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.onnx")
    assert model_file(tmp_path / "model.onnx") == tmp_path / "model.onnx"


def test_errors_about_the_model_name_the_file_and_the_array(tmp_path: Path) -> None:
    path = tmp_path / "person.cc"
    path.write_text(xxd(TFLITE))
    with pytest.raises(ModelError) as caught:
        load(path)
    assert f"{path} (array g_model)" in str(caught.value)
    assert "mcudeploy-" not in str(caught.value)
