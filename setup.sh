#!/bin/sh
# Makes the virtual environment from the hash-pinned lock and installs this checkout into it. Called by the Makefile.
set -eu
python="$1"
venv="$2"

version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || {
    echo "expected Python 3.11 or later as '$python', found none; install it or say make PYTHON=/path/to/python" >&2
    exit 2
}
case "$version" in
3.1[1-9]) ;;
*)
    echo "expected Python 3.11 or later, '$python' is $version; say make PYTHON=/path/to/python3.11" >&2
    exit 2
    ;;
esac
if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
    echo "Python $version lacks the modules venv and ensurepip; on Debian: apt-get install python3-venv" >&2
    exit 2
fi
if [ ! -x "$venv/bin/python" ]; then
    echo "making the environment in $venv"
    "$python" -m venv "$venv"
fi
if [ ! -x "$venv/bin/uv" ]; then
    # An environment that other tools made may have no pip.
    "$venv/bin/python" -m pip --version >/dev/null 2>&1 || "$venv/bin/python" -m ensurepip >/dev/null
    "$venv/bin/python" -m pip install -q --disable-pip-version-check "uv==0.13.9" || {
        echo "could not install uv; is the package index reachable? Run the same command again later" >&2
        exit 4
    }
fi
echo "installing the pinned dependencies (once; about 1.5 GB unpacked)"
"$venv/bin/uv" pip install -q --python "$venv/bin/python" --require-hashes -r requirements.lock || {
    echo "could not install the dependencies; run the same command again, what has come stays" >&2
    exit 4
}
"$venv/bin/uv" pip install -q --python "$venv/bin/python" --no-deps --no-build-isolation -e . -e clients/python

# The accelerator is compiled where there is a compiler; nothing fetches one by itself.
if command -v cargo >/dev/null 2>&1; then
    echo "building the accelerator (once; about a minute)"
    MATURIN_NO_INSTALL_RUST=1 "$venv/bin/uv" pip install -q --python "$venv/bin/python" --no-deps --no-build-isolation -e accelerator || {
        echo "could not build the accelerator: it needs Rust 1.88 or later and the crates of accelerator/Cargo.lock, found $(cargo --version 2>&1)" >&2
        echo "the platform runs without it, on plain sockets; mend that, then: touch pyproject.toml and the same command again" >&2
    }
else
    echo "no cargo: the accelerator is left out and the platform uses plain sockets; with Rust 1.88 or later: touch pyproject.toml and the same command again"
fi
