"""Flower's own command `flwr`, asked for JSON: start a run, look at it, read its log, stop it; list and admit nodes."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.processes import FlowerFailed, program

SECONDS = 120.0  # a call takes two on an idle machine
COMPLETED = "finished:completed"
COLOURS = ("CLICOLOR_FORCE", "FORCE_COLOR", "TTY_COMPATIBLE")  # with them even JSON has colours, and is none
PRIVATE = "private"  # the one connection of a home of ours


@dataclass(frozen=True)
class Seen:
    """A node as a SuperLink sees it: "online", "offline", "registered" (never there yet) or "unregistered"."""

    id: str
    status: str


@dataclass(frozen=True)
class SuperLink:
    """A connection of Flower's configuration, and the environment in which `flwr` finds it."""

    name: str
    environment: Mapping[str, str]

    def run(self, app: Path, config: Path, federation: str | None) -> str:
        """Submit a run and return its id. Raises FlowerFailed where it was not taken."""
        words = ["run", str(app), self.name, "-c", str(config)]
        words += [] if federation is None else ["--federation-config", federation]
        answer = self._ask(words)
        if not answer.get("run-id"):
            raise FlowerFailed(f"expected flwr run to give a run id, got {json.dumps(answer)}")
        return str(answer["run-id"])

    def status(self, run: str) -> tuple[str, str]:
        """The status of a run, such as "running" or "finished:failed", and Flower's details."""
        (found,) = self._ask(["list", self.name, "--run-id", run])["runs"]
        return str(found["status"]), str(found.get("status-details", ""))

    def stop(self, run: str) -> None:
        """Stop a run that is no longer wanted."""
        self._ask(["stop", run, self.name])

    def nodes(self) -> list[Seen]:
        """All nodes that the SuperLink ever knew."""
        found = self._ask(["supernode", "list", self.name, "--verbose"])["nodes"]
        return [Seen(str(node["node-id"]), str(node["status"])) for node in found]

    def register(self, key: Path) -> str:
        """Let the node with this public key come, and return its id. Raises FlowerFailed."""
        return str(self._ask(["supernode", "register", str(key), self.name])["node-id"])

    def unregister(self, node: str) -> None:
        """Let a node come no more. Raises FlowerFailed."""
        self._ask(["supernode", "unregister", node, self.name])

    def follow(self, run: str) -> "subprocess.Popen[str]":
        """The run's log from its beginning, line by line, until it ends."""
        return subprocess.Popen(
            [program("flwr"), "log", run, self.name, "--stream"],
            env=self._plain(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )

    def _plain(self) -> dict[str, str]:
        return {key: value for key, value in self.environment.items() if key not in COLOURS}

    def _ask(self, words: list[str]) -> dict[str, Any]:
        """Flower's JSON answer; its exit status says nothing about the run, only whether the question was answered."""
        try:
            done = subprocess.run(
                [program("flwr"), *words, "--format", "json"],
                env=self._plain(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=SECONDS,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired:
            raise FlowerFailed(f"expected an answer to flwr {words[0]} in {SECONDS:g} seconds, got none") from None
        try:
            answer = json.loads(done.stdout[done.stdout.index("{") :])
        except ValueError:
            said = " ".join((done.stdout + done.stderr).split())[-300:]
            raise FlowerFailed(f"flwr {words[0]} failed: {said}") from None
        if not isinstance(answer, dict) or not answer.get("success", False):
            raise FlowerFailed(f"flwr {words[0]} failed: {answer}")
        return answer


def private_connection(
    home: Path, environment: Mapping[str, str], address: str, authority: Path | None = None
) -> SuperLink:
    """Write the one connection of a private Flower home, which `environment` names; `authority`: the certificates
    that are trusted, without which nothing is encrypted.
    """
    how = "insecure = true" if authority is None else f"root-certificates = {json.dumps(str(authority))}"
    words = f'[superlink]\ndefault = "{PRIVATE}"\n\n[superlink.{PRIVATE}]\naddress = "{address}"\n{how}\n'
    (home / "config.toml").write_text(words, encoding="utf-8")
    return SuperLink(PRIVATE, environment)
