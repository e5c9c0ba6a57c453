"""Networks of bottlenecks, and their plans with fused chains that no search would choose."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fuzzing import layers
from fuzzing.draft import Draft
from fuzzing.generate import KINDS, Drawn, exported, naming
from fuzzing.quantise import Style, draw_style, quantised
from mcudeploy.ir.graph import Graph
from mcudeploy.ops.fused.fused import MOST_STAGES, fused_name, is_stage
from mcudeploy.planner.search.fusing import chains
from mcudeploy.planner.search.seeds import Chain

_SIDES = (1, 2, 5, 7, 8, 9, 11, 12, 13, 16, 20)
_DEPTHS = (1, 2, 3, 4, 5, 6, 8, 9)
_LAYERS = (layers.bottleneck,) * 12 + (layers.convolution, layers.pool, layers.function, layers.binary)


def draw_bottlenecks(seed: int) -> Drawn:
    """The network of a seed: bottlenecks, some with residuals, and a few other layers between them."""
    random = np.random.default_rng((seed, 56))
    kind = str(random.choice((*KINDS, "int8", "channels", "channels")))
    draft = Draft(random, int(random.choice([13, 17, 18, 21])), naming(random))
    draft.input((1, draft.pick(_DEPTHS), draft.pick(_SIDES), draft.pick(_SIDES)))
    wanted = draft.pick((5, 9, 14))
    for _ in range(40):
        if len(draft.nodes) >= wanted:
            break
        draft.pick(_LAYERS)(draft)
    draft.choose_outputs()
    wide = kind == "mixed" and draft.chance(0.4)
    plain = Style(channels=draft.chance(0.7), integer_borders=True)  # so that most have int8 bottlenecks
    style = plain if kind in ("int8", "channels") else draw_style(draft, kind, wide=wide)
    model = draft.model() if kind == "float32" else quantised(draft, style)
    return Drawn(seed, kind, ("int16",) if wide else (), exported(model, draft))


def drawn_chains(graph: Graph, random: np.random.Generator) -> tuple[Chain, ...]:
    """Those that a search proposes, or any of any length, whether or not they save memory."""
    if random.random() < 0.75 and (proposed := chains(graph)):
        return proposed
    names, drawn = {operator.name for operator in graph.operators}, list[Chain]()
    for run in _runs(graph):
        at = 0
        while at < len(run) - 1:
            chain = run[at : at + int(random.integers(2, MOST_STAGES + 1))]
            at += 1
            if len(chain) > 1 and random.random() < 0.8 and fused_name(chain) not in names:
                drawn.append(chain)
                names.add(fused_name(chain))
                at += len(chain) - 1
    return tuple(drawn)


def _runs(graph: Graph) -> Iterator[Chain]:
    """The longest stretches of stages, each the only reader of the one before."""
    readers, outputs = graph.readers(), {io.tensor for io in graph.outputs}
    stages = {operator.name: operator for operator in graph.operators if is_stage(graph, operator)}
    following = {}
    for name, operator in stages.items():
        after = [graph.operators[at] for at in readers[operator.output]]
        if len(after) == 1 and after[0].name in stages and operator.output not in outputs:
            following[name] = after[0].name
    for name in stages:
        if name not in following.values():
            run = [name]
            while run[-1] in following:
                run.append(following[run[-1]])
            yield tuple(run)
