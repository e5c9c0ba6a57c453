"""Plan files that were tampered with end in ConfigError (exit 3), never in a run or in an internal error."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from models import quantised_convolutions

from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands import commands as api
from mcudeploy.common.errors import ConfigError
from mcudeploy.planner.plan_options import Options

HOST = load_board("host")
File = dict[str, Any]
Change = Callable[[File], object]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, File]:
    """A model, and the file of a plan that cuts both of its convolutions."""
    folder = tmp_path_factory.mktemp("plans")
    model = quantised_convolutions(folder / "small.onnx")
    deployment = api.plan_model(model, HOST, Options(time_limit=0.5))
    api.save_plan(deployment, folder / "plan.json")
    content = json.loads((folder / "plan.json").read_text())
    assert len(content["steps"]) > 2 and content["scratch"]
    return model, content


def _load(stored: tuple[Path, File], text: str, folder: Path) -> api.Deployment:
    (folder / "plan.json").write_text(text)
    return api.plan_model(stored[0], HOST, Options(plan_file=folder / "plan.json"))


def second(content: File) -> list[list[list[Any]]]:
    """The blocks of the second tensor."""
    blocks: list[list[list[Any]]] = list(content["blocks"].values())[1]
    return blocks


def put(*path: str | int | slice, value: object) -> Change:
    """Set one value; -1 in the place of a key is the last one, 0 the first one."""

    def change(content: File) -> None:
        at: Any = content
        for key in path[:-1]:
            at = at[_key(at, key)]
        at[_key(at, path[-1])] = value

    return change


def _key(table: Any, key: str | int | slice) -> Any:
    return list(table)[key] if isinstance(table, dict) and isinstance(key, int) else key


CHANGES: dict[str, Change] = {
    "rows of an operator are more than it has": put("block_rows", 0, value=13),
    "rows of an operator at the limit of 32 bits": put("block_rows", 0, value=2**32 - 1),
    "rows of an operator beyond 32 bits": put("block_rows", 0, value=2**32 + 1),
    "rows of an operator that are huge": put("block_rows", 0, value=10**400),
    "no rows": put("block_rows", 0, value=0),
    "an operator is cut otherwise than its output": put("block_rows", 0, value=12),
    "all operators whole": lambda p: p["block_rows"].update(dict.fromkeys(p["block_rows"], 12)),
    "an operator too much": put("block_rows", "other", value=1),
    "an operator is missing": lambda p: p["block_rows"].popitem(),
    "a block too much": lambda p: second(p).append([[0, 1, "ram", 0]]),
    "a block is missing": lambda p: second(p).pop(),
    "a block without a residence": lambda p: second(p)[0].clear(),
    "a residence too much": lambda p: second(p)[0].append([10**6, 10**6 + 1, "ram", 0]),
    "a residence that takes no step, elsewhere": lambda p: second(p)[0].append([0, 0, "ram", 0]),
    "a residence twice": lambda p: second(p)[0].append(second(p)[0][0]),
    "a life that begins early": put("blocks", -1, 0, 0, 0, value=0),
    "a life that begins late": lambda p: second(p)[0][0].__setitem__(0, second(p)[0][0][0] + 1),
    "a life that ends early": lambda p: second(p)[0][0].__setitem__(1, second(p)[0][0][1] - 1),
    "a life that ends late": lambda p: second(p)[0][0].__setitem__(1, second(p)[0][0][1] + 1),
    "a life that ends before it begins": lambda p: second(p)[-1][0].__setitem__(1, 0),
    "a life beyond 32 bits": put("blocks", 1, 0, 0, 1, value=2**32),
    "a number too much in a residence": lambda p: second(p)[0][0].append(0),
    "an offset of the input": put("blocks", 0, -1, 0, 3, value=4),
    "an offset off its alignment": put("blocks", 1, 0, 0, 3, value=1),
    "an offset outside": put("blocks", 1, 0, 0, 3, value=2**32 - 8),
    "an offset beyond 32 bits": put("blocks", 1, 0, 0, 3, value=2**32),
    "a negative offset": put("blocks", 1, 0, 0, 3, value=-4),
    "an unknown memory": put("blocks", 1, 0, 0, 2, value="nowhere"),
    "a tensor too much": lambda p: p["blocks"].update(other=p["blocks"][_key(p["blocks"], 0)]),
    "a tensor is missing": lambda p: p["blocks"].popitem(),
    "scratch too much": lambda p: p["scratch"].update(other=p["scratch"][_key(p["scratch"], 0)]),
    "scratch is missing": lambda p: p["scratch"].popitem(),
    "scratch in an unknown memory": put("scratch", 0, 0, 0, 2, value="nowhere"),
    "scratch of a step too much": lambda p: p["scratch"][_key(p["scratch"], 0)].append([[0, 1, "ram", 0]]),
    "scratch at another step": put("scratch", 0, 0, 0, slice(0, 2), value=[0, 0]),
    "scratch over the input": put("scratch", 0, -1, 0, 3, value=0),
    "no arena": put("arenas", value={}),
    "an arena too much": put("arenas", "sram9", value=8),
    "an empty arena too much": put("arenas", "sram9", value=0),
    "an arena that is too small": put("arenas", 0, value=8),
    "an arena that is too large": put("arenas", 0, value=2**31),
    "an arena of odd size": lambda p: p["arenas"].update({m: n + 1 for m, n in p["arenas"].items()}),
    "all in another memory": lambda p: p.update(json.loads(json.dumps(p).replace('"ram"', '"flash"'))),
    "steps turned round": lambda p: p["steps"].reverse(),
    "the first step is missing": lambda p: p["steps"].pop(0),
    "the last step is missing": lambda p: p["steps"].pop(),
    "the first step twice": lambda p: p["steps"].append(p["steps"][0]),
    "a step in the place of another": put("steps", -1, value=[0, 0]),
    "a block that is not there": put("steps", 0, 1, value=99),
    "an operator that is not there": put("steps", 0, 0, value=99),
    "a step of a huge number": put("steps", 0, 0, value=10**30),
    "no steps": put("steps", value=[]),
    "no splits": put("splits", value=[]),
    "a split of an unknown operator": put("splits", 0, "operators", 0, value="other"),
    "a split of other rows": put("splits", 0, "rows", value=11),
    "another form of input": lambda p: p.update(streamed=not p["streamed"]),
    "another form of operators, uncut": put("accumulating", value="yes"),
    "a peak": put("peak_bytes", value=1),
    "a step of the peak": put("peak_step", value=10**9),
    "a status": put("order_status", value="optimal"),
    "an older format": put("format", value=7),
    "a kernel of another operator": put("kernels", 0, value="softmax_s8"),
    "a kernel too much": put("kernels", "other", value="add_s8"),
    "a kernel is missing": lambda p: p["kernels"].popitem(),
    "no kernels": put("kernels", value={}),
    "another model": put("model_sha256", value="0" * 64),
    "another board": put("board", value="microbit"),
}


def test_the_untouched_file_is_taken(stored: tuple[Path, File], tmp_path: Path) -> None:
    plan = _load(stored, json.dumps(stored[1]), tmp_path)
    fresh = api.plan_model(stored[0], HOST, Options(time_limit=0.5))
    assert plan.plan.layout.status in ("optimal", "feasible")
    assert plan.plan.estimate.peak_bytes <= plan.plan.layout.arena_bytes
    assert plan.plan.estimate.peak_bytes == fresh.plan.estimate.peak_bytes
    assert plan.plan.estimate.peak_step < len(plan.plan.schedule.steps)


@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_file_is_refused(what: str, stored: tuple[Path, File], tmp_path: Path) -> None:
    content = json.loads(json.dumps(stored[1]))
    CHANGES[what](content)
    with pytest.raises(ConfigError, match=r"plan|block|memory|arena|overl|needs") as caught:
        _load(stored, json.dumps(content), tmp_path)
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    "text", ["{", "\x00", "[]", "[" * 100_000, '{"format": 1e400}', '{"format": 10}', ""]
)
def test_what_is_not_a_plan_is_refused(text: str, stored: tuple[Path, File], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a plan"):
        _load(stored, text, tmp_path)


def test_every_offset_counts(stored: tuple[Path, File], tmp_path: Path) -> None:
    """A block moved to any other place is either harmless to the run or refused; never an internal error."""
    taken = 0
    for name in stored[1]["blocks"]:
        content = json.loads(json.dumps(stored[1]))
        content["blocks"][name][0][0][3] += 4
        try:
            _load(stored, json.dumps(content), tmp_path)
            taken += 1
        except ConfigError:
            pass
    assert taken < len(stored[1]["blocks"])


def test_many_repeated_steps_are_refused_at_once(stored: tuple[Path, File], tmp_path: Path) -> None:
    content = {**stored[1], "steps": stored[1]["steps"] * 3000}
    start = time.process_time()
    with pytest.raises(ConfigError, match="not a plan of this model"):
        _load(stored, json.dumps(content), tmp_path)
    assert time.process_time() - start < 20


def test_messages_are_one_line_whatever_a_file_says(stored: tuple[Path, File], tmp_path: Path) -> None:
    for change in ({"board": "a\nb"}, {"x\ny": 1}, {"kernels": {**stored[1]["kernels"], "x\ny": "z"}}):
        with pytest.raises(ConfigError) as caught:
            _load(stored, json.dumps({**stored[1], **change}), tmp_path)
        assert "\n" not in str(caught.value)
