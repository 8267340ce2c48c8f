"""Both Flower apps and a shuffler: receipts go over the Grid, reports do not, and bits are those of one process."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Context, RecordDict

from client.sources.synthetic import write_truth
from deploy.node_keys import ensure_key, public_path, read_public
from deploy.sealing_keys import ensure_sealing_key
from deploy.shuffler import serving
from deploy.shuffler_file import ShufflerFile
from protocol.arms import Arm
from protocol.codec import decode_bundle, decode_reply
from protocol.messages import Refusal
from protocol.parcel import parcel_of
from protocol.problem import Problem
from protocol.runconfig import write
from protocol.study import Grid, Study, cells
from protocol.trust import Trust
from server.app import app as server_app
from server.outcome_record import cell_name, encode
from server.register import read_register
from server.signatures import public_key
from studies.in_process import run_cell

N, ASKED, NODES, SEED = 24, 3, 3, 11
X = np.random.Generator(np.random.Philox(5)).normal(size=(ASKED, 2))
PAIRS = Problem(2, "values", False, Decimal(3), design=X[np.arange(N) % ASKED])
SETS = X[np.arange(N)[:, None] % 2 + np.arange(3) % 2].reshape(N, 3, 2) + np.arange(3)[None, :, None]
TOPS = Problem(2, "values", False, Decimal(3), design=SETS, kind="choice", model="plackett-luce", choices=3)
THETA = np.array([1.0, -0.5])
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
trust = ["shuffled"]
label_cap = "unlimited"
[shuffler]
address = "{address}"
insecure = true
server_key = "sealing.key.pub"
"""


def study_of(problem: Problem, *more: Arm) -> Study:
    name = "randomized-response" if problem.kind == "pairwise" else "k-randomized-response"
    arms = (Arm(Trust.SHUFFLED, name, "rr-mle"), Arm(Trust.SHUFFLED, name, "debiased"), *more)
    return Study("panel", SEED, 2, problem, Grid((N,), (Decimal(2),), (Decimal("1e-2"),)), arms)


@pytest.mark.parametrize("problem", [PAIRS, TOPS], ids=["pairs", "choices"])
def test_without_a_shuffler_clients_are_simulated(same_bits: Callable[..., Any], problem: Problem) -> None:
    assert len(same_bits(study_of(problem), THETA, NODES)) == 4


def prepared(folder: Path, address: str) -> ShufflerFile:
    """Keys, a register, and what a shuffler's file would say."""
    ensure_sealing_key(folder / "sealing.key")
    ensure_key(folder / "server.key")
    nodes = []
    for number in range(NODES):
        public, _ = ensure_key(folder / f"node-{number}.key")
        nodes.append(f'[[node]]\nname = "n{number}"\nkey = "{public.line}"\nid = "{100 + number}"\n')
    (folder / "nodes.toml").write_text("\n".join(nodes))
    server = public_key(read_public(public_path(folder / "server.key")).line, "server")
    return ShufflerFile(
        address, None, None, folder / "state.sqlite", read_register(folder / "nodes.toml"), server, least=2
    )


@pytest.mark.parametrize("problem", [PAIRS, TOPS], ids=["pairs", "choices"])
def test_a_run_through_a_shuffler(problem: Problem, grid: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = study_of(problem)
    out = tmp_path / "out"
    out.mkdir()
    with serving(prepared(tmp_path, "127.0.0.1:0")) as address:
        for number in range(NODES):
            text = NODE.format(seed=SEED, number=number, nodes=NODES, address=address)
            (tmp_path / f"node-{number}.toml").write_text(text)
        at = tmp_path / "at.toml"
        at.write_text(f'[shuffler]\naddress = "{address}"\ninsecure = true\nsealing_key = "sealing.key"\n')
        for name, path in (("OUTCOMES", out), ("SHUFFLER", at), ("NODES", tmp_path / "nodes.toml")):
            monkeypatch.setenv(f"HALFTRUTH_{name}", str(path))
        monkeypatch.setenv("HALFTRUTH_KEY", str(tmp_path / "server.key"))
        config = {**write(study), "truth": write_truth(THETA), "deadline": 10.0, "clients": NODES}
        made = grid([{"config": str(tmp_path / f"node-{number}.toml")} for number in range(NODES)], config)
        sent: list[bytes] = []

        def change(asked: Any, reply: Any) -> list[Any]:
            sent.extend(decode_bundle(parcel_of(reply.content)))
            return [reply]

        made.change = change
        server_app(made, Context(1, 1, {}, RecordDict(), config))
    (cell,) = cells(study)
    lines = (out / f"{cell_name(cell)}.jsonl").read_text("utf-8").splitlines()
    assert lines == [encode(outcome, study) for outcome in run_cell(study, THETA, cell)]
    for raw in sent:  # whose answer it is goes over the Grid, and no answer
        reply = decode_reply(raw)
        assert not isinstance(reply, Refusal)
        assert all(one.report.payload.values.size == 0 and one.signature for one in reply)
