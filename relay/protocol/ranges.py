"""Algebra of half-open time ranges: the one place that says what is covered and what is missing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from relay.protocol.v1 import common_pb2

__all__ = ["Range", "from_wire", "intersect", "subtract", "to_wire", "union"]


@dataclass(frozen=True, slots=True, order=True)
class Range:
    """[start_ns, end_ns); empty when end is not after start."""

    start_ns: int
    end_ns: int

    def __bool__(self) -> bool:
        return self.end_ns > self.start_ns


def union(ranges: Iterable[Range]) -> list[Range]:
    """Return ascending, disjoint, non-touching ranges that cover the same times."""
    merged: list[Range] = []
    for item in sorted(r for r in ranges if r):
        if merged and item.start_ns <= merged[-1].end_ns:
            merged[-1] = Range(merged[-1].start_ns, max(merged[-1].end_ns, item.end_ns))
        else:
            merged.append(item)
    return merged


def subtract(whole: Range, covered: Iterable[Range]) -> list[Range]:
    """Return what of the whole is not covered, ascending."""
    missing: list[Range] = []
    cursor = whole.start_ns
    for item in union(covered):
        if item.end_ns <= cursor:
            continue
        if item.start_ns >= whole.end_ns:
            break
        if item.start_ns > cursor:
            missing.append(Range(cursor, item.start_ns))
        cursor = item.end_ns
    if cursor < whole.end_ns:
        missing.append(Range(cursor, whole.end_ns))
    return missing


def intersect(whole: Range, ranges: Iterable[Range]) -> list[Range]:
    """Return the parts of the ranges that lie in the whole, united and ascending."""
    clipped = (Range(max(r.start_ns, whole.start_ns), min(r.end_ns, whole.end_ns)) for r in ranges)
    return union(clipped)


def from_wire(ranges: Iterable[common_pb2.TimeRange]) -> list[Range]:
    """Return ranges of wire messages, united."""
    return union(Range(r.start, r.end) for r in ranges)


def to_wire(ranges: Iterable[Range]) -> list[common_pb2.TimeRange]:
    """Return wire messages of ranges."""
    return [common_pb2.TimeRange(start=r.start_ns, end=r.end_ns) for r in ranges]
