"""A test set: values for a model's inputs, and the label of each sample.

It is an .npz, a .npy, a folder of .npy files, a folder with a subfolder of files for each class, or a .csv
table with a sample in each row.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.common.errors import UsageError
from mcudeploy.common.files import read_limited
from mcudeploy.common.text import count_text, printable
from mcudeploy.extensions.quantization.data import LABELS, open_samples, read_labels_file, require_labels
from mcudeploy.frontend.onnx.nodes import Info
from mcudeploy.ir.graph import Graph
from mcudeploy.verify.preprocessing import AS_USUAL, OnReal, Preprocessing, Wanted, as_stated, read_values
from mcudeploy.verify.samples import Sample, fitted_value, require_indices, sample_of, wanted_of

Array = NDArray[Any]

_ENDINGS = (".npy", ".png", ".jpg", ".jpeg", ".wav", ".bin", ".raw")
_MOST_TABLE_BYTES = 2**28
_LARGEST_CLASS = 2**31 - 1
_LABEL_COLUMNS = ("label", "class", "classes", *LABELS)
"""Headings of the column of labels, in order of preference: `y` may also be a coordinate."""


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """`count` samples with their labels, which are read one by one."""

    count: int
    values_of: Callable[[int, Sequence[Wanted]], Sequence[Array]]
    """Returns the values of a sample, by its number, for inputs in the model's order; types may differ."""
    labels: Array | None = None
    """Class numbers, or the values that an output should have; the first axis counts samples."""
    classes: tuple[str, ...] = ()
    """Names of the classes, if the data has them."""
    files: Sequence[Path] = ()
    """The file of each sample, if each has its own."""
    numbers: Sequence[int] | None = None
    """The number of each sample in the test set, if only some were drawn."""
    on_real: OnReal = AS_USUAL.on_real
    """Called with each float input and its values, for example to count faulty values."""

    def name(self, number: int) -> str:
        """The name of a sample in reports: the last two parts of its file's path, or its number."""
        if not self.files:
            return f"sample {number if self.numbers is None else self.numbers[number]}"
        return "/".join(self.files[number].parts[-2:])

    def sample(self, number: int, graph: Graph) -> Sample:
        """Return a sample for a model. Raises UsageError that names it if its values do not fit."""
        ios = graph.own_inputs()
        wanted = [wanted_of(graph, io, self.on_real) for io in ios]
        values = {
            it.io.name: _converted(value, it, self.name(number))
            for it, value in zip(wanted, self.values_of(number, wanted), strict=True)
        }
        require_indices(graph, values)
        for io in ios:
            if io.dtype.startswith("float"):
                self.on_real(io, values[io.name])
        return sample_of(graph, values, {})


@dataclass(frozen=True, slots=True)
class DataRequest:
    """The user's choices for a test set."""

    path: Path
    labels: Path | None = None
    """A file with the label of each sample."""
    classes: tuple[str, ...] = ()
    """Names of the classes."""
    reading: Preprocessing = AS_USUAL
    """The conversion of pictures and sound."""
    most: int | None = None
    """The number of samples to draw from the `seed`; None for all."""
    seed: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class ArrayData:
    """Samples in memory: an array for the only input, or one for each by name, and the label of each sample.

    The first axis of arrays counts samples.
    """

    values: Array | Mapping[str, Array]
    labels: Array | None = None


def dataset_of(data: ArrayData, graph: Graph) -> Dataset:
    """The samples of arrays, for the inputs of a model. Raises UsageError that names an array."""
    ios = graph.own_inputs()
    if isinstance(data.values, Mapping):
        arrays = {f"data[{name!r}]": values for name, values in data.values.items()}
        names = [f"data[{it.name!r}]" for it in ios]
    else:
        arrays, names = {"data": data.values}, ["data"]
    wanted = ", ".join(repr(it.name) for it in ios)
    if len(names) != len(ios):
        raise UsageError(f"data is one array; the model has the inputs {wanted}: give a dict of arrays")
    if set(names) != set(arrays):
        raise UsageError(
            f"data has the arrays {', '.join(data.values)}; the inputs of the model are {wanted}"
        )
    for name, io in zip(names, ios, strict=True):
        shape = arrays[name].shape
        if not shape or shape[1:] not in (io.shape, io.shape[1:] if io.shape[:1] == (1,) else ()):
            needed = ", ".join(map(str, ("N", *io.shape)))
            raise UsageError(f"{name} has the shape {list(shape)}; input {io.name!r} needs [{needed}]")
    counts = {name: len(arrays[name]) for name in names}
    if len(set(counts.values())) > 1 or not all(counts.values()):
        numbers = ", ".join(f"{name}: {count:,}" for name, count in counts.items())
        raise UsageError(f"each input needs the same number of samples, one at least; there are {numbers}")
    count = counts[names[0]]
    if data.labels is not None:
        require_labels(data.labels, count, "labels")
    return Dataset(count, lambda number, _: [arrays[name][number] for name in names], data.labels)


