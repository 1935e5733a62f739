#!/bin/sh
# Makes .venv with the packages of requirements.txt but those of its part `full`, by version and
# hash, and the command joj.
# Does nothing when neither requirements.txt nor pyproject.toml changed since.
set -eu
cd "$(dirname "$0")/.."
mark=.venv/complete
want=$(cat requirements.txt pyproject.toml | sha256sum)
if [ -f "$mark" ] && [ "$(cat "$mark")" = "$want" ]; then
	echo "setup: Python environment: all there"
	exit 0
fi
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
	echo "setup: $(python3 --version) is too old: Python 3.11 or newer is needed" >&2
	exit 3
}
[ ! -L .venv ] || {
	echo "setup: .venv is a link, and what it leads to would be cleared: rm .venv" >&2
	exit 2
}
echo "setup: making the Python environment .venv"
python3 -m venv --clear .venv
# What is imported is compiled then: most modules never are, and all would take half a minute.
setup/locked.sh run develop >.venv/locked.txt
.venv/bin/pip install -q --disable-pip-version-check --no-compile --require-hashes \
	-r .venv/locked.txt
.venv/bin/pip install -q --disable-pip-version-check --no-build-isolation --no-deps -e .
echo "$want" >"$mark"
