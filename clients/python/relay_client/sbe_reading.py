"""Records of the relay's broadcast in SBE, for a client that asked for them (proto/spec/0018).

Needs the accelerator.
"""

from __future__ import annotations

from collections.abc import Callable

from google.protobuf.message import Message

from relay.engine.market_symbols import SbeMarketDecoder, SbeOutcome
from relay.protocol.registry import type_id_of

__all__ = ["SbeReader"]

_COUNTED = {
    SbeOutcome.UNDEFINED_SYMBOL: "sbe.undefined_symbol",
    SbeOutcome.REFUSED_DEFINITION: "sbe.refused_definition",
    SbeOutcome.UNDECODABLE: "rejected.undecodable",
}


class SbeReader:
    """Learns the tickers' numbers of one broadcast, and gives its messages.

    Args:
        count: called with a counter's name for what brings no message.
    """

    def __init__(self, count: Callable[[str], None]) -> None:
        self._count = count
        self._decoder = SbeMarketDecoder()

    def read(self, body: bytes, type_id: int) -> Message | None:
        """Return the message of a record's bytes from the version on; None for a definition and for what is counted."""
        found = self._decoder.decode(body)
        if isinstance(found, SbeOutcome):
            if found in _COUNTED:
                self._count(_COUNTED[found])
            return None
        if type_id_of(found) != type_id:
            self._count("rejected.wrong_type")
            return None
        return found

    @staticmethod
    def key(topic: bytes, message: Message) -> bytes:
        """Return bytes that are equal for equal messages, by whichever way and in whichever form they came."""
        message.DiscardUnknownFields()
        return topic + b"\0" + message.SerializeToString(deterministic=True)
