"""Records of one's own through a ring of shared memory, one by one and as an array; needs no relay.

python examples/records.py 1000
"""

from __future__ import annotations

import sys
from decimal import Decimal
from enum import IntEnum
from typing import Annotated, NamedTuple

from relay_accel import Decimal64, FixedRing
from relay_accel.records import Characters, Number, RecordCodec, RecordPublisher, RecordSubscriber, u64

PRICE = Decimal64(-4)


class Side(IntEnum):
    BUY = 0
    SELL = 1


class Quote(NamedTuple):
    at_ns: u64
    price: Annotated[Decimal, PRICE]
    symbol: Annotated[str, Characters(7)]
    side: Annotated[Side, Number("u8")]


QUOTES = RecordCodec(Quote)


def main(count: int = 1_000) -> None:
    # Another process would say FixedRing.create("quotes", …) and FixedRing.open("quotes").
    ring = FixedRing.heap(QUOTES.length, 4_096)
    publisher, subscriber = RecordPublisher(ring, QUOTES), RecordSubscriber(ring, QUOTES)
    publisher.publish([Quote(1, Decimal("67000.25"), "BTC", Side.SELL)])
    for quote in subscriber.poll_records():
        print(quote.symbol, quote.price, quote.side.name)
    publisher.publish(QUOTES.to_numpy(QUOTES.encode(Quote(2, Decimal("0.5"), "ETH", Side.BUY)) * count))
    rows = subscriber.poll(count)
    print(len(rows), "rows,", PRICE.texts(rows["price"][:1]))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
