"""Ways to stream that are known to lose or double records are not used; reads the tree."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

JOBS = Path(__file__).resolve().parents[3] / "spark_jobs"
TABLES = JOBS.parent / "relay" / "tables"


def called(*folders: Path) -> dict[str, set[str]]:
    """Names of what is called, each with the files that do; with a keyword argument also as ``name(key=``."""
    found: dict[str, set[str]] = {}
    for folder in folders:
        for path in folder.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if not isinstance(node, ast.Call):
                    continue
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                for key in (name, *(f"{name}({keyword.arg}=" for keyword in node.keywords)):
                    found.setdefault(key, set()).add(path.name)
    return found


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("DataSource", "case 136, 143: the log is read by Kafka's connector, not by a source of our own"),
        ("SimpleDataSourceStreamReader", "case 136: it leaks memory where its offsets stand still"),
        ("trigger(realTime=", "case 143: sources in Python have no real-time mode"),
        ("foreach", "case 140: rows are dropped by the log's offsets, not by (partition, epoch) of a row writer"),
        ("dropDuplicates", "case 140: a lost state would forget what is stored"),
        ("withWatermark", "case 138: it is one for all tickers, and a late row is lost by it"),
        ("applyInPandasWithState", "case 138: the same"),
    ],
)
def test_what_loses_or_doubles_records_is_not_used_case_136_138_140_143(name: str, why: str) -> None:
    assert called(JOBS).get(name, set()) == set(), why


def test_micro_batches_are_handed_to_the_driver_at_a_processing_time_case_143() -> None:
    found = called(JOBS)
    assert {"job.py", "source.py"} >= found["foreachBatch"]
    assert found["trigger(processingTime="]


def test_rows_are_replaced_by_ranges_and_never_by_an_upsert_case_122_123() -> None:
    assert called(JOBS, TABLES).get("upsert", set()) == set()
