"""A page in one file: nothing is loaded, and a policy in its head says that nothing may be."""

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from studies.web.markup import Markup, fragment, tag

LOOK = ("look.css",)
PARTS = ("theme.js", "dom.js", "table.js", "chart.js")  # one scope: a later one uses what an earlier one defines


def page(title: str, body: Markup, data: Any, styles: Sequence[str], scripts: Sequence[str], asks: bool = False) -> str:
    """The text of a page: `data` as JSON in its element #data, `styles` and `scripts` inline, known by their hashes.

    `asks`: its script may ask the server that it came from, and nobody else.
    """
    style, script = "\n".join(styles), '(() => {\n"use strict";\n' + "\n".join(scripts) + "\n})();"
    policy = (
        f"default-src 'none'; script-src {_hashed(script)}; style-src {_hashed(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    policy += "; connect-src 'self'" if asks else ""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),
        Markup(f"<style>{style}</style>"),
    )
    end = fragment(
        Markup(f'<script type="application/json" id="data">{embedded(data)}</script>'),
        Markup(f"<script>{script}</script>"),
    )
    return f"<!doctype html>\n{tag('html', head, tag('body', body, end), lang='en')}\n"


def embedded(data: Any) -> str:
    """JSON that cannot end the element it stands in, nor begin another.

    >>> embedded({"name": "</script>"})
    '{"name":"\\\\u003c/script\\\\u003e"}'
    """
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def own(package: str, names: Sequence[str]) -> list[str]:
    """The texts of files of a package's folder. They are part of the page as they are: no `</script>` in them."""
    return [files(package).joinpath(name).read_text("utf-8") for name in names]


def _hashed(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
