"""Heavy-tailed regression: bounded gradients, randomised or summed before anything is learned from them."""

from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from client.records import Records
from client.sources.identities import Identities
from client.sources.record_columns import RecordColumns
from client.sources.record_table import RecordTable, by_hash, record_identity
from protocol.decimals import decimal
from protocol.decimals import delta as delta_of
from protocol.decimals import epsilon as epsilon_of
from protocol.numeric.rules import usual_mechanism
from protocol.privacy import Unit
from protocol.strict import StudyError
from protocol.trust import Trust
from studies.learn.claims import checked_ids, claim
from studies.records.play import Estimated, estimate
from studies.records.request import Request, arm_of, needs_delta, problem_of

try:
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise ImportError("expected scikit-learn, which is not here: pip install 'halftruth[learn]'") from error

MODELS = (Trust.CLEAR, Trust.LOCAL, Trust.CENTRAL)


class HeavyTailedRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Least squares y = theta . x (+ intercept) by private descent, where x and y may have no variance.

    w <- w - step * mean_i bounded((w . x_i - y_i) x_i), over `rounds` rounds that share one claim. `fit` plays them
    with a node that holds X and y, over the same messages as every study: with trust "local" (the default) each
    gradient is randomised before it leaves the node, with "central" a curator adds noise to sums, with "clear" nothing
    protects anybody. Each coordinate of a gradient is bounded to `threshold`, which has to be known beforehand, or as
    `tail` v and `moment` u say, with E|g|^(1+v) <= u; so scale columns by public numbers first. `step` is best
    1 / (largest eigenvalue of E xx'). `estimator`, `mechanism` and `more` (a dict of options) are those of
    `halftruth records`.

    Coins are the system's, unless `random_state` is given: then they have addresses, the same at every run, and
    protect nobody. A `state` folder keeps a ledger: `fit(X, y, ids=names)` names records, and one of a name that
    answered the same question before answers the same again, for nothing. Without it every `fit` spends `epsilon`
    anew. Public is how many records there are.

    Guarantee: local: `epsilon`-local, or (`epsilon`, `delta`)-local where the mechanism has a delta, differential
    privacy of each record over all rounds; central: (`epsilon`, `delta`) of each record over all rounds; both for each
    `fit` without `state`; unit: one record, its features and its response; neighbours: replace one.
    Attributes: `coef_` (d,), `intercept_`, `n_features_in_`, `warnings_`: what may mislead about them, `claim_`: the
    guarantee in words.
    Raises ValueError for a level, an array or an option that does not fit, RoundFailed for a refusal.
    Source: Tao, Wu, Cheng, Wang 2022, Algorithm 2; clipping and exact composition: derived, see docs/HEAVY_TAILS.md.
    """

    def __init__(
        self,
        epsilon: float | str | Decimal = 1.0,
        *,
        trust: str = "local",
        delta: float | str | Decimal = 1e-5,
        threshold: float | str | Decimal | None = None,
        tail: float | str | Decimal | None = None,
        moment: float | str | Decimal | None = None,
        rounds: int = 20,
        step: float = 0.1,
        fit_intercept: bool = True,
        bound: float | None = None,
        estimator: str = "descent",
        mechanism: str | None = None,
        more: dict[str, Any] | None = None,
        state: str | Path | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.trust = trust
        self.delta = delta
        self.threshold = threshold
        self.tail = tail
        self.moment = moment
        self.rounds = rounds
        self.step = step
        self.fit_intercept = fit_intercept
        self.bound = bound
        self.estimator = estimator
        self.mechanism = mechanism
        self.more = more
        self.state = state
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """A fit from bounded, randomised gradients and a fixed step is no perfect one."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike, ids: ArrayLike | None = None) -> Self:
        """Ask the records, round by round. `ids` (n,) name records for the ledger in `state`; they need one."""
        rows, responses = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        names = checked_ids(ids, len(rows), self.state, self.random_state)
        table = _table(
            rows,
            np.asarray(responses, dtype=np.float64),
            names,
            bool(self.fit_intercept),
            self.random_state is not None,
        )
        with TemporaryDirectory() as gone:
            try:
                found = self._estimated(table, Path(gone) if self.state is None else Path(self.state))
            except StudyError as error:
                raise ValueError(f"{error} (n_samples = {len(rows)})") from None
        theta = found.outcome.theta
        self.coef_ = theta[: rows.shape[1]].copy()
        self.intercept_ = float(theta[-1]) if self.fit_intercept else 0.0
        self.warnings_, request = found.warnings, found.request
        self.claim_ = claim(request.trust, request.epsilon, request.delta, request.seed is not None, Unit.RECORD)
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """theta . x + intercept of rows X (n, d)."""
        check_is_fitted(self, "coef_")
        rows: NDArray[np.float64] = validate_data(self, X, dtype=np.float64, reset=False)
        found: NDArray[np.float64] = rows @ self.coef_ + self.intercept_
        return found

    def _estimated(self, table: RecordTable, state: Path) -> Estimated:
        trust = Trust.parse(self.trust)
        if trust not in MODELS:
            raise ValueError(f"expected a trust out of {[one.label for one in MODELS]}, got {self.trust!r}")
        dimension, clear, seeded = len(table.columns.names), trust is Trust.CLEAR, self.random_state is not None
        epsilon = None if clear else epsilon_of(str(self.epsilon), "epsilon")
        bound = None if self.bound is None else _positive(self.bound, "bound")
        problem = problem_of("linear", dimension, bound)
        options: dict[str, Any] = {"rounds": self.rounds, "step": self.step, **(self.more or {})}
        if not clear:
            options |= {"threshold": self.threshold} if self.threshold is not None else {}
            options |= {"mechanism": self.mechanism} if self.mechanism is not None else {}
        if trust is Trust.LOCAL and epsilon is not None:
            options = {"mechanism": usual_mechanism(dimension, epsilon, live=True).name, **options}
        spelled = {name: value if isinstance(value, str) else str(value) for name, value in options.items()}
        arm = arm_of({"trust": trust.label, "estimator": self.estimator, **spelled}, "arm", problem)
        request = Request(
            arm=arm,
            epsilon=epsilon,
            delta=delta_of(str(self.delta), "delta") if needs_delta(arm) else None,
            tail=None if clear or self.tail is None else _positive(self.tail, "tail"),
            moment=None if clear or self.moment is None else _positive(self.moment, "moment"),
            bound=bound,
            state=state,
            seed=int(check_random_state(self.random_state).randint(0, 2**31 - 1)) if seeded else None,
        )
        return estimate(request, table)


def _table(
    rows: NDArray[np.float64], responses: NDArray[np.float64], names: list[str], intercept: bool, public: bool
) -> RecordTable:
    """Arrays as a file of records would be read: in the order of hashes of what names them."""
    features = tuple(f"x{place}" for place in range(rows.shape[1]))
    columns = RecordColumns(features, "linear", response="y", id="id", intercept=intercept)
    x = np.append(rows, np.ones((len(rows), 1)), axis=1) if intercept else np.array(rows)
    table = RecordTable(
        path=Path("array"),
        public=public,
        columns=columns,
        rows_held=np.arange(len(rows)),
        dropped=0,
        lasting=True,
        held=Records(x[:, None], responses[:, None].copy()),
        labelers=tuple(names),
        owners=np.arange(len(rows)),
        identities=Identities.of(record_identity(Unit.RECORD, name) for name in names),
    )
    return by_hash(table)


def _positive(value: object, name: str) -> Decimal:
    found = decimal(str(value), name)
    if found <= 0:
        raise ValueError(f"expected {name} > 0, got {value}")
    return found
