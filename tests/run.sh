#!/bin/sh
# All tests in two runs side by side: much of the time they wait for brokers and sessions to start. Paths in the arguments: one run.
set -u
pytest=$1
shift
case "$*" in
*tests/*) exec "$pytest" "$@" ;;
esac
said=$(mktemp)
trap 'rm -f "$said"' EXIT
"$pytest" "$@" tests/unit tests/tidy tests/conformance tests/integration \
    --ignore=tests/integration/spark_jobs --ignore=tests/integration/live --ignore=tests/integration/benchmarks >"$said" 2>&1 &
other=$!
trap 'kill -INT "$other" 2>/dev/null; wait "$other"; rm -f "$said"' INT TERM
"$pytest" "$@" tests/e2e tests/integration/spark_jobs tests/integration/live tests/integration/benchmarks
first=$?
wait "$other"
second=$?
cat "$said"
[ "$first" -eq 0 ] && [ "$second" -eq 0 ]
