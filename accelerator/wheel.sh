#!/bin/sh
# Wheels of the accelerator for this machine's processor, and for aarch64 where its Rust target is installed.
set -eu
bin=$(cd "$1" && pwd)
cd "$(dirname "$0")"

if ! command -v cargo >/dev/null 2>&1; then
    echo "expected cargo (Rust 1.88 or later) to build wheels, found none" >&2
    exit 2
fi
export MATURIN_NO_INSTALL_RUST=1
PATH="$bin:$PATH" "$bin/maturin" build --release --locked --strip --out dist
other=aarch64-unknown-linux-gnu
if [ -d "$(rustc --print sysroot)/lib/rustlib/$other" ] && command -v aarch64-linux-gnu-gcc >/dev/null 2>&1; then
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc PATH="$bin:$PATH" \
        "$bin/maturin" build --release --locked --strip --out dist --target "$other"
else
    echo "no wheel for $other: it needs that Rust target and aarch64-linux-gnu-gcc"
fi
ls -l dist
