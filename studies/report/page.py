"""A report as one page: what was asked, the answer, pictures to explore, and how to repeat it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from protocol.decimals import canonical
from protocol.trust import SIGHT
from studies.folder import Folder
from studies.load import changes
from studies.report import facts
from studies.report.answer import answer, people, spoken, times
from studies.report.bounds import lower_bounds
from studies.report.payload import payload
from studies.report.price import Price, prices
from studies.report.repeat import command, study_file, word
from studies.report.view import View
from studies.web.markup import Markup, fragment, tag
from studies.web.page import LOOK, PARTS, own, page

SCRIPTS = ("level.js", "prices.js", "errors.js", "differences.js", "compared.js", "report.js")
FEW = 5  # warnings that stand in the open
MOST_OPEN = 8  # differences of studies that do
HOW = (
    "Of each trust model the arm with the least mean error at the largest n is taken. Mean errors over n are made "
    "monotone and interpolated, log error against log n; the ratio is that at the smallest error which both reach. "
    "Intervals: 95 %, by the jackknife over repetitions. Nothing is read off beyond the grid but a bound."
)


@dataclass(frozen=True, eq=False)
class Told:
    """A study of a report: its results, its folder, and the name that tells it from the others."""

    view: View
    folder: Folder
    title: str

    @property
    def record(self) -> dict[str, Any]:
        """The content of study.json."""
        return self.folder.record()


def report(folders: Sequence[Folder]) -> str:
    """The page of one or several finished runs. Raises StudyError or ValueError where a folder is none."""
    views = [View.open(folder) for folder in folders]
    names, places = [view.loaded.study.name for view in views], [folder.path.name for folder in folders]
    found = [
        Told(view, folder, name if names.count(name) == 1 else f"{name}, {_place(folder, places)}")
        for view, folder, name in zip(views, folders, names, strict=True)
    ]
    several = len(found) > 1
    title = f"{len(found)} studies compared" if several else found[0].title
    data = {"studies": [{**payload(one.view), "title": one.title} for one in found]}
    body = fragment(
        _top(found),
        tag(
            "main",
            tag("h1", title),
            _together(found) if several else None,
            *(_study(one, index, several) for index, one in enumerate(found)),
            id="main",
            class_="report",
        ),
    )
    styles = [*own("studies.web", LOOK), *own("studies.report.html", ("report.css",))]
    return page(
        f"{title}: halftruth", body, data, styles, [*own("studies.web", PARTS), *own("studies.report.html", SCRIPTS)]
    )


def _place(folder: Folder, names: Sequence[str]) -> str:
    return folder.path.name if names.count(folder.path.name) == 1 else str(folder.path)


def _top(found: Sequence[Told]) -> Markup:
    links = [(f"study-{i}", one.title) for i, one in enumerate(found)]
    if len(found) == 1:
        words = ("answer", "Answer"), ("asked", "What was asked"), ("errors", "Errors"), ("differences", "Differences")
        links = [(f"{key}-0", word) for key, word in (*words, ("warnings", "Warnings"), ("repeat", "Repeat it"))]
    return tag(
        "header",
        tag("a", "Skip to the report", href="#main", class_="skip"),
        tag("span", "halftruth report", class_="name"),
        tag("nav", *(tag("a", text, href=f"#{key}") for key, text in links), aria_label="Parts of this page"),
        tag("button", "Colours: system", type="button", id="theme"),
        class_="top",
    )


def _study(one: Told, index: int, several: bool) -> Markup:
    """All that is said of one study; headings are one step smaller where there are several."""
    parts = (
        _part("answer", "The answer", index, several, *_answer(one, index, several)),
        _part("asked", "What was asked", index, several, _asked(one)),
        _part("errors", "Errors", index, several, tag("div", data_errors=index, data_title=f"Errors of {one.title}")),
        _part("differences", "Paired differences", index, several, _differences(one, index)),
        _part("warnings", "Warnings", index, several, _warnings(one)),
        _part("repeat", "Repeat it", index, several, _repeat(one, index)),
        tag("noscript", tag("p", "Pictures and their tables need JavaScript, which this page brings along.")),
    )
    if not several:
        return fragment(*parts)
    return tag(
        "div",
        tag("h2", one.title, class_="study-name", id=f"study-{index}-title"),
        *parts,
        id=f"study-{index}",
        class_="study",
    )


def _part(key: str, title: str, index: int, several: bool, *content: Markup | None) -> Markup:
    name = f"{key}-{index}"
    heading = tag("h3" if several else "h2", title, id=f"{name}-title")
    label = f"study-{index}-title {name}-title" if several else f"{name}-title"
    return tag("section", heading, *content, id=name, aria_labelledby=label)


def _answer(one: Told, index: int, several: bool) -> Sequence[Markup]:
    found, view = prices(one.view), one.view
    said = tag("p", answer(view), class_="answer", data_said=index, aria_live="polite")
    if not found:
        return [said]
    caption = f"{people(view).capitalize()} needed for the same error, as a multiple, by privacy level."
    table = _table(
        f"{people(view).capitalize()} needed for the same error, as a multiple of the reference",
        ("level", "trust", "times", "95 % interval", "best arm", "reference", "why not, or how sure"),
        [_price_row(view, price) for price in found],
    )
    picture = (
        None
        if several
        else tag("div", data_prices=index, data_caption=caption, data_finding=answer(view), class_="prices")
    )
    rest = tag("details", tag("summary", "How this is computed, and every level"), tag("p", HOW, class_="small"), table)
    return [said, tag("div", data_level=index, class_="controls"), *([picture] if picture else []), rest]


def _price_row(view: View, price: Price) -> tuple[str, ...]:
    labels = ["" if arm is None else view.looks[arm.name].label for arm in (price.arm, price.reference)]
    ratio = "" if price.ratio is None else spoken(price, "").removesuffix(" times the ")
    interval = "" if price.low is None or price.high is None else f"{times(price.low)} to {times(price.high)}"
    note = price.reason or ("errors have a heavy tail: the interval is rough" if price.rough else "")
    return (view.title(price.level), price.trust.label, ratio, interval, *labels, note)


def _asked(one: Told) -> Markup:
    view, study = one.view, one.view.loaded.study
    grid = study.grid
    ball = "" if study.problem.bound is None else f", in the ball of radius {canonical(study.problem.bound)}"
    pairs = [
        ("Study", f"{view.describe()}."),
        ("Estimated", f"The {view.wording.truth}, of length {view.zero():.4g}{ball}."),
        (
            "Grid",
            f"n = {', '.join(f'{n:,}' for n in grid.n)}; {_levels(view)}; {view.repetitions()}, seed {study.seed}.",
        ),
        *(("Guarantee", f"(ε, δ)-differential privacy {claim}.") for claim in facts.guarantees(view)),
        ("Coins", f"{facts.coins(view) or 'none'}."),
        *(("Flips", text) for text in facts.flips(view)),
        *(
            ("Lower bound", f"{bound.trust.label}, {bound.name}: constant {bound.fitted.constant:.3g}, {bound.fitted}.")
            for bound in lower_bounds(view)
        ),
    ]
    sight = [SIGHT[trust] for trust, _ in view.sections() if trust in SIGHT]
    names = [trust.label for trust, _ in view.sections() if trust in SIGHT]
    rows = [(name, s.wire, s.server, s.published) for name, s in zip(names, sight, strict=True)]
    who = _table(
        "Who sees what", ("trust model", "on the wire", "the server sees", "what can be published"), rows, long=3
    )
    return fragment(_facts(pairs), tag("details", tag("summary", "Who sees what"), who))


def _levels(view: View) -> str:
    grid = view.loaded.study.grid
    parts = [
        f"{name} = {', '.join(map(canonical, values))}"
        for name, values in (("ε", grid.epsilon), ("δ", grid.delta))
        if values
    ]
    return "; ".join(parts) or "no claims"


def _differences(one: Told, index: int) -> Markup:
    shared = "features and labels" if one.view.loaded.study.records is None else "records"
    note = f"All arms of a repetition share {shared} and coins, so a difference is far sharper than two intervals are."
    return fragment(tag("p", note, class_="small quiet"), tag("div", data_differences=index))


def _warnings(one: Told) -> Markup:
    lines = [*facts.told(one.view), *facts.wild(one.view)]
    if not lines:
        return tag("p", "None.")
    shown, more = (
        tag("ul", *(tag("li", line) for line in part), class_="warnings") for part in (lines[:FEW], lines[FEW:])
    )
    if len(lines) <= FEW:
        return shown
    return fragment(shown, tag("details", tag("summary", f"{len(lines) - FEW} more"), more))


def _repeat(one: Told, index: int) -> Markup:
    record, name = one.record, f"{word(one.view)}.toml"
    run = command(one.view, record, name)
    given = one.view.loaded.resolved["problem"].get("features_sha256") is not None
    beside = f", saved beside features.npy of {one.folder.path.name}/," if given else ""
    said = f"This command repeats it from the study file below{beside} bit for bit, with these versions and arithmetic."
    versions = ", ".join(f"{library} {version}" for library, version in record["versions"].items())
    machine = record["machine"]
    pairs = [
        ("Versions", versions),
        ("Arithmetic", f"fingerprint {facts.numerics(record)}"),
        ("Machine", f"{machine['system']}, {machine['processor']}, {machine['cores']} cores"),
        ("Runtime", ", ".join(sorted({session["runtime"] for session in record["sessions"]})) or "unknown"),
        ("Study", f"fingerprint {record['study_fingerprint']}"),
    ]
    return fragment(
        tag("p", said),
        _copied(f"command-{index}", run, "Copy the command"),
        tag(
            "details",
            tag("summary", f"The study file, {name}"),
            _copied(f"file-{index}", study_file(one.view.loaded.resolved), "Copy the file"),
        ),
        _facts(pairs),
    )


def _copied(name: str, text: str, label: str) -> Markup:
    box = tag("pre", text, id=name, tabindex=0, role="region", aria_label=label.removeprefix("Copy the ").capitalize())
    return tag("div", box, tag("div", tag("button", label, type="button", data_copy=name), class_="tools"))


def _together(found: Sequence[Told]) -> Markup:
    """What differs between the studies, their answers, and one arm's error in all of them."""
    first = found[0]
    changed = {one.title: changes(first.view.loaded.resolved, one.view.loaded.resolved) for one in found[1:]}
    rows = [(title, change) for title, lines in changed.items() for change in lines]
    said = [
        tag("p", tag("strong", f"{one.title}: "), tag("span", answer(one.view), data_said=index))
        for index, one in enumerate(found)
    ]
    differs = tag(
        "details",
        tag("summary", "What differs"),
        _table(f"What differs from {first.title}", ("study", "key: there -> here"), rows, long=1),
        open=len(rows) <= MOST_OPEN,
    )
    caption = "Labelers, or records, needed for the same error, as a multiple, by privacy level and study."
    return tag(
        "section",
        tag("h2", "Side by side", id="together-title"),
        *said,
        differs,
        tag("div", data_prices="all", data_caption=caption, class_="prices"),
        tag("h3", "One arm in all studies"),
        tag("p", "Different studies share no repetitions: their differences are not paired.", class_="small quiet"),
        tag("div", data_compared=True),
        aria_labelledby="together-title",
    )


def _facts(pairs: Sequence[tuple[str, str]]) -> Markup:
    return tag("dl", *(fragment(tag("dt", key), tag("dd", value)) for key, value in pairs), class_="facts")


def _table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]], long: int = 0) -> Markup:
    """A table of text; the last `long` columns may take several lines."""
    first = len(heads) - max(1, long)
    head = tag("tr", *(tag("th", text, scope="col", class_="text") for text in heads))
    body = [
        tag("tr", *(tag("td", cell, class_="text long" if i >= first else "text") for i, cell in enumerate(row)))
        for row in rows
    ]
    table = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *body))
    return tag("div", table, class_="scroll", tabindex=0, role="region", aria_label=caption)
