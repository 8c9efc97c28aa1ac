"""Markets as exchanges list them, folded: what holds now, what has changed and when, and what has vanished.

::

    record of a market ── facts differ from the present row ──► a change, valid from its updated_at
    all records of one listing are there ── a market of the exchange is in none ──► it becomes DELISTED

A market is never deleted, and an older record never replaces a newer one. Pure; specification:
``proto/spec/0004-tables.md``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from relay.tables.schema import SYMBOL_COLUMNS

__all__ = ["FACTS", "MergedListings", "merge_listings"]

FACTS = (
    "exchange",
    "native_symbol",
    "base_asset",
    "quote_asset",
    "settle_asset",
    "market_type",
    "status",
    "tick_denom",
    "base_denom",
    "quote_denom",
    "min_amount",
    "min_notional",
    "price_increment",
    "amount_increment",
    "supported_periods",
    "alias_of",
)
"""What is a change when it differs. Since when there is history is what we know, not what the exchange says."""
_DELISTED = "DELISTED"
_VANISHED_FEW = 10
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class MergedListings:
    """What a batch of market records makes of the table.

    Attributes:
        present: one row a market, ascending by ticker; columns of ``market.symbol_metadata``.
        changes: rows of ``market.symbol_changes`` in the order they happened, each at the place of the record that
            made it known.
        doubted: listings that lack more than half of an exchange's markets (more than ten): nothing is delisted by
            them, because that is an exchange's failure, not the end of its markets.
    """

    present: pa.Table
    changes: pa.Table
    doubted: tuple[str, ...]


def merge_listings(existing: pa.Table, incoming: pa.Table) -> MergedListings:
    """Fold market records into the present rows.

    Args:
        existing: every present row of the exchanges that ``incoming`` is about.
        incoming: records in the columns of ``market.symbol_metadata``, in any order.

    Cost: a Python object for each row; some thousand rows a listing, once a day.
    """
    present: dict[str, Row] = {row["ticker"]: row for row in existing.to_pylist()}
    records = sorted(incoming.to_pylist(), key=_order)
    changes: list[Row] = []
    for record in records:
        _take(record, present, changes)
    listings = _listings(records)
    doubted = [listing.listing_id for listing in listings if not _delist_vanished(listing, present, changes)]
    rows = [present[ticker] for ticker in sorted(present)]
    return MergedListings(_table(rows), _table(changes), tuple(doubted))


@dataclass(frozen=True, slots=True)
class _Listing:
    """One answer of an exchange; ``place`` is that of its last record in this batch."""

    exchange: str
    listing_id: str
    count: int
    place: tuple[int, int]


def _order(row: Row) -> tuple[int, int, int]:
    return row["updated_at_ns"], row["log_partition"], row["log_offset"]


def _take(record: Row, present: dict[str, Row], changes: list[Row]) -> None:
    before = present.get(record["ticker"])
    if before is not None and _order(before) >= _order(record):
        return
    place = (record["log_partition"], record["log_offset"])
    if before is not None and before["valid_from_ns"] is None:
        # A row of before changes were kept: what it said is the first thing known.
        before = {**before, "valid_from_ns": before["updated_at_ns"]}
        changes.append(_placed(before, place))
    is_same = before is not None and all(before[name] == record[name] for name in FACTS)
    since_ns = before["valid_from_ns"] if before is not None and is_same else record["updated_at_ns"]
    present[record["ticker"]] = row = {**record, "valid_from_ns": since_ns}
    if not is_same:
        changes.append(row)


def _listings(records: Iterable[Row]) -> list[_Listing]:
    """Return the listings of a batch, oldest first."""
    found: dict[str, _Listing] = {}
    for row in records:
        if row["listing_id"] and row["listing_count"]:
            place = max((row["log_partition"], row["log_offset"]), _place_of(found.get(row["listing_id"])))
            listing = _Listing(row["exchange"], row["listing_id"], row["listing_count"], place)
            found.pop(listing.listing_id, None)
            found[listing.listing_id] = listing
    return list(found.values())


def _place_of(listing: _Listing | None) -> tuple[int, int]:
    return listing.place if listing is not None else (-1, -1)


def _delist_vanished(listing: _Listing, present: dict[str, Row], changes: list[Row]) -> bool:
    """Delist what a listing lacks, once all of its records are there; return False when it is not believed."""
    of_exchange = [row for row in present.values() if row["exchange"] == listing.exchange]
    members = [row for row in of_exchange if row["listing_id"] == listing.listing_id]
    if len(members) != listing.count:
        return True
    at_ns = max(row["updated_at_ns"] for row in members)
    alive = [row for row in of_exchange if row["status"] != _DELISTED]
    vanished = [r for r in alive if r["listing_id"] != listing.listing_id and r["updated_at_ns"] <= at_ns]
    if len(vanished) > _VANISHED_FEW and 2 * len(vanished) > len(alive):
        return False
    for row in sorted(vanished, key=lambda row: str(row["ticker"])):
        if row["valid_from_ns"] is None:
            changes.append(_placed({**row, "valid_from_ns": row["updated_at_ns"]}, listing.place))
        gone = {**row, "status": _DELISTED, "updated_at_ns": at_ns, "valid_from_ns": at_ns}
        present[row["ticker"]] = gone = _placed(gone, listing.place)
        changes.append(gone)
    return True


def _placed(row: Row, place: tuple[int, int]) -> Row:
    return {**row, "log_partition": place[0], "log_offset": place[1]}


def _table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SYMBOL_COLUMNS)
