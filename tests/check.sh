#!/bin/sh
# All that `make check` looks at; the accelerator's part, mostly its compiler, runs beside the rest. Changes nothing.
set -u
bin=$1
said=$(mktemp)
trap 'rm -f "$said"' EXIT
# What a shell starts in the background ignores Ctrl-C, and so would all that it starts.
env --default-signal=INT sh accelerator/check.sh "$bin" >"$said" 2>&1 &
other=$!
trap 'kill -INT "$other" 2>/dev/null; wait "$other"; exit 130' INT TERM
"$bin/ruff" check . && "$bin/ruff" format --check . && "$bin/mypy" &&
    PYTHONPATH=accelerator/python "$bin/lint-imports" --no-logo && "$bin/pytest" tests/tidy
first=$?
wait "$other"
second=$?
cat "$said"
[ "$first" -eq 0 ] && [ "$second" -eq 0 ]
