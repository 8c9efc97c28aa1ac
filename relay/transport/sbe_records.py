"""Market messages as SBE records of the relay's broadcast (proto/spec/0018), written where a client demands them so.

Each topic says its ticker's number by itself: a reader looks at the records of its own topics alone.
"""

from __future__ import annotations

from relay.engine.market_symbols import SbeMarketEncoder
from relay.protocol.envelope import EnvelopeError

__all__ = ["DEFINITION_EVERY", "SbeRecords"]

DEFINITION_EVERY = 1_000
"""After so many records of a topic its definition is said again, for a reader that was overtaken before it read it."""


class SbeRecords:
    """Topics that are demanded in SBE, and their records. Needs the accelerator.

    Args:
        epoch: of the relay's start, under which tickers are numbered.

    Attributes:
        unfit: how many messages had no form in SBE; their readers miss the stamps and ask for a replay.
    """

    def __init__(self, epoch: int) -> None:
        self._encoder = SbeMarketEncoder(epoch)
        self._due: dict[bytes, int] = {}
        self.unfit = 0

    def __contains__(self, topic: object) -> bool:
        return topic in self._due

    def __len__(self) -> int:
        return len(self._due)

    def begin(self, topic: bytes) -> list[bytes]:
        """Note a demand; return the records that tell whoever joins the ticker's number."""
        known = self._definition(topic)
        # A ticker gets its number with its first message: who only asks for tickers uses up none.
        self._due[topic] = DEFINITION_EVERY if known else 1
        return known

    def end(self, topic: bytes) -> None:
        """Nobody demands a topic any more."""
        self._due.pop(topic, None)

    def of(self, topic: bytes, body: bytes) -> list[bytes]:
        """Return the records of a message on a demanded topic."""
        try:
            records = [*self._encoder.encode(body)]
        except (KeyError, EnvelopeError):
            self.unfit += 1
            return []
        self._due[topic] -= 1
        if self._due[topic] > 0:
            return records
        self._due[topic] = DEFINITION_EVERY
        return [*(known for known in self._definition(topic) if known not in records), *records]

    def _definition(self, topic: bytes) -> list[bytes]:
        known = self._encoder.known(topic.partition(b"|")[0].decode(errors="replace"))
        return [] if known is None else [known]
