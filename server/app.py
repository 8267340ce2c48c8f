"""Flower's ServerApp: a study's cells are played over the Grid, and their outcomes delivered. No arithmetic here."""

import logging
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MessageType, RecordDict
from flwr.serverapp import Grid, ServerApp

from protocol.parcel import FEW, RECORD, VALUE, parcel_of
from protocol.quorum import needed
from protocol.runconfig import RunConfig, read
from protocol.store import FeatureStore
from protocol.study import cells
from protocol.trust import Trust
from server.curator import Curator, LiveCurator, SimulatedCurator
from server.delivery import Delivery, ToFolder, ToLog, one_line
from server.evidence import Heard, Server
from server.exchange import Exchange
from server.listening import RoundFailed, complete, quorum, refused
from server.one_task import play_task
from server.outcome_record import cell_name
from server.post import Letter, gather
from server.pulling import InTime, patience
from server.register import Register, read_register
from server.release import ReleaseLedger
from server.resume import JOURNAL, Journals
from server.rounds import play
from server.shuffler_at import through_shuffler
from server.signatures import tasks_signer
from server.telling import Telling
from server.transcript import TRANSCRIPT, Transcript

# Folders and files on the server's own machine. The run's configuration comes from whoever starts a run, and names no
# path: the register of nodes and the key that tasks are signed with are the machine's.
OUTCOMES, STATE = "HALFTRUTH_OUTCOMES", "HALFTRUTH_STATE"
NODES, KEY = "HALFTRUTH_NODES", "HALFTRUTH_KEY"
GRACE = 60.0  # seconds beyond the deadline after which Flower drops a message

app = ServerApp()
_log = logging.getLogger("flwr.halftruth")


class RunFailed(RuntimeError):
    """A run that did not finish: the reason in one line."""


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Play the run's task, or all cells of its study that are not finished; raises RunFailed after saying why."""
    folder = os.environ.get(OUTCOMES)
    delivery: Delivery = ToFolder(Path(folder)) if folder else ToLog(_log.info)
    try:
        run(read(context.run_config), grid, delivery, os.environ)
    except Exception as error:
        reason = one_line(f"{type(error).__name__}: {error}")
        delivery.failed(reason)
        raise RunFailed(reason) from None
    delivery.done()


def run(config: RunConfig, grid: Grid, delivery: Delivery, environment: Mapping[str, str]) -> None:
    """Ask the connected nodes for every cell. Raises RoundFailed where they do not answer as `config.mode` wants."""
    study, task = config.study, config.task
    missing = [cell for cell in config.missing() if not delivery.has(cell)]
    register = known_nodes(environment)
    journals = Journals.of(environment.get(JOURNAL), environment.get(STATE), register)
    journals.clear(study, set(cells(study, config.block or None)) - set(missing))
    if not missing:
        return
    post = InTime(GridPost(grid, config.deadline + GRACE), patience(config.deadline))
    least = needed(config.quorum, config.clients) if config.quorum else None
    nodes = gather(post, config.clients, config.deadline, register=register, least=least)
    exchange = Exchange(post, nodes, config.deadline, config.mode == "strict", register=register)
    exchange.sign = tasks_signer(Path(environment[KEY])) if environment.get(KEY) else None
    with curator(config, environment) as noise, recorded(exchange, environment) as received:
        exchanged = through_shuffler(received, environment)
        server = Server(FeatureStore(study.seed), study.seed, noise, config.attempt)
        wanted = needed(config.quorum, config.clients or len(nodes))
        check = complete if exchange.strict else partial(accept, exchange, wanted)
        telling = Telling(exchange, exchanged, check, delivery.heard)
        for cell in missing:
            with journals.kept(study, cell, *telling.of(cell_name(cell))) as (asked, checked):
                how = (asked, server, checked)
                outcomes = play(study, cell, *how) if task is None else play_task(study, task, *how)
                delivery.deliver(study, cell, list(outcomes))
            _log.info("%s: messages so far: %s", cell_name(cell), exchange.describe())


