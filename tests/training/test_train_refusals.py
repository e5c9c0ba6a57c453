"""`train`: models, data and options that are refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from train_lines import CLASSES, RUN, invoked, network, refused, report

from mcudeploy.common.errors import FitError
from mcudeploy.extensions.training import training_run
from tests.networks.onnx_files import save
from tests.networks.trained import Network


def test_bad_samples_are_refused_before_the_search(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = np.load("x.npy")
    images[3, 0, 0, 0] = np.nan
    np.savez("data.npz", x=images, y=np.array([0, 3, 1, 2, 3]))
    monkeypatch.setattr(training_run, "smallest_step", lambda *_, **__: pytest.fail("a search has begun"))
    refused(f"{RUN} --data data.npz", "sample 3", "not finite")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'weights = ["Conf_0"]',
            "weights names 'Conf_0', which is not a layer with weights; did you mean 'Conv_0' or ",
        ),
        (
            'biases = ["\\u001b[1m"]',
            r"biases names '\\x1b[1m', which is not a layer with weights; layers are 'Conv_0', ",
        ),
        ("biases = []", "--update sparse:some.toml names no layer: there is nothing to train"),
        ('biases = {"Conv_0" = 0.5}', 'some.toml: biases is "all", or a list of names of nodes'),
        (
            'weights = {"Conv_0" = 1.5}',
            "some.toml: weights has 'Conv_0' = 1.5: a share of the input channels is",
        ),
        (
            'weights = {"Conf_0" = 0.5}',
            "weights names 'Conf_0', which is not a layer with weights; did you mean",
        ),
        ("weight = []", "some.toml has neither weights nor biases"),
        ("weights = []\nbias = []", "some.toml has the key 'bias': it has weights and biases"),
        ("{", "some.toml is neither TOML nor .json"),
    ],
)
def test_files_of_layers_that_are_refused(text: str, message: str, folder: Path) -> None:
    model = network().model()
    for number, node in enumerate(model.graph.node):
        node.name = f"{node.op_type}_{number}"
    save(model, folder, "net")
    Path("some.toml").write_text(text)
    refused(f"{RUN} --data data.npz --update sparse:some.toml", message)
    refused(f"{RUN} --data data.npz --update sparse:none.toml", "none.toml cannot be read: No such file")


def test_data_that_do_not_fit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the search begins."""
    monkeypatch.setattr(training_run, "smallest_step", lambda *_, **__: pytest.fail("a search has begun"))
    refused(f"{RUN} --data x.npy", "--loss cross-entropy needs labels")
    np.savez("real.npz", x=np.load("x.npy"), y=np.ones(5))
    refused(f"{RUN} --data real.npz", "real.npz has labels of float64 [5]; class numbers are integers")
    np.savez("wrong.npz", x=np.load("x.npy"), y=np.array([0, 1, 2, 4, 0]))
    refused(f"{RUN} --data wrong.npz", "sample 3 has the label 4", "4 values, for classes 0 to 3")
    np.save("few.npy", np.load("x.npy")[:, :1])
    refused(f"{RUN} --data few.npy", "needs [N, 2, 8, 8]")
    Path("labels.txt").write_text("0\n1\n")
    refused(f"{RUN} --data x.npy --labels labels.txt", "2 labels for 5 samples")


def test_targets_that_do_not_fit(folder: Path) -> None:
    save(network("").model(), folder, "linear")
    run = RUN.replace("net.onnx", "linear.onnx")
    refused(f"{run} --loss mse --data x.npy", "the output [1, 4] with the input", "give --labels")
    refused(f"{run} --loss mse --data data.npz", "a value for each element of the output, [1, 4]")
    np.save("values.npy", np.zeros((5, 4), np.float32))
    assert report(f"{run} --loss mse --data x.npy --labels values.npy")["verified"]


def test_targets_that_are_not_finite(folder: Path) -> None:
    save(network("").model(), folder, "linear")
    for worst in (np.nan, 1e39):
        values = np.zeros((5, 4))
        values[2, 1] = worst
        np.save("values.npy", values)
        run = RUN.replace("net.onnx", "linear.onnx")
        refused(
            f"{run} --loss mse --data x.npy --labels values.npy", "sample 2 has labels that are not finite"
        )


@pytest.mark.parametrize(
    ("sizes", "shape", "message"),
    [
        ((1,), [1, 1], "the output has 1 position of 1 value; --loss cross-entropy needs"),
        (
            (4,),
            [8, 4],
            "the output [8, 4] has a batch of 8, and a training step takes one sample: give --shape",
        ),
    ],
)
def test_outputs_without_classes(sizes: tuple[int], shape: list[int], message: str, folder: Path) -> None:
    net = Network(1, (6, 1, 1))
    net.node("Gemm", ["x", net.weights(sizes[0], 6), net.weights(sizes[0])], transB=1)
    model = net.model()
    for values, dims in ((model.graph.input, [shape[0], 6]), (model.graph.output, shape)):
        info = onnx.helper.make_tensor_value_info(values[0].name, onnx.TensorProto.FLOAT, dims)
        values[0].CopyFrom(info)
    save(model, folder, "flat")
    np.savez("flat.npz", x=np.ones((8, 6), np.float32), y=np.zeros(8, np.int64))
    refused("train run flat.onnx --board host --data flat.npz", message, code=4)


