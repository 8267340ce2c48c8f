"""Mechanisms of doubles, for simulations: selections of the largest coordinates, and perturbed objectives."""

from decimal import Decimal

import numpy as np

from client.labeler import Node, answer
from client.ledger import MemoryLedger
from client.policy import Policy
from protocol.features import row_bound
from protocol.grid import exponent
from protocol.messages import Mechanism, Task
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.store import FeatureStore
from protocol.trust import Trust
from server.curator import SimulatedCurator
from server.evidence import Server
from server.listening import listen
from server.mechanisms.selections import SELECTIONS
from server.private_estimate import released_estimate
from studies.audit.central import DELTA, SEED
from studies.audit.coins import AuditCoins
from studies.audit.given import GivenLabels
from studies.audit.subject import Claim, Floats, Subject, all_pairs

SPARSITY = 1
VECTORS = {"flat": [1.0, 1.0, 1.0], "first up": [2.0, 0.0, 0.0], "last up": [0.0, 0.0, 2.0]}  # each moves by at most 1
NEAR = (("flat", "first up"), ("flat", "last up"))
SELECTION_PACE, OBJECTIVE_PACE = 0.2, 0.01
COUNT, RADIUS = 40, Decimal(2)
RIDGE = Decimal(2)  # large enough for every level from 0.05 on: one that is looked for takes half a second a draw


def of_selection(name: str, epsilon: Decimal) -> Subject:
    """A selection of `server.mechanisms.selections` with a value of what is chosen, for lambda = 1."""
    selection = SELECTIONS[name]
    delta = Decimal(0) if selection.pure else DELTA
    scale = selection.noise_scale(epsilon, DELTA, SPARSITY)
    inputs = {key: np.array(vector) for key, vector in VECTORS.items()}

    def draw(vector: Floats, count: int, coins: AuditCoins) -> Floats:
        many = selection.word_rows(SPARSITY)
        words = coins.words(count * many, len(vector)).reshape(count, many, len(vector))
        chosen = (selection.select(vector, SPARSITY, scale, each) for each in words)
        return np.array([(*one.support, *one.values) for one in chosen])

    claim, note = Claim(epsilon, delta, "whatever moves a coordinate by 1"), "server.mechanisms.selections"
    return Subject(f"selection/{name}", claim, inputs, NEAR, note, draw=draw, pace=SELECTION_PACE, reals=True)


def of_objective(name: str, epsilon: Decimal) -> Subject:
    """A mechanism that protects a whole record (x, y): the estimate that its curator lets out. Neighbours differ in y:
    features are drawn, since those of a file would travel in the task.
    """
    menu = Mechanism.of(name, epsilon=epsilon, delta=DELTA, radius=RADIUS, ridge=RIDGE, tight=Decimal(1))
    problem, others = Problem(1, "gaussian", False, Decimal(3)), tuple(int(row % 3 > 0) for row in range(COUNT))
    inputs = {f"last y {y}": (*others, y) for y in (0, 1)}
    n, grid = COUNT + 1, exponent(COUNT + 1, row_bound(problem, float(RADIUS)))
    task = Task(b"s" * 32, Trust.CENTRAL, Unit.RECORD, problem, (menu,), n, epsilon, DELTA, 0, 1, exponent=grid)

    def draw(values: tuple[int, ...], count: int, coins: AuditCoins) -> Floats:
        features = FeatureStore(SEED)
        node = Node(GivenLabels(values), Policy.simulation(), MemoryLedger(), "addressed", features, seed=SEED)
        heard = listen([task], lambda tasks: [answer(raw, node) for raw in tasks])[task]
        found = []
        for seed in coins.words(1, count)[0].tolist():
            server = Server(features, SEED, SimulatedCurator(seed))
            found.append(released_estimate(server, heard, server.designs(problem, n, 0)).estimate.u)
        return np.array(found)

    note, claim = "server.private_estimate:released_estimate", Claim(epsilon, DELTA, "record")
    return Subject(
        f"objective/{name}", claim, inputs, all_pairs(inputs), note, draw=draw, pace=OBJECTIVE_PACE, reals=True
    )
