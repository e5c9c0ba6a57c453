"""`mcudeploy quantize --activations auto`: int8 or int16 for each layer."""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto

import mcudeploy as md
from mcudeploy.boards.catalogue import load_board
from mcudeploy.cli.main import cli
from mcudeploy.device.target import Target
from mcudeploy.extensions.quantization.mixed_precision import Network, fewest_bytes
from mcudeploy.extensions.quantization.value_noise import Value
from mcudeploy.frontend.load import load
from mcudeploy.planner.plan_options import Options
from tests import reports
from tests.networks.small import classifier, images

HOST, QUICK = Target(load_board("host")), Options(time_limit=0.5)
READERS = {None: (0,), 0: (1, 2), 1: (3,), 2: (3,), 3: (4,), 4: ()}
"""The layers that read the result of each; None is the input."""


def network(seed: int) -> Network:
    rng = np.random.default_rng(seed)
    values = []
    for producer, readers in READERS.items():
        noise, last = {"y": float(rng.uniform(0, 4))}, max(readers, default=4)
        by_reader = {it: {"y": noise["y"] / len(readers)} for it in readers}
        steps, elements = (producer or 0, last), int(rng.integers(1, 100))
        bounds = (-1.0, 1.0)
        values.append(Value(f"v{producer}", producer, readers, noise, by_reader, elements, steps, bounds))
    int8 = {it: float(rng.integers(100, 1000)) for it in range(5)}
    int16 = {it: cycles * rng.uniform(1, 4) for it, cycles in int8.items()}
    return Network({f"n{it}": it for it in range(5)}, values, int8, int16, 1.5)


def cost_and_noise(net: Network, wide: Collection[int], worth: float) -> tuple[float, float]:
    """The cycles and bytes relative to int8, and the noise, of one set of layers in int16."""
    cycles = sum((net.int16_cycles if it in wide else net.int8_cycles)[it] for it in net.int8_cycles)
    noise, sizes = 0.0, []
    for value in net.values:
        is_wide = value.producer in wide if value.producer is not None else wide >= set(value.readers)
        differing = [it for it in value.readers if (it in wide) != is_wide]
        noise += sum(value.by_reader[it]["y"] for it in differing) if is_wide else value.noise["y"]
        cycles += net.conversion_cycles * value.elements if differing else 0
        sizes.append(value.elements * (3 if differing else 1 + is_wide))
    live = [
        [at for at, it in enumerate(net.values) if it.steps[0] <= step <= it.steps[1]] for step in range(5)
    ]
    int8 = max(sum(net.values[at].elements for at in each) for each in live)
    peak = max(sum(sizes[at] for at in each) for each in live)
    return cycles / sum(net.int8_cycles.values()) + worth * peak / int8, noise


@pytest.mark.parametrize("seed", range(4))
def test_a_choice_has_the_least_cost_of_all_within_the_budget(seed: int) -> None:
    net = network(seed)
    every = [set(it) for count in range(6) for it in itertools.combinations(range(5), count)]
    for budget, worth in itertools.product((0.5, 3.0, 6.0), (0.0, 1.0)):
        known = [cost_and_noise(net, wide, worth) for wide in every]
        least = min(cost for cost, noise in known if noise <= budget)
        cost, noise = cost_and_noise(net, net.choice({"y": budget}, worth), worth)
        assert noise <= budget * 1.001
        assert cost == pytest.approx(least, abs=1e-3)


def test_without_noise_all_layers_are_int16() -> None:
    assert network(0).choice({"y": 0.0}, 1.0) == frozenset(range(5))


def quantized(*arguments: str, code: int = 0) -> Any:
    result = CliRunner().invoke(cli, ["quantize", "m.onnx", "--data", "x.npy", "-o", "q.onnx", *arguments])
    assert result.exit_code == code, result.output
    return json.loads(result.stdout) if code == 0 else result.stderr


AUTO = ("--activations", "auto", "--board", "mps2-an386", "--json")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    classifier(tmp_path / "m.onnx")
    np.save("x.npy", images(48))
    return tmp_path


def test_a_mixture_is_within_the_distance_and_costs_less(here: Path) -> None:
    report = quantized(*AUTO, "--method", "minmax", "--within", "6")
    content = (here / "q.onnx").read_bytes()
    int8, *_, int16 = report["mixtures"]
    chosen = next(it for it in report["mixtures"] if it["chosen"])
    assert not int8["int16_nodes"] and "first" in int16["int16_nodes"]
    assert set(chosen["int16_nodes"]) < set(int16["int16_nodes"])
    assert int8["sqnr_db"] < chosen["sqnr_db"] < int16["sqnr_db"]
    cycles = [it["latency"]["value"] for it in (int8, chosen, int16)]
    assert cycles == sorted(set(cycles)) and chosen["arena_bytes"] <= int16["arena_bytes"]
    assert [it["activations"] for it in report["methods"]] == ["int16", "auto"]
    assert report["activations"] == "auto"
    kinds = {it.op.kind for it in load(here / "q.onnx").operators}
    assert kinds >= {"Conv2d", "RescaleInt16", "MeanInt16"} and "Unary" not in kinds
    run = reports.run_model(here / "q.onnx", HOST, QUICK, inputs=[], expected=[])
    assert run["verified"], run["reason"]
    quantized(*AUTO, "--method", "minmax", "--within", "6")
    assert (here / "q.onnx").read_bytes() == content