def test_models_that_are_not_trained(folder: Path) -> None:
    refused(f"{RUN} --loss mse --data data.npz", "take --loss cross-entropy", code=4)
    net = network("")
    model = net.model()
    relu = next(node for node in model.graph.node if node.op_type == "Relu")
    relu.op_type = "Floor"
    save(model, folder, "steps")
    steps = RUN.replace("net.onnx", "steps.onnx")
    refused(f"{steps} --data data.npz --update full", "floor has no gradient here", code=4)
    (end,) = model.graph.output
    model.graph.output.append(onnx.helper.make_tensor_value_info(relu.output[0], 1, [1, 6, 4, 4]))
    save(model, folder, "two")
    names = f"has 2 outputs, {end.name!r}, {relu.output[0]!r}, and a loss has one: write a file"
    refused(RUN.replace("net.onnx", "two.onnx") + " --data data.npz", names, code=4)


def test_models_with_integers_beside_floats(folder: Path) -> None:
    """They are not called quantised: the error names the operators."""
    net = Network(1, (4, 1, 1))
    net.dense(CLASSES)
    net.node("Cast", [net.value], to=onnx.TensorProto.INT32)
    net.node("Cast", [net.value], to=onnx.TensorProto.FLOAT)
    save(net.model(), folder, "casts")
    run = RUN.replace("net.onnx", "casts.onnx")
    refused(
        f"{run} --loss mse --data x.npy", "it computes with int32; training takes float32 and int8", code=4
    )


@pytest.mark.parametrize("through", ["", "Transpose", "Constant"])
def test_shared_constants_are_not_trained_twice(through: str, folder: Path) -> None:
    """Two layers that read the same weights, directly or each through a node."""
    tied = Network(4, (4, 1, 1))
    tied.node("Flatten", [tied.value])
    weights = tied.weights(4, 4)
    if through == "Constant":
        value = onnx.numpy_helper.from_array(tied.constants.pop(weights))
        weights = tied.node("Constant", [], value=value)
        tied.value = "v0"
    for name in ("first", "second"):
        source = tied.value
        factor = tied.node("Transpose", [weights], perm=[1, 0]) if through == "Transpose" else weights
        tied.node("MatMul", [source, factor])
        tied.nodes[-1].name = name
        tied.activation("Tanh")
    save(tied.model(), folder, "tied")
    np.savez("tied.npz", x=np.ones((2, 4, 1, 1), np.float32), y=np.array([0, 3]))
    line = "train run tied.onnx --board host --no-split --data tied.npz"
    message = f"second (Conv2d): it shares the constant {weights!r} with first"
    refused(f"{line} --update full", message, code=4)
    if not through:
        assert report(f"{line} --update last:1")["verified"]
        assert report(f"{line} --update bias")["verified"]


def test_an_operator_without_gradient(folder: Path) -> None:
    """A quotient of two tensors passes no gradient, but a model that is trained after it may have one."""
    net = Network(5, (2, 8, 8))
    net.conv(4, 3)
    values = net.value
    net.node("Div", [values, net.node("Softplus", [values])])
    net.dense(CLASSES)
    save(net.model(), folder, "inner")
    run = RUN.replace("net.onnx", "inner.onnx")
    assert report(f"{run} --data data.npz --update last:1")["verified"]
    refused(f"{run} --data data.npz --update last:2", "only a division by a constant has a gradient", code=4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--update last:9", "the model has 3 layers with weights"),
        (
            "--update some",
            "is none of full, bias, last:K, as in last:1, lora:R, as in lora:4, and sparse:FILE",
        ),
        ("--update sparse:", "sparse: lacks the file: take sparse:FILE"),
        ("--update lora:9", "no layer has more weights than factors of this rank would have"),
        ("--rate 0", "0.0 is not in the range"),
        ("--rate 10 --weight-decay 1", "times the rate it must be in [0, 1)"),
        ("--batch 0", "0 is not in the range"),
        ("--clip-norm 1 --momentum 0.5", "--clip-norm is not for --momentum"),
        ("--stateful --hop 2", "--stateful, --hop are not for a training step"),
    ],
)
def test_options_that_do_not_fit(options: str, message: str, folder: Path) -> None:
    refused(f"{RUN} --data data.npz {options}", message)


def test_check_states_the_shortage_of_each_memory(folder: Path) -> None:
    net = Network(3, (16, 8, 8))
    net.dense(256)
    save(net.model(), folder, "wide")
    line = "train check wide.onnx --boards microbit"
    result = invoked(f"{line} --json")
    assert result.exit_code == FitError.exit_code
    board = next(it for it in json.loads(result.stdout)["updates"] if it["update"] == "full")["boards"][0]
    flash = board["flash_bytes"] - board["board_flash_bytes"]
    assert flash > 0
    text = " ".join(invoked(line).output.split())
    assert f"RAM {board['excess_bytes'] - flash:,} B short, flash {flash:,} B short" in text, text
    assert " B none" in text
