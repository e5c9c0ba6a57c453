"""A decoder as language models have it, which reads one token a run, with random weights.

    python -m tests.networks.decoder decoder.onnx --cache scatter

It has RMS norms, rotary positions, grouped queries, a causal mask computed from the position, and SwiGLU. Its
sizes are those of a model of 260,000 parameters that tells stories, unless others are given.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import onnx

from tests.networks.onnx_files import build, save

Cache = Literal["scatter", "scatter_nd", "tensor_scatter", "slide"]
"""How new keys and values enter a cache: written at the position by ONNX's three operators, or appended to a
window whose oldest row leaves.
"""
_NEVER = float(np.finfo(np.float32).min)


@dataclass(frozen=True)
class Sizes:
    """The dimensions of a decoder. `context`: the rows of its caches."""

    dim: int = 64
    layers: int = 5
    heads: int = 8
    kv_heads: int = 4
    vocabulary: int = 512
    context: int = 256
    hidden: int = 172

    @property
    def head(self) -> int:
        """The elements of a head."""
        return self.dim // self.heads


class _Decoder:
    """Collects nodes and constants."""

    def __init__(self, sizes: Sizes, cache: Cache, seed: int) -> None:
        self.sizes, self.cache = sizes, cache
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, Any] = {}
        self.caches: dict[str, str] = {}

    def add(self, op: str, *inputs: Any, out: str = "", **attributes: Any) -> str:
        """Add a node; operands that are not names become constants."""
        name = out or f"{op.lower()}_{len(self.nodes)}"
        names = [it if isinstance(it, str) else self.constant(it) for it in inputs]
        self.nodes.append(onnx.helper.make_node(op, names, [name], f"{op}_{len(self.nodes)}", **attributes))
        return name

    def constant(self, value: Any) -> str:
        name = f"constant_{len(self.constants)}"
        array = np.asarray(value)
        self.constants[name] = array.astype(np.float32) if array.dtype == np.float64 else array
        return name

    def dense(self, x: str, inputs: int, outputs: int) -> str:
        return self.add("MatMul", x, self.random.standard_normal((inputs, outputs)) / inputs**0.5)

    def norm(self, x: str) -> str:
        mean = self.add("ReduceMean", self.add("Pow", x, 2.0), [-1])
        root = self.add("Sqrt", self.add("Add", mean, 1e-5))
        return self.add("Mul", self.add("Div", x, root), self.random.uniform(0.7, 1.3, self.sizes.dim))

    def heads(self, x: str, count: int) -> str:
        shaped = self.add("Reshape", x, [1, 1, count, self.sizes.head])
        return self.add("Transpose", shaped, perm=[0, 2, 1, 3])

    def rotated(self, x: str, cos: str, sin: str) -> str:
        half = self.sizes.head // 2
        first, last = (self.add("Slice", x, [at], [at + half], [3]) for at in (0, half))
        turned = self.add("Concat", self.add("Neg", last), first, axis=-1)
        return self.add("Add", self.add("Mul", x, cos), self.add("Mul", turned, sin))

    def stored(self, x: str, name: str) -> str:
        """Let keys or values enter a cache, and return those of the whole context."""
        self.caches[name] = f"{name}_out"
        if self.cache == "slide":
            whole = self.add("Concat", name, x, axis=2)
            self.add("Slice", whole, [1], [np.iinfo(np.int64).max], [2], out=f"{name}_out")
            return whole
        if self.cache == "tensor_scatter":
            return self.add("TensorScatter", name, x, "position", out=f"{name}_out", axis=2)
        if self.cache == "scatter":
            column = self.add("Reshape", "position", [1, 1, 1, 1])
            index = self.add("Expand", column, [1, self.sizes.kv_heads, 1, self.sizes.head])
            return self.add("ScatterElements", name, index, x, out=f"{name}_out", axis=2)
        turned, row = (self.add("Transpose", it, perm=[2, 0, 1, 3]) for it in (name, x))
        put = self.add("ScatterND", turned, self.add("Unsqueeze", "position", [-1]), row)
        return self.add("Transpose", put, out=f"{name}_out", perm=[1, 2, 0, 3])

    def repeated(self, x: str, rows: int) -> str:
        """Give each query head its key head."""
        size, times = self.sizes, self.sizes.heads // self.sizes.kv_heads
        apart = self.add("Unsqueeze", x, [2])
        wide = self.add("Expand", apart, [1, size.kv_heads, times, rows, size.head])
        return self.add("Reshape", wide, [1, size.heads, rows, size.head])

    def attention(self, x: str, layer: int, angles: tuple[str, str], mask: str) -> str:
        size = self.sizes
        kv_dim = size.kv_heads * size.head
        q, k, v = (
            self.heads(self.dense(x, size.dim, count * size.head), count)
            for count in (size.heads, size.kv_heads, size.kv_heads)
        )
        assert kv_dim <= size.dim
        q, k = self.rotated(q, *angles), self.rotated(k, *angles)
        keys, values = self.stored(k, f"key_{layer}"), self.stored(v, f"value_{layer}")
        keys, values = self.repeated(keys, size.context), self.repeated(values, size.context)
        scores = self.add("MatMul", q, self.add("Transpose", keys, perm=[0, 1, 3, 2]))
        scores = self.add("Add", self.add("Mul", scores, size.head**-0.5), mask)
        mixed = self.add("MatMul", self.add("Softmax", scores, axis=-1), values)
        flat = self.add("Reshape", self.add("Transpose", mixed, perm=[0, 2, 1, 3]), [1, 1, size.dim])
        return self.dense(flat, size.dim, size.dim)

    def angles(self) -> tuple[str, str]:
        size = self.sizes
        rates = 10000.0 ** (-np.arange(0, size.head, 2) / size.head)
        table = np.outer(np.arange(size.context), np.concatenate([rates, rates]))
        shape = [1, 1, 1, size.head]
        cos, sin = (
            self.add("Reshape", self.add("Gather", f(table).astype(np.float32), "position", axis=0), shape)
            for f in (np.cos, np.sin)
        )
        return cos, sin

    def mask(self) -> str:
        """The causal mask: positions up to the present one count, or as many of the window's end."""
        places = np.arange(self.sizes.context)
        if self.cache == "slide":
            first = self.add("Sub", np.array([self.sizes.context - 1]), "position")
            seen = self.add("GreaterOrEqual", places, first)
        else:
            seen = self.add("LessOrEqual", places, "position")
        return self.add("Where", seen, np.float32(0), np.float32(_NEVER))

    def network(self) -> onnx.ModelProto:
        size = self.sizes
        embedding = self.random.standard_normal((size.vocabulary, size.dim)).astype(np.float32)
        angles, mask = self.angles(), self.mask()
        x = self.add("Gather", embedding, "token", axis=0)
        for layer in range(size.layers):
            x = self.add("Add", x, self.attention(self.norm(x), layer, angles, mask))
            y = self.norm(x)
            gate = self.dense(y, size.dim, size.hidden)
            gate = self.add("Mul", gate, self.add("Sigmoid", gate))
            y = self.add("Mul", gate, self.dense(y, size.dim, size.hidden))
            x = self.add("Add", x, self.dense(y, size.hidden, size.dim))
        self.add("MatMul", self.norm(x), embedding.T.copy(), out="logits")
        rows = size.context - (self.cache == "slide")
        kind = (np.float32, [1, size.kv_heads, rows, size.head])
        states = dict.fromkeys(self.caches, kind)
        return build(
            self.nodes,
            {"token": (np.int64, [1, 1]), "position": (np.int64, [1]), **states},
            {"logits": (np.float32, [1, 1, size.vocabulary]), **dict.fromkeys(self.caches.values(), kind)},
            self.constants,
            opset=24 if self.cache == "tensor_scatter" else 18,
        )


