from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ingestors.engine.budget import MINUTE_NS, BudgetLimits, HostBudget
from relay.protocol.periods import NANOSECONDS
from tests.support.ingestors import no_jitter

LIMITS = BudgetLimits(weight_per_minute=60, burst_weight=5)


def _budget(limits: BudgetLimits = LIMITS) -> HostBudget:
    return HostBudget(limits, jitter=no_jitter)


def _admit(budget: HostBudget, weight: int, now_ns: int) -> int:
    """Wait as a caller does; return when it went."""
    while wait_ns := budget.wait_ns(weight, now_ns):
        now_ns += wait_ns
    budget.take(weight, now_ns)
    return now_ns


@given(st.lists(st.integers(1, 5), min_size=1, max_size=200))
def test_no_sequence_of_requests_spends_more_than_burst_and_rate(weights: list[int]) -> None:
    budget, now_ns, spent = _budget(), 0, 0
    for weight in weights:
        now_ns = _admit(budget, weight, now_ns)
        spent += weight
        assert spent * MINUTE_NS <= LIMITS.burst_weight * MINUTE_NS + now_ns * LIMITS.weight_per_minute


def test_one_refusal_pauses_every_caller_and_they_return_one_by_one_case_49_case_51() -> None:
    """Cases 49 and 51: Retry-After 35 is one shared wait, without a herd behind it."""
    budget = _budget()
    budget.take(1, 0)
    until_ns = budget.refused(35 * NANOSECONDS, 0)
    assert until_ns == 35 * NANOSECONDS
    assert budget.wait_ns(1, 0) >= until_ns
    times = [_admit(budget, 1, 0)]
    times += [_admit(budget, 1, times[-1]) for _ in range(9)]
    assert times[0] >= until_ns
    assert all(later > earlier for earlier, later in pairwise(times))


def test_refusals_of_requests_under_way_are_one_refusal() -> None:
    budget = _budget()
    first_ns = budget.refused(None, 0)
    assert [budget.refused(None, 1) for _ in range(9)] == [first_ns] * 9


def test_a_missing_retry_after_backs_off_longer_each_time_and_success_resets_it() -> None:
    budget, now_ns, pauses = _budget(), 0, []
    for _ in range(6):
        until_ns = budget.refused(None, now_ns)
        pauses.append(until_ns - now_ns)
        now_ns = until_ns
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (5 * NANOSECONDS, 60 * NANOSECONDS)
    budget.succeeded()
    assert budget.refused(None, now_ns) - now_ns == 5 * NANOSECONDS


def test_weights_are_learned_from_what_the_host_says_it_counted_case_50() -> None:
    """Case 50: an endpoint's weight doubles overnight."""
    budget = _budget(BudgetLimits(weight_per_minute=1_200, burst_weight=1_200))
    for used in (2, 6, 10):
        budget.take(budget.weight_of("klines", 2), 1)
        budget.answered("klines", used_weight=used, now_ns=1)
    assert budget.weight_of("klines", 2) == 4


def test_weight_that_others_used_is_taken_off() -> None:
    budget = _budget(BudgetLimits(weight_per_minute=1_200, burst_weight=1_200))
    budget.take(1, 0)
    budget.answered("klines", used_weight=1_199, now_ns=0)
    assert budget.wait_ns(2, 0) > 0


def test_a_ban_is_kept_apart_from_waiting() -> None:
    budget = _budget()
    budget.ban(720 * NANOSECONDS, 5)
    assert budget.banned_ns(5) == 720 * NANOSECONDS
    assert budget.banned_ns(720 * NANOSECONDS + 5) == 0
    assert budget.wait_ns(1, 5) == 0
