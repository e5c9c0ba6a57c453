"""The run of a plan's tape on arenas whose bytes record their owners: every read finds what it expects."""

from __future__ import annotations

from mcudeploy.checker.owners import Owners, PlanFaultError, Shapes
from mcudeploy.ir.engine import CPU
from mcudeploy.ir.graph import Operator
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Plan, Run, Transfer, Wait


def replay(plan: Plan, shapes: Shapes) -> None:
    """Run the tape. Raises PlanFaultError for a step out of order, a wrong read or a wrong write."""
    owners = Owners(plan, shapes)
    for io in plan.graph.resident_inputs():
        owners.fill(io.tensor)
    begun_runs: set[Run] = set()
    last_fed: dict[int, int] = {}
    transfers_begun, waited = 0, dict[str, int]()
    in_flight: dict[int, Transfer] = {}
    for entry in plan.tape:
        if isinstance(entry, Wait):
            waited[entry.engine] = entry.transfer
        for number, transfer in list(in_flight.items()):
            if transfer.end <= owners.time and number <= waited.get(transfer.engine, -1):
                owners.finish(number, in_flight.pop(number))
        if isinstance(entry, Transfer):
            if entry.engine == CPU:
                owners.move(entry)
            else:
                in_flight[transfers_begun] = entry
                owners.begin(transfers_begun, entry)
            transfers_begun += 1
        if not isinstance(entry, Run):
            continue
        operator = plan.graph.operators[entry.operator]
        where = f"step {owners.time} ({operator.name}, block {entry.block})"
        if not operator.inputs and entry.block <= last_fed.get(entry.operator, -1):
            fault = "the same rows again" if entry in begun_runs else "earlier rows after later ones"
            raise PlanFaultError(f"{where} asks the application for {fault}")
        if entry in begun_runs and any(it.is_continued_by(operator) for it in plan.graph.states):
            raise PlanFaultError(f"{where} goes on with its state a second time")
        if not operator.inputs:
            last_fed[entry.operator] = entry.block
        begun_runs.add(entry)
        _run_step(plan, owners, operator, entry.block, where)
        owners.time += 1
    owners.time = shapes.steps - 1
    for state in plan.graph.states:
        owners.expect_home(state)
    for io in plan.graph.outputs:
        rows = plan.graph.tensors[io.tensor].shape[0]
        owners.expect(io.tensor, Interval(0, rows), f"the end, output {io.tensor}")


def _run_step(plan: Plan, owners: Owners, operator: Operator, block: int, where: str) -> None:
    inputs = plan.graph.input_tensors(operator)
    accumulates = operator.op.accumulates
    size = plan.rows_of(operator.name)
    total = inputs[0].shape[0] if accumulates else plan.graph.tensors[operator.output].shape[0]
    if not 0 <= block < size.count(total):
        raise PlanFaultError(f"{where}: the operator has no block {block}")
    rows = size.interval(block, total)
    output_block = 0 if accumulates else block
    written, place = None, -1
    if not accumulates or rows.hi == total:  # the last step writes the output
        place, written = owners.place(operator.output, output_block, where)
    allowed = operator.op.overwrites(inputs, plan.graph.tensors[operator.output])
    nest = plan.graph.loops(operator)
    busy = [] if written is None else [written]
    for operand, tensor in enumerate(inputs):
        rows_of = nest.rows_taken if accumulates else nest.rows_read
        needed = rows_of(operand, rows, tensor.shape[0])
        read_so_far = rows_of(operand, Interval(0, max(rows.lo, 1)), tensor.shape[0])
        adds = accumulates and operand in allowed and len(read_so_far) > 0  # its sums replace the operand
        for read in owners.expect(tensor.name, needed, where):
            same_place = read == written and operand in allowed and owners.lead(tensor.name) == size.lead
            if written is not None and read.shares(written) and not same_place:
                raise PlanFaultError(f"{where}: the output overlaps input {tensor.name} at {read.bytes}")
            if adds and rows.lo > 0 and written is not None and read != written:
                raise PlanFaultError(f"{where} has its sums at {read.bytes}, the result elsewhere")
            busy.append(read)
        if adds and written is None:
            owners.rewrite(tensor.name)
    for constants in owners.expect_constants(operator.name, where):
        if any(constants.shares(it) for it in busy):
            raise PlanFaultError(f"{where}: a tensor of the step overlaps its constants at {constants.bytes}")
        busy.append(constants)
    owners.use_scratch(operator, block, busy, where)
    if written is not None:
        owners.write(operator.output, output_block, place)
