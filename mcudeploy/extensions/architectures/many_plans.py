"""`mcudeploy.plan_many`: the plans of many models on several boards, by an executor, with a cache."""

from __future__ import annotations

import csv
import hashlib
import io
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future, as_completed
from dataclasses import astuple, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Unpack

from pydantic import TypeAdapter, ValidationError

from mcudeploy.codegen.model_names import model_name
from mcudeploy.commands.keywords import Choices, Named, boards_of, options_of, with_keywords
from mcudeploy.commands.loaded import Serializable
from mcudeploy.common.c_arrays import model_file
from mcudeploy.common.errors import ConfigError, ModelError, UsageError
from mcudeploy.common.files import read_limited, read_regular, write_file
from mcudeploy.common.text import described, plain
from mcudeploy.extensions.architectures.plan_row import PlanJob, PlanRow, planned_row
from mcudeploy.frontend.onnx.tensors import MAX_FILE_BYTES
from mcudeploy.planner.files.plan_cache import search_key

_LOG = logging.getLogger(__name__)
_MOST_BYTES = 2**20
"""Limit of a file of the cache."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""The first characters that make a text a formula in a spreadsheet."""

Source = str | Path | bytes | Serializable
"""A model as `load` takes it."""


@dataclass(frozen=True, slots=True)
class PlanTable:
    """A row for each model and board, in the order of the arguments."""

    rows: tuple[PlanRow, ...]

    def csv(self) -> str:
        """Return the rows as CSV; a text that a spreadsheet would take for a formula begins with '."""
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        table.writerow(it.name for it in fields(PlanRow))
        table.writerows(map(_cell, astuple(row)) for row in self.rows)
        return text.getvalue()

    def json(self) -> str:
        """Return the object `{"rows": [...]}`."""
        return TypeAdapter(PlanTable).dump_json(self, indent=1).decode() + "\n"

    def save(self, path: str | Path) -> None:
        """Write the table; the ending of the file selects .csv or .json. Raises UsageError for another,
        and for a file that cannot be written.
        """
        writers = {".csv": self.csv, ".json": self.json}
        writer = writers.get(Path(path).suffix.lower())
        if writer is None:
            raise UsageError(f"{path}: a table is written as .csv or .json")
        try:
            write_file(Path(path), writer())
        except OSError as error:
            folder = Path(path).absolute().parent
            raise UsageError(f"{path} cannot be written into {folder}: {error.strerror or error}") from error


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


@with_keywords
def plan_many(
    models: Mapping[str, Source] | Iterable[Source],
    boards: Iterable[Named],
    executor: Executor | None = None,
    *,
    cache: str | Path | None = None,
    progress: Callable[[int, int, PlanRow], None] | None = None,
    **choices: Unpack[Choices],
) -> PlanTable:
    """Plan each model on each board, in the workers of an executor, or else in this process.

    `models`: by name, or without names. `cache`: a folder of finished rows, from which a later run continues.
    `progress` is called after each row, with the number of finished rows, the number of all, and the row. A
    model that cannot be planned has a row with an error. Raises UsageError and BoardNotFoundError for wrong
    arguments, ConfigError for a cache that cannot be written.
    """
    options = options_of(choices, ("executor", "cache", "progress"))
    if options.states_plan:
        raise UsageError("plan= and order= are of one model: leave them out")
    if options.name is not None:
        model_name(options.name, "")
    if progress is not None and not callable(progress):
        raise UsageError(f"progress={progress!r:.80} is not a function")
    if cache is not None and (not isinstance(cache, str | Path) or "\0" in str(cache)):
        raise UsageError(f"cache={cache!r:.80} is not the path of a folder")
    jobs = list(_jobs(models, boards, choices))
    folder = None if cache is None else _folder(Path(cache))
    entries = [None if folder is None or job.fault else _entry(folder, job) for job in jobs]
    rows: dict[int, PlanRow] = {}

    def finish(number: int, row: PlanRow) -> None:
        rows[number] = row
        if progress is not None:
            progress(len(rows), len(jobs), row)

    for number, (job, entry) in enumerate(zip(jobs, entries, strict=True)):
        row = None if entry is None or options.fresh else _stored(entry, job)
        if row is not None:
            finish(number, row)
    missing = {number: job for number, job in enumerate(jobs) if number not in rows}
    for number, row, conclusive in _planned(missing, executor):
        entry = entries[number]
        if entry is not None and conclusive:
            _store(entry, row)
        finish(number, row)
    return PlanTable(tuple(rows[number] for number in range(len(jobs))))