def decoder(sizes: Sizes = Sizes(), cache: Cache = "scatter", seed: int = 0) -> onnx.ModelProto:
    """Return the model."""
    return _Decoder(sizes, cache, seed).network()


def states(model: onnx.ModelProto) -> dict[str, str]:
    """Return the caches of a decoder: the input of each, and its output."""
    return {it.name: f"{it.name}_out" for it in model.graph.input[2:]}


def main() -> None:
    """Write a decoder, 256 tokens with their positions, and the options that make its caches states."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("--cache", choices=get_args(Cache), default="scatter")
    for size in fields(Sizes):
        parser.add_argument(f"--{size.name}", type=int, default=size.default)
    arguments = parser.parse_args()
    sizes = Sizes(**{size.name: getattr(arguments, size.name) for size in fields(Sizes)})
    model = decoder(sizes, arguments.cache)
    save(model, arguments.path.parent, arguments.path.stem)
    tokens = np.random.default_rng(1).integers(0, sizes.vocabulary, (sizes.context, 1, 1))
    np.save(arguments.path.with_name("token.npy"), tokens)
    np.save(arguments.path.with_name("position.npy"), np.arange(sizes.context).reshape(-1, 1))
    options = " ".join(f"--state {after}={before}" for before, after in states(model).items())
    arguments.path.with_suffix(".options").write_text(options + "\n", "utf-8")


if __name__ == "__main__":
    main()
