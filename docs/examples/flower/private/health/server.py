"""The server: federated averaging."""

import logging

import numpy as np
from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from deploy.plugin.strategy import Debiased
from health.data import SLOPES

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Some rounds, then the model in the log."""
    strategy = Debiased(FedAvg(fraction_evaluate=0.0), epsilon=8, threshold=0.5)
    start = ArrayRecord([np.zeros(len(SLOPES))])
    result = strategy.start(grid, start, num_rounds=int(context.run_config["rounds"]))
    (slopes,) = result.arrays.to_numpy_ndarrays()
    logging.getLogger("flwr").info("slopes: %s", " ".join(f"{slope:.3f}" for slope in slopes))
