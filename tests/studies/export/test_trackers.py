"""Results for MLflow and TensorBoard, written and read back with the packages themselves."""

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protocol.strict import StudyError
from studies.cli import main
from studies.export.runs import tracked
from studies.folder import Folder
from studies.report.view import View
from studies.summary import summarise

HOST = "a-host-that-nobody-else-is-to-know"


def need(module: str, package: str) -> Any:
    """A module of an extra: without it a user's machine skips, continuous integration fails."""
    if importlib.util.find_spec(package) is None and os.environ.get("CI") != "true":
        pytest.skip(f"{package} is not installed: pip install 'halftruth[{package}]'")
    return import_module(module)


@pytest.fixture
def half(finished: Path, tmp_path: Path) -> Path:
    """The folder of a run that is not finished: half of its units are."""
    out = tmp_path / "half"
    shutil.copytree(finished, out)
    (out / "results.parquet").unlink()
    parts = sorted((out / "parts").glob("*.parquet"))
    for path in parts[len(parts) // 2 :]:
        path.unlink()
    return out


def expected(out: Path) -> dict[tuple[str, float | None, float | None], dict[int, Any]]:
    """Moments of the true error by arm and level, then by n."""
    view, found = View.open(Folder(out)), {}
    for one in summarise(view.table):
        key = one.arm, one.setting.epsilon, one.setting.delta
        found.setdefault(key, {})[one.setting.n] = one.moments
    return found


def test_a_study_as_runs(finished: Path) -> None:
    found, wanted = tracked(finished), expected(finished)
    assert found.finished and len(found.runs) == len(wanted)
    for run in found.runs:
        said = run.parameters
        arm = "/".join((said["trust"], said["mechanism"], said["estimator"]))
        epsilon, delta = (float(said[key]) if key in said else None for key in ("epsilon", "delta"))
        (moments,) = [v for k, v in wanted.items() if k[0].partition("[")[0] == arm and k[1:] == (epsilon, delta)]
        assert run.metrics["error_l2"] == [(n, one.mean) for n, one in moments.items()]
        assert run.metrics["error_l2_low"] == [(n, one.low) for n, one in moments.items()]
        assert run.metrics["error_l2_high"] == [(n, one.high) for n, one in moments.items()]
        assert ("unit" in said) == (epsilon is not None)


def test_a_run_that_is_not_finished_gives_what_it_has(half: Path, finished: Path) -> None:
    found, whole = tracked(half), tracked(finished)
    assert not found.finished and " of " in found.state and found.digest != whole.digest
    assert all(name == other.name for name, other in zip((r.name for r in found.runs), whole.runs, strict=False))
    (half / "parts").rename(half / "gone")
    with pytest.raises(StudyError, match="no finished unit yet"):
        tracked(half)


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["--for", "mlflow", "--epsilon", "1"], "--epsilon: --for mlflow does not take it, but --experiment, --to"),
        (["--for", "mlflow", "--winner", "w"], "--winner: --for mlflow does not take it"),
        (["--for", "tensorboard", "--to", "x"], "--to: --for tensorboard does not take it, but --out"),
        (["--for", "trl", "--to", "x"], "--for trl writes a folder"),
        (["--for", "trl"], "expected --epsilon and --out"),
    ],
)
def test_flags_of_another_target(words: list[str], match: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "somewhere", *words]) == 2
    assert match in capsys.readouterr().err


