"""Samples and labels: every form that is taken, and every fault with its file."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from mcudeploy.common.errors import UsageError
from mcudeploy.common.files import path_name
from mcudeploy.extensions.quantization import data
from mcudeploy.extensions.quantization.data import load_labels, open_samples
from mcudeploy.frontend.onnx.nodes import Info
from tests.networks.small import folder_of, images

ONE = (Info("image", (1, 3, 8, 8), "float32"),)
TWO = (Info("a/left", (1, 6), "float32"), Info("b", (1, 6), "float32"))
PAIR = np.arange(24, dtype=np.float32).reshape(4, 6)


def refused(path: Path, message: str, inputs: tuple[Info, ...] = ONE) -> None:
    """The error is raised when the data are opened, or when all of them are read."""
    with pytest.raises(UsageError, match=message):
        samples = open_samples(path, inputs)
        for index in range(samples.count):
            samples.load(index)


def test_all_forms_hold_the_same(tmp_path: Path) -> None:
    wanted = images(5)
    np.save(tmp_path / "all.npy", wanted)
    np.save(tmp_path / "batched.npy", wanted[:, None].astype(np.float64))
    np.savez(tmp_path / "named.npz", image=wanted, labels=np.arange(5))
    np.savez_compressed(tmp_path / "only.npz", wanted)
    folder_of(tmp_path / "folder", wanted)
    (tmp_path / "folder" / "labels.txt").write_text("0\n")
    (tmp_path / "by_name").mkdir()
    folder_of(tmp_path / "by_name" / "image", wanted[:, None])
    for name in ("all.npy", "batched.npy", "named.npz", "only.npz", "folder", "by_name"):
        samples = open_samples(tmp_path / name, ONE)
        assert samples.count == 5
        for at in range(5):
            image = samples.load(at)["image"]
            assert image.dtype == np.float32 and image.shape == (1, 3, 8, 8)
            assert np.array_equal(image[0], wanted[at])


def test_several_inputs(tmp_path: Path) -> None:
    np.savez(tmp_path / "all.npz", **{"a/left": PAIR, "b": PAIR[:, None] + 1})
    (tmp_path / "folder").mkdir()
    folder_of(tmp_path / "folder" / path_name("a/left"), PAIR)
    folder_of(tmp_path / "folder" / "b", PAIR + 1)
    for name in ("all.npz", "folder"):
        samples = open_samples(tmp_path / name, TWO)
        loaded = samples.load(2)
        assert samples.count == 4
        assert np.array_equal(loaded["a/left"][0], PAIR[2]) and np.array_equal(loaded["b"][0], PAIR[2] + 1)


def test_an_input_without_a_batch(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((3, 49, 40), np.float32))
    assert open_samples(tmp_path / "x.npy", (Info("x", (49, 40), "float32"),)).count == 3


def test_names_of_folders() -> None:
    assert [path_name(name) for name in ("x", "a/b:0", "..", "../x", "")] == ["x", "a_b_0", "_", "_x", "_"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros((4, 3, 8, 9), np.float32), r"\[4, 3, 8, 9\].*needs \[N, 3, 8, 8\] or \[N, 1, 3, 8, 8\]"),
        (np.zeros((0, 3, 8, 8), np.float32), "no samples"),
        (np.float32(1), r"has the shape \[\]"),
        (np.zeros((2, 3, 8, 8), np.uint8), "holds uint8; input 'image' of the model is float32: scale"),
        (np.full((2, 3, 8, 8), np.nan, np.float32), "sample 0 has 192 values for .* that are not finite"),
        (np.full((1, 3, 8, 8), 1e300), "sample 0 has 192 values for .* beyond the range of float32"),
        (np.array(["a"]), r"has the shape \[1\]"),
    ],
)
def test_arrays_that_do_not_fit(value: np.ndarray, message: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", value)
    refused(tmp_path / "x.npy", rf"x\.npy.*{message}")
    np.savez(tmp_path / "x.npz", image=value)
    refused(tmp_path / "x.npz", rf"x\.npz \(image\).*{message}")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros((3, 8), np.float32), r"\[3, 8\].*needs \[3, 8, 8\] or \[1, 3, 8, 8\]"),
        (np.zeros((3, 8, 8), np.int64), "holds int64"),
        (np.full((3, 8, 8), np.inf, np.float32), "not finite"),
    ],
)
def test_one_file_of_a_folder_is_named(value: np.ndarray, message: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "folder", images(3))
    np.save(folder / "001.npy", value)
    refused(folder, rf"001\.npy.*{message}")


@pytest.mark.parametrize("content", [b"", b"\x89PNG", b"\x93NUMPY\x01\x00\x05", b"PK\x03\x04none"])
def test_files_that_are_none(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(content)
    refused(path, r"x\.bin is (damaged|empty|neither a folder)")
    folder = folder_of(tmp_path / "folder", images(2))
    (folder / "000.npy").write_bytes(content)
    refused(folder, r"000\.npy is (damaged|not a \.npy)")


def test_pickles_are_not_opened(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([{}]), allow_pickle=True)
    np.savez(tmp_path / "x.npz", image=np.array([{}]))
    for name in ("x.npy", "x.npz"):
        refused(tmp_path / name, "holds no plain numbers")


def test_folders_without_samples(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    refused(folder, "needs .npy files, one for each sample; it has nothing")
    (folder / "a.png").write_bytes(b"x")
    (folder / "cats").mkdir()
    refused(folder, r"it has 1 \.png, 1 folder")
    refused(folder, "a subfolder of .npy files for each input: a_left/, b/", TWO)


def test_a_sample_that_lacks_an_input(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    folder_of(folder / "a_left", PAIR)
    folder_of(folder / "b", PAIR[:2])
    refused(folder, r"b has no 002\.npy: each sample needs a file.*2 files missing", TWO)


def test_archives_without_arrays_of_inputs(tmp_path: Path) -> None:
    np.savez(tmp_path / "empty.npz")
    refused(tmp_path / "empty.npz", "has no array 'image'; it has no arrays at all.*numpy.savez writes")
    np.savez(tmp_path / "labels.npz", y=np.arange(3))
    refused(tmp_path / "labels.npz", "has no array 'image'; it has labels alone, as 'y'")


def test_archives_that_do_not_fit(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=PAIR, b=PAIR)
    refused(
        tmp_path / "x.npz", "has no array 'a/left'; it has a, b. It needs one for each .*: a/left, b", TWO
    )
    refused(tmp_path / "x.npz", "has no array 'image'")
    np.savez(tmp_path / "x.npz", **{"a/left": PAIR, "b": PAIR[:3]})
    refused(tmp_path / "x.npz", "different numbers of samples: a/left: 4, b: 3", TWO)
    np.save(tmp_path / "x.npy", PAIR)
    refused(tmp_path / "x.npy", "is one array; the model has 2 inputs", TWO)
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("image.npy", b"no array")
    refused(tmp_path / "x.npz", "damaged")


def test_labels(tmp_path: Path) -> None:
    np.save(tmp_path / "l.npy", np.array([[2], [0], [1]], np.uint8))
    (tmp_path / "l.txt").write_text("2\n0\r\n 1 \n\n")
    for name in ("l.npy", "l.txt"):
        assert load_labels(tmp_path / name, 3).tolist() == [2, 0, 1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1\n2\n", "has 2 labels for 3 samples"),
        ("1\n-2\n0\n", "has the label -2: classes are counted from 0"),
        ("1\ncat\n0\n", "line 2: 'cat' is not a class number"),
        (b"\xff\xfe\x00", "is neither a .npy file nor text"),
        (np.zeros(3, np.float32), "has labels of float32"),
        (np.zeros((3, 2), np.int64), r"of int64 \[3, 2\];"),
        (np.int64(3), r"of int64 \[\];"),
    ],
)
def test_wrong_labels(content: str | bytes | np.ndarray, message: str, tmp_path: Path) -> None:
    path = tmp_path / "labels.npy"
    if isinstance(content, np.ndarray | np.generic):
        np.save(path, content)
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(UsageError, match=rf"labels\.npy.*{message}"):
        load_labels(path, 3)


def test_sizes_are_read_before_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive of a few bytes may unpack to gigabytes."""

    def never(*_: object) -> None:
        pytest.fail("an array was read")

    monkeypatch.setattr(data, "_unpacked", never)
    np.savez_compressed(tmp_path / "x.npz", image=np.zeros((9, 7, 2**20), np.uint8))
    assert (tmp_path / "x.npz").stat().st_size < 2**17
    refused(tmp_path / "x.npz", r"has the shape \[9, 7, 1048576\]")
    np.savez_compressed(tmp_path / "x.npz", image=images(5))
    monkeypatch.setattr(data, "_MOST_BYTES", 2**6)
    refused(tmp_path / "x.npz", "unpacks to .* GiB; the limit is .*: give a folder")


