"""The Java that the SBE reference tool generates, in the benchmark ``codecs``: the messages of ``codec_rate``."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.java_peer import OPENED, SBE_TOOL, MissingPeerError, compile_java, require_jdk

__all__ = ["LAYOUT", "NAMES", "Figures", "figures_or_reason", "java_figures"]

NAMES = {"Java": (), "Java unchecked": ("-Dagrona.disable.bounds.checks=true",)}
"""How the rows end, and options of ``java``: with the checks of bounds that the generated Rust has, and without."""
LAYOUT = (
    f"{SBE_TOOL.name} {SBE_TOOL.version}; two JVMs, with checks of bounds and without, warmed up; each message fills "
    "one object, or is made of it, and is published by a release store: nothing can be left out; texts are views; what "
    "is encoded equals ours byte for byte"
)
ROOT = Path(__file__).resolve().parent.parent
SOURCES = Path(__file__).with_name("sbe_rate")
SCHEMAS = {"car": ROOT / "accelerator" / "codec" / "tests" / "car.xml", "refresh": ROOT / "proto" / "fix.xml"}
MESSAGES = {"car": "Car", "refresh": "MarketDataIncrementalRefresh"}
TIMEOUT_S = 300
Figures = dict[str, list[float]]
Sample = dict[str, Any]


def _performance(octane: int, *seconds: float) -> Sample:
    accelerations = [{"mph": mph, "seconds": after} for mph, after in zip((30, 60, 100), seconds, strict=True)]
    return {"octane": octane, "acceleration": accelerations}


def _entry(index: int) -> Sample:
    return {
        "MDUpdateAction": "Change",
        "MDEntryType": ("Bid", "Offer")[index % 2],
        "Symbol": "BTCUSD",
        "MDEntryPx": {"mantissa": 645_001_000_000 + index},
        "MDEntrySize": {"mantissa": 12_500_000},
        "RptSeq": 1_000 + index,
        "NumberOfOrders": None if index % 3 == 0 else 3,
        "MDPriceLevel": index,
    }


SAMPLES: dict[str, Sample] = {
    "car": {
        "serial": 1234,
        "year": 2013,
        "model": "A",
        "code": "abcdef",
        "extras": ["sport", "cruise"],
        "engine": {"capacity": 2000, "extras": ["roof"]},
        "fuel": [
            {"speed": 30, "usage": "Urban Cycle"},
            {"speed": 55, "usage": "Combined Cycle"},
            {"speed": 75, "usage": "Highway Cycle"},
        ],
        "performance": [_performance(95, 4.0, 7.5, 12.2), _performance(99, 3.8, 7.1, 11.8)],
        "manufacturer": "Honda",
        "model_name": "Civic VTi",
    },
    "refresh": {
        "MDReqID": "BOOK-17",
        "TransactTime": 1_700_000_000_000_000_000,
        "NoMDEntries": [_entry(index) for index in range(10)],
    },
}
"""What ``codec_rate`` encodes, and the program in Java."""


def encoded_samples() -> dict[str, str]:
    """The messages as this library encodes them, in hexadecimal."""
    from relay_accel import sbe

    found = {}
    for name, schema in SCHEMAS.items():
        found[name] = sbe.load(str(schema)).messages[MESSAGES[name]].encode(SAMPLES[name]).hex()
    return found


def java_figures(rounds: int, messages: int) -> Figures:
    """Generate, compile and run the program: nanoseconds a message, a number each round.

    Raises:
        MissingPeerError: there is no jar or no Java.
        RuntimeError: it encodes other bytes than this library.
    """
    jar = SBE_TOOL.jar()
    require_jdk()
    found: Figures = {}
    with tempfile.TemporaryDirectory(prefix="codecs-") as folder:
        sources = [*_generated(jar, Path(folder) / "java"), *SOURCES.glob("*.java")]
        class_path = compile_java(sources, jar, Path(folder) / "classes")
        for name, options in NAMES.items():
            command = ["java", *OPENED, *options, "-cp", class_path, "SbeRate", str(rounds), str(messages)]
            run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=TIMEOUT_S)
            encoded, figures = map(json.loads, run.stdout.splitlines())
            if encoded != encoded_samples():
                raise RuntimeError(f"expected the messages {encoded_samples()}, those in Java are {encoded}")
            found |= {f"{case} {name}": values for case, values in figures.items()}
    return found


def _generated(jar: Path, folder: Path) -> list[Path]:
    for schema in SCHEMAS.values():
        options = [f"-Dsbe.output.dir={folder}", "-Dsbe.target.language=Java"]
        subprocess.run(["java", *OPENED, *options, "-jar", jar, schema], check=True, timeout=TIMEOUT_S)
    return list(folder.rglob("*.java"))


def figures_or_reason(rounds: int, messages: int) -> tuple[Figures, str]:
    """Return the figures, none where something is missing; and how they were taken, or what is missing."""
    try:
        return java_figures(rounds, messages), LAYOUT
    except MissingPeerError as missing:
        return {}, f"not measured: {missing}"
