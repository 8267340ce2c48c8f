"""The shuffler as a real process: over TLS, killed and started again, with nodes and a server that find it by files."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from client.labeler import Node, answer
from client.node_file import NodeFileError, build, read_node
from client.shuffled import ShufflerUnavailable
from client.shuffler_link import GrpcLink
from client.sources.synthetic import write_truth
from deploy.certs import ensure
from deploy.forked import in_child
from deploy.node_keys import ensure_key, public_path, read_public
from deploy.sealing_keys import ensure_sealing_key
from deploy.shuffler import WORKERS, serving
from deploy.shuffler_file import read_shuffler
from protocol.arms import Arm
from protocol.codec import decode_reply, encode_task, identity
from protocol.messages import Refusal
from protocol.problem import Problem
from protocol.runconfig import write
from protocol.sealed import SERVICE, SUBMIT
from protocol.study import Cell, Grid, Study
from protocol.trust import Trust
from server.listening import RoundFailed
from server.rounds import play
from server.sent import Sent
from server.shuffler_at import through_shuffler
from server.tasks import offers
from studies.cli import main
from studies.in_process import in_process, run_cell

N, ASKED, NODES, SEED = 24, 3, 3, 11
X = np.random.Generator(np.random.Philox(5)).normal(size=(ASKED, 2))
PAIRS = Problem(2, "values", False, Decimal(3), design=X[np.arange(N) % ASKED])
THETA = np.array([1.0, -0.5])
ARMS = (Arm(Trust.SHUFFLED, "randomized-response", "rr-mle"), Arm(Trust.LOCAL, "randomized-response", "rr-mle"))
STUDY = Study("panel", SEED, 2, PAIRS, Grid((N,), (Decimal(2),), (Decimal("1e-2"),)), ARMS)
CELL = Cell(N, 0, 2)
NODE = """
[node]
entropy = "addressed"
seed = {seed}
key = "node-{number}.key"
[source]
kind = "synthetic"
client = {number}
clients = {nodes}
[policy]
trust = ["local", "shuffled"]
label_cap = "unlimited"
[shuffler]
address = "{address}"
{secure}
server_key = "sealing.key.pub"
"""


@dataclass
class Place:
    """A folder with all files of a shuffler, its nodes and its server; the shuffler runs while the block does."""

    folder: Path
    secure: bool
    process: "subprocess.Popen[str] | None" = None
    address: str = "127.0.0.1:0"

    def prepare(self) -> None:
        ensure_sealing_key(self.folder / "sealing.key")
        ensure_key(self.folder / "server.key")
        nodes = []
        for number in range(NODES):
            public, _ = ensure_key(self.folder / f"node-{number}.key")
            nodes.append(f'[[node]]\nname = "n{number}"\nkey = "{public.line}"\nid = "{number + 1}"\n')
        (self.folder / "nodes.toml").write_text("\n".join(nodes))
        if self.secure:
            ensure(self.folder / "certs", ("127.0.0.1",))

    def start(self) -> None:
        """Start the command and read the address that it listens on; started again, the same port."""
        how = 'certificate = "certs/server.crt"\nkey = "certs/server.key"' if self.secure else "insecure = true"
        (self.folder / "shuffler.toml").write_text(
            f'[shuffler]\naddress = "{self.address}"\n{how}\nstate = "state.sqlite"\nnodes = "nodes.toml"\n'
            'server_key = "server.key.pub"\n'
        )
        command = [sys.executable, "-m", "studies", "shuffler", "--config", str(self.folder / "shuffler.toml")]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.address = line.split(" at ")[1].split(" ")[0]

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(how)
        with self.process:
            return self.process.wait(30)

    def node(self, number: int) -> Node:
        path = self.folder / f"node-{number}.toml"
        secure = 'root_certificates = "certs/ca.crt"' if self.secure else "insecure = true"
        path.write_text(NODE.format(seed=SEED, number=number, nodes=NODES, address=self.address, secure=secure))
        return build(read_node(path), {**write(STUDY), "truth": write_truth(THETA)})

    def ask(self) -> Callable[[list[bytes]], list[bytes]]:
        secure = 'root_certificates = "certs/ca.crt"' if self.secure else "insecure = true"
        at = self.folder / "at.toml"
        at.write_text(f'[shuffler]\naddress = "{self.address}"\n{secure}\nsealing_key = "sealing.key"\n')
        nodes = [self.node(number) for number in range(NODES)]

        def asked(tasks: list[bytes]) -> list[bytes]:
            replies = [(number, raw, answer(raw, node)) for number, node in enumerate(nodes) for raw in tasks]
            return [Sent(reply, f"node n{number}", identity(raw)) for number, raw, reply in replies]

        return through_shuffler(
            asked, {"HALFTRUTH_SHUFFLER": str(at), "HALFTRUTH_KEY": str(self.folder / "server.key")}
        )


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path, secure=getattr(request, "param", False))
    made.prepare()
    made.start()
    yield made
    if made.process is not None and made.process.poll() is None:
        made.end()


@pytest.mark.parametrize("place", [False, True], ids=["plain", "tls"], indirect=True)
def test_a_study_has_the_bits_of_one_process(place: Place) -> None:
    """Also where the shuffler is killed and started again when it has everything, and asked a second time."""
    expected = list(run_cell(STUDY, THETA, CELL, NODES))
    room = in_process(STUDY, THETA, NODES)
    found = list(play(STUDY, CELL, place.ask(), room.server))
    assert [one.theta.tolist() for one in found] == [one.theta.tolist() for one in expected]
    assert place.end(signal.SIGKILL) == -signal.SIGKILL
    place.start()
    again = list(play(STUDY, CELL, place.ask(), room.server))
    assert [one.theta.tolist() for one in again] == [one.theta.tolist() for one in expected]
    assert place.end() == 0


def raw_task() -> bytes:
    """The bytes of the study's shuffled task."""
    return encode_task(
        next(offer.task for offer in offers(STUDY, CELL) if offer.task and offer.task.trust is Trust.SHUFFLED)
    )


