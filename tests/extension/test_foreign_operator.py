"""An operator of a user's file, with its own C kernel: planned, cut, verified, costed and built like ours."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest

import mcudeploy
from mcudeploy.boards.catalogue import load_board
from mcudeploy.codegen.bench import all_kernels
from mcudeploy.codegen.kernelfiles import kernel_files, source_index
from mcudeploy.codegen.licences import foreign_text, licence_of
from mcudeploy.common.errors import BuildError, ConfigError, ModelError, UsageError
from mcudeploy.costs.estimate import counts_of, load_costs
from mcudeploy.extension import added, extension_files, extensions, foreign_digest
from mcudeploy.frontend.load import load
from mcudeploy.ir.interval import Interval
from mcudeploy.planner.files.plan_cache import PlanCache
from mcudeploy.planner.model.model import read_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.verify.reference import Reference

KERNEL = "spectral_gate_f32"
MODEL = "unknown.onnx"


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def test_it_is_cut_verified_and_built(spectral: Path) -> None:
    with extension_files("spectral.py", trust=True):
        planned = mcudeploy.plan(MODEL, "host", time_limit=1)
        assert planned.arena_bytes < planned.unsplit_arena_bytes
        assert "spectralgate_0" in {name for split in planned.splits for name in split.operators}
        assert planned.report["kernels"]["spectralgate_0"] == KERNEL
        result = mcudeploy.run(MODEL, "host", time_limit=1)
        assert result.verified and result.profile[0]["name"] == "spectralgate_0"
        built = mcudeploy.build(MODEL, "host", spectral / "library", time_limit=1)
        assert built.verified
    sources = {path.name: path.read_text("utf-8") for path in (spectral / "library/src").iterdir()}
    assert f"mcud_{KERNEL}" in sources["unknown.c"]
    for name in (f"{KERNEL}.c", f"{KERNEL}.h"):
        assert sources[name] == (spectral / "kernels" / name).read_text("utf-8")
        assert f"  src/{name}\n" in (spectral / "library/LICENSE").read_text("utf-8")
    assert KERNEL not in {Path(name).stem for name in source_index()}  # the block has ended


INT8_PYTHON = """        if output.dtype is DType.INT8:
            x = dequantize_table(inputs[0].quantization)[:, None]
            y = spectral_gate(np.broadcast_to(x, (256, bins)).T, noise, self.floor)
            table = quantize(y, output.quantization)
            return KernelCall("spectral_gate_s8", {"table": table, "cols": cols, "bins": bins})
        return KernelCall("spectral_gate_f32","""
INT8_LOWERING = """    noise = builder.constant(node.inputs[1], "the noise").value.astype(np.float32)

    def emission(value, result):
        x = builder.arranged(value.tensor, image_positions(value.index), (node,))
        op, shape = SpectralGate(node.number("floor", 0.1)), builder.shape_of(x)
        type_of = (result.dtype, result.quantization)
        y = builder.emit(op, (x,), shape, *type_of, constants={"noise": noise}, nodes=result.nodes)
        return OnnxValue(y, image_index(shape, value.index.ndim), real=True)

    int8_or_float(builder, node, emission)


"""
INT8_KERNEL = """#include "spectral_gate_s8.h"
void mcud_spectral_gate_s8(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_spectral_gate_s8_params *p = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const int8_t *x = mcud_row(op->in[0], row);
        int8_t *y = mcud_row(op->out, row);
        for (int32_t i = 0; i < p->cols * p->bins; i++) {
            y[i] = p->table[256 * (i % p->bins) + x[i] + 128];
        }
    }
}
"""
INT8_HEADER = """#include "mcud.h"
typedef struct {
    const int8_t *table; /* [bins][256] */
    int32_t cols;
    int32_t bins;
} mcud_spectral_gate_s8_params;
mcud_kernel mcud_spectral_gate_s8;
"""


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_an_int8_kernel_takes_the_place_of_both_conversions(spectral: Path) -> None:
    """By `int8_or_float`, which the page names; a float model keeps its kernel."""
    text = (spectral / "spectral.py").read_text("utf-8")
    begin, end = text.index("    value = builder.real("), text.index("def cases(")
    text = text[:begin] + INT8_LOWERING + text[end:]
    imported = "from mcudeploy.frontend.lower.pool import int8_or_float\n"
    imported += "from mcudeploy.ops.requantize import dequantize_table, quantize\n"
    text = text.replace("import numpy as np\n", f"import numpy as np\n{imported}", 1)
    (spectral / "spectral.py").write_text(text, "utf-8")
    edit(spectral / "spectral.py", '        return KernelCall("spectral_gate_f32",', INT8_PYTHON)
    (spectral / "kernels/spectral_gate_s8.c").write_text(INT8_KERNEL, "utf-8")
    (spectral / "kernels/spectral_gate_s8.h").write_text(INT8_HEADER, "utf-8")
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17, "org.example": 1]>
        net (int8[1,64,20] q) => (int8[1,64,20] y) <float s = {0.05}, float t = {0.04}, int8 z = {3}> {
            x = DequantizeLinear(q, s, z)
            clean = org.example.SpectralGate<floor = 0.05>(x, noise)
            y = QuantizeLinear(clean, t, z)
        }""")
    noise = np.linspace(0.1, 0.5, 64, dtype=np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(noise, "noise"))
    onnx.save(model, "int8.onnx")
    with extension_files("spectral.py", trust=True):
        result = mcudeploy.run("int8.onnx", "host", time_limit=1)
        assert result.verified and [row["kernel"] for row in result.profile] == ["spectral_gate_s8"]
        assert mcudeploy.plan(MODEL, "host", time_limit=1).report["kernels"]["spectralgate_0"] == KERNEL