@contextmanager
def recorded(exchange: Exchange, environment: Mapping[str, str]) -> Iterator[Callable[[list[bytes]], list[bytes]]]:
    """How an exchange asks, with all that is asked and arrives kept where the machine names a folder for it."""
    if not environment.get(TRANSCRIPT):
        yield exchange.ask
        return
    with Transcript(Path(environment[TRANSCRIPT])) as transcript:
        exchange.record = transcript.came

        def ask(tasks: list[bytes]) -> list[bytes]:
            transcript.asked(tasks)
            try:
                return exchange.ask(tasks)
            finally:
                transcript.sync()

        yield ask


def known_nodes(environment: Mapping[str, str]) -> Register | None:
    """The register of nodes that this machine names; None without one. Raises RegisterError."""
    return read_register(Path(environment[NODES])) if environment.get(NODES) else None


def accept(exchange: Exchange, least: int, heard: Sequence[Heard], unread: Sequence[str]) -> None:
    """Take what a live round brought, and log what of it does not count. Raises RoundFailed, as below the quorum."""
    for each in heard:
        task, collected = each.task, each.collected
        codes = [f"refused: {words}" for words in refused(collected)]
        for words in (*codes, *(f"rejected: {reason}" for reason in collected.rejected)):
            _log.warning(one_line(f"{task.trust.label} task at n = {task.n}, epsilon = {task.epsilon}: {words}"))
    for reason in unread:
        _log.warning(one_line(f"rejected: {reason}"))
    try:
        quorum(heard, unread, least)
    except RoundFailed as error:
        raise RoundFailed(f"{error}; messages so far: {exchange.describe()}") from None


@contextmanager
def curator(config: RunConfig, environment: Mapping[str, str]) -> Iterator[Curator | None]:
    """Who adds noise to sums: nobody without a central arm; with a ledger, the one of the server's state folder."""
    if all(arm.trust is not Trust.CENTRAL for arm in config.study.arms):
        yield None
    elif config.curator == "simulated":
        yield SimulatedCurator(config.study.seed)
    elif not environment.get(STATE):
        raise RoundFailed(f'expected {STATE} to name a folder for curator = "ledger", got none on this machine')
    else:
        with ReleaseLedger(Path(environment[STATE]) / "curator.sqlite") as ledger:
            yield LiveCurator(ledger)


@dataclass(frozen=True)
class GridPost:
    """Flower's Grid as a post of byte strings; a message lives for `ttl` seconds.

    Its `pull` waits for what a node has announced, and raises for what is no message: see `server.pulling:InTime`.
    """

    grid: Grid
    ttl: float

    def nodes(self) -> Collection[int]:
        """The connected nodes."""
        return list(self.grid.get_node_ids())

    def push(self, nodes: Sequence[int], raw: bytes) -> Sequence[str | None]:
        """One message a node."""
        content = RecordDict({RECORD: _record(raw)})
        messages = [Message(content, node, MessageType.QUERY, ttl=self.ttl) for node in nodes]
        sent = set(self.grid.push_messages(messages))  # in simulation shorter than `messages` where one was not sent
        return [name if (name := message.metadata.message_id) in sent else None for message in messages]

    def pull(self, ids: Collection[str]) -> Sequence[Letter]:
        """Replies and error replies."""
        return [_letter(message) for message in self.grid.pull_messages(ids)]


def _letter(message: Message) -> Letter:
    node, reply_to = message.metadata.src_node_id, message.metadata.reply_to_message_id
    if message.has_error():
        return Letter(node, reply_to, (message.error.reason or "").encode(), message.error.code)
    return Letter(node, reply_to, _bytes(message.content))


def _record(raw: bytes) -> ArrayRecord | ConfigRecord:
    if len(raw) <= FEW:
        return ConfigRecord({VALUE: raw})
    return ArrayRecord({VALUE: Array(np.frombuffer(raw, dtype=np.uint8))})


def _bytes(content: RecordDict) -> bytes:
    """The bytes of a reply; none where it holds anything else."""
    try:
        return parcel_of(content)
    except ValueError:
        return b""
