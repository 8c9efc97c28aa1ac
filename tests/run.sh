#!/bin/sh
# All tests in three runs side by side: much of the time they wait for brokers and sessions to start. Paths in the arguments: one run.
set -u
pytest=$1
shift
case "$*" in
*tests/*) exec "$pytest" "$@" ;;
esac
said=$(mktemp -d)
trap 'rm -rf "$said"' EXIT
# What a shell starts in the background ignores Ctrl-C, and so would all that it starts. A session of its own: told by the
# terminal and by this script, a lane would hear it twice, and the second one cuts short how it ends its brokers.
lane() { exec env --default-signal=INT setsid "$pytest" "$@"; }
# What takes little of Java goes beside the units, so that the three end at about the same time.
light="tests/integration/relay tests/integration/relay_accel tests/integration/simulation tests/integration/tables"
ignored=$(printf ' --ignore=%s' $light tests/integration/spark_jobs tests/integration/live tests/integration/benchmarks)
# Split into words on purpose.
(lane "$@" tests/unit tests/tidy tests/conformance $light >"$said/pure" 2>&1) &
pure=$!
(lane "$@" tests/integration $ignored >"$said/parts" 2>&1) &
parts=$!
trap 'kill -INT "$pure" "$parts" 2>/dev/null; wait "$pure" "$parts"; exit 130' HUP INT TERM
failed=0
env --default-signal=INT "$pytest" "$@" tests/e2e tests/integration/spark_jobs tests/integration/live tests/integration/benchmarks || failed=1
wait "$pure" || failed=1
wait "$parts" || failed=1
cat "$said/pure" "$said/parts"
exit "$failed"
