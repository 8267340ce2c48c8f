"""The page that a labeler answers on: its frame, without a pair, which its script fills."""

from studies.web.markup import Markup, tag
from studies.web.page import LOOK, own, page


def page_of() -> str:
    """The text of the page: one file that loads nothing."""
    top = tag(
        "header",
        tag("a", "Skip to the pair", href="#main", class_="skip"),
        tag("span", "halftruth label", class_="name"),
        tag("button", "Keys: on", type="button", id="keys", aria_pressed="true"),
        tag("button", "Colours: system", type="button", id="theme"),
        class_="top",
    )
    main = tag(
        "main",
        tag("p", id="lost", class_="lost", role="alert"),
        tag("div", _asking(), _releasing(), _leaving(), _reviewing(), id="all", hidden=True),
        tag("p", "Looking.", id="looking"),
        tag("noscript", tag("p", "This page needs JavaScript, which it brings along.")),
        id="main",
    )
    styles = [*own("studies.web", LOOK), *own("studies.label.html", ("label.css",))]
    scripts = [*own("studies.web", ("theme.js", "dom.js")), *own("studies.label.html", ("label.js",))]
    return page("halftruth label", tag("div", top, main, _dialog()), {}, styles, scripts, asks=True)


def _asking() -> Markup:
    """The pair: its number, what is asked, both sides, and what else can be said."""
    return tag(
        "section",
        tag(
            "div",
            tag("h1", "Which do you prefer?", id="heading", tabindex=-1),
            tag("p", id="progress-words", class_="quiet small"),
            class_="heading",
        ),
        tag("progress", id="progress", max=1, value=0, aria_labelledby="progress-words"),
        tag("div", id="question"),
        tag("div", _side(0), _side(1), id="sides"),
        tag(
            "div",
            _act("tie", "About equal", "=", ""),
            _act("skip", "Skip", "S", "seen as missing"),
            _act("undo", "Undo", "Backspace"),
            id="acts",
        ),
        tag("p", id="said", class_="unseen", role="status"),
        id="asking",
        aria_labelledby="heading",
    )


def _side(place: int) -> Markup:
    button = tag("button", tag("span", "Choose this"), _key(("←", "→")[place]), type="button", id=f"choose-{place}")
    return tag("div", tag("div", id=f"text-{place}", class_="text"), button, class_="side", id=f"side-{place}")


def _act(name: str, words: str, key: str, more: str | None = None) -> Markup:
    small = None if more is None else tag("small", more, id=f"{name}-more")
    return tag("button", tag("span", words, small), _key(key), type="button", id=name)


def _key(key: str) -> Markup:
    return tag("kbd", key, aria_hidden="true")


def _releasing() -> Markup:
    return tag(
        "section",
        tag("h2", "Release"),
        tag("p", id="held"),
        tag("button", "Release", type="button", id="release", class_="main"),
        tag("div", id="node"),
        tag("div", id="spent"),
        id="releasing",
        class_="panel",
    )


def _leaving() -> Markup:
    return tag("section", tag("h2", "What leaves this machine"), tag("dl", id="leaves", class_="facts"), id="leaving")


def _reviewing() -> Markup:
    inner = tag("ol", id="answers")
    return tag(
        "section", tag("h2", "Your answers"), tag("details", tag("summary", "Show all pairs"), inner, id="review")
    )


def _dialog() -> Markup:
    return tag(
        "dialog",
        tag("h2", "Release these answers?", id="sure-heading"),
        tag("ul", id="sure"),
        tag(
            "div",
            tag("button", "Not yet", type="button", id="no"),
            tag("button", "Release", type="button", id="yes", class_="main"),
            class_="tools",
        ),
        id="dialog",
        aria_labelledby="sure-heading",
    )
