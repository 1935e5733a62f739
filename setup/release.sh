#!/bin/sh
# Gathers a release in dist/ of what `make deb` built: the wheel and the Debian packages, which are
# there; of each processor a tar for devices, with the static agent, which holds the tracer; the
# SBOM; the notes, which are the section of CHANGELOG.md for this version; and the checksums of all
# these (SHA256SUMS). Tags nothing, and sends nothing anywhere. The same commit, toolchain and
# packages give the same bytes, wherever they are built.
set -eu
cd "$(dirname "$0")/.."
umask 022
fail() {
	echo "setup/release.sh: $1" >&2
	exit 3
}
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml | head -n 1)
for manifest in agent/Cargo.toml agent/uploader/Cargo.toml; do
	grep -q "^version = \"$version\"$" $manifest || fail "$manifest is not of version $version"
done
[ -z "$(git status --porcelain)" ] || fail "there are changes that are not committed"
section() {
	awk -v heading="## $1" '/^## / { wanted = $0 == heading; next } wanted' CHANGELOG.md
}
notes=dist/notes-$version.md
section "$version" >"$notes"
grep -q . "$notes" || fail "CHANGELOG.md has no section \"## $version\""
section Unreleased | grep -q . &&
	echo "setup: the notes do not tell what CHANGELOG.md has under Unreleased" >&2

grep -q '^Source = ' pyproject.toml ||
	echo "setup: the wheel's README has no links: [project.urls] has no Source" >&2

cure=
for file in joj_wal.so joj_redo.so joj-redo-leave; do
	cure="$cure vfs/build/$file vfs/build/arm64/$file"
done
for file in joj-agent joj-agent-arm64 licences.txt $cure; do
	.venv/bin/python -m zipfile -l dist/jojlab-*.whl | grep -q "^jojlab/data/$file " ||
		fail "the wheel has no $file: make release"
done
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
for architecture in x86_64 aarch64; do
	agent=${CARGO_TARGET_DIR:-target}/$architecture-unknown-linux-gnu/release/joj-agent
	! readelf -l "$agent" | grep -q INTERP || fail "$agent is not static"
	name=joj-agent-$version-$architecture
	mkdir "$stage/$name"
	install -m 755 "$agent" "$stage/$name"
	install -m 644 LICENSE docs/android.md target/linked/licences.txt "$stage/$name"
	install -m 644 kernel/LICENSE "$stage/$name/LICENSE.kernel"
	tar --create --directory "$stage" --sort=name --format=gnu --owner=0 --group=0 \
		--numeric-owner --mtime="@$SOURCE_DATE_EPOCH" "$name" |
		gzip -9n >"dist/$name.tar.gz"
done
cp target/linked/jojlab.cdx.json "dist/jojlab-$version.cdx.json"
cd dist
rm -f SHA256SUMS
sha256sum -- * >SHA256SUMS
echo "setup: release $version in dist/:"
ls -sh
echo "setup: when it is good: git tag -a -F dist/notes-$version.md v$version"
