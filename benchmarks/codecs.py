"""How long does a message in SBE take in generated Rust, by dynamic views and in Python?"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import struct
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks import codecs_java
from benchmarks.codecs_pypi import PEERS, pypi_works
from benchmarks.report import Report

__all__ = ["run"]

ACCELERATOR = Path(__file__).resolve().parent.parent / "accelerator"
MESSAGES_NUMPY = 1_000_000
SCHEMA = b"""<?xml version="1.0"?>
<sbe:messageSchema xmlns:sbe="http://fixprotocol.io/2016/sbe" package="quotes" id="1" version="0">
  <types><composite name="messageHeader">
    <type name="blockLength" primitiveType="uint16"/><type name="templateId" primitiveType="uint16"/>
    <type name="schemaId" primitiveType="uint16"/><type name="version" primitiveType="uint16"/>
  </composite>
    <type name="Time" primitiveType="uint64"/><type name="Symbol" primitiveType="uint32"/>
    <type name="Amount" primitiveType="int64"/><type name="Level" primitiveType="uint8"/>
    <type name="Count" primitiveType="uint16"/>
  </types>
  <sbe:message name="Quote" id="1">
    <field name="at_ns" id="1" type="Time"/><field name="symbol" id="2" type="Symbol"/>
    <field name="bid" id="3" type="Amount"/><field name="ask" id="4" type="Amount"/>
    <field name="bid_size" id="5" type="Amount"/><field name="ask_size" id="6" type="Amount"/>
    <field name="level" id="7" type="Level"/><field name="count" id="8" type="Count"/>
  </sbe:message>
