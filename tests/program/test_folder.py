"""A folder that `build` owns: its own files are replaced and removed, those of others stay."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from pathlib import Path

import pytest

from mcudeploy.boards.catalogue import load_board
from mcudeploy.codegen.folder import MANIFEST, require_ours, require_writable, write_folder
from mcudeploy.commands import build
from mcudeploy.common.errors import UsageError
from mcudeploy.execution.parts import BuildRequest
from mcudeploy.planner.plan_options import Options

FILES = {"src/a.c": "int a;\n", "include/a.h": "#pragma once\n", "firmware/a.elf": b"\x7fELF"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files of an earlier build."""
    write_folder(tmp_path / "out", FILES)
    return tmp_path / "out"


def _names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_the_manifest_says_what_was_written(folder: Path) -> None:
    text = (folder / MANIFEST).read_text()
    files = json.loads(text)["files"]
    assert list(files) == sorted(FILES)
    assert files["src/a.c"] == hashlib.sha256(b"int a;\n").hexdigest()
    write_folder(folder, FILES)
    assert (folder / MANIFEST).read_text() == text


def test_its_own_files_are_replaced_and_stale_ones_removed(folder: Path) -> None:
    (folder / "notes.txt").write_text("mine")
    (folder / "build").mkdir()
    (folder / "build" / "x.c").write_text("of cmake")
    write_folder(folder, {"src/b.c": "int b;\n", "include/a.h": "/* new */\n"})
    assert _names(folder) == {"src/b.c", "include/a.h", MANIFEST, "notes.txt", "build/x.c"}
    assert (folder / "include" / "a.h").read_text() == "/* new */\n"


def test_a_full_disk_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "out").mkdir()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("mcudeploy.common.files._stage", full)
    for directory in ("new/library", "out"):
        with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
            write_folder(tmp_path / directory, FILES)
    assert [path.name for path in tmp_path.rglob("*")] == ["out"]


def test_a_folder_that_cannot_be_made_is_known_before_a_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_writable(tmp_path / "new" / "library")
    assert not list(tmp_path.rglob("*"))
    (tmp_path / "file").write_text("")
    monkeypatch.delattr(build, "built_model")
    with pytest.raises(NotADirectoryError, match="file/out"):
        paths = [tmp_path / "m.onnx"]
        build.build_models(BuildRequest(paths, load_board("host"), Options(), tmp_path / "file" / "out"))


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_what_is_not_a_file_is_refused(kind: str, force: bool, folder: Path) -> None:
    (folder / "src/a.c").unlink()
    (os.mkfifo if kind == "pipe" else os.mkdir)(folder / "src/a.c")
    with pytest.raises(UsageError, match=r"src/a\.c"):
        write_folder(folder, FILES, force=force)
    with pytest.raises(UsageError, match=r"src/a\.c"):
        require_ours(folder, {})


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("src/a.c", "edited"),
        ("src/other.c", "foreign source"),
        ("include/other.h", ""),
        ("library.json", "x"),
    ],
)
def test_files_of_others_are_named_and_overwritten_by_force_only(
    name: str, content: str, folder: Path
) -> None:
    (folder / name).write_text(content)
    before = {path: (folder / path).read_bytes() for path in _names(folder)}
    new = {"src/b.c": "int b;\n", "library.json": "{}"}
    with pytest.raises(UsageError, match=rf"{name}.*--force"):
        write_folder(folder, new)
    assert before == {path: (folder / path).read_bytes() for path in _names(folder)}
    write_folder(folder, new, force=True)
    expected = {*new, MANIFEST} | ({name} if name != "library.json" else set())
    assert _names(folder) == expected, "ours are replaced and removed, those of others are never removed"


@pytest.mark.parametrize(
    "manifest",
    [
        "",
        "[]",
        "{}",
        '{"files": []}',
        '{"files": {"src/a.c": 1}}',
        "[" * 100_000,
        '{"files": {"../x": "HASH"}}',
    ],
)
def test_a_damaged_manifest_removes_nothing(manifest: str, folder: Path) -> None:
    outside = folder.parent / "x"
    outside.write_text("mine")
    digest = hashlib.sha256(b"mine").hexdigest()
    (folder / MANIFEST).write_text(manifest.replace("HASH", digest))
    with pytest.raises(UsageError, match=r"is damaged: .*--force"):
        require_ours(folder, {})
    write_folder(folder, {"src/b.c": "int b;\n"}, force=True)
    assert outside.read_text() == "mine"
    assert (folder / "src" / "a.c").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_in_the_place_of_the_manifest_is_not_waited_for(folder: Path) -> None:
    (folder / MANIFEST).unlink()
    os.mkfifo(folder / MANIFEST)
    with pytest.raises(UsageError, match=r"is damaged: .*--force"):
        require_ours(folder, {})


def test_files_that_an_older_version_left_are_named(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.c").write_text("other")
    with pytest.raises(UsageError, match=r"src/a\.c"):
        write_folder(tmp_path, FILES)
    (tmp_path / "src" / "a.c").write_text("int a;\n")
    assert write_folder(tmp_path, FILES)  # the same content is as good as ours


@pytest.mark.parametrize("name", ["src/a.c", MANIFEST])
def test_what_the_command_has_read_is_never_overwritten(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "out"
    (folder / "src").mkdir(parents=True)
    (folder / name).write_text("a model")
    other = tmp_path / "model.onnx"
    other.symlink_to(folder / name)
    with pytest.raises(UsageError, match="is an input of this command"):
        write_folder(folder, FILES, read=[other], force=True)
    assert (folder / name).read_text() == "a model"


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("name", ["src", "src/a.c", "include", MANIFEST])
def test_nothing_is_written_through_a_link(tmp_path: Path, name: str, force: bool) -> None:
    folder, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    (folder / name).parent.mkdir(parents=True)
    elsewhere.mkdir()
    target = elsewhere / "file" if "." in name else elsewhere
    (folder / name).symlink_to(target)
    if name == "include":
        (elsewhere / "b.h").write_text("int b;\n")
    with pytest.raises(UsageError, match=rf"{name} is a link"):
        write_folder(folder, FILES | {"include/b.h": "int b;\n"}, force=force)
    assert sorted(it.name for it in elsewhere.iterdir()) == (["b.h"] if name == "include" else [])
    with pytest.raises(UsageError, match=rf"{name} is a link"):
        require_ours(folder, FILES)


def test_what_an_earlier_build_wrote_is_not_removed_through_a_link(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    write_folder(folder, FILES | {"old/b.c": "int b;\n"})
    (folder / "old").rename(elsewhere)
    (folder / "old").symlink_to(elsewhere)
    assert write_folder(folder, FILES, force=True)
    assert (elsewhere / "b.c").exists()


def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "real")
    assert write_folder(tmp_path / "out", FILES) and (tmp_path / "real" / "src" / "a.c").is_file()
