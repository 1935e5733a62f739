#!/bin/sh
# Compiles requirements.txt from pyproject.toml: versions and hashes, no download addresses. Also
# setup/requirements-run.txt, the part of it that joj needs where nothing is tested (setup/deb.sh),
# and setup/requirements-full.txt, what the full tier of tests needs beside it.
set -eu
cd "$(dirname "$0")/.."
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
python3 -m venv "$tools/venv"
"$tools/venv/bin/pip" install -q uv
echo hatchling >"$tools/extra.in"
compile() {
	"$tools/venv/bin/uv" pip compile pyproject.toml "$@" \
		--quiet --generate-hashes --no-emit-index-url --no-header --no-annotate \
		--python-version 3.11
}
{
	echo '# Every Python package by version and hash, compiled from pyproject.toml'
	echo '# (make requirements).'
	compile "$tools/extra.in" --extra test --extra docs --extra cluster --extra fleet
} >"$tools/requirements.txt"
{
	echo '# The Python packages of requirements.txt that joj needs to run (make requirements).'
	compile --constraint "$tools/requirements.txt" --extra fleet
} >"$tools/requirements-run.txt"
{
	echo '# Spark, for make test-all (make requirements).'
	compile --constraint "$tools/requirements.txt" --extra spark
} >"$tools/requirements-full.txt"
mv "$tools/requirements.txt" requirements.txt
mv "$tools/requirements-full.txt" setup/requirements-full.txt
mv "$tools/requirements-run.txt" setup/requirements-run.txt