</sbe:messageSchema>"""
FIELDS = struct.Struct("<8xQIqqqqBH")
NAMES = ("at_ns", "symbol", "bid", "ask", "bid_size", "ask_size", "level", "count")
VALUES = (1_700_000_000_000_000_000, 7, 64_500_100, 64_500_200, 1_250, 1_300, 1, 12)

Works = dict[str, Callable[[], object]]
Figures = dict[str, list[float]]


def rust_figures(rounds: int, messages: int) -> dict[str, list[float]]:
    """Build and run the example ``codec_rate``: nanoseconds a message, a number each round; empty without cargo."""
    if shutil.which("cargo") is None:
        return {}
    build = ["cargo", "build", "--quiet", "--release", "--locked", "-p", "relay-accel-codec", "--example", "codec_rate"]
    subprocess.run(build, cwd=ACCELERATOR, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ACCELERATOR / "target"))
    command = [str(target / "release" / "examples" / "codec_rate"), str(rounds), str(messages)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
    found: dict[str, list[float]] = json.loads(said)
    return found


def timed(works: Works, rounds: int, calls: int) -> Figures:
    """Nanoseconds a call of each work, a number each round; the works take turns."""
    figures: Figures = defaultdict(list)
    for _ in range(rounds):
        for name, work in works.items():
            started = time.perf_counter_ns()
            for _ in range(calls):
                work()
            figures[name].append((time.perf_counter_ns() - started) / calls)
    return figures


def single_works() -> Works:
    """One message, all fields, by each codec; those of PyPI where they can be imported."""
    from relay_accel import sbe

    quote = sbe.load(SCHEMA).messages["Quote"]
    data = quote.encode(dict(zip(NAMES, VALUES, strict=True)))
    works: Works = {
        "Python decode: relay_accel, Unpacker": partial(sbe.Unpacker(quote).unpack_from, data),
        "Python decode: relay_accel, view": lambda: quote.decode(data).to_tuple(),
        "Python decode: struct": partial(FIELDS.unpack_from, data),
    }
    if any(work() != VALUES for work in works.values()):
        raise RuntimeError("expected all ways to decode the same values; this is an error of the benchmark")
    works["Python one field: relay_accel, view"] = lambda: quote.decode(data)["bid"]
    works["Python one field: struct"] = partial(struct.Struct("<20xq21x").unpack_from, data)
    return works | pypi_works(SCHEMA, data, NAMES, VALUES)


def tick_works() -> tuple[Works, int, int]:
    """A platform tick by protobuf and by SBE (from protobuf's bytes, as the relay does it), with the bytes of each."""
    from relay.protocol.market_sbe import decode_known, encode_known
    from relay.protocol.v1 import market_pb2

    tick = market_pb2.Tick(trade_id="4711", ticker="BTC/USDT.BINANCE", price=6_450_010, amount=12_500)
    plain, symbol_ids = tick.SerializeToString(), {tick.ticker: 1}
    body = b"\x04" + plain
    record, tickers = encode_known(body, symbol_ids) or b"", {1: tick.ticker}
    if decode_known(record, tickers) != tick:
        raise RuntimeError("expected the tick to come back from SBE; this is an error of the benchmark")
    works: Works = {
        "tick encode: protobuf": tick.SerializeToString,
        "tick encode: SBE": lambda: encode_known(body, symbol_ids),
        "tick decode: protobuf": lambda: market_pb2.Tick.FromString(plain),
        "tick decode: SBE": lambda: decode_known(record, tickers),
    }
    return works, len(plain), len(record)


def numpy_rate(rounds: int) -> list[float]:
    """Messages a second to a NumPy array, in millions, whose bids are added up: an array alone would read nothing."""
    from relay_accel import sbe

    quote = sbe.load(SCHEMA).messages["Quote"]
    data = quote.encode(dict(zip(NAMES, VALUES, strict=True))) * MESSAGES_NUMPY
    found = []
    for _ in range(rounds):
        started = time.perf_counter()
        int(sbe.to_numpy(quote, data)["bid"].sum())
        found.append(MESSAGES_NUMPY / (time.perf_counter() - started) / 1e6)
    return found


def run(*, quick: bool) -> Report:
    """Measure the codecs, each kind in turns."""
    if importlib.util.find_spec("relay_accel") is None:
        raise RuntimeError(
            "expected the accelerator, it is not built here; install Rust 1.88 or later, then `make clean`"
        )
    report = Report(
        "codecs",
        "How long does a message in SBE take in generated Rust, by dynamic views and in Python?",
        "one process for Rust, one for Python; all ways in turns, medians of the rounds",
        "nothing is on disk",
    )
    rounds, calls = (3, 500) if quick else (21, 20_000)
    rust = rust_figures(rounds, calls)
    ticks, protobuf_bytes, sbe_bytes = tick_works()
    singles = single_works()
    java, told = ({}, "not in quick runs") if quick else codecs_java.figures_or_reason(rounds, calls)
    figures = rust | java | timed(singles, rounds, calls) | timed(ticks, rounds, calls)
    middle = {name: median(found) for name, found in figures.items()}
    for name, value in middle.items():
        report.add(name, ns=round(value, 1))
    report.add("tick bytes", protobuf=protobuf_bytes, sbe=sbe_bytes)
    rate = median(numpy_rate(rounds))
    report.add("1,000,000 messages to NumPy, one column added up", million_s=round(rate, 1))
    _tell_ratios(report, middle, rate)
    report.notes["Java of the reference tool"] = told
    if not rust:
        report.notes["no Rust"] = "no cargo: the example codec_rate was not measured"
    missing = [name for name in PEERS if f"Python decode: PyPI {name}" not in middle]
    if missing:
        report.notes["not measured"] = (
            f"{', '.join(missing)} of PyPI: no dependency, put it on PYTHONPATH to measure it"
        )
    return report


def _tell_ratios(report: Report, middle: dict[str, float], rate: float) -> None:
    """Ratios are times of ours over times of the other: less is better."""

    def tell(name: str, ours: str, other: str, goal_max: float | None) -> None:
        if ours in middle and other in middle:
            report.ratio(name, middle[ours] / middle[other], goal_max=goal_max)

    for message in ("car", "refresh"):
        for way in ("decode", "encode"):
            by_hand = f"{message} {way} by hand"
            tell(f"{message}_{way}_generated_to_by_hand", f"{message} {way} generated", by_hand, 2)
            tell(f"{message}_{way}_dynamic_to_by_hand", f"{message} {way} dynamic", by_hand, None)
            for name in codecs_java.NAMES:
                ratio = f"{message}_{way}_generated_to_{name.lower().replace(' ', '_')}"
                tell(ratio, f"{message} {way} generated", f"{message} {way} {name}", None)
    unpacker, view = "Python decode: relay_accel, Unpacker", "Python decode: relay_accel, view"
    tell("python_decode_to_struct", unpacker, "Python decode: struct", 1)
    tell("python_view_to_struct", view, "Python decode: struct", None)
    quickest = min((name for name in middle if ": PyPI " in name), key=middle.__getitem__, default="")
    tell("python_decode_to_quickest_of_pypi", unpacker, quickest, 0.02)
    tell("python_view_to_quickest_of_pypi", view, quickest, None)
    tell("python_decode_to_pypi_sbe_decode", unpacker, "Python decode: PyPI sbe decode", None)
    tell("struct_to_quickest_of_pypi", "Python decode: struct", quickest, None)
    tell("tick_encode_sbe_to_protobuf", "tick encode: SBE", "tick encode: protobuf", None)
    tell("tick_decode_sbe_to_protobuf", "tick decode: SBE", "tick decode: protobuf", None)
    report.ratio("20_million_s_to_numpy_rate", 20 / rate, goal_max=1)
