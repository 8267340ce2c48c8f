"""The page of `halftruth watch --serve`, whose script fills it with what the server says."""

from studies.watch.nodes import BUDGETS
from studies.watch.show import FOUND, LOOKING
from studies.web.markup import Markup, tag
from studies.web.page import LOOK, own, page

AXIS = "on a logarithmic axis"
LESS = ("repetitions", "units")  # not where there is little room: the first table and its bars say it too


def text_of(every: float) -> str:
    """The page, which asks every so many seconds."""
    top = tag(
        "header",
        tag("a", "Skip to the run", href="#main", class_="skip"),
        tag("span", "halftruth watch", class_="name"),
        tag("button", "Colours: system", type="button", id="theme"),
        class_="top",
    )
    main = tag(
        "main",
        tag("div", tag("h1", "A run", id="name"), tag("p", id="where", class_="quiet"), class_="heading"),
        tag("p", "Looking.", id="state", class_="state", role="status"),
        tag("p", id="lost", class_="lost", role="alert"),
        tag("div", *_run(), id="run", hidden=True),
        _budgets(),
        tag("noscript", tag("p", "This page needs JavaScript, which it brings along.")),
        id="main",
    )
    styles = [*own("studies.web", LOOK), *own("studies.watch.html", ("watch.css",))]
    scripts = [*own("studies.web", ("theme.js", "dom.js")), *own("studies.watch.html", ("watch.js",))]
    return page("halftruth watch", tag("div", top, main), {"every": every}, styles, scripts, asks=True)


def _run() -> tuple[Markup, ...]:
    """Progress, messages of nodes, errors, notes."""
    units = _table("Units that are finished, by n", "units", ("n", "progress", "units", "all repetitions"), (1,))
    kinds = _table("Messages of nodes, by what came of them", "kinds", ("messages", "last round", "all rounds"), (0,))
    heads = ("arm", "mean, 95 % interval", AXIS, "repetitions")
    errors = tag(
        "section",
        tag("h2", "Errors so far"),
        tag("div", id="controls", class_="controls"),
        _table(f"{FOUND[0].upper()}{FOUND[1:]}", "errors", heads, (0, 2)),
        tag("p", LOOKING, class_="small quiet"),
        id="errors-part",
        hidden=True,
    )
    said = tag("section", tag("h2", "Notes"), tag("ul", id="lines"), id="lines-part", hidden=True)
    whole = tag(
        "div",
        tag("progress", id="whole", aria_label="the whole run"),
        tag("span", id="share", class_="share"),
        class_="whole",
    )
    beside = tag(
        "div",
        tag("section", tag("h2", "Progress"), units),
        tag("section", tag("h2", "Nodes"), kinds, id="kinds-part", hidden=True),
        class_="beside",
    )
    return whole, beside, errors, said


def _budgets() -> Markup:
    heads = ("node", "total of", "most spent", "cap", "left", "used up", "spent of the cap")
    return tag(
        "section",
        tag("h2", "Budgets"),
        _table(BUDGETS, "totals", heads, (0, 1, 6)),
        tag("ul", id="budget-lines", class_="notes"),
        id="budgets-part",
        hidden=True,
    )


def _table(caption: str, name: str, heads: tuple[str, ...], text: tuple[int, ...]) -> Markup:
    """A table whose body the page's script fills, and the axis in its head."""
    cells = [
        tag("th", word, scope="col", class_="text axis", id="axis")
        if word == AXIS
        else tag("th", word, scope="col", class_="text" if at in text else "less" if word in LESS else None)
        for at, word in enumerate(heads)
    ]
    inner = tag("table", tag("caption", caption), tag("thead", tag("tr", *cells)), tag("tbody", id=name))
    return tag("div", inner, class_="scroll", tabindex=0, role="region", aria_label=caption)
