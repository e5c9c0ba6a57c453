"""Rules for tensor products: MatMul of all shapes, Gemm and Einsum, as batches of matrix products."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

from mcudeploy.frontend.decompose.maker import Maker
from mcudeploy.frontend.onnx.nodes import Unsupported

_EQUATION = re.compile(r"[A-Za-z.]*(,[A-Za-z.]*)*(->[A-Za-z.]*)?")
_ELLIPSIS_LETTERS = "αβγδεζηθ"


@dataclass(frozen=True, slots=True)
class Term:
    """A tensor: its `shape`, and a letter for each of its dimensions."""

    name: str
    letters: str
    shape: tuple[int, ...]

    @property
    def sizes(self) -> dict[str, int]:
        """The size of each letter's dimension."""
        return dict(zip(self.letters, self.shape, strict=True))


def matmul(make: Maker) -> None:
    """Replace products that lowering lacks: vectors, repeated matrices, and batches of constant matrices."""
    a, b = make.shape(make.inputs[0]), make.shape(make.inputs[1])
    if 1 in (len(a or ()), len(b or ())):  # a vector needs the other operand's shape now: raise without it
        a, b = make.sizes(make.inputs[0]), make.sizes(make.inputs[1])
    if a is None or b is None or _is_plain(make, a, b):
        return
    lead = _ELLIPSIS_LETTERS[: max(len(a), len(b), 2) - 2]
    first = Term(make.inputs[0], "k" if len(a) == 1 else lead[len(lead) + 2 - len(a) :] + "mk", a)
    second = Term(make.inputs[1], "k" if len(b) == 1 else lead[len(lead) + 2 - len(b) :] + "kn", b)
    result = lead + ("m" if len(a) > 1 else "") + ("n" if len(b) > 1 else "")
    term = product(make, first, second, result)
    ordered(make, term, result, _sizes((first, second)), make.outputs[0])


def _is_plain(make: Maker, a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether lowering implements a product of these shapes."""
    if len(a) < 2 or len(b) < 2:
        return False
    is_constant = [make.is_constant(name) for name in make.inputs[:2]]
    if all(is_constant):
        return True
    if any(is_constant):
        return prod((a, b)[is_constant.index(True)][:-2]) == 1
    return _without_leading_ones(a[:-2]) == _without_leading_ones(b[:-2])


def _without_leading_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape without leading dimensions of size 1."""
    while shape and shape[0] == 1:
        shape = shape[1:]
    return shape


def gemm(make: Maker) -> None:
    """Replace a Gemm whose second or third matrix is computed, or whose third matrix differs between rows."""
    make.require_float()
    a, b, c = make.inputs[0], make.inputs[1], make.input(2)
    beta = make.number("beta", 1.0)
    constant = make.is_constant(b)
    if constant and (not c or _is_row(make, c)):
        return
    if constant:
        value = make.add("Gemm", a, b, **make.only("alpha", "transA", "transB"))
    else:
        a = make.add("Transpose", a, perm=(1, 0)) if make.integer("transA") else a
        b = make.add("Transpose", b, perm=(1, 0)) if make.integer("transB") else b
        value = _scaled(make, make.add("MatMul", a, b), make.number("alpha", 1.0))
    if c and beta != 0:
        make.add("Add", value, _scaled(make, c, beta), out=make.outputs[0])
    else:
        make.add("Identity", value, out=make.outputs[0])


def _is_row(make: Maker, name: str) -> bool:
    """Whether all rows of a constant matrix are equal."""
    constant = make.known(name)
    return constant is not None and (constant.ndim < 2 or bool((constant == constant[:1]).all()))


def _scaled(make: Maker, x: str, factor: float) -> str:
    return x if factor == 1 else make.add("Mul", x, make.constant(factor))


def einsum(make: Maker) -> None:
    """Replace Einsum by products of two operands, from the left."""
    shapes = [make.sizes(name) for name in make.inputs]
    letters, result = _letters(bytes(make.attributes["equation"]).decode(), [len(shape) for shape in shapes])
    terms = [_diagonal(make, Term(*each)) for each in zip(make.inputs, letters, shapes, strict=True)]
    sizes = _sizes(terms)
    total = terms[0]
    for place, term in enumerate(terms[1:], 2):
        wanted = set(result).union(*(later.letters for later in terms[place:]))
        total = product(make, total, term, "".join(letter for letter in sizes if letter in wanted))
    ordered(make, _summed(make, total, result), result, sizes, make.outputs[0])


def _letters(equation: str, ranks: list[int]) -> tuple[list[str], str]:
    """Return a letter for each dimension of the operands, and the letters of the result."""
    equation = equation.replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if not _EQUATION.fullmatch(equation) or len(terms) != len(ranks):
        raise Unsupported(f"its equation is not one for {len(ranks)} operands")
    dots = [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True)]
    lead = _ELLIPSIS_LETTERS[: max(dots)]
    full = [term.replace("...", lead[len(lead) - count :]) for term, count in zip(terms, dots, strict=True)]
    if not arrow:
        every = "".join(full)
        right = "..." + "".join(sorted(letter for letter in set(left) if every.count(letter) == 1))
    return full, right.replace("...", lead)