def test_a_shuffler_killed_between_nodes_loses_nothing(place: Place) -> None:
    assert not isinstance(decode_reply(answer(raw_task(), place.node(0))), Refusal)
    place.end(signal.SIGKILL)
    place.start()
    room = in_process(STUDY, THETA, NODES)
    found = list(play(replace(STUDY, arms=ARMS[:1]), CELL, place.ask(), room.server))
    assert len(found) == 2


def test_forked_children_reach_the_shuffler(place: Place) -> None:
    """As the executor of a node answers: the parent has read all files, and each question has a child of its own."""
    raw, nodes = raw_task(), [place.node(number) for number in range(NODES)]
    line, other = socket.socketpair()
    with line, other:
        for node in (*nodes, nodes[0]):
            reply = in_child(lambda node=node: answer(raw, node), 30.0, line.fileno())  # type: ignore[misc]
            assert not isinstance(decode_reply(reply), Refusal)
    found = list(play(replace(STUDY, arms=ARMS[:1]), CELL, place.ask(), in_process(STUDY, THETA, NODES).server))
    assert len(found) == 2


def test_without_a_shuffler_nodes_refuse_and_the_server_says_why(place: Place) -> None:
    place.end()
    node = place.node(0)
    assert node.shuffler is not None
    assert isinstance(node.shuffler.link, GrpcLink)
    link = replace(node.shuffler.link, seconds=0.2)
    with pytest.raises(ShufflerUnavailable, match=r"UNAVAILABLE|DEADLINE"):
        link.submit(b"")
    ask = place.ask()
    with pytest.raises(RoundFailed, match="expected HALFTRUTH_KEY"):
        through_shuffler(ask, {"HALFTRUTH_SHUFFLER": str(place.folder / "at.toml")})


def test_a_register_without_rows_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Place(tmp_path, secure=False)
    made.prepare()
    register = tmp_path / "nodes.toml"
    (tmp_path / "shuffler.toml").write_text(
        '[shuffler]\naddress = "127.0.0.1:0"\ninsecure = true\nstate = "state.sqlite"\nnodes = "nodes.toml"\n'
        'server_key = "server.key.pub"\n'
    )
    monkeypatch.setattr("deploy.shuffler.until_ended", lambda: None)
    assert main(["shuffler", "--config", str(tmp_path / "shuffler.toml")]) == 0
    assert "3 nodes of the register without rows" in capsys.readouterr().err
    text = register.read_text()
    for number in range(NODES):
        text = text.replace(f'id = "{number + 1}"', f'id = "{number + 1}"\nrows = "{8 * number}:{8 * number + 8}"')
    register.write_text(text)
    assert main(["shuffler", "--config", str(tmp_path / "shuffler.toml")]) == 0
    assert not capsys.readouterr().err


