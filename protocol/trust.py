"""Trust models, and the one table of who sees what."""

from dataclasses import dataclass
from enum import IntEnum


class Trust(IntEnum):
    """Whom a labeler trusts with the raw label. The numbers are those of the wire schema."""

    CLEAR = 1
    LOCAL = 2
    CENTRAL = 3
    DISTRIBUTED = 4
    SHUFFLED = 5

    @classmethod
    def parse(cls, name: str) -> "Trust":
        """Read a trust model by its lower-case name.

        >>> Trust.parse("local")
        <Trust.LOCAL: 2>
        """
        for trust in SIGHT:
            if trust.label == name:
                return trust
        raise ValueError(f"expected a trust model out of {[t.label for t in SIGHT]}, got {name!r}")

    @property
    def label(self) -> str:
        """The name in lower case, as studies and results write it."""
        return self.name.lower()


@dataclass(frozen=True)
class Sight:
    """What each place sees of one label under a trust model."""

    wire: str
    server: str
    published: str


# The trust models that a task can ask for today. A name of `Trust` that is absent here is refused.
SIGHT: dict[Trust, Sight] = {
    Trust.CLEAR: Sight(wire="the label", server="the label", published="an estimate, no guarantee"),
    Trust.LOCAL: Sight(
        wire="a randomised label",
        server="a randomised label",
        published="anything computed from randomised labels",
    ),
    Trust.CENTRAL: Sight(
        wire="an exact sum per client",
        server="an exact sum per client; the curator adds noise once",
        published="anything computed from the noisy sum",
    ),
    Trust.DISTRIBUTED: Sight(
        wire="a masked sum per client, with its shares of the noise",
        server="one sum over all clients, with the noise that they added",
        published="anything computed from the noisy sum",
    ),
    Trust.SHUFFLED: Sight(
        wire="a sealed randomised label, to a shuffler",
        server="how many labelers gave each randomised answer to a question, not who",
        published="anything computed from these counts",
    ),
}
# Under these each label is randomised by itself, and what is computed from reports costs nothing.
RANDOMIZED = frozenset({Trust.LOCAL, Trust.SHUFFLED})
