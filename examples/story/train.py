"""Trains a language model of 160,000 parameters that tells stories, on stories that a grammar makes.

    python train.py

Writes some of these stories (`stories.txt`), the tokenizer (`tokenizer.json`), and the network with weights
of 32 bits (`story.onnx`) and of 4 (`story_int4.onnx`). It reads a token in each run, and writes its keys and
values into caches. The grammar is `grammar.toml`; for texts of your own replace `stories()`.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

VOCABULARY, CONTEXT = 768, 128
"""Pieces of the tokenizer; tokens of a story at most."""
DIM, LAYERS, HIDDEN = 64, 3, 128
HEADS, KV_HEADS, HEAD = 8, 4, DIM // 8
"""Heads of queries, heads of keys and values, and their width: two heads of queries share keys and values."""
BLOCK = 32
"""Weights that share a scale, in the network with weights of 4 bits."""
STEPS, BATCH, RATE = 2000, 16, 0.008
EPSILON, NEVER = np.float32(1e-5), np.float32(-1e9)
ANGLES = np.outer(np.arange(CONTEXT), 1000.0 ** (-np.arange(0, HEAD, 2) / HEAD))
COS, SIN = np.cos(ANGLES).astype(np.float32), np.sin(ANGLES).astype(np.float32)
"""Positions rotate queries and keys by these angles."""

Array = np.ndarray


def stories(count: int, seed: int) -> Iterator[str]:
    """Draw stories of the grammar."""
    grammar = tomllib.loads(Path(__file__).with_name("grammar.toml").read_text("utf-8"))
    draw = random.Random(seed)
    for _ in range(count):
        steps = [grammar["first"], *draw.choice(grammar["plots"]), grammar["last"]]
        words = {kind: draw.choice(choices) for kind, choices in grammar["words"].items()}
        she, names = draw.choice(list(grammar["names"].items()))
        her = {"she": "her", "he": "his"}[she]
        words |= {"name": draw.choice(names), "animal": words["friend"].split()[-1]}
        words |= {"she": she, "her": her, "She": she.capitalize(), "Her": her.capitalize()}
        yield " ".join(draw.choice(it) for it in steps).format(**words)


def trained_tokenizer(texts: list[str]) -> Tokenizer:
    """Return a byte-level BPE, which has tokens for every text. Token 0 begins a story, 1 ends it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet, special = pre_tokenizers.ByteLevel.alphabet(), ["<s>", "</s>"]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    return tokenizer


@dataclass(eq=False)
class Var:
    """A value; its gradient, once `Tape.backward()` has run."""

    value: Array
    grad: Array | float = 0.0


