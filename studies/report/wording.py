"""What reports call things: the truth, rows, and what each trust model does, by the kind of problem."""

from dataclasses import dataclass

from protocol.study import Study
from protocol.trust import Trust

_LABELS: dict[Trust | None, str] = {
    Trust.CLEAR: "clear: labels as they are",
    Trust.LOCAL: "local: labels are flipped first",
    Trust.CENTRAL: "central: a curator adds noise",
    Trust.DISTRIBUTED: "distributed noise",
    Trust.SHUFFLED: "shuffled: nobody knows whose",
    None: "no labels",
}
_RECORDS = _LABELS | {
    Trust.CLEAR: "clear: records as they are",
    Trust.LOCAL: "local: holders add noise first",
    None: "no records",
}


@dataclass(frozen=True)
class Wording:
    """Words of a study: its `truth`, what `rows` are, and `headings` of trust models."""

    truth: str
    rows: str
    headings: dict[Trust | None, str]

    @classmethod
    def of(cls, study: Study) -> "Wording":
        """The words that fit a study."""
        law = study.records
        if law is None:
            return cls("reward parameter", "labels", _LABELS)
        truth = "mean" if study.problem.model == "mean" else "coefficients"
        return cls(truth, "records" if law.per_holder == 1 else "holders", _RECORDS)
