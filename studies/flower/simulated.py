"""Flower's simulation engine with the smallest of apps: each node answers a message with one number."""

import os
import time
from collections.abc import Callable
from importlib import import_module

from flwr.app import ConfigRecord, Context, Message, MessageType, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from deploy.processes import QUIET

SHORTLY = 0.1  # seconds between two looks for replies
PATIENCE = 300.0  # seconds until everything is there: an engine that breaks down tells its app nothing


def by_flower(n: int) -> Callable[[], float]:
    """The seconds of a message to each of n nodes and their answers back, over all cores; starting is not counted."""
    os.environ |= QUIET
    return lambda: _round(n)


def _round(n: int) -> float:
    server, client, seconds, started = ServerApp(), ClientApp(), list[float](), time.perf_counter()

    @client.query()
    def answered(message: Message, context: Context) -> Message:
        answer = int(context.node_config["partition-id"]) % 2
        return Message(RecordDict({"answer": MetricRecord({"answer": answer})}), reply_to=message)

    def patience() -> None:
        time.sleep(SHORTLY)
        if time.perf_counter() > started + PATIENCE:
            raise TimeoutError(f"expected answers of {n} nodes within {PATIENCE:g} seconds")

    @server.main()
    def main(grid: Grid, context: Context) -> None:
        while len(nodes := list(grid.get_node_ids())) < n:
            patience()
        content = RecordDict({"task": ConfigRecord({"epsilon": 1.0})})

        def exchange() -> None:  # `Grid.send_and_receive` looks for replies every 3 seconds
            waiting = set(grid.push_messages([Message(content, node, MessageType.QUERY) for node in nodes]))
            while waiting:
                came = list(grid.pull_messages(waiting))
                assert all(reply.has_content() for reply in came), "a node did not answer"
                waiting -= {reply.metadata.reply_to_message_id for reply in came}
                patience()

        exchange()  # workers of Ray import what they need
        begun = time.perf_counter()
        exchange()
        seconds.append(time.perf_counter() - begun)

    simulation = import_module("flwr.simulation")
    simulation.run_simulation(server, client, n, backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0.0}})
    return seconds[0]
