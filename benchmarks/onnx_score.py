"""Runs ONNX's own node tests on the host build, and writes docs/coverage.md.

    python benchmarks/onnx_score.py [--only OPERATOR] [--jobs N]

Results are cached by the digest of the sources: an ended run continues where it was. Builds are cached as
well, some 200 MB: later runs build only programs with other C. With `--only` the tests of one operator are
printed instead. Exit 1 if a test has a wrong result, or anything but a result or a refusal.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from coverage_text import SUBSET, Outcome, Score, text
from onnx import ModelProto, TensorProto, numpy_helper
from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt, Runner

from mcudeploy.common.errors import ModelError
from mcudeploy.common.resources import cache_dir
from mcudeploy.onnx_backend import prepare
from mcudeploy.toolchain import cache as firmware_cache

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "docs" / "coverage.md"
SOURCES = (
    *("mcudeploy/**/*.py", "firmware/**/*.[ch]", "templates/**/*.j2", "boards/host.toml"),
    "benchmarks/onnx_score.py",
)
"""Packages that results depend on, beside the version of onnx."""

DATA = {TensorProto.FLOAT, TensorProto.INT8, TensorProto.UINT8}
INDICES = {TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL}
MOST_S = 300
MOST_BUILDS = 3000
ROUNDING = 2.0**-23


def group(case: TestCase) -> str:
    """Return the group of coverage.md that a test belongs to."""
    graph = case.model.graph
    values = [*graph.input, *graph.output]
    if any(not value.type.HasField("tensor_type") for value in values):
        return "values that are not tensors"
    if len(graph.node) > 1 or "_expanded" in case.name:
        return "several nodes"
    types = [value.type.tensor_type.elem_type for value in values]
    if not set(types) <= DATA | INDICES:
        return "other types"
    if not graph.input:
        return "no input"
    return SUBSET if types[0] in DATA else "integers or truth values first"


def forms(case: TestCase) -> Iterator[ModelProto]:
    """Yield the model unchanged, with integer inputs after the first as initializers, and with all."""
    yield case.model
    if len(case.data_sets) == 1:
        yield fixed(case, INDICES)
        yield fixed(case, DATA | INDICES)


def fixed(case: TestCase, types: set[int]) -> ModelProto:
    """Return the model with all but the first inputs of these types as initializers, by the test's values."""
    model = ModelProto()
    model.CopyFrom(case.model)
    graph, kept = model.graph, [model.graph.input[0]]
    for value, data in zip(graph.input[1:], case.data_sets[0][0][1:], strict=False):
        if value.type.tensor_type.elem_type in types:
            graph.initializer.append(numpy_helper.from_array(array(data), value.name))
        else:
            kept.append(value)
    kept = [onnx.ValueInfoProto.FromString(value.SerializeToString()) for value in kept]
    del graph.input[:]
    graph.input.extend(kept)
    return model


def array(value: Any) -> Any:
    """Return a value of a test as an array; some are protos."""
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def outcome(case: TestCase, model: ModelProto) -> Outcome:
    """Build a model, run all data sets, and compare as ONNX's runner does."""
    names = [value.name for value in case.model.graph.input]
    try:
        program = prepare(model)
        for inputs, expected in case.data_sets:
            values = dict(zip(names, map(array, inputs), strict=False))
            computed = program.run({name: values[name] for name in program.inputs})
            wanted = [array(value) for value in expected]
            if rounded_alike(wanted, computed):
                continue
            Runner.assert_similar_outputs(wanted, computed, case.rtol, case.atol)
    except BackendIsNotSupposedToImplementIt as error:
        cause = error.__cause__
        problem = cause.problems[0] if isinstance(cause, ModelError) and cause.problems else None
        return Outcome("refused", problem.reason, problem.op) if problem else Outcome("refused", str(error))
    except AssertionError as error:
        return Outcome("wrong", " ".join(str(error).split())[:300])
    except Exception:  # a defect, of whatever kind
        return Outcome("failed", traceback.format_exc(limit=-3))
    return Outcome("passed")


def rounded_alike(expected: Sequence[Any], computed: Sequence[Any]) -> bool:
    """Whether floats differ by no more than float32 rounds the largest value of an output.

    The zeros that some tests expect are rounding errors of the computation.
    """
    return len(expected) == len(computed) and all(
        isinstance(want, np.ndarray)
        and want.dtype == got.dtype == np.float32
        and want.shape == got.shape
        and np.isfinite(want).all()
        and np.abs(got - want).max(initial=0) <= ROUNDING * np.abs(want).max(initial=0)
        for want, got in zip(expected, computed, strict=True)
    )


