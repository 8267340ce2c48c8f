"""All figures of `halftruth bench`, one line each, in the order of the table."""

from collections.abc import Callable
from importlib import import_module

from studies.bench.figure import NOTHING, Figure, Prepared, at_most


def _in(topic: str, name: str) -> Callable[[bool], Prepared]:
    """`studies.bench.TOPIC:NAME`, imported when it is called: a figure's process has no other figure's modules."""

    def prepare(small: bool) -> Prepared:
        found: Prepared = getattr(import_module(f"studies.bench.{topic}"), name)(small)
        return found

    return prepare


_ALL = (
    Figure("figure1", "all of figure1.toml: 100 repetitions, n to 100,000", at_most(40), _in("figure1", "figure1")),
    Figure("help", "halftruth --help in a new process", at_most(0.3), _in("command", "help_text")),
    Figure("import", "import of the command line in a new process", at_most(0.3), _in("command", "imported")),
    Figure("second-run", "a tiny study in a new process, kernels kept", NOTHING, _in("command", "second_run")),
)

FIGURES = {figure.name: figure for figure in _ALL}
