#!/bin/sh
# Compiles requirements.txt from pyproject.toml: versions and hashes, no download addresses.
set -eu
cd "$(dirname "$0")/.."
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
python3 -m venv "$tools/venv"
"$tools/venv/bin/pip" install -q uv
echo hatchling >"$tools/extra.in"
{
	echo '# Every Python package by version and hash, compiled from pyproject.toml'
	echo '# (make requirements).'
	"$tools/venv/bin/uv" pip compile pyproject.toml "$tools/extra.in" \
		--extra test --extra cluster --extra fleet \
		--quiet --generate-hashes --no-emit-index-url --no-header --no-annotate \
		--python-version 3.11
} >"$tools/requirements.txt"
mv "$tools/requirements.txt" requirements.txt
