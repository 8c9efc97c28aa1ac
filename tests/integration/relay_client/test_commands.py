"""The client's commands and examples."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from relay.protocol.v1 import market_pb2, request_pb2
from tests.support.client_world import BTC, GatewayWorld, minutes
from tests.support.commands import run_command

ROOT = Path(__file__).resolve().parents[3]
_Ready = request_pb2.HistoryReadyNotification
SPAN = ["--start", "2023-11-14T22:14:00Z", "--end", "2023-11-14T22:34:00Z"]


def addresses(world: GatewayWorld) -> dict[str, str]:
    return {
        "RELAY_CLIENT_REQUEST_PORT": str(world.ports["request"]),
        "RELAY_CLIENT_SUBSCRIBE_PORT": str(world.ports["subscribe"]),
    }


def run(world: GatewayWorld, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **addresses(world)}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=240, check=False
    )


def relay(world: GatewayWorld, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_command(arguments, environment=addresses(world))


def symbols(query: request_pb2.SymbolQuery) -> request_pb2.SymbolReply:
    if query.exchange != "BINANCE":
        reply = request_pb2.SymbolReply(status=request_pb2.SymbolReply.NOT_FOUND, error_code="UNKNOWN_EXCHANGE")
        reply.error_message = "unknown exchange"
        return reply
    market = market_pb2.Market(
        market_id=BTC, exchange_id="BINANCE", native_symbol="BTCUSDT", price_increment="0.01", base_asset="BTC"
    )
    return request_pb2.SymbolReply(status=request_pb2.SymbolReply.OK, markets=[market])


def test_history_shows_a_table_and_writes_no_chart_or_bar_into_a_pipe(world):
    shown = run(world, "-c", "from relay.cli import main; main()", "history", BTC, *SPAN)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "20 bars" in shown.stdout
    assert "42.13" in shown.stdout
    assert "█" not in shown.stdout
    assert "█" in relay(world, "history", BTC, *SPAN, "--chart").stdout
    assert len(world.manager.submits) == 1


def test_history_as_json_is_one_object_with_plain_numbers(world):
    told = json.loads(relay(world, "history", BTC, *SPAN, "--json").stdout)
    assert (told["status"], len(told["bars"]), told["missing"]) == ("OK", 20, [])
    assert told["bars"][0]["volume"] == "0.0000001"


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow", "json"])
def test_history_goes_into_a_file(world, tmp_path, kind):
    path = tmp_path / f"bars.{kind}"
    done = relay(world, "history", BTC, *SPAN, "--output", str(path))
    assert (done.returncode, done.stdout) == (0, "")
    assert "20 bars written" in done.stderr
    assert path.stat().st_size > 500
    if kind == "csv":
        assert len(list(csv.reader(path.open()))) == 21


def test_what_is_missing_is_said_and_strict_makes_it_an_exit_code(world):
    world.manager.script = lambda m: (_Ready.PARTIAL, "BANNED", [minutes(0, 5)])
    loose = relay(world, "history", BTC, *SPAN)
    assert loose.returncode == 0
    assert "missing: 2023-11-14T22:19:00Z to 2023-11-14T22:34:00Z" in loose.stderr
    assert "BANNED" in loose.stderr
    assert relay(world, "history", BTC, *SPAN, "--strict").returncode == 5


@pytest.mark.parametrize(
    ("arguments", "exit_code", "says"),
    [
        (["history", BTC], 2, "start or last"),
        (["history", BTC, "--start", "2023-11-14T22:14"], 2, "no zone"),
        (["history", "bitcoin", "--last", "1h"], 2, "BASE/QUOTE.EXCHANGE"),
        (["history", BTC, "--last", "1h", "--period", "1M"], 2, "calendar months"),
        (["history", BTC, "--last", "1h", "--output", "bars.xls"], 2, ".parquet"),
        (["history", BTC, "--last", "1h", "--nonsense"], 2, "--nonsense"),
        (["request-status", str(uuid.uuid4())], 3, "UNKNOWN_REQUEST"),
        (["symbols", "--exchange", "NOWHERE"], 3, "UNKNOWN_EXCHANGE"),
    ],
)
def test_exit_codes_say_what_the_caller_can_do(world, arguments, exit_code, says):
    world.manager.symbols = symbols
    done = relay(world, *arguments)
    assert done.returncode == exit_code, done.stderr
    assert says in done.stderr


def test_an_unknown_ticker_is_exit_code_3_whoever_is_asked(world):
    known = market_pb2.Market(market_id=BTC, exchange_id="BINANCE", native_symbol="BTCUSDT")
    world.manager.symbols = lambda query: request_pb2.SymbolReply(
        status=request_pb2.SymbolReply.OK, markets=[known] if query.ticker == BTC else []
    )
    world.manager.script = lambda m: (_Ready.NOT_FOUND, "UNKNOWN_SYMBOL", [])
    for arguments in (["history", "FOO/USDT.BINANCE", *SPAN], ["symbols", "--ticker", "FOO/USDT.BINANCE", "--history"]):
        done = relay(world, *arguments)
        assert (done.returncode, done.stdout) == (3, ""), done.stderr
        assert "UNKNOWN_SYMBOL" in done.stderr
        assert "FOO/USDT.BINANCE" in done.stderr
    untold = relay(world, "symbols", "--ticker", BTC, "--history")
    assert (untold.returncode, untold.stdout) == (0, "")
    assert "nothing is stored yet" in untold.stderr


def test_something_away_is_exit_code_4(world):
    world.manager.faults.unavailable = 1_000
    done = relay(world, "history", BTC, *SPAN, "--timeout", "4")
    assert done.returncode == 4
    assert "UNAVAILABLE" in done.stderr


def test_submit_prints_an_id_that_request_status_knows(world):
    submitted = relay(world, "submit", BTC, *SPAN).stdout.strip()
    told = json.loads(relay(world, "request-status", submitted, "--wait", "--json").stdout)
    assert (told["request_id"], told["status"]) == (submitted, "OK")
    again = json.loads(relay(world, "submit", BTC, *SPAN, "--request-id", submitted, "--json").stdout)
    assert again["was_known"] is True
    assert relay(world, "request-status", submitted).stdout.startswith(f"OK  {BTC}")


def test_symbols_are_listed_and_told_as_json(world):
    world.manager.symbols = symbols
    assert BTC in relay(world, "symbols", "BTC", "--exchange", "BINANCE").stdout
    told = json.loads(relay(world, "symbols", "--exchange", "BINANCE", "--json").stdout)
    assert told[0]["native_symbol"] == "BTCUSDT"


def test_the_examples_run(world):
    world.manager.symbols = symbols
    history = run(world, str(ROOT / "examples" / "history_to_pandas.py"), BTC, "2h")
    assert history.returncode == 0, history.stderr
    assert "OK" in history.stdout
    listed = run(world, str(ROOT / "examples" / "symbols.py"), "BINANCE", "BTC")
    assert BTC in listed.stdout, listed.stderr


def test_the_lines_of_the_readme_run(world, tmp_path):
    readme = (ROOT / "clients" / "python" / "README.md").read_text()
    code = re.search(r"```python\n(.*?)```", readme, re.DOTALL)[1]
    assert len(code.splitlines()) <= 10
    path = tmp_path / "readme.py"
    path.write_text(code)
    done = run(world, str(path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("OK")
