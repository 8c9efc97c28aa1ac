"""Numbers of tickers in SBE market data: given by a publisher, learnt by a reader. No socket, clock or thread.

A stream has one publisher at a time. A symbol_id is ``(epoch & 0xFFFFFFFF) << 32 | n`` with n from 1 on, so that a
number of an earlier epoch is never taken for one of this. Specification: ``proto/spec/0018-market-data-in-sbe.md``.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum

from google.protobuf.message import Message

from relay.protocol.codes import RejectReason
from relay.protocol.envelope import EnvelopeError
from relay.protocol.market_sbe import (
    SymbolDefinition,
    decode_known,
    encode_body,
    encode_definition,
    encode_known,
    read_definition,
    ticker_of,
)

__all__ = ["SYMBOLS_MAX", "SbeMarketDecoder", "SbeMarketEncoder", "SbeOutcome"]

SYMBOLS_MAX = 65_536
"""How many tickers a publisher numbers, and a reader keeps, of one epoch."""
_EPOCH_MASK = 0xFFFF_FFFF


class SbeOutcome(StrEnum):
    """What a record is that brings no message; each is counted under its name."""

    DEFINITION = "definition"
    UNDEFINED_SYMBOL = "undefined_symbol"
    REFUSED_DEFINITION = "refused_definition"
    UNDECODABLE = "undecodable"


class SbeMarketEncoder:
    """A publisher's side: gives each ticker a number, says it before its first use, and again to who joins.

    Args:
        epoch: of the publisher's start: random, u64.

    Raises:
        EnvelopeError: from :meth:`encode`: no protobuf, or the message does not fit SBE; it uses up no number.
    """

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self._base = (epoch & _EPOCH_MASK) << 32
        self._symbol_ids: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._symbol_ids)

    def encode(self, body: bytes) -> tuple[bytes, ...]:
        """Return the records of a Tick, OHLC, Gap or Heartbeat: its own, after the definition of a new ticker.

        Args:
            body: type id and protobuf, as they go through the sockets.

        Raises:
            KeyError: the message has no form in SBE.
        """
        record = encode_known(body, self._symbol_ids)
        return self._first(body) if record is None else (record,)

    def known(self, ticker: str) -> bytes | None:
        """Return the definition of a ticker; None when it has no number yet: it gets one with its first message."""
        symbol_id = self._symbol_ids.get(ticker)
        return None if symbol_id is None else self._definition(ticker, symbol_id)

    def definitions(self) -> tuple[bytes, ...]:
        """Return the definitions of all tickers so far, for a reader that joins."""
        return tuple(self._definition(*item) for item in self._symbol_ids.items())

    def _first(self, body: bytes) -> tuple[bytes, bytes]:
        ticker = ticker_of(body)
        symbol_id = self._new(ticker)
        records = self._definition(ticker, symbol_id), encode_body(body, symbol_id)
        self._symbol_ids[ticker] = symbol_id
        return records

    def _definition(self, ticker: str, symbol_id: int) -> bytes:
        return encode_definition(SymbolDefinition(symbol_id, self.epoch, ticker))

    def _new(self, ticker: str) -> int:
        if len(self._symbol_ids) >= SYMBOLS_MAX:
            text = f"expected at most {SYMBOLS_MAX} tickers of one epoch in SBE; send {ticker[:80]!r} as protobuf"
            raise EnvelopeError(RejectReason.INVALID_FIELD, text)
        return self._base | (len(self._symbol_ids) + 1)


class SbeMarketDecoder:
    """A reader's side: learns numbers, gives messages. Nothing that a peer sends raises.

    Args:
        symbols_max: how many tickers of one epoch are kept; definitions of more are refused.

    Attributes:
        outcomes: how often each outcome was.
    """

    def __init__(self, *, symbols_max: int = SYMBOLS_MAX) -> None:
        self.outcomes: Counter[SbeOutcome] = Counter()
        self._symbols_max = symbols_max
        self._epoch: int | None = None
        self._tickers: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._tickers)

    def decode(self, record: bytes) -> Message | SbeOutcome:
        """Return the message of a record of version 0x02, or why it brings none."""
        try:
            message = decode_known(record, self._tickers)
            if message is not None:
                return message
            definition = read_definition(record)
            outcome = SbeOutcome.UNDEFINED_SYMBOL if definition is None else self._learn(definition)
        except EnvelopeError:
            outcome = SbeOutcome.UNDECODABLE
        self.outcomes[outcome] += 1
        return outcome

    def _learn(self, definition: SymbolDefinition) -> SbeOutcome:
        number, epoch = definition.symbol_id, definition.epoch
        if number >> 32 != epoch & _EPOCH_MASK or not number & _EPOCH_MASK or not definition.ticker:
            return SbeOutcome.REFUSED_DEFINITION
        if epoch != self._epoch:
            self._epoch, self._tickers = epoch, {}
        if len(self._tickers) >= self._symbols_max and number not in self._tickers:
            return SbeOutcome.REFUSED_DEFINITION
        is_the_same = self._tickers.setdefault(number, definition.ticker) == definition.ticker
        return SbeOutcome.DEFINITION if is_the_same else SbeOutcome.REFUSED_DEFINITION
