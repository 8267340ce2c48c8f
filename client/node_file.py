"""The node's own file: everything that a client decides for itself, in one strict TOML. The server never sees it."""

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from typing import Any

from client.labeler import ENTROPY, Node
from client.ledger import DiskLedger, MemoryLedger
from client.policy import Policy
from client.record_file import RECORD_KEYS, RecordFile, parse_record_file
from client.secure.membership import Membership, member_of, simulated
from client.secure.memory import DiskMemory
from client.shuffler_file import SHUFFLER, ShufflerAt, check_shuffler, linked, parse_shuffler
from client.sources.synthetic import synthetic
from client.table_file import TABLE_KEYS, TableFile, parse_table_file, path_at
from protocol import runconfig, strict
from protocol.problem import RECORDS
from protocol.runconfig import Config
from protocol.secure.messages import MOST_MEMBERS
from protocol.store import FeatureStore
from protocol.strict import StudyError
from protocol.study import MOST

LARGEST_SEED = (1 << 128) - 1
LEAST_MEMBERS = 3  # below, what others together know of a sum is all but one member's part
EXECUTORS = ("warm", "stock")
PINS = ("bundles", "server_key", "members", "least_members")  # of [policy]: which code, server and members of sessions


class NodeFileError(ValueError):
    """A node file that does not say what to do: names file, key, what was expected and what was got."""


@dataclass(frozen=True)
class SyntheticLabels:
    """Labels drawn for client `client` out of `clients`."""

    client: int
    clients: int


@dataclass(frozen=True)
class SuperLink:
    """Where a node connects: without encryption, or with the certificates that it trusts and a key of its own."""

    address: str
    insecure: bool
    root_certificates: Path | None
    key: Path | None


@dataclass(frozen=True)
class NodeFile:
    """A node file, read. `seed` draws synthetic labels, and all coins where `entropy` is "addressed".

    `executor` "warm" answers with the client that is installed here, "stock" with the one that the server ships. `key`
    signs reports. `bundles` are SHA-256 of the only code whose messages are answered, none for any; `server_key` is the
    public key that tasks have to be signed with. `members` are public keys of those with whom the node takes part in
    sessions, of `least_members` or more.
    """

    path: Path
    entropy: str
    seed: int | None = field(repr=False)
    ledger: Path | None
    source: SyntheticLabels | TableFile | RecordFile
    policy: Policy
    superlink: SuperLink | None
    executor: str = EXECUTORS[0]
    key: Path | None = None
    bundles: tuple[str, ...] = ()
    server_key: Path | None = None
    members: Path | None = None
    least_members: int = LEAST_MEMBERS
    shuffler: ShufflerAt | None = None


