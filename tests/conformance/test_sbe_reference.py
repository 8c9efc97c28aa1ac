"""The SBE codec against the reference implementation: what it refuses, what it reads, what it writes.

A few schemas in every run, where the tool is at hand; many in the soak, which fetches it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.support.accelerator import accelerator

accelerator()
from relay_accel import sbe  # noqa: E402
from tests.support.sbe_mutations import MUTATIONS, STRICTER  # noqa: E402
from tests.support.sbe_reference import SbeReference, flat  # noqa: E402
from tests.support.sbe_schemas import drawn_schemas  # noqa: E402

PROTO = Path(__file__).resolve().parents[2] / "proto"
ORDERS = {"little": "<", "big": ">"}


@pytest.fixture(scope="module")
def reference(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SbeReference]:
    # Only a soak may take the time to fetch the tool.
    fetch = any(item.get_closest_marker("soak") for item in request.session.items)
    with SbeReference(tmp_path_factory.mktemp("sbe"), fetch=fetch) as started:
        yield started


def lines(schema: sbe.Schema, message: sbe.BlockView) -> list[str]:
    order = ORDERS[schema.byte_order]
    header = schema.header_length
    return [*flat(message, sbe.describe(type(message)), order), f"end={message.sbe_length}"] if header else []


def test_what_the_reference_refuses_is_refused_and_what_it_accepts_accepted(reference, tmp_path):
    path = tmp_path / "schema.xml"
    for name, (text, expected) in MUTATIONS.items():
        path.write_text(text)
        verdict = reference.ask("verdict", path)
        accepted = name in STRICTER or expected == "accepted"
        assert verdict[0] == ("accepted" if accepted else "refused"), (name, verdict)


def test_recorded_messages_have_the_values_that_the_reference_reads(reference, recorded_data):
    folder = recorded_data / "sbe"
    if not folder.is_dir():
        pytest.skip(f"no SBE messages at {folder}")
    schemas = {
        "car_example_baseline_data": "example-schema.xml",
        "car_example_extension_data": "example-extension-schema.xml",
    }
    for path in sorted(folder.glob("*.sbe")):
        file = folder / schemas.get(path.stem, "binance_spot_3_2.xml")
        schema = sbe.load(file)
        message = schema.decode(path.read_bytes())
        assert reference.decoded(file, path.read_bytes()) == lines(schema, message), path.name


@pytest.mark.parametrize("name", ["fix", "market"])
def test_the_platform_s_own_schemas_are_the_reference_s_too(reference, name, tmp_path):
    path = PROTO / f"{name}.xml"
    schema = sbe.load(path)
    assert reference.ask("verdict", path)[0] == "accepted"
    assert reference.ask("generate", path, tmp_path) == ["generated"]
    vectors = sorted((PROTO / "golden" / name).glob("*.bin"))
    assert {schema.decode(file.read_bytes()).sbe_name for file in vectors} == set(schema.messages)
    for file in vectors:
        message = schema.decode(file.read_bytes())
        assert reference.decoded(path, file.read_bytes()) == lines(schema, message), file.name
        assert reference.encoded(message, "<") == file.read_bytes(), file.name


@pytest.mark.parametrize("examples", [3, pytest.param(150, marks=[pytest.mark.soak, pytest.mark.timeout(1_800)])])
def test_drawn_schemas_and_messages_are_the_same_bytes_and_values_on_both_sides(reference, examples):
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]

    @settings(max_examples=examples, deadline=None, suppress_health_check=checks, phases=[Phase.generate])
    @given(drawn_schemas(), st.data())
    def agree(drawn, data):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "schema.xml"
            path.write_text(drawn.text)
            schema = sbe.load(path)
            assert reference.ask("generate", path, folder) == ["generated"]
            for name, values in drawn.messages.items():
                for _ in range(3):
                    given_values = data.draw(values)
                    ours = schema.messages[name].encode(given_values)
                    message = schema.decode(ours)
                    assert reference.decoded(path, ours) == lines(schema, message)
                    assert reference.encoded(message, ORDERS[schema.byte_order]).hex() == ours.hex(), drawn.text

    agree()
