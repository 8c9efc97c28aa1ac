"""Bars that do not come are told of, once, with what may be missing."""

from __future__ import annotations

import math

from relay_client.cli.silence_words import Silence
from tests.unit.relay_client.bars import history

BTC, ETH = "BTC/USDT.BINANCE", "ETH/USDT.BINANCE"


def test_of_topics_without_a_bar_it_is_said_once_and_late_what_may_be_missing() -> None:
    silence = Silence([BTC, f"{BTC}|ohlc:60", f"{ETH}|ohlc:60"])
    (bar,) = history(["1"])
    silence.take(bar)
    assert silence.words(5) == []
    (told,) = silence.words(31)
    assert told.startswith(f"{ETH}|ohlc:60: no bar has come")
    assert "relay job bars" in told
    assert silence.words(math.inf) == []


def test_ticks_alone_may_be_silent() -> None:
    assert Silence([BTC, f"{BTC}|tick"]).words(math.inf) == []
