"""A short smoke of the cheap benchmarks: they run, measure every case and name their baseline."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
needs_accelerator = pytest.mark.skipif(
    not importlib.util.find_spec("relay_accel") or not shutil.which("cc"),
    reason="the accelerator is not built, or there is no C compiler for the floors to compare it with",
)
needs_cargo = pytest.mark.skipif(not shutil.which("cargo"), reason="no cargo: there is no Rust program to measure")


@pytest.mark.parametrize(
    ("name", "cases", "ratio"),
    [
        pytest.param("submit_ack", 6, "p50_to_echo_1_in_flight", marks=pytest.mark.soak),
        ("fan_out", 8, "cpu_fast_path_1_subscribers_to_proxy"),
        pytest.param("fan_out_local", 8, "relay sleeps, p50 of shared memory, asleep to tcp", marks=pytest.mark.soak),
        pytest.param("churn", 10, "proxy_rate_to_relay_subscribing_200_topics", marks=pytest.mark.soak),
        ("decode_merge", 2, "decode_to_parquet_write"),
        ("live_parse", 16, "time_Binance_to_plain"),
        pytest.param("rings", 26, "in_turn_ours_to_ceiling", marks=needs_accelerator),
        pytest.param("codecs", 23, "python_decode_to_struct", marks=[needs_accelerator, needs_cargo]),
    ],
)
def test_a_quick_run_writes_every_case_and_a_ratio_to_its_baseline(name, cases, ratio, tmp_path):
    command = [sys.executable, "-m", "benchmarks", name, "--quick", "--output", str(tmp_path)]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert answer.returncode == 0, answer.stderr[-3000:]
    written = json.loads((tmp_path / f"{name}-quick.json").read_text())
    assert written["question"].endswith("?")
    assert len(written["rows"]) == cases
    assert written["ratios"][ratio]["value"] > 0
    assert written["machine"]["processors"] >= 1
    assert written["question"] in answer.stdout