@pytest.mark.parametrize("shape", [(2**40, 6), (5, 6), (3, 6)])
def test_a_header_that_states_another_size_is_damage(shape: tuple[int, int], tmp_path: Path) -> None:
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": "<f4", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("a.npy", out.getvalue() + PAIR.tobytes())
    refused(tmp_path / "x.npz", "damaged", TWO[:1])


def _with_header(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + bytes(4 * 192)


@pytest.mark.parametrize(
    "text",
    ["{'descr': '<f4', 'fortran_order': False, 'shape': (1,3,8,8),", "{'descr': '<f4' 5}", "{'shape': [",
     "{'descr': '<f4', 'fortran_order': False, 'shape': (True,3,8,8)}",
     "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,3,8,8)}"],
)  # fmt: skip
@pytest.mark.parametrize("packed", [False, True])
def test_a_damaged_header_is_named(text: str, packed: bool, tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("image.npy", _with_header(text))
    if not packed:
        path = tmp_path / "x.npy"
        path.write_bytes(_with_header(text))
    refused(path, r"is damaged, or holds no plain numbers \(.*header")


@pytest.mark.parametrize(
    ("method", "changes", "message"),
    [(zipfile.ZIP_STORED, {(0, 6): 1, (1, 8): 1}, "it is encrypted"),
     (zipfile.ZIP_STORED, {(0, 8): 99, (1, 10): 99}, "compression"),
     (zipfile.ZIP_LZMA, {(0, 43): 255}, "")],
)  # fmt: skip
def test_an_archive_that_cannot_be_unpacked_says_why(
    method: int, changes: dict[tuple[int, int], int], message: str, tmp_path: Path
) -> None:
    """Changes of bytes from the start of the local and of the central header."""
    stream, array = io.BytesIO(), io.BytesIO()
    np.save(array, images(2))
    with zipfile.ZipFile(stream, "w", method) as archive:
        archive.writestr("image.npy", array.getvalue())
    content = bytearray(stream.getvalue())
    for (header, at), value in changes.items():
        content[content.index((b"PK\x03\x04", b"PK\x01\x02")[header]) + at] = value
    path = tmp_path / "x.npz"
    path.write_bytes(content)
    refused(path, rf"is damaged, or holds no plain numbers \(.*{message}")
