"""Who holds a data folder, what readers are told, and which paths can be one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from relay.errors import SettingsError
from relay.supervisor.data_folder import DataFolder, check_data_folder, read_state
from relay.supervisor.kafka_server import property_text


def test_a_held_folder_tells_the_holders_pid_and_parts_and_a_released_one_nothing(tmp_path):
    held = DataFolder(tmp_path)
    assert read_state(tmp_path) == {"pid": os.getpid(), "parts": []}
    held.write_state([{"name": "gateway"}])
    assert read_state(tmp_path) == {"pid": os.getpid(), "parts": [{"name": "gateway"}]}
    held.release()
    assert read_state(tmp_path) is None


def test_readers_never_take_each_other_for_a_supervisor_nor_stand_in_a_starts_way(tmp_path):
    DataFolder(tmp_path).release()
    (tmp_path / "run" / "state.json").write_text(json.dumps({"pid": 1, "parts": []}))
    ended, wrong = threading.Event(), []

    def poll() -> None:
        while not ended.is_set():
            # While a start of this test holds the folder it runs, by this very process.
            if (read_state(tmp_path) or {"pid": None})["pid"] not in (None, os.getpid()):
                wrong.append("another pid")

    pollers = [threading.Thread(target=poll) for _ in range(3)]
    for poller in pollers:
        poller.start()
    for _ in range(200):
        DataFolder(tmp_path).release()
    ended.set()
    for poller in pollers:
        poller.join()
    assert not wrong


def test_many_readers_at_once_all_see_that_nothing_runs(tmp_path):
    DataFolder(tmp_path).release()
    start, seen = threading.Barrier(4), []

    def poll() -> None:
        start.wait()
        seen.extend(read_state(tmp_path) for _ in range(500))

    pollers = [threading.Thread(target=poll) for _ in range(4)]
    for poller in pollers:
        poller.start()
    for poller in pollers:
        poller.join()
    assert set(map(type, seen)) == {type(None)}


@pytest.mark.parametrize("text", ["{own} 1", "1", "", "x y", f"{2**22 + 5} 5"])
def test_a_pid_that_is_not_provably_the_holders_is_not_told(tmp_path, text):
    text = text.format(own=os.getpid())
    held = DataFolder(tmp_path)
    held.write_state([{"name": "gateway"}])
    (tmp_path / "run" / "lock").write_text(text)
    assert read_state(tmp_path) == {"pid": None, "parts": []}
    held.release()


def test_a_state_that_an_earlier_holder_has_left_is_not_told(tmp_path):
    held = DataFolder(tmp_path)
    (tmp_path / "run" / "state.json").write_text(json.dumps({"pid": 1, "parts": [{"name": "old"}]}))
    assert read_state(tmp_path) == {"pid": os.getpid(), "parts": []}
    held.release()


def test_a_second_start_is_refused_with_the_holders_pid(tmp_path):
    held = DataFolder(tmp_path)
    with pytest.raises(SettingsError, match=rf"another relay up \(pid {os.getpid()}\)"):
        DataFolder(tmp_path)
    held.release()


def test_a_start_knows_whether_the_one_before_was_killed(tmp_path):
    first = DataFolder(tmp_path)
    assert first.was_stopped_cleanly
    first.release()
    code = (
        "import os, sys; from pathlib import Path; from relay.supervisor.data_folder import DataFolder; "
        "held = DataFolder(Path(sys.argv[1])); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    second = DataFolder(tmp_path)
    assert not second.was_stopped_cleanly
    second.release()
    third = DataFolder(tmp_path)
    assert third.was_stopped_cleanly
    third.release()


@pytest.mark.parametrize("name", ["a#b", "a?b", "a%20b", "a,b", "a\\b", "a*b", "a[b", "a{b", 'a"b', "a\nb", "a\udcffb"])
def test_a_path_that_means_something_else_in_an_address_is_refused_before_anything_is_written(tmp_path, name):
    with pytest.raises(SettingsError, match="choose another --data folder"):
        DataFolder(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["with space", "Ordner für Daten", "日本", "a'b", "a;b&c=d@e:f+g~h", "𝒟"])
def test_other_paths_can_hold_tables_at_their_place(tmp_path, name):
    from relay.supervisor.plan import part_settings
    from relay.supervisor.settings import UpSettings
    from relay.tables.catalog import TableSettings
    from relay.tables.reader import open_tables
    from relay.tables.writer import open_writable_tables
    from tests.integration.tables.test_iceberg_tables import BTC, EVERYTHING, REACHED, bars

    held = DataFolder(tmp_path / name)
    written = part_settings(UpSettings(data_folder=held.path), jars=tmp_path, archive=tmp_path)["manager"]
    settings = TableSettings(written["catalog_uri"], written["warehouse"])
    open_writable_tables(settings).merge_bars(bars([0]), reached=REACHED, batch_id=1)
    assert open_tables(settings).count_bars(BTC, 60, within=EVERYTHING) == 1
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert list((held.path / "lake" / "warehouse").rglob("*.parquet"))
    held.release()


def test_a_properties_file_spells_paths_in_ascii():
    assert property_text("/a b/für/日本/𝒟=:#!") == "/a\\u0020b/f\\u00fcr/\\u65e5\\u672c/\\ud835\\udc9f=:#!"
    assert property_text("back\\slash") == "back\\u005cslash"


def test_a_file_in_place_of_the_folder_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    for use in (DataFolder, read_state, check_data_folder):
        with pytest.raises(SettingsError, match="there is a file"):
            use(tmp_path / "file")
    for use, text in ((DataFolder, "can be written"), (read_state, "cannot be read")):
        with pytest.raises(SettingsError, match=text):
            use(tmp_path / "file" / "below")


def test_a_place_where_nothing_can_be_made_is_told():
    with pytest.raises(SettingsError, match="can be written"):
        DataFolder(Path("/proc/none"))
