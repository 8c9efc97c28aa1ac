"""Makes OHLCBatch records of settled bars: exact scales, bounded size, and what each batch proves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ingestors.engine.bars_reader import Settled
from ingestors.engine.values import Bar
from relay.protocol.codes import ErrorCode
from relay.protocol.envelope import LOG_RECORD_BYTES_MAX, LOG_RECORD_ROWS_MAX
from relay.protocol.periods import NANOSECONDS
from relay.protocol.ranges import Range, intersect, to_wire, union
from relay.protocol.scaled import (
    INT64_MAX,
    decimals_needed,
    denominator_decimals,
    plain_text,
    to_scaled,
)
from relay.protocol.v1 import market_pb2

__all__ = ["BatchLimits", "BatchWriter", "JobIdentity", "first_bars"]

_ENVELOPE_SLACK_BYTES = 64
_MESSAGE_CHARACTERS_MAX = 500


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Bounds of one log record."""

    rows_max: int = LOG_RECORD_ROWS_MAX
    bytes_max: int = LOG_RECORD_BYTES_MAX


@dataclass(frozen=True, slots=True)
class JobIdentity:
    """What every batch of an attempt says about the job."""

    job_id: str
    attempt: int
    request_id: str
    client_id: str
    ticker: str
    period_seconds: int
    span: Range


@dataclass(slots=True)
class _Pending:
    bars: list[Bar] = field(default_factory=list)
    covered: list[Range] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class BatchWriter:
    """Collects bars and cuts them into batches; counts batches and rows of one attempt.

    Args:
        job: identity written into each batch.
        market: record of the market; its denominators are replaced by those that a batch's rows need.
        limits: bounds of one record.
    """

    def __init__(self, job: JobIdentity, market: market_pb2.Market, *, limits: BatchLimits) -> None:
        self._job = job
        self._market = market
        self._limits = limits
        self._pending = _Pending()
        self._next_index = 0
        self.rows = 0
        """Bars taken so far, pending ones included."""
        self.problems = 0
        """Rows left out so far."""
        self.first_problem = ""

    @property
    def pending_rows(self) -> int:
        """Bars that wait for a batch."""
        return len(self._pending.bars)

    @property
    def has_pending(self) -> bool:
        """Whether anything waits for a batch."""
        return bool(self._pending.bars or self._pending.covered or self._pending.problems)

    def add(self, settled: Settled) -> None:
        """Take a settled stretch of the wanted period."""
        self._pending.bars.extend(settled.bars)
        self._pending.covered = union([*self._pending.covered, *settled.covered])
        reasons = [*settled.bad.values(), *settled.unplaced]
        self._pending.problems.extend(reasons)
        self.rows += len(settled.bars)
        self.problems += len(reasons)
        self.first_problem = self.first_problem or next(iter(reasons), "")

    def flush(self, now_ns: int) -> list[market_pb2.OHLCBatch]:
        """Return what waits as batches, none of them the last."""
        batches = [self._batch(part, now_ns) for part in self._cut(self._take())]
        return [self._numbered(part) for batch in batches for part in self._split(batch)]

    def finish(
        self, now_ns: int, *, status: market_pb2.OHLCBatch.Status, code: str = "", message: str = ""
    ) -> list[market_pb2.OHLCBatch]:
        """Return what waits as batches, the last one marked with the total and the attempt's status.

        An ERROR is a batch of its own without rows, after the rows that were fetched before it.
        """
        batches = self.flush(now_ns) if self.has_pending else []
        if not batches or status == market_pb2.OHLCBatch.ERROR:
            batches.append(self._numbered(self._batch(_Pending(), now_ns)))
        last = batches[-1]
        last.is_last = True
        last.total_rows = self.rows
        last.status = status
        last.error_code = code
        last.error_message = message[:_MESSAGE_CHARACTERS_MAX]
        return batches

    def _take(self) -> _Pending:
        pending, self._pending = self._pending, _Pending()
        return pending

    def _cut(self, pending: _Pending) -> Iterable[_Pending]:
        """Cut so that each part keeps the row bound and one scale at which all its rows are exact."""
        groups = _groups_of_one_scale(pending.bars, self._limits.rows_max)
        yield from self._with_ranges(groups, pending)

    def _with_ranges(self, groups: Sequence[list[Bar]], pending: _Pending) -> Iterable[_Pending]:
        if not groups:
            yield _Pending([], pending.covered, pending.problems)
            return
        cut_ns = 0
        for index, group in enumerate(groups):
            is_last = index + 1 == len(groups)
            end_ns = 2**63 if is_last else groups[index + 1][0].start_ns
            covered = intersect(Range(cut_ns, end_ns), pending.covered)
            yield _Pending(group, covered, pending.problems if is_last else [])
            cut_ns = end_ns

    def _batch(self, part: _Pending, now_ns: int) -> market_pb2.OHLCBatch:
        job = self._job
        price_decimals = _price_decimals(part.bars)
        batch = market_pb2.OHLCBatch(
            request_id=job.request_id,
            client_id=job.client_id,
            ticker=job.ticker,
            period_seconds=job.period_seconds,
            start_time=job.span.start_ns,
            end_time=job.span.end_ns,
            job_id=job.job_id,
            attempt=job.attempt,
            fetched_at=now_ns,
            rows=[self._row(bar, price_decimals) for bar in part.bars],
            covered=to_wire(part.covered),
            market=self._scaled_market(part.bars, price_decimals),
        )
        if part.problems:
            batch.status = market_pb2.OHLCBatch.PARTIAL
            batch.error_code = ErrorCode.BAD_ANSWER
            batch.error_message = f"{len(part.problems)} rows left out; the first: {part.problems[0]}"[
                :_MESSAGE_CHARACTERS_MAX
            ]
        return batch

    def _row(self, bar: Bar, price_decimals: int) -> market_pb2.OHLC:
        row = market_pb2.OHLC(
            ticker=self._job.ticker,
            timestamp=bar.start_ns,
            period_seconds=self._job.period_seconds,
            open=to_scaled(bar.open, price_decimals),
            high=to_scaled(bar.high, price_decimals),
            low=to_scaled(bar.low, price_decimals),
            close=to_scaled(bar.close, price_decimals),
            volume=plain_text(bar.volume),
            trades=bar.trades,
            is_final=True,
            source=market_pb2.OHLC.Source.Name(bar.source),
            price_decimals=price_decimals,
            incomplete=bar.incomplete,
            first_trade_id=bar.first_trade_id,
            last_trade_id=bar.last_trade_id,
        )
        if bar.quote_volume is not None:
            row.quote_volume = plain_text(bar.quote_volume)
        if bar.buy_volume is not None:
            row.buy_volume = plain_text(bar.buy_volume)
        if bar.sell_volume is not None:
            row.sell_volume = plain_text(bar.sell_volume)
        return row

    def _scaled_market(self, bars: Sequence[Bar], price_decimals: int) -> market_pb2.Market:
        market = market_pb2.Market()
        market.CopyFrom(self._market)
        if bars:
            amounts = decimals_needed(bar.volume for bar in bars)
            quotes = decimals_needed(bar.quote_volume for bar in bars if bar.quote_volume is not None)
            market.tick_denom = 10**price_decimals
            market.base_denom = 10 ** max(amounts, denominator_decimals(market.base_denom or 1))
            market.quote_denom = 10 ** max(quotes, denominator_decimals(market.quote_denom or 1))
        return market

    def _split(self, batch: market_pb2.OHLCBatch) -> list[market_pb2.OHLCBatch]:
        """Halve a batch until its record fits."""
        if batch.ByteSize() + _ENVELOPE_SLACK_BYTES <= self._limits.bytes_max or len(batch.rows) < 2:
            return [batch]
        middle = len(batch.rows) // 2
        cut_ns = batch.rows[middle].timestamp
        covered = [Range(r.start, r.end) for r in batch.covered]
        left, right = market_pb2.OHLCBatch(), market_pb2.OHLCBatch()
        left.CopyFrom(batch)
        right.CopyFrom(batch)
        del left.rows[middle:], right.rows[:middle]
        for part, span in ((left, Range(0, cut_ns)), (right, Range(cut_ns, 2**63))):
            del part.covered[:]
            part.covered.extend(to_wire(intersect(span, covered)))
        return [*self._split(left), *self._split(right)]

    def _numbered(self, batch: market_pb2.OHLCBatch) -> market_pb2.OHLCBatch:
        batch.batch_index = self._next_index
        self._next_index += 1
        return batch


