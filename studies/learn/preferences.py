"""Preferences learned from differences of features, each label randomised by its labeler first."""

import hashlib
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from client.labels import Labels
from protocol.decimals import decimal
from protocol.decimals import delta as delta_of
from protocol.decimals import epsilon as epsilon_of
from protocol.messages import Ties
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.trust import Trust
from server.curator import LiveCurator
from server.estimators.base import Estimate
from server.kinds import KINDS
from server.listening import listen
from server.rounds import options
from studies.fit.request import AUTO, OWN, SLACK, WAYS, Request
from studies.fit.round import check_release, usual_radius
from studies.fit.task import arm_of, named, policy_of, task_of
from studies.in_process import carried
from studies.learn.arrays import ArrayLabels, identities
from studies.learn.claims import checked_ids, claim
from studies.own_room import own_room

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise ImportError("expected scikit-learn, which is not here: pip install 'halftruth[learn]'") from error


class PreferenceClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A linear reward from comparisons: P(y = 1 | x) = 1 / (1 + e^{-theta . x}), x = phi(second) - phi(first).

    Rows of X are differences of features and y says whether the second one won: any two classes, the later in order
    is 1. There is no intercept: a pair that is turned round has to have the opposite answer. `fit` sends one task to a
    node that holds y, over the same messages as every study: with trust "local" (the default) each label is randomised
    before it leaves the node, with "central" a curator adds noise to one sum, with "distributed" the node itself does,
    in a session of which it is the only member, with "clear" nothing protects anybody.
    `estimator` follows a report, as in `halftruth fit`: rr-mle (the default), rr-map, debiased, ...; `bound` is the
    radius of the ball of theta, "auto" for 2 sqrt(2 d / mean |x|^2).

    Coins are the system's, unless `random_state` is given: then they have addresses, the same at every run, and
    protect nobody. X is public, and so are who has rows and which two classes there are; y is private otherwise.
    A `state` folder keeps a ledger: `fit(X, y, ids=names)` names labels, and one of a name that answered before
    at this level answers the same again, for nothing. Without it every `fit` spends `epsilon` anew, so a search
    over five folds spends it five times.

    Guarantee: local: `epsilon`-local differential privacy of each label, for each `fit` without `state`, and over all
    fits at one level with it; central, distributed: (`epsilon`, `delta`) of each label; unit: one label; neighbours:
    replace one.
    Attributes: `coef_` (1, d), `classes_` (2,), `n_features_in_`, `warnings_`: what may mislead about it,
    `claim_`: the guarantee in words.
    Raises ValueError for a level, an array or a class count that does not fit, RoundFailed for a refusal.
    Source: Chowdhury, Zhou, Natarajan 2024, Sections 3 and 4.
    """

    def __init__(
        self,
        epsilon: float | str | Decimal = 1.0,
        *,
        trust: str = "local",
        delta: float | str | Decimal = 1e-5,
        estimator: str | None = None,
        bound: float | str | None = AUTO,
        state: str | Path | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.trust = trust
        self.delta = delta
        self.estimator = estimator
        self.bound = bound
        self.state = state
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """Two classes only; and labels that are randomised let no fit be perfect."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = self.trust != "clear"
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike, ids: ArrayLike | None = None) -> Self:
        """Ask the labels once, and estimate. `ids` (n,) name labels for the ledger in `state`; they need one."""
        rows, given = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(given)
        self.classes_, places = np.unique(given, return_inverse=True)
        if len(self.classes_) != 2:
            raise ValueError(
                f"Only binary classification is supported: expected 2 classes, got {len(self.classes_)} class"
                f"{'' if len(self.classes_) == 1 else 'es'}"
            )
        names = checked_ids(ids, len(rows), self.state, self.random_state)
        problem = Problem(rows.shape[1], "values", sum_zero=False, bound=None, design=np.ascontiguousarray(rows))
        request = self._request(rows)
        labels = ArrayLabels(problem, Labels(places.astype(np.uint8)), identities(names), request.public)
        found = _estimated(request, labels, self.state is not None)
        self.coef_, self.warnings_ = found.u[None, :].copy(), found.warnings
        self.claim_ = claim(request.trust, request.epsilon, request.delta, request.seed is not None, Unit.LABEL)
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """theta . x of rows X (n, d)."""
        check_is_fitted(self, "coef_")
        rows: NDArray[np.float64] = validate_data(self, X, dtype=np.float64, reset=False)
        margin: NDArray[np.float64] = rows @ self.coef_[0]
        return margin

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Chances of the two classes, (n, 2)."""
        second = 0.5 * (1.0 + np.tanh(0.5 * self.decision_function(X)))
        return np.column_stack([1.0 - second, second])

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class that is likelier."""
        second = self.decision_function(X) > 0
        winners: NDArray[Any] = self.classes_[second.astype(np.intp)]
        return winners

    def _request(self, rows: NDArray[np.float64]) -> Request:
        trust = Trust.parse(self.trust)
        if trust not in OWN:
            raise ValueError(f"expected a trust out of {[one.label for one in OWN]}, got {self.trust!r}")
        clear = trust is Trust.CLEAR
        known, seeded = WAYS[trust][1], self.random_state is not None
        if self.estimator is not None and self.estimator not in known:
            raise ValueError(f"expected an estimator out of {known} for trust {trust.label!r}, got {self.estimator!r}")
        return Request(
            path=Path("array"),
            trust=trust,
            epsilon=None if clear else epsilon_of(str(self.epsilon), "epsilon"),
            delta=delta_of(str(self.delta), "delta") if trust in SLACK else None,
            bound=_radius(self.bound, rows),
            estimator=self.estimator or known[0],
            state=Path(self.state) if self.state is not None else Path(),
            public=seeded,
            seed=int(check_random_state(self.random_state).randint(0, 2**31 - 1)) if seeded else None,
            ties=Ties.NONE,
        )


def _radius(bound: float | str | None, rows: NDArray[np.float64]) -> Decimal:
    if bound == AUTO:
        return usual_radius(rows) if rows.any() else Decimal(1)
    radius = decimal(str(bound), "bound")
    if radius <= 0:
        raise ValueError(f"expected bound > 0 or {AUTO!r}, got {bound}")
    return radius


def _estimated(request: Request, labels: ArrayLabels, kept: bool) -> Estimate:
    """One task to one node, as in `halftruth fit`; `kept`: its ledger is in the state folder."""
    problem, kind = labels.problem, KINDS["pairwise"]
    study, task = task_of(request, problem, arm_of(request, problem), None)
    task = replace(task, study=named(study, hashlib.sha256(b"".join(labels.identities)).digest()))
    where = request.state if request.budgeted and kept else None
    with own_room(labels, policy_of(request, task), where, request.trust, request.seed) as (node, ledger, server):
        if isinstance(server.curator, LiveCurator):
            check_release(task, ledger)
        heard = listen([task], lambda raws: carried(raws, [node]))[task]
        seen = kind.seen(server, heard, kind.designs(server, problem, task.n, 0))
    bounded = replace(problem, bound=decimal(str(request.bound), "bound"))
    return kind.estimators[request.estimator](seen, options(bounded, study.arms[0]))