def test_a_wrong_kernel_is_found_at_its_operator(spectral: Path) -> None:
    edit(spectral / f"kernels/{KERNEL}.c", "gain = 1.0f -", "gain = 1.01f -")
    with extension_files("spectral.py", trust=True):
        result = mcudeploy.run(MODEL, "host", time_limit=1)
    assert not result.verified and result.report["reason"].startswith("spectralgate_0 (")


def test_the_function_in_the_file_is_the_reference_of_an_own_kernel(spectral: Path) -> None:
    """The body says what the operator computes; the kernel of the extension computes it."""
    edit(spectral / "spectral.py", 'references=":REFERENCES",', "")
    with extension_files("spectral.py", trust=True):
        assert next(it.op.kind for it in load(Path("known.onnx")).operators) == "SpectralGate"
        assert mcudeploy.run("known.onnx", "host", time_limit=1).verified
        with pytest.raises(ModelError, match="add its numpy function to `references` of the extension"):
            mcudeploy.check(MODEL)


def test_the_reference_is_computed_in_pieces(spectral: Path) -> None:
    with extension_files("spectral.py", trust=True):
        rng = np.random.default_rng(1)
        given = {"spectrum": rng.normal(0, 1, (1, 64, 100)).astype(np.float32)}
        names = ["spectrum", "clean", "b", "y", "noise"]
        pieces = Reference(Path(MODEL), names).run(given)
        body = Reference(Path("known.onnx"), names).run(given)
    for name in names:
        np.testing.assert_allclose(pieces[name], body[name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("x * np.maximum", "nothing * np.maximum", "fails: NameError: name 'nothing'"),
        ("return x", "return x, x", "returns 2 arrays, the node has 1 output"),
        ("return x", "x[:] = 0; return x", "fails: ValueError: assignment destination is read-only"),
    ],
)
def test_a_faulty_reference_is_named(spectral: Path, old: str, new: str, why: str) -> None:
    edit(spectral / "spectral.py", old, new)
    with (
        extension_files("spectral.py", trust=True),
        pytest.raises(ModelError, match=f"org.example::SpectralGate at '#0' {why}"),
    ):
        mcudeploy.check(MODEL)


