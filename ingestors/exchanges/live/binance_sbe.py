"""Binance spot trade streams in Simple Binary Encoding: the same trades and ids as JSON ``@trade``, several a message.

::

    0   blockLength u16 = 18 | templateId u16 = 10000 | schemaId u16 = 1 | version u16       header
    8   eventTime i64 us | transactTime i64 us | priceExponent i8 | qtyExponent i8           root
    26  blockLength u16 = 25 | numInGroup u32                                                trades
    32  id i64 | price i64 | qty i64 | isBuyerMaker u8                                       each of them
    ..  length u8 | symbol                                                                   UTF-8, upper case

Requests, their answers and the announcement of a planned stop are JSON here as well. A later version of the schema may
have longer blocks, which are read up to what is known; another schema id is another format, and refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ingestors.engine.feed_values import BadTrade, FeedEvent, LiveTrade, Trades
from ingestors.engine.values import Listing
from ingestors.exchanges.live.binance import BinanceProtocol
from ingestors.exchanges.live.exact import BAD, Scale, rescaled
from relay.protocol.times import TIME_NS_MAX, TIME_NS_MIN
from relay_accel import sbe

__all__ = ["SCHEMA_FILE", "BinanceSbeProtocol"]

SCHEMA_FILE = Path(__file__).with_name("binance_trades.xml")
_TRADES = sbe.load(SCHEMA_FILE).messages["TradesStreamEvent"]
_EXCERPT_BYTES = 64
_MICROSECOND_NS = 1_000
_MAKERS = (0, 1)

_Row = tuple[int, int, int, int | None]
"""Id, price, amount, and 1 where the buyer was the maker, else 0."""


class BinanceSbeProtocol(BinanceProtocol):
    """See :class:`~ingestors.exchanges.live.port.LiveProtocol`; single trades only, because there are no aggregates.

    Cost: about that of JSON for a message with one trade, and a third as much for each further one in it.
    """

    def __init__(self) -> None:
        super().__init__(stream="trade")

    def endpoint(self, listings: Sequence[Listing]) -> str:  # noqa: ARG002 - the port's signature
        """See the port; times are microseconds without asking."""
        return "/ws"

    def on_message(self, data: bytes, received_ns: int) -> Sequence[FeedEvent]:
        """See the port."""
        # JSON has no zero byte where a header of this schema has one.
        if data.startswith(b"{") and data[5:6] != b"\0":
            return super().on_message(data, received_ns)
        try:
            _, time_us, price_exponent, amount_exponent, rows, symbol = _TRADES.decode(data).to_tuple()
        except sbe.DecodeError as error:
            return (BadTrade("", f"unreadable message: {error}; {data[:_EXCERPT_BYTES].hex()}"),)
        scale = self._scales.get(symbol)
        if scale is None:
            return ()
        # As in JSON: the time of the trade, not the later one of the event.
        return _events(rows, scale, time_us * _MICROSECOND_NS, (-price_exponent, -amount_exponent), received_ns)


def _events(
    rows: Sequence[_Row], scale: Scale, time_ns: int, decimals: tuple[int, int], received_ns: int
) -> Sequence[FeedEvent]:
    trades: list[LiveTrade] = []
    bad: list[BadTrade] = []
    price_decimals, amount_decimals = decimals
    is_in_time = TIME_NS_MIN <= time_ns <= TIME_NS_MAX
    for number, price, amount, maker in rows:
        try:
            if number < 0 or not is_in_time or maker not in _MAKERS:
                raise ValueError(_wrong(number, time_ns, maker))
            price_units, price_shown = rescaled(price, price_decimals, scale.price_decimals)
            units, shown = rescaled(amount, amount_decimals, scale.amount_decimals)
        except BAD as error:
            bad.append(BadTrade(scale.ticker, f"{error}; trade {number}"))
            continue
        # The buyer was the maker, so the taker sold.
        trades.append(LiveTrade(number, time_ns, price_units, units, price_shown, shown, maker == 0, received_ns))
    return [Trades(scale.ticker, trades), *bad] if trades else bad


def _wrong(number: int, time_ns: int, maker: int | None) -> str:
    return (
        "expected an id from 0, a time of 1985 to 2100 and 0 or 1 for whether the buyer was the maker, "
        f"got {number}, {time_ns} ns and {maker}"
    )
