"""What a run raises when it fails, on whatever runtime: somebody in front of a terminal reads it."""


class RunFailed(RuntimeError):
    """A run that did not finish: says why. What was finished is kept."""
