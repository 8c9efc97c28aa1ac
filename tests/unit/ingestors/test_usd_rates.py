"""USD rates out of an exchange's own statistics: which path, exact numbers, nothing guessed."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestors.engine.day_statistics import DayStatistics
from ingestors.engine.usd_rates import RATE_DIGITS, USD_COINS, usd_rates, usd_volume
from relay.protocol.tickers import parse_ticker

NOW = 1_700_000_000 * 10**9


def row(symbol: str, last: str, *, quote: str | None = "100", base: str | None = None, at: int = 0) -> DayStatistics:
    number = None if quote is None else Decimal(quote)
    volume = None if base is None else Decimal(base)
    return DayStatistics(parse_ticker(f"{symbol}.X"), NOW - at, Decimal(last), quote_volume=number, volume=volume)


def test_usd_and_stable_coins_count_one_whatever_their_own_markets_say() -> None:
    rates = usd_rates([row("BTC/USDT", "60000"), row("BTC/USD", "60000"), row("USDT/USD", "0.97")], known_at_ns=NOW)
    assert {name: (r.rate, r.path, r.time_ns) for name, r in rates.items()} == {
        "USDT": (Decimal(1), (), NOW),
        "USD": (Decimal(1), (), NOW),
    }


@pytest.mark.parametrize("odd", [{"last": "NaN"}, {"last": "Infinity"}, {"quote": "NaN"}, {"base": "sNaN"}])
def test_a_market_with_a_number_that_is_none_is_no_way_and_spoils_no_other(odd: dict[str, str]) -> None:
    rows = [row(**{"symbol": "AAA/USD", "last": "2", **odd}), row("BBB/AAA", "1"), row("CCC/BTC", "1")]
    assert set(usd_rates(rows, known_at_ns=NOW)) == {"USD"}
    rates = usd_rates([*rows, row("AAA/USDT", "3", quote="1")], known_at_ns=NOW)
    assert (rates["AAA"].rate, rates["AAA"].path) == (Decimal(3), ("AAA/USDT.X",))


def test_a_currency_is_converted_through_its_most_liquid_market_even_when_it_is_the_quote_of_it() -> None:
    rows = [
        row("XRP/BTC", "0.00001"),
        row("BTC/USDC", "59000", quote="10"),
        row("BTC/USDT", "60000", quote="1000", at=5),
        row("USDT/BRL", "5", base="700", quote="3500", at=9),
        row("BTC/BRL", "300000", quote="20"),
    ]
    rates = usd_rates(rows, known_at_ns=NOW)
    assert (rates["BTC"].rate, rates["BTC"].path, rates["BTC"].time_ns) == (Decimal(60000), ("BTC/USDT.X",), NOW - 5)
    assert (rates["BRL"].rate, rates["BRL"].path, rates["BRL"].time_ns) == (Decimal("0.2"), ("USDT/BRL.X",), NOW - 9)
    assert "XRP" not in rates


def test_two_hops_at_most_and_the_oldest_price_tells_the_age() -> None:
    rows = [
        row("BTC/USDT", "60000", at=3),
        row("AAA/BTC", "0.5", quote="2", at=7),
        row("BBB/AAA", "4"),
        row("CCC/BBB", "2"),
        row("DDD/CCC", "2"),
    ]
    rates = usd_rates(rows, known_at_ns=NOW)
    assert (rates["AAA"].rate, rates["AAA"].path) == (Decimal(30000), ("AAA/BTC.X", "BTC/USDT.X"))
    assert rates["AAA"].time_ns == NOW - 7
    assert not rates.keys() & {"BBB", "CCC"}


def test_a_market_that_has_not_traded_or_has_no_price_gives_no_rate() -> None:
    rows = [
        row("EUR/USDT", "1.1", quote="0"),
        row("BTC/EUR", "1"),
        row("GBP/USD", "0"),
        row("BTC/GBP", "1"),
        row("JPY/USD", "1", quote=None),
        row("BTC/JPY", "1"),
        row("ETH/USDT:USDT", "3000"),
        row("XRP/ETH", "1"),
    ]
    assert usd_rates(rows, known_at_ns=NOW).keys() == {"USDT", "USD"}


def test_volumes_are_rounded_once_half_to_even_at_eight_decimals() -> None:
    rates = usd_rates([row("BTC/USDT", "3"), row("USDT/TRY", "3", base="1", quote="3")], known_at_ns=NOW)
    assert rates["TRY"].rate == Decimal("0." + "3" * RATE_DIGITS)
    assert usd_volume(Decimal("0.000000015"), rates["USDT"]) == Decimal("0.00000002")
    assert usd_volume(Decimal("0.000000025"), rates["USDT"]) == Decimal("0.00000002")
    assert usd_volume(Decimal("1e60") + Decimal("0.00000001"), rates["USDT"]) == Decimal("1e60") + Decimal("0.00000001")


ASSETS = ["USD", "USDT", "EUR", "BTC", "ETH", "AAA", "BBB"]
PRICES = st.decimals("0.00000001", "1000000", places=8)
VOLUMES = st.decimals("0", "1000000", places=8)


@st.composite
def markets(draw: st.DrawFn) -> list[DayStatistics]:
    pairs = draw(st.lists(st.tuples(st.sampled_from(ASSETS), st.sampled_from(ASSETS)), unique=True, max_size=12))
    return [
        DayStatistics(
            parse_ticker(f"{base}/{quote}.X"),
            NOW - draw(st.integers(0, 100)),
            draw(st.none() | PRICES),
            quote_volume=draw(st.none() | VOLUMES),
            volume=draw(st.none() | VOLUMES),
        )
        for base, quote in pairs
        if base != quote
    ]


@given(markets(), st.randoms())
def test_rates_follow_from_their_paths_and_from_nothing_else(rows: list[DayStatistics], random: object) -> None:
    rates = usd_rates(rows, known_at_ns=NOW)
    shuffled = rows.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert usd_rates(shuffled, known_at_ns=NOW) == rates
    by_ticker = {str(r.ticker): r for r in rows}
    for currency, rate in rates.items():
        assert len(rate.path) <= 2
        assert rate.rate > 0
        if currency == "USD" or currency in USD_COINS:
            assert (rate.rate, rate.path) == (1, ())
            continue
        value, held = Fraction(1), currency
        for ticker in rate.path:
            market = by_ticker[ticker]
            assert market.last
            up = market.ticker.base == held
            value = value * Fraction(market.last) if up else value / Fraction(market.last)
            held = market.ticker.quote if up else market.ticker.base
        assert held == "USD" or held in USD_COINS
        assert abs(Fraction(rate.rate) - value) <= value / 10 ** (RATE_DIGITS - 1)
        assert rate.time_ns == min(by_ticker[ticker].time_ns for ticker in rate.path)


@given(VOLUMES, markets())
def test_a_volume_in_usd_is_within_half_a_unit_of_the_exact_product(volume: Decimal, rows: list[DayStatistics]) -> None:
    for rate in usd_rates(rows, known_at_ns=NOW).values():
        exact = Fraction(volume) * Fraction(rate.rate)
        found = usd_volume(volume, rate)
        assert abs(Fraction(found) - exact) <= Fraction(1, 2 * 10**8)
        if rate.rate == 1:
            assert found == volume
