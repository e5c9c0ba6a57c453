"""The memory of a problem while its steps run one after the other: what a step would need and free."""

from __future__ import annotations

from mcudeploy.scheduler.problem import Problem


class Memory:
    """Runs steps; every call costs as much as the step touches.

    `live`: bytes between the steps. `waiting[s]`: how many steps must still come before s.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._buffers = problem.buffers
        self._touches = problem.touches
        self._after = problem.after
        self._begun = [buffer.initial or not buffer.touched_by for buffer in problem.buffers]
        self._left = [len(buffer.touched_by) + buffer.kept for buffer in problem.buffers]
        self._left_sum = [sum(buffer.touched_by) for buffer in problem.buffers]
        self.live = sum(b.size_bytes for b in problem.buffers if (b.initial if b.touched_by else b.kept))
        self.waiting = [len(needed) for needed in problem.before]

    def cost(self, step: int) -> tuple[int, int]:
        """Bytes that a step makes, those it takes over in place not counted, and bytes that it frees."""
        made = freed = 0
        for number in self._touches[step]:
            size = self._buffers[number].size_bytes
            if not self._begun[number]:
                made += size
            if self._left[number] == 1:
                freed += size
        saved = self._saved(step)
        return made - saved, freed - saved

    def _saved(self, step: int) -> int:
        for chance in self._problem.chances_of.get(step, ()):
            if self._left[chance.input] == 1 and not self._begun[chance.output]:
                return self._problem.saving(chance)
        return 0

    def run(self, step: int) -> list[int]:
        """Run a step and return those that became ready."""
        made, freed = self.cost(step)
        self.live += made - freed
        for number in self._touches[step]:
            self._begun[number] = True
            self._left[number] -= 1
            self._left_sum[number] -= step
        ready = []
        for other in self._after[step]:
            self.waiting[other] -= 1
            if not self.waiting[other]:
                ready.append(other)
        return ready

    def changed(self, step: int) -> list[int]:
        """Steps to come whose cost may be another since `step` ran.

        Those that share a buffer which step began, and the last ones that will touch what it touched.
        """
        found = []
        for number in self._touches[step]:
            buffer = self._buffers[number]
            if self._left[number] == 1 and not buffer.kept:
                found.append(self._left_sum[number])
            elif self._left[number] == len(buffer.touched_by) + buffer.kept - 1:
                found += [other for other in buffer.touched_by if other != step]
        return found