def first_bars(settled: Settled, count: int, *, period_seconds: int) -> Settled:
    """Return the stretch up to the end of its ``count``-th bar: what a row limit leaves of it."""
    kept = settled.bars[:count]
    end_ns = kept[-1].start_ns + period_seconds * NANOSECONDS if kept else settled.span.start_ns
    span = Range(settled.span.start_ns, end_ns)
    bad = {b: reason for b, reason in settled.bad.items() if b < end_ns}
    return Settled(span, kept, bad, tuple(intersect(span, settled.covered)), settled.unplaced)


def _price_decimals(bars: Sequence[Bar]) -> int:
    return decimals_needed(price for bar in bars for price in (bar.open, bar.high, bar.low, bar.close))


def _groups_of_one_scale(bars: Sequence[Bar], rows_max: int) -> list[list[Bar]]:
    groups: list[list[Bar]] = []
    decimals, highest = 0, 0
    for bar in bars:
        need = max(decimals, _price_decimals((bar,)))
        top = max(highest, _whole(bar))
        if not groups or len(groups[-1]) >= rows_max or top * 10**need > INT64_MAX:
            groups.append([])
            need, top = _price_decimals((bar,)), _whole(bar)
        groups[-1].append(bar)
        decimals, highest = need, top
    return groups


def _whole(bar: Bar) -> int:
    """Return the bar's highest price, rounded up to a whole number."""
    return int(bar.high) + 1
