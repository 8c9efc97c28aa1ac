"""Frames and positions against Aeron's own classes: equal values make equal bytes, and are read from them.

In every run where Aeron is at hand; the soak fetches it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.accelerator import accelerator
from tests.support.aeron_reference import AeronReference

accelerator()
from relay_accel.wire import WireValue, aeron  # noqa: E402

I32 = st.integers(-(2**31), 2**31 - 1)
COUNT = st.integers(0, 2**31 - 1)
I64 = st.integers(-(2**63), 2**63 - 1)
FLAGS = st.integers(0, 255)
OFFSETS = st.integers(0, 2**26 - 1).map(lambda count: count * 32)
IDS = {"session_id": I32, "stream_id": I32}
FEW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
NAMES = {
    "consumption_term_id": "consumptionTermId",
    "receiver_window": "receiverWindowLength",
    "mtu": "mtuLength",
    "reception_delta_ns": "receptionDelta",
    "text": "errorMessage",
}
SETUPS = st.tuples(I32, COUNT, st.integers(16, 30), st.integers(0, 2048), st.integers(1, 2047), I32, I32, COUNT, FLAGS)
"""Initial term, terms since, shift, offset and mtu in units of 32, session, stream, ttl, flags."""


@pytest.fixture(scope="module")
def reference(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AeronReference]:
    # Only a soak may take the time to fetch it.
    fetch = any(item.get_closest_marker("soak") for item in request.session.items)
    with AeronReference(tmp_path_factory.mktemp("aeron"), fetch=fetch) as started:
        yield started


def java_name(field: str) -> str:
    first, *rest = field.split("_")
    return NAMES.get(field, first + "".join(part.capitalize() for part in rest))


def compare(
    reference: AeronReference, flyweight: str, frame: WireValue, kind: int, written: list[str], read: list[str]
) -> None:
    """Both write the same bytes; what ours wrote has the same values in theirs."""
    data = frame.to_bytes()
    header = aeron.FrameHeader.decode(data)
    assert header.frame_type == kind
    values: dict[str, object] = {
        "frameLength": header.frame_length,
        "version": header.version,
        "flags": header.flags,
        "headerType": kind,
    }
    values |= {java_name(field): getattr(frame, field) for field in written}
    assert reference.written(flyweight, len(data), values) == data
    names = [java_name(field) for field in read]
    assert reference.read(flyweight, data, names) == [str(getattr(frame, field)) for field in read]


@FEW
@given(st.fixed_dictionaries({**IDS, "term_offset": OFFSETS, "term_id": I32, "flags": FLAGS, "reserved_value": I64}))
def test_headers_of_data(reference, values):
    fields = [name for name in values if name != "flags"]
    compare(reference, "DataHeaderFlyweight", aeron.DataFrame(payload=b"", **values), 1, fields, [*values])


@FEW
@given(
    st.fixed_dictionaries(
        {
            **IDS,
            "consumption_term_id": I32,
            "consumption_term_offset": COUNT,
            "receiver_window": COUNT,
            "receiver_id": I64,
            "flags": FLAGS,
        }
    ),
    st.none() | I64,
)
def test_status_messages(reference, values, tag):
    frame = aeron.StatusMessageFrame(group_tag=tag, **values)
    fields = [name for name in values if name != "flags"]
    tagged = [] if tag is None else ["group_tag"]
    compare(reference, "StatusMessageFlyweight", frame, 3, [*fields, *tagged], [*values, *tagged])


@FEW
@given(st.fixed_dictionaries({**IDS, "term_id": I32, "term_offset": COUNT, "length": st.integers(1, 2**31 - 1)}), FLAGS)
def test_naks(reference, values, flags):
    compare(reference, "NakFlyweight", aeron.NakFrame(flags=flags, **values), 2, [*values], [*values, "flags"])


@FEW
@given(SETUPS)
def test_setups(reference, drawn):
    initial, terms, shift, offset, mtu, session_id, stream_id, ttl, flags = drawn
    active = (initial + terms + 2**31) % 2**32 - 2**31
    values = {
        "term_offset": offset * 32,
        "session_id": session_id,
        "stream_id": stream_id,
        "initial_term_id": initial,
        "active_term_id": active,
        "term_length": 1 << shift,
        "mtu": mtu * 32,
        "ttl": ttl,
    }
    compare(reference, "SetupFlyweight", aeron.SetupFrame(flags=flags, **values), 5, [*values], [*values, "flags"])


@FEW
@given(st.fixed_dictionaries({**IDS, "echo_timestamp_ns": I64, "reception_delta_ns": I64, "receiver_id": I64}), FLAGS)
def test_rtt_measurements(reference, values, flags):
    frame = aeron.RttFrame(flags=flags, **values)
    compare(reference, "RttMeasurementFlyweight", frame, 6, [*values], [*values, "flags"])


@FEW
@given(
    st.fixed_dictionaries({**IDS, "receiver_id": I64, "error_code": I32}),
    st.none() | I64,
    st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=80),
)
def test_errors(reference, values, tag, text):
    frame = aeron.ErrorFrame(group_tag=tag, text=text.encode(), flags=0 if tag is None else 8, **values)
    data = frame.to_bytes()
    setters = {"version": 0, "flags": 0, "headerType": 4}
    setters |= {java_name(field): value for field, value in values.items()}
    setters |= {"groupTag": tag, "errorMessage": text, "frameLength": len(data)}
    assert reference.written("ErrorFlyweight", len(data), setters) == data
    names = [*map(java_name, values), "hasGroupTag", "groupTag", "errorMessage"]
    expected = [*map(str, values.values()), str(tag is not None).lower(), str(tag or 0), text]
    assert reference.read("ErrorFlyweight", data, names) == expected


@FEW
@given(
    st.ip_addresses(),
    st.integers(0, 65535),
    COUNT,
    FLAGS,
    st.binary(min_size=1, max_size=40),
)
def test_resolution_entries(reference, address, port, age, flags, name):
    entry = aeron.ResolutionEntry(address, port, name, age, flags)
    data = entry.to_bytes()
    kind = 1 if isinstance(address, ipaddress.IPv4Address) else 2
    setters = {"resType": kind, "flags": flags, "udpPort": port, "ageInMs": age}
    setters |= {"putAddress": address.packed.hex(), "putName": name.hex()}
    assert reference.written("ResolutionEntryFlyweight", len(data), setters) == data
    found = reference.read("ResolutionEntryFlyweight", data, ["udpPort", "ageInMs", "flags", "entryLength"])
    assert found == [str(port), str(age), str(flags), str(len(data))]


@FEW
@given(I32, st.integers(16, 30), COUNT, st.integers(0, 2**30 - 1))
def test_positions(reference, initial, shift, terms, offset):
    positions = aeron.TermPositions(initial, 1 << shift)
    term_id = (initial + terms + 2**31) % 2**32 - 2**31
    offset %= 1 << shift
    position = positions.position(term_id, offset)
    assert reference.position(term_id, offset, shift, initial) == position
    assert (reference.term_id(position, shift, initial), offset) == positions.term_at(position)


@pytest.mark.soak
def test_aeron_is_fetched_for_the_soak(reference):
    assert reference.position(1, 32, 16, 0) == 65_568


def test_golden_frames_are_what_aeron_reads(reference):
    folder = Path(__file__).resolve().parents[2] / "proto" / "golden" / "wire"
    data = (folder / "aeron_setup.bin").read_bytes()
    assert reference.read("SetupFlyweight", data, ["initialTermId", "activeTermId"]) == ["2147483647", "-2147483648"]
