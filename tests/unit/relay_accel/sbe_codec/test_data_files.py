"""The reference implementation's car messages and real exchange messages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.accelerator import accelerator

accelerator()
from relay_accel import sbe  # noqa: E402


@pytest.fixture(scope="module")
def folder(recorded_data: Path) -> Path:
    found = recorded_data / "sbe"
    if not found.is_dir():
        pytest.skip(f"no SBE messages at {found}")
    return found


def test_the_reference_car_is_read_and_written_byte_for_byte(folder):
    data = (folder / "car_example_baseline_data.sbe").read_bytes()
    schema = sbe.load(folder / "example-schema.xml")
    car = schema.decode(data)
    assert (car.serialNumber, car.modelYear, car.vehicleCode, car.engine.capacity) == (1234, 2013, "abcdef", 2000)
    assert [figure.usageDescription for figure in car.fuelFigures] == ["Urban Cycle", "Combined Cycle", "Highway Cycle"]
    assert car.engine.maxRpm == 9000
    assert car.performanceFigures[1].acceleration.to_numpy()["mph"].tolist() == [30, 60, 100]
    assert car.sbe_length == len(data)
    assert schema.messages.Car.encode(car) == data


def test_the_extended_car_lacks_what_its_version_does_not_have(folder):
    data = (folder / "car_example_extension_data.sbe").read_bytes()
    car = sbe.load(folder / "example-extension-schema.xml").decode(data)
    assert (car.sbe_version, car.uuid, car.cupHolderCount) == (0, None, None)
    assert car.manufacturer == "Honda"
    assert car.sbe_length == len(data)
    baseline = sbe.load(folder / "example-schema.xml")
    assert baseline.messages.Car.encode(baseline.decode(data)) == data


def test_exchange_messages_are_written_again_byte_for_byte(folder):
    schema = sbe.load(folder / "binance_spot_3_2.xml")
    rows = json.loads((folder / "manifest.json").read_text())["fixtures"]
    heads = {row["name"]: row["sbe_header"] for row in rows}
    files = sorted(path for path in folder.glob("*.sbe") if not path.name.startswith("car_"))
    assert files
    for path in files:
        data = path.read_bytes()
        view = schema.decode(data)
        head = heads[path.stem]
        assert (view.sbe_id, view.sbe_block_length, view.sbe_version) == (
            head["template_id"],
            head["block_length"],
            head["version"],
        )
        # One file has a byte behind its message: its text was made longer than the message's length says.
        assert len(data) - view.sbe_length in (0, 1), path.name
        assert type(view).encode(view) == data[: view.sbe_length], path.name


def test_every_schema_is_compiled_or_refused_as_the_reference_does(folder):
    refused = {"common-types", "cyclic-refs-schema", "error-handler-message-schema", "error-handler-types-schema"}
    for path in sorted(folder.glob("*.xml")):
        if path.stem in refused:
            with pytest.raises(sbe.SchemaError):
                sbe.load(path)
        else:
            schema = sbe.load(path)
            assert len(schema.by_template) == len(schema.messages), "every class can be made"


def test_the_reference_faults_are_told_with_their_lines(folder):
    with pytest.raises(sbe.SchemaError) as error:
        sbe.load(folder / "error-handler-message-schema.xml")
    told = {(fault[1], fault[2]) for fault in error.value.faults}
    expected = [
        (25, "mismatched_semanticType"),
        (34, "unknown_type"),
        (37, "offset_too_small"),
        (56, "field_misordered"),
    ]
    for line, element in expected:
        assert any(at == line and element in what for at, what in map(tuple, told)), (line, element, told)
