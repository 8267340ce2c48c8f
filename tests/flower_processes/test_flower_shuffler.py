"""A shuffler beside a real federation: SuperNodes hand it sealed answers, and the server fetches them from it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from client.ledger_view import read_labelers
from deploy.node_keys import ensure_key
from deploy.sealing_keys import ensure_sealing_key
from studies.cli import main

LABELERS, NODES = 60, 3
ITEMS = ("x", "y", "z")
Say = pytest.CaptureFixture[str]


@dataclass
class Shuffler:
    """`halftruth shuffler` in a process of its own; started again, at the same port."""

    folder: Path
    address: str = "127.0.0.1:0"
    process: "subprocess.Popen[str] | None" = None

    def start(self) -> None:
        """Start it, and read where it listens."""
        file = self.folder / "at" / "shuffler.toml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(
            f'[shuffler]\naddress = "{self.address}"\ninsecure = true\nstate = "state.sqlite"\n'
            'nodes = "../nodes.toml"\nserver_key = "../server.key.pub"\n'
        )
        words = [sys.executable, "-m", "studies", "shuffler", "--config", str(file)]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert " at " in line, self.process.communicate()
        self.address = line.split(" at ")[1].split(" ")[0]

    def end(self, how: signal.Signals) -> None:
        """End it, if it runs."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(how)
            with self.process:
                self.process.wait(30)


@pytest.fixture
def shuffler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shuffler]:
    """A ranking's votes split over nodes, with all keys and files; and a shuffler, which has been up once."""
    lines = ["judge,model_a,model_b,winner"]
    for who in range(LABELERS):
        for one, other in (("x", "y"), ("z", "y"), ("x", "z")):
            best = min(one, other) if who % 10 else max(one, other)
            lines.append(f"judge-{who:02},{one},{other},{'model_a' if best == one else 'model_b'}")
    (tmp_path / "votes.csv").write_text("\n".join(lines) + "\n")
    folder = tmp_path / "split"
    words = ["--nodes", str(NODES), "--trust", "shuffled", "--label-cap", "3", "--out", str(folder)]
    assert main(["data", "split", str(tmp_path / "votes.csv"), *words]) == 0
    ensure_sealing_key(folder / "sealing.key")
    ensure_key(folder / "server.key")
    register = []
    for number in range(NODES):
        public, _ = ensure_key(folder / f"node-{number}" / "node.key")
        rows = ", ".join(f"{first}:{first + 3}" for first in range(3 * number, 3 * LABELERS, 3 * NODES))
        register.append(f'[[node]]\nname = "n{number}"\nkey = "{public.line}"\nid = "{number + 1}"\nrows = "{rows}"\n')
    (folder / "nodes.toml").write_text("\n".join(register))
    made = Shuffler(folder)
    made.start()
    made.end(signal.SIGTERM)
    for number in range(NODES):
        file = folder / f"node-{number}" / "node.toml"
        at = f'\n[shuffler]\naddress = "{made.address}"\ninsecure = true\nserver_key = "../sealing.key.pub"\n'
        file.write_text(file.read_text().replace("[node]", '[node]\nkey = "node.key"') + at)
    own = folder / "shuffler.toml"
    own.write_text(f'[shuffler]\naddress = "{made.address}"\ninsecure = true\nsealing_key = "sealing.key"\n')
    monkeypatch.setenv("HALFTRUTH_SHUFFLER", str(own))
    monkeypatch.setenv("HALFTRUTH_KEY", str(folder / "server.key"))
    yield made
    made.end(signal.SIGKILL)


def said(capsys: Say, folder: Path, *words: str) -> tuple[int, str, str]:
    """What `halftruth federate` ends with, and says."""
    capsys.readouterr()
    asked = ("--epsilon", "2", "--delta", "1e-3", "--json", *(words or ("--deadline", "120")))
    code = main(["federate", str(folder / "server"), "--nodes", str(folder), *asked])
    read = capsys.readouterr()
    return code, read.out, read.err


@pytest.mark.slow
def test_nodes_of_flower_answer_through_a_shuffler_that_dies(shuffler: Shuffler, capsys: Say) -> None:
    """Without it nobody's answer counts, and it was charged; once it is back, the same answers come, for nothing.

    Killed when it passed them on it has them still, and over another runtime the same labels say the same.
    """
    folder = shuffler.folder
    code, _, error = said(capsys, folder)
    assert code == 1 and "SHUFFLER_UNAVAILABLE" in error, error
    shuffler.start()
    code, out, error = said(capsys, folder)
    assert code == 0, error
    found: dict[str, Any] = json.loads(out)
    assert [line["item"] for line in found["ranking"]] == list(ITEMS)
    assert (found["trust"], found["claimed_epsilon"], found["coins"]) == ("shuffled", 2.0, "os")
    assert found["computed_epsilon"] > 2
    shuffler.end(signal.SIGKILL)
    shuffler.start()
    for words in ((), ("--on", "in-process")):
        code, out, error = said(capsys, folder, *words)
        assert code == 0, error
        assert json.loads(out)["ranking"] == found["ranking"]
    totals = [one for number in range(NODES) for one in read_labelers(folder / f"node-{number}" / "ledger.sqlite")]
    assert len(totals) == LABELERS and all(one.epsilon == 6 for one in totals)  # three labels each, once