def _frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    """A frame of HTTP/2."""
    return len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + body


def _halted(address: str) -> socket.socket:
    """A call of a stranger that stops within its message."""
    host, port = address.rsplit(":", 1)
    head = {":method": "POST", ":scheme": "http", ":path": f"/{SERVICE}/{SUBMIT}", ":authority": address}
    head |= {"content-type": "application/grpc", "te": "trailers"}
    words = b"".join(b"\0" + b"".join(bytes([len(one)]) + one.encode() for one in item) for item in head.items())
    begun = b"\0" + (1000).to_bytes(4, "big") + b"x"
    line = socket.create_connection((host, int(port)))
    line.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(4, 0, 0, b""))
    line.sendall(_frame(1, 4, 1, words) + _frame(0, 0, 1, begun))
    return line


def test_calls_that_stop_halfway_do_not_hold_the_shuffler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many of them as there are workers: they held these until the shuffler was started again."""
    made = Place(tmp_path, secure=False)
    made.prepare()
    (tmp_path / "shuffler.toml").write_text(
        '[shuffler]\naddress = "127.0.0.1:0"\ninsecure = true\nstate = "state.sqlite"\nnodes = "nodes.toml"\n'
        'server_key = "server.key.pub"\n'
    )
    monkeypatch.setattr("deploy.shuffler.AGE", 1.0)
    monkeypatch.setattr("deploy.shuffler.GRACE", 0.5)
    with ExitStack() as stack:
        address = stack.enter_context(serving(read_shuffler(tmp_path / "shuffler.toml")))
        for _ in range(WORKERS):
            stack.enter_context(_halted(address))
        with pytest.raises(ShufflerUnavailable, match="DEADLINE"):
            GrpcLink(address, seconds=0.4).submit(b"")
        said = ""
        for _ in range(20):  # a call that waits grows old as well, and is sent again
            with pytest.raises(ShufflerUnavailable) as told:
                GrpcLink(address, seconds=30).submit(b"")
            said = str(told.value)
            if "max connection age" not in said:
                break
        assert "INVALID_ARGUMENT" in said


def test_keys_and_files_are_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keys", "sealing", str(tmp_path / "sealing.key")]) == 0
    assert "readable by you alone" in capsys.readouterr().out
    assert main(["keys", "sealing", str(tmp_path / "sealing.key")]) == 0
    assert capsys.readouterr().out.startswith("Kept")
    assert (tmp_path / "sealing.key").stat().st_mode & 0o777 == 0o600
    ensure_key(tmp_path / "node.key")
    assert read_public(public_path(tmp_path / "node.key"))
    assert main(["keys", "sealing", str(tmp_path / "node.key")]) == 2
    assert main(["shuffler", "--config", str(tmp_path / "none.toml")]) == 2
    (tmp_path / "odd.toml").write_text('[shuffler]\naddress = "127.0.0.1:0"\n')
    assert main(["shuffler", "--config", str(tmp_path / "odd.toml")]) == 2
    assert "odd.toml" in capsys.readouterr().err
    public = (tmp_path / "sealing.key.pub").read_text()
    (tmp_path / "sealing.key.pub").write_text(public.replace("A", "B", 1))
    assert main(["keys", "sealing", str(tmp_path / "sealing.key")]) == 2


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('server_key = "sealing.key.pub"', "", "server_key"),
        ("insecure = true", "", "root_certificates"),
        ('key = "node-0.key"\n', "", "submissions to a shuffler are signed"),
        ("[shuffler]", "[shuffling]", "shuffling"),
    ],
)
def test_a_node_file_says_what_is_wrong(tmp_path: Path, old: str, new: str, words: str) -> None:
    text = NODE.format(seed=1, number=0, nodes=1, address="127.0.0.1:1", secure="insecure = true")
    (tmp_path / "node.toml").write_text(text.replace(old, new))
    with pytest.raises(NodeFileError, match=words):
        read_node(tmp_path / "node.toml")


def test_a_node_with_labels_of_a_file_needs_a_shuffler(tmp_path: Path) -> None:
    (tmp_path / "node.toml").write_text(
        '[node]\nledger = "ledger.sqlite"\n[source]\nkind = "table"\nfile = "votes.csv"\n'
        '[policy]\ntrust = ["shuffled"]\nlabel_cap = 1\n'
    )
    with pytest.raises(NodeFileError, match=r"\[shuffler\] expected where shuffled answers go"):
        read_node(tmp_path / "node.toml")
