#!/bin/sh
# Style, lints, tests and models of the accelerator; changes nothing. Called by `make check` with the environment's bin folder.
set -eu
bin=$(cd "$1" && pwd)
cd "$(dirname "$0")"

if ! command -v cargo >/dev/null 2>&1; then
    echo "no cargo: the accelerator was not checked; install Rust 1.88 or later"
    exit 0
fi
cargo fmt --all --check
cargo clippy --quiet --workspace --all-targets --locked -- -D warnings
cargo test --quiet --locked -p relay-accel-core -p relay-accel-codec
# The library of the C interface, which tests/integration/relay_accel links C programs to.
cargo build --quiet --locked -p relay-accel-capi
# The models run the very code that ships, over loom's atomics: every order of its loads and stores, within bounds.
if [ -z "${MARKET_RELAY_QUICK_CHECK:-}" ]; then
    CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 RUSTFLAGS="--cfg loom" \
        CARGO_TARGET_DIR=target/loom cargo test --quiet --locked --release -p relay-accel-core --lib models
    if RUSTUP_AUTO_INSTALL=0 rustc +nightly --version >/dev/null 2>&1; then
        sh sanitize.sh
    else
        echo "no nightly toolchain: the address and the thread sanitizer were left out; rustup toolchain install nightly"
    fi
fi
if [ -n "$(ls python/relay_accel/_native*.so 2>/dev/null)" ]; then
    (cd python && "$bin/python" -m mypy.stubtest relay_accel --allowlist ../stubtest.txt --ignore-unused-allowlist)
fi
