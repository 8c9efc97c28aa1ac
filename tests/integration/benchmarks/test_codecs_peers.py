"""The codecs that ours are measured beside decode and encode the same."""

from __future__ import annotations

import importlib.util
import sys
import types

import pytest

from benchmarks import codecs_java, codecs_pypi
from benchmarks.java_peer import SBE_TOOL, MissingPeerError

pytestmark = pytest.mark.skipif(not importlib.util.find_spec("relay_accel"), reason="the accelerator is not built")
CASES = [f"{message} {way}" for message in ("car", "refresh") for way in ("decode", "encode")]


@pytest.fixture
def needs_java() -> None:
    try:
        SBE_TOOL.jar()
        codecs_java.require_jdk()
    except MissingPeerError as missing:
        pytest.skip(str(missing))


@pytest.mark.usefixtures("needs_java")
def test_the_generated_java_has_a_figure_of_each_round_for_each_case():
    found, told = codecs_java.figures_or_reason(2, 100)
    assert set(found) == {f"{case} {name}" for case in CASES for name in codecs_java.NAMES}
    assert all(len(figures) == 2 and min(figures) > 0 for figures in found.values())
    assert told == codecs_java.LAYOUT


@pytest.mark.usefixtures("needs_java")
def test_java_that_encodes_another_message_than_ours_is_refused(monkeypatch):
    monkeypatch.setitem(codecs_java.SAMPLES["car"], "serial", 1235)
    with pytest.raises(RuntimeError, match="those in Java are"):
        codecs_java.java_figures(1, 10)


def test_a_missing_jar_is_told_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv(SBE_TOOL.variable, str(tmp_path / "none.jar"))
    found, told = codecs_java.figures_or_reason(1, 1)
    assert not found
    assert "set MARKET_RELAY_SBE_TOOL" in told


def pretend(monkeypatch: pytest.MonkeyPatch, value: object) -> None:
    """Let ``sbedecoder`` be a module whose messages have one field ``bid`` of a value, and no other be there."""
    module = types.ModuleType("sbedecoder")
    message = types.SimpleNamespace(bid=types.SimpleNamespace(value=value), ask=types.SimpleNamespace(value=2))
    module.SBESchema = lambda: types.SimpleNamespace(parse=lambda path: None)  # type: ignore[attr-defined]
    module.SBEMessage = types.SimpleNamespace(parse_message=lambda schema, data: message)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sbedecoder", module)
    monkeypatch.setitem(sys.modules, "sbe", None)


def test_codecs_of_pypi_are_measured_where_they_can_be_imported(monkeypatch):
    pretend(monkeypatch, 1)
    works = codecs_pypi.pypi_works(b"<schema/>", b"", ("bid", "ask"), (1, 2))
    assert list(works) == ["Python decode: PyPI sbedecoder"]


def test_a_codec_of_pypi_that_decodes_other_values_is_no_baseline(monkeypatch):
    pretend(monkeypatch, 3)
    with pytest.raises(RuntimeError, match="expected sbedecoder of PyPI to decode"):
        codecs_pypi.pypi_works(b"<schema/>", b"", ("bid", "ask"), (1, 2))
