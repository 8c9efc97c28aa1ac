"""The C interface: a compiled C program and this process are the two sides of a channel."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.accelerator import accelerator

ra = accelerator()

HERE = Path(__file__).resolve().parent
ACCELERATOR = HERE.parents[2] / "accelerator"
HEADER = ACCELERATOR / "include" / "relay_accel.h"
COUNT = 100_000
STRICT = ["-std=c99", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{HEADER.parent}"]


def tool(name: str) -> str:
    """Return where a compiler is; without one a skip, or a failure where the accelerator has to be there."""
    found = shutil.which(name)
    if found is None:
        told = pytest.fail if os.environ.get("MARKET_RELAY_NEEDS_ACCELERATOR") else pytest.skip
        told(f"no {name}: the C interface was not tried")
    return found


def done(command: list[str], folder: Path | None = None) -> str:
    answer = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    assert answer.returncode == 0, f"{command}: {answer.stderr[-3000:]}"
    return answer.stdout


@pytest.fixture(scope="module")
def libraries() -> dict[str, Path]:
    """Builds the library in the workspace's own target folder; its files by ending."""
    build = [tool("cargo"), "build", "--quiet", "--locked", "--message-format=json", "-p", "relay-accel-capi"]
    messages = [json.loads(line) for line in done(build, ACCELERATOR).splitlines()]
    names = [name for m in messages if m.get("target", {}).get("name") == "relay_accel" for name in m["filenames"]]
    return {Path(name).suffix: Path(name) for name in names}


@pytest.fixture(scope="module")
def peer(libraries: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> str:
    """The C program, linked to the shared library."""
    program = tmp_path_factory.mktemp("c") / "channel_peer"
    shared = libraries[".so"]
    done([tool("cc"), *STRICT, HERE / "channel_peer.c", shared, f"-Wl,-rpath,{shared.parent}", "-o", program])
    return str(program)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path


@pytest.fixture
def start(peer: str, folder: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts the C program; it has to end well before the test does."""
    children: list[subprocess.Popen[str]] = []

    def begun(*arguments: object) -> subprocess.Popen[str]:
        command = [peer, str(arguments[0]), str(folder), *map(str, arguments[1:])]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        children.append(child)
        return child

    yield begun
    for child in children:
        child.kill()
        child.communicate()


def ended(child: subprocess.Popen[str]) -> None:
    said, trouble = child.communicate(timeout=120)
    assert (child.returncode, said) == (0, "done\n"), trouble


def message(n: int) -> tuple[int, bytes]:
    """Message n, as the C program makes it."""
    return 1 + n % 7, b"" if n % 11 == 0 else n.to_bytes(8, "little") * (1 + n % 4)


def messages_of(consumer: object, count: int) -> list[tuple[int, bytes]]:
    got: list[tuple[int, bytes]] = []
    while len(got) < count:
        batch = consumer.poll_batch()
        got += batch.messages()
        if not len(batch):
            assert batch.stop == "empty", f"the writer left after {len(got)} messages"
            consumer.wait(timeout=30)
    return got


def offer(producer: object, payload: bytes, type_id: int) -> None:
    while producer.offer(payload, type_id) != ra.Outcome.ACCEPTED:
        producer.wait_for_room(len(payload), timeout=30)


def test_what_c_writes_python_reads_whole_and_in_order(folder, start):
    consumer = ra.Channel.create("c-to-python", 4096, directory=str(folder)).consumer()
    child = start("write", "c-to-python", COUNT)
    got = messages_of(consumer, COUNT)
    assert got == [message(n) for n in range(COUNT)]
    ended(child)
    assert consumer.poll_batch().stop == "closed"


def test_what_python_writes_c_reads_whole_and_in_order_and_sees_the_end(folder, start):
    producer = ra.Channel.create("python-to-c", 4096, directory=str(folder)).producer()
    child = start("read", "python-to-c", COUNT)
    for n in range(COUNT):
        type_id, payload = message(n)
        offer(producer, payload, type_id)
    producer.close()
    ended(child)


def test_a_c_program_answers_each_message_from_inside_its_handler(folder, start):
    there = ra.Channel.create("there", 4096, directory=str(folder)).producer()
    back = ra.Channel.create("back", 4096, directory=str(folder)).consumer()
    child = start("echo", "there", "back", 1000)
    for n in range(1000):
        type_id, payload = message(n)
        offer(there, payload, type_id)
        while (answer := back.take_message()) is None:
            back.wait(timeout=30)
        assert answer == (type_id, payload)
    ended(child)


def test_null_misaligned_foreign_damaged_and_taken_is_refused_with_its_code(folder, start):
    ra.Ring.create("ring", 1024, directory=str(folder))
    for name in ("foreign", "old", "cut", "torn"):
        ra.Channel.create(name, 4096, directory=str(folder))
    for name, offset, content in (
        ("foreign", 0, b"not ours"),
        ("old", 8, b"\x01\0\0\0"),
        ("torn", 256, b"\x08"),  # the reader ahead of the writer
    ):
        with (folder / name).open("r+b") as file:
            file.seek(offset)
            file.write(content)
    os.truncate(folder / "cut", 8192)
    ended(start("refusals"))


def test_a_forked_child_is_refused_and_a_killed_reader_is_told_from_a_slow_one(start):
    ended(start("forked"))


def test_every_declared_function_is_exported_and_nothing_else(libraries):
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)
    declared = set(re.findall(r"^[a-z].*?\b(ra_\w+)\(", text, flags=re.MULTILINE))
    symbols = done([tool("nm"), "-D", "--defined-only", str(libraries[".so"])]).split("\n")
    exported = {line.split()[-1] for line in symbols if line}
    assert declared == exported
    assert "ra_publish" in declared


@pytest.mark.parametrize(("language", "standard"), [("c", "c99"), ("c", "c17"), ("c++", "c++11")])
def test_the_header_stands_alone_in_c_and_in_cpp(language, standard, tmp_path):
    source = tmp_path / "alone.c"
    source.write_text(
        '#include "relay_accel.h"\n#include "relay_accel.h"\nint main(void) { return ra_publish != 0; }\n'
    )
    compiler = tool("cc") if language == "c" else shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler: the header was not tried in C++")
    strict = [part for part in STRICT if not part.startswith("-std")]
    done([compiler, "-x", language, f"-std={standard}", *strict, "-Wno-address", "-fsyntax-only", str(source)])


def test_the_example_of_the_readme_compiles_and_prints_what_python_wrote(libraries, folder):
    [example] = re.findall(r"```c\n(.*?)```", (ACCELERATOR / "README.md").read_text(), flags=re.DOTALL)
    (folder / "example.c").write_text(example.replace("create(NULL)", f'create("{folder}")'))
    producer = ra.Channel.create("ticks", 4096, directory=str(folder)).producer()
    producer.offer(b"hello", 7)
    producer.close()
    shared = libraries[".so"]
    done([tool("cc"), *STRICT, "example.c", shared, f"-Wl,-rpath,{shared.parent}", "-o", "example"], folder)
    assert done(["./example"], folder) == "7: hello\n"


def test_the_static_library_is_enough_for_a_program(libraries, folder, tmp_path):
    program = tmp_path / "static_peer"
    done([tool("cc"), *STRICT, HERE / "channel_peer.c", libraries[".a"], "-pthread", "-ldl", "-lm", "-o", program])
    assert done([str(program), "forked", str(folder)]) == "done\n"
