"""All figures of `halftruth bench`, one line each, in the order of the table."""

from collections.abc import Callable
from importlib import import_module

from studies.bench.figure import NOTHING, Figure, Prepared, at_least, at_most, times


def _in(topic: str, name: str) -> Callable[[bool], Prepared]:
    """`studies.bench.TOPIC:NAME`, imported when it is called: a figure's process has no other figure's modules."""

    def prepare(small: bool) -> Prepared:
        found: Prepared = getattr(import_module(f"studies.bench.{topic}"), name)(small)
        return found

    return prepare


_ALL = (
    Figure(
        "labels",
        "randomised response with addressed coins, one core",
        at_least(300),
        _in("labels", "addressed"),
        ("multi_freq_ldpy",),
        cores=1,
    ),
    Figure(
        "secret-labels",
        "randomised response with the operating system's randomness, one core",
        at_least(150),
        _in("labels", "secret"),
        cores=1,
    ),
    Figure(
        "one-pass-sgd",
        "a pass of debiased-sgd over d = 10, 16 arms side by side, one core",
        at_least(120),
        _in("fits", "one_pass"),
        ("sklearn",),
        cores=1,
    ),
    Figure("debiased", "debiased, n = 10^6, d = 10", at_most(0.15), _in("fits", "debiased"), ("sklearn",)),
    Figure("rr-mle", "rr-mle, n = 10^6, d = 10", at_most(0.15), _in("fits", "rr_mle"), ("sklearn",)),
    Figure("rr-map", "rr-map, n = 10^6, d = 10", at_most(0.15), _in("fits", "rr_map"), ("sklearn",)),
    Figure(
        "items-clear",
        "1,000 items, 100,000 clear comparisons",
        at_most(0.06),
        _in("fits", "clear_items"),
        ("choix",),
    ),
    Figure("items", "the same, randomised at epsilon = 4", at_most(0.06), _in("fits", "reported_items")),
    Figure("many-items", "10^5 items, 10^7 clear comparisons", at_most(30), _in("fits", "many_items")),
    Figure(
        "clients",
        "2 x 500,000 clients with one label each, from a task's bytes to results on disk, processes' start included",
        at_least(40_000),
        _in("clients", "clients"),
        ("pfl", "ray"),
    ),
    Figure(
        "clients-memory",
        "peak memory of 10^6 clients in one process, with their server",
        NOTHING,
        _in("clients", "clients_memory"),
    ),
    Figure(
        "stream",
        "10^8 labels of 100 items in blocks, from a task's bytes to one fit, one core",
        at_least(40),
        _in("clients", "stream"),
        cores=1,
    ),
    Figure("stream-memory", "peak memory of that", at_most(600), _in("clients", "stream_memory"), cores=1),
    Figure(
        "descent",
        "20 rounds of private descent about 10^6 heavy-tailed records, d = 20",
        times(10, share=0.8),
        _in("records", "descent"),
    ),
    Figure(
        "median-of-means",
        "20 groups of 1,000 reports of 10,000 coordinates",
        times(3),
        _in("aggregators", "median_of_means"),
    ),
    Figure(
        "coordinate-median",
        "of the same reports",
        times(3),
        _in("aggregators", "coordinate_median"),
    ),
    Figure("trimmed-mean", "of them, a tenth left out at each end", times(3), _in("aggregators", "trimmed_mean")),
    Figure("geometric-median", "of them", times(3), _in("aggregators", "geometric_median")),
    Figure("krum", "of them, a tenth expected to lie", times(3), _in("aggregators", "krum")),
    Figure("figure1", "all of figure1.toml: 100 repetitions, n to 100,000", at_most(40), _in("figure1", "figure1")),
    Figure("help", "halftruth --help in a new process", at_most(0.3), _in("command", "help_text")),
    Figure("import", "import of the command line in a new process", at_most(0.3), _in("command", "imported")),
    Figure("second-run", "a tiny study in a new process, kernels kept", NOTHING, _in("command", "second_run")),
)

FIGURES = {figure.name: figure for figure in _ALL}
