"""A fit of rankings: what a file of them makes of a request, and what its claim is for a whole ranking."""

from collections import Counter
from dataclasses import replace

from client.sources.ranking_columns import RankingColumns
from client.sources.ranking_labels import RankingAs
from client.sources.table import Table
from protocol.arms import DISTRIBUTED
from protocol.decimals import canonical
from protocol.messages import Ties
from protocol.privacy import Unit
from protocol.strict import StudyError
from protocol.terms import share
from protocol.trust import Trust
from studies.fit.request import CHOICE_MECHANISMS, CHOICE_WAYS, Request


def of_rankings(request: Request, table: Table, asked: RankingAs) -> Request:
    """The request for a file of rankings; for another file, the request itself.

    M comparisons of a ranking share its epsilon: each goes through a channel of level epsilon / M, rounded down.
    Guarantee: (epsilon, delta) for each ranking; unit: one ranking; neighbours: replace one ranking. At the unit
    LABELER the cap shares epsilon, whatever the labels are of.
    Raises StudyError for what cannot be asked of rankings, or of comparisons.
    """
    if not isinstance(table.columns, RankingColumns):
        return of_asked(request, None)
    check_asked(asked, request.trust, request.unit, table)
    return of_asked(request, asked)


def of_asked(request: Request, asked: RankingAs | None) -> Request:
    """The request where rankings answer this, which `check_asked` let pass; None: the file holds comparisons.

    Raises StudyError.
    """
    top = asked is not None and not asked.pairs
    known = CHOICE_MECHANISMS if top and request.trust is Trust.LOCAL else ()
    known = DISTRIBUTED if request.trust is Trust.DISTRIBUTED else known
    if request.mechanism and request.mechanism not in known:
        raise StudyError(
            f"--mechanism: expected one of {', '.join(known)}, got {request.mechanism}"
            if known
            else "--mechanism: there is a choice for a ranking's top choice and --trust local, and for --trust "
            "distributed, only: leave it out"
        )
    if asked is None:
        return request
    if top:
        if request.ties in (Ties.DROP, Ties.RANDOMIZED):
            raise StudyError("--ties: a ranking's top choice is one item, so there are none: leave it out")
        estimators = CHOICE_WAYS[request.trust][1]
        if request.estimator not in estimators:
            raise StudyError(f"--estimator: expected one of {estimators} for top choices, got {request.estimator!r}")
        return replace(request, kind="choice", comparisons=1, ties=Ties.NONE)
    if asked.pairs == 1 or request.epsilon is None or request.unit is Unit.LABELER:
        return replace(request, comparisons=asked.pairs)
    return replace(request, comparisons=asked.pairs, epsilon=share(request.epsilon, asked.pairs))


def check_asked(asked: RankingAs, trust: Trust, unit: Unit, table: Table) -> None:
    """Raise StudyError where a trust model and a unit cannot protect what rankings are asked."""
    if not asked.pairs:
        if unit is Unit.LABELER and trust is Trust.CENTRAL:
            raise StudyError("--unit labeler: a noisy sum of top choices protects a label: use --ranking-as pairs:M")
        return
    if asked.pairs == 1 or trust is Trust.CLEAR or unit is Unit.LABELER:
        return
    most = max(Counter(zip(table.owners.tolist(), table.questions, strict=True)).values())
    if most < asked.pairs:
        raise StudyError(
            f"--ranking-as {asked}: no ranking here has more than {most} comparisons, so other shares of "
            f"epsilon would be lost: use pairs:{most}"
        )
    if trust in (Trust.CENTRAL, Trust.DISTRIBUTED):
        raise StudyError(
            f"--ranking-as {asked}: one noisy sum cannot share epsilon among a ranking's comparisons: use top or pair, "
            "or --unit labeler --cap M, whose noise protects all of them together"
        )


def ranking_note(request: Request) -> tuple[str, ...]:
    """What the claim of a label is for a ranking; nothing for a file of comparisons."""
    if not request.comparisons:
        return ()
    count = request.comparisons
    one = "its top choice" if request.kind == "choice" else "one of its comparisons"
    asked = f"{one} is asked" if count == 1 else f"{count} of its comparisons are asked"
    said = f"Of each ranking {asked}; which items it holds is public."
    if request.unit is not Unit.LABEL or request.epsilon is None:
        return (said,)
    if count == 1:
        return (f"{said} So a label is all that is said of a ranking.",)
    level = canonical(request.epsilon)
    together = f"{count} times epsilon = {level[:12]}{'...' if len(level) > 12 else ''}"
    return (f"{said} A ranking spends {together} together (unit: one ranking; neighbours: replace one ranking).",)
