"""Which test covers which known fault: ``tests/cases.tsv`` and the tests agree.

A test names the cases it covers, in its name (``…_case_81``) or its text (``Cases 81 and 104``).
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
NAMED = re.compile(r"[Cc]ases?[ _](\d+(?:(?:, | and | or |_and_|_case_|_)\d+)*)")
Case = tuple[str, str, str, str]


def rows() -> list[Case]:
    lines = (TESTS / "cases.tsv").read_text().splitlines()[1:]
    found = [tuple(line.split("\t")) for line in lines]
    assert all(len(row) == 4 for row in found), "expected case, area, input, tests"
    return found  # type: ignore[return-value]


@cache
def named() -> dict[str, set[str]]:
    """Cases that each test names, by ``file::name``."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in TESTS.rglob("test_*.py"):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
                own = ast.get_source_segment(text, node) or ""
                ids = {number for match in NAMED.findall(own) for number in re.findall(r"\d+", match)}
                found[f"{path.relative_to(TESTS).as_posix()}::{node.name}"] |= ids
    return found


def test_every_test_in_the_list_exists_and_names_its_case() -> None:
    wrong = [
        f"{case}: {test}"
        for case, _, _, tests in rows()
        if not tests.startswith("- ")
        for test in tests.split(" ")
        if case not in named().get(test, set())
    ]
    assert not wrong


def test_every_case_has_a_test_or_a_reason_and_is_listed_once() -> None:
    cases = [case for case, *_ in rows()]
    assert len(cases) == len(set(cases))
    assert not [case for case, _, _, tests in rows() if len(tests) < 10]


def test_no_test_names_a_case_that_is_not_in_the_list() -> None:
    known = {case for case, *_ in rows()}
    unknown = {test: ids - known for test, ids in named().items() if ids - known and "tidy" not in test}
    assert not unknown