def read_node(path: Path, labels: Path | None = None, ledger: Path | None = None) -> NodeFile:
    """Read a node file; relative paths in it are relative to its folder.

    With `labels` the file may be a policy alone: [source] is then about those, a table unless it says otherwise, and
    the ledger is `ledger`, or [node] ledger, or LABELS.ledger.sqlite beside the labels.

    ```
    [node]        entropy = "os" (default) | "addressed", seed = INTEGER, ledger = PATH
                  executor = "warm" (default) | "stock", key = PATH (default: [superlink] key)
    [source]      kind = "synthetic", client = 0, clients = 3
                  kind = "table", file = PATH, public = false, items = PATH, features = PATH, features_columns = [NAME]
                  labeler = NAME, item_a = NAME, item_b = NAME, winner = NAME, loser = NAME, row = NAME, questions = [],
                  pair = NAME (both items in one cell), wins = [NAME, NAME] (counts), unnamed = "drop-public",
                  prompt = NAME (items are answers to it),
                  coding = "names" | "sides" | "1/0/-1" (FIRST/TIE/SECOND) | "1/0" (FIRST/SECOND): what winner holds
                  or of rankings: ranking = "long" | "wide" | "best-worst", ranking_as = "top" | "pair" | "pairs:M",
                  item_columns = [NAME], rank = NAME, best = NAME, worst = NAME, unranked = "absent" | "last"
                  kind = "records", file = PATH, public = false, features = [NAME, or COLUMN=TEXT], response = NAME,
                  model = "mean" | "linear" | "logistic", unit = "record" | "holder", id = NAME, holder = NAME,
                  row = NAME, missing = "refuse" | "drop-public" | "zero", intercept = false,
                  centre = {NAME = NUMBER}, scale = {NAME = NUMBER}
    [policy]      as client.policy.Policy.parse, and bundles = ["SHA256 IN HEX"], server_key = PATH,
                  members = PATH (a public key a line), least_members = 3
    [superlink]   address = "HOST:PORT", insecure = true | root_certificates = PATH, key = PATH
    [shuffler]    address = "HOST:PORT", insecure = true | root_certificates = PATH, server_key = PATH
    ```

    Raises NodeFileError.
    """
    try:
        with path.open("rb") as file:
            content = tomllib.load(file, parse_float=Decimal)
    except OSError as error:
        raise NodeFileError(f"{path}: expected a node file, {strict.unopened(error)}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise NodeFileError(f"{path}: expected TOML, {error}") from None
    try:
        return _read(path, content if labels is None else _about(content, labels, ledger))
    except ValueError as error:
        raise NodeFileError(f"{path}: {error}") from None


def build(node: NodeFile, config: Config, start: bool = True) -> Node:
    """The node of a file. Only synthetic labels look at the run's configuration, and only at public study and truth.

    `start` is for whoever starts the node: a ledger is made where there is none. Without it a missing one refuses.

    Raises StudyError, SourceError, LedgerUnavailable and ValueError for parts that are not usable or do not fit.
    """
    seed = node.seed if node.entropy == "addressed" else None
    if not isinstance(node.source, SyntheticLabels):
        assert node.ledger is not None
        table = node.source.read()
        strangers = {name for name, _ in node.policy.levels} - set(table.labelers)
        if strangers:  # a level that binds nobody was meant for somebody
            raise StudyError(f"[policy.levels] expected labelers of the file, got {len(strangers)} names of none")
        ledger, to = DiskLedger(node.ledger, start=start), linked(node.shuffler)
        return Node(table, node.policy, ledger, node.entropy, FeatureStore(None), seed, None, _member(node), to)
    assert node.seed is not None
    study = runconfig.read(config).study
    if study.seed != node.seed:
        raise StudyError("[node] seed: expected the study's, which draws its public features, got another")
    features = FeatureStore(node.seed)
    source = synthetic(config, study, node.seed, features, (node.source.client, node.source.clients))
    to = linked(node.shuffler)
    member = partial(simulated, node.seed, node.source.client, node.source.clients)
    return Node(source, node.policy, MemoryLedger(), node.entropy, features, seed, study, member, to)


def _member(node: NodeFile) -> Callable[[], Membership] | None:
    """How the node takes part in sessions, read when it is asked to; None without a list of members."""
    if node.members is None or node.key is None or node.ledger is None:
        return None
    memory, own = DiskMemory(node.ledger), node.policy.colluding
    return cache(partial(member_of, node.key, node.members, memory, node.least_members, own))


def _about(content: Mapping[str, Any], labels: Path, ledger: Path | None) -> Mapping[str, Any]:
    """The content of a node file whose labels are named beside it."""
    node, source = (content.get(name, {}) for name in ("node", "source"))
    for name, table in (("node", node), ("source", source)):
        if not isinstance(table, Mapping):
            raise StudyError(f"[{name}] expected a table, got {table!r}")
    if "file" in source:
        raise StudyError("[source] file: expected none beside --labels, which names it")
    beside = {"ledger": f"{labels}.ledger.sqlite", **node, **({"ledger": str(ledger)} if ledger else {})}
    return {**content, "node": beside, "source": {"kind": "table", **source, "file": str(labels)}}


def _read(path: Path, content: Mapping[str, Any]) -> NodeFile:
    tables = ("node", "source", "policy")
    top = strict.table(content, "top level", (*tables, "superlink", SHUFFLER), tables)
    head = strict.table(top["node"], "node", ("entropy", "seed", "ledger", "executor", "key"))
    entropy = strict.text(head.get("entropy", "os"), "[node] entropy", ENTROPY)
    source = _source(top["source"], path.parent)
    drawn = isinstance(source, SyntheticLabels)
    _present(head, "seed", "[node]", drawn or entropy == "addressed", "for synthetic labels or addressed coins")
    _present(head, "ledger", "[node]", not drawn, "for labels of a file, which spend a budget")
    if not isinstance(source, SyntheticLabels) and entropy == "addressed" and not source.public:
        raise StudyError('[node] entropy: expected "os" for labels not declared public, got "addressed"')
    policy = Policy.parse(top["policy"], also=PINS)
    executor = strict.text(head.get("executor", EXECUTORS[0]), "[node] executor", EXECUTORS)
    bundles = _bundles(top["policy"], executor)
    link = _superlink(top["superlink"], path.parent) if "superlink" in top else None
    key = path_at(head, "key", "[node]", path.parent) or (None if link is None else link.key)
    shuffler = parse_shuffler(top[SHUFFLER], path.parent, key) if SHUFFLER in top else None
    check_shuffler(policy, shuffler, entropy)
    if isinstance(source, RecordFile):
        source.check(policy, trusts_named="trust" in top["policy"])
    if drawn:
        _check_drawn(policy)
    return NodeFile(
        path=path,
        entropy=entropy,
        seed=strict.integer(head["seed"], "[node] seed", 0, LARGEST_SEED) if "seed" in head else None,
        ledger=path_at(head, "ledger", "[node]", path.parent),
        source=source,
        policy=policy,
        superlink=link,
        executor=executor,
        key=key,
        bundles=bundles,
        server_key=path_at(top["policy"], "server_key", "[policy]", path.parent),
        members=path_at(top["policy"], "members", "[policy]", path.parent),
        least_members=strict.integer(
            top["policy"].get("least_members", LEAST_MEMBERS), "[policy] least_members", 2, MOST_MEMBERS
        ),
        shuffler=shuffler,
    )


def _check_drawn(policy: Policy) -> None:
    """Raise StudyError for a policy that synthetic labels cannot keep."""
    if policy.capped:
        raise StudyError('[policy] expected "unlimited" caps for synthetic labels, which keep no totals on disk')
    if policy.levels:
        raise StudyError("[policy.levels] expected none for synthetic labels, whose labelers have no names")


def _bundles(policy: Mapping[str, Any], executor: str) -> tuple[str, ...]:
    """Hashes of code, in lower case; none of them, and no other pin, binds a stock executor."""
    for pin in PINS:
        if pin in policy and executor == "stock":
            raise StudyError(
                f'[node] executor: expected "warm" with [policy] {pin}: the stock one runs what a server ships'
            )
    if "bundles" not in policy:
        return ()
    texts = [strict.text(item, "[policy] bundles") for item in strict.sequence(policy["bundles"], "[policy] bundles")]
    for text in texts:
        if not re.fullmatch("[0-9a-fA-F]{64}", text):
            raise StudyError(f"[policy] bundles: expected 64 hexadecimal digits of SHA-256, got {text[:80]!r}")
    return tuple(text.lower() for text in texts)


def _source(content: Any, folder: Path) -> SyntheticLabels | TableFile | RecordFile:
    if not isinstance(content, Mapping) or "kind" not in content:
        strict.table(content, "source", ("kind", "client", "clients", *TABLE_KEYS, *RECORD_KEYS), ("kind",))
    kind = strict.text(content["kind"], "[source] kind", ("synthetic", "table", RECORDS))
    if kind != "synthetic":
        return parse_table_file(content, folder) if kind == "table" else parse_record_file(content, folder)
    top = strict.table(content, "source", ("kind", "client", "clients"), ("client", "clients"))
    clients = strict.integer(top["clients"], "[source] clients", 1, MOST)
    return SyntheticLabels(strict.integer(top["client"], "[source] client", 0, clients - 1), clients)


def _superlink(content: Any, folder: Path) -> SuperLink:
    top = strict.table(content, "superlink", ("address", "insecure", "root_certificates", "key"), ("address",))
    insecure = strict.boolean(top.get("insecure", False), "[superlink] insecure")
    _present(top, "root_certificates", "[superlink]", not insecure, "unless insecure = true")
    if insecure and "key" in top:
        raise StudyError("[superlink] key: expected none with insecure = true: a key proves nothing without encryption")
    return SuperLink(
        address=strict.text(top["address"], "[superlink] address"),
        insecure=insecure,
        root_certificates=path_at(top, "root_certificates", "[superlink]", folder),
        key=path_at(top, "key", "[superlink]", folder),
    )


def _present(table: Mapping[str, Any], key: str, place: str, wanted: bool, when: str) -> None:
    if (key in table) != wanted:
        raise StudyError(f"{place} {key}: expected it exactly {when}, found {'one' if key in table else 'none'}")
