"""Small graphs with hand-worked sizes, shared by the plan tests."""

from __future__ import annotations

import numpy as np

from mcudeploy.ir.graph import DType, Graph, GraphIO, Operator, Quantization, Shape, State, Tensor
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.matrix.recurrent import Recurrent
from mcudeploy.ops.pool.pool import AveragePoolByRows
from mcudeploy.ops.scalar.elementwise import Binary

Q = Quantization(0.05, 3)


def tensor(name: str, shape: Shape) -> Tensor:
    return Tensor(name, shape, DType.INT8, Q)


def graph_io(name: str, shape: Shape) -> GraphIO:
    rows, cols, channels = shape
    order = np.arange(rows * cols * channels, dtype=np.int32)
    order = order.reshape(shape).transpose(2, 0, 1).ravel()
    return GraphIO(name, name, (1, channels, rows, cols), "int8", order)


def conv(name: str, source: str, target: str, channels: tuple[int, int], kernel: int = 3) -> Operator:
    inputs, outputs = channels
    rng = np.random.default_rng(len(name))
    pad = kernel // 2
    return Operator(
        name,
        Conv2d(out_channels=outputs, kernel_shape=(kernel, kernel), pads=(pad, pad, pad, pad)),
        (source,),
        target,
        {
            "weights": rng.integers(-127, 127, (outputs, kernel, kernel, inputs), np.int8, endpoint=True),
            "bias": rng.integers(-500, 500, outputs, np.int32),
            "weight_scale": np.full(outputs, 0.01, np.float32),
        },
        (f"/{name}",),
    )


def residual() -> Graph:
    """image -> a -> b -> c, and c + a: the skip keeps a alive over two convolutions. 8 x 8 x 4 bytes each."""
    shape = (8, 8, 4)
    return Graph(
        name="residual",
        tensors={name: tensor(name, shape) for name in ("image", "a", "b", "c", "sum")},
        operators=(
            conv("conv_a", "image", "a", (4, 4)),
            conv("conv_b", "a", "b", (4, 4)),
            conv("conv_c", "b", "c", (4, 4)),
            Operator("add", Binary("add"), ("c", "a"), "sum"),
        ),
        inputs=(graph_io("image", shape),),
        outputs=(graph_io("sum", shape),),
    )


def pooled() -> Graph:
    """image -> a -> mean over its 8 x 8 pixels, whose rows arrive one by one."""
    shape, mean = (8, 8, 4), (1, 1, 4)
    return Graph(
        name="pooled",
        tensors={"image": tensor("image", shape), "a": tensor("a", shape), "mean": tensor("mean", mean)},
        operators=(
            conv("conv_a", "image", "a", (4, 4), kernel=1),
            Operator("mean", AveragePoolByRows(), ("a",), "mean"),
        ),
        inputs=(graph_io("image", shape),),
        outputs=(graph_io("mean", mean),),
    )


def recurrent() -> Graph:
    """x of two time steps -> y; the state h is kept from one run to the next."""
    shapes = {"x": (1, 2, 3), "h": (1, 1, 4), "y": (1, 2, 4)}
    rng = np.random.default_rng(5)
    weights = {"weights": (4, 3), "recurrent": (4, 4), "bias": (4,)}
    constants = {name: rng.normal(0, 0.6, shape).astype(np.float32) for name, shape in weights.items()}
    x, h, y = (
        GraphIO(name, name, shape, "float32", np.arange(np.prod(shape), dtype=np.int32))
        for name, shape in shapes.items()
    )
    return Graph(
        name="recurrent",
        tensors={name: Tensor(name, shape, DType.FLOAT32) for name, shape in shapes.items()},
        operators=(Operator("cell", Recurrent("rnn_tanh", 4, keeps=True), ("x", "h"), "y", constants),),
        inputs=(x, h),
        outputs=(y, h),
        states=(State(h, h, np.full((1, 1, 4), 0.5, np.float32)),),
    )
