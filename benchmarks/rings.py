"""How fast do messages go from process to process on one machine, beside what the machine and Python allow?"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from benchmarks import rings_aeron, rings_pipes
from benchmarks.java_peer import MissingPeerError
from benchmarks.report import Report
from benchmarks.rings_broadcast import received_by_each
from benchmarks.rings_pipes import BATCH, Ceiling, Pipe, RelayChannel, RelayRing
from benchmarks.rings_work import Work, best_tenth, median, stretches_of

__all__ = ["run"]

HERE = Path(__file__).resolve().parent
ACCELERATOR = HERE.parent / "accelerator"
FLOOR = "C floor"
ONE_CALL = Work("one call, 64 B", "single", 64, 20_000)
BATCHES = Work("batches, 64 B", "batched", 64, BATCH * 600)
LONG_BATCHES = Work("batches, 1 KiB", "batched", 1024, BATCH * 200)
ROUND_TRIP = Work("round trip, 64 B", "round_trip", 64, 2_000)
ASLEEP = Work("asleep, 64 B", "sleeping", 64, 300)
IN_TURN = Work("in turn, 64 B", "in_turn", 64, 2_000)
BATCHES_IN_TURN = Work("in turn, batches", "batches_in_turn", 64, BATCH * 50)
WORKS = (ONE_CALL, BATCHES, LONG_BATCHES, ROUND_TRIP, ASLEEP, IN_TURN, BATCHES_IN_TURN)
FLOOR_WORKS = {
    ONE_CALL: ("single", 60_000),
    BATCHES: ("batched", 200_000),
    LONG_BATCHES: ("batched", 40_000),
    ROUND_TRIP: ("round_trip", 2_000),
}
RUST_LABELS = {
    "round trip, 64 B": ROUND_TRIP,
    "one call a message, 64 B": ONE_CALL,
    "batches of 64, 64 B": BATCHES,
    "batches of 64, 1 KiB": LONG_BATCHES,
}

Figures = dict[tuple[Work, str], list[tuple[float, ...]]]


def compiled(folder: Path) -> Path | None:
    """Compile the floor and the ceiling into a folder; None where there is no C compiler or no header of Python."""
    compiler, include = shutil.which("cc"), sysconfig.get_path("include")
    if compiler is None or not Path(include, "Python.h").exists():
        return None
    optimised = [compiler, "-O3", "-std=gnu11", "-march=native"]
    extension = folder / "rings_extension.so"
    subprocess.run([*optimised, str(HERE / "rings_floor.c"), "-o", str(folder / "rings_floor")], check=True)
    library = ["-shared", "-fPIC", f"-I{include}", str(HERE / "rings_extension.c"), "-o", str(extension)]
    subprocess.run([*optimised, *library], check=True)
    return folder / "rings_floor"


def floor_of(program: Path, work: Work, stretches: int) -> list[tuple[float, ...]]:
    """Return the figures of the C floor: two C processes."""
    kind, count = FLOOR_WORKS[work]
    command = [str(program), kind, str(work.payload_bytes), str(count), str(stretches)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    return [tuple(float(number) for number in line.split()) for line in said.splitlines()]


def rust_program() -> Path | None:
    """Build the example ``ring_rate`` of the accelerator's core; None where there is no cargo."""
    if shutil.which("cargo") is None:
        return None
    build = ["cargo", "build", "--quiet", "--release", "--locked", "-p", "relay-accel-core", "--example", "ring_rate"]
    subprocess.run(build, cwd=ACCELERATOR, check=True)
    return Path(os.environ.get("CARGO_TARGET_DIR", ACCELERATOR / "target")) / "release" / "examples" / "ring_rate"


def rust_of(program: Path, figures: Figures) -> None:
    """Add one round of two Rust processes: of the ring and of the log buffer, each the best tenth of its stretches."""
    said = subprocess.run([str(program), "1"], capture_output=True, text=True, check=True, timeout=300).stdout
    for line in said.splitlines():
        for label, work in RUST_LABELS.items():
            if line.startswith(label):
                numbers = [float(number) for number in re.findall(r"\d+\.\d", line[32:])]
                figures[work, "Rust ring"].append((numbers[3],))
                figures[work, "Rust log buffer"].append((numbers[5],))


