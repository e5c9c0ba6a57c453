"""The whole flow of `run --chain`: cut, plan, build, flash, run frames, verify."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import load_board
from mcudeploy.common.errors import FitError, Proposal, ProtocolError, UsageError
from mcudeploy.common.progress import Progress
from mcudeploy.common.system.streams import PASSES_DESCRIPTORS
from mcudeploy.common.text import count_text
from mcudeploy.device.target import Target, open_device, require_port
from mcudeploy.execution.deployment import Deployment
from mcudeploy.extensions.several_boards.board_cuts import board_partition
from mcudeploy.extensions.several_boards.chain_firmware import ChainBoard, built, planned
from mcudeploy.extensions.several_boards.frame_times import FrameTimes, replayed, timed
from mcudeploy.extensions.several_boards.frames import BoardStatus, Chain, ChainRecord, RunningBoard
from mcudeploy.extensions.several_boards.link import WINDOW_BYTES, UartLink
from mcudeploy.extensions.several_boards.stages import Stage, stages_of
from mcudeploy.ir.graph import Graph
from mcudeploy.planner.model.model import Model, read_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import find_plans
from mcudeploy.tiling.dataflow import Dataflow
from mcudeploy.toolchain import Firmware
from mcudeploy.verify.compare import as_array
from mcudeploy.verify.preprocessing import AS_USUAL, Preprocessing
from mcudeploy.verify.samples import Sample, load_samples
from mcudeploy.verify.verdict import Verdict, judge

_RESEND_INSTRUCTIONS = 200_000_000
_HOST_RESEND_US = 150_000
_PROPOSAL_S = 1.0
"""Time limit for each board of the searches that test a limit before an error proposes it."""
_DRAWN = 4
"""Number of drawn samples if the user gives none; frames use them in turn."""


@dataclass(frozen=True, slots=True)
class ChainRequest:
    """The user's request for a chain."""

    targets: tuple[Target, ...]
    link: UartLink
    frames: int


@dataclass(frozen=True, slots=True, eq=False)
class RunAlone:
    """A run of one board's part, without the other boards."""

    latency: int
    unit: str
    stack_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class BoardRun:
    """A board of a chain that ran. `state`: after all frames."""

    member: ChainBoard
    firmware: Firmware
    alone: RunAlone
    state: BoardStatus


@dataclass(frozen=True, slots=True, eq=False)
class ChainRun:
    """The result of a chain; `boards`: in the order of the chain."""

    request: ChainRequest
    boards: tuple[BoardRun, ...]
    times: FrameTimes
    verdict: Verdict


def run_chain(
    path: Path,
    request: ChainRequest,
    options: Options,
    *,
    inputs: list[Path],
    expected: list[Path],
    reading: Preprocessing = AS_USUAL,
    progress: Progress,
) -> ChainRun:
    """Run frames of a model on a chain of boards, and verify every result.

    Raises FitError if a stage does not fit its board.
    """
    for target in request.targets:
        require_port(target)
        _require_rate(target.board, request.link)
        if not PASSES_DESCRIPTORS and (target.emulated or target.board.is_host):
            raise UsageError(
                f"{target.board.name} would be a program joined to others by sockets, which Windows cannot "
                "do: run the chain on Linux (in WSL), or on real boards"
            )
    if options.hop is not None:
        raise UsageError("--hop is for one board, which keeps rows between runs: leave it out with --chain")

    model = read_model(path, options)
    if inputs or expected:
        samples = load_samples(model.graph, inputs, expected, options.seed, reading)
        _require_frames(len(samples), request.frames)
    else:
        numbers = range(min(_DRAWN, request.frames))
        samples = [load_samples(model.graph, [], [], options.seed + it)[0] for it in numbers]
    members = plan_chain(model, request, options, progress)
    firmware = []
    for member in members:
        progress.stage(f"building firmware for {member.title}")
        firmware.append(built(member, len(members), request.link))

    with _started(members, firmware, request.link) as nodes:
        progress.stage("measuring each board alone")
        alone = [_alone(node, member) for node, member in zip(nodes, members, strict=True)]
        progress.stage(f"running {count_text(request.frames, 'frame')}")
        results, record = _results(nodes, members, samples, request.frames, progress)
        states = [node.state() for node in nodes]
        times = _times(nodes, members, record, request.link)

    progress.stage("checking every operator against the reference")
    fuse_products = all(member.deployment.board.fuses_products for member in members)
    verdict = _verdict(model, samples, options, progress, fuses_products=fuse_products)
    sample_of_frame = list(islice(cycle(range(len(samples))), request.frames))
    of_frames = replace(
        verdict,
        host=[verdict.host[sample] for sample in sample_of_frame],
        expected=[verdict.expected[sample] for sample in sample_of_frame],
    )
    outputs = [_outputs(model.graph, members[-1], result) for result in results]
    boards = tuple(map(BoardRun, members, firmware, alone, states))
    return ChainRun(request, boards, times, of_frames.with_device(outputs))


