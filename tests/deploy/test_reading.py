"""Inputs from files that people have: what their bytes become, and what is refused."""

from __future__ import annotations

import io
import wave
from pathlib import Path

import numpy as np
import pytest

from mcudeploy.common.errors import UsageError
from mcudeploy.frontend.load import load
from mcudeploy.ir.graph import DType, Graph, GraphIO, Quantization, Tensor
from mcudeploy.report.outputs import outputs, read_classes, require_classes
from mcudeploy.verify.preprocessing import AS_USUAL, Preprocessing, Wanted, read_values
from mcudeploy.verify.samples import load_samples

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "vww"


def wanted(*shape: int, dtype: str = "float32", scale: Quantization | None = None) -> Wanted:
    order = np.arange(int(np.prod(shape)), dtype=np.int32)
    return Wanted(GraphIO("x", "x", shape, dtype, order), scale)


def picture(folder: Path, pixels: np.ndarray, name: str = "p.png") -> Path:
    image = pytest.importorskip("PIL.Image")
    image.fromarray(pixels).save(folder / name)
    return folder / name


def sound(path: Path, samples: bytes, channels: int = 1, width: int = 2) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(16000)
        file.writeframes(samples)
    return path


def test_the_example_s_picture_is_its_array() -> None:
    pytest.importorskip("PIL")
    graph = load(EXAMPLE / "model.onnx")
    (sample,) = load_samples(graph, [EXAMPLE / "person.png"], [], 0)
    assert np.array_equal(sample.inputs["input_1_int8"], np.load(EXAMPLE / "person.npy"))


def test_channels_stand_where_the_model_has_them(tmp_path: Path) -> None:
    pixels = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
    path = picture(tmp_path, pixels)
    asked = Preprocessing((-1, 1), (0.5, 0, 0), (1, 2, 1), "none")
    real = (pixels / 127.5 - 1 - np.array([0.5, 0, 0])) / np.array([1, 2, 1])
    assert np.allclose(read_values(path, wanted(1, 4, 6, 3), asked)[0], real)
    assert np.allclose(read_values(path, wanted(1, 3, 4, 6), asked)[0], np.moveaxis(real, -1, 0))
    codes = read_values(path, wanted(4, 6, 3, dtype="uint8"), Preprocessing(resize="none"))
    assert codes.dtype == np.uint8 and np.array_equal(codes, pixels)
    grey = read_values(path, wanted(4, 6), Preprocessing((0, 255), resize="none"))
    assert np.allclose(grey, pixels.mean(-1), atol=2)


@pytest.mark.parametrize(("resize", "left"), [("stretch", 0), ("crop", 255)])
def test_pictures_get_the_size_of_the_model(resize: str, left: int, tmp_path: Path) -> None:
    pixels = np.full((8, 16), 255, np.uint8)
    pixels[:, :4] = 0
    path = picture(tmp_path, pixels)
    values = read_values(path, wanted(1, 1, 4, 4, dtype="uint8"), Preprocessing(resize=resize))  # type: ignore[arg-type]
    assert np.allclose(values[0, 0, :, 0], left, atol=40), "a bilinear filter reaches over the edge"
    with pytest.raises(UsageError, match="16 x 8 pixels, the model needs 4 x 4"):
        read_values(path, wanted(1, 1, 4, 4), Preprocessing(resize="none"))


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_sound_is_from_minus_one_to_one(width: int, tmp_path: Path) -> None:
    codes = np.array([-(2 ** (8 * width - 1)), 0, 2 ** (8 * width - 2)], np.int64)
    stored = codes + 128 if width == 1 else codes
    raw = b"".join(int(it).to_bytes(width, "little", signed=width > 1) for it in stored)
    path = sound(tmp_path / "s.wav", raw, width=width)
    notes: list[str] = []
    assert read_values(path, wanted(1, 3), Preprocessing(on_note=notes.append)).tolist() == [[-1, 0, 0.5]]
    assert notes == ["s.wav as 3 samples, 16,000 a second, from -1 to 1"]
    scale = Quantization(1 / 64, 3)
    assert read_values(path, wanted(3, dtype="int8", scale=scale)).tolist() == [-61, 3, 35]
    if width == 2:
        assert read_values(path, wanted(3, dtype="int16")).tolist() == [-32768, 0, 16384]
        return
    with pytest.raises(UsageError, match=f"{8 * width} bits .* takes 16 bits"):
        read_values(path, wanted(3, dtype="int16"))


