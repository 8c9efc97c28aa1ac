"""Any other exchange through ccxt: lower fidelity, because only open, high, low, close and volume get through."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ingestors.engine.bars_reader import BarsWanted
from ingestors.engine.day_statistics import StatisticsPage
from ingestors.engine.outcomes import ExchangeError, Outcome, OutcomeKind
from ingestors.engine.trades_reader import TradesWanted
from ingestors.engine.values import Bar, BarsPage, Capabilities, Fidelity, Listing, ListingStatus, TradesPage
from ingestors.exchanges.market_list import make_ticker
from ingestors.exchanges.numbers import decode_json, increment, number, read_bars, whole
from ingestors.exchanges.port import StatisticsCall
from ingestors.exchanges.statistics_rows import by_native_symbol, read_ccxt_row, read_statistics
from relay.errors import PeerError, SettingsError
from relay.protocol.codes import ErrorCode
from relay.protocol.periods import WEEK_SECONDS, parse_period
from relay.protocol.times import from_unit

__all__ = ["CcxtAdapter", "keep_numbers_as_text", "open_ccxt"]

_PAGE_ROWS_MAX = 100
_MILLISECOND_NS = 1_000_000
_PRECISION_DECIMAL_PLACES, _PRECISION_TICK_SIZE = 2, 4
_KINDS = (
    ("DDoSProtection", OutcomeKind.THROTTLED),
    ("RateLimitExceeded", OutcomeKind.THROTTLED),
    ("OnMaintenance", OutcomeKind.MAINTENANCE),
    ("NetworkError", OutcomeKind.TRANSIENT),
    ("BadSymbol", OutcomeKind.BAD_SYMBOL),
    ("BadRequest", OutcomeKind.BAD_INTERVAL),
)


def open_ccxt(exchange: str) -> CcxtAdapter:
    """Return the adapter of an exchange by its ccxt id (the exchange's name in lower case).

    Raises:
        SettingsError: MISSING_EXTRA when ccxt is not installed, UNKNOWN_EXCHANGE when it knows no such exchange.
    """
    exchange_id = exchange.lower()
    unknown = SettingsError(
        f"expected BINANCE, KRAKEN, COINBASE or an exchange that ccxt knows, got {exchange}",
        code=ErrorCode.UNKNOWN_EXCHANGE,
    )
    try:
        # Importing it takes ten seconds: a misspelt name is told before.
        if not _is_there(exchange_id):
            raise unknown
        module: Any = importlib.import_module("ccxt.async_support")
    except ImportError as error:
        raise SettingsError(
            f"{exchange} is served through ccxt, which is not installed; install the extra market-relay[ccxt]",
            code=ErrorCode.MISSING_EXTRA,
        ) from error
    if exchange_id not in module.exchanges:
        raise unknown
    client: Any = getattr(module, exchange_id)({"enableRateLimit": True})
    keep_numbers_as_text(client)
    return CcxtAdapter(client, exchange=exchange)


def _is_there(exchange_id: str) -> bool:
    """Return whether ccxt has a module of that name; it has one for each exchange."""
    found = importlib.util.find_spec("ccxt")
    if found is None:
        raise ImportError("ccxt")
    places = [Path(f, "async_support", f"{exchange_id}.py") for f in found.submodule_search_locations or ()]
    return exchange_id.isidentifier() and any(place.is_file() for place in places)


def keep_numbers_as_text(client: Any) -> None:
    """Let neither ccxt nor its JSON decoder make binary floats: numbers stay text from the answer on."""
    client.on_json_response = decode_json
    client.number = str


class CcxtAdapter:
    """See :class:`~ingestors.exchanges.port.ExchangeAdapter`.

    Args:
        client: a ccxt client whose numbers are text.
        exchange: upper-case name.
    """

    def __init__(self, client: Any, *, exchange: str) -> None:
        self._client = client
        self._exchange = exchange
        self._timeframes = _fixed_timeframes(client.timeframes or {})
        self._capabilities = Capabilities(
            exchange=exchange,
            native_periods=tuple(sorted(self._timeframes)),
            page_rows_max=_PAGE_ROWS_MAX,
            window_rows_max=_PAGE_ROWS_MAX,
            bounds_end=False,
            sends_rows_before_start=True,
            fidelity=Fidelity.LOWER,
        )

    @property
    def capabilities(self) -> Capabilities:
        """See the port; probably right for most exchanges, proven for none."""
        return self._capabilities

    async def server_time_ns(self) -> int:
        """See the port; the local clock where the exchange tells none."""
        if self._client.has.get("fetchTime"):
            return whole(await self._call("fetch_time")) * _MILLISECOND_NS
        return whole(self._client.milliseconds()) * _MILLISECOND_NS

    async def markets(self) -> Mapping[str, Listing]:
        """See the port; spot markets only."""
        entries = (await self._call("load_markets", True)).values()
        listings = (self._listing(entry) for entry in entries if entry.get("spot"))
        return {str(listing.ticker): listing for listing in listings if listing is not None}

    async def fetch_bars_page(self, listing: Listing, wanted: BarsWanted) -> BarsPage:
        """See the port."""
        since_ms = wanted.window.start_ns // _MILLISECOND_NS
        timeframe = self._timeframes[wanted.period_seconds]
        await self._call("load_markets")
        rows = await self._call("fetch_ohlcv", listing.native_symbol, timeframe, since_ms, wanted.rows_max)
        return read_bars(rows, _bar, start_ns=lambda row: from_unit(whole(row[0]), "ms"))

    async def fetch_trades_page(self, listing: Listing, wanted: TradesWanted) -> TradesPage:
        """Refuse: how trades are paged differs by exchange, so nothing can be proven here."""
        del wanted
        raise ExchangeError(Outcome(OutcomeKind.UNKNOWN, f"{listing.ticker}: trades cannot be paged through ccxt"))

    async def history_start_ns(self, listing: Listing, *, before_ns: int) -> int | None:
        """See the port; unknown."""
        del listing, before_ns
        return None

    def statistics_calls(
        self, listings: Mapping[str, Listing], *, now_ns: Callable[[], int]
    ) -> Sequence[StatisticsCall]:
        """See the port; only where the exchange tells of all markets at once."""
        known = by_native_symbol(listings)

        async def fetch() -> StatisticsPage:
            if not self._client.has.get("fetchTickers"):
                raise ExchangeError(Outcome(OutcomeKind.UNKNOWN, f"{self._exchange}: no 24 h statistics through ccxt"))
            entries: Mapping[str, Any] = await self._call("fetch_tickers")
            spot = ((symbol, entry) for symbol, entry in entries.items() if symbol in known)
            return read_statistics(spot, known, partial(read_ccxt_row, time_ns=now_ns()))

        return [fetch]

    async def close(self) -> None:
        """See the port."""
        await self._client.close()

    async def _call(self, method: str, *arguments: object) -> Any:
        try:
            return await getattr(self._client, method)(*arguments)
        except Exception as error:  # ccxt's own tree, known only once it is imported
            names = {cls.__name__ for cls in type(error).__mro__}
            kind = next((kind for name, kind in _KINDS if name in names), None)
            if kind is None and "BaseError" not in names:
                raise
            text = f"{self._exchange} through ccxt: {type(error).__name__}: {str(error)[:200]}"
            raise ExchangeError(Outcome(kind or OutcomeKind.UNKNOWN, text)) from error

    def _listing(self, entry: Mapping[str, Any]) -> Listing | None:
        ticker = make_ticker(str(entry["base"]), str(entry["quote"]), self._exchange)
        if ticker is None:
            return None
        precision = entry.get("precision") or {}
        return Listing(
            ticker=ticker,
            native_symbol=str(entry["symbol"]),
            status=ListingStatus.HALTED if entry.get("active") is False else ListingStatus.ACTIVE,
            price_increment=self._step(precision.get("price")),
            amount_increment=self._step(precision.get("amount")),
        )

    def _step(self, value: object) -> Any:
        if value is None or self._client.precisionMode == _PRECISION_TICK_SIZE:
            return increment(value)
        if self._client.precisionMode == _PRECISION_DECIMAL_PLACES:
            return increment(f"1e-{value}")
        return None


def _fixed_timeframes(timeframes: Mapping[str, Any]) -> dict[int, str]:
    """Return timeframes by seconds; months have none, and where weeks begin is not known."""
    known = {}
    for name in timeframes:
        try:
            period_seconds = parse_period(name)
        except PeerError:
            continue
        if period_seconds % WEEK_SECONDS:
            known[period_seconds] = name
    return known


def _bar(row: list[Any]) -> Bar:
    return Bar(
        start_ns=from_unit(whole(row[0]), "ms"),
        open=number(row[1]),
        high=number(row[2]),
        low=number(row[3]),
        close=number(row[4]),
        volume=number(row[5]),
    )
