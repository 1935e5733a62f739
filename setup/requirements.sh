#!/bin/sh
# Compiles requirements.txt, the lock of all Python packages, from pyproject.toml: versions, markers
# and hashes, and no addresses of a registry. What is locked stays as it is; --upgrade takes the
# newest versions.
#
#     setup/requirements.sh [--upgrade]
#
# The lock has three parts, each without what stands in those before it, so that one can install the
# first alone (setup/deb.sh) or all but the last (setup/python.sh): setup/locked.sh prints them.
set -eu
cd "$(dirname "$0")/.."
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
python3 -m venv "$tools/venv"
"$tools/venv/bin/pip" install -q uv
# Without its extras in the lock, pip 23 asks for the newest version of a package, and refuses it.
# uv reads the versions that are locked in its own output file.
cp requirements.txt "$tools/all.txt"
compile() {
	output=$1
	shift
	"$tools/venv/bin/uv" pip compile pyproject.toml "$@" --output-file "$tools/$output" \
		--quiet --generate-hashes --no-emit-index-url --no-header --no-annotate \
		--universal --python-version 3.11 --no-strip-extras
}
develop="--extra cluster --group build --group test --group docs"
# shellcheck disable=SC2086 # options
compile all.txt --extra fleet $develop --extra spark "$@"
compile run.txt --extra fleet --constraint "$tools/all.txt"
# shellcheck disable=SC2086 # options
compile develop.txt --extra fleet $develop --constraint "$tools/all.txt"
# Packages of the last file that are in none of the others. A package begins at the left.
rest() {
	awk 'FNR == 1 { file++ }
		/^[a-z0-9]/ { name = $1; sub(/[=;].*/, "", name) }
		file < last { seen[name]; next }
		!(name in seen)' last=$# "$@"
}
{
	echo "# Every Python package by version and hash, of pyproject.toml (make requirements)."
	echo
	echo "# part: run"
	cat "$tools/run.txt"
	echo
	echo "# part: develop"
	rest "$tools/run.txt" "$tools/develop.txt"
	echo
	echo "# part: full"
	rest "$tools/run.txt" "$tools/develop.txt" "$tools/all.txt"
} >"$tools/requirements.txt"
mv "$tools/requirements.txt" requirements.txt
