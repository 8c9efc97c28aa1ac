#!/bin/sh
# The core's tests under the address and the thread sanitizer. Needs the nightly toolchain; `make check`
# calls it, but not in its quick form, since it builds everything twice.
set -eu
cd "$(dirname "$0")"
target=$(rustc +nightly -vV | sed -n 's/^host: //p')

# Tests of death forget their producers on purpose: leaks are no finding.
ASAN_OPTIONS=detect_leaks=0 RUSTFLAGS=-Zsanitizer=address CARGO_TARGET_DIR=target/asan \
    cargo +nightly test --quiet --locked -p relay-accel-core -p relay-accel-codec --target "$target" --lib --tests
# The standard library is not built anew (its source may be missing), hence the flag and the suppressions.
TSAN_OPTIONS="suppressions=$PWD/tsan.supp" RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer" \
    CARGO_TARGET_DIR=target/tsan \
    cargo +nightly test --quiet --locked -p relay-accel-core --target "$target" --lib --test ends --test broadcast -- --test-threads=1
