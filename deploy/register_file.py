"""Writes the register of a server's nodes, nodes.toml, and makes its SuperLink agree with it."""

import json
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from deploy import secret_files
from deploy.federation import State
from deploy.flwr_command import SuperLink
from deploy.node_keys import PublicKey, read_public
from deploy.processes import FlowerFailed
from protocol.strict import StudyError
from server.register import RegisterError, read_register

HEAD = "# The nodes that may answer this server, and their keys: change it with `halftruth keys`.\n"
OF_NODE = "{}.own.pub"  # of a node that is started here with the key that its own file names
GONE = ("unregistered", "deleted")


@dataclass(frozen=True)
class Entry:
    """A node of the register. `node`: its id at the SuperLink, "" until it has one; `rows`: runs start:stop, or ""."""

    name: str
    key: PublicKey
    node: str = ""
    rows: str = ""
    revoked: bool = False


Entries = Sequence[Entry]


def read(path: Path) -> list[Entry]:
    """The entries of a register; none where there is no file. Raises StudyError."""
    if not path.exists():
        return []
    try:
        nodes = read_register(path).nodes
    except RegisterError as error:
        raise StudyError(str(error)) from None
    return [
        Entry(known.name, PublicKey.of(known.key), str(known.id), _rows(known.rows), known.revoked) for known in nodes
    ]


def change(state: State, link: SuperLink | None, how: Callable[[Entries], Entries]) -> list[Entry]:
    """Change the register, and before it the SuperLink where one runs; another change at the same time waits.

    Returns the entries, each with its id. Raises StudyError where the register would not be one, or where none runs
    that could give an id; FlowerFailed where the SuperLink does not take it.
    """
    with secret_files.locked(state.make().register.with_suffix(".lock")):
        before = read(state.register)
        after = list(how(before))
        _check(state.register, after)
        if link is not None:
            after = agreed(after, link, before)
        elif new := [entry.name for entry in after if not entry.node]:
            raise StudyError(
                f"{new[0]}: expected a server that runs, which gives a node its id: start halftruth server"
            )
        if after != before:
            secret_files.replace(state.register, _text(after), secret_files.PUBLIC)
        return after


def registered(
    entries: Entries, name: str, key: PublicKey, rows: str | None = None, replaces: str | None = None
) -> Entries:
    """The entries with one more: none but this for this name and this key. `replaces`: whose key is revoked, and
    whose rows it takes; its own name where only the key is new. Raises StudyError.
    """
    old = _latest(entries, replaces) if replaces is not None else None
    if replaces is not None and old is None:
        raise StudyError(f"--replaces {replaces}: expected a node of the register, found {_names(entries)}")
    same = next((entry for entry in entries if entry.key == key), None)
    if same is not None:
        return _again(entries, same, name, rows)
    there = _latest(entries, name)
    if there is not None and name != replaces:
        raise StudyError(
            f"{name}: registered with another key, {there.key.fingerprint}, got {key.fingerprint}: "
            f"to change its key add --replaces {name}"
        )
    new = Entry(name, key, rows=rows if rows is not None else old.rows if old else "")
    return [*(entries if replaces is None else revoked(entries, replaces)), new]


def revoked(entries: Entries, name: str) -> Entries:
    """The entries with one whose key may come no more, under whatever name: it stays in the register.

    Raises StudyError where there is none of this name.
    """
    if _latest(entries, name) is None:
        raise StudyError(f"{name}: expected a node of the register, found {_names(entries)}")
    return [replace(entry, revoked=True) if entry.name == name else entry for entry in entries]


def admitted(entries: Entries, keys: Mapping[str, PublicKey], own: Path) -> Entries:
    """The entries with exactly these of the keys in the folder `own`, which nodes of this machine have; the others
    stay as they are, and so does what was revoked.
    """
    names = "{}.pub", OF_NODE
    ours = {entry.name for entry in entries for name in names if _is_key(own / name.format(entry.name), entry.key)}
    kept = [entry for entry in entries if entry.revoked or entry.name not in ours or keys.get(entry.name) == entry.key]
    for name, key in keys.items():
        old = _latest(kept, name)
        kept = list(registered(kept, name, key, replaces=name if old is not None and old.revoked else None))
    return kept


