#!/bin/sh
# Gets what the agent for arm64 is built of on a machine of another kind, beside the packages of
# packages-arm64.txt: Rust's standard library for it, by rustup; and libelf and libz, static, of
# this machine's Debian release for arm64, which are unpacked into target/arm64 and not installed.
# Debian's archive is asked with lists of its own, so that this machine's apt stays as it is.
# usage: setup/arm64.sh
set -eu
cd "$(dirname "$0")/.."
triple=aarch64-unknown-linux-gnu

has_std() {
	for library in "$(rustc --print target-libdir --target $triple)"/libstd-*.rlib; do
		[ -e "$library" ] && return 0
	done
	return 1
}
if has_std; then
	echo "setup: Rust's standard library for arm64: there"
elif ! command -v rustup >/dev/null 2>&1; then
	echo "setup: $(rustc --version) has no standard library for $triple," >&2
	echo "    and there is no rustup to add it. Debian has it: libstd-rust-dev:arm64" >&2
	exit 3
else
	echo "setup: rustup target add $triple"
	rustup target add $triple
fi

libraries=target/arm64
if [ -e $libraries/usr/lib/aarch64-linux-gnu/libelf.a ]; then
	echo "setup: libelf and libz for arm64: there"
	exit 0
fi
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
# shellcheck disable=SC2016 # apt's words
archive=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' \
	'Label: Debian' | head -n1)
# shellcheck disable=SC1091 # not a part of this tree
release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
if [ -z "$archive" ] || [ -z "$release" ] || [ ! -e $keyring ]; then
	echo "setup: apt knows no archive of Debian: sudo apt-get update, on Debian" >&2
	exit 3
fi
echo "setup: unpacking libelf and libz for arm64, of $release"
own=$(mktemp -d)
trap 'rm -rf "$own"' EXIT
mkdir -p "$own/lists/partial" "$own/cache/archives/partial" "$own/unpacked"
echo "deb [arch=arm64 signed-by=$keyring] $archive $release main" >"$own/sources.list"
cat >"$own/apt.conf" <<END
APT::Architecture "arm64";
APT::Architectures "arm64";
APT::Sandbox::User "root";
Acquire::Languages "none";
Dir::Etc::sourcelist "$own/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State::lists "$own/lists";
Dir::State::status "/dev/null";
Dir::Cache "$own/cache";
END
export APT_CONFIG="$own/apt.conf"
apt-get -qq update
(cd "$own" && apt-get -qq download libelf-dev zlib1g-dev libzstd-dev)
for package in "$own"/*.deb; do
	dpkg-deb -x "$package" "$own/unpacked"
done
mkdir -p target
rm -rf $libraries
mv "$own/unpacked" $libraries