@pytest.mark.parametrize(("within", "share"), [("0.01", 1), ("90", 0)])
def test_distances_decide_between_int16_and_int8(within: str, share: int, here: Path) -> None:
    report = quantized(*AUTO, "--method", "minmax", "--within", within)
    chosen = next(it for it in report["mixtures"] if it["chosen"])
    assert report["activations"] == ("int16" if share else "auto")
    assert len(chosen["int16_nodes"]) == share * len(report["mixtures"][-1]["int16_nodes"])
    assert {it.op.kind for it in load(here / "q.onnx").operators}.isdisjoint(
        {"Conv2d"} if share else {"Conv2dInt16", "RescaleInt16"}
    )


def test_weights_of_a_mixture_are_rounded_as_asked(here: Path) -> None:
    options = {"method": "minmax", "activations": "auto", "within": 6.0, "board": "mps2-an386"}
    report = md.quantize("m.onnx", "x.npy", "q.onnx", **options, rounding="adaptive")
    roundings = [(it["activations"], it["rounding"]) for it in report["methods"]]
    assert roundings == [(it, rounding) for it in ("int16", "auto") for rounding in ("nearest", "adaptive")]
    nearest, adaptive = report["methods"][-2:]
    assert adaptive["sqnr_db"] > nearest["sqnr_db"] and report["rounding"] == "adaptive"
    report = md.quantize("m.onnx", "x.npy", "q.onnx", **options, weights="int4", keep_float=["first"])
    assert (report["weights"], report["activations"]) == ("int4", "auto")
    assert all("first" not in it["int16_nodes"] for it in report["mixtures"])
    run = reports.run_model(here / "q.onnx", HOST, QUICK, inputs=[], expected=[])
    assert run["verified"], run["reason"]


@pytest.mark.parametrize(("within", "nodes"), [("0.001", 0), ("9", 1), ("60", 3)])
def test_weights_are_int4_where_that_costs_little(within: str, nodes: int, here: Path) -> None:
    report = quantized("--method", "minmax", "--weights", "auto", "--within", within, "--json")
    assert len(report["int4_nodes"]) == nodes
    assert report["weights"] == ("auto" if nodes else "int8")
    stored = [it for it in onnx.load("q.onnx").graph.initializer if it.data_type == TensorProto.INT4]
    assert sum(len(it.dims) > 1 for it in stored) == nodes  # the others are zero points
    whole = next(it for it in report["methods"] if (it["weights"], it["rounding"]) == ("int8", "adaptive"))
    assert report["outputs"][0]["sqnr_db"] > whole["sqnr_db"] - float(within) - 3
    run = reports.run_model(here / "q.onnx", HOST, QUICK, inputs=[], expected=[])
    assert run["verified"], run["reason"]


def test_the_largest_weights_within_the_budget_become_int4() -> None:
    sizes, noises = (
        {"a": 10, "b": 40, "c": 35},
        {it: {"y": noise} for it, noise in zip("abc", (1.0, 5.0, 3.0), strict=True)},
    )
    known = {3.5: ("c",), 4.0: ("a", "c"), 5.5: ("a", "c"), 8.0: ("b", "c"), 0.0: ()}
    for budget, nodes in known.items():
        assert fewest_bytes(sizes, noises, {"y": budget}) == nodes


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--activations", "auto"), "add --board NAME"),
        (("--activations", "auto", "--board", "host"), "name a microcontroller's board"),
        (("--board", "mps2-an386"), "--board chooses int8 or int16 for each layer: add --activations auto"),
        (("--within", "3", "--activations", "int16"), "--within limits a choice for each layer"),
        ((*AUTO[:-1], "--within", "0"), "x>0"),
        (("--weights", "int4", "--round", "nearest"), "always rounds adaptively: leave out --round nearest"),
    ],
)
def test_options_that_do_not_fit_are_refused(arguments: tuple[str, ...], said: str, here: Path) -> None:
    assert said in " ".join(quantized(*arguments, code=2).split())
    assert not (here / "q.onnx").exists()


def test_a_file_of_options_for_other_commands_does_not_stop_quantize(here: Path) -> None:
    (here / "mcudeploy.toml").write_text('board = "mps2-an386"\nwithin = 6\nround = "nearest"\n')
    assert quantized("--method", "minmax", "--weights", "int4", "--json")["activations"] == "int8"