def plan_chain(
    model: Model, request: ChainRequest, options: Options, progress: Progress
) -> tuple[ChainBoard, ...]:
    """Cut a model, and plan each part for its board; the parts share the search time.

    Raises FitError. If only --ram-limit is too small, the error proposes one that is large enough.
    """
    boards = [target.board for target in request.targets]
    _require_memories(boards, options)
    if model.graph.states:
        raise UsageError("a chain of boards keeps nothing between runs, but the model has states")
    progress.stage(f"cutting {model.path.name} for {len(boards)} boards")
    partition = board_partition(model, boards, request.link, options.flash_percent)
    stages = stages_of(model, partition.operators, boards)
    try:
        return _planned(stages, request.targets, options, progress)
    except FitError as error:
        raise FitError(str(error), _wider_limit(stages, request.targets, options, progress)) from error


def _planned(
    stages: Sequence[Stage], targets: Sequence[Target], options: Options, progress: Progress
) -> tuple[ChainBoard, ...]:
    share = replace(options, time_limit=options.time_limit / len(stages))
    members = []
    for number, (stage, target) in enumerate(zip(stages, targets, strict=True)):
        progress.stage(f"planning board {number + 1} of {len(stages)}, {target.board.name}")
        members.append(planned(number, stage, target, share, progress))
    return tuple(members)


def _wider_limit(
    stages: Sequence[Stage], targets: Sequence[Target], options: Options, progress: Progress
) -> tuple[Proposal, ...]:
    """Return the proposal of a larger --ram-limit that short searches can keep; none if there is none."""
    if options.ram_limit is None:
        return ()
    short = replace(options, time_limit=_PROPOSAL_S * len(stages), ram_limit=None)
    try:
        members = _planned(stages, targets, short, progress)
        most = max(it.deployment.plan.layout.arena_bytes for it in members)
        _planned(stages, targets, replace(short, ram_limit=most), progress)
    except FitError:
        return ()
    return (Proposal(f"--ram-limit {most}", f"an arena of at most {most:,} bytes on each board"),)


def _require_rate(board: Board, link: UartLink) -> None:
    """Raise UsageError for a rate that a board's ports do not reach."""
    most = min((port.most_baud for port in board.ports if port.most_baud is not None), default=link.baud)
    if link.baud > most:
        raise UsageError(f"--link {link.text}: the lines of {board.name} reach {most:,} bits a second")


def _require_memories(boards: Sequence[Board], options: Options) -> None:
    """Raise UsageError for a memory limit that names a memory of no board."""
    known = {memory.name for board in boards for memory in board.memories}
    for name, _ in options.memory_limits:
        if name not in known:
            raise UsageError(
                f"no board of the chain has a memory {name!r}; there are {', '.join(sorted(known))}"
            )


@contextmanager
def _started(
    members: Sequence[ChainBoard], firmware: Sequence[Firmware], link: UartLink
) -> Iterator[list[RunningBoard]]:
    """Start all boards; socket pairs join those that this computer emulates."""
    with ExitStack() as stack:
        pairs = [socket.socketpair() for _ in members[1:]]
        for pair in pairs:
            for end in pair:
                stack.callback(end.close)
        nodes = []
        for number, (member, built_firmware) in enumerate(zip(members, firmware, strict=True)):
            before = pairs[number - 1][1].fileno() if number else None
            following = pairs[number][0].fileno() if number < len(pairs) else None
            wires, patience_s = (before, following), member.deployment.patience_s
            device = open_device(member.target, built_firmware, patience_s, wires=wires)
            delay = resend_us(member.target, link)
            nodes.append(RunningBoard(member.title, stack.enter_context(device), delay))
        for pair in pairs:  # each board has copies of its ends, which close when the board stops
            for end in pair:
                end.close()
        try:
            yield nodes
        except ProtocolError as error:
            dead = ((node.title, node.device.why_dead()) for node in nodes)
            raise next((ProtocolError(f"{title}: {why}") for title, why in dead if why), error) from error


