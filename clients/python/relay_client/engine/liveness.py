"""A silent market or a dead feed: what the beats of one ticker say."""

from __future__ import annotations

from relay.protocol.v1 import market_pb2
from relay_client.engine.live_values import FeedState, StateChanged

__all__ = ["Liveness"]

_Beat = market_pb2.Heartbeat
_STATES = {
    _Beat.UP: FeedState.UP,
    _Beat.CONNECTING: FeedState.CONNECTING,
    _Beat.MUTE: FeedState.MUTE,
    _Beat.DOWN: FeedState.DOWN,
}
_TEXTS = {
    FeedState.UP: "the ingestor's connection works",
    FeedState.CONNECTING: "the ingestor connects to the exchange",
    FeedState.MUTE: "the exchange's channel is silent although its connection is up",
    FeedState.DOWN: "the ingestor stopped the feed",
}


class Liveness:
    """State of one ticker's feed.

    Args:
        ticker: of the beats.
        silence_ns: without a beat or data for so long nobody speaks.
        now_ns: monotonic.
    """

    def __init__(self, ticker: str, *, silence_ns: int, now_ns: int) -> None:
        self._ticker, self._silence_ns = ticker, silence_ns
        self._heard_ns = self._attempt_ns = now_ns
        self._attempt = 0
        self.state = FeedState.CONNECTING

    def accepts(self, beat: market_pb2.Heartbeat, now_ns: int) -> bool:
        """Return whether a beat counts: those of an attempt that another one has replaced do not."""
        if beat.source != _Beat.INGESTOR:
            return beat.source == _Beat.MANAGER
        if beat.attempt < self._attempt and now_ns - self._attempt_ns < self._silence_ns:
            return False
        self._attempt, self._attempt_ns = beat.attempt, now_ns
        return True

    def on_beat(self, beat: market_pb2.Heartbeat, now_ns: int) -> StateChanged | None:
        """Take an accepted beat."""
        self._heard_ns = now_ns
        state = _STATES[beat.state]
        is_manager = beat.source == _Beat.MANAGER
        return self._change(state, "no ingestor serves the ticker" if is_manager else _TEXTS[state])

    def on_data(self, now_ns: int) -> None:
        """Data is a sign of life, too."""
        self._heard_ns = now_ns

    def on_relay_away(self) -> StateChanged | None:
        """The relay is silent."""
        return self._change(FeedState.RELAY_AWAY, "the relay is silent; reconnecting")

    def on_relay_back(self, now_ns: int) -> StateChanged | None:
        """The relay is heard and the subscription in force again."""
        self._heard_ns = now_ns
        if self.state is not FeedState.RELAY_AWAY:
            return None
        return self._change(FeedState.CONNECTING, "the relay is back; the next beat tells more")

    def on_tick(self, now_ns: int) -> StateChanged | None:
        """Notice silence."""
        if self.state is FeedState.RELAY_AWAY or now_ns - self._heard_ns < self._silence_ns:
            return None
        return self._change(FeedState.NO_BEATS, "neither the ingestor nor the manager speaks of the ticker")

    def _change(self, state: FeedState, text: str) -> StateChanged | None:
        before, self.state = self.state, state
        return None if before is state else StateChanged(self._ticker, state, before, text)
