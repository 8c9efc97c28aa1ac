"""Whatever a user passes to a client, the answer is a result or one of the library's errors; no relay runs."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import math
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from relay.errors import RelayError, SettingsError
from relay_client import AsyncClient, Client
from tests.support.processes import free_port

NAMES = (
    "history",
    "submit",
    "request_status",
    "wait",
    "wait_all",
    "symbols",
    "subscribe",
    "ticks",
    "completeness",
    "replay",
    "probe",
)
GOOD: dict[str, Any] = {
    "ticker": "BTC/USDT.BINANCE",
    "start": "2026-01-01",
    "end": "2026-01-02",
    "request": "00000000-0000-4000-8000-000000000000",
    "requests": ["00000000-0000-4000-8000-000000000000"],
    "topics": "BTC/USDT.BINANCE",
    "timeout": 0,
}
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.text(st.characters(categories=["Cs"]), min_size=1, max_size=2),
    st.binary(max_size=4),
    st.complex_numbers(),
    st.fractions(),
    st.decimals(),
    st.datetimes(),
    st.dates(),
    st.timedeltas(),
    st.lists(st.one_of(st.text(max_size=3), st.integers(), st.none()), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=1),
    st.sampled_from(
        [
            object(),
            lambda *_: None,
            np.int64(60),
            np.float64(1.5),
            np.bool_(1),
            np.array([1, 2]),
            np.array(5),
            np.datetime64("2026-01-01"),
            math.nan,
            math.inf,
            10**400,
            -(10**400),
            "1795840000.5",
            "1m",
            "1d",
        ]
    ),
)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with Client(request_port=free_port(), subscribe_port=free_port()) as made:
        yield made


def arguments_of(method: Any) -> list[str]:
    return [name for name in inspect.signature(method).parameters if name != "self"]


def good_for(method: Any) -> dict[str, Any]:
    return {name: GOOD[name] for name in arguments_of(method) if name in GOOD and (name != "end" or "start" in GOOD)}


def check_odd(method: Any, data: st.DataObject) -> dict[str, Any]:
    name = data.draw(st.sampled_from(arguments_of(method)))
    value = data.draw(ODD)
    assume(name != "timeout" or not (isinstance(value, int | float | Fraction | np.number) and 0 < value < 10**7))
    assume(name != "timeout" or value is not None)
    given_values = good_for(method) | {name: value}
    if name == "last":
        given_values.pop("start", None)
    if method.__name__ == "subscribe" and name != "start":
        given_values.pop("start", None)
    return given_values


def test_an_array_without_dimensions_is_no_list(client):
    with pytest.raises(SettingsError, match="expected requests as a list"):
        client.wait_all(np.array(5))


@pytest.mark.parametrize("name", [name for name in NAMES if hasattr(Client, name)])
@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_argument_of_a_client_raises_anything_but_the_librarys_errors(client, name, data):
    method = getattr(client, name)
    with contextlib.suppress(RelayError):
        method(**check_odd(method, data))


@pytest.mark.parametrize("name", [n for n in NAMES if hasattr(AsyncClient, n) and n not in ("subscribe", "replay")])
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_argument_of_an_async_client_raises_anything_but_the_librarys_errors(name, data):
    method = getattr(AsyncClient, name)
    values = check_odd(method, data)

    async def call() -> None:
        async with AsyncClient(request_port=free_port(), subscribe_port=free_port()) as made:
            await getattr(made, name)(**values)

    with contextlib.suppress(RelayError):
        asyncio.run(call())


@settings(max_examples=100, deadline=None)
@given(name=st.sampled_from(["host", "request_port", "subscribe_port", "settings", "config_file"]), value=ODD)
def test_no_argument_of_the_constructor_raises_anything_but_the_librarys_errors(name, value):
    with contextlib.suppress(RelayError):
        Client(**{name: value}).close()


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("period", 60.0, "expected period as a whole number"),
        ("period", None, "expected period"),
        ("limit", "3", "expected limit as a whole number of 1 to"),
        ("limit", 1.5, "expected limit"),
        ("limit", True, "expected limit"),
        ("limit", 0, "expected limit"),
        ("ticker", None, "expected ticker as text, got NoneType None"),
        ("ticker", 5, "expected ticker"),
        ("timeout", math.inf, "expected timeout as seconds"),
        ("timeout", "5", "expected timeout"),
        ("timeout", math.nan, "expected timeout"),
        ("timeout", -1, "expected timeout"),
        ("on_progress", 5, "expected on_progress as a function"),
    ],
)
def test_a_wrong_argument_of_history_is_named_with_what_was_expected(client, name, value, told):
    with pytest.raises(SettingsError, match=told):
        client.history(**({"ticker": GOOD["ticker"], "last": "1h", "timeout": 0} | {name: value}))


@pytest.mark.parametrize("value", [np.int64(60), np.uint8(60), "60", "1m"])
def test_numpys_integers_are_whole_numbers(client, value):
    found = client._flows.query(
        GOOD["ticker"], start="2026-01-01", end="2026-01-02", last=None, period=value, limit=np.int32(5), unit=None
    )
    assert (found.period_seconds, found.limit, type(found.period_seconds), type(found.limit)) == (60, 5, int, int)


@pytest.mark.parametrize("limit", [-1, 0, 10**12, 1.5, "5", None])
def test_a_wrong_limit_of_symbols_is_told(client, limit):
    with pytest.raises(SettingsError, match="expected limit as a whole number of 1 to 100000"):
        client.symbols(limit=limit, timeout=0)


def test_a_number_of_the_wrong_kind_is_no_time_to_wait(client):
    with pytest.raises(SettingsError, match="expected timeout as seconds"):
        client.probe(timeout=Decimal(5))
