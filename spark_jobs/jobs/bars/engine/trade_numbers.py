"""Which trades of a ticker were taken: ranges of their numbers."""

from __future__ import annotations

from bisect import bisect_right

import msgspec

__all__ = ["TradeNumbers"]


class TradeNumbers(msgspec.Struct):
    """Inclusive, ascending, separate spans. Numbers of one ticker come nearly in order, so there are few.

    Attributes:
        firsts, lasts: bounds of the spans.
        forgotten: how many holes between spans were closed because there were too many.
    """

    firsts: list[int] = msgspec.field(default_factory=list)
    lasts: list[int] = msgspec.field(default_factory=list)
    forgotten: int = 0

    def take(self, number: int, *, spans_max: int) -> bool:
        """Note a number; return False when it was noted before."""
        firsts, lasts = self.firsts, self.lasts
        if lasts and number == lasts[-1] + 1:
            lasts[-1] = number
            return True
        place = bisect_right(firsts, number)
        if place and number <= lasts[place - 1]:
            return False
        joins_before = place > 0 and lasts[place - 1] == number - 1
        joins_behind = place < len(firsts) and firsts[place] == number + 1
        if joins_before and joins_behind:
            lasts[place - 1] = lasts.pop(place)
            del firsts[place]
        elif joins_before:
            lasts[place - 1] = number
        elif joins_behind:
            firsts[place] = number
        else:
            firsts.insert(place, number)
            lasts.insert(place, number)
            if len(firsts) > spans_max:
                # The oldest hole is taken for filled: a trade of it that came now would be days late.
                lasts[0] = lasts.pop(1)
                del firsts[1]
                self.forgotten += 1
        return True
