"""Samples of a model's inputs: a folder of .npy files, an .npz, or one .npy; and the label of each sample."""

from __future__ import annotations

import lzma
import math
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.common.errors import UsageError
from mcudeploy.common.files import path_name, read_limited
from mcudeploy.common.text import agree, count_text, first_line, printable
from mcudeploy.frontend.onnx.nodes import Info
from mcudeploy.verify.preprocessing import array_header

Array = NDArray[Any]
Sample = Mapping[str, Array]
"""Values by input name, in the model's shapes and types."""

_MOST_BYTES = 2**30
"""Limit in bytes of the data loaded from one .npz; a folder of files is read sample by sample."""
_MOST_LABEL_BYTES = 2**26
_NPY, _ZIP = b"\x93NUMPY", (b"PK\x03\x04", b"PK\x05\x06")
"""First bytes of files; an archive without arrays begins differently."""
_FAULTS = (OSError, ValueError, EOFError, OverflowError, MemoryError, KeyError)
_UNPACKING = (zipfile.BadZipFile, zlib.error, lzma.LZMAError)
_DAMAGED = (*_FAULTS, *_UNPACKING, RuntimeError)  # zipfile's error of an encrypted file, or of another method


LABELS = ("labels", "label", "targets", "target", "y", "y_test")
"""Names of an array in an .npz that holds the label of each sample."""

Fit = Callable[[Array, Info, str], Array]
"""Converts a value to the shape and type of its input; the text names its source in errors."""


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """`count` samples; `load` reads a sample by its number, and raises UsageError naming its file.

    `labels`: of all samples along the first axis, if the file contains them. `files`: the file of each
    sample, if every sample has its own.
    """

    count: int
    load: Callable[[int], Sample]
    labels: Array | None = None
    files: Sequence[Path] = ()

    def name(self, number: int) -> str:
        """The name of a sample in reports: its file's name, or its number."""
        return self.files[number].name if self.files else f"sample {number}"


def open_samples(path: Path, inputs: Sequence[Info], fit: Fit | None = None) -> Samples:
    """Open the samples in a folder or file, for the inputs of a model (static shapes).

    A folder has one .npy file for each sample, in the order of their names. For several inputs it has a
    subfolder for each, called `path_name` of the input, with the same file names in all of them. An .npz
    has an array for each input, by its name, and a .npy serves a single input; the first axis counts samples.

    A sample has the shape of the input; a leading axis of 1 may be omitted. Raises UsageError naming the
    file, its content and the expected one.
    """
    fit = fit or _fit
    if path.is_dir():
        return _from_folder(path, inputs, fit)
    head = _head(path)
    if head.startswith(_ZIP):
        arrays, labels = _arrays(path, inputs)
        return replace(_stacked(arrays, inputs, fit), labels=labels)
    if head.startswith(_NPY):
        if len(inputs) != 1:
            raise UsageError(
                f"{path} is one array; the model has {len(inputs)} inputs ({_listed(inputs)}): give an .npz "
                "with an array for each, or a folder"
            )
        return _stacked({inputs[0].name: (str(path), _load(path))}, inputs, fit)
    if not head:
        raise UsageError(f"{path} is empty")
    raise UsageError(
        f"{path} is neither a folder, nor an .npz or .npy file: write samples with numpy.savez or numpy.save"
    )


def _listed(inputs: Sequence[Info]) -> str:
    return ", ".join(printable(info.name) for info in inputs)


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(len(_NPY))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error


def _load(path: Path) -> Array:
    """The array of a .npy file, mapped into memory: only shape and type are read at once."""
    if not _head(path).startswith(_NPY):
        raise UsageError(f"{path} is not a .npy file: write the values with numpy.save")
    try:
        with path.open("rb") as stream:
            array_header(stream)
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except _DAMAGED as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> UsageError:
    return UsageError(f"{path} is damaged, or holds no plain numbers ({printable(first_line(error))})")


def _from_folder(folder: Path, inputs: Sequence[Info], fit: Fit) -> Samples:
    single = inputs[0]
    files = {single.name: _files(folder)}
    if len(inputs) > 1 or not files[single.name]:
        files = {info.name: _files(folder / path_name(info.name)) for info in inputs}
    if not any(files.values()):
        wanted = f"{folder} needs .npy files, one for each sample"
        if len(inputs) > 1:
            names = ", ".join(f"{path_name(info.name)}/" for info in inputs)
            wanted = f"{folder} needs a subfolder of .npy files for each input: {names}"
        raise UsageError(f"{wanted}; it has {_contents(folder)}")
    every = sorted({path.name for paths in files.values() for path in paths})
    for info in inputs:
        missing = sorted(set(every) - {path.name for path in files[info.name]})
        if missing:
            raise UsageError(
                f"{folder / path_name(info.name)} has no {missing[0]}: each sample needs a file of the "
                f"same name for every input ({count_text(len(missing), 'file')} missing)"
            )

    def load(index: int) -> Sample:
        return {
            info.name: fit(_load(files[info.name][index]), info, str(files[info.name][index]))
            for info in inputs
        }

    return Samples(len(every), load, files=files[single.name])


