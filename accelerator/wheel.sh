#!/bin/sh
# Wheels of the accelerator for x86-64 and aarch64, as far as this machine can: README.md says what each needs.
set -eu
bin=$(cd "$1" && pwd)
cd "$(dirname "$0")"

if ! command -v cargo >/dev/null 2>&1; then
    echo "expected cargo (Rust 1.88 or later) to build wheels, found none" >&2
    exit 2
fi
export MATURIN_NO_INSTALL_RUST=1
PATH="$bin:$PATH"

# With zig as the linker a wheel asks for glibc 2.17 only; without it, for what the libraries of this machine make of it.
zig=""
if command -v zig >/dev/null 2>&1 || python3 -m ziglang version >/dev/null 2>&1; then
    zig="--zig --compatibility manylinux2014"
else
    echo "no zig on the path and no ziglang in the environment: the wheel will ask for a glibc about as new as this machine's"
fi
libraries="$("${RUSTC:-rustc}" --print sysroot)/lib/rustlib"
for target in x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu; do
    processor=${target%%-*}
    if [ ! -d "$libraries/$target/lib" ]; then
        echo "no wheel for $processor: the Rust target $target is not installed"
    elif [ "$processor" != "$(uname -m)" ] && [ -z "$zig" ]; then
        echo "no wheel for $processor: zig is needed to link for another processor (ziglang in the environment)"
    else
        # shellcheck disable=SC2086 # the options are several words
        maturin build --release --locked --strip --out dist --interpreter python3 --target "$target" $zig
    fi
done
ls -l dist