def test_a_half_sample_at_the_end_is_left_out(tmp_path: Path) -> None:
    path = sound(tmp_path / "s.wav", bytes(8))
    path.write_bytes(path.read_bytes()[:-1])
    assert read_values(path, wanted(3, dtype="int16")).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("content", "values"),
    [
        ("1,2.5,-3\n", [1, 2.5, -3]),
        ("a;b;c\r\n1;2;3\r\n", [1, 2, 3]),
        ("\ufeff1\n2\n\n3", [1, 2, 3]),
    ],
)
def test_text(content: str, values: list[float], tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(content.encode())
    assert read_values(tmp_path / "x.csv", wanted(1, 3)).tolist() == [values]


def test_plain_bytes_are_the_model_s_own(tmp_path: Path) -> None:
    values = np.array([[1, -2, 300]], np.int32)
    (tmp_path / "x.raw").write_bytes(values.astype("<i4").tobytes())
    assert np.array_equal(read_values(tmp_path / "x.raw", wanted(1, 3, dtype="int32")), values)


def _wav(channels: int) -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(bytes(4 * channels))
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "asked", "message"),
    [
        ("x.csv", b"1,2\n", wanted(3), r"has 2 numbers; 'x' of the model, \[3\], needs 3"),
        ("x.png", b"text", wanted(3), "is damaged: it does not begin as .png files do"),
        ("x.npy", b"", wanted(3), "is empty"),
        ("x.npz", b"PK\3\4", wanted(3), "is an archive of arrays: give one .npy file for each array"),
        ("x.csv", b"1,two,3\n", wanted(3), "'two' is not a number"),
        ("x.csv", b"a,b\nc,d\n", wanted(2), "'c' is not a number"),
        ("x.csv", b"\xff\xff", wanted(3), "is not text"),
        ("x.csv", b"1.5", wanted(1, dtype="int8"), "has fractions"),
        ("x.csv", b"300", wanted(1, dtype="uint8"), "values from 300 to 300: 'x' of the model is uint8"),
        ("x.csv", b"nan", wanted(1, dtype="int32"), "x.csv has fractions"),
        ("x.raw", b"12345", wanted(1), "has 5 bytes; 'x' of the model, float32 .1., has 4"),
        ("x.wav", _wav(2), wanted(2), "has 2 channels of 16 bits"),
        ("x.wav", _wav(1), wanted(3), r"has 2 samples; .* needs 3"),
        ("x.wav", b"RIFF\0\0\0\0WAVEjunk", wanted(3), "not a WAV file of plain samples"),
        ("x.png", b"\x89PNG\r\n\x1a\njunk", wanted(4, 4), "is a damaged picture|Pillow"),
        ("x.png", b"\x89PNG\r\n\x1a\njunk", wanted(7), "which is none of one image"),
        ("x.gif", b"GIF89a", wanted(4, 4), r"is not a \.npy, \.png"),
        ("x.npy", b"\x93NUMPYjunk", wanted(1), "is damaged"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(
    name: str, content: bytes, asked: Wanted, message: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=message):
        read_values(tmp_path / name, asked, AS_USUAL)


def test_outputs_are_shown_with_the_names_of_classes(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("cat\ndog\n \nfox\n\n")
    classes = read_classes(tmp_path / "names.txt")
    graph_io = GraphIO("y", "y", (1, 4), "uint8", np.arange(4, dtype=np.int32))
    tensor = Tensor("y", (1, 1, 4), DType.INT8, Quantization(0.5, -128))
    graph = Graph("g", {"y": tensor}, (), (graph_io,), (graph_io,), {})
    stored = {"y": np.array([[[-128, 127, 0, -126]]], np.int8)}
    require_classes(graph, classes)
    (output,) = outputs(graph, [stored], classes)
    assert output["values"] == [0, 255, 128, 2] and (output["least"], output["most"]) == (0, 255)
    assert [(it["index"], it["value"], it["real"], it["label"]) for it in output["top"]] == [
        (1, 255, 127.5, "dog"),
        (2, 128, 64, ""),
        (3, 2, 1, "fox"),
        (0, 0, 0, "cat"),
    ]
    with pytest.raises(UsageError, match=r"--classes has 2 names; .*'y' \[1, 4\]"):
        require_classes(graph, classes[:2])
    for content, ending, said in (
        (b"\n", "txt", "is empty"),
        (b"\xff", "txt", "is not UTF-8 text"),
        (b"cat\0dog", "bin", "has control characters"),
        (b"1,cat\n2,dog", "csv", "is a table of several columns"),
        (b"1\tcat", "txt", "is a table of several columns"),
    ):
        (tmp_path / f"names.{ending}").write_bytes(content)
        with pytest.raises(UsageError, match=rf"--classes .*{said}: write UTF-8 text with the name of one"):
            read_classes(tmp_path / f"names.{ending}")
    (tmp_path / "names.txt").write_text("cat, tame\ndog\n")  # as ImageNet has them
    assert read_classes(tmp_path / "names.txt") == ("cat, tame", "dog")


def test_more_text_than_numbers_need_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("1," * 2**20)
    with pytest.raises(UsageError, match="has 2,097,152 bytes; the limit for 'x' of the model"):
        read_values(tmp_path / "x.csv", wanted(1, 4))


def test_an_array_that_states_more_than_it_has_is_damage(tmp_path: Path) -> None:
    out = io.BytesIO()
    header = {"descr": "<f4", "fortran_order": False, "shape": (2**34, 1)}
    np.lib.format.write_array_header_1_0(out, header)
    (tmp_path / "x.npy").write_bytes(out.getvalue() + bytes(16))
    with pytest.raises(UsageError, match="damaged"):
        read_values(tmp_path / "x.npy", wanted(1, 4))
