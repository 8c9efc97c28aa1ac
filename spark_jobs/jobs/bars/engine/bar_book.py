"""The bars of all tickers, and their state as bytes."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from relay.errors import StorageError
from spark_jobs.jobs.bars.engine.ticker_bars import TickerBars
from spark_jobs.jobs.bars.engine.values import BarRules, BarTrade, Beat, GapNotice, MadeBar, Recompute

__all__ = ["BarBook"]

_MAGIC = b"MRBARS3\n"
_DECODER = msgspec.json.Decoder(dict[str, TickerBars])
_OLDER: dict[bytes, Callable[[bytes], Any]] = {
    # Each bucket with the whole of its last bar, in a form that sums outgrow, and in one that they do not.
    b"MRBARS1\n": msgspec.msgpack.decode,
    b"MRBARS2\n": msgspec.json.decode,
}


class BarBook:
    """Takes the log's records of every ticker, each ticker's in their order.

    Args:
        rules: bounds.
        periods: which periods a ticker's bars are made for, in seconds.
    """

    def __init__(self, rules: BarRules, periods: Callable[[str], Iterable[int]]) -> None:
        self._rules, self._periods = rules, periods
        self._tickers: dict[str, TickerBars] = {}
        self._moving: set[str] = set()
        self._down: set[str] = set()

    @property
    def tickers(self) -> Mapping[str, TickerBars]:
        """State by ticker."""
        return self._tickers

    def want(self, ticker: str) -> None:
        """Ask anew which periods a ticker's bars are made for."""
        state = self._tickers.get(ticker)
        if state is not None:
            state.want(self._periods(ticker))

    def doubt(self, ticker: str) -> None:
        """Records of a ticker are missing between those that were taken and those that come."""
        for series in self._tickers[ticker].series.values():
            series.doubt()

    def move(self, ticker: str) -> None:
        """A ticker's records lie in another partition from here on: its offsets so far mean nothing there."""
        state = self._tickers[ticker]
        state.trade_offset = state.gap_offset = -1

    def forget(self, ticker: str) -> None:
        """Make a ticker's bars no longer; it begins anew with its next record."""
        self._tickers.pop(ticker, None)
        self._moving.discard(ticker)
        self._down.discard(ticker)

    def on_trade(self, ticker: str, trade: BarTrade) -> None:
        """Take a trade."""
        self._moving.add(ticker)
        self._of(ticker).on_trade(trade, self._rules)

    def on_gap(self, ticker: str, gap: GapNotice, *, offset: int) -> None:
        """Take a notice of a hole."""
        self._of(ticker).on_gap(gap, offset=offset)

    def on_beat(self, ticker: str, beat: Beat) -> list[MadeBar | Recompute]:
        """Take a beat; return what is final by it."""
        state = self._of(ticker)
        made = state.on_beat(beat, self._rules)
        if state.is_down:
            self._down.add(ticker)
        else:
            self._down.discard(ticker)
        return made

    def on_clock(self, now_ns: int) -> list[tuple[int, MadeBar | Recompute]]:
        """Return what is over by the clock (ns) of feeds that have stopped, with the offset of their last word."""
        made: list[tuple[int, MadeBar | Recompute]] = []
        for ticker in sorted(self._down):
            state = self._tickers[ticker]
            offset = max(state.trade_offset, state.gap_offset)
            made += [(offset, one) for one in state.on_clock(now_ns, self._rules)]
        return made

    def running(self) -> list[MadeBar]:
        """Return all open bars that have changed since the last call."""
        moving, self._moving = sorted(self._moving), set()
        return [bar for ticker in moving for bar in self._tickers[ticker].running()]

    def encode(self) -> bytes:
        """Return the state: magic, CRC-32 of the rest (u32 LE), JSON: exact sums outgrow 64 bits."""
        body = msgspec.json.encode(self._tickers)
        return _MAGIC + zlib.crc32(body).to_bytes(4, "little") + body

    def restore(self, state: bytes) -> None:
        """Take over an encoded state.

        Raises:
            StorageError: it is cut short, damaged, or of another version.
        """
        head, body = state[: len(_MAGIC)], state[len(_MAGIC) + 4 :]
        if head != _MAGIC and head not in _OLDER:
            raise StorageError(f"expected the state of bars to begin with {_MAGIC!r}, got {head!r}")
        if zlib.crc32(body).to_bytes(4, "little") != state[len(_MAGIC) : len(_MAGIC) + 4]:
            raise StorageError("the state of bars is damaged: its checksum does not fit")
        try:
            self._tickers = _DECODER.decode(body if head == _MAGIC else _as_now(_OLDER[head](body)))
        except (msgspec.MsgspecError, ValueError) as error:
            raise StorageError(f"the state of bars is not as this version writes it: {error}") from error
        self._moving = set(self._tickers)
        self._down = {ticker for ticker, state in self._tickers.items() if state.is_down}
        for ticker in self._tickers:
            self.want(ticker)

    def _of(self, ticker: str) -> TickerBars:
        state = self._tickers.get(ticker)
        if state is None:
            state = self._tickers[ticker] = TickerBars(ticker)
            state.want(self._periods(ticker))
        return state


def _as_now(tickers: dict[str, Any]) -> bytes:
    """Return a state of an older form in the present one."""
    for ticker in tickers.values():
        for series in ticker["series"].values():
            for bucket in (*series["open"].values(), *series["closed"].values()):
                if bucket["published"] is not None:
                    bar = MadeBar(*bucket["published"])
                    bucket["published"] = (bar.trades, bar.incomplete, bar.revision)
    return msgspec.json.encode(tickers)
