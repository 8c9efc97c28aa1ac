"""SBE codecs of PyPI in pure Python, in the benchmark ``codecs``: each where ``PYTHONPATH`` leads to it."""

from __future__ import annotations

import importlib
import io
import tempfile
from collections.abc import Callable, Sequence
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any

__all__ = ["PEERS", "pypi_works"]

Works = dict[str, Callable[[], object]]


def _sbedecoder(schema: bytes, data: bytes, names: Sequence[str]) -> Callable[[], object]:
    """Fields are read from the message they are wrapped around: the quickest of its ways."""
    package: Any = importlib.import_module("sbedecoder")
    parsed = package.SBESchema()
    with tempfile.TemporaryDirectory(prefix="codecs-") as folder:
        path = Path(folder) / "schema.xml"
        path.write_bytes(schema)
        parsed.parse(str(path))
    parse, values = package.SBEMessage.parse_message, attrgetter(*(f"{name}.value" for name in names))
    return lambda: values(parse(parsed, data))


def _sbe_schema(schema: bytes) -> Any:
    package: Any = importlib.import_module("sbe")
    return package.Schema.parse(io.StringIO(schema.decode()))


def _sbe_wrap(schema: bytes, data: bytes, names: Sequence[str]) -> Callable[[], object]:
    wrap, values = _sbe_schema(schema).wrap, itemgetter(*names)
    return lambda: values(wrap(data).body)


def _sbe_decode(schema: bytes, data: bytes, names: Sequence[str]) -> Callable[[], object]:
    decode, values = _sbe_schema(schema).decode, itemgetter(*names)
    return lambda: values(decode(data).value)


PEERS = {"sbedecoder": _sbedecoder, "sbe wrap": _sbe_wrap, "sbe decode": _sbe_decode}
"""The quickest first; ``sbedecoder`` cannot encode. Others: ``pysbe`` is empty, ``sbe2`` needs Python 3.12."""


def pypi_works(schema: bytes, data: bytes, names: Sequence[str], values: tuple[object, ...]) -> Works:
    """One message, all fields, by each codec that can be imported.

    Raises:
        RuntimeError: one decodes other values.
    """
    works: Works = {}
    for name, made in PEERS.items():
        try:
            work = made(schema, data, names)
        except ImportError:
            continue
        if work() != values:
            raise RuntimeError(f"expected {name} of PyPI to decode {values}, it was {work()}")
        works[f"Python decode: PyPI {name}"] = work
    return works
