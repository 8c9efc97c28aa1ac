"""Slot accounting under any order of events: never more jobs than slots, none lost, none doubled."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from relay.protocol.v1 import work_pb2
from spark_jobs.manager.engine.broker import Broker, BrokerLimits
from spark_jobs.manager.engine.model import Assignment
from spark_jobs.manager.engine.slots import SlotState

SECOND = 1_000_000_000
INGESTORS = st.sampled_from(["one", "two"])
SLOTS = st.integers(0, 2)


class BrokerMachine(RuleBasedStateMachine):
    """Drives a broker as ingestors and the job book do, and keeps its own account of jobs."""

    def __init__(self) -> None:
        super().__init__()
        self.broker = Broker(BrokerLimits())
        self.now_ns = 0
        self.waiting: dict[str, int] = {}
        self.running: dict[str, int] = {}
        self.ended: set[str] = set()
        self.sequences: dict[tuple[str, int], int] = {}
        self.epochs = {"one": 1, "two": 1}
        self.next_job = 0

    def requeue(self, job_id: str) -> None:
        attempt = self.running.pop(job_id)
        self.waiting[job_id] = attempt + 1
        self.enqueue(job_id)

    def enqueue(self, job_id: str) -> None:
        self.broker.enqueue(
            job_id,
            attempt=self.waiting[job_id],
            exchange="BINANCE",
            slot_type=work_pb2.WorkerReady.HISTORICAL,
            client_id=job_id[-1],
            created_ns=int(job_id),
        )

    @rule(seconds=st.integers(0, 20))
    def time_passes(self, seconds: int) -> None:
        self.now_ns += seconds * SECOND
        for lease in self.broker.expire(self.now_ns):
            assert self.running[lease.job_id] == lease.attempt
            self.requeue(lease.job_id)

    @rule()
    def job_arrives(self) -> None:
        job_id = str(self.next_job)
        self.next_job += 1
        self.waiting[job_id] = 1
        self.enqueue(job_id)

    @rule(ingestor_id=INGESTORS, slot_id=SLOTS, step=st.sampled_from([-1, 0, 0, 1]), is_any=st.booleans())
    def slot_is_offered(self, ingestor_id: str, slot_id: int, step: int, is_any: bool) -> None:
        sequence = max(1, self.sequences.get((ingestor_id, slot_id), 1) + step)
        self.sequences[ingestor_id, slot_id] = max(sequence, self.sequences.get((ingestor_id, slot_id), 1))
        offer = Assignment(
            ingestor_id,
            self.epochs[ingestor_id],
            slot_id,
            sequence,
            "BINANCE",
            work_pb2.WorkerReady.ANY if is_any else work_pb2.WorkerReady.HISTORICAL,
        )
        result = self.broker.offered(offer, (ingestor_id.encode(),), now_ns=self.now_ns)
        for job_id, attempt in result.lost:
            assert self.running[job_id] == attempt
            self.requeue(job_id)
        if result.resend is not None:
            assert self.running[result.resend.job_id] == result.resend.attempt

    @rule(ingestor_id=INGESTORS)
    def ingestor_restarts(self, ingestor_id: str) -> None:
        self.epochs[ingestor_id] += 1
        self.sequences = {key: n for key, n in self.sequences.items() if key[0] != ingestor_id}

    @rule()
    def jobs_are_assigned(self) -> None:
        for lease, slot in self.broker.assign(self.now_ns):
            assert self.waiting.pop(lease.job_id) == lease.attempt
            self.running[lease.job_id] = lease.attempt
            assert lease.slot_key == (slot.ingestor_id, slot.slot_id)

    @rule(data=st.data(), how=st.sampled_from(["complete", "reject", "unreachable", "withdraw", "beat", "stale"]))
    def attempt_speaks(self, data: st.DataObject, how: str) -> None:
        if not self.running:
            return
        job_id = data.draw(st.sampled_from(sorted(self.running)))
        attempt = self.running[job_id]
        if how == "complete":
            assert self.broker.complete(job_id, attempt, now_ns=self.now_ns) is not None
            self.broker.withdraw(job_id, now_ns=self.now_ns)
            self.ended.add(job_id)
            del self.running[job_id]
        elif how == "withdraw":
            assert self.broker.withdraw(job_id, now_ns=self.now_ns) is not None
            self.ended.add(job_id)
            del self.running[job_id]
        elif how == "beat":
            assert self.broker.heard(job_id, attempt, (b"x",), now_ns=self.now_ns)
        elif how == "stale":
            assert self.broker.complete(job_id, attempt - 1, now_ns=self.now_ns) is None
            assert not self.broker.heard(job_id, attempt + 1, (b"x",), now_ns=self.now_ns)
        else:
            end = self.broker.reject if how == "reject" else self.broker.unreachable
            assert end(job_id, attempt, now_ns=self.now_ns) is not None
            self.requeue(job_id)

    @invariant()
    def every_job_is_in_one_place(self) -> None:
        assert self.broker.queued_count == len(self.waiting)
        assert self.broker.running_count == len(self.running)
        assert not set(self.waiting) & set(self.running)
        assert len(self.waiting) + len(self.running) + len(self.ended) == self.next_job

    @invariant()
    def every_lease_has_its_own_slot_and_every_busy_slot_its_lease(self) -> None:
        busy = {(s.job_id, s.attempt): s.key for s in self.broker.slots if s.state is SlotState.BUSY}
        assert set(busy) == set(self.running.items())
        assert len(set(busy.values())) == len(busy)
        for (job_id, attempt), key in busy.items():
            lease = self.broker.lease_of(job_id, attempt)
            assert lease is not None
            assert lease.slot_key == key


TestSlotAccounting = BrokerMachine.TestCase
TestSlotAccounting.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
