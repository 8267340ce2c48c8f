"""Results for MLflow: a run of the study with what goes along, and below it a run for each arm and level."""

import logging
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from protocol.strict import StudyError
from protocol.version import version
from studies.export.runs import Run, Tracked, attachments, parameters

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

MISSING = "--for mlflow: expected the package mlflow-skinny, or mlflow: pip install 'halftruth[mlflow]'"
EXPERIMENT, TAG, STATE = "halftruth", "halftruth.results", "halftruth.state"
MOST_METRICS, MOST_PARAMETERS = 1000, 100  # of one message to a store


class StoreFailed(Exception):
    """MLflow's store did not take the results."""


def client_of(uri: str | None) -> "MlflowClient":
    """A client of a store: a URI, or what MLflow's own settings say. Nothing is told to anybody else.

    Raises StudyError where the package is missing.
    """
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"  # MLflow reports the use of it to its makers
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from mlflow.tracking import MlflowClient
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "mlflow":
            raise
        raise StudyError(MISSING) from None
    logging.getLogger("mlflow").setLevel(logging.WARNING)
    with _store_errors(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what MLflow is built on
        return MlflowClient(tracking_uri=uri)


def log_runs(client: "MlflowClient", one: Tracked, experiment: str) -> tuple[str, bool]:
    """Log a study, and return its run's id and whether it is new: equal results are logged once in an experiment.

    A run that does not get to its end is marked as failed, and not counted the next time. Raises StoreFailed.
    """
    with _store_errors():
        place = client.get_experiment_by_name(experiment)
        number = client.create_experiment(experiment) if place is None else place.experiment_id
        earlier = client.search_runs([number], f"tags.`{TAG}` = '{one.digest}' and status != 'FAILED'")
        if earlier:
            return str(earlier[0].info.run_id), False
        loaded = one.view.loaded
        with _run(client, number, one.name, {TAG: one.digest, **_tags(one)}) as whole:
            _parameters(client, whole, parameters(loaded.study, loaded.resolved))
            with tempfile.TemporaryDirectory() as folder:
                for path in attachments(one, Path(folder)):
                    client.log_artifact(whole, str(path))
            for run in one.runs:
                with _run(client, number, run.name, {"mlflow.parentRunId": whole, **_tags(one)}) as part:
                    _parameters(client, part, run.parameters)
                    _metrics(client, part, run)
    return whole, True


@contextmanager
def _run(client: "MlflowClient", experiment: str, name: str, tags: Mapping[str, str]) -> Iterator[str]:
    made: Any = client.create_run(experiment, tags=dict(tags), run_name=name)
    key = str(made.info.run_id)
    try:
        yield key
    except BaseException:
        client.set_terminated(key, status="FAILED")
        raise
    client.set_terminated(key)


def _tags(one: Tracked) -> dict[str, str]:
    return {STATE: one.state, "halftruth.version": version()}


def _parameters(client: "MlflowClient", run: str, said: Mapping[str, str]) -> None:
    from mlflow.entities import Param

    found = [Param(key, value) for key, value in said.items()]
    for start in range(0, len(found), MOST_PARAMETERS):
        client.log_batch(run, params=found[start : start + MOST_PARAMETERS])


def _metrics(client: "MlflowClient", run: str, one: Run) -> None:
    from mlflow.entities import Metric

    now = time.time_ns() // 1_000_000
    found = [Metric(name, value, now, n) for name, values in one.metrics.items() for n, value in values]
    for start in range(0, len(found), MOST_METRICS):
        client.log_batch(run, metrics=found[start : start + MOST_METRICS])


@contextmanager
def _store_errors() -> Iterator[None]:
    """MLflow's errors as one that a person is told."""
    mlflow: Any = sys.modules["mlflow.exceptions"]
    try:
        yield
    except (mlflow.MlflowException, OSError) as error:
        raise StoreFailed(f"MLflow did not take the results: {str(error).splitlines()[0]}") from None
