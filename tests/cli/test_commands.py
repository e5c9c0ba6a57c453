"""Every command: what it asks of the deploy module, what it prints, how it ends."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from rich.console import Console

from mcudeploy.cli import result_tables as tables
from mcudeploy.cli.help import leaves
from mcudeploy.cli.latencies import latency_facts
from mcudeploy.cli.main import cli
from mcudeploy.report.wording import smaller_facts
from mcudeploy.verify.preprocessing import Preprocessing
from tests.cli.conftest import BUILD, CHECK, FIT, FLASH, MEASURE, OUTPUT, PLAN, RUN, TINY, Deploy

Invoke = Callable[[str], Result]

VERIFIED = "verified: 2 output elements, all within 4 LSB; 0 differ from the reference, largest error 0 LSB"
"""The verdict of RUN."""

LINES = {
    "check m.onnx": CHECK,
    "check m.onnx --board tiny": CHECK,
    "fit m.onnx --boards tiny": FIT,
    "plan m.onnx --board tiny": PLAN,
    "build m.onnx --board tiny -o out": BUILD,
    "flash --board tiny": FLASH,
    "flash --board tiny m.onnx --dry-run": FLASH,
    "measure m.onnx --board tiny": MEASURE,
    "run m.onnx --board tiny --input x.npy --expected y.npy": RUN,
}


@pytest.mark.parametrize("line", LINES)
def test_json_is_the_report_and_all_of_stdout(line: str, mcudeploy_command: Invoke, deploy: Deploy) -> None:
    result = mcudeploy_command(f"{line} --json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {"format": 1, **LINES[line]}


@pytest.mark.parametrize("line", [*LINES, "boards", "doctor", "doctor --board tiny"])
def test_tables_go_to_stdout(line: str, mcudeploy_command: Invoke, deploy: Deploy) -> None:
    result = mcudeploy_command(line)
    act = "preparing to flash" if "--dry-run" in line else "flashing"
    progress = f"{act} tiny\n" if line.startswith("flash") else ""
    assert (result.exit_code, result.stderr) == (0, progress)
    assert result.stdout.strip() and not re.search(r"[ \t]+$", result.stdout, re.MULTILINE)


@pytest.mark.parametrize("line", [*LINES, "boards", "doctor"])
def test_quiet_leaves_the_verdict(line: str, mcudeploy_command: Invoke, deploy: Deploy) -> None:
    result = mcudeploy_command(f"{line} --quiet")
    shown = [VERIFIED] if line.startswith("run ") else []
    assert (result.exit_code, result.output.splitlines()) == (0, shown)


@pytest.mark.parametrize("name", sorted(leaves(cli)))
def test_each_command_has_help(name: str, mcudeploy_command: Invoke) -> None:
    result = mcudeploy_command(f"{name} --help")
    assert result.exit_code == 0
    assert "--json" in result.stdout


def test_version(mcudeploy_command: Invoke) -> None:
    assert mcudeploy_command("--version").stdout.startswith("mcudeploy")


def test_boards(mcudeploy_command: Invoke, deploy: Deploy) -> None:
    boards = json.loads(mcudeploy_command("boards --json").stdout)["boards"]
    assert boards == [
        {
            "name": "tiny",
            "title": "Tiny board",
            "aliases": [],
            "family": "stm32",
            "core": "cortex-m4",
            "flash_bytes": 1048576,
            "flash_read_cost": 5 / 16,
            "ram_bytes": 131072,
            "memories": {"sram": 131072},
            "memory_costs": {"sram": 1.0},
            "memory_rates": {"sram": {"read": None, "write": None}},
            "links": [],
            "cores": 1,
            "units": {"core": ["sram"]},
            "facts_only": False,
            "source": TINY.source,
            "hardware": True,
            "flashers": ["openocd", "st-flash", "pyocd", "probe-rs", "dfu-util"],
            "emulator": "netduinoplus2",
            "radio": [],
            "calibrated": False,
        }
    ]


def test_doctor_names_the_remedy_and_succeeds(mcudeploy_command: Invoke, deploy: Deploy) -> None:
    checks = json.loads(mcudeploy_command("doctor --json").stdout)["checks"]
    assert [check["ok"] for check in checks] == [True, True, False]
    assert "sudo apt-get install openocd" in mcudeploy_command("doctor").stdout


def test_run_prints_every_operator_and_the_verdict(mcudeploy_command: Invoke, deploy: Deploy) -> None:
    text = mcudeploy_command("run m.onnx --board tiny").stdout
    for expected in (
        "conv_0",
        "conv2d_s8",
        "3,000",
        "3.00",
        "75.0%",
        "2,048 B",
        "9,000 B",
        "300 B (at most 316 B; a call of the library needs at most 240 B)",
        "4,000 instructions",
    ):
        assert expected in text
    assert "\n1 of 1 operator within tolerance; 2 integer elements off by at most 1 LSB, 1 of" in text
    assert f"\n{VERIFIED}\n" in text


def test_an_extension_shows_what_it_adds_to_a_run(mcudeploy_command: Invoke, deploy: Deploy) -> None:
    numbers = {"counted": 10, "instructions": 4321, "cycles": None}
    operator = {"operator": "conv_0", "kernel": "conv2d_s8", "data": "branches", "steps": 1, "reason": None}
    bounds = {f"{part}_{unit}": None for part in ("run", "step") for unit in ("instructions", "cycles")}
    bounds |= {"run_instructions": 54_321, "step_instructions": 4321}
    deploy.answers["run_model"] = RUN | {"bounds": {**bounds, "operators": [operator | numbers]}}
    text = mcudeploy_command("run m.onnx --board tiny").stdout
    assert "branches" in text and "54,321 a run, 4,321 a step" in text


def test_run_names_the_classes_of_the_largest_outputs(mcudeploy_command: Invoke, deploy: Deploy) -> None:
    grid = OUTPUT | {"name": "map", "shape": [1, 2, 2], "elements": 4}
    deploy.answers["run_model"] = RUN | {"outputs": [OUTPUT, grid]}
    line = "run m.onnx --board tiny --input x.npy --classes y.npy --pixels -1..1 --mean 0.5 --std 1,2,3"
    text = mcudeploy_command(line).stdout
    assert "output y int8 [1,2]" in text
    assert re.search(r"1\s+a person\s+105\s+0.91\s+0\s+\[red\]none\[/\]\s+-105\s+0.09\s", text)
    assert "output map int8 [1,2,2]: 4 values from -105 to 105\n" in text
    request = deploy.calls["run_model"][0][3]
    assert request.classes == Path("y.npy")
    assert request.reading == Preprocessing((-1.0, 1.0), (0.5,), (1.0, 2.0, 3.0))


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--pixels 1..1", "is not a range"),
        ("--pixels 0-1", "is not a range"),
        ("--mean 1,inf", "is not a list of numbers"),
        ("--std 1,0,1", "cannot be divided by 0"),
    ],
)
def test_numbers_for_pictures_are_refused(
    option: str, message: str, mcudeploy_command: Invoke, deploy: Deploy
) -> None:
    result = mcudeploy_command(f"run m.onnx --board tiny {option}")
    assert result.exit_code == 2 and message in result.stderr and not deploy.calls


def test_resolved_ties_are_told_with_the_error_without(mcudeploy_command: Invoke, deploy: Deploy) -> None:
    figures = {"mismatches": 2, "max_abs_error": 13.0, "ties_resolved": 3}
    deploy.answers["run_model"] = RUN | figures | {"mismatches_resolved": 1, "max_abs_error_resolved": 1.0}
    text = mcudeploy_command("run m.onnx --board tiny").stdout
    assert "verified after 3 rounding ties were resolved: 2 output elements, all within 4 LSB; 1 diff" in text
    assert "largest error 1 LSB\nunresolved, 2 differ from the reference, largest error 13 LSB" in text


def test_the_tolerance_of_floats_stands_beside_their_error(mcudeploy_command: Invoke, deploy: Deploy) -> None:
    figures = {"mismatches": 443, "elements": 1000, "max_abs_error": 2.1e-4, "error_unit": "absolute"}
    tolerance = {"tolerance": {"lsb": None, "share_of_range": 1e-4, "least": 2**-22}, "range": 3.5}
    deploy.answers["run_model"] = RUN | figures | tolerance
    text = mcudeploy_command("run m.onnx --board tiny").stdout
    assert "\nverified: 1,000 output elements, all within 0.0001 of the range, which is 3.5, at least" in text
    assert "; largest error 6e-05 of the range\n" in text


def test_a_tolerance_above_most_values_is_a_warning(mcudeploy_command: Invoke, deploy: Deploy) -> None:
    deploy.answers["run_model"] = RUN | {"coarse_tolerances": {"scores\x1b": 3e34}}
    text = mcudeploy_command("run m.onnx --board tiny").stdout
    assert "warning: output 'scores?' may differ by 3e+34, more than half of its values in a sample" in text


def test_float_operators_are_told_by_their_largest_error(mcudeploy_command: Invoke, deploy: Deploy) -> None:
    check = {"elements": 99, "mismatches": 98, "ties": 0, "error_unit": "absolute", "within_tolerance": True}
    checks = {
        "conv_0": check | {"max_abs_error": 4e-6, "range": 20.0},
        "conv_1": check | {"max_abs_error": 3e-6, "range": 40.0},
        "zero_2": check | {"max_abs_error": 0.0, "range": 0.0},
    }
    deploy.answers["run_model"] = RUN | {"operator_checks": checks}
    text = mcudeploy_command("run m.onnx --board tiny").stdout
    assert "\n3 of 3 operators within tolerance; largest error of floats 2e-07 of the range\n" in text
    assert "98" not in text
    checks["conv_1"] |= {"max_abs_error": 1.0, "within_tolerance": False}
    text = mcudeploy_command("run m.onnx --board tiny").stdout
    assert "\n2 of 3 operators within tolerance; largest error of floats 0.03 of the range\n" in text


def test_run_that_is_not_verified_reports_and_exits_11(mcudeploy_command: Invoke, deploy: Deploy) -> None:
    deploy.answers["run_model"] = RUN | {
        "verified": False,
        "mismatches": 1,
        "reason": "conv_0: 3 is not 4",
    }
    result = mcudeploy_command("run m.onnx --board tiny --json")
    assert result.exit_code == 11
    assert json.loads(result.stdout)["mismatches"] == 1
    text = mcudeploy_command("run m.onnx --board tiny").stdout
    assert "NOT verified: 2 output elements, 1 differs from the reference, largest error 0 LSB; all" in text
    assert "conv_0: 3 is not 4" in text


def test_check_of_an_unsupported_model_lists_all_nodes_and_exits_4(
    mcudeploy_command: Invoke, deploy: Deploy
) -> None:
    problems = [{"node": f"n{i}", "op": "Loop", "reason": "no such operator"} for i in range(3)]
    deploy.answers["check_model"] = {"supported": False, "problems": problems, "notes": []}
    result = mcudeploy_command("check m.onnx --json")
    assert result.exit_code == 4
    assert json.loads(result.stdout)["problems"] == problems
    text = mcudeploy_command("check m.onnx").stdout
    assert all(words in text for words in ("3 nodes, first: 'n0'", "no such operator", "not supported"))


def test_options_reach_the_search(mcudeploy_command: Invoke, deploy: Deploy) -> None:
    line = "plan m.onnx --board tiny --ram-limit 96k --float-io --seed 7 --time-limit 2.5 --max-overhead 0"
    assert mcudeploy_command(line).exit_code == 0
    options = deploy.options("plan_model")
    assert (options.ram_limit, options.float_io, options.seed) == (98304, True, 7)
    assert (options.time_limit, options.max_overhead) == (2.5, 0)


def test_plan_is_written_and_read_back(mcudeploy_command: Invoke, deploy: Deploy) -> None:
    assert mcudeploy_command("plan m.onnx --board tiny -o new.json").exit_code == 0
    assert deploy.calls["save_plan"][0][1] == Path("new.json")
    assert mcudeploy_command("run m.onnx --board tiny --plan p.json").exit_code == 0
    assert deploy.options("run_model").plan_file == Path("p.json")
    assert not deploy.options("run_model").resume
    assert mcudeploy_command("plan m.onnx --board tiny --plan p.json").exit_code == 0
    assert deploy.options("plan_model").resume


def test_a_chart_is_drawn_where_its_ending_says_how(mcudeploy_command: Invoke, deploy: Deploy) -> None:
    assert mcudeploy_command("plan m.onnx --board tiny --chart new.svg").exit_code == 0
    assert deploy.calls["save_chart"][0][1] == Path("new.svg")
    del deploy.calls["plan_model"]
    for option in ("--chart new.png", "--report new.pdf"):
        result = mcudeploy_command(f"plan m.onnx --board tiny {option}")
        assert (result.exit_code, "plan_model" in deploy.calls) == (2, False)
        assert f"not as {option.split()[1]}" in result.stderr


def test_the_tables_are_part_of_the_flash(mcudeploy_command: Invoke, deploy: Deploy) -> None:
    assert "tables in flash  300 B" in mcudeploy_command("plan m.onnx --board tiny").stdout
    deploy.answers["run_model"] = RUN | {"tables_bytes": 120}
    text = mcudeploy_command("run m.onnx --board tiny").stdout
    assert "9,000 B (code 4,000 B, weights 5,000 B, tables 120 B)" in text
    assert "tables in flash" not in text


def test_moves_are_told_of_where_there_are_any(mcudeploy_command: Invoke, deploy: Deploy) -> None:
    assert "moves" not in mcudeploy_command("plan m.onnx --board tiny").stdout
    deploy.answers["plan_model"] = PLAN | {"moves": 12, "moved_bytes": 8448}
    text = mcudeploy_command("plan m.onnx --board tiny").stdout
    assert "14, 12 of them move a block each (8,448 B)" in text


@pytest.mark.parametrize(("status", "peak"), [("optimal", 992), ("feasible", 992), ("optimal", 993)])
def test_an_arena_above_the_peak_may_be_the_least(status: str, peak: int) -> None:
    console = Console(file=StringIO(), width=160)
    sizes = {"arena_bytes": 1_000, "peak_bytes": peak, "layout_status": status}
    tables.plan(console, PLAN | sizes)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert ("(no offsets take less in this order)" in text) == (status == "optimal" and peak == 992)


def test_costs_of_another_core_are_told_of() -> None:
    texts = []
    for core in ("xtensa-lx7", "rv32imafc"):
        console = Console(file=StringIO(), width=160)
        tables.plan(console, PLAN | {"estimates": {"core": core, "costs_of": "rv32imafc"}})
        texts.append(console.file.getvalue())  # type: ignore[attr-defined]
    assert (
        "latencies by the costs of kernels on rv32imafc, which stand in for those on xtensa-lx7" in texts[0]
    )
    assert "estimates" not in texts[1]


@pytest.mark.parametrize(
    ("units", "shown"),
    [
        (("npu",), "for 1 unit; 1 function, 1 tensor between"),
        (("npu", "core"), "for 2 separate units; 2 functions"),
    ],
)
def test_what_units_share_is_said_in_the_right_number(units: tuple[str, ...], shown: str) -> None:
    sizes = {"saved_bytes": 8, "separate_bytes": 20, "border_tensors": 1, "border_bytes": 4, "copies": 0}
    console = Console(file=StringIO(), width=160)
    functions = [{"unit": unit, "operators": ["conv_0"]} for unit in units]
    tables.plan(console, PLAN | {"sharing": {"functions": functions, **sizes}})
    assert shown in console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize(("predicted", "shown"), [(1.25, "+1.25 %"), (None, "")])
def test_tune_says_what_was_predicted_if_anything_was(predicted: float | None, shown: str) -> None:
    search = {"candidates": 9, "duplicates": 2, "measured": 3, "cache_hits": 4, "seconds": 1.0}
    latency = {"latency": {"value": 4060, "unit": "cycles"}, "overhead_percent": 1.5}
    latency |= {"unsplit_latency": {"value": 4000, "unit": "cycles"}, "overhead_source": "measured"}
    latency |= {"splits": [{"operators": ["a"], "rows": 1}]}
    console = Console(file=StringIO(), width=120)
    tables.tune(console, PLAN | latency | {"search": search, "predicted_overhead_percent": predicted})
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "4,060 cycles" in text and "+1.50 % of the unsplit plan's 4,000 cycles" in text
    assert "3 tiles timed, 4 known" in text
    assert ("predicted" in text, shown in text) == (predicted is not None, True)


def test_tune_says_what_less_flash_costs() -> None:
    sizes = {9000: 100, 7000: 101, 6900: 104, 5000: 120, 3000: 150}
    curve = [{"flash_limit": size, "latency": {"value": ticks}} for size, ticks in sizes.items()]
    own = {"estimated_latency": {"value": 100}}

    def less_flash(report: dict[str, Any]) -> str:
        return dict(smaller_facts(own | report))["less flash"]

    shown = "--flash-limit 7000 +1.0 %, 5000 +20.0 %, 3000 +50.0 %"
    shown += ", estimated for these steps, with 32 KiB of code"
    assert (
        less_flash({"flash_curve": curve}) == less_flash({"flash_curve": curve, "flash_limit": 9000}) == shown
    )
    built = less_flash({"flash_curve": curve, "code_bytes": 5120})  # 7000 may exceed what the program takes
    assert built == f"{shown}; this program has 5,120 B of code"
    faster = [{"flash_limit": 12000, "latency": {"value": 90}}, *curve]
    assert less_flash({"flash_curve": faster}) == shown
    assert less_flash({"flash_curve": curve[:1]}) == less_flash({"flash_curve": None}) == ""
    assert less_flash({"flash_curve": curve[2:]}).startswith("--flash-limit 5000 +20.0 %, 3000")
    slowest = {"flash_curve": curve, "estimated_latency": {"value": 150}}
    assert less_flash(slowest | {"flash_limit": 3000}) == ""
    none = less_flash(slowest | {"flash_limit": 2999})
    assert none.startswith("none: these are the smallest constants") and none.endswith("--flash-limit 3000")


def test_a_plan_of_a_search_says_what_finds_a_smaller_arena() -> None:
    cut = {"splits": [{"rows": 1}]}
    none = ({"splits": []}, cut | {"search": {"candidates": 0}})
    assert not any(dict(smaller_facts(report))["less RAM"] for report in none)
    for report in (cut, {"splits": [], "search": {"candidates": 2}}):
        text = dict(smaller_facts(report))["less RAM"]
        assert text == "a higher --max-overhead searches for a smaller arena"


def test_an_overhead_says_if_the_unsplit_plan_keeps_a_flash_limit_too() -> None:
    report = {"splits": [{}], "overhead_percent": 1.5, "overhead_source": "estimated"}
    texts = [dict(latency_facts(report | {"flash_limit": limit}))["overhead"] for limit in (None, 5000)]
    assert texts == [
        f"+1.50 % of the unsplit plan's latency{more}, estimated"
        for more in ("", " under this --flash-limit")
    ]


def test_build_names_the_model(mcudeploy_command: Invoke, deploy: Deploy) -> None:
    assert mcudeploy_command("build m.onnx --board tiny -o out --name detector").exit_code == 0
    assert deploy.calls["build_models"][0][0].options.name == "detector"


def test_build_verifies_unless_told_not_to(mcudeploy_command: Invoke, deploy: Deploy) -> None:
    text = mcudeploy_command("build m.onnx --board tiny -o out").stdout
    assert deploy.calls["build_models"][0][0].verify is True
    assert "verified on this computer, for a drawn input: 2 output elements, all within 4 LSB" in text
    deploy.answers["build_models"] = {name: it for name, it in BUILD.items() if name != "operator_checks"}
    deploy.answers["build_models"] |= {"verified": None}
    text = mcudeploy_command("build m.onnx --board tiny -o out --no-verify").stdout
    assert deploy.calls["build_models"][0][0].verify is False
    assert "not verified: the program was not run (--no-verify)" in text


def test_check_of_a_model_that_does_not_fit_exits_5(mcudeploy_command: Invoke, deploy: Deploy) -> None:
    deploy.answers["check_model"] = CHECK | {"fits": False, "missing": ["arena needs 9 bytes, sram has 8"]}
    result = mcudeploy_command("check m.onnx --board tiny")
    assert result.exit_code == 5
    assert "arena needs 9 bytes" in result.stdout


def test_check_says_of_each_way_whether_it_fits(mcudeploy_command: Invoke, deploy: Deploy) -> None:
    plans = {
        "unsplit": {"arena_bytes": 311128, "fits": False},
        "streamed": {"arena_bytes": 24424, "fits": True},
    }
    fit = {"board": "tiny", "fits": True, "missing": [], "plans": plans}
    deploy.answers["check_model"] = CHECK | fit
    result = mcudeploy_command("check m.onnx --board tiny")
    assert result.exit_code == 0
    assert "311,128 B: does not fit tiny" in result.stdout and "24,424 B: fits tiny" in result.stdout
    assert "--stream-input" in result.stdout


def test_device_and_samples_reach_the_run(mcudeploy_command: Invoke, deploy: Deploy) -> None:
    line = "run m.onnx --board tiny --port /dev/ttyUSB1 --input x.npy --input y.npy --expected y.npy"
    assert mcudeploy_command(line).exit_code == 0
    _, target, _, request, _ = deploy.calls["run_model"][0]
    assert (target.board.name, target.port, target.emulate) == ("tiny", "/dev/ttyUSB1", False)
    assert (request.inputs, request.expected) == ((Path("x.npy"), Path("y.npy")), (Path("y.npy"),))


def test_modelled_cycles_are_asked_for_and_shown(mcudeploy_command: Invoke, deploy: Deploy) -> None:
    for command in ("run", "measure"):
        assert mcudeploy_command(f"{command} m.onnx --board tiny").exit_code == 0
    assert deploy.calls["run_model"][0][3].timing == "instructions"
    assert deploy.calls["measure_model"][1]["timing"] == "instructions"
    spent = {"load": (2000, 4500), "branch": (500, 1500)}
    deploy.answers["measure_model"] = MEASURE | {
        "latency": {"value": 6000, "unit": "cycles (model)"},
        "cycles_model": {
            "core": "cortex-m4",
            "source": "the manual",
            "left_out": ["wait states", "interrupts"],
            "instructions": 4000,
            "cycles": 6000,
            "least": 5500,
            "most": 7000,
            "histogram": {kind: {"instructions": n, "cycles": cycles} for kind, (n, cycles) in spent.items()},
        },
    }
    result = mcudeploy_command("measure m.onnx --board tiny --timing cycles-model")
    assert result.exit_code == 0 and deploy.calls["measure_model"][1]["timing"] == "cycles-model"
    for text in ("6,000 cycles (model)", "5,500 to 7,000", "load 75%, branch 25%", "wait states; interrupts"):
        assert text in result.stdout
    assert mcudeploy_command("run m.onnx --board tiny --timing guesses").exit_code == 2


def test_a_port_of_the_environment_waits_for_hardware(
    mcudeploy_command: Invoke, deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCUDEPLOY_PORT", "/dev/ttyUSB1")
    for option, port in (("", "/dev/ttyUSB1"), ("--emulate", None)):
        assert mcudeploy_command(f"measure m.onnx --board tiny {option}").exit_code == 0
        assert deploy.calls["measure_model"][0][1].port == port


def test_flash_dry_run_prints_the_command(mcudeploy_command: Invoke, deploy: Deploy) -> None:
    deploy.answers["flash_board"] = FLASH | {"port": None, "commands": [["openocd", "-f", "board.cfg"]]}
    result = mcudeploy_command("flash --board tiny --dry-run")
    assert deploy.calls["flash_board"][0][-1] is True
    assert "openocd -f board.cfg" in result.stdout
