"""A task as all clients of a process read it: once, since nothing of it depends on who is asked."""

from functools import cached_property, lru_cache

from client.account import Charge
from client.choice import Choice, choose, executable, understand
from client.policy import Policy
from client.record_choice import execute, understand_records
from protocol.codec import decode_task, identity
from protocol.messages import Coins, Mechanism, Task
from protocol.record_terms import run_of
from protocol.terms import label_epsilon
from protocol.trust import Trust

# Bytes of a task that is kept, and how many are: whoever asks chooses them, and they take 20 times that as objects.
SHORT, KEPT = 1 << 16, 16


class Question:
    """A task with what follows from its bytes alone, and from these and a policy; each is worked out at most once.

    Nothing here has seen a label, a ledger or a node, so whoever asks for it gets what reading anew would give.
    """

    def __init__(self, task: Task, name: bytes) -> None:
        self.task, self.id = task, name
        self._chosen: tuple[Policy | None, Coins | None, tuple[Choice, ...]] = (None, None, ())
        self._charges: dict[tuple[Mechanism, Coins], Charge] = {}
        self._checked = False

    @cached_property
    def of_records(self) -> bool:
        """Whether the task is about records."""
        return self.task.problem.kind == "records"

    def check(self) -> None:
        """Raises TaskInvalid for a task with a part that nothing here acts on."""
        if not self._checked:
            (understand_records if self.of_records else understand)(self.task)
            self._checked = True

    def choices(self, policy: Policy, coins: Coins) -> tuple[Choice, ...]:
        """The mechanisms of the menu that a client of this policy may use, the preferred one first: see `choose`.

        Of records the only one. None at all where the policy does not allow one of them, or coins of that kind cannot
        execute it exactly. Raises TaskInvalid.
        """
        before, kind, found = self._chosen
        if before is not policy or kind is not coins:
            found = (execute(self.task),) if self.of_records else choose(self.task, self._executable, policy)
            found = found if all(_usable(choice, policy, coins) for choice in found) else ()
            self._chosen = policy, coins, found
        return found

    def charge(self, choice: Choice, coins: Coins) -> Charge:
        """What an answer through one of `choices` costs, whoever gives it; `run` is left to whose rows they are."""
        key = (choice.mechanism, coins)
        if key not in self._charges:
            self._charges[key] = self._charge(choice, coins)
        return self._charges[key]

    @cached_property
    def run(self) -> bytes | None:
        """What names the run that the task is a round of; None where it stands alone."""
        return run_of(self.task)

    @cached_property
    def _executable(self) -> dict[Mechanism, Choice]:
        return executable(self.task)

    def _charge(self, choice: Choice, coins: Coins) -> Charge:
        task = self.task
        return Charge(
            task=self.id,
            place=task.study + f" {task.n} {task.first_repetition} {task.repetitions} ".encode(),
            trust=task.trust,
            unit=task.unit,
            mechanism=choice.mechanism,
            epsilon=choice.mechanism.get("epsilon") if task.trust is Trust.LOCAL else label_epsilon(task),
            delta=task.delta,
            channel=choice.channel,
            coins=coins,
            run=None,
            round=task.round,
            anew=task.trust is Trust.SHUFFLED,
        )


def _usable(choice: Choice, policy: Policy, coins: Coins) -> bool:
    exact = choice.numeric is None or choice.numeric.live or coins is Coins.ADDRESSED
    return exact and policy.allows(choice.mechanism)


def question_of(raw: bytes) -> Question:
    """What a task's bytes ask: a short one is kept for the next client that gets the same bytes. Raises WireError."""
    return _kept(raw) if len(raw) <= SHORT else _read(raw)


def _read(raw: bytes) -> Question:
    return Question(decode_task(raw), identity(raw))


_kept = lru_cache(maxsize=KEPT)(_read)
