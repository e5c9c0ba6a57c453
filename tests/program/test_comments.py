"""Comments of the generated C: they say what the tables do, and their figures add up."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from graphs import conv, pooled, residual, tensor
from test_golden import BOARD, PROGRAMS, SOURCE, plan_of, planned, program_of

from mcudeploy.codegen.comments import operator_text
from mcudeploy.codegen.ctext import comment_text
from mcudeploy.codegen.program import Program
from mcudeploy.codegen.render import LibraryModel, render_firmware, render_model, render_package
from mcudeploy.ir.graph import Graph, Operator
from mcudeploy.ir.plan import Plan
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.move.concat import Concat
from mcudeploy.planner.tape.tape import Tape

WINDOW = {  # each row of the output reads all 8 of the input
    "weights": np.ones((4, 15, 15, 4), np.int8),
    "bias": np.zeros(4, np.int32),
    "weight_scale": np.full(4, 0.01, np.float32),
}


def comments_of(program: Program) -> list[str]:
    return [" ".join(run.comment) for run in program.schedule]


def tables(program: Program, plan: Plan) -> str:
    return render_model(program, plan, SOURCE)[f"{program.prefix}.c"]


@pytest.mark.parametrize("golden", PROGRAMS)
def test_the_column_at_peak_adds_up_to_the_peak(golden: str) -> None:
    program, plan = PROGRAMS[golden]()
    header = render_model(program, plan, SOURCE)[f"{program.prefix}.h"]
    head, *lines = re.search(r" \* tensor .*?\n \*\n", header, re.DOTALL)[0].splitlines()  # type: ignore[index]
    end = head.index("at peak") + len("at peak")
    cells = [line[end - 9 : end].strip() for line in lines[:-1]]
    assert sum(int(cell or 0) for cell in cells) == plan.estimate.peak_bytes
    assert len(cells) == len(plan.graph.tensors) + len(plan.layout.scratch)


@pytest.mark.parametrize("golden", PROGRAMS)
def test_schedules_print_the_codes_of_the_tape(golden: str) -> None:
    program, plan = PROGRAMS[golden]()
    schedule = tables(program, plan).split("mcud_code schedule[]")[1].split("};")[0]
    codes = re.findall(r"(\d+)u << (\d+) \| (\d+)u,", schedule)
    printed = [int(record) << int(bits) | int(block) for record, bits, block in codes]
    assert np.array_equal(printed, Tape(plan).codes)


@pytest.mark.parametrize("golden", PROGRAMS)
def test_operators_are_numbered_as_the_schedule_counts_them(golden: str) -> None:
    program, plan = PROGRAMS[golden]()
    entries = tables(program, plan).split("mcud_op operators[]")[1].split("\n};")[0]
    numbers = [int(number) for number in re.findall(r"^    /\* (\d+): .* \*/\n    {$", entries, re.MULTILINE)]
    assert numbers == list(range(entries.count("        .kernel =")))


def test_steps_that_interleave_are_one_run() -> None:
    graph = residual()
    whole = replace(graph.operators[2], op=Conv2d(4, (15, 15), pads=(7, 7, 7, 7)), constants=WINDOW)
    graph = replace(graph, operators=(*graph.operators[:2], whole, graph.operators[3]))
    program = program_of(plan_of(graph, 2, BOARD), BOARD)
    assert comments_of(program) == [
        "steps 0..7: conv_a, conv_b, rows 0..7",
        "steps 8..15: conv_c, add, rows 0..7",
    ]


def test_a_block_recomputed_later_does_not_join_what_lies_between() -> None:
    program = program_of(plan_of(residual(), 8, BOARD, again=(("a", 0),)), BOARD)
    names = ["conv_a", "conv_b", "conv_c", "conv_a", "add"]
    assert comments_of(program) == [f"step {at}: {name}, rows 0..7" for at, name in enumerate(names)]


def test_rows_that_an_operator_takes_in_are_those_of_its_input() -> None:
    program = program_of(plan_of(pooled(), 2, BOARD), BOARD)
    assert comments_of(program) == ["steps 0..7: conv_a, mean, rows 0..7"]


def test_operators_are_described() -> None:
    source = residual()
    depthwise = replace(
        source.operators[1], op=Conv2d(4, (3, 3), stride=(2, 2), pads=(1, 1, 1, 1), groups=4), output="half"
    )
    many = Operator("all", Concat(axis=2), ("a",) * 6, "wide")
    tensors = {name: source.tensors[name] for name in ("image", "a")}
    tensors |= {"half": tensor("half", (4, 4, 4)), "wide": tensor("wide", (8, 8, 24))}
    graph = Graph(
        "kinds", tensors, (conv("conv_a", "image", "a", (4, 4)), depthwise, many), source.inputs, ()
    )
    assert operator_text(graph, depthwise) == "conv_b, depthwise 3x3 stride 2, [8][8][4] -> [4][4][4]"
    assert operator_text(graph, many).startswith("all, concat, [8][8][4], ")
    assert operator_text(graph, many).endswith("[8][8][4], 2 more -> [8][8][24]")


def test_a_name_of_the_model_does_not_end_a_comment() -> None:
    assert comment_text("a */ int x; /* b\\\nc") == "a _/ int x_ /_ b__c"


def test_long_comments_are_wrapped() -> None:
    graph = residual()
    operators = tuple(replace(it, name=it.name + 30 * "x") for it in graph.operators)
    plan = plan_of(replace(graph, operators=operators), 2, BOARD)
    program = program_of(plan, BOARD)
    (run,) = program.schedule
    assert len(run.comment) == 2
    assert max(map(len, tables(program, plan).split("schedule[]")[1].split("};")[0].splitlines())) < 125


def test_no_symbol_repeats_the_prefix() -> None:
    program, plan = planned(2, "model")
    texts = render_firmware(program, plan, SOURCE)
    texts |= render_package("model", [LibraryModel(program, plan, SOURCE)])
    assert not [name for name, text in texts.items() if "model_model" in text.lower()]


def test_steps_of_each_kind_are_counted() -> None:
    program, plan = PROGRAMS["residual_two_memories"]()
    assert program.step_kinds == "16 of operators, 6 of moves, 5 of waits"
    assert program.steps == 27 == len(plan.tape)
    assert not planned(2)[0].step_kinds
