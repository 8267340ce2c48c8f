"""What a run raises when it fails: somebody in front of a terminal reads it."""


class RunFailed(RuntimeError):
    """A run that did not finish: says why. What was finished is kept."""
