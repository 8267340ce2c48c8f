"""What a release leaves in the labeler's folder: a file of answers, the public items, and a node file that says both.

Before a release there is no such file, so no node could answer from it.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from client.answers import FIRST, SECOND, TIE
from client.node_file import NodeFile, read_node
from client.private_files import replace_private
from client.shuffler_file import SHUFFLER
from client.sources.columns import Columns
from client.sources.outcomes import FIRST as FIRST_WON
from client.sources.outcomes import SECOND as SECOND_WON
from client.sources.outcomes import TIE as NOBODY_WON
from client.sources.outcomes import WRITTEN
from client.table_file import TableFile
from protocol.decimals import canonical
from studies.data.split_nodes import HEADER, NODE_FILE, PROMPT, VOTES
from studies.federate.folder import ITEMS
from studies.label.pairs import Pairs

LEDGER = "ledger.sqlite"
WINS = {FIRST: WRITTEN[FIRST_WON], SECOND: WRITTEN[SECOND_WON], TIE: WRITTEN[NOBODY_WON]}
HEAD = "# A labeler's node, written by halftruth label: its answers are in votes.csv, and its policy is what it was.\n"
Content = Mapping[str, Mapping[str, Any]]


def publish(folder: Path, pairs: Pairs, released: Mapping[str, str], node: NodeFile, content: Content) -> NodeFile:
    """Write the node of the answers that were released, and read it as it will be read.

    `content` is the file that `node` was read from: policy, connection and whose coins stay what they are. Pairs that
    are not in the file any more are left out. Raises OSError, NodeFileError.
    """
    prompted = bool(pairs.table.answers)
    items, votes = ((item,) for item in pairs.table.items), _votes(pairs, released, prompted)
    replace_private(folder / ITEMS, _csv(("item",), items))
    replace_private(folder / VOTES, _csv((*HEADER, *((PROMPT,) if prompted else ())), votes))
    replace_private(folder / NODE_FILE, (HEAD + toml(_node(folder, pairs, node, content))).encode())
    return read_node(folder / NODE_FILE)


def toml(tables: Mapping[str, Any], path: tuple[str, ...] = ()) -> str:
    """Tables of text, numbers, truths and lists of these as TOML, tables inside them after their other keys.

    >>> print(toml({"policy": {"label_cap": Decimal("1.50"), "levels": {"a b": 1}}}), end="")
    [policy]
    label_cap = 1.5
    [policy.levels]
    "a b" = 1
    """
    lines = [f"[{'.'.join(path)}]"] if path else []
    lines += [f"{_key(key)} = {_value(value)}" for key, value in tables.items() if not isinstance(value, Mapping)]
    inner = ((key, value) for key, value in tables.items() if isinstance(value, Mapping))
    return "".join(f"{line}\n" for line in lines) + "".join(toml(value, (*path, _key(key))) for key, value in inner)


def _node(folder: Path, pairs: Pairs, node: NodeFile, content: Content) -> dict[str, dict[str, Any]]:
    """The tables of the node file: [source] is about the files beside it, paths are absolute, the rest stays."""
    columns, source = pairs.table.columns, node.source
    assert isinstance(columns, Columns) and isinstance(source, TableFile)
    about: dict[str, Any] = {"kind": "table", "file": VOTES, "items": ITEMS, "public": source.public, "row": "row"}
    about |= {name: name for name in ("labeler", "item_a", "item_b", "winner")}
    about |= {"coding": "sides", "questions": ["question"]}
    about |= {"prompt": PROMPT} if pairs.table.answers else {}
    about |= {"features": str(source.features.resolve())} if source.features else {}
    about |= {"features_columns": list(source.features_columns)} if source.features_columns else {}
    head, policy, link, shuffler = (dict(content.get(name, {})) for name in ("node", "policy", "superlink", SHUFFLER))
    head["ledger"] = str((node.ledger or folder / LEDGER).resolve())
    paths = [(head, "key", node.key), (policy, "server_key", node.server_key), (policy, "members", node.members)]
    if node.superlink is not None:
        paths += [(link, "key", node.superlink.key), (link, "root_certificates", node.superlink.root_certificates)]
    if node.shuffler is not None:
        authority, sealing = node.shuffler.root_certificates, node.shuffler.server_key
        paths += [(shuffler, "root_certificates", authority), (shuffler, "server_key", sealing)]
    for table, key, path in paths:
        if key in table and path is not None:
            table[key] = str(path.resolve())
    if "levels" in policy:  # those of others bind nobody here, and a node refuses them
        policy["levels"] = {name: level for name, level in policy["levels"].items() if name == pairs.labeler}
    ways = {name: table for name, table in (("superlink", link), (SHUFFLER, shuffler)) if table}
    return {"node": head, "source": about, "policy": policy, **ways}


def _votes(pairs: Pairs, released: Mapping[str, str], prompted: bool) -> Iterator[tuple[object, ...]]:
    """The lines of all pairs of the file whose answers were released, in the order of their numbers."""
    answers, questions = pairs.table.answers, pairs.table.questions
    for pair in pairs.all:
        if pair.key in released:
            (a, *prompt), (b, *_) = (answers.get(item, (item,)) for item in pair.items)
            line = (pair.row, pairs.labeler, a, b, WINS[released[pair.key]], questions[pair.place])
            yield (*line, *prompt) if prompted else line


def _csv(header: Sequence[str], lines: Iterable[Sequence[object]]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(header)
    writer.writerows(lines)
    return text.getvalue().encode()


def _key(name: str) -> str:
    return name if name.isascii() and name.replace("_", "").replace("-", "").isalnum() else _text(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return _text(value) if isinstance(value, str) else canonical(Decimal(value))


def _text(text: str) -> str:
    """JSON's texts are TOML's, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
