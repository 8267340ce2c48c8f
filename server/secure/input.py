"""The masked inputs of a session: which of them fit what was asked, for all of its tasks."""

from collections.abc import Sequence

from protocol.codec import Signed
from protocol.messages import Runs, Task
from protocol.secure.messages import Entry
from server.claims import Fault
from server.collect import Collected, Mail, collect


class Inputs:
    """Reports by member, one for each task; those of a member count for all tasks or for none.

    `counting` are the members whose do, after `settle`; `faults` says why others do not.
    """

    def __init__(self, tasks: Sequence[Task], ids: Sequence[bytes], roster: Sequence[Entry], names: list[str]) -> None:
        self._tasks, self._ids, self._roster, self._names = tasks, ids, roster, names
        self._reports: dict[int, list[Signed]] = {}
        self.statements: dict[int, bytes] = {}
        self.counting: set[int] = set()
        self.faults: list[Fault] = []
        self.collected: list[Collected] = []

    def put(self, member: int, reports: list[Signed], statement: bytes) -> None:
        """One member's, where they are about every task and as many rows as it said; the first ones stay."""
        if member in self._reports or [one.report.task for one in reports] != list(self._ids):
            self.faults.append(
                Fault(self._names[member], "reports to other tasks than the session's, or a second time")
            )
            return
        rows = [
            (one.report.rows or task.rows or Runs(((0, 1, task.n),))).count
            for one, task in zip(reports, self._tasks, strict=True)
        ]
        if tuple(rows) != self._roster[member].rows:
            self.faults.append(Fault(self._names[member], "an input about other rows than its entry says"))
            return
        self._reports[member], self.statements[member] = reports, statement

    def settle(self) -> None:
        """Find those that count, and merge them."""
        self.counting, found = set(self._reports), list[Collected]()
        while True:
            found = [self._collected(place) for place in range(len(self._tasks))]
            good = frozenset.intersection(*(one.senders for one in found)) if found else frozenset[str]()
            left = {member for member in self.counting if self._names[member] in good}
            if left == self.counting:
                break
            known = {fault.why for fault in self.faults}
            self.faults += [Fault("", words) for one in found for words in one.rejected if words not in known]
            self.counting = left
        self.collected = found

    def _collected(self, place: int) -> Collected:
        name = self._ids[place]
        mail = [(self._reports[member][place], self._names[member]) for member in sorted(self.counting)]
        return collect(self._tasks[place], name, Mail({name: list(mail)}, {name: []}, ()))
