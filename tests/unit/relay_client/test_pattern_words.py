"""Patterns in words."""

from __future__ import annotations

import pytest

from relay.protocol.v1 import trigger_pb2
from relay_client.cli.pattern_words import pattern_words
from relay_client.pattern_builder import CLOSE, OPEN, TRADES, VOLUME, PatternBuilder, n_of, when

BTC, ETH = when("BTC/USDT.BINANCE"), when("ETH/USDT.BINANCE")


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (BTC.crosses_above("50000"), "BTC/USDT.BINANCE crosses above 50000"),
        (BTC.crosses_below("0.5"), "BTC/USDT.BINANCE crosses below 0.5"),
        (BTC.crosses("3"), "BTC/USDT.BINANCE crosses 3"),
        (BTC.falls("2.5", in_last="10m"), "BTC/USDT.BINANCE falls 2.5 % in 10m"),
        (BTC.rises("1", in_last="9ms", from_first=True), "BTC/USDT.BINANCE rises 1 % in 9ms from its first price"),
        (BTC.moves("1", in_last="90s"), "BTC/USDT.BINANCE moves 1 % in 90s"),
        (
            BTC.volume_above("3", average_of=20, period="1m"),
            "BTC/USDT.BINANCE 1m volume above 3 x the mean of 20 bars before",
        ),
        (
            BTC.volume_above("3", average_of=5, window="30s"),
            "BTC/USDT.BINANCE 30s volume above 3 x the mean of 5 windows before",
        ),
        (
            BTC.bar("1m", CLOSE.above(OPEN), VOLUME.at_least("100"), TRADES.differs_from(0)),
            "BTC/USDT.BINANCE 1m bar with close > open and volume >= 100 and trades != 0",
        ),
        (BTC.silent_for("5m"), "BTC/USDT.BINANCE silent for 5m"),
        (
            n_of(2, BTC.crosses("5"), ETH.crosses("3"), in_last="1m"),
            "2 of (BTC/USDT.BINANCE crosses 5; ETH/USDT.BINANCE crosses 3) in 1m",
        ),
        (
            BTC.crosses("5").times(3, of_last=7, in_last="1h"),
            "3 times (BTC/USDT.BINANCE crosses 5) of the last 7 in 1h",
        ),
        (
            BTC.crosses("5").then(ETH.crosses("3"), within="5m").within("1h").skip_past_last_event(),
            "BTC/USDT.BINANCE crosses 5, then ETH/USDT.BINANCE crosses 3 within 5m; all within 1h;"
            " a match ends those that run",
        ),
        (
            BTC.crosses("5").then_next(ETH.crosses("3")).then_not(ETH.crosses("4"), within="1m"),
            "BTC/USDT.BINANCE crosses 5, then next ETH/USDT.BINANCE crosses 3,"
            " then not ETH/USDT.BINANCE crosses 4 within 1m",
        ),
    ],
)  # fmt: skip
def test_a_pattern_is_told_in_words(pattern: PatternBuilder, words: str) -> None:
    assert pattern_words(pattern.build()) == words


def test_what_a_newer_version_wrote_is_told_as_far_as_it_is_known() -> None:
    crosses = trigger_pb2.ThresholdCondition(ticker="X", price="1", direction=9)  # type: ignore[arg-type]
    steps = [trigger_pb2.PatternStep(threshold=crosses), trigger_pb2.PatternStep()]
    assert pattern_words(trigger_pb2.Pattern(steps=steps)) == "X ?9 1, then a condition of a newer version"
