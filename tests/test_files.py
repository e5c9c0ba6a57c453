"""Files are read within a limit, written whole or not at all, and ours are told from others."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from mcudeploy.common.files import is_ours, read_limited, same_file, write_file, write_files
from mcudeploy.extensions.evaluation.gate_report import junit, markdown
from mcudeploy.extensions.graphs.rectfile import write_rectangles
from mcudeploy.report.chart import Drawing, html_page, svg_picture


def _leftovers(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_files_replace_and_keep_permissions_and_links(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    path, link = tmp_path / "real" / "a.json", tmp_path / "link.json"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    write_files({link: "new\n", tmp_path / "b.bin": b"\x00\xff"})
    assert link.is_symlink() and path.read_bytes() == b"new\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "b.bin").read_bytes() == b"\x00\xff"
    assert _leftovers(tmp_path) == {"real", "link.json", "b.bin"} and _leftovers(path.parent) == {"a.json"}


def test_a_name_of_full_length_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("ä" * 127 + "x")
    write_file(path, "text")
    assert path.read_text() == "text"


def test_a_failed_write_changes_nothing_and_names_the_file(tmp_path: Path) -> None:
    """A file size limit stands for a full disk: the write itself fails, half way."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("old")
    program = (
        "import sys, pathlib; from mcudeploy.common.files import require_room, write_files\n"
        "first, second = map(pathlib.Path, sys.argv[1:])\n"
        "try: write_files({first: 'new', second: 'x' * 200_000})\n"
        "except OSError as error: print(error.filename, error.strerror)\n"
        "require_room(first, 90_000)\n"
        "try: require_room(second, 200_000)\n"
        "except OSError as error: print(error.filename, error.strerror)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(first), str(second)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == f"{second} File too large\n" * 2
    assert first.read_text() == "old" and _leftovers(tmp_path) == {"first"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_devices_are_written_to_and_not_replaced() -> None:
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        write_file(Path("/dev/full"), "text")
    assert Path("/dev/full").is_char_device()


def test_reading_ends_at_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"12345")
    assert read_limited(path, 5) == b"12345"
    with pytest.raises(OSError, match="larger than"):
        read_limited(path, 4)
    for other in ("/dev/zero", "/dev/null"):
        with pytest.raises(OSError, match="not a file"):
            read_limited(Path(other), 4)
    read, write = os.pipe()
    os.write(write, b"12345")
    os.close(write)
    assert read_limited(Path(f"/dev/fd/{read}"), 5) == b"12345"
    os.close(read)


def test_one_file_by_many_names(tmp_path: Path) -> None:
    path = tmp_path / "a"
    assert same_file(path, tmp_path / "." / "a") and not same_file(path, tmp_path / "b")
    path.write_text("x")
    (tmp_path / "hard").hardlink_to(path)
    (tmp_path / "soft").symlink_to(path)
    assert same_file(path, tmp_path / "hard") and same_file(tmp_path / "soft", tmp_path / "hard")
    (tmp_path / "dangling").symlink_to(tmp_path / "c")
    assert same_file(tmp_path / "c", tmp_path / "dangling")


def test_our_files_are_known(tmp_path: Path) -> None:
    drawing = Drawing("m.onnx", "host", 1, (), (), ())
    texts = {"a.svg": svg_picture(drawing), "a.html": html_page(drawing), "empty": ""}
    for passed in (True, False):
        report = {"passed": passed, "against": None, "results": []}
        texts |= {f"{passed} against.md": markdown({**report, "against": "a (b)"})}
        texts |= {f"{passed}.md": markdown(report), f"{passed}.xml": junit(report)}
    for name, text in texts.items():
        write_file(tmp_path / name, text)
    write_rectangles(tmp_path / "a.csv", ())
    others = {
        "b.svg": '<svg xmlns="http://www.w3.org/2000/svg">\n<title>mine</title></svg>',
        "b.html": "<!DOCTYPE html>\n<title>mine</title>",
        "b.json": '{"name": "mine", "order": []}',
        "b.csv": "id,lower,upper,size\n",
        "m.onnx": "\x08\x08\x12\x00",
        "b.md": "All budgets are kept.\n",
        "b.xml": '<?xml version="1.0" encoding="utf-8"?>\n<testsuite name="mine">',
    }
    for name, text in others.items():
        write_file(tmp_path / name, text)
    ours = {path.name for path in tmp_path.iterdir() if is_ours(path)}
    assert ours == {*texts, "a.csv"}
