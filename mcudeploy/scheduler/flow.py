"""Minimum cuts that force steps to one side, compiled: what else is sure while a step runs within a bound.

The network is that of `bounds.Network` for one step, without what is known to be done or left while it runs,
and without a node for a buffer that one step is sure to begin, or to end. Flows are maximum by blocking flows
(Dinic). A cut with one step more forced begins with the flow that was there without it.

Most questions need no cut: a set of done steps with which a step fits within the bound shows that nothing
can be learned of the steps in it, nor of those not in it. Sets are kept, made from those of other steps, and
from one another by adding a step with all before it, or taking one out with all behind it.

Sides: 0 for what is done, 1 for what is left. All that calls each other is in one file: numba keeps compiled
code as long as its own file is the same, and sees no change in another.

Import only where it is needed: numba takes its time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from mcudeploy.scheduler.arrays import Bits, Flags, Given, Ints, Known

FIELDS = (
    "touched_at touched touches_at touches touching size initial kept inner alone fixed",
    "before behind needs sets values held looked_through checked direct pairs counts",
)
"""Of `Given` and `Known`, to be changed with them: compiled code knows fields by their places alone."""

DIRECT, LEARNED, WORK = range(3)
"""Where `Known.counts` has how many pairs are direct, how many were learned, and the work done: sets weighed,
and `WORTH` for each minimum cut.
"""

WORTH = 30
"""Sets that are weighed in the time of one cut."""

REFRESHED = 30
"""Of so many steps that need the most it is worked out anew what they need, after each success."""

_EXTENDED = 8
"""So many sets of a step are tried with one step more, or less, before a cut is."""

_ENDLESS = 1 << 60
_ONE = np.uint64(1)

CONTRADICTED = -1
"""For bytes, where what is known excludes a turn."""


class Net(NamedTuple):
    """Arcs by the node they leave, each with its opposite `back`. Nodes: what is done, what is left,
    undecided steps, then begins and ends of buffers. `node`: by step, -1 if decided. `forced`: by side and
    node the arc that has room once a step is known to be on that side.
    """

    at: Ints
    head: Ints
    room: Ints
    back: Ints
    node: Ints
    forced: Ints


@njit(cache=True)
def has(words: Bits, member: int) -> bool:
    """Whether a set has a member."""
    return bool(words[member >> 6] >> np.uint64(member & 63) & _ONE)


@njit(cache=True)
def tidy(known: Known) -> None:
    """Forget direct pairs that follow from others by a step in between."""
    kept = 0
    for pair in range(known.counts[DIRECT]):
        first, second = known.direct[pair, 0], known.direct[pair, 1]
        between = False
        for w in range(known.before.shape[1]):
            between |= known.behind[first, w] & known.before[second, w] != 0
        if not between:
            known.direct[kept, 0], known.direct[kept, 1] = first, second
            kept += 1
    known.counts[DIRECT] = kept


@njit(cache=True)
def add_pair(known: Known, first: int, second: int) -> None:
    """`first` comes before `second`, and so does all before the one before all behind the other."""
    ahead, after = known.before[first].copy(), known.behind[second].copy()
    ahead[first >> 6] |= _ONE << np.uint64(first & 63)
    after[second >> 6] |= _ONE << np.uint64(second & 63)
    for step in range(len(known.before)):
        for w in range(len(after)) if has(after, step) else range(0):
            known.before[step, w] |= ahead[w]
        for w in range(len(after)) if has(ahead, step) else range(0):
            known.behind[step, w] |= after[w]
    direct, learned = known.counts[DIRECT], known.counts[LEARNED] % len(known.pairs)
    known.direct[direct, 0], known.direct[direct, 1] = first, second
    known.pairs[learned, 0], known.pairs[learned, 1] = first, second
    known.counts[DIRECT] += 1
    known.counts[LEARNED] += 1


@njit(cache=True)
def _open(known: Known, step: int) -> Bits:
    """The steps of which it is not known on which side they are."""
    found = np.empty(known.before.shape[1], np.uint64)
    for w in range(len(found)):
        found[w] = ~(known.before[step, w] | known.behind[step, w])
    found[step >> 6] &= ~(_ONE << np.uint64(step & 63))
    if len(known.before) & 63:
        found[-1] &= (_ONE << np.uint64(len(known.before) & 63)) - _ONE
    return found


@njit(cache=True)
def _own(given: Given, step: int) -> int:
    """Bytes that are there while a step runs, whatever is done."""
    need = given.fixed[step]
    for buffer in given.touches[given.touches_at[step] : given.touches_at[step + 1]]:
        if given.alone[buffer] or given.inner[buffer]:
            need += given.size[buffer]
    return int(need)


@njit(cache=True)
def _network(given: Given, known: Known, step: int) -> tuple[int, Net]:  # noqa: PLR0915
    """Bytes that are there whatever is decided, and the network for the rest."""
    steps, words = known.before.shape
    open_ = _open(known, step)
    node, nodes = np.full(steps, -1), 2
    for other in range(steps):
        if has(open_, other):
            node[other] = nodes
            nodes += 1
    forced = np.empty((2, nodes), np.int64)
    most = known.counts[DIRECT] + len(given.size) + 2 * len(given.touched) + 2 * nodes
    arcs, room, count = np.empty((most, 2), np.int64), np.full(most, _ENDLESS), 0
    for x in range(2, nodes):
        arcs[count, 0], arcs[count, 1], arcs[count + 1, 0], arcs[count + 1, 1] = 0, x, x, 1
        room[count] = room[count + 1] = 0
        count += 2
    for pair in range(known.counts[DIRECT]):
        first, second = node[known.direct[pair, 0]], node[known.direct[pair, 1]]
        if first >= 0 and second >= 0:
            arcs[count, 0], arcs[count, 1] = second, first
            count += 1
    need = _own(given, step)
    for b in range(len(given.size)):
        touching = given.touching[b]
        if not given.inner[b] or has(touching, step):
            continue
        begun, left, some = given.initial[b], given.kept[b], False
        for w in range(words):
            begun |= touching[w] & known.before[step, w] != 0
            left |= touching[w] & known.behind[step, w] != 0
            some |= touching[w] & open_[w] != 0
        if begun and left:
            need += given.size[b]
        if not some or (begun and left):
            continue
        ends = np.arange(2)  # the nodes that stand for its begin and its end
        for side in range(2):
            if left if side else begun:
                continue
            nearest, since = known.behind if side else known.before, count
            for other in given.touched[given.touched_at[b] : given.touched_at[b + 1]]:
                among = node[other] >= 0
                for w in range(words):
                    among &= not nearest[other, w] & touching[w] & open_[w]
                if among:
                    ends[side] = node[other]
                    arcs[count, side], arcs[count, 1 - side] = node[other], nodes
                    count += 1
            if count == since + 1:
                count = since  # one step is sure to be it
            else:
                ends[side] = nodes
                nodes += 1
        arcs[count, 0], arcs[count, 1] = ends[0], ends[1]
        room[count] = given.size[b]
        count += 1
    at = np.zeros(nodes + 1, np.int64)
    for arc in range(count):
        at[arcs[arc, 0] + 1] += 1
        at[arcs[arc, 1] + 1] += 1
    for x in range(nodes):
        at[x + 1] += at[x]
    free, head, back = at.copy(), np.empty(2 * count, np.int64), np.empty(2 * count, np.int64)
    rooms = np.zeros(2 * count, np.int64)
    for arc in range(count):
        tail, to = arcs[arc, 0], arcs[arc, 1]
        one = free[tail]
        free[tail] += 1
        other = free[to]
        free[to] += 1
        head[one], head[other], rooms[one], back[one], back[other] = to, tail, room[arc], other, one
        if arc < 2 * (len(forced[0]) - 2):
            forced[arc & 1, 2 + (arc >> 1)] = one
    return need, Net(at, head, rooms, back, node, forced)


@njit(cache=True)
def _far(net: Net, room: Ints, source: int, target: int, far: Ints, queue: Ints) -> bool:  # noqa: PLR0917
    """Into `far` how many arcs lie between a node and the target, or what is left; -1 if no more can flow
    there from it. Ends once the source is reached, and tells if it was.
    """
    far[:] = -1
    far[target] = far[1] = 0
    queue[0], queue[1] = target, 1
    begin, end = 0, 1 if target == 1 else 2
    while begin < end:
        here = queue[begin]
        begin += 1
        for arc in range(net.at[here], net.at[here + 1]):
            there = net.head[arc]
            if far[there] < 0 and room[net.back[arc]] > 0:
                far[there] = far[here] + 1
                if there == source:
                    return True
                queue[end] = there
                end += 1
    return False


@njit(cache=True)
def _push(net: Net, room: Ints, source: int, target: int, most: int, far: Ints) -> int:  # noqa: PLR0917
    """Flow from one node to another: all there is, or more than `most`; `far` is that of the last search."""
    nodes, flow = len(net.at) - 1, 0
    turn, work, way = np.empty(nodes, np.int64), np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    while flow <= most and _far(net, room, source, target, far, work):
        turn[:] = net.at[:-1]
        here, length = source, 0
        while True:
            if here == target:
                amount = _ENDLESS
                for place in range(length):
                    amount = min(amount, room[way[place]])
                for place in range(length - 1, -1, -1):
                    arc = way[place]
                    room[arc] -= amount
                    room[net.back[arc]] += amount
                    if room[arc] == 0:
                        length, here = place, net.head[net.back[arc]]
                flow += amount
                if flow > most:
                    break
            while turn[here] < net.at[here + 1]:
                arc = turn[here]
                if room[arc] > 0 and far[net.head[arc]] == far[here] - 1 and far[here] > 0:
                    break
                turn[here] += 1
            if turn[here] < net.at[here + 1]:
                way[length] = turn[here]
                here = net.head[turn[here]]
                length += 1
            elif here == source:
                break
            else:
                length -= 1
                here = net.head[net.back[way[length]]]
                turn[here] += 1
    return flow


@njit(cache=True)
def _reached(net: Net, room: Ints, source: int) -> Flags:
    """The nodes where more could flow to from what is done, or from the source."""
    reached, queue = np.zeros(len(net.at) - 1, np.bool_), np.empty(len(net.at) - 1, np.int64)
    reached[0] = reached[source] = True
    queue[0], queue[1] = source, 0
    begin, end = 0, 1 if source == 0 else 2
    while begin < end:
        here = queue[begin]
        begin += 1
        for arc in range(net.at[here], net.at[here + 1]):
            there = net.head[arc]
            if not reached[there] and room[arc] > 0:
                reached[there] = True
                queue[end] = there
                end += 1
    return reached


@njit(cache=True)
def _keep(known: Known, step: int, done: Bits, value: int, seen: Bits) -> None:
    """Keep a set; where there is no room left, in place of the last one."""
    count = min(known.held[step], known.sets.shape[1] - 1)
    known.values[step, count] = value
    known.held[step] = count + 1
    for w in range(len(done)):
        known.sets[step, count, w] = done[w]
        seen[0, w] |= done[w]
        seen[1, w] |= ~done[w]


@njit(cache=True)
def _cut_set(known: Known, step: int, net: Net, inside: Flags) -> Bits:
    """What is done before a step, with undecided steps by their nodes."""
    done: Bits = known.before[step].copy()
    for other in range(len(net.node)):
        if net.node[other] >= 0 and inside[net.node[other]]:
            done[other >> 6] |= _ONE << np.uint64(other & 63)
    return done


@njit(cache=True)
def _keep_cut(  # noqa: PLR0917
    known: Known, step: int, net: Net, room: Ints, source: int, far: Ints, value: int, seen: Bits
) -> None:
    """Keep the smallest and the largest set of least value."""
    _keep(known, step, _cut_set(known, step, net, _reached(net, room, source)), value, seen)
    _keep(known, step, _cut_set(known, step, net, far < 0), value, seen)


@njit(cache=True)
def _respects(known: Known, done: Bits, since: int) -> bool:
    """Whether a set that held all before its steps still does, with the pairs learned since."""
    learned, log = known.counts[LEARNED], len(known.pairs)
    if learned - since <= log:
        for pair in range(since, learned):
            if has(done, known.pairs[pair % log, 1]) and not has(done, known.pairs[pair % log, 0]):
                return False
        return True
    for step in range(len(known.before)):
        for w in range(len(done)) if has(done, step) else range(0):
            if known.before[step, w] & ~done[w]:
                return False
    return True


@njit(cache=True)
def _look_through(known: Known, step: int, seen: Bits) -> bool:
    """Drop sets that contradict what was learned since, or show nothing new, and put into `seen` what the
    others have on either side. Whether one of them has the least need.
    """
    seen[:] = 0
    kept, least, since = 0, False, known.looked_through[step]
    count = known.held[step]
    for number in range(count):
        done, out, new = known.sets[step, number], False, False
        for w in range(len(done)):
            out |= (known.before[step, w] & ~done[w] | known.behind[step, w] & done[w]) != 0
            new |= (done[w] & ~seen[0, w] | ~done[w] & ~seen[1, w]) != 0
        of_least = known.values[step, number] == known.needs[step]
        if not out and (new or of_least) and _respects(known, done, since):
            least |= of_least
            known.held[step] = kept
            _keep(known, step, done, known.values[step, number], seen)
            kept += 1
    known.held[step], known.looked_through[step] = kept, known.counts[LEARNED]
    return least


@njit(cache=True)
def _least_need(given: Given, known: Known, step: int, bound: int, seen: Bits) -> int:
    """What a step needs with all that is known now, or some above the bound; `seen` as in `_look_through`."""
    if not _look_through(known, step, seen):
        sure, net = _network(given, known, step)
        far = np.empty(len(net.at) - 1, np.int64)
        need = sure + _push(net, net.room, 0, 1, bound - sure, far)
        known.needs[step] = need
        known.counts[WORK] += WORTH
        if need <= bound:
            _keep_cut(known, step, net, net.room, 0, far, need, seen)
    return int(known.needs[step])


@njit(cache=True)
def _offer(given: Given, known: Known, step: int, done: Bits, bound: int, seen: Bits) -> bool:  # noqa: PLR0917
    """Keep a set that holds all before its steps if the step fits with it."""
    known.counts[WORK] += 1
    need = _own(given, step)
    for b in range(len(given.size)):
        touching = given.touching[b]
        if given.inner[b] and not has(touching, step):
            begun, left = given.initial[b], given.kept[b]
            for w in range(len(done)):
                begun |= touching[w] & done[w] != 0
                left |= touching[w] & ~done[w] != 0
            if begun and left:
                need += given.size[b]
                if need > bound:
                    return False
    _keep(known, step, done, need, seen)
    return True


@njit(cache=True)
def _borrow(given: Given, known: Known, step: int, bound: int, seen: Bits) -> None:
    """Try sets of other steps, made to fit, that show anything new."""
    open_, done = _open(known, step), np.empty(known.before.shape[1], np.uint64)
    for other in range(len(known.before)):
        if known.looked_through[other] < known.counts[LEARNED]:
            continue
        for number in range(min(2, known.held[other])):
            new = False
            for w in range(len(done)):
                done[w] = known.sets[other, number, w] & ~known.behind[step, w] | known.before[step, w]
                new |= (done[w] & ~seen[0, w] | ~done[w] & ~seen[1, w]) & open_[w] != 0
            done[step >> 6] &= ~(_ONE << np.uint64(step & 63))
            if new:
                _offer(given, known, step, done, bound, seen)


@njit(cache=True)
def _extend(given: Given, known: Known, step: int, other: int, side: int, bound: int, seen: Bits) -> bool:  # noqa: PLR0917
    """Whether a kept set fits, too, with one step more and all before it, or without it and all behind it."""
    done, bit = np.empty(known.before.shape[1], np.uint64), _ONE << np.uint64(other & 63)
    for number in range(min(_EXTENDED, known.held[step])):
        for w in range(len(done)):
            one = known.sets[step, number, w]
            done[w] = one & ~known.behind[other, w] if side else one | known.before[other, w]
        done[other >> 6] = done[other >> 6] & ~bit if side else done[other >> 6] | bit
        if _offer(given, known, step, done, bound, seen):
            return True
    return False


@njit(cache=True)
def _try_all(given: Given, known: Known, step: int, bound: int, seen: Bits) -> bool:
    """Try what is not seen on a side there, and learn the contrary where that fails. False if the step cannot
    run within the bound.
    """
    need, net = _network(given, known, step)
    room, far = net.room, np.empty(len(net.at) - 1, np.int64)
    need += _push(net, room, 0, 1, bound - need, far)
    known.counts[WORK] += WORTH
    tried = room.copy()
    for turn in range(2 * len(known.before)):
        other, side = turn >> 1, turn & 1
        if has(known.before[step], other) or has(known.behind[step], other) or other == step:
            continue
        if has(seen[side], other) or _extend(given, known, step, other, side, bound, seen):
            continue
        source, target = (0, net.node[other]) if side else (net.node[other], 1)
        tried[:] = room
        more = _push(net, tried, source, target, bound - need, far)
        known.counts[WORK] += WORTH
        if need + more <= bound:
            _keep_cut(known, step, net, tried, source, far, need + more, seen)
            continue
        if side:
            add_pair(known, other, step)
        else:
            add_pair(known, step, other)
        room[net.forced[1 - side, net.node[other]]] = _ENDLESS
        need += _push(net, room, 0, 1, bound - need, far)
        known.counts[WORK] += WORTH
        known.needs[step] = need
        if need > bound:
            return False
        _look_through(known, step, seen)
        _keep_cut(known, step, net, room, 0, far, need, seen)
    return True


@njit(cache=True)
def _unseen(known: Known, step: int, seen: Bits) -> bool:
    """Whether there is an undecided step that is not seen on both sides."""
    open_ = _open(known, step)
    for w in range(len(open_)):  # noqa: SIM110
        if open_[w] & ~(seen[0, w] & seen[1, w]):
            return True
    return False


@njit(cache=True)
def _probe(given: Given, known: Known, step: int, bound: int, seen: Bits) -> bool:
    """Learn all that cuts can tell of a step. False if it cannot run within the bound."""
    if _least_need(given, known, step, bound, seen) > bound:
        return False
    if _unseen(known, step, seen):
        _borrow(given, known, step, bound, seen)
    if _unseen(known, step, seen) and not _try_all(given, known, step, bound, seen):
        return False
    known.checked[step] = known.counts[LEARNED]
    return True


@njit(cache=True)
def work_out(given: Given, known: Known, steps: Ints, bound: int) -> bool:
    """What some steps need, or some above the bound; False, and no more of them, once that is above it."""
    seen = np.zeros((2, known.before.shape[1]), np.uint64)
    for step in steps:  # noqa: SIM110
        if _least_need(given, known, step, bound, seen) > bound:
            return False
    return True


@njit(cache=True)
def learn(given: Given, known: Known, bound: int, most_work: int) -> tuple[bool, bool]:
    """Whether an order within the bound is still thinkable, and whether all is learned that cuts can tell.

    The step that needs the most is probed first, and after every success all begins anew: nearly always a few
    steps decide. Ends early with `most_work`, or where `known.direct` may be too short for the next step.
    """
    steps, seen = len(known.before), np.zeros((2, known.before.shape[1]), np.uint64)
    while True:
        order = np.argsort(-known.needs, kind="mergesort")
        if not work_out(given, known, order[:REFRESHED], bound):
            return False, False
        order = np.argsort(-known.needs, kind="mergesort")
        learned = known.counts[LEARNED]
        for step in order:
            if known.checked[step] == learned:
                continue
            if known.counts[DIRECT] + steps > len(known.direct):
                tidy(known)
            if known.counts[WORK] > most_work or known.counts[DIRECT] + steps > len(known.direct):
                return True, False
            if not _probe(given, known, step, bound, seen):
                return False, False
            if known.counts[LEARNED] > learned:
                break
        else:
            return True, True


@njit(cache=True)
def _side(known: Known, step: int, chosen: Ints, done: np.uint64) -> bool:
    """Know for now that of the chosen steps those are done before a step, and no others. False if what is
    known contradicts that.
    """
    for place in range(len(chosen)):
        other = chosen[place]
        if other != step:
            side = known.before if done >> np.uint64(place) & _ONE else known.behind
            side[step, other >> 6] |= _ONE << np.uint64(other & 63)
            for w in range(side.shape[1]):
                side[step, w] |= side[other, w]
    for w in range(known.before.shape[1]):
        if known.before[step, w] & known.behind[step, w]:
            return False
    return not has(known.before[step], step) and not has(known.behind[step], step)


@njit(cache=True)
def weigh_turns(  # noqa: PLR0917
    given: Given, known: Known, chosen: Ints, done: Bits, place: Ints, bound: int, more: Ints
) -> tuple[Ints, Bits, Ints]:
    """For each turn, in which the chosen step at a place runs with those at the bits of `done` done and the
    others left: the least bytes, or some above the bound; the smallest and the largest set of done steps with
    which it takes no more; and for each of some `more` steps the bytes with it left, and done, too.
    `CONTRADICTED`, for bytes, by what is known; what it decides of more steps counts as such.
    """
    needs, sets = np.empty(len(done), np.int64), np.zeros((2, len(done), known.before.shape[1]), np.uint64)
    with_more = np.full((2, len(more), len(done)), CONTRADICTED)
    for turn in range(len(done)):
        step = chosen[place[turn]]
        before, behind = known.before[step].copy(), known.behind[step].copy()
        need = CONTRADICTED
        if _side(known, step, chosen, done[turn]):
            sure, net = _network(given, known, step)
            far, tried = np.empty(len(net.at) - 1, np.int64), net.room.copy()
            need = sure + _push(net, net.room, 0, 1, bound - sure, far)
            known.counts[WORK] += WORTH
        if 0 <= need <= bound:
            reached, largest, way = _reached(net, net.room, 0), far < 0, far.copy()
            sets[0, turn] = _cut_set(known, step, net, reached)
            sets[1, turn] = _cut_set(known, step, net, largest)
            for which in range(len(more)):
                x = net.node[more[which]]
                for side in range(2) if x >= 0 else range(0):
                    with_more[side, which, turn] = need
                    if not largest[x] if side else reached[x]:
                        source, target = (x, 1) if side else (0, x)
                        tried[:] = net.room
                        with_more[side, which, turn] += _push(net, tried, source, target, bound - need, way)
                        known.counts[WORK] += WORTH
        needs[turn] = need
        known.before[step], known.behind[step] = before, behind
    return needs, sets, with_more
