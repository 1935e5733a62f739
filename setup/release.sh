#!/bin/sh
# Gathers a release in dist/ of what `make deb agent-arm64` built: the wheel, the Debian packages,
# static agents of both processors, the checksums of all these (SHA256SUMS), and the notes, which
# are the section of CHANGELOG.md for this version. Tags nothing, and sends nothing anywhere.
set -eu
cd "$(dirname "$0")/.."
fail() {
	echo "setup/release.sh: $1" >&2
	exit 3
}
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml | head -n 1)
for manifest in agent/Cargo.toml agent/uploader/Cargo.toml; do
	grep -q "^version = \"$version\"$" $manifest || fail "$manifest is not of version $version"
done
[ -z "$(git status --porcelain)" ] || fail "there are changes that are not committed"
notes=dist/notes-$version.md
awk -v heading="## $version" '/^## / { wanted = $0 == heading; next } wanted' CHANGELOG.md >"$notes"
grep -q . "$notes" || fail "CHANGELOG.md has no section \"## $version\""
built=${CARGO_TARGET_DIR:-target}
for architecture in x86_64 aarch64; do
	for program in joj-agent joj-uploader; do
		binary=$built/$architecture-unknown-linux-gnu/release/$program
		[ "$program $architecture" != "joj-uploader aarch64" ] || continue
		! readelf -l "$binary" | grep -q INTERP || fail "$binary is not static"
		cp "$binary" "dist/$program-$version-$architecture"
	done
done
cd dist
rm -f SHA256SUMS
sha256sum -- *.whl *.deb joj-* "notes-$version.md" >SHA256SUMS
echo "setup: release $version in dist/:"
ls -sh
echo "setup: when it is good: git tag -a -F dist/notes-$version.md v$version"
