#!/bin/sh
# Install into an environment what the named extras need, at the locked versions, every file checked by its hash.
set -eu
environment="$1"
shift
/build/tools/bin/python docker/pinned.py "$@" >/tmp/wanted.txt
/build/tools/bin/uv pip install -q --python "$environment/bin/python" --compile-bytecode \
    --require-hashes --constraint requirements.lock --requirement /tmp/wanted.txt
