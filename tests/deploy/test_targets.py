"""Files for containers, Kubernetes and systemd: their own tools take them, they are closed, their commands exist."""

import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module, resources
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy import health
from deploy.ports import free_port
from studies import cli

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
IMAGES = ("server", "node")
UNITS = ("halftruth-server.service", "halftruth-node@.service")
COMPOSED = (("compose.yaml",), ("compose.yaml", "compose.tls.yaml"))
KUBERNETES = "1.32"
PROBES = ("startupProbe", "readinessProbe", "livenessProbe")
PROGRAM = "/opt/halftruth/bin/halftruth"


def need(package: str) -> Any:
    """A package of the extra `targets`: without it a user's machine skips, continuous integration fails."""
    if importlib.util.find_spec(package) is None and os.environ.get("CI") != "true":
        pytest.skip(f"{package} is not installed: pip install 'halftruth[targets]'")
    return import_module(package)


def dockerfile(name: str) -> str:
    """An image's recipe, a line for each instruction."""
    return re.sub(r"\\\n\s*", "", (DEPLOY / f"docker/Dockerfile.{name}").read_text("utf-8"))


class Loader(yaml.SafeLoader):
    """YAML with the two marks by which a compose file changes an earlier one."""


class Reset:
    """`!reset`: what an earlier file said is gone."""


class Override(list):  # type: ignore[type-arg]
    """`!override`: takes the place of what an earlier file said."""


Loader.add_constructor("!reset", lambda loader, node: Reset())
Loader.add_constructor("!override", lambda loader, node: Override(loader.construct_sequence(node)))


def merged(old: Any, new: Any, key: str = "") -> Any:
    """What compose makes of two files: tables are merged, lists joined, commands and the rest replaced."""
    if isinstance(old, dict) and isinstance(new, dict):
        result = dict(old)
        for name, value in new.items():
            if isinstance(value, Reset):
                result.pop(name, None)
            else:
                result[name] = merged(result[name], value, name) if name in result else value
        return result
    joined = isinstance(old, list) and isinstance(new, list) and key not in {"command", "entrypoint", "test"}
    return old + new if joined and not isinstance(new, Override) else new