def _diagonal(make: Maker, term: Term) -> Term:
    """Take the diagonal of dimensions with the same letter, so that each letter occurs once."""
    for letter, size in zip(term.letters, term.shape, strict=True):
        if term.letters.count(letter) < 2:
            continue
        places = [place for place, each in enumerate(term.letters) if each == letter][:2]
        if term.shape[places[1]] != size:
            raise Unsupported(f"dimension {letter} has {size} and {term.shape[places[1]]} elements")
        rest = [place for place in range(len(term.shape)) if place not in places]
        moved = make.add("Transpose", term.name, perm=(*rest, *places))
        shape = tuple(term.shape[place] for place in rest)
        flat = make.reshaped(moved, (*shape, size * size))
        diagonal = make.slice(flat, [0], [size * size], [len(rest)], [size + 1])
        letters = "".join(term.letters[place] for place in rest) + letter
        return _diagonal(make, Term(diagonal, letters, (*shape, size)))
    return term


def _sizes(terms: Iterable[Term]) -> dict[str, int]:
    """Sizes by letter; dimensions of size 1 are broadcast."""
    sizes: dict[str, int] = {}
    for term in terms:
        for letter, size in term.sizes.items():
            if sizes.get(letter, 1) == 1:
                sizes[letter] = size
            elif size not in (1, sizes[letter]):
                raise Unsupported(f"its operands do not fit: dimensions of {size} and {sizes[letter]}")
    return sizes


def product(make: Maker, a: Term, b: Term, result_letters: str) -> Term:
    """Sum the products over the letters outside `result_letters`; the result has no dimensions of size 1."""
    a, b = _squeezed(make, a), _squeezed(make, b)
    sizes = _sizes((a, b))
    a = _summed(make, a, result_letters + b.letters)
    b = _summed(make, b, result_letters + a.letters)
    batch_letters = _common(a.letters, b.letters, result_letters)
    summed = "".join(letter for letter in _common(a.letters, b.letters) if letter not in result_letters)
    if not summed:
        return _elementwise(make, a, b, sizes)
    if batch_letters and make.is_constant(a.name):
        a, b = b, a
    rows = "".join(letter for letter in a.letters if letter not in b.letters)
    cols = "".join(letter for letter in b.letters if letter not in a.letters)
    groups = batch_letters, summed, rows, cols
    count, depth, height, width = (prod(sizes[letter] for letter in group) for group in groups)
    if batch_letters and make.is_constant(b.name):
        image = _grouped(make, a, batch_letters + summed + rows, (1, count * depth, height))
        filters = _grouped(make, b, batch_letters + cols + summed, (count * width, depth, 1))
        result = make.add("Conv", image, filters, group=count)
        return _ungrouped(make, result, batch_letters + cols + rows, sizes)
    batch = (count,) if batch_letters else ()
    left = _grouped(make, a, batch_letters + rows + summed, (*batch, height, depth))
    right = _grouped(make, b, batch_letters + summed + cols, (*batch, depth, width))
    return _ungrouped(make, make.add("MatMul", left, right), batch_letters + rows + cols, sizes)


def _common(letters: str, *others: str) -> str:
    """The letters that all others contain as well."""
    return "".join(letter for letter in letters if all(letter in other for other in others))


def _squeezed(make: Maker, term: Term) -> Term:
    """Remove the dimensions of size 1 from a tensor."""
    if 1 not in term.shape:
        return term
    letters = "".join(letter for letter, size in term.sizes.items() if size != 1)
    shape = tuple(size for size in term.shape if size != 1)
    return Term(make.reshaped(term.name, shape), letters, shape)


def _summed(make: Maker, term: Term, result_letters: str) -> Term:
    """Sum over the letters outside `result_letters`."""
    axes = [place for place, letter in enumerate(term.letters) if letter not in result_letters]
    if not axes:
        return term
    letters = _common(term.letters, result_letters)
    name = make.reduce("ReduceSum", term.name, axes, keep=False)
    return Term(name, letters, tuple(term.sizes[letter] for letter in letters))


def _elementwise(make: Maker, a: Term, b: Term, sizes: Mapping[str, int]) -> Term:
    letters = a.letters + "".join(letter for letter in b.letters if letter not in a.letters)
    first, second = (
        _grouped(make, term, _common(letters, term.letters), [term.sizes.get(each, 1) for each in letters])
        for term in (a, b)
    )
    return Term(make.add("Mul", first, second), letters, tuple(sizes[letter] for letter in letters))


def _grouped(make: Maker, term: Term, letters: str, shape: Iterable[int]) -> str:
    """Order the dimensions of a tensor as `letters`, then reshape it; return its name."""
    name = term.name
    if letters != term.letters:
        name = make.add("Transpose", name, perm=[term.letters.index(letter) for letter in letters])
    wanted = tuple(shape)
    return name if wanted == tuple(term.sizes[letter] for letter in letters) else make.reshaped(name, wanted)


def _ungrouped(make: Maker, name: str, letters: str, sizes: Mapping[str, int]) -> Term:
    """Reshape a tensor so that every letter has a dimension."""
    shape = tuple(sizes[letter] for letter in letters)
    return Term(make.reshaped(name, shape), letters, shape)


def ordered(make: Maker, term: Term, letters: str, sizes: Mapping[str, int], out: str) -> None:
    """Reorder the dimensions of a tensor and restore its dimensions of size 1."""
    present = "".join(letter for letter in letters if letter in term.letters)
    moved = _grouped(make, term, present, [term.sizes[letter] for letter in present])
    make.reshaped(moved, [sizes[letter] for letter in letters], out=out)
