"""`halftruth doctor` finds what is wrong, and leaves nothing behind."""

import json
import socket
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from studies.cli import main
from studies.doctor import checks, machine


def _found(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, tuple[str, str, str]]]:
    code = main(["doctor", "--json", *words])
    document = json.loads(capsys.readouterr().out)
    return code, {each["name"]: (each["verdict"], each["found"], each["advice"]) for each in document}


def test_nothing_needed_is_missing_here_and_nothing_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = _found(capsys, "--state", str(tmp_path))
    assert code == 0
    assert not [name for name, (verdict, *_) in found.items() if verdict == checks.FAIL]
    assert {"installation", "packages", "Flower's programs", "compiler", "state", "clock", "ports"} <= set(found)
    assert list(tmp_path.iterdir()) == []


def test_a_port_that_somebody_has(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("0.0.0.0", 0)) as holder:
        port = holder.getsockname()[1]
        code, found = _found(capsys, "--port", str(port))
    verdict, said, advice = found["ports"]
    assert code == 1 and verdict == checks.FAIL and f"port {port} is taken" in said and "--port" in advice


def test_a_folder_in_which_no_ledger_can_be(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = _found(capsys, "--state", "/proc/nowhere")
    assert code == 1 and found["state"][0] == checks.FAIL and "--state" in found["state"][2]


def test_kernels_that_cannot_be_kept_and_proxies_are_warnings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HALFTRUTH_KERNELS", "/proc/nowhere")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")
    code, found = _found(capsys)
    assert code == 0
    assert found["compiler"][0] == found["proxies"][0] == checks.WARN


def test_a_table_for_people_names_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--state", "/proc/nowhere"]) == 1
    assert capsys.readouterr().out.endswith("What is needed and missing: state.\n")
    assert main(["doctor", "--port", "0"]) == 2
    assert "--port: expected 1 to 65535, got 0" in capsys.readouterr().err


def test_versions_are_compared() -> None:
    assert checks._fits(Requirement("numpy>=2"))
    assert not checks._fits(Requirement("numpy<2"))
    assert not checks._fits(Requirement("no-such-package"))


def test_sizes_are_those_of_this_machine() -> None:
    assert machine.cores() >= 1
    assert machine.memory() > 1 << 28
    assert machine.clock()[1].endswith((" UTC", " UTC, kept right", " UTC, and nothing keeps it right"))
