"""What is misspelt in a settings file or in the environment is told, with what was most likely meant."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from ingestors.settings import IngestorSettings
from relay.cli.doctor import command as doctor
from relay.config import load_settings
from relay.errors import SettingsError
from relay.gateway.settings import GatewaySettings
from relay.supervisor.settings import UpSettings
from relay_client.settings import ClientSettings
from spark_jobs.manager.settings import ManagerSettings


def refused(model: type, tmp_path: Path | None = None, text: str | bytes = "") -> str:
    file = None
    if tmp_path is not None:
        file = tmp_path / "relay.toml"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SettingsError) as told:
        load_settings(model, config_file=file)
    return str(told.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[gatewy]\nstatus_port = 1\n", "unknown name 'gatewy' .*did you mean gateway"),
        ("[clients]\nhost = 'x'\n", "did you mean client"),
        ("status_port = 1\n", "unknown name 'status_port'"),
        ('gateway = "x"\n', r"expected a table \[gateway\]"),
        ("[gateway]\nstatus_prot = 1\n", "gateway.status_prot: unknown key; did you mean status_port"),
        (b"[gateway]\nsource_id = '\xfc'\n", "expected a TOML file in UTF-8 .*save it as UTF-8"),
        ("[gateway\n", "expected a TOML file"),
    ],
)
def test_a_settings_file_with_a_mistake_is_refused_with_what_was_meant(tmp_path, text, told):
    import re

    assert re.search(told, refused(GatewaySettings, tmp_path, text))


def test_a_settings_file_that_is_a_folder_or_has_no_name_on_this_machine_is_told(tmp_path):
    for path in (tmp_path, tmp_path / ("x" * 300)):
        with pytest.raises(SettingsError, match="cannot be read"):
            load_settings(GatewaySettings, config_file=path)


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("RELAY_UPP_PORTS", "RELAY_UP_"),
        ("RELAY_CONFG", "RELAY_CONFIG"),
        ("RELAY_GATWAY_STATUS_PORT", "RELAY_GATEWAY_STATUS_PORT"),
        ("RELAY_MANGER_STORE_PATH", "RELAY_MANAGER_"),
        ("RELAY_GATEWAY_STATUS_PROT", "RELAY_GATEWAY_STATUS_PORT"),
        ("RELAY_HOST", ""),
    ],
)
def test_a_variable_that_no_application_knows_is_refused_with_the_nearest_known_one(monkeypatch, variable, meant):
    monkeypatch.setenv(variable, "1")
    told = refused(GatewaySettings)
    assert variable in told
    assert not meant or f"did you mean {meant}?" in told


@pytest.mark.parametrize("variable", ["RELAY_SERVICE_HOST", "RELAY_PORT_5559_TCP", "RELAY_CACHE", "RELAY_JOB_MASTER"])
def test_variables_of_others_and_of_cluster_software_are_left_alone(monkeypatch, variable):
    monkeypatch.setenv(variable, "1")
    load_settings(GatewaySettings)


@pytest.mark.parametrize("text", ["BINANCE,KRAKEN", " BINANCE , KRAKEN ", '["BINANCE","KRAKEN"]'])
def test_a_list_of_names_may_be_written_with_commas(monkeypatch, text):
    monkeypatch.setenv("RELAY_UP_EXCHANGES", text)
    monkeypatch.setenv("RELAY_INGESTOR_EXCHANGES", text)
    assert load_settings(UpSettings).exchanges == ("BINANCE", "KRAKEN")
    assert load_settings(IngestorSettings).exchanges == ("BINANCE", "KRAKEN")


@pytest.mark.parametrize(
    ("model", "variable", "text"),
    [
        (UpSettings, "RELAY_UP_EXCHANGES", '["BINANCE"'),
        (UpSettings, "RELAY_UP_EXCHANGES", '{"a": 1}'),
        (UpSettings, "RELAY_UP_PORTS", "9"),
        (IngestorSettings, "RELAY_INGESTOR_HISTORICAL_SLOTS", "BINANCE=3"),
        (ClientSettings, "RELAY_CLIENT_CATALOG_PROPERTIES", "secret-text"),
    ],
)
def test_a_list_or_table_that_is_none_is_told_with_an_example(monkeypatch, model, variable, text):
    monkeypatch.setenv(variable, text)
    told = refused(model)
    assert told.startswith(f"expected JSON in {variable}, such as ")
    json.loads(told.partition("such as '")[2].partition("', got")[0])
    assert "secret-text" not in told


def test_exchanges_that_nobody_serves_are_refused_at_the_start(monkeypatch):
    monkeypatch.setenv("RELAY_UP_EXCHANGES", '["BINANC"]')
    assert "did you mean BINANCE" in refused(UpSettings)
    monkeypatch.setenv("RELAY_UP_LIVE", "true")
    assert load_settings(UpSettings).exchanges == ("BINANC",)


def test_a_manager_with_a_catalog_of_no_known_kind_does_not_start_and_shows_no_password(monkeypatch):
    monkeypatch.setenv("RELAY_MANAGER_WAREHOUSE", "file:///w")
    monkeypatch.setenv("RELAY_MANAGER_CATALOG_URI", "nosuch://user:hidden@host")
    told = refused(ManagerSettings)
    assert "expected a catalog address" in told
    assert "hidden" not in told


@pytest.mark.parametrize("text", [None, "[gateway\n", "[gatewy]\n", "[client]\nrequest_port = 0\n"])
def test_the_doctor_looks_at_the_settings(tmp_path, monkeypatch, text):
    file = tmp_path / "relay.toml"
    if text is not None:
        file.write_text(text)
    monkeypatch.setenv("RELAY_CONFIG", str(file))
    answer = CliRunner().invoke(doctor, ["--json"])
    assert answer.exit_code == 1
    found = [f for f in json.loads(answer.output) if f["state"] == "wrong"]
    assert any("settings" in f["name"] for f in found)


def test_the_doctor_is_content_with_settings_that_are_right(monkeypatch):
    monkeypatch.delenv("RELAY_CONFIG", raising=False)
    answer = CliRunner().invoke(doctor, ["--json"])
    assert {"name": "settings", "state": "ok", "text": "environment and defaults"} in json.loads(answer.output)


def test_the_doctor_cuts_no_line_where_there_is_no_terminal(tmp_path):
    name = tmp_path / ("long" * 40) / "relay.toml"
    answer = CliRunner().invoke(doctor, ["--config", str(name)])
    assert any(str(name) in line for line in answer.output.splitlines()), answer.output


@pytest.mark.parametrize(
    ("text", "folder"), [("OFF", "off"), ("off", "off"), ("", ""), ("/dev/shm/mine", "/dev/shm/mine")]
)
def test_a_folder_of_shared_memory_is_absolute_or_off_or_the_usual_one(monkeypatch, text, folder):
    monkeypatch.setenv("RELAY_GATEWAY_SHARED_MEMORY", text)
    assert load_settings(GatewaySettings).shared_memory == folder


@pytest.mark.parametrize("text", [" ", "none", "shm", "./shm", "~/shm"])
def test_any_other_place_of_shared_memory_is_refused_and_not_made(monkeypatch, text):
    monkeypatch.setenv("RELAY_GATEWAY_SHARED_MEMORY", text)
    assert "expected the absolute path of a folder, off, or nothing" in refused(GatewaySettings)


def test_the_soft_limit_of_descriptors_is_raised_as_far_as_the_system_allows():
    code = (
        "import resource; from relay.gateway.descriptors import allow_descriptors\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 200))\n"
        "print(allow_descriptors(100), resource.getrlimit(resource.RLIMIT_NOFILE)[0])\n"
        "print(allow_descriptors(80), resource.getrlimit(resource.RLIMIT_NOFILE)[0])\n"
        "print(allow_descriptors(1_000), resource.getrlimit(resource.RLIMIT_NOFILE)[0])\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["100", "100", "100", "100", "200", "200"]
