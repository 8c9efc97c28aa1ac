"""One attempt at a history job: answers of the exchange in, commands out.

::

    start ─► FetchClock ─► legs: FetchBars | FetchTrades ─► EmitBatch … ─► Finish
                 ▲ Wait       └─► FindListing (nothing at the beginning: is it before the listing?)
"""

from __future__ import annotations

from ingestors.engine.bars_reader import BarsReader, BarsWanted, ReadCounts, Settled
from ingestors.engine.batches import BatchLimits, BatchWriter, JobIdentity, first_bars
from ingestors.engine.commands import (
    Command,
    EmitBatch,
    FetchBars,
    FetchClock,
    FetchTrades,
    FindListing,
    Finish,
    Wait,
)
from ingestors.engine.plan import Leg, LegKind, plan_legs
from ingestors.engine.rollup import Roller
from ingestors.engine.trades_reader import TradesReader
from ingestors.engine.values import BarsPage, Capabilities, TradesPage
from relay.errors import PeerError
from relay.protocol.codes import ErrorCode
from relay.protocol.periods import NANOSECONDS, align_down_ns, align_up_ns
from relay.protocol.ranges import Range, subtract
from relay.protocol.times import format_ns
from relay.protocol.v1 import market_pb2

__all__ = ["HistoryEngine"]

FLUSH_INTERVAL_NS = 5 * NANOSECONDS
"""Rows wait no longer for a fuller batch, so that progress is durable."""
CLOSING_WAIT_NS = 5 * NANOSECONDS
"""A bar that closes this soon is waited for, once: the exchange's clock may lag the one that clipped the request."""


