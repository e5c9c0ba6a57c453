"""A folder that `build` owns: a manifest lists its files, and their content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from mcudeploy import __version__
from mcudeploy.common.errors import UsageError
from mcudeploy.common.files import read_regular, require_room, same_file, write_files

Content = str | bytes
MANIFEST = "mcudeploy.json"
_MOST_BYTES = 2**20
_COMPILED = tuple(
    f"{folder}/*.[ch]" for folder in ("src", "include", "Src", "Inc", "csrc", "csrc/include", "components/*")
)
"""Patterns of the files that a build system compiles, whoever wrote them."""
_SHOWN = 10
_OVERWRITE = "choose another folder, or overwrite the files of this one with --force"


def require_ours(directory: Path, files: Mapping[str, Content]) -> None:
    """Raise UsageError that names all foreign files.

    These were changed since an earlier build, were added beside its sources, or would be replaced by `files`.
    """
    require_no_links(directory, [*files, MANIFEST, *(it.rpartition("/")[0] for it in _COMPILED)])
    known = _manifest(directory)
    present = {
        name for name in (*known, *files) if (directory / name).is_symlink() or (directory / name).exists()
    }
    present |= _compiled(directory)
    foreign = [
        name
        for name in sorted(present)
        if (digest := _digest_of(directory / name)) is None
        or (digest != known.get(name) and not (name in files and digest == _digest(files[name])))
    ]
    if foreign:
        more = f" and {len(foreign) - _SHOWN} more" if len(foreign) > _SHOWN else ""
        raise UsageError(
            f"{directory} has files that this build did not write, or that were edited: "
            f"{', '.join(foreign[:_SHOWN])}{more}. Choose another folder, or overwrite them with --force; "
            "all models of a folder are built by one command"
        )


def _compiled(directory: Path) -> set[str]:
    return {path.relative_to(directory).as_posix() for it in _COMPILED for path in directory.glob(it)}


def write_folder(
    directory: Path, files: Mapping[str, Content], *, read: Sequence[Path] = (), force: bool = False
) -> list[Path]:
    """Replace the files of an earlier build in `directory` by `files`, and remove its other files.

    With `force` files of others are overwritten too, but never removed, nor the inputs in `read`. Otherwise
    they raise UsageError, as does a link, a folder or a pipe in the place of a file. Raises OSError if a file
    cannot be written; folders that were created for it are then removed.
    """
    require_no_links(directory, [*files, MANIFEST])
    for name in (*files, MANIFEST):
        for source in read:
            if same_file(directory / name, source):
                raise UsageError(f"{directory / name} is an input of this command: choose another folder")
        if (directory / name).exists() and not (directory / name).is_file():
            raise UsageError(f"{directory / name} is not a regular file: choose another folder")
    if not force:
        require_ours(directory, files)
    stale = [directory / name for name in _unchanged(directory) if name not in files]
    stale = [path for path in stale if _link_in(directory, path) is None]
    stale = [path for path in stale if not any(same_file(path, source) for source in read)]
    digests = digests_of(files)
    manifest = json.dumps({"generator": f"mcudeploy {__version__}", "files": digests}, indent=1) + "\n"
    written = {directory / name: files[name] for name in digests} | {directory / MANIFEST: manifest}
    folders = {folder for path in written for folder in path.parents}
    with _created(folders) as created:
        write_files(written)
        created.clear()
    for path in stale:
        path.unlink(missing_ok=True)
    return list(written)


def require_writable(directory: Path) -> None:
    """Raise OSError if the folder of an output, or a file in it, cannot be created; leave it as it was."""
    with _created({directory, *directory.parents}):
        require_room(directory / MANIFEST, 0)


@contextmanager
def _created(folders: Iterable[Path]) -> Iterator[list[Path]]:
    """Create the missing folders and yield them; remove those that the list still has when the block ends."""
    created = sorted(folder for folder in folders if not folder.exists())
    try:
        for folder in created:
            folder.mkdir(exist_ok=True)
        yield created
    finally:
        for folder in reversed(created):
            with suppress(OSError):  # it does not exist, or is not empty
                folder.rmdir()


def require_no_links(directory: Path, names: Iterable[str]) -> None:
    """Raise UsageError if one of these files would be written through a link below the folder."""
    links = (_link_in(directory, directory / name) for name in names)
    link = next((it for it in links if it is not None), None)
    if link is not None:
        raise UsageError(
            f"{link} is a link, and nothing is written through links inside an output folder: remove it, or "
            "choose another folder"
        )


def _link_in(directory: Path, path: Path) -> Path | None:
    """Return the first link on the way from a folder to a path below it."""
    way = [path, *path.parents]
    return next((it for it in reversed(way[: way.index(directory)]) if it.is_symlink()), None)


def _unchanged(directory: Path) -> list[str]:
    """Return the files that an earlier build wrote and nobody edited; none if the manifest is damaged."""
    try:
        known = _manifest(directory)
    except UsageError:
        return []
    return [name for name, digest in known.items() if _digest_of(directory / name) == digest]


def contents_of(directory: Path) -> dict[str, bytes]:
    """Return the files of an earlier build in a folder by name, and those added beside its sources.

    Files that are gone are left out. A folder that `build` did not write has none.
    """
    known = _manifest(directory, "build the library again")
    paths = {name: directory / name for name in sorted({*known, *(_compiled(directory) if known else ())})}
    return {name: path.read_bytes() for name, path in paths.items() if path.is_file()}


def _manifest(directory: Path, way_out: str = _OVERWRITE) -> dict[str, str]:
    """Return the files of the manifest, each with its SHA-256; none if there is no manifest.

    Raises UsageError with a way out if it is damaged.
    """
    path = directory / MANIFEST
    if not path.exists():
        return {}
    try:
        files = json.loads(read_regular(path, _MOST_BYTES))["files"]
        inside = directory.resolve()
        sound = all(
            isinstance(digest, str) and (directory / name).resolve().is_relative_to(inside)
            for name, digest in files.items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(f"{path} is damaged: {way_out}") from error
    if not sound:
        raise UsageError(f"{path} is damaged: {way_out}")
    return dict(files)


def _digest_of(path: Path) -> str | None:
    """Return the digest of a file's content; None for a folder, a pipe, or a dangling link."""
    return _digest(path.read_bytes()) if path.is_file() else None


def digests_of(files: Mapping[str, Content]) -> dict[str, str]:
    """Return the SHA-256 of each file, by path in order."""
    return {name: _digest(content) for name, content in sorted(files.items())}


def _digest(content: Content) -> str:
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()
