"""Test sets in every form, and errors that name the file and its content."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mcudeploy.common.errors import UsageError
from mcudeploy.extensions.evaluation.dataset import DataRequest, open_dataset
from mcudeploy.extensions.evaluation.output_task import TaskChoice, choose_task
from mcudeploy.frontend.load import load
from mcudeploy.ir.graph import Graph
from tests.networks.evaluated import CLASSES, SIDE, Recogniser, write_recogniser


@pytest.fixture(scope="module")
def recogniser(tmp_path_factory: pytest.TempPathFactory) -> Recogniser:
    return write_recogniser(tmp_path_factory.mktemp("models"), 12)


@pytest.fixture(scope="module")
def graph(recogniser: Recogniser) -> Graph:
    return load(recogniser.int8)


def as_npz(recogniser: Recogniser, path: Path) -> DataRequest:
    np.savez(path / "test.npz", images=recogniser.x, labels=recogniser.y)
    return DataRequest(path / "test.npz")


def as_npy(recogniser: Recogniser, path: Path) -> DataRequest:
    np.save(path / "x.npy", recogniser.x)
    (path / "y.txt").write_text("".join(f"{it}\n" for it in recogniser.y))
    return DataRequest(path / "x.npy", path / "y.txt")


def as_files(recogniser: Recogniser, path: Path) -> DataRequest:
    for number, image in enumerate(recogniser.x):
        np.save(path / f"{number:03}.npy", image)
    np.save(path.parent / "one-hot.npy", np.eye(CLASSES)[recogniser.y])
    return DataRequest(path, path.parent / "one-hot.npy")


def as_folders(recogniser: Recogniser, path: Path) -> DataRequest:
    for number, (image, label) in enumerate(zip(recogniser.x, recogniser.y, strict=True)):
        folder = path / f"kind-{label}"
        folder.mkdir(exist_ok=True)
        np.save(folder / f"{number:03}.npy", image)
    return DataRequest(path)


def as_table(recogniser: Recogniser, path: Path) -> DataRequest:
    rows = [",".join(["x", "y", *(f"p{at}" for at in range(2, SIDE * SIDE)), "label"])]
    rows += [
        ",".join(map(repr, [*map(float, x.ravel()), int(y)]))
        for x, y in zip(recogniser.x, recogniser.y, strict=True)
    ]
    (path / "test.csv").write_text("\n".join(rows))
    return DataRequest(path / "test.csv")


@pytest.mark.parametrize("write", [as_npz, as_npy, as_files, as_folders, as_table])
def test_every_form_has_the_same_samples(
    write: Callable[[Recogniser, Path], DataRequest], recogniser: Recogniser, graph: Graph, tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    data = open_dataset(write(recogniser, folder), graph)
    task = choose_task(graph, data, TaskChoice())
    order = np.argsort(recogniser.y, kind="stable") if write is as_folders else np.arange(len(recogniser.y))
    assert data.count == len(recogniser.y) and task.kind == "classes" and task.classes == CLASSES
    assert task.labels is not None and task.labels.tolist() == recogniser.y[order].tolist()
    for number in range(data.count):
        assert np.array_equal(data.sample(number, graph).inputs["x"], recogniser.x[order[number]][None])
    assert data.classes == (("kind-0", "kind-1", "kind-2", "kind-3") if write is as_folders else ())


def test_a_part_is_drawn_from_the_seed(recogniser: Recogniser, graph: Graph) -> None:
    parts = [open_dataset(DataRequest(recogniser.data, most=5, seed=seed), graph) for seed in (0, 0, 1)]
    numbers = [[part.name(at) for at in range(part.count)] for part in parts]
    assert numbers[0] == numbers[1] != numbers[2] and len(set(numbers[0])) == 5
    first = int(numbers[0][0].removeprefix("sample "))
    assert np.array_equal(parts[0].sample(0, graph).inputs["x"], recogniser.x[first][None])
    assert parts[0].labels is not None and parts[0].labels[0] == recogniser.y[first]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("few.csv", "1,2,3\n", "3 columns; the model needs 36"),
        ("uneven.csv", ",".join("1" * 37) + "\n1,2\n", "row 2 has 2 columns"),
        (
            "word.csv",
            ",".join("1" * 36) + ",cat\n" + ",".join("1" * 36) + ",0\n",
            "'cat' is not a class number",
        ),
        ("large.csv", ",".join("1" * 36) + ",1e300\n", "'1e300' is not a class number"),
        ("empty.csv", "", "has no rows"),
        ("y.txt", "0\n1\n", "2 labels for 12 samples"),
        ("y.txt", "-1\n" * 12, "counted from 0"),
        ("y.txt", "4\n" * 12, "has 4 classes, from 0"),
    ],
)
def test_errors_name_the_file(
    name: str, content: str, message: str, recogniser: Recogniser, graph: Graph, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(content)
    labels = name == "y.txt"
    if labels:
        np.save(tmp_path / "x.npy", recogniser.x)
    request = DataRequest(tmp_path / "x.npy", path) if labels else DataRequest(path)
    with pytest.raises(UsageError, match=message):
        choose_task(graph, open_dataset(request, graph), TaskChoice())


def test_a_folder_that_no_class_names_is_refused(
    recogniser: Recogniser, graph: Graph, tmp_path: Path
) -> None:
    data = as_folders(recogniser, tmp_path)
    with pytest.raises(UsageError, match="'kind-0', which --classes does not name"):
        open_dataset(DataRequest(data.path, classes=("cat", "dog")), graph)


def test_labels_that_no_one_can_mean_are_refused(
    recogniser: Recogniser, graph: Graph, tmp_path: Path
) -> None:
    path = tmp_path / "test.npz"
    np.savez(path, x=recogniser.x, y=recogniser.y, labels=recogniser.y)
    with pytest.raises(UsageError, match="labels twice, as labels and as y"):
        open_dataset(DataRequest(path), graph)
    values = ((np.full(12, np.nan), "not finite"), (np.full(12, 2**64 - 1, np.uint64), "class 18446"))
    for value, message in values:
        np.savez(path, x=recogniser.x, y=value)
        with pytest.raises(UsageError, match=message):
            choose_task(graph, open_dataset(DataRequest(path), graph), TaskChoice())