def open_dataset(request: DataRequest, graph: Graph) -> Dataset:
    """Open a test set for the inputs of a model. Values are read sample by sample.

    Raises UsageError for files of another kind, and for labels that are not one for each sample.
    """
    data = _open(request, graph)
    if not data.count:
        raise UsageError(f"{request.path} has no samples")
    if request.labels is None:
        labels, where = data.labels, str(request.path)
    else:
        labels, where = read_labels_file(request.labels, request.classes), str(request.labels)
    if labels is not None:
        require_labels(labels, data.count, where)
    whole = Dataset(data.count, data.values_of, labels, request.classes or data.classes, data.files)
    return whole if request.most is None else _drawn(whole, request.most, request.seed)


def _drawn(data: Dataset, most: int, seed: int) -> Dataset:
    """Up to `most` samples, in their order."""
    chosen = np.sort(np.random.default_rng(seed).permutation(data.count)[:most])
    return Dataset(
        len(chosen),
        lambda number, wanted: data.values_of(int(chosen[number]), wanted),
        None if data.labels is None else data.labels[chosen],
        data.classes,
        [data.files[at] for at in chosen] if data.files else (),
        chosen.tolist(),
    )


def _open(request: DataRequest, graph: Graph) -> Dataset:
    path, inputs = request.path, graph.own_inputs()
    if path.is_dir() and (folders := _class_folders(path)):
        if len(inputs) != 1:
            raise UsageError(
                f"{path} has a folder for each class; the model has {len(inputs)} inputs: give an .npz with "
                "an array for each"
            )
        return _by_class(path, folders, request)
    if path.suffix.lower() == ".csv":
        return _table(path, request, graph)
    infos = [Info(io.name, io.shape, io.dtype) for io in inputs]
    samples = open_samples(path, infos, lambda value, _, __: value)

    def values_of(number: int, _: Sequence[Wanted]) -> list[Array]:
        loaded = samples.load(number)
        return [loaded[info.name] for info in infos]

    return Dataset(samples.count, values_of, samples.labels, files=samples.files)


def _class_folders(path: Path) -> list[Path]:
    """The subfolders with files of samples, by name; none if the folder itself has .npy files."""
    try:
        entries = sorted(entry for entry in path.iterdir() if not entry.name.startswith("."))
        if any(entry.is_file() and entry.suffix == ".npy" for entry in entries):
            return []
        return [entry for entry in entries if entry.is_dir() and _files(entry)]
    except OSError as error:
        raise UsageError(f"{error.filename or path} cannot be read: {error.strerror}") from error


def _files(folder: Path) -> list[Path]:
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lower() in _ENDINGS and not path.name.startswith(".") and path.is_file()
    )


def _by_class(path: Path, folders: Sequence[Path], request: DataRequest) -> Dataset:
    """Files in a folder for each class. Classes are in the order of the folders' names, or of --classes."""
    names = request.classes or tuple(folder.name for folder in folders)
    unknown = [folder.name for folder in folders if folder.name not in names]
    if unknown:
        raise UsageError(f"{path} has the folder {printable(unknown[0])!r}, which --classes does not name")
    files = [(file, names.index(folder.name)) for folder in folders for file in _files(folder)]

    def values_of(number: int, wanted: Sequence[Wanted]) -> list[Array]:
        return [read_values(files[number][0], wanted[0], request.reading)]

    labels = np.array([label for _, label in files], np.int64)
    return Dataset(len(files), values_of, labels, names, [file for file, _ in files])