def resend_us(target: Target, link: UartLink) -> int:
    """Return the microseconds of a board's clock after which it resends an unconfirmed packet.

    They are far more than a confirmation takes. An emulated board counts instructions, since it runs at any
    rate. A process of this computer may have an emulated neighbour.
    """
    if target.emulated and target.board.emulator is not None:
        return (_RESEND_INSTRUCTIONS << target.board.emulator.icount_shift) // 1000
    if target.board.is_host:
        return _HOST_RESEND_US
    return 20_000 + round(2e6 * WINDOW_BYTES * 10 / link.baud)


def _require_frames(samples: int, frames: int) -> None:
    if samples > frames:
        raise UsageError(f"{samples} samples need --frames {samples}, or more")


def _alone(node: RunningBoard, member: ChainBoard) -> RunAlone:
    with node.named():
        ticks = node.device.run(0, len(member.deployment.plan.tape))
        unit, convert = node.device.time_unit(member.target)
        return RunAlone(convert(ticks), unit, node.session.stack().used_bytes)


def _results(
    nodes: Sequence[RunningBoard],
    members: Sequence[ChainBoard],
    samples: Sequence[Sample],
    frames: int,
    progress: Progress,
) -> tuple[list[bytes], ChainRecord]:
    """Return the last payload of every frame, and the record of the run; frames use the samples in turn."""
    first, last = members[0].stage.received, members[-1].stage.sent
    stored = [b"".join(sample.stored[it.name].tobytes() for it in first.tensors) for sample in samples]
    patience_s = max(member.deployment.patience_s * member.target.board.patience for member in members)
    chain = Chain(nodes, patience_s)
    payloads = list(islice(cycle(stored), frames))
    results = chain.run(payloads, last.size_bytes, lambda done: progress.advance(done, frames))
    return results, chain.record


def _times(
    nodes: Sequence[RunningBoard], members: Sequence[ChainBoard], record: ChainRecord, link: UartLink
) -> FrameTimes:
    """Return the times of frames, by clocks unless a board is emulated."""
    if not any(member.target.emulated for member in members):
        return timed(record, nodes[-1])
    rates = []
    for node, member in zip(nodes, members, strict=True):
        rate = float(node.session.info.ticks_hz)
        if member.target.emulated:  # an instruction is a clock
            rate = (
                member.target.board.clock_hz
                * rate
                / member.target.board.instructions(node.session.info.ticks_hz)
            )
        rates.append(rate)
    transfers = [member.stage.sent.size_bytes / link.bytes_per_second for member in members[:-1]]
    return replayed(record, rates, transfers)


def _outputs(graph: Graph, last: ChainBoard, result: bytes) -> dict[str, Any]:
    """Return the outputs of the model in stored form, from the last payload."""
    roots, sent = Dataflow.of(graph).roots, last.stage.sent
    names = [io.tensor for io in graph.outputs]
    return {name: as_array(result[sent.span(roots[name])], graph.tensors[name]) for name in names}


def _verdict(
    model: Model, samples: list[Sample], options: Options, progress: Progress, *, fuses_products: bool
) -> Verdict:
    """Return the verdict on the unsplit model, run on this computer, against ONNX Runtime."""
    host = Target(load_board("host"))
    plans = find_plans(model, host.board, replace(options, split=False, memory_limits=(), ram_limit=None))
    whole = replace(Deployment.of(plans, plans.baseline, host.board, options), fuses_products=fuses_products)
    with open_device(host, whole.build(host), whole.patience_s) as machine:
        return judge(machine, whole.plan, model.path, samples, progress, choices=model.choices)
