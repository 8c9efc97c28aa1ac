"""Print what chosen extras of this repository need directly, each at its locked version.

``python docker/pinned.py manager simulation`` writes requirements to standard output; installed with
``--require-hashes --constraint requirements.lock`` they bring in nothing that the lock does not name.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

__all__ = ["pinned"]

_ROOT = Path(__file__).resolve().parent.parent
_REQUIREMENT = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(?P<extras>\[[^]]*\])?")
_LOCKED = re.compile(r"^([A-Za-z0-9._-]+)==([^\\\n]+)", re.MULTILINE)


def pinned(extras: Iterable[str], *, root: Path = _ROOT) -> list[str]:
    """Return ``name[extras]==version ; marker`` of every direct requirement of the library and its extras.

    Args:
        extras: of ``market-relay``; ``client`` adds what the SDK needs, ``build`` what makes wheels, and
            ``accelerator`` what makes that of the accelerator, where it is there.
        root: folder with ``pyproject.toml`` and ``requirements.lock``.

    Raises:
        SystemExit: an extra or a locked version is missing.
    """
    library = tomllib.loads((root / "pyproject.toml").read_text())
    project = library["project"]
    client = tomllib.loads((root / "clients" / "python" / "pyproject.toml").read_text())["project"]
    path = root / "accelerator" / "pyproject.toml"
    accelerator = tomllib.loads(path.read_text()) if path.exists() else {}
    groups: dict[str, list[str]] = {
        **project["optional-dependencies"],
        "client": client["dependencies"],
        "build": library["build-system"]["requires"],
        "accelerator": accelerator["build-system"]["requires"] if accelerator else [],
    }
    locked: dict[str, list[str]] = {}
    for name, rest in _LOCKED.findall((root / "requirements.lock").read_text()):
        locked.setdefault(name, []).append(rest.strip())
    found: dict[str, None] = {}
    for requirement in [*project["dependencies"], *_expanded(extras, groups)]:
        match = _REQUIREMENT.match(requirement)
        if match is None or match["name"] not in locked:
            raise SystemExit(f"expected {requirement!r} in requirements.lock, but it is not there; run make lock")
        found |= {f"{match['name']}{match['extras'] or ''}=={version}": None for version in locked[match["name"]]}
    return sorted(found)


def _expanded(extras: Iterable[str], groups: dict[str, list[str]]) -> Iterator[str]:
    for extra in extras:
        if extra not in groups:
            raise SystemExit(f"expected an extra out of {', '.join(sorted(groups))}, got {extra!r}")
        for requirement in groups[extra]:
            match = _REQUIREMENT.match(requirement)
            if match is not None and match["name"] == "market-relay":
                yield from _expanded(re.split(r"\s*,\s*", (match["extras"] or "[]")[1:-1]), groups)
            else:
                yield requirement


if __name__ == "__main__":
    sys.stdout.write("\n".join(pinned(sys.argv[1:])) + "\n")
