#!/bin/sh
# Checks that a Rust toolchain is there and new enough for the agent (agent/Cargo.toml,
# rust-version); Debian 12's own is not. Installs nothing: a toolchain is the user's choice.
set -eu
cd "$(dirname "$0")/.."
needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' agent/Cargo.toml)
if ! command -v cargo >/dev/null 2>&1; then
	echo "setup: cargo is missing: install Rust $needed or newer (https://rustup.rs)" >&2
	exit 3
fi
found=$(rustc --version | cut -d' ' -f2)
if [ "$(printf '%s\n%s\n' "$needed" "$found" | sort -V | head -n1)" != "$needed" ]; then
	echo "setup: Rust $found is too old: install $needed or newer (rustup update stable)" >&2
	exit 3
fi
echo "setup: Rust $found"
