"""The terms of any task whose noise comes in shares, by what its rows are."""

from protocol.messages import Mechanism, Task
from protocol.noise.record_terms import RecordTerms, terms_of_records
from protocol.noise.terms import Terms, terms_of


def any_terms(task: Task, mechanism: Mechanism) -> Terms | RecordTerms:
    """What `protocol.noise.terms:terms_of` says of labels, and `terms_of_records` of records.

    Guarantee: theirs. Raises ValueError as they do.
    """
    return terms_of_records(task, mechanism) if task.problem.kind == "records" else terms_of(task, mechanism)
