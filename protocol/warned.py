"""What may mislead the reader of a number: every warning is a sentence behind a stable code, as `on-the-ball: ...`."""

WARNINGS = {
    "protects-nobody": "the level is above 40: whoever sees a report knows the label, though a claim is printed",
    "on-the-ball": "the estimate lies on the border of the ball: its length is the ball's, not of the answers",
    "few-rows": "fewer answers than free parameters: they leave some directions open",
    "singular": "the covariance is singular, or a variance not positive: some directions are not determined",
    "interval-not-valid": "there is no interval, for the reason that is said",
    "interval-approximate": "the interval is not exact, for the reason that is said",
    "near-the-ball": "estimates are expected to reach the ball, which cuts their errors: a formula says more",
    "few-labels": "too few labels a parameter for a formula about many of them",
    "large-errors": "errors are large against the bend of the logistic curve: they are larger than a formula says",
    "no-better-than-zero": "answering 0 would have no larger error",
    "long-pilot": "a pilot's estimate is longer than the truth by its own noise: more labels are planned than needed",
    "not-converged": "the search stopped before its minimum",
    "not-convex": "the loss is not convex: what was found may not be its least point",
    "biased": "the estimator is known to be biased here",
    "no-claim": "the noise keeps no promise, or what is proved is less than what is claimed elsewhere",
    "replica": "it repeats what somebody else published, to compare with, and is not to be used",
    "prior-width": "the width of the prior was chosen from the reports",
    "no-mean": "tails so heavy that there may be no mean: more data do not help",
    "no-variance": "tails so heavy that the variance may be infinite: standard errors mean little",
    "unconnected": "nobody compared some groups of items: ranks between them mean nothing",
    "rows-missing": "not all rows that were asked have answered",
    "reports-rejected": "reports came that do not count: somebody may have answered in another's place",
    "numerics": "clients with another arithmetic: last bits may differ",
    "known-labelers": "another file named the same people: they pay for both, and answers may be shared",
}


def warn(code: str, sentence: str) -> str:
    """`code: sentence`. Raises KeyError for a code that is not registered.

    >>> warn("few-rows", "2 answers for 3 free parameters")
    'few-rows: 2 answers for 3 free parameters'
    """
    if code not in WARNINGS:
        raise KeyError(f"expected a code out of {sorted(WARNINGS)}, got {code!r}: add it to protocol.warned")
    return f"{code}: {sentence}"


def code_of(warning: str) -> str | None:
    """The code of a warning; None where it has none, as in results of older versions.

    >>> code_of("few-rows: 2 answers for 3 free parameters"), code_of("interval not valid: no reason")
    ('few-rows', None)
    """
    code = warning.partition(": ")[0]
    return code if code in WARNINGS else None


def spoken(warning: str) -> str:
    """A warning for a person: `Warning (code): sentence`.

    >>> spoken("few-rows: 2 answers for 3 free parameters")
    'Warning (few-rows): 2 answers for 3 free parameters'
    """
    code = code_of(warning)
    return f"Warning: {warning}" if code is None else f"Warning ({code}): {warning.removeprefix(f'{code}: ')}"
