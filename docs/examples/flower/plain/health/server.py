"""The server: federated averaging."""

import logging

import numpy as np
from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from health.data import SLOPES

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Some rounds, then the model in the log."""
    strategy = FedAvg(fraction_evaluate=0.0)
    start = ArrayRecord([np.zeros(len(SLOPES))])
    result = strategy.start(grid, start, num_rounds=int(context.run_config["rounds"]))
    (slopes,) = result.arrays.to_numpy_ndarrays()
    logging.getLogger("flwr").info("slopes: %s", " ".join(f"{slope:.3f}" for slope in slopes))