def score(case: TestCase) -> Score:
    """Return a test's score in all forms, or, outside the subset, unchanged only."""
    outcomes: list[Outcome] = []
    before = b""
    of = group(case)
    for model in forms(case) if of == SUBSET else [case.model]:
        data = model.SerializeToString()
        outcomes.append(outcome(case, model) if data != before else outcomes[-1])
        before = data
        if outcomes[-1].kind != "refused":
            break
    return Score(case.name, operator(case), of, tuple(outcomes))


def operator(case: TestCase) -> str:
    """Return the operator of a test: its first node's, except for functions that are written out."""
    whole = cases().get(case.name.partition("_expanded")[0], case)
    return str(whole.model.graph.node[0].op_type)


@cache
def cases() -> dict[str, TestCase]:
    """Return all node tests by name: made once, and shared with the processes that run them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some compute infinities
        return {case.name: case for case in collect_testcases(None) if case.model is not None}


def work(name: str) -> Score:
    """Run a test in its share of a separate process; one that never ends has failed."""
    signal.signal(signal.SIGALRM, overdue)
    signal.alarm(MOST_S)
    try:
        return score(cases()[name])
    except TimeoutError as error:
        case = cases()[name]
        return Score(name, operator(case), group(case), (Outcome("failed", str(error)),))
    finally:
        signal.alarm(0)


def overdue(*_: object) -> None:
    """Handle the alarm."""
    raise TimeoutError(f"not done within {MOST_S} s")


def kept_file() -> Path:
    """Return the file with the results of these sources."""
    digest = hashlib.sha256(onnx.__version__.encode())
    for path in sorted(path for pattern in SOURCES for path in ROOT.glob(pattern)):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return cache_dir() / "onnx_score" / f"{digest.hexdigest()[:20]}.jsonl"


def kept(path: Path) -> dict[str, Score]:
    """Return results of an earlier run, without truncated lines."""
    results = {}
    for line in path.read_text("utf-8").splitlines() if path.is_file() else ():
        try:
            fields = json.loads(line)
        except ValueError:
            continue
        forms = tuple(Outcome(**each) for each in fields.pop("forms"))
        results[fields["name"]] = Score(**fields, forms=forms)
    return results


def scores(names: Sequence[str], jobs: int) -> list[Score]:
    """Return the scores of tests, stored ones first."""
    path = kept_file()
    known = kept(path)
    left = [name for name in names if name not in known]
    path.parent.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    # a thousand builds would drive all others out of the cache; the next run needs few of them
    os.environ["MCUDEPLOY_CACHE_DIR"] = str(path.parent / "builds")
    firmware_cache.KEPT_ENTRIES = MOST_BUILDS
    with (
        path.open("a", encoding="utf-8") as stream,
        ProcessPoolExecutor(jobs, get_context("fork")) as pool,
    ):
        for done, each in enumerate(pool.map(work, left, chunksize=4), 1):
            known[each.name] = each
            stream.write(json.dumps(asdict(each)) + "\n")
            stream.flush()
            if done % 50 == 0 or done == len(left):
                spent = time.monotonic() - start
                print(f"{done} of {len(left)} tests, {spent:.0f} s", file=sys.stderr)
    return [known[name] for name in names]


def told(scores: Iterable[Score]) -> Iterator[str]:
    """Yield a line for each test."""
    for each in scores:
        kinds = ", ".join(form.kind for form in each.forms)
        yield f"{each.name} ({each.op}, {each.group}): {kinds} {each.last.op} {each.last.why}".rstrip()


def main() -> int:
    """Run the tests, write or print their results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", metavar="OPERATOR")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # notes of the front end
    names = [name for name, case in cases().items() if options.only in (None, operator(case))]
    results = scores(names, options.jobs)
    bad = [each for each in results if each.bad]
    if options.only is None:
        FILE.write_text(text(results, onnx.__version__), encoding="utf-8")
    print("\n".join(told(bad if options.only is None else results)))
    return int(bool(bad) or not results)


if __name__ == "__main__":
    sys.exit(main())