def aeron_pair(folder: Path) -> tuple[rings_aeron.AeronPair | None, str]:
    """Compile the program around Aeron; None where it cannot be; and how it is laid out, or what is missing."""
    try:
        return rings_aeron.AeronPair(folder), rings_aeron.LAYOUT
    except MissingPeerError as missing:
        return None, f"not measured: {missing}"


def suits(pipe: type[Pipe], work: Work) -> bool:
    """Whether a pipe can do this work, and it says something."""
    if work.payload_bytes > pipe.payload_bytes_max or (work.kind == "batched" and not pipe.has_batches):
        return False
    if work.kind == "sleeping":
        return pipe is not Ceiling
    return not work.kind.endswith("in_turn") or issubclass(pipe, (RelayChannel, Ceiling))


def run(*, quick: bool) -> Report:
    """Measure this library's rings, others' queues, and the floors under them, in turns."""
    if importlib.util.find_spec("relay_accel") is None:
        raise RuntimeError(
            "expected the accelerator, it is not built here; install Rust 1.88 or later, then `make clean`"
        )
    report = Report(
        "rings",
        "How fast do messages go from process to process on one machine, beside what the machine and Python allow?",
        "two processes, the writer kept on processor 0, the reader on 1; both spin, but where rows say asleep; rounds "
        "of all ways in turns, each of many short stretches; messages of one size, copied out by the reader",
        "nothing is on disk",
    )
    peers, missing = rings_pipes.found()
    rounds, stretches = (1, 3) if quick else (4, 10)
    figures: Figures = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="rings-") as folder:
        floor = compiled(Path(folder))
        sys.path.insert(0, folder)
        pipes: list[type[Pipe]] = [RelayRing, RelayChannel, *([Ceiling] if floor else []), *([] if quick else peers)]
        rust = None if quick else rust_program()
        aeron, report.notes["Aeron IPC"] = (None, "not in quick runs") if quick else aeron_pair(Path(folder))
        for _ in range(rounds):
            for work in WORKS:
                if floor and work in FLOOR_WORKS:
                    figures[work, FLOOR] += floor_of(floor, work, stretches)
                for pipe in pipes:
                    if suits(pipe, work):
                        # A tenth of the messages for those that take ten times as long, and more.
                        parts = (8 if quick else 1) * (10 if pipe.is_waiting else 1)
                        done = replace(work, count=max(BATCH, work.count // parts))
                        figures[work, pipe.name] += stretches_of(pipe, done, stretches)
            if rust:
                rust_of(rust, figures)
            if aeron:
                for work, found in aeron.figures(FLOOR_WORKS, stretches).items():
                    figures[work, rings_aeron.NAME] += found
        sys.path.remove(folder)
    _tell(report, figures)
    _tell_broadcast(report, rounds, stretches, count=BATCH * (60 if quick else 600))
    _tell_ratios(report, figures)
    report.notes["missing peers"] = ", ".join(missing) or "none"
    if floor is None:
        report.notes["no floor"] = "no C compiler or no Python.h: without cc there is nothing to compare with"
    report.notes["best"] = "what a tenth of the stretches are better than: the code's own speed on a busy machine"
    return report


def _tell(report: Report, figures: Figures) -> None:
    for work in WORKS:
        for (of, name), found in figures.items():
            if of is not work:
                continue
            unit = "ns" if work.is_time else "million_s"
            values = {f"p50_{unit}" if work.is_time else unit: [figure[0] for figure in found]}
            if len(found[0]) > 1:
                values[f"p99_{unit}"] = [figure[1] for figure in found]
            row: dict[str, float] = {}
            for key, column in values.items():
                row[key] = round(median(column), 3)
                row[f"best_{key}"] = round(best_tenth(column, is_lower_better=work.is_time), 3)
            report.add(f"{work.name}: {name}", **row)


def _tell_broadcast(report: Report, rounds: int, stretches: int, *, count: int) -> None:
    found: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for _ in range(rounds):
        for receivers in (1, 4):
            found[receivers] += received_by_each(receivers, count=count, stretches=stretches)
    best: dict[int, float] = {}
    for receivers, figures in found.items():
        sent, read = ([figure[at] for figure in figures] for at in (0, 1))
        best[receivers] = best_tenth(read, is_lower_better=False)
        report.add(
            f"broadcast, 64 B, to {receivers}",
            sent_million_s=round(median(sent), 3),
            slowest_million_s=round(median(read), 3),
            best_slowest_million_s=round(best[receivers], 3),
        )
    report.ratio("broadcast_read_alone_to_one_of_4", best[1] / max(best[4], 1e-9), goal_max=1.25)
    if (os.cpu_count() or 1) < 5:
        report.notes["broadcast"] = f"five processes on {os.cpu_count()} processors: the receivers share what is left"


def _tell_ratios(report: Report, figures: Figures) -> None:
    """Ratios are of the best tenths, always the slower way over the faster: 1 is equal, less is better."""

    def best(work: Work, name: str, at: int = 0) -> float | None:
        found = figures.get((work, name))
        return best_tenth([figure[at] for figure in found], is_lower_better=work.is_time) if found else None

    def tell(name: str, goal_max: float | None, upper: float | None, lower: float | None) -> None:
        if upper is not None and lower:
            report.ratio(name, upper / lower, goal_max=goal_max)

    ours: Callable[..., float | None] = lambda work, at=0: best(work, RelayRing.name, at)  # noqa: E731
    ceiling: Callable[..., float | None] = lambda work, at=0: best(work, Ceiling.name, at)  # noqa: E731
    tell("ceiling_to_ours_one_call", 1.25, ceiling(ONE_CALL), ours(ONE_CALL))
    tell("ceiling_to_ours_batches", 1.18, ceiling(BATCHES), ours(BATCHES))
    tell("round_trip_p50_ours_to_ceiling", 1.25, ours(ROUND_TRIP), ceiling(ROUND_TRIP))
    tell("round_trip_p99_ours_to_ceiling", 1.43, ours(ROUND_TRIP, 1), ceiling(ROUND_TRIP, 1))
    tell("c_floor_to_ours_1_kib_batches", 1.25, best(LONG_BATCHES, FLOOR), ours(LONG_BATCHES))
    tell("in_turn_ours_to_ceiling", None, ours(IN_TURN), ceiling(IN_TURN))
    tell("batches_in_turn_ours_to_ceiling", None, ours(BATCHES_IN_TURN), ceiling(BATCHES_IN_TURN))
    tell("rust_round_trip_to_c_floor", 1.1, best(ROUND_TRIP, "Rust ring"), best(ROUND_TRIP, FLOOR))
    tell("c_floor_to_rust_one_call", 1.18, best(ONE_CALL, FLOOR), best(ONE_CALL, "Rust ring"))
    tell("c_floor_to_rust_batches", 1.25, best(BATCHES, FLOOR), best(BATCHES, "Rust ring"))
    aeron: Callable[..., float | None] = lambda work, at=0: best(work, rings_aeron.NAME, at)  # noqa: E731
    for name, work in (("one_call", ONE_CALL), ("batches", BATCHES), ("1_kib_batches", LONG_BATCHES)):
        tell(f"aeron_to_ours_{name}", None, aeron(work), ours(work))
        tell(f"aeron_to_rust_{name}", None, aeron(work), best(work, "Rust ring"))
    tell("round_trip_p50_ours_to_aeron", None, ours(ROUND_TRIP), aeron(ROUND_TRIP))
    tell("round_trip_p99_ours_to_aeron", None, ours(ROUND_TRIP, 1), aeron(ROUND_TRIP, 1))
    tell("rust_round_trip_to_aeron", None, best(ROUND_TRIP, "Rust ring"), aeron(ROUND_TRIP))
    for peer in rings_pipes.PEERS:
        tell(f"{peer.name}_to_ours_one_call", None, best(ONE_CALL, peer.name), ours(ONE_CALL))
        tell(f"ours_to_{peer.name}_asleep", None, ours(ASLEEP), best(ASLEEP, peer.name))