class HistoryEngine:
    """Drives one attempt; every method returns commands, the last of which is a question or :class:`Finish`.

    With a row limit, ranges that earlier attempts delivered are read again: how many rows they held is not
    known here, and rows are merged by their key anyway.

    Args:
        job: identity and range of the attempt.
        market: record of the market.
        capabilities: of its exchange.
        delivered: ranges of earlier attempts, skipped.
        limit: the first so many bars, then stop.
        limits: bounds of one log record.
    """

    def __init__(
        self,
        job: JobIdentity,
        *,
        market: market_pb2.Market,
        capabilities: Capabilities,
        delivered: tuple[Range, ...] = (),
        limit: int | None = None,
        limits: BatchLimits | None = None,
    ) -> None:
        self._job = job
        self._capabilities = capabilities
        self._limit = limit
        self._period_ns = job.period_seconds * NANOSECONDS
        self._writer = BatchWriter(job, market, limits=limits or BatchLimits())
        self._limits = limits or BatchLimits()
        whole = Range(align_up_ns(job.span.start_ns, job.period_seconds), job.span.end_ns)
        self._whole = Range(whole.start_ns, max(whole.start_ns, align_up_ns(whole.end_ns, job.period_seconds)))
        self._delivered = () if limit is not None else delivered
        self._legs: list[Leg] = []
        self._reader: BarsReader | TradesReader | None = None
        self._roller: Roller | None = None
        self._held: Settled | None = None
        self._leg = Leg(LegKind.BARS, job.period_seconds, Range(0, 0))
        self._settled_ns = 0
        self._listed_ns: int | None = None
        self._asked_listing = self._waited = False
        self._server_ns = 0
        self._flushed_ns = 0
        self._before_listing = self._unclosed = False
        self.counts = ReadCounts()

    @property
    def rows(self) -> int:
        """Bars fetched so far by this attempt."""
        return self._writer.rows

    def start(self, now_ns: int) -> list[Command]:
        """Begin: ask for the clock by which bars are closed."""
        self._flushed_ns = now_ns
        return [FetchClock(self._whole.end_ns)]

    def on_clock(self, server_ns: int, now_ns: int) -> list[Command]:
        """Take the exchange's time, plan the legs and ask for the first page."""
        missing_ns = self._whole.end_ns - server_ns
        if 0 < missing_ns <= CLOSING_WAIT_NS and not self._waited:
            self._waited = True
            return [Wait(missing_ns), FetchClock(self._whole.end_ns)]
        self._server_ns = server_ns
        closed_ns = min(self._whole.end_ns, align_down_ns(server_ns, self._job.period_seconds))
        self._unclosed = closed_ns < self._whole.end_ns
        spans = subtract(Range(self._whole.start_ns, closed_ns), self._aligned(self._delivered))
        try:
            for span in spans:
                self._legs += plan_legs(span, self._job.period_seconds, self._capabilities, server_ns=server_ns)
        except PeerError as error:
            return self.on_failure(error.code, str(error), now_ns)
        return self._next(now_ns)

    def on_bars(self, page: BarsPage, wanted: BarsWanted, now_ns: int) -> list[Command]:
        """Take an answer to :class:`FetchBars`."""
        assert isinstance(self._reader, BarsReader)  # noqa: S101 - only asked while such a leg is read
        try:
            settled = self._reader.on_page(page, wanted)
        except PeerError as error:
            return self.on_failure(error.code, str(error), now_ns)
        if self._reader.unserved is not None:
            self._reroute(self._reader.unserved)
        elif settled is None and self._reader.begins_empty and not self._asked_listing:
            return [FindListing(self._settled_ns)]
        return self._on_settled(settled, now_ns)

    def on_trades(self, page: TradesPage, now_ns: int) -> list[Command]:
        """Take an answer to :class:`FetchTrades`."""
        assert isinstance(self._reader, TradesReader)  # noqa: S101 - only asked while such a leg is read
        try:
            settled = self._reader.on_page(page)
        except PeerError as error:
            return self.on_failure(error.code, str(error), now_ns)
        if self._reader.wants_listing and not self._asked_listing:
            return [FindListing(self._settled_ns)]
        return self._on_settled(settled, now_ns)

    def on_listing(self, listed_ns: int | None, now_ns: int) -> list[Command]:
        """Take an answer to :class:`FindListing`; None when the exchange does not know."""
        self._asked_listing = True
        self._listed_ns = listed_ns
        held, self._held = self._held, None
        if listed_ns is not None and self._reader is not None:
            self._start_at_listing(self._reader, listed_ns)
        return self._next(now_ns) if held is None else self._accept(held, now_ns)

    def on_failure(self, code: str, message: str, now_ns: int) -> list[Command]:
        """End the attempt with the error marker; rows fetched before it are kept."""
        batches = self._writer.finish(now_ns, status=market_pb2.OHLCBatch.ERROR, code=code, message=message)
        return [*map(EmitBatch, batches), Finish(False, self._writer.rows, code, message)]

    def flush(self, now_ns: int) -> list[EmitBatch]:
        """Return what has been settled but not emitted, for an attempt that is given up."""
        return [EmitBatch(batch) for batch in self._writer.flush(now_ns)] if self._writer.has_pending else []

    def _next(self, now_ns: int) -> list[Command]:
        """Ask for the next page of the current leg, open the next leg, or end."""
        while self._reader is None or self._reader.is_done:
            if not self._legs or self._is_full():
                return self._end(now_ns)
            self._open(self._legs.pop(0))
        pause_ns = self._reader.take_pause_ns()
        return [*self._due_batches(now_ns), *([Wait(pause_ns)] if pause_ns else []), self._question()]

    def _question(self) -> Command:
        assert self._reader is not None  # noqa: S101 - _next opened it
        if isinstance(self._reader, TradesReader):
            return FetchTrades(self._reader.wanted())
        hint = None
        if self._limit is not None and self._roller is None:
            hint = self._limit - self._writer.rows
        return FetchBars(self._reader.wanted(rows_hint=hint))

    def _open(self, leg: Leg) -> None:
        self._leg, self._settled_ns = leg, leg.span.start_ns
        if leg.kind is LegKind.TRADES:
            self._reader, self._roller = TradesReader(leg, counts=self.counts), None
        else:
            self._reader = BarsReader(leg, self._capabilities, counts=self.counts)
            is_native = leg.fetch_period_seconds == self._job.period_seconds
            self._roller = None if is_native else Roller(self._job.period_seconds, start_ns=leg.span.start_ns)
        if self._listed_ns is not None:
            self._start_at_listing(self._reader, self._listed_ns)

    def _start_at_listing(self, reader: BarsReader | TradesReader, listed_ns: int) -> None:
        if isinstance(reader, TradesReader):
            reader.note_listing(listed_ns)
        first_ns = self._first_bucket_ns(listed_ns)
        if first_ns > self._settled_ns:
            self._before_listing = True
            reader.skip_to(first_ns)

    def _reroute(self, unserved: Range) -> None:
        """Read by trades what the candle endpoint turned out not to reach, then plan the rest anew."""
        edge_ns = min(align_up_ns(unserved.end_ns, self._job.period_seconds), self._leg.span.end_ns)
        rest = Range(edge_ns, self._leg.span.end_ns)
        legs = [Leg(LegKind.TRADES, self._job.period_seconds, Range(self._settled_ns, edge_ns))]
        if rest:
            legs.append(Leg(LegKind.BARS, self._leg.fetch_period_seconds, rest))
        self._legs[:0] = legs
        self._reader = self._roller = None

    def _on_settled(self, settled: Settled | None, now_ns: int) -> list[Command]:
        if settled is not None and self._roller is not None:
            settled = self._roller.add(settled)
        if settled is None:
            return self._next(now_ns)
        self._settled_ns = settled.span.end_ns
        first_ns = settled.bars[0].start_ns if settled.bars else settled.span.end_ns
        if first_ns > settled.span.start_ns and not self._asked_listing and not settled.bad:
            self._held = settled
            return [FindListing(settled.span.start_ns)]
        self._asked_listing = True
        return self._accept(settled, now_ns)

    def _accept(self, settled: Settled, now_ns: int) -> list[Command]:
        settled = self._without_unlisted(settled)
        if self._limit is not None and self._writer.rows + len(settled.bars) >= self._limit:
            settled = first_bars(settled, self._limit - self._writer.rows, period_seconds=self._job.period_seconds)
        self._writer.add(settled)
        return self._end(now_ns) if self._is_full() else self._next(now_ns)

    def _without_unlisted(self, settled: Settled) -> Settled:
        """Take back the proof of what lies before the listing: nothing can be known about it."""
        if self._listed_ns is None or self._first_bucket_ns(self._listed_ns) <= settled.span.start_ns:
            return settled
        self._before_listing = True
        first_ns = settled.bars[0].start_ns if settled.bars else 2**63
        listed = [Range(min(self._first_bucket_ns(self._listed_ns), first_ns), 2**63)]
        covered = [r for part in settled.covered for r in subtract(part, subtract(part, listed))]
        return Settled(settled.span, settled.bars, settled.bad, tuple(covered), settled.unplaced)

    def _first_bucket_ns(self, listed_ns: int) -> int:
        return align_down_ns(listed_ns, self._job.period_seconds)

    def _is_full(self) -> bool:
        return self._limit is not None and self._writer.rows >= self._limit

    def _due_batches(self, now_ns: int) -> list[Command]:
        is_due = self._writer.pending_rows >= self._limits.rows_max or (
            self._writer.has_pending and now_ns - self._flushed_ns >= FLUSH_INTERVAL_NS
        )
        if not is_due:
            return []
        self._flushed_ns = now_ns
        return [EmitBatch(batch) for batch in self._writer.flush(now_ns)]

    def _end(self, now_ns: int) -> list[Command]:
        status, code, message = self._verdict()
        batches = self._writer.finish(now_ns, status=status, code=code, message=message)
        return [*map(EmitBatch, batches), Finish(True, self._writer.rows, code, message)]

    def _verdict(self) -> tuple[market_pb2.OHLCBatch.Status, str, str]:
        if self._writer.problems and self._writer.problems == self.counts.unproven and not self._writer.rows:
            text = f"no bars in the range, and no answer that proves it: {self._writer.first_problem}"
            return market_pb2.OHLCBatch.NOT_FOUND, ErrorCode.NO_DATA, text
        if self._writer.problems:
            text = f"{self._writer.problems} rows left out; the first: {self._writer.first_problem}"
            return market_pb2.OHLCBatch.PARTIAL, ErrorCode.BAD_ANSWER, text
        if self._before_listing and self._listed_ns is not None:
            text = f"the exchange has data since {format_ns(self._listed_ns)}; ask from there on"
            return market_pb2.OHLCBatch.PARTIAL, ErrorCode.BEFORE_LISTING, text
        if self._unclosed and not self._is_full():
            text = f"bars are closed up to the exchange's time {format_ns(self._server_ns)}; ask for the rest later"
            return market_pb2.OHLCBatch.PARTIAL, ErrorCode.NOT_CLOSED_YET, text
        if not self._writer.rows and not self._delivered:
            text = "no bars in the range; the answers that hold bars around it agree"
            return market_pb2.OHLCBatch.NOT_FOUND, ErrorCode.NO_DATA, text
        return market_pb2.OHLCBatch.OK, "", ""

    def _aligned(self, ranges: tuple[Range, ...]) -> list[Range]:
        """Return the whole buckets inside the ranges."""
        period = self._job.period_seconds
        return [Range(align_up_ns(r.start_ns, period), align_down_ns(r.end_ns, period)) for r in ranges]
