"""Plans whose blocks or scratch lie elsewhere, mostly over others: wrong, or by chance right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from fuzzing import programs
from fuzzing.plans import JudgedPlan, with_splits
from fuzzing.running import Subject
from fuzzing.second_checker import verdict, written
from mcudeploy.checker.judge import PlanFaultError, check
from mcudeploy.ir.plan import Residences
from mcudeploy.verify.compare import Storage, run_once
from mcudeploy.verify.samples import load_samples
from tests.residing import with_arenas

_UNIT = 4
"""Bytes that offsets are multiples of."""


def overlapping(judged: JudgedPlan, random: Random) -> JudgedPlan:
    """The plan with one block, or the scratch of one step, where another block lies, or near it."""
    layout = judged.plan.layout
    places = [(name, at) for name, blocks in layout.blocks.items() for at in range(len(blocks))]
    works = [(name, at) for name, steps in layout.scratch.items() for at, it in enumerate(steps) if it]
    name, at = random.choice(places)
    shift = random.choice((-8, -4, 0, 0, 0, 4, 8))
    offset = max(0, random.choice(layout.blocks[name][at]).offset + shift) // _UNIT * _UNIT
    if works and random.random() < 0.4:
        layout = replace(layout, scratch=_elsewhere(layout.scratch, random.choice(works), offset, random))
    else:
        layout = replace(layout, blocks=_elsewhere(layout.blocks, random.choice(places), offset, random))
    return replace(judged, plan=with_arenas(judged.plan, layout, judged.model.work, judged.board))


def _elsewhere(
    every: Mapping[str, Residences], which: tuple[str, int], offset: int, random: Random
) -> dict[str, Residences]:
    """The residences, with one of a block at this offset."""
    name, number = which
    block = every[name][number]
    at = random.randrange(len(block))
    moved = (*block[:at], replace(block[at], offset=offset), *block[at + 1 :])
    return {**every, name: (*every[name][:number], moved, *every[name][number + 1 :])}


@dataclass
class Tally:
    """Counts of mutants by outcome, and what is wrong."""

    counts: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)


def examine_mutants(subjects: Sequence[Subject], count: int, seed: int, folder: Path) -> Tally:
    """Both checkers on the plans of subjects, and on `count` mutants of those with fused chains; an accepted
    mutant is run, and compared with the unsplit plan.
    """
    tally, random = Tally(), Random(seed)
    every = [(it, with_splits(judged)) for it in subjects for judged, _ in it.plans]
    for number, (subject, judged) in enumerate(every):
        tally.counts["accepted by both checkers"] += 1
        if verdict(written(judged, folder / str(number))):
            tally.findings.append(f"{subject.name}: the second checker refuses the plan {judged.way}")
    fused = [(subject, judged) for subject, judged in every if judged.plan.form.fused]
    accepted: list[tuple[Subject, JudgedPlan]] = []
    for number in range(count if fused else 0):
        subject, judged = fused[number % len(fused)]
        mutant = overlapping(judged, random)
        tally.counts["mutants"] += 1
        fault = _fault(mutant)
        refused = _second_refuses(mutant, folder / f"m{number}")
        if refused != bool(fault):
            tally.findings.append(f"{subject.name}: one checker refuses mutant {number}: {fault or 'second'}")
        if fault:
            tally.counts["mutants refused"] += 1
        else:
            accepted.append((subject, mutant))
    tally.findings += _differences(accepted, folder)
    return tally


def _fault(judged: JudgedPlan) -> str:
    try:
        check(judged.plan, judged.model.work, judged.board)
    except PlanFaultError as error:
        return str(error)
    return ""


def _second_refuses(judged: JudgedPlan, folder: Path) -> bool:
    """Whether the second checker refuses a plan, or there are no C tables that could hold it."""
    try:
        return verdict(written(judged, folder)) > 0
    except (ValueError, LookupError, AssertionError, OverflowError):
        return True


def _differences(mutants: Sequence[tuple[Subject, JudgedPlan]], folder: Path) -> list[str]:
    """Mutants whose outputs are not those of the unsplit plan."""
    if not mutants:
        return []
    programs_of = [programs.write(judged, f"mutant{at}", folder) for at, (_, judged) in enumerate(mutants)]
    programs.compile_programs(programs_of)
    executable, findings = programs.link(programs_of, folder), []
    for number, (subject, judged) in enumerate(mutants):
        sample = load_samples(judged.model.graph, [], [], subject.seed)[0]
        storage = Storage.of(judged.plan)
        try:
            with programs.Runner(executable) as runner:
                runner.select(number, subject.seed + 1)
                run_once(runner, storage, sample.stored)
                names = [io.tensor for io in judged.plan.graph.outputs]
                outputs = [storage.get_tensor(runner, name).tobytes() for name in names]
        except programs.RunError as error:
            findings.append(f"{subject.name}: an accepted mutant: {error}")
            continue
        if outputs != subject.outputs:
            findings.append(f"{subject.name}: an accepted mutant has other outputs")
    return findings
