"""Style that is executed, not posted: reads the tree."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINES_MAX = 400
PRODUCT = ("relay/", "ingestors/", "spark_jobs/", "clients/", "accelerator/")
EXACT = ("relay/protocol/", "relay/engine/", "ingestors/engine/", "ingestors/exchanges/", "spark_jobs/jobs/history/")
VAGUE_NAMES = re.compile(r"(?<!^SendTo)(Manager|Helper|Util|Utils|Common|Base)$")
# Put together from halves, so that this file names none of them either.
HOSTS = (
    "python" + "hosted",
    "registry." + "npmjs",
    "repo1." + "maven",
    "static." + "crates",
    "pypi." + "org",
    "crates." + "io",
)
FOLDERS = ("work", "farm", "root", "home")
CARGO_SOURCE = 'source = "registry+https://github.com/rust-lang/crates.io-index"'
"""The standard line of Cargo.lock, which is no address of a download."""
FOREIGN = re.compile("|".join([*(f"(?<![A-Za-z0-9.~])/{name}/" for name in FOLDERS), *map(re.escape, HOSTS)]))


def tracked(*suffixes: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    return [ROOT / name for name in listed if name.endswith(suffixes) and (ROOT / name).is_file()]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def product() -> list[Path]:
    return [path for path in tracked(".py") if name_of(path).startswith(PRODUCT)]


def test_no_file_of_the_product_is_longer_than_a_reader_can_hold():
    long = {name_of(p): n for p in product() if (n := len(p.read_text().splitlines())) > LINES_MAX}
    assert not long


def test_every_module_says_in_a_docstring_what_it_is():
    silent = [name_of(p) for p in product() if not ast.get_docstring(ast.parse(p.read_text()))]
    assert not silent


def test_class_names_are_nouns_of_the_field_and_not_vague():
    vague = [
        f"{name_of(p)}: {node.name}"
        for p in product()
        for node in ast.walk(ast.parse(p.read_text()))
        if isinstance(node, ast.ClassDef) and VAGUE_NAMES.search(node.name)
    ]
    assert not vague


def test_no_binary_float_is_made_where_numbers_are_exact():
    floats = [
        f"{name_of(p)}:{node.lineno}"
        for p in product()
        if name_of(p).startswith(EXACT)
        for node in ast.walk(ast.parse(p.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "float"
    ]
    assert not floats


def test_no_test_sleeps():
    sleeping = [
        name_of(p)
        for p in tracked(".py")
        if name_of(p).startswith("tests/")
        and name_of(p) not in ("tests/support/processes.py", "tests/tidy/test_tidy.py")
        and re.search(r"\bsleep\((?!0\))", p.read_text())
    ]
    assert not sleeping


def test_no_unfinished_work_is_marked_in_the_product():
    marked = [name_of(p) for p in product() if re.search(r"\b(TODO|FIXME|XXX)\b", p.read_text())]
    assert not marked


def test_no_path_of_a_machine_and_no_address_of_a_registry_is_in_any_file():
    kinds = (
        ".py",
        ".md",
        ".toml",
        ".lock",
        ".yml",
        ".yaml",
        ".sh",
        ".xml",
        ".json",
        ".proto",
        ".rs",
        "Makefile",
        "Dockerfile",
    )
    foreign = {
        name_of(p): found[0]
        for p in tracked(*kinds)
        if name_of(p) != "tests/tidy/test_tidy.py"
        and (found := FOREIGN.search(p.read_text(errors="replace").replace(CARGO_SOURCE, "")))
    }
    assert not foreign


def test_delivery_is_never_called_exactly_once():
    promising = [
        name_of(p)
        for p in tracked(".py", ".md")
        if name_of(p) != "tests/tidy/test_tidy.py" and re.search(r"exactly[- ]once", p.read_text(), re.IGNORECASE)
    ]
    assert not promising


@pytest.mark.parametrize(("name", "lines_max"), [("docs/architecture.md", 250)])
def test_the_architecture_can_be_read_in_ten_minutes(name, lines_max):
    assert len((ROOT / name).read_text().splitlines()) <= lines_max


def test_links_between_documents_lead_somewhere():
    broken = [
        f"{name_of(p)}: {target}"
        for p in tracked(".md")
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", p.read_text())
        if not (p.parent / target).exists()
    ]
    assert not broken
