"""All figures of `halftruth bench`, one line each, in the order of the table."""

from studies.bench.figure import Figure

_ALL: tuple[Figure, ...] = ()

FIGURES = {figure.name: figure for figure in _ALL}