class Tape:
    """Operators that compute at once, and hand their gradients back later, the last one first."""

    def __init__(self) -> None:
        self._steps: list[Callable[[], None]] = []

    def backward(self) -> None:
        """Compute all gradients."""
        for step in reversed(self._steps):
            step()

    def result(self, value: Array, back: Callable[[Array], None]) -> Var:
        """Return a result; `back` adds to the gradients of what it was computed from."""
        it = Var(value)
        self._steps.append(lambda: back(it.grad))
        return it

    def add(self, x: Var, y: Var) -> Var:
        """The sum of two values."""

        def back(grad: Array) -> None:
            x.grad = x.grad + grad
            y.grad = y.grad + grad

        return self.result(x.value + y.value, back)

    def rows(self, table: Var, ids: Array) -> Var:
        """The rows of a table."""

        def back(grad: Array) -> None:
            whole = np.zeros_like(table.value)
            np.add.at(whole, ids, grad)
            table.grad = table.grad + whole

        return self.result(table.value[ids], back)

    def dense(self, x: Var, w: Var, *, turned: bool = False) -> Var:
        """The product of rows and a matrix, or with `turned` its transpose."""
        matrix = w.value.T if turned else w.value

        def back(grad: Array) -> None:
            x.grad = x.grad + grad @ matrix.T
            change = x.value.reshape(-1, len(matrix)).T @ grad.reshape(-1, matrix.shape[1])
            w.grad = w.grad + (change.T if turned else change)

        return self.result(x.value @ matrix, back)

    def norm(self, x: Var, gain: Var) -> Var:
        """Divide by the root mean square of the last axis."""
        root = 1 / np.sqrt((x.value**2).mean(-1, keepdims=True) + EPSILON)
        flat = x.value * root

        def back(grad: Array) -> None:
            gain.grad = gain.grad + (grad * flat).reshape(-1, DIM).sum(0)
            inner = grad * gain.value
            x.grad = x.grad + root * (inner - flat * (inner * flat).mean(-1, keepdims=True))

        return self.result(flat * gain.value, back)

    def gated(self, x: Var, y: Var) -> Var:
        """SwiGLU: x sigmoid(x) y."""
        share = 1 / (1 + np.exp(-x.value))
        curve = x.value * share

        def back(grad: Array) -> None:
            x.grad = x.grad + grad * y.value * (share + curve * (1 - share))
            y.grad = y.grad + grad * curve

        return self.result(curve * y.value, back)

    def heads(self, x: Var, *, turn: bool) -> Var:
        """[B, T, heads * HEAD] -> [B, heads, T, HEAD]; `turn`: by the angles of the positions."""
        b, t, width = x.value.shape
        split = x.value.reshape(b, t, width // HEAD, HEAD).transpose(0, 2, 1, 3)

        def back(grad: Array) -> None:
            straight = rotated(grad, -1) if turn else grad
            x.grad = x.grad + straight.transpose(0, 2, 1, 3).reshape(b, t, width)

        return self.result(rotated(split, 1) if turn else split, back)

    def attention(self, q: Var, k: Var, v: Var) -> Var:
        """Every position looks at itself and earlier ones. -> [B, T, HEADS * HEAD]."""
        b, _, t, _ = q.value.shape
        shape = (b, KV_HEADS, HEADS // KV_HEADS, t, HEAD)
        queries, keys, values = q.value.reshape(shape), k.value[:, :, None], v.value[:, :, None]
        scale = np.float32(HEAD**-0.5)
        odds = softmax(queries @ keys.swapaxes(-1, -2) * scale + np.triu(np.full((t, t), NEVER), 1))
        mixed = (odds @ values).reshape(b, HEADS, t, HEAD)

        def back(grad: Array) -> None:
            grad = grad.reshape(b, t, HEADS, HEAD).transpose(0, 2, 1, 3).reshape(shape)
            inner = grad @ values.swapaxes(-1, -2)
            inner = odds * (inner - (inner * odds).sum(-1, keepdims=True)) * scale
            q.grad = q.grad + (inner @ keys).reshape(q.value.shape)
            k.grad = k.grad + (inner.swapaxes(-1, -2) @ queries).sum(2)
            v.grad = v.grad + (odds.swapaxes(-1, -2) @ grad).sum(2)

        return self.result(mixed.transpose(0, 2, 1, 3).reshape(b, t, HEADS * HEAD), back)

    def loss(self, logits: Var, wanted: Array) -> float:
        """The mean of -log of the probabilities of the wanted tokens; 0 is none."""
        odds = softmax(logits.value)
        counts = (wanted != 0) / (wanted != 0).sum(dtype=np.float32)
        right = np.take_along_axis(odds, wanted[..., None], -1)

        def back() -> None:
            np.put_along_axis(odds, wanted[..., None], right - 1, -1)
            logits.grad = odds * counts[..., None]

        self._steps.append(back)
        return float(-(np.log(np.maximum(right[..., 0], 1e-30)) * counts).sum())


def softmax(x: Array) -> Array:
    """Over the last axis."""
    odds = np.exp(x - x.max(-1, keepdims=True))
    return odds / odds.sum(-1, keepdims=True)


def rotated(x: Array, sign: int) -> Array:
    """Turn pairs of elements by the angles of their positions, [..., T, HEAD]."""
    cos, sin = COS[: x.shape[-2]], SIN[: x.shape[-2]] * np.float32(sign)
    first, last = x[..., : HEAD // 2], x[..., HEAD // 2 :]
    return np.concatenate([first * cos - last * sin, last * cos + first * sin], -1)


def drawn(rng: np.random.Generator) -> dict[str, Array]:
    """Return random parameters by name."""
    kv = KV_HEADS * HEAD
    shapes: dict[str, tuple[int, ...]] = {"table": (VOCABULARY, DIM), "last": (DIM,)}
    for i in range(LAYERS):
        products = {"q": (DIM, DIM), "k": (DIM, kv), "v": (DIM, kv), "o": (DIM, DIM)}
        products |= {"gate": (DIM, HIDDEN), "up": (DIM, HIDDEN), "down": (HIDDEN, DIM)}
        shapes |= {f"{it}_{i}": shape for it, shape in products.items()}
        shapes |= {f"norm_{i}": (DIM,), f"mid_{i}": (DIM,)}
    parameters = {
        name: np.ones(shape) if len(shape) == 1 else rng.normal(0, shape[0] ** -0.5, shape)
        for name, shape in shapes.items()
    }
    return {name: it.astype(np.float32) for name, it in parameters.items()}


def logits(tape: Tape, p: Mapping[str, Var], ids: Array) -> Var:
    """Return the logits after each token, [B, T] -> [B, T, VOCABULARY]."""
    x = tape.rows(p["table"], ids)
    for i in range(LAYERS):
        y = tape.norm(x, p[f"norm_{i}"])
        q, k, v = (tape.heads(tape.dense(y, p[f"{it}_{i}"]), turn=it != "v") for it in "qkv")
        x = tape.add(x, tape.dense(tape.attention(q, k, v), p[f"o_{i}"]))
        y = tape.norm(x, p[f"mid_{i}"])
        y = tape.gated(tape.dense(y, p[f"gate_{i}"]), tape.dense(y, p[f"up_{i}"]))
        x = tape.add(x, tape.dense(y, p[f"down_{i}"]))
    return tape.dense(tape.norm(x, p["last"]), p["table"], turned=True)


def train(parameters: dict[str, Array], texts: list[list[int]], rng: np.random.Generator) -> None:
    """Change the parameters by Adam, with a rate that rises, then falls to zero."""
    first = {name: np.zeros_like(it) for name, it in parameters.items()}
    second = {name: np.zeros_like(it) for name, it in parameters.items()}
    for step in range(1, STEPS + 1):
        batch = [texts[it] for it in rng.integers(0, len(texts), BATCH)]
        tokens = np.zeros((BATCH, max(map(len, batch))), np.int64)
        for row, ids in zip(tokens, batch, strict=True):
            row[: len(ids)] = ids
        values, tape = {name: Var(it) for name, it in parameters.items()}, Tape()
        loss = tape.loss(logits(tape, values, tokens[:, :-1]), tokens[:, 1:])
        tape.backward()
        rate = RATE * min(1, step / 50, 1 - step / (STEPS + 1))
        scale = rate * (1 - 0.99**step) ** 0.5 / (1 - 0.9**step)
        for name, it in values.items():
            first[name] += 0.1 * (it.grad - first[name])
            second[name] += 0.01 * (it.grad**2 - second[name])
            parameters[name] -= scale * first[name] / (np.sqrt(second[name]) + 1e-8)
        if step % 100 == 0:
            print(f"step {step} of {STEPS}: loss {loss:.3f}", flush=True)


LAYER = """
    a_N = RMSNormalization(x_N, norm_N)
    q_row_N = MatMul(a_N, q_N)
    k_row_N = MatMul(a_N, k_N)
    v_row_N = MatMul(a_N, v_N)
    q_heads_N = Reshape(q_row_N, q_shape)
    k_heads_N = Reshape(k_row_N, kv_shape)
    v_heads_N = Reshape(v_row_N, kv_shape)
    q_turned_N = RotaryEmbedding(q_heads_N, cos, sin, places)
    k_turned_N = RotaryEmbedding(k_heads_N, cos, sin, places)
    key_N_out = TensorScatter<axis=2>(key_N, k_turned_N, position)
    value_N_out = TensorScatter<axis=2>(value_N, v_heads_N, position)
    mixed_N = Attention(q_turned_N, key_N_out, value_N_out, seen)
    flat_N = Reshape(mixed_N, row_shape)
    attended_N = MatMul(flat_N, o_N)
    b_N = Add(x_N, attended_N)
    c_N = RMSNormalization(b_N, mid_N)
    gate_row_N = MatMul(c_N, gate_N)
    share_N = Sigmoid(gate_row_N)
    curve_N = Mul(gate_row_N, share_N)
    up_row_N = MatMul(c_N, up_N)
    hidden_N = Mul(curve_N, up_row_N)
    down_row_N = MatMul(hidden_N, down_N)
    x_NEXT = Add(b_N, down_row_N)"""


def network(parameters: Mapping[str, Array]) -> onnx.ModelProto:
    """Return the network for one token a run, with caches of CONTEXT rows."""
    cache = f"float[1,{KV_HEADS},{CONTEXT},{HEAD}]"
    kinds = [f"{kind}_{i}" for i in range(LAYERS) for kind in ("key", "value")]
    before, after = ("".join(f", {cache} {it}{end}" for it in kinds) for end in ("", "_out"))
    layers = (LAYER.replace("_NEXT", f"_{i + 1}").replace("_N", f"_{i}") for i in range(LAYERS))
    model = onnx.parser.parse_model(f"""
<ir_version: 11, opset_import: ["": 24]>
story (int64[1,1] token, int64[1] position{before}) => (float[1,1,{VOCABULARY}] logits{after}) {{
    x_0 = Gather(table, token)
    places = Unsqueeze(position, zero)
    seen = LessOrEqual(rows, places){"".join(layers)}
    y = RMSNormalization(x_{LAYERS}, last)
    logits = MatMul(y, turned_table)
}}""")
    shapes = {"q_shape": (1, HEADS, 1, HEAD), "kv_shape": (1, KV_HEADS, 1, HEAD), "row_shape": (1, 1, DIM)}
    constants = {**parameters, "turned_table": parameters["table"].T, "cos": COS, "sin": SIN}
    constants |= {"zero": np.array([0]), "rows": np.arange(CONTEXT)[None]}
    constants |= {name: np.array(it) for name, it in shapes.items()}
    for name, it in constants.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.ascontiguousarray(it), name))
    return model


def pack(model: onnx.ModelProto) -> None:
    """Give the matrices of products and the table 4 bits, and a scale for each BLOCK weights of a sum."""
    graph = model.graph
    axes = {it.input[1]: 0 for it in graph.node if it.op_type == "MatMul"} | {"table": 1}
    for it in [it for it in graph.initializer if it.name in axes]:
        weights, axis = onnx.numpy_helper.to_array(it), axes[it.name]
        blocks = np.split(weights, weights.shape[axis] // BLOCK, axis)
        scales = np.stack([np.abs(block).max(axis) / 7 for block in blocks], axis)
        integers = np.rint(weights / np.repeat(scales, BLOCK, axis)).astype(int).ravel()
        names = [f"{it.name}_integers", f"{it.name}_scales"]
        unpack = onnx.helper.make_node("DequantizeLinear", names, [it.name], axis=axis, block_size=BLOCK)
        packed = onnx.helper.make_tensor(names[0], onnx.TensorProto.INT4, weights.shape, integers)
        graph.node.insert(0, unpack)
        graph.initializer.remove(it)
        graph.initializer.extend([packed, onnx.numpy_helper.from_array(scales, names[1])])


def main() -> None:
    """Make the stories, train the tokenizer and the network, and write all files."""
    texts = list(stories(20000, seed=0))
    Path("stories.txt").write_text("\n\n".join(texts[:20]) + "\n", "utf-8")
    tokenizer = trained_tokenizer(texts)
    tokenizer.save("tokenizer.json")
    rng = np.random.default_rng(0)
    parameters = drawn(rng)
    print(f"{sum(it.size for it in parameters.values()):,} parameters, {len(texts):,} stories")
    train(parameters, [it.ids for it in tokenizer.encode_batch(texts)], rng)
    model = network(parameters)
    onnx.save(model, "story.onnx")
    pack(model)
    onnx.save(model, "story_int4.onnx")


if __name__ == "__main__":
    main()
