"""The matcher's state as bytes.

::

    0        8         16        20
    +--------+---------+---------+---------- - -
    | magic  | length  | CRC-32  | JSON
    +--------+---------+---------+---------- - -
      MRCEP2\\n\\0   u64 LE    u32 LE    of ``length`` bytes; the checksum is theirs

JSON because scaled numbers outgrow 64 bits.
"""

from __future__ import annotations

import zlib

import msgspec
from google.protobuf.message import DecodeError

from relay.engine.pattern_fields import PatternError
from relay.engine.pattern_values import EXACT_DECIMALS, CompiledPattern, NOfM, Repeat
from relay.engine.patterns import compile_pattern
from relay.errors import StorageError
from relay.protocol.v1 import trigger_pb2
from spark_jobs.jobs.triggers.engine.bar_source import BarState
from spark_jobs.jobs.triggers.engine.derived import NOfMState, RepeatState
from spark_jobs.jobs.triggers.engine.run import RunState
from spark_jobs.jobs.triggers.engine.tick_source import TickState
from spark_jobs.jobs.triggers.engine.values import EndReason, Trigger
from spark_jobs.jobs.triggers.engine.windows import TickWindow

__all__ = ["MatcherState", "StateError", "compile_trigger", "decode_state", "encode_state"]

_MAGIC = b"MRCEP2\n\0"
_OLDER = (b"MRCEP1\n\0",)
"""Without trails: what lay between hits was in the queues, where it is still understood."""
_HEAD_BYTES = len(_MAGIC) + 8 + 4


class StateError(StorageError):
    """A stored state cannot be gone on from."""


class MatcherState(msgspec.Struct, omit_defaults=True):
    """Everything that a matcher has to know to go on.

    Attributes:
        ticks, bars: by source.
        runs: by trigger, in the order in which they were added.
        ended: triggers that are over, oldest first.
    """

    ticks: list[TickState]
    bars: list[BarState]
    runs: list[RunState]
    ended: list[tuple[str, EndReason]]


_DECODER = msgspec.json.Decoder(MatcherState)


def encode_state(state: MatcherState) -> bytes:
    """Return a state as bytes."""
    body = msgspec.json.encode(state)
    return _MAGIC + len(body).to_bytes(8, "little") + zlib.crc32(body).to_bytes(4, "little") + body


def decode_state(data: bytes) -> tuple[MatcherState, list[CompiledPattern]]:
    """Return the state of bytes, and the pattern of each run.

    Raises:
        StateError: it is cut short, damaged, of another version, or does not hang together.
    """
    if data[: len(_MAGIC)] not in (_MAGIC, *_OLDER):
        raise StateError(f"expected the state of triggers to begin with {_MAGIC!r}, got {data[: len(_MAGIC)]!r}")
    body = data[_HEAD_BYTES:]
    length = int.from_bytes(data[len(_MAGIC) : len(_MAGIC) + 8], "little")
    if len(data) < _HEAD_BYTES or len(body) != length:
        raise StateError(f"the state of triggers is cut short: expected {length} bytes after its head, got {len(body)}")
    if zlib.crc32(body).to_bytes(4, "little") != data[len(_MAGIC) + 8 : _HEAD_BYTES]:
        raise StateError("the state of triggers is damaged: its checksum does not fit")
    try:
        state = _DECODER.decode(body)
        patterns = [compile_trigger(run.trigger) for run in state.runs]
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise StateError(f"the state of triggers is not as this version writes it: {error}") from error
    except PatternError as error:
        raise StateError(f"a pattern of the state is refused by this version: {error}") from error
    _check(state, patterns)
    return state, patterns


def compile_trigger(trigger: Trigger) -> CompiledPattern:
    """Return the pattern of a trigger.

    Raises:
        PatternError: it is wrong.
    """
    pattern = trigger_pb2.Pattern()
    try:
        pattern.ParseFromString(trigger.pattern)
    except DecodeError as error:
        raise PatternError("pattern", f"expected a serialised Pattern: {error}") from error
    return compile_pattern(pattern)


def _check(state: MatcherState, patterns: list[CompiledPattern]) -> None:
    sources = {(tick.ticker, 0) for tick in state.ticks} | {tuple(bar.source) for bar in state.bars}
    if len(sources) != len(state.ticks) + len(state.bars) or len({r.trigger.trigger_id for r in state.runs}) != len(
        state.runs
    ):
        raise StateError("the state of triggers names a source or a trigger twice")
    if not all(_is_window(tick.window) for tick in state.ticks):
        raise StateError("the state of triggers holds a window whose parts do not fit each other")
    evaluated = [s.intake.evaluated for s in state.ticks] + [s.intake.evaluated for s in state.bars]
    if any(len(numbers.firsts) != len(numbers.lasts) for numbers in evaluated):
        raise StateError("the state of triggers holds spans of trade numbers that do not fit each other")
    waiting = [(t.price_decimals, t.amount_decimals) for s in state.ticks for t in s.intake.waiting.values()]
    waiting += [(b.price_decimals, b.volume_decimals) for s in state.bars for b in s.intake.waiting.values()]
    if not all(0 <= d <= EXACT_DECIMALS for pair in waiting for d in pair):
        raise StateError("the state of triggers holds an event of an impossible scale")
    for run, pattern in zip(state.runs, patterns, strict=True):
        if not (set(pattern.sources) <= sources and _is_run(run, pattern)):
            raise StateError(f"the state of trigger {run.trigger.trigger_id} does not fit its pattern")


def _is_window(window: TickWindow) -> bool:
    for extremes in (window.lows, window.highs):
        if extremes is not None and not 0 <= extremes.head <= len(extremes.times) == len(extremes.values):
            return False
    kept = window.history
    return kept is None or 0 <= kept.head <= len(kept.times) == len(kept.prices) == len(kept.sums)


def _is_run(run: RunState, pattern: CompiledPattern) -> bool:
    derived = [condition for condition in pattern.conditions if isinstance(condition, NOfM | Repeat)]
    return (
        len(run.partials.places) == len(pattern.stages) + 1
        and all(partial.matched for place in run.partials.places for partial in place)
        and len(derived) == len(run.derived)
        and all(
            isinstance(state, NOfMState) and len(state.last_ns) == len(condition.members)
            if isinstance(condition, NOfM)
            else isinstance(state, RepeatState)
            for condition, state in zip(derived, run.derived, strict=True)
        )
        and all(
            0 <= signal < len(pattern.conditions) and not isinstance(pattern.conditions[signal], NOfM | Repeat)
            for signal in run.fresh
        )
    )