def composed(*names: str) -> dict[str, Any]:
    """Compose files, one over the other, with the defaults of their variables."""
    found: dict[str, Any] = {}
    for name in names:
        text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", (DEPLOY / name).read_text("utf-8"))
        assert "${" not in text, "every variable has a default"
        found = merged(found, yaml.load(text, Loader))
    return {name: value for name, value in found.items() if not name.startswith("x-")}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What `kubectl apply -k` would send, with stand-ins for the files that holders and the operator add."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    copy = tmp_path_factory.mktemp("cluster") / "deploy"
    shutil.copytree(DEPLOY, copy, ignore=shutil.ignore_patterns("__pycache__"))
    base = copy / "kubernetes"
    (base / "server/certs").mkdir(exist_ok=True)
    for name in ("ca.crt", "server.crt", "server.key"):
        (base / "server/certs" / name).write_text(name)
    for group in ("north", "south"):
        shutil.copy(base / "nodes/node.example.toml", base / "nodes" / group / "node.toml")
        for name in ("votes.csv", "ca.crt", "node.key"):
            (base / "nodes" / group / name).write_text(name + group)
    done = subprocess.run(["kubectl", "kustomize", str(base)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def containers(cluster: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Every container with the description of its pod."""
    for thing in cluster:
        if "template" in thing.get("spec", {}):
            pod = thing["spec"]["template"]["spec"]
            yield from ((container, pod) for container in (*pod.get("initContainers", ()), *pod["containers"]))


def commands() -> Iterator[list[str]]:
    """Every command line of ours in any of the files."""
    for name in IMAGES:
        found = re.findall(r"(?m)^(?:CMD|HEALTHCHECK .*CMD) (\[.*)$", dockerfile(name))
        yield from (json.loads(words) for words in found)
    for names in COMPOSED:
        for service in composed(*names)["services"].values():
            yield from filter(None, (service.get("command"), service.get("healthcheck", {}).get("test", [])[1:]))
    for unit in UNITS:
        (line,) = re.findall(r"(?m)^ExecStart=(.*)$", (DEPLOY / "systemd" / unit).read_text("utf-8"))
        words = shlex.split(line)
        assert words[0] == PROGRAM
        yield ["halftruth", *words[1:]]
    for name in ("server/server.yaml", "node/node.yaml"):
        for container, _ in containers(list(yaml.safe_load_all((DEPLOY / "kubernetes" / name).read_text("utf-8")))):
            yield from (probe["exec"]["command"] for probe in map(container.get, PROBES) if probe and "exec" in probe)
            yield from filter(None, [container.get("args")])


def test_every_command_is_one_of_this_program() -> None:
    found = list(commands())
    assert len(found) >= 14
    for words in found:
        if words[0] == "halftruth":
            arguments = [word.replace("%i", "north") for word in words[1:]]
            assert callable(cli._parser(arguments).parse_args(arguments).run)  # exits where a flag is not known
        else:
            assert words[:3] == ["python", "-m", "deploy.health"]
            assert health.main([str(free_port()), *words[4:]]) == 1, "nobody listens there"


@pytest.mark.parametrize("name", IMAGES)
def test_images_are_pinned_and_run_as_nobody(name: str) -> None:
    text = dockerfile(name)
    assert all(
        re.fullmatch(r"python:\d+\.\d+\.\d+-slim-bookworm", base) for base in re.findall(r"(?m)^FROM (\S+)", text)
    )
    assert "--constraint requirements.lock" in text
    assert re.findall(r"(?m)^USER (.*)$", text) == ["10001:10001"]
    assert text.rindex("USER") < text.rindex("CMD [")
    assert "HEALTHCHECK" in text


def test_what_an_image_copies_is_what_it_needs() -> None:
    """The list of what the build may see has no data, no keys, no tests."""
    told = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert told[1] == "*"
    for line in told[2:]:
        assert not line.startswith("!") or list(ROOT.glob(line[1:])), line
    packages = {"client", "protocol", "server", "studies"}
    assert {f"!{package}" for package in packages} | {"!deploy/*.py"} <= set(told)


@pytest.mark.parametrize("names", COMPOSED)
def test_compose_files_follow_the_schema_of_compose(names: tuple[str, ...]) -> None:
    need("check_jsonschema")
    schema = resources.files("check_jsonschema") / "builtin_schemas/vendor/compose-spec.json"
    need("jsonschema").validate(composed(*names), json.loads(schema.read_text("utf-8")))


@pytest.mark.parametrize("names", COMPOSED)
def test_containers_of_compose_are_closed(names: tuple[str, ...]) -> None:
    for name, service in composed(*names)["services"].items():
        assert service["read_only"] and service["cap_drop"] == ["ALL"], name
        assert service["user"] == "10001:10001" and "no-new-privileges:true" in service["security_opt"], name
        assert re.search(r":\d+\.\d+\.\d+", service["image"]), name
        assert not service.get("privileged") and ("ports" not in service or name == "server"), name


def test_compose_opens_nothing_without_tls_and_the_proxy_with_it() -> None:
    plain, closed = composed(*COMPOSED[0])["services"], composed(*COMPOSED[1])["services"]
    assert not any("ports" in service for service in plain.values())
    assert plain["node-0"]["network_mode"] == "service:server"
    assert closed["server"]["ports"] == ["8443:8443"]
    assert closed["proxy"]["environment"]["PROXY_LISTEN"] == "8443" and "--certs" in closed["server"]["command"]
    for services in (plain, closed):  # the SuperLink is seen by whoever shares its loopback interface
        command = services["server"]["command"]
        assert command[command.index("--host") + 1] == "127.0.0.1"
    assert not any("network_mode" in closed[name] for name in ("node-0", "node-1"))
    assert {secret["target"].rpartition("/")[2] for secret in closed["server"]["secrets"]} == {
        "ca.crt",
        "server.crt",
        "server.key",
    }


def test_the_proxy_of_every_target_is_given_all_its_variables(cluster: list[dict[str, Any]]) -> None:
    template = (DEPLOY / "nginx/halftruth.conf.template").read_text("utf-8")
    wanted = set(re.findall(r"\$\{(\w+)\}", template))
    assert wanted == set(re.findall(r"(?m)^#   ([A-Z_]+) ", template))
    assert wanted <= set(composed(*COMPOSED[1])["services"]["proxy"]["environment"])
    (proxy,) = (container for container, _ in containers(cluster) if container["name"] == "proxy")
    assert wanted <= {variable["name"] for variable in proxy["env"]}
    (shipped,) = (thing["data"] for thing in cluster if thing["metadata"]["name"].startswith("halftruth-proxy"))
    assert shipped == {"halftruth.conf.template": template}


def test_kubernetes_takes_all_of_it(cluster: list[dict[str, Any]]) -> None:
    validate = need("kubernetes_validate").validate
    for thing in cluster:
        validate(thing, KUBERNETES, strict=True)
    assert sorted(thing["kind"] for thing in cluster if "template" in thing.get("spec", {})) == [
        *("Deployment", "Deployment", "StatefulSet"),
    ]


def test_pods_are_closed(cluster: list[dict[str, Any]]) -> None:
    for container, pod in containers(cluster):
        name, own, all_of_it = container["name"], container["securityContext"], pod["securityContext"]
        assert all_of_it["runAsNonRoot"] and all_of_it["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert own == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }, name
        assert pod["automountServiceAccountToken"] is False, name
        assert container["resources"]["limits"]["memory"], name
        assert "livenessProbe" in container or container in pod.get("initContainers", ()), name
        assert re.search(r":\d+\.\d+\.\d+", container["image"]), name


def test_network_policies_let_nodes_reach_the_proxy_and_nothing_else(cluster: list[dict[str, Any]]) -> None:
    rules = {thing["metadata"]["name"]: thing["spec"] for thing in cluster if thing["kind"] == "NetworkPolicy"}
    assert rules["nothing"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    assert [port["port"] for rule in rules["server"]["ingress"] for port in rule["ports"]] == [8443]
    assert "egress" not in rules["server"] and "Egress" in rules["server"]["policyTypes"]
    assert "ingress" not in rules["node"]
    assert [port["port"] for rule in rules["node"]["egress"] for port in rule["ports"]] == [8443, 53, 53]
    labels = {
        thing["kind"]: thing["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"]
        for thing in cluster
        if "template" in thing.get("spec", {})
    }
    assert labels == {"StatefulSet": "halftruth-server", "Deployment": "halftruth-node"}


def test_node_files_of_the_examples_are_read(cluster: list[dict[str, Any]], tmp_path: Path) -> None:
    from client.node_file import read_node

    for example in ("node.toml", "kubernetes/nodes/node.example.toml"):
        shutil.copy(DEPLOY / example, tmp_path / "node.toml")
        assert read_node(tmp_path / "node.toml").superlink is not None
    secret = next(thing for thing in cluster if thing["metadata"]["name"].startswith("halftruth-node-north"))
    assert set(secret["data"]) == {"node.toml", "votes.csv", "ca.crt", "node.key"}


@pytest.mark.parametrize("unit", UNITS)
def test_units_are_verified_and_closed(unit: str, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    text = (DEPLOY / "systemd" / unit).read_text("utf-8").replace(PROGRAM, sys.executable)  # one that is there
    here = tmp_path / unit.replace("@.", "@north.")
    here.write_text(text)
    done = subprocess.run(["systemd-analyze", "verify", str(here)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    words = ["systemd-analyze", "security", "--offline=true", "--threshold=25", "--no-pager", str(here)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout.splitlines()[-1]
