"""The trusted curator: turns an exact sum into a noisy one, with coins chosen where the server is built."""

from dataclasses import dataclass
from typing import Protocol

from protocol.coins import Address, Stream, normal, words
from protocol.messages import Task
from server.choice_record import Choice, ChoiceRequest, SimulatedChoice, is_look
from server.release import ReleaseLedger, simulated_release
from server.release_record import Release, ReleaseRequest, SimulatedRelease
from server.simulated_choice import simulated_choice, words_wanted

CHOICE_ROUND = 1 << 16  # of coins for choices of thresholds: no task has it


class Curator(Protocol):
    """Adds the noise that a task's mechanism asks for, once a task and repetition."""

    @property
    def name(self) -> bytes:
        """What tells its ledger from every other; empty where nothing is kept."""
        ...

    def release(self, task: Task, request: ReleaseRequest, exact_sum: list[int]) -> Release | SimulatedRelease:
        """The noisy sum of one repetition."""
        ...

    def choose(self, task: Task, request: ChoiceRequest, scores: list[int]) -> Choice | SimulatedChoice:
        """The choice of one repetition, in the place of a sum."""
        ...


@dataclass(frozen=True)
class SimulatedCurator:
    """Addressed coins: the same noise for every mechanism and level of a repetition, scaled. Protects nobody.

    The coins of a task about some rows sit at the first of them: disjoint runs of rows have noise of their own.
    """

    seed: int
    name = b""

    def release(self, task: Task, request: ReleaseRequest, exact_sum: list[int]) -> SimulatedRelease:
        """Add floating-point Gaussian noise at the address of the repetition."""
        address = self.address(task.n, request.repetition, task.round)
        start = 0 if task.rows is None else int(task.rows.numbers()[0]) * len(exact_sum)
        return simulated_release(request, exact_sum, normal(words(address, start, len(exact_sum))))

    def choose(self, task: Task, request: ChoiceRequest, scores: list[int]) -> SimulatedChoice:
        """Choose by floating-point noise at the address of the repetition."""
        round = CHOICE_ROUND if is_look(request) else task.round
        coins = words(self.address(task.n, request.repetition, round), 0, words_wanted(request))
        return simulated_choice(request, scores, coins)

    def address(self, n: int, repetition: int, round: int) -> Address:
        """Where the coins of a repetition's round are."""
        return Address(self.seed, Stream.CURATOR, n, repetition, round)


@dataclass(frozen=True)
class LiveCurator:
    """The system's entropy and a ledger on disk: one discrete release or choice a task and repetition."""

    ledger: ReleaseLedger

    @property
    def name(self) -> bytes:
        """The name that its ledger got when it was made."""
        return self.ledger.identity

    def release(self, task: Task, request: ReleaseRequest, exact_sum: list[int]) -> Release:
        """Commit the noisy sum, then return it; after a crash, return what was committed."""
        return self.ledger.release(request, exact_sum)

    def choose(self, task: Task, request: ChoiceRequest, scores: list[int]) -> Choice:
        """Commit the choice, then return it; after a crash, return what was committed."""
        return self.ledger.choose(request, scores)