def _jobs(
    models: Mapping[str, Source] | Iterable[Source], boards: Iterable[Named], choices: Choices
) -> Iterator[PlanJob]:
    """Yield the jobs. Raises UsageError for an argument that is not a list."""
    if isinstance(models, str | Path | bytes) or not isinstance(models, Iterable):
        raise UsageError("models is a list, or a mapping from names to models")
    every_board = boards_of(boards)
    named = models.items() if isinstance(models, Mapping) else ((None, it) for it in models)
    for number, (name, source) in enumerate(named):
        label = plain(name or (source if isinstance(source, str | Path) else f"models[{number}]"))
        content, fault = b"", ""
        try:
            content = _content(source)
        except ModelError as error:
            fault = str(error)
        yield from (PlanJob(label, content, board, choices, fault) for board in every_board)


def _content(source: Source) -> bytes:
    """Return the bytes of a model, which any worker can read. Raises ModelError."""
    if isinstance(source, bytes):
        return source
    if not isinstance(source, str | Path):
        if not hasattr(source, "SerializeToString"):
            raise UsageError(f"a model is a path, bytes or an onnx.ModelProto, not {type(source).__name__}")
        return source.SerializeToString()
    try:
        return read_limited(model_file(Path(source)), MAX_FILE_BYTES)
    except OSError as error:
        raise ModelError(f"{source} cannot be read: {error.strerror or error}") from error


def _planned(jobs: Mapping[int, PlanJob], executor: Executor | None) -> Iterator[tuple[int, PlanRow, bool]]:
    """Yield the number and row of each job in the order of completion, and whether it is conclusive.

    `planned_row` defines conclusive. A lost worker or a defect gives a row with an error, which another run
    plans again.
    """

    def row_of(number: int, result: Callable[[], tuple[PlanRow, bool]]) -> tuple[int, PlanRow, bool]:
        try:
            return number, *result()
        except Exception as fault:
            return number, jobs[number].failed(described(fault)), False

    if executor is None:
        yield from (row_of(number, partial(planned_row, job)) for number, job in jobs.items())
        return
    futures: dict[Future[tuple[PlanRow, bool]], int] = {}
    try:
        for number, job in jobs.items():
            try:
                futures[executor.submit(planned_row, job)] = number
            except Exception as fault:  # it is not an executor, it has ended, or a worker was lost
                if not futures:
                    reason = f"executor={executor!r:.80} takes no jobs: {described(fault)}"
                    raise UsageError(reason) from fault
                yield number, job.failed(described(fault)), False
        for future in as_completed(futures):
            yield row_of(futures[future], future.result)
    finally:
        for future in futures:
            future.cancel()


def _folder(path: Path) -> Path:
    """Make the folder of a cache. Raises ConfigError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cache={str(path)!r} cannot be a folder: {error.strerror or error}") from error
    return path


def _entry(folder: Path, job: PlanJob) -> Path:
    """Return the file of a job's row, whose name is a key of all that the row depends on."""
    digest = hashlib.sha256(job.content).hexdigest()
    return folder / f"{search_key(digest, job.board, options_of(job.choices))}.json"


def _stored(entry: Path, job: PlanJob) -> PlanRow | None:
    """Return the row of an earlier run; None if there is none, or its file is damaged."""
    try:
        row = TypeAdapter(PlanRow).validate_json(read_regular(entry, _MOST_BYTES), strict=True)
    except (OSError, ValidationError):
        return None
    if (row.model, row.board) != (entry.stem, job.board.name) or not row.is_whole:
        return None
    return replace(row, model=job.model)


def _store(entry: Path, row: PlanRow) -> None:
    """Write a row; its model is the key of the job, since the same model may have another name later."""
    try:
        write_file(entry, TypeAdapter(PlanRow).dump_json(replace(row, model=entry.stem)))
    except OSError as error:
        _LOG.warning("warning: a row is not kept: %s: %s", entry, error.strerror or error)
