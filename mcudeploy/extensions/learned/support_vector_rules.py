"""Rules for support vector machines of ai.onnx.ml, as ONNX Runtime computes them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from mcudeploy.extensions.learned.learned_rules import choose_label, class_labels, text_of, transform_of
from mcudeploy.frontend.decompose.maker import Maker
from mcudeploy.frontend.onnx.nodes import Unsupported

Array = NDArray[np.float32]


def svm_regressor(make: Maker) -> None:
    """Replace SVMRegressor: a sum of kernel values, or its sign for outliers (`one_class`)."""
    _require_one_float_row(make)
    if make.integer("n_supports") < 1:
        raise Unsupported("it has no support vectors: export a linear model (LinearSVR) in its stead")
    kernel = _kernel(make, make.integer("n_supports"))
    weights = _floats(make, "coefficients").reshape(-1, 1)
    if len(weights) != make.integer("n_supports") or not len(_floats(make, "rho")):
        raise Unsupported(f"its coefficients do not fit {make.integer('n_supports')} vectors")
    total = make.add("MatMul", kernel, make.constant(weights))
    if not make.integer("one_class"):
        make.add("Add", total, make.constant(_floats(make, "rho")[:1]), out=make.outputs[0])
        return
    score = make.add("Add", total, make.constant(_floats(make, "rho")[:1]))
    inside = make.add("Less", make.constant(0.0), score)
    make.add("Where", inside, make.constant(1.0), make.constant(-1.0), out=make.outputs[0])


def svm_classifier(make: Maker) -> None:
    """Replace SVMClassifier: the score of each pair of classes is a vote; the class with most votes wins."""
    _require_one_float_row(make)
    labels, sizes = class_labels(make, "classlabels_ints"), list(make.attributes.get("vectors_per_class", ()))
    count, vectors_in_all = len(labels), sum(sizes)
    if count < 2 or len(sizes) != count or vectors_in_all < 1 or min(sizes) < 0:
        raise Unsupported("it has no support vectors of each class: export a linear model in its stead")
    coefficients, rho = _floats(make, "coefficients"), _floats(make, "rho")
    if coefficients.size != (count - 1) * vectors_in_all or rho.size < count * (count - 1) // 2:
        raise Unsupported(f"its coefficients do not fit {vectors_in_all} vectors of {count} classes")
    pairs, ends = list(combinations(range(count), 2)), np.cumsum([0, *sizes])
    coefficients = coefficients.reshape(count - 1, -1)
    weights = np.zeros((int(ends[-1]), len(pairs)), np.float32)
    votes = np.zeros((len(pairs), count), np.float32)
    for pair, (one, other) in enumerate(pairs):
        # A vector has one coefficient per other class: row k is that for class k, or k + 1 from its own on.
        for own, rival in ((one, other - 1), (other, one)):
            vectors = slice(int(ends[own]), int(ends[own + 1]))
            weights[vectors, pair] = coefficients[rival, vectors]
        votes[pair, one], votes[pair, other] = 1, -1
    kernel = _kernel(make, int(ends[-1]))
    scores = make.add("MatMul", kernel, make.constant(weights))
    scores = make.add("Add", scores, make.constant(rho[: len(pairs)]))
    for_one = make.add("Cast", make.add("Less", make.constant(0.0), scores), to=TensorProto.FLOAT)
    against = [sum(other == at for _, other in pairs) for at in range(count)]
    counted = make.add("Add", make.add("MatMul", for_one, make.constant(votes)), make.constant(against))
    choose_label(make, make.add("ArgMax", counted, axis=1, keepdims=0), labels)
    if not make.output(1):
        return
    if make.attributes.get("prob_a") and make.is_read(make.output(1)):
        raise Unsupported(
            "its probabilities need an iteration: train with probability=False, and take the scores"
        )
    if len(pairs) == 1:
        make.add("Concat", make.add("Neg", scores), scores, out=make.output(1), axis=1)
    else:
        make.add("Identity", scores, out=make.output(1))


def _require_one_float_row(make: Maker) -> None:
    make.require_float()
    if transform_of(make) != "NONE":
        raise Unsupported(f"the transformation {transform_of(make)} is not supported; NONE is")
    rows = int(np.prod(make.sizes(make.inputs[0])[:-1]))
    if rows != 1:
        raise Unsupported(f"{rows} rows in a run are not supported; one is")


def _kernel(make: Maker, count: int) -> str:
    """The kernel of the input and each support vector, [1, count].

    Distances are sums of squared differences, as in ONNX Runtime: by products they would lose digits.
    """
    width = make.sizes(make.inputs[0])[-1]
    vectors = _floats(make, "support_vectors")
    if vectors.size != count * width:
        raise Unsupported(f"{vectors.size} values do not fit {count} vectors of {width}")
    vectors = vectors.reshape(count, width)
    parameters = _floats(make, "kernel_params", (0, 0, 0))
    if len(parameters) != 3:
        raise Unsupported(f"a kernel has three parameters, not {len(parameters)}")
    gamma, offset, degree = map(make.constant, parameters)
    x, kind = make.reshaped(make.inputs[0], [1, width]), text_of(make, "kernel_type", b"LINEAR")
    if kind == "RBF":
        gap = make.add("Sub", make.constant(vectors), x)
        distances = make.reshaped(make.reduce("ReduceSum", make.add("Mul", gap, gap), [1]), [1, count])
        return make.add("Exp", make.add("Mul", distances, make.add("Neg", gamma)))
    product = make.add("MatMul", x, make.constant(vectors.T.copy()))
    if kind == "LINEAR":
        return product
    shifted = make.add("Add", make.add("Mul", product, gamma), offset)
    if kind == "POLY":
        return make.add("Pow", shifted, degree)
    if kind == "SIGMOID":
        return make.add("Tanh", shifted)
    raise Unsupported(f"the kernel {kind} is not supported; LINEAR, POLY, RBF and SIGMOID are")


def _floats(make: Maker, name: str, default: tuple[float, ...] = ()) -> Array:
    return np.array(make.attributes.get(name, default), np.float32)
