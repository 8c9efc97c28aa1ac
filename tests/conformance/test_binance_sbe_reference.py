"""Binance's binary trades, encoded by the reference tool from the exchange's own schema: equal to the JSON stream's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from ingestors.exchanges.live.port import LiveProtocol
from tests.support.accelerator import accelerator
from tests.support.binance_sbe import SentMessage, binary_values, drawn_messages, json_texts, trades_of
from tests.support.live import listing

accelerator()
from ingestors.exchanges.live.binance import BinanceProtocol  # noqa: E402
from ingestors.exchanges.live.binance_sbe import BinanceSbeProtocol  # noqa: E402
from relay_accel import sbe  # noqa: E402
from tests.support.sbe_reference import SbeReference  # noqa: E402


@pytest.fixture(scope="module")
def schema(recorded_data: Path) -> Path:
    path = recorded_data / "sbe" / "binance_stream_1_0.xml"
    if not path.is_file():
        pytest.skip(f"no schema of the exchange at {path}")
    return path


@pytest.fixture(scope="module")
def reference(
    schema: Path, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SbeReference]:
    fetch = any(item.get_closest_marker("soak") for item in request.session.items)
    folder = tmp_path_factory.mktemp("sbe")
    with SbeReference(folder, fetch=fetch) as started:
        assert started.ask("generate", schema, folder) == ["generated"]
        yield started


def subscribed(protocol: LiveProtocol) -> LiveProtocol:
    protocol.subscribe([listing("BTC/USDT.BINANCE", "BTCUSDT")])
    return protocol


@pytest.mark.parametrize("examples", [50, pytest.param(5_000, marks=[pytest.mark.soak, pytest.mark.timeout(900)])])
def test_messages_of_the_reference_tool_have_the_trades_of_the_json_stream(
    schema: Path, reference: SbeReference, examples: int
) -> None:
    event = sbe.load(schema).messages.TradesStreamEvent

    @settings(
        max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow], phases=[Phase.generate]
    )
    @given(drawn_messages(trades_max=12))
    def agree(message: SentMessage) -> None:
        encoded = reference.encoded(event.from_dict(binary_values(message)), "<")
        binary = trades_of(subscribed(BinanceSbeProtocol()), [encoded])
        assert len(binary) == len(message.trades)
        assert binary == trades_of(subscribed(BinanceProtocol()), json_texts(message))

    agree()


@pytest.mark.parametrize("name", ["BestBidAskStreamEvent", "DepthSnapshotStreamEvent", "DepthDiffStreamEvent"])
def test_other_messages_of_the_exchanges_schema_are_no_trades(schema: Path, name: str) -> None:
    numbers = dict.fromkeys(("eventTime", "bookUpdateId", "bidPrice", "bidQty", "askPrice", "askQty"), 1)
    updates = dict.fromkeys(("firstBookUpdateId", "lastBookUpdateId"), 1)
    found = sbe.load(schema).messages[name]
    wanted = {row["name"] for row in sbe.describe(found)["fields"]}
    values = numbers | updates | {"priceExponent": -8, "qtyExponent": -8}
    data = found.encode({key: value for key, value in values.items() if key in wanted}, symbol="BTCUSDT")
    (bad,) = subscribed(BinanceSbeProtocol()).on_message(data, 7)
    assert "template" in bad.text
