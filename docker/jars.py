"""Fetch groups of pinned jars and put them into one folder: ``python docker/jars.py /opt/jars spark s3``."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from relay.supervisor.jars_store import ensure_jars
from relay.supervisor.java import find_java


def main(target: Path, groups: list[str]) -> None:
    """Copy the jars of every group, checked against their sums, into ``target``."""
    java = find_java()
    target.mkdir(parents=True, exist_ok=True)
    for group in groups:
        for jar in sorted(ensure_jars(group, java, say=print).glob("*.jar")):
            shutil.copyfile(jar, target / jar.name)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