@pytest.mark.parametrize("package", ["mlflow", "tensorboard"])
def test_a_missing_package_is_said(
    package: str, finished: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    assert main(["export", str(finished), "--for", package]) == 2
    assert f"pip install 'halftruth[{package}]'" in capsys.readouterr().err


@pytest.fixture
def events(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An export for TensorBoard."""
    need("tensorboard", "tensorboard")
    monkeypatch.setattr(socket, "gethostname", lambda: HOST)
    out = tmp_path / "events"
    assert main(["export", str(finished), "--for", "tensorboard", "--out", str(out)]) == 0
    return out


def read_events(folder: Path) -> Any:
    reader = need("tensorboard.backend.event_processing.event_accumulator", "tensorboard")
    found = reader.EventAccumulator(str(folder))
    return found.Reload()


def test_tensorboard_reads_every_mean_and_interval(events: Path, finished: Path) -> None:
    make = need("tensorboard.util.tensor_util", "tensorboard").make_ndarray
    runs = {run.name: run for run in tracked(finished).runs}
    seen = set()
    for folder in events.iterdir():
        found = read_events(folder)
        if folder.name == "study":
            continue
        content = found.summary_metadata["_hparams_/session_start_info"].plugin_data.content
        data = need("tensorboard.plugins.hparams.plugin_data_pb2", "tensorboard").HParamsPluginData.FromString(content)
        run = runs[data.session_start_info.group_name]
        said = data.session_start_info.hparams
        assert {key: said[key].string_value for key in run.parameters if key not in ("epsilon", "delta")} == {
            key: value for key, value in run.parameters.items() if key not in ("epsilon", "delta")
        }
        for key in {"epsilon", "delta"} & set(run.parameters):
            assert said[key].number_value == float(run.parameters[key])
        for name, values in run.metrics.items():
            told = [(one.step, float(make(one.tensor_proto))) for one in found.Tensors(name)]
            assert told == [(n, float(np.float32(value))) for n, value in values]
        seen.add(run.name)
    assert seen == set(runs)


def test_tensorboard_shows_intervals_and_settings(events: Path) -> None:
    found = read_events(events / "study")
    layout = need("tensorboard.plugins.custom_scalar.layout_pb2", "tensorboard").Layout
    (config,) = found.Tensors("custom_scalars__config__")
    charts = layout.FromString(config.tensor_proto.string_val[0]).category[0].chart
    assert next(chart.title for chart in charts) == "error_l2"
    assert charts[0].margin.series[0].lower == "error_l2_low"
    (text,) = found.Tensors("study")
    assert b"| study.name | small |" in text.tensor_proto.string_val[0]


def test_event_files_name_no_host_and_an_earlier_export_is_replaced(events: Path, finished: Path) -> None:
    files = [path for path in events.rglob("*") if path.is_file()]
    assert files and all(HOST not in path.name and HOST.encode() not in path.read_bytes() for path in files)
    again = ["export", str(finished), "--for", "tensorboard", "--out", str(events)]
    assert main(again) == 0
    assert len([path for path in events.rglob("*") if path.is_file()]) == len(files)
    (events / "mine.txt").write_text("kept")
    assert main(again) == 2
    assert (events / "mine.txt").read_text() == "kept"
    assert not list(events.parent.glob(".*.part"))


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store in files, which MLflow asks to be allowed: a data base takes it ten seconds to make."""
    need("mlflow", "mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    return f"file://{tmp_path / 'store'}"


def client_of(store: str) -> Any:
    return need("mlflow.tracking", "mlflow").MlflowClient(tracking_uri=store)


def check_store(client: Any, out: Path, to: Path) -> None:
    """A store has one study, with all runs and what goes along."""
    found = tracked(out)
    place = client.get_experiment_by_name("halftruth")
    every = client.search_runs([place.experiment_id], max_results=1000)
    (whole,) = [run for run in every if "halftruth.results" in run.data.tags]
    assert whole.info.status == "FINISHED" and whole.data.params["study.name"] == "small"
    assert whole.data.tags["halftruth.state"] == "finished"
    children = {run.info.run_name: run for run in every if run is not whole}
    assert set(children) == {run.name for run in found.runs}
    for run in found.runs:
        child = children[run.name]
        assert child.data.tags["mlflow.parentRunId"] == whole.info.run_id
        assert child.data.params == dict(run.parameters)
        for name in ("error_l2", "error_l2_low", "error_l2_high"):
            told = client.get_metric_history(child.info.run_id, name)
            assert sorted((one.step, one.value) for one in told) == run.metrics[name]
    names = {one.path for one in client.list_artifacts(whole.info.run_id)}
    assert names == {"report.html", "summary.csv", "paired.csv", "study.json"}
    page = client.download_artifacts(whole.info.run_id, "report.html", str(to))
    assert "<!doctype html>" in Path(page).read_text("utf-8").lower()
    kept = Path(client.download_artifacts(whole.info.run_id, "study.json", str(to)))
    assert json.loads(kept.read_text()) == json.loads((out / "study.json").read_text())


def test_mlflow_reads_all_and_equal_results_are_logged_once(
    store: str, finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["export", str(finished), "--for", "mlflow", "--to", store]
    assert main(words) == 0
    check_store(client_of(store), finished, tmp_path)
    assert main(words) == 0
    assert "there already" in capsys.readouterr().out
    check_store(client_of(store), finished, tmp_path)


def test_mlflow_gets_the_rest_of_a_run_later(store: str, half: Path, finished: Path) -> None:
    assert main(["export", str(half), "--for", "mlflow", "--to", store, "--experiment", "mine"]) == 0
    client = client_of(store)
    place = client.get_experiment_by_name("mine").experiment_id
    (whole,) = client.search_runs([place], "tags.`halftruth.state` LIKE '%units' and tags.`halftruth.results` != ''")
    assert {one.path for one in client.list_artifacts(whole.info.run_id)} == {"summary.csv", "paired.csv", "study.json"}
    assert main(["export", str(finished), "--for", "mlflow", "--to", store, "--experiment", "mine"]) == 0
    assert len(client.search_runs([place], "tags.`halftruth.results` != ''")) == 2


def test_an_export_that_fails_is_marked_and_done_again(
    store: str, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from studies.export import mlflow

    def full(*_: object) -> list[Path]:
        raise OSError(28, "No space left on device")

    words = ["export", str(finished), "--for", "mlflow", "--to", store, "--experiment", "halftruth"]
    with monkeypatch.context() as patched:
        patched.setattr(mlflow, "attachments", full)
        assert main(words) == 1
    assert "No space left on device" in capsys.readouterr().err
    client = client_of(store)
    place = client.get_experiment_by_name("halftruth").experiment_id
    assert [run.info.status for run in client.search_runs([place])] == ["FAILED"]
    assert main(words) == 0
    client.delete_run(client.search_runs([place], "status = 'FAILED'")[0].info.run_id)
    check_store(client, finished, tmp_path)


def test_a_store_that_is_not_there_is_said(capsys: pytest.CaptureFixture[str], finished: Path) -> None:
    need("mlflow", "mlflow")
    assert main(["export", str(finished), "--for", "mlflow", "--to", "nowhere://x"]) == 1
    assert "MLflow did not take the results" in capsys.readouterr().err


@pytest.mark.slow
def test_mlflow_by_its_usual_data_base(finished: Path, tmp_path: Path) -> None:
    need("mlflow", "mlflow")
    store = f"sqlite:///{tmp_path / 'mlflow.db'}"
    words = [sys.executable, "-m", "studies", "export", str(finished), "--for", "mlflow"]
    done = subprocess.run(
        words,
        env=os.environ | {"MLFLOW_TRACKING_URI": store},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    reading = (
        "import pathlib, sys, test_trackers as t\n"
        "t.check_store(t.client_of(sys.argv[1]), *map(pathlib.Path, sys.argv[2:]))"
    )
    code = [sys.executable, "-c", reading, store, str(finished), str(tmp_path)]
    done = subprocess.run(code, env=os.environ | {"PYTHONPATH": str(Path(__file__).parent)}, cwd=tmp_path, check=False)
    assert done.returncode == 0