def test_costs_come_from_its_table_or_are_typical_with_a_warning(
    spectral: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with extension_files("spectral.py", trust=True):
        assert load_costs("cortex-m4").kernels[KERNEL]["iterations"] == 22
        assert load_costs("cortex-m4", "cycles").kernels[KERNEL]["iterations"] == 48
        assert not caplog.messages
        typical = load_costs("cortex-m7").kernels[KERNEL]
        assert typical["iterations"] > 1 and f"kernel {KERNEL} on cortex-m7" in caplog.text
    (spectral / "costs/cortex-m4.csv").write_text("variant,loop,instructions\nconv2d_f32,calls,0\n", "utf-8")
    with (
        extension_files("spectral.py", trust=True),
        pytest.raises(ConfigError, match="costs of conv2d_f32, which is not a kernel of an extension"),
    ):
        load_costs("cortex-m4")
    assert KERNEL not in load_costs("cortex-m4").kernels


def test_its_cases_are_graphs_that_its_kernel_computes(spectral: Path) -> None:
    with extension_files("spectral.py", trust=True):
        graphs = [graph for cases in added("cases") for graph in cases()]
        costs = load_costs("cortex-m4")
        for graph in graphs:
            (operator,) = graph.operators
            output = graph.tensors[operator.output]
            call = operator.op.kernel(operator, graph.input_tensors(operator), output)
            rows = Interval(0, output.shape[0])
            counts = counts_of(graph.tensors, operator, graph.loops(operator), call, rows)
            assert costs.ticks(call.variant, counts) > 22 * output.elements
    assert len(graphs) > 1


def test_a_changed_kernel_makes_other_plans_and_firmware(spectral: Path) -> None:
    """The cache of plans has the digest of the files; firmware has that of its sources."""
    board, digests, plans = load_board("stm32f405"), set(), set()
    assert foreign_digest() == ""
    for number in range(2):
        with (spectral / f"kernels/{KERNEL}.c").open("a", encoding="utf-8") as file:
            file.write(f"/* {number} */\n")
        with extension_files("spectral.py", trust=True):
            digests.add(foreign_digest())
            plans.add(PlanCache.of(read_model(Path(MODEL), Options()), board, Options()).folder)
            assert KERNEL in all_kernels()
    assert len(digests) == len(plans) == 2


def test_a_file_is_trusted_once_until_anything_of_it_changes(spectral: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"spectral\.py is Python code .*; --trust-extension allows it once"
    ):
        extension_files("spectral.py").__enter__()
    with extension_files("spectral.py", trust=True), extension_files():
        assert extensions()[-1].name == "spectral"
    with extension_files("spectral.py"):
        pass
    kernel = spectral / f"kernels/{KERNEL}.c"
    before = kernel.read_text("utf-8")
    kernel.write_text(f"{before}/* changed */\n", "utf-8")
    with pytest.raises(ConfigError, match=r"names has changed: spectral_gate_f32\.c.*--trust-extension"):
        extension_files("spectral.py").__enter__()
    kernel.write_text(before, "utf-8")
    (spectral / "costs/cortex-m7.csv").write_text("variant,loop,instructions\n", "utf-8")
    with pytest.raises(ConfigError, match="has changed"):
        extension_files("spectral.py").__enter__()


def test_an_untrusted_file_does_not_run(spectral: Path) -> None:
    (spectral / "evil.py").write_text("open('ran', 'w').close()\n", "utf-8")
    with pytest.raises(ConfigError):
        extension_files("evil.py").__enter__()
    assert not (spectral / "ran").exists()


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("EXTENSION =", "OTHER =", r"has no extension: write EXTENSION = Extension\(\.\.\.\) in it"),
        ('"spectral",', '"spectral", colour="red",', "cannot be imported: TypeError: .*'colour'"),
        ("import numpy as np", "import nompy as np", "cannot be imported: ModuleNotFoundError: No module"),
        ("class SpectralGate", "class class", "cannot be imported: SyntaxError"),
        ("import numpy as np", "import numpy as np\nraise SystemExit", "cannot be imported: SystemExit"),
        ('"spectral",', '"spectral\\n",', r"'spectral\\n' is not a name for an extension"),
        ('":LOWERINGS"', "LOWERINGS", "lowerings of extension spectral is not a text, such as ':LOWERINGS'"),
        ('kernels="kernels"', 'kernels="gone"', "kernels of extension spectral: .*gone is not a folder"),
        ('kernels="kernels"', 'kernels=".."', r"kernels of extension spectral: '\.\.' leads out of"),
        ('costs="costs"', 'commands=":C"', "a file adds no commands; install it as a package"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_error(spectral: Path, old: str, new: str, why: str) -> None:
    edit(spectral / "spectral.py", old, new)
    with pytest.raises(UsageError, match=why):
        extension_files("spectral.py", trust=True).__enter__()
    assert all(it.name != "spectral" for it in extensions())


def test_files_stay_inside_the_folder_of_kernels(
    spectral: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.c").write_text("", "utf-8")
    (spectral / "kernels/secret.c").symlink_to(outside / "secret.c")
    with pytest.raises(UsageError, match=r"secret\.c is a link out of the folder"):
        extension_files("spectral.py", trust=True).__enter__()
    shutil.move(spectral / "kernels", outside / "kernels")
    (outside / "kernels/secret.c").unlink()
    (spectral / "kernels").symlink_to(outside / "kernels")
    with pytest.raises(UsageError, match="'kernels' leads out of"):
        extension_files("spectral.py", trust=True).__enter__()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("mcud_own.c", "begin with a letter, but not with mcud"),
        ("my gate.c", "is not a name for a C file"),
        ('"; rm -rf x;".c', "is not a name for a C file"),
        ("abs_f32.c", "has the name of mcudeploy's own: rename it"),
    ],
)
def test_names_of_c_files_cannot_harm_a_library(spectral: Path, name: str, why: str) -> None:
    (spectral / "kernels" / name).write_text("", "utf-8")
    with pytest.raises(UsageError, match=why), extension_files("spectral.py", trust=True):
        source_index()


def test_a_kernel_without_its_function_is_named(spectral: Path) -> None:
    edit(spectral / f"kernels/{KERNEL}.c", f"void mcud_{KERNEL}(", "void other(")
    with (
        extension_files("spectral.py", trust=True),
        pytest.raises(
            BuildError,
            match=rf"{KERNEL}\.c does not define its kernel: it needs the function void mcud_{KERNEL}",
        ),
    ):
        kernel_files([KERNEL])
    edit(spectral / "spectral.py", f'"{KERNEL}"', '"gone_f32"')
    with (
        extension_files("spectral.py", trust=True),
        pytest.raises(ConfigError, match=r"lack gone_f32: .*no file that defines mcud_gone_f32\("),
    ):
        mcudeploy.plan(MODEL, "stm32f405", time_limit=1)


def test_two_files_with_one_operator_or_one_name_are_refused(spectral: Path) -> None:
    shutil.copytree(spectral, spectral / "copy", ignore=shutil.ignore_patterns("copy"))
    with pytest.raises(UsageError, match=r"two extensions are called spectral: use one of them \(.*copy"):
        extension_files("spectral.py", "copy/spectral.py", trust=True).__enter__()
    edit(spectral / "copy/spectral.py", '"spectral",', '"twin",')
    with (
        extension_files("spectral.py", "copy/spectral.py", trust=True),
        pytest.raises(
            UsageError, match=r"two extensions add .* of org.example::SpectralGate, spectral and twin"
        ),
    ):
        load(Path(MODEL))


def test_files_without_a_licence_belong_to_their_owner() -> None:
    stated = "/* A gate.\n *\n * SPDX-License-Identifier: MIT OR Apache-2.0\n */\n"
    assert foreign_text(stated) == stated
    assert licence_of("src/gate.c", stated) == "MIT OR Apache-2.0"
    marked = foreign_text("int x;\n")
    assert marked.endswith("int x;\n") and licence_of("src/gate.c", marked) == "LicenseRef-Extension-Owner"
