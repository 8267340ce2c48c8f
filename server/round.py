"""What one exchange has met so far."""

from collections import Counter
from dataclasses import dataclass, field

from protocol.messages import Task
from server.longest import longest

NO_MESSAGE, LOST = -1, 3  # errors: one of our own, and Flower's where a message or its reply is nowhere
ERRORS = {
    NO_MESSAGE: "what it sent is no message",
    1: "its code does not load",
    2: "its code raised",
    LOST: "the task was not there any more",
    4: "the reply was not there any more",
    5: "the node is gone",
    7: "it does not accept the bundle of code: another version of halftruth, or one that its policy does not pin",
    8: "its process died",
}


@dataclass
class Round:
    """What one bundle of tasks has met: tasks by id, messages to their nodes, those without a reply, replies by node.

    Of nodes that are asked again: why their last message brought nothing, when the next one is due, and how often each
    was asked and its process died.
    """

    raw: bytes
    asked: dict[bytes, Task]
    sent: dict[str, int] = field(default_factory=dict)
    waiting: dict[str, int] = field(default_factory=dict)
    answers: dict[int, list[bytes]] = field(default_factory=dict)
    lost: dict[int, str] = field(default_factory=dict)
    due: dict[int, float] = field(default_factory=dict)
    times: Counter[int] = field(default_factory=Counter)
    deaths: Counter[int] = field(default_factory=Counter)
    _longest: dict[int | None, int] = field(default_factory=dict)

    def longest(self, rows: int | None = None) -> int:
        """The most bytes that a message in answer has, of a node that answers for so many rows."""
        if rows not in self._longest:
            self._longest[rows] = longest(self.asked.values(), rows)
        return self._longest[rows]
