"""HTML from plain values: whatever is no `Markup` is text, and is escaped."""

from html import escape

EMPTY = frozenset({"meta", "link", "input", "br", "hr"})


class Markup(str):
    """Text that is HTML already. Only `tag` and `fragment` make it, and pages of their own files."""

    __slots__ = ()


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """An element: children are escaped unless they are markup; an attribute's trailing underscore is dropped.

    An attribute that is None or False is left out, one that is True has no value; `_` inside a name is `-`.

    >>> tag("p", "a < b", class_="note", hidden=True)
    '<p class="note" hidden>a &lt; b</p>'
    """
    said = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        word = key.rstrip("_").replace("_", "-")
        said.append(word if value is True else f'{word}="{escape(str(value))}"')
    head = Markup(f"<{' '.join(said)}>")
    return head if name in EMPTY else Markup(f"{head}{fragment(*children)}</{name}>")


def fragment(*children: object) -> Markup:
    """Children one after another; None is nothing.

    >>> fragment("<", tag("b", "x"))
    '&lt;<b>x</b>'
    """
    return Markup(
        "".join(child if isinstance(child, Markup) else escape(str(child)) for child in children if child is not None)
    )
