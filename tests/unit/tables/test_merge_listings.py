"""Markets folded: changes kept with their time, what vanished is delisted, nothing is ever deleted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from relay.protocol.v1 import market_pb2
from relay.tables.listings import MergedListings, merge_listings
from relay.tables.markets import row_of_market
from relay.tables.schema import SYMBOL_COLUMNS

EMPTY = SYMBOL_COLUMNS.empty_table()
Rows = Iterable[dict[str, Any]]


def listing(
    name: str, at: int, tickers: str, *, offset: int, exchange: str = "X", **facts: object
) -> list[dict[str, Any]]:
    """The records of one answer: a market for each letter."""
    rows = []
    for index, letter in enumerate(tickers):
        market = market_pb2.Market(
            market_id=f"{letter}/USD.{exchange}",
            exchange_id=exchange,
            base_asset=letter,
            quote_asset="USD",
            tick_denom=100,
            updated_at=at,
            listing_id=name,
            listing_count=len(tickers),
            **facts,  # type: ignore[arg-type]
        )
        rows.append({**row_of_market(market), "log_partition": 0, "log_offset": offset + index})
    return rows


def table(rows: Rows) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=SYMBOL_COLUMNS)


def statuses(rows: pa.Table) -> dict[str, str]:
    return {row["ticker"][0]: row["status"] for row in rows.to_pylist()}


def told(merged: MergedListings) -> list[tuple[str, str, int]]:
    return [(row["ticker"][0], row["status"], row["valid_from_ns"]) for row in merged.changes.to_pylist()]


def test_the_first_listing_is_a_change_of_every_market_and_the_same_again_is_none() -> None:
    first = merge_listings(EMPTY, table(listing("l1", 10, "AB", offset=0)))
    assert told(first) == [("A", "ACTIVE", 10), ("B", "ACTIVE", 10)]
    again = merge_listings(first.present, table(listing("l2", 20, "AB", offset=2)))
    assert told(again) == []
    assert [(r["updated_at_ns"], r["valid_from_ns"]) for r in again.present.to_pylist()] == [(20, 10), (20, 10)]


def test_a_change_is_valid_from_when_it_was_listed_so_and_an_older_record_changes_nothing() -> None:
    first = merge_listings(EMPTY, table(listing("l1", 10, "A", offset=0)))
    changed = merge_listings(first.present, table(listing("l2", 20, "A", offset=1, alias_of="B/USD.X")))
    assert [(r["alias_of"], r["valid_from_ns"]) for r in changed.changes.to_pylist()] == [("B/USD.X", 20)]
    late = merge_listings(changed.present, table(listing("l0", 5, "A", offset=9)))
    assert (told(late), late.present) == ([], changed.present)


def test_a_market_that_a_whole_listing_lacks_is_delisted_at_its_time_case_69() -> None:
    """Case 69: the old symbol of a renamed market stays, DELISTED since a known time; the new one begins."""
    first = merge_listings(EMPTY, table(listing("l1", 10, "MA", offset=0)))
    renamed = merge_listings(first.present, table(listing("l2", 20, "PA", offset=2)))
    assert statuses(renamed.present) == {"A": "ACTIVE", "M": "DELISTED", "P": "ACTIVE"}
    assert told(renamed) == [("P", "ACTIVE", 20), ("M", "DELISTED", 20)]
    still = merge_listings(renamed.present, table(listing("l3", 30, "PA", offset=4)))
    assert told(still) == []
    back = merge_listings(still.present, table(listing("l4", 40, "PAM", offset=6)))
    assert told(back) == [("M", "ACTIVE", 40)]


def test_part_of_a_listing_delists_nothing_and_the_rest_completes_it() -> None:
    first = merge_listings(EMPTY, table(listing("l1", 10, "ABC", offset=0)))
    second = listing("l2", 20, "AB", offset=3)
    part = merge_listings(first.present, table(second[:1]))
    assert statuses(part.present)["C"] == "ACTIVE"
    whole = merge_listings(part.present, table(second[1:]))
    assert told(whole) == [("C", "DELISTED", 20)]
    assert whole.changes.to_pylist()[0]["log_offset"] == 4


def test_another_exchange_and_records_without_a_listing_delist_nothing() -> None:
    first = merge_listings(EMPTY, table(listing("l1", 10, "AB", offset=0)))
    other = merge_listings(first.present, table(listing("l2", 20, "A", offset=0, exchange="Y")))
    assert statuses(other.present.filter(pa.compute.equal(other.present["exchange"], "X"))) == {
        "A": "ACTIVE",
        "B": "ACTIVE",
    }
    single = listing("", 30, "A", offset=5)
    assert told(merge_listings(first.present, table(single))) == []


def test_a_listing_that_lacks_most_of_an_exchange_is_not_believed() -> None:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    first = merge_listings(EMPTY, table(listing("l1", 10, letters, offset=0)))
    cut = merge_listings(first.present, table(listing("l2", 20, letters[:12], offset=26)))
    assert (cut.doubted, told(cut)) == (("l2",), [])
    fewer = merge_listings(first.present, table(listing("l2", 20, letters[:13], offset=26)))
    assert (fewer.doubted, len(told(fewer))) == ((), 13)


def test_of_rows_older_than_the_history_what_they_said_is_its_beginning() -> None:
    old = [{**row, "listing_id": None, "listing_count": None} for row in listing("", 10, "AB", offset=0)]
    merged = merge_listings(table(old), table(listing("l1", 20, "A", offset=7, native_symbol="a")))
    assert told(merged) == [("A", "ACTIVE", 10), ("A", "ACTIVE", 20), ("B", "ACTIVE", 10), ("B", "DELISTED", 20)]
    assert {row["log_offset"] for row in merged.changes.to_pylist()} == {7}


LISTINGS = st.lists(st.text("ABCDE", min_size=1, max_size=5).map(lambda t: "".join(sorted(set(t)))), max_size=5)


@given(LISTINGS, st.data())
def test_how_the_log_is_cut_into_batches_changes_nothing(answers: list[str], data: st.DataObject) -> None:
    records: list[dict[str, Any]] = []
    for number, tickers in enumerate(answers):
        records += listing(f"l{number}", 10 * (number + 1), tickers, offset=len(records))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(records)), max_size=4)))
    present, changes = EMPTY, []
    for start, end in zip([0, *cuts], [*cuts, len(records)], strict=True):
        merged = merge_listings(present, table(records[start:end]))
        present = merged.present
        changes += merged.changes.to_pylist()
    final = (
        {letter: "ACTIVE" if letter in answers[-1] else "DELISTED" for letter in "".join(answers)} if answers else {}
    )
    assert statuses(present) == final
    states: dict[str, str] = {}
    for change in sorted(changes, key=lambda row: row["valid_from_ns"]):
        assert states.get(change["ticker"]) != change["status"]
        states[change["ticker"]] = change["status"]
    assert {ticker[0]: status for ticker, status in states.items()} == final