def _table(path: Path, request: DataRequest, graph: Graph) -> Dataset:
    """Rows of a table: a column for each element of the only input, and one with the label, if any."""
    inputs = graph.own_inputs()
    if len(inputs) != 1:
        raise UsageError(f"{path} is one table; the model has {len(inputs)} inputs: give an .npz")
    features = math.prod(inputs[0].shape)
    rows, heading = _rows(path)
    label = _label_column(path, heading, len(rows[0]), features)
    values = np.empty((len(rows), features))
    labels: list[int] = []
    for number, row in enumerate(rows):
        cells = list(row)
        try:
            if label is not None:
                labels.append(_class_of(cells.pop(label).strip(), request.classes))
            values[number] = [float(cell) for cell in cells]
        except ValueError as error:
            raise UsageError(f"{path}, row {number + 1}: {error}") from error

    def values_of(number: int, wanted: Sequence[Wanted]) -> list[Array]:
        real = values[number].reshape(wanted[0].io.shape)
        if wanted[0].counts:
            return [real.astype(wanted[0].io.dtype) if np.array_equal(real, np.round(real)) else real]
        return [real.astype(np.float32)]

    return Dataset(len(rows), values_of, None if label is None else np.array(labels, np.int64))


def _rows(path: Path) -> tuple[list[list[str]], list[str]]:
    """The rows of a table, all of one length, and its heading: a first row without numbers, else []."""
    try:
        text = read_limited(path, _MOST_TABLE_BYTES).decode("utf-8-sig")
        first = text.partition("\n")[0]
        delimiter = next((it for it in (",", ";", "\t") if it in first), ",")
        rows = [row for row in csv.reader(StringIO(text), delimiter=delimiter) if row]
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path} is not a table of text with commas, semicolons or tabs") from error
    heading = rows.pop(0) if rows and not any(map(_is_number, rows[0])) else []
    if not rows:
        raise UsageError(f"{path} has no rows of numbers")
    if heading and len(heading) != len(rows[0]):
        raise UsageError(
            f"{path}, row 1 has {count_text(len(rows[0]), 'column')}, the heading {len(heading)}"
        )
    for number, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            raise UsageError(
                f"{path}, row {number} has {count_text(len(row), 'column')}, row 1 has {len(rows[0])}"
            )
    return rows, heading


def _label_column(path: Path, heading: Sequence[str], columns: int, features: int) -> int | None:
    """The column of the labels: by its heading, else the last; None if there are columns for inputs only."""
    if columns == features:
        return None
    if columns != features + 1:
        raise UsageError(
            f"{path} has {count_text(columns, 'column')}; the model needs {features:,} for its input, and "
            "one more if the table has labels"
        )
    names = [name.strip().lower() for name in heading]
    return next((names.index(name) for name in _LABEL_COLUMNS if name in names), columns - 1)


def _class_of(text: str, classes: Sequence[str]) -> int:
    if text in classes:
        return classes.index(text)
    number = float(text) if _is_number(text) else -1.0
    if not 0 <= number <= _LARGEST_CLASS or number != int(number):
        known = " or a name of --classes" if classes else "; --classes FILE gives the names of classes"
        raise ValueError(f"{printable(text)[:40]!r} is not a class number{known}")
    return int(number)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _converted(value: Array, wanted: Wanted, where: str) -> Array:
    """A value in the shape and type of an input; numbers for quantised integers are quantised."""
    io = wanted.io
    shape = io.shape
    if value.shape != shape and value.shape == shape[1:] and shape[:1] == (1,):
        value = value.reshape(shape)
    if value.dtype.kind == "f" and value.dtype.name != io.dtype and value.shape == shape:
        if io.dtype.startswith("float"):
            value = value.astype(io.dtype)
        elif wanted.quantization is not None and np.isfinite(value).all():
            value = as_stated(where, value.astype(np.float64), wanted)
    elif value.dtype.kind in "iu" and io.dtype.startswith("int") and wanted.counts:
        value = value.astype(io.dtype) if np.array_equal(value, value.astype(io.dtype)) else value
    return fitted_value(io, value, where)
