"""What the terminal says of events."""

from __future__ import annotations

from relay_client.cli.event_words import event_words, is_before_all
from relay_client.engine.live_values import Gap

DAY_NS = 1_700_006_400 * 10**9
TICKER = "BTC/USDT.BINANCE"


def gap(state: str, first: str, cause: str = "DISCONNECT") -> Gap:
    return Gap(TICKER, state, cause, first, "41", DAY_NS, DAY_NS + 60 * 10**9)


def test_the_day_before_the_first_recording_is_told_once_and_is_no_loss():
    words = [event_words(gap(state, "")) for state in ("OPEN", "UNFILLABLE")]
    assert words == ["", f"{TICKER}: not recorded before 2023-11-15T00:01:00Z: nothing was lost"]


def test_a_gap_with_a_beginning_or_another_cause_is_told_as_it_is():
    for told in (gap("OPEN", "7"), gap("UNFILLABLE", "7"), gap("UNFILLABLE", "", "SEQUENCE")):
        assert not is_before_all(told)
        assert event_words(told).startswith(f"Gap  ticker {TICKER}  state {told.state}  cause {told.cause}")