def _files(folder: Path) -> list[Path]:
    try:
        arrays = [
            path for path in folder.iterdir() if path.suffix == ".npy" and not path.name.startswith(".")
        ]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise UsageError(f"{folder} cannot be read: {error.strerror}") from error
    return sorted(path for path in arrays if path.is_file())


def _contents(folder: Path) -> str:
    """The entries of a folder, by kind."""
    kinds = Counter("folder" if path.is_dir() else path.suffix or "other" for path in folder.iterdir())
    return ", ".join(
        count_text(number, "folder") if kind == "folder" else f"{number:,} {printable(kind)}"
        for kind, number in kinds.most_common(4)
    ) or "nothing"  # fmt: skip


def _arrays(path: Path, inputs: Sequence[Info]) -> tuple[dict[str, tuple[str, Array]], Array | None]:
    """Return the name in messages and the array of each input, and the labels, if there are any."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
            keys = {info.name: info.name for info in inputs}
            label_names = [name for name in LABELS if name in members and name not in keys]
            if len(label_names) > 1:
                twice = " and as ".join(label_names)
                raise UsageError(f"{path} has labels twice, as {twice}: keep one of them")
            labels = label_names[0] if label_names else None
            values = [name for name in members if name != labels]
            if len(inputs) == 1 and len(values) == 1:
                keys = {inputs[0].name: values[0]}

            missing = [key for key in keys.values() if key not in members]
            if missing:
                others = "no arrays at all" if labels is None else f"labels alone, as {labels!r}"
                raise UsageError(
                    f"{path} has no array {printable(missing[0])!r}; it has "
                    f"{', '.join(map(printable, values[:8])) or others}. It needs one for each input of the "
                    f"model: {_listed(inputs)}. numpy.savez writes arrays by name"
                )
            names = {name: f"{path} ({printable(key)})" for name, key in keys.items()}
            for info in inputs:
                _require_stacked(names[info.name], _shape_of(archive, members[keys[info.name]]), info)

            wanted = {*keys.values(), *([] if labels is None else [labels])}
            size = sum(members[key].file_size for key in wanted)
            if size > _MOST_BYTES:
                raise UsageError(
                    f"{path} unpacks to {size / 2**30:.1f} GiB; the limit is {_MOST_BYTES // 2**30} GiB: "
                    "give a folder with a file for each sample"
                )
            if labels is not None:
                _shape_of(archive, members[labels])
            arrays = {name: (names[name], _unpacked(archive, members[key])) for name, key in keys.items()}
            return arrays, None if labels is None else _unpacked(archive, members[labels])
    except _DAMAGED as error:
        raise _damaged(path, error) from error


def _shape_of(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> tuple[int, ...]:
    """The shape of an array, from its header. Raises ValueError unless it fits the size in the archive."""
    if entry.flag_bits & 1:
        raise ValueError("it is encrypted")
    with archive.open(entry) as stream:
        shape, dtype = array_header(stream)
        if dtype.hasobject or stream.tell() + math.prod(shape) * dtype.itemsize != entry.file_size:
            raise ValueError("it holds objects, or is not whole")
    return shape


def _unpacked(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Array:
    with archive.open(entry) as stream:
        return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))


def _require_stacked(where: str, actual: tuple[int, ...], info: Info) -> None:
    """Raise UsageError unless `actual` is the shape of samples along the first axis."""
    shape = tuple(info.shape or ())
    if not actual or actual[1:] not in (shape, _without_batch(shape)):
        raise UsageError(
            f"{where} has the shape {list(actual)}; input {printable(info.name)!r} of the model "
            f"needs {_wanted(shape, stacked=True)}, the first axis counting samples"
        )
    if not actual[0]:
        raise UsageError(f"{where} has the shape {list(actual)}: no samples")


def _stacked(arrays: Mapping[str, tuple[str, Array]], inputs: Sequence[Info], fit: Fit) -> Samples:
    """Samples along the first axis."""
    for info in inputs:
        where, array = arrays[info.name]
        _require_stacked(where, array.shape, info)
    counts = {name: len(array) for name, (_, array) in arrays.items()}
    if len(set(counts.values())) > 1:
        counts_text = ", ".join(f"{printable(name)}: {number:,}" for name, number in counts.items())
        raise UsageError(f"the inputs have different numbers of samples: {counts_text}")

    def load(index: int) -> Sample:
        return {
            info.name: fit(np.asarray(array[index]), info, f"{where}, sample {index}")
            for info in inputs
            for where, array in (arrays[info.name],)
        }

    return Samples(next(iter(counts.values())), load)


def _without_batch(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape[1:] if shape[:1] == (1,) else shape


def _wanted(shape: tuple[int, ...], *, stacked: bool = False) -> str:
    """The shapes that an input accepts, in words; `stacked`: with N samples along the first axis."""
    shapes = [
        ["N", *it] if stacked else list(it) for it in dict.fromkeys((_without_batch(shape), shape))
    ]
    return " or ".join(f"[{', '.join(map(str, it))}]" for it in shapes)


def _fit(value: Array, info: Info, where: str) -> Array:
    """One sample in the shape and type of its input. Raises UsageError naming its source `where`."""
    shape, name = tuple(info.shape or ()), printable(info.name)
    if value.shape not in (shape, _without_batch(shape)):
        raise UsageError(
            f"{where} has the shape {list(value.shape)}; input {name!r} of the model needs {_wanted(shape)}"
        )
    wanted = np.dtype(info.dtype)
    if wanted.kind == "f" and value.dtype.kind != "f":
        raise UsageError(
            f"{where} holds {value.dtype.name}; input {name!r} of the model is {info.dtype}: scale the "
            "values as in training, and save them as float32"
        )
    if wanted.kind != "f" and not np.can_cast(value.dtype, wanted, "same_kind"):
        raise UsageError(f"{where} holds {value.dtype.name}; input {name!r} of the model is {info.dtype}")
    with np.errstate(over="ignore"):
        fitted = value.astype(wanted).reshape(shape)
    if wanted.kind == "f":
        bad = int(np.count_nonzero(~np.isfinite(fitted)))
        if bad and np.isfinite(value).all():
            raise UsageError(
                f"{where} has {count_text(bad, 'value')} for {name!r} beyond the range of {info.dtype}: "
                "scale the values as in training"
            )
        if bad:
            raise UsageError(
                f"{where} has {count_text(bad, 'value')} for {name!r} that {agree(bad, 'is', 'are')} not "
                "finite: int8 has no NaN and no infinity"
            )
    return np.ascontiguousarray(fitted)


def load_labels(path: Path, count: int) -> NDArray[np.int64]:
    """The class of each sample, in the order of the samples: a .npy of integers, or text with one class per
    line.

    Raises UsageError if the file is something else, or has another number of labels.
    """
    return class_numbers(read_labels_file(path), count, str(path))


def read_labels_file(path: Path, classes: Sequence[str] = ()) -> Array:
    """The label of each sample: the array of a .npy file, or the classes in a text, one per line.

    A class is a number, or one of the names `classes`. Raises UsageError for another kind of file.
    """
    if not _head(path).startswith(_NPY):
        return _label_lines(path, classes)
    value = _load(path)
    if value.nbytes > _MOST_LABEL_BYTES:
        raise UsageError(f"{path} has {value.nbytes:,} bytes; the limit is {_MOST_LABEL_BYTES:,}")
    return value


def require_labels(labels: Array, count: int, where: str) -> None:
    """Raise UsageError unless there is one label for each of `count` samples."""
    have = labels.size if labels.ndim == 0 else len(labels)
    if labels.ndim == 0 or have != count:
        raise UsageError(
            f"{where} has {count_text(have, 'label')} for {count_text(count, 'sample')}: one is needed for "
            "each, in the same order"
        )


def class_numbers(value: Array, count: int, where: str) -> NDArray[np.int64]:
    """Labels as numbers of classes, one for each of `count` samples. Raises UsageError naming `where`."""
    if value.dtype.kind not in "iu" or value.ndim == 0 or value.size != len(value):
        raise UsageError(
            f"{where} has labels of {value.dtype.name} {list(value.shape)}; class numbers are integers, one "
            "for each sample"
        )
    require_labels(value, count, where)
    if (value < 0).any():
        raise UsageError(f"{where} has the label {value.min()}: classes are counted from 0")
    return value.reshape(-1).astype(np.int64)


def _label_lines(path: Path, classes: Sequence[str]) -> NDArray[np.int64]:
    try:
        lines = read_limited(path, _MOST_LABEL_BYTES).decode().split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is neither a .npy file nor text: write one class number a line") from error
    numbers = {name: number for number, name in enumerate(classes)}
    labels = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text in numbers:
            labels.append(numbers[text])
        elif text.isascii() and text.lstrip("-").isdigit() and len(text) < 10:
            labels.append(int(text))
        elif text:
            known = " or a name of --classes" if classes else ""
            raise UsageError(f"{path}, line {number}: {printable(text)!r} is not a class number{known}")
    return np.array(labels, np.int64)
