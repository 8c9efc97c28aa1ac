"""What the history engine tells its driver to do."""

from __future__ import annotations

from dataclasses import dataclass

from ingestors.engine.bars_reader import BarsWanted
from ingestors.engine.trades_reader import TradesWanted
from relay.protocol.v1 import market_pb2

__all__ = ["Command", "EmitBatch", "FetchBars", "FetchClock", "FetchTrades", "FindListing", "Finish", "Wait"]


@dataclass(frozen=True, slots=True)
class FetchClock:
    """Ask the exchange's time; a known time at or after ``enough_ns`` is as good."""

    enough_ns: int


@dataclass(frozen=True, slots=True)
class FetchBars:
    """Ask for candles, answer with :meth:`HistoryEngine.on_bars`."""

    wanted: BarsWanted


@dataclass(frozen=True, slots=True)
class FetchTrades:
    """Ask for trades, answer with :meth:`HistoryEngine.on_trades`."""

    wanted: TradesWanted


@dataclass(frozen=True, slots=True)
class FindListing:
    """Ask since when there is data (or any time before ``before_ns`` at which there was)."""

    before_ns: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Let time pass, then do what follows."""

    duration_ns: int


@dataclass(frozen=True, slots=True)
class EmitBatch:
    """Append a record to the log; the last one only after all others are acknowledged."""

    batch: market_pb2.OHLCBatch


@dataclass(frozen=True, slots=True)
class Finish:
    """The attempt is over once all its records are acknowledged."""

    success: bool
    rows: int
    code: str = ""
    message: str = ""


Command = FetchClock | FetchBars | FetchTrades | FindListing | Wait | EmitBatch | Finish