def agreed(entries: Entries, link: SuperLink, before: Entries = ()) -> list[Entry]:
    """Let the SuperLink admit those that are not revoked, and no others of these or of `before`; with their ids.

    Raises FlowerFailed.
    """
    live = {seen.id for seen in link.nodes() if seen.status not in GONE}
    known = {entry.node for entry in (*before, *entries)}
    welcome = {entry.node for entry in entries if not entry.revoked}
    for node in sorted(known & live - welcome):
        link.unregister(node)
    strangers = live - known
    return [entry if entry.revoked or entry.node in live else _admit(entry, link, strangers) for entry in entries]


def _admit(entry: Entry, link: SuperLink, strangers: Iterable[str]) -> Entry:
    with tempfile.TemporaryDirectory(prefix="halftruth-") as folder:
        file = Path(folder) / "node.pub"
        file.write_text(entry.key.line + "\n", encoding="ascii")
        try:
            return replace(entry, node=link.register(file))
        except FlowerFailed as error:
            unnamed = list(strangers)
            if "already in use" not in str(error) or len(unnamed) != 1:
                raise  # else a change was interrupted after the SuperLink had been told
            return replace(entry, node=unnamed[0])


def _again(entries: Entries, same: Entry, name: str, rows: str | None) -> Entries:
    """A key that is there: the same, with other rows perhaps; never under another name, never after it was revoked."""
    if same.name != name:
        how = "was revoked" if same.revoked else "is registered"
        raise StudyError(f"{name}: this key {how} as {same.name} ({same.key.fingerprint}): a node needs its own")
    if same.revoked:
        raise StudyError(
            f"{name}: this key was revoked ({same.key.fingerprint}), and never comes back: make a new one, and "
            f"--replaces {name}"
        )
    return [replace(entry, rows=rows) if entry is same and rows is not None else entry for entry in entries]


def _latest(entries: Entries, name: str) -> Entry | None:
    """The node of this name that is heard, or the last one that was."""
    named = [entry for entry in entries if entry.name == name]
    return next((entry for entry in named if not entry.revoked), named[-1] if named else None)


def _check(path: Path, entries: Entries) -> None:
    """Raise StudyError where the server could not read the register that these would make."""
    used = {entry.node for entry in entries}
    free = (str(number) for number in range(1, len(used) + len(entries) + 1) if str(number) not in used)
    with tempfile.TemporaryDirectory(prefix="halftruth-") as folder:
        trial = Path(folder) / path.name
        trial.write_bytes(_text([entry if entry.node else replace(entry, node=next(free)) for entry in entries]))
        try:
            read_register(trial)
        except RegisterError as error:
            raise StudyError(str(error).removeprefix(f"{trial}: ")) from None


def _text(entries: Entries) -> bytes:
    return (HEAD + "".join(map(_toml, entries))).encode("utf-8")


def _toml(entry: Entry) -> str:
    pairs: dict[str, str] = {"name": entry.name, "key": entry.key.line, "id": entry.node}
    pairs |= {"rows": entry.rows} if entry.rows else {}
    lines = [f"{key} = {json.dumps(value)}" for key, value in pairs.items()] + ["revoked = true"] * entry.revoked
    return "\n[[node]]\n" + "\n".join(lines) + "\n"


def _rows(rows: Sequence[tuple[int, int]] | None) -> str:
    return ", ".join(f"{start}:{stop}" for start, stop in rows or ())


def _is_key(path: Path, key: PublicKey) -> bool:
    return path.is_file() and read_public(path) == key


def _names(entries: Entries) -> str:
    return ", ".join(dict.fromkeys(entry.name for entry in entries)) or "an empty one"
