"""What `relay watch` prints of bars and events where there is no terminal."""

from __future__ import annotations

import sys

import relay_client.cli.watch  # noqa: F401
from relay.protocol.v1 import market_pb2
from relay_client.cli.event_words import event_words
from relay_client.engine.items import bar_of
from relay_client.engine.live_values import FeedState, StateChanged

# The package's name `watch` is the command.
watch = sys.modules["relay_client.cli.watch"]


def test_a_bar_is_a_line_of_words_and_numbers() -> None:
    message = market_pb2.OHLC(
        ticker="BTC/USDT.BINANCE",
        period_seconds=60,
        timestamp=60_000_000_000,
        is_final=True,
        revision=2,
        open=150,
        high=200,
        low=100,
        close=150,
        price_decimals=2,
        volume="10",
    )
    line = watch._as_text(bar_of(message))
    assert line.startswith("1970-01-01T00:01:00Z  BTC/USDT.BINANCE  60 s  open 1.5")
    assert line.endswith("volume 10  final, revision 2")


def test_an_event_is_a_line_without_class_syntax() -> None:
    event = StateChanged("BTC/USDT.BINANCE", FeedState.UP, FeedState.CONNECTING, "first beat")
    line = event_words(event)
    assert line == "StateChanged  ticker BTC/USDT.BINANCE  state UP  before CONNECTING  first beat"
