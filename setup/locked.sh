#!/bin/sh
# Prints parts of requirements.txt, as files for pip's option -r: run (what joj needs), develop
# (what tests and documents need beside it), full (what `make test-all` needs beside both).
#
#     setup/locked.sh run develop
set -eu
cd "$(dirname "$0")/.."
awk -v parts=" $* " '/^# part: / { wanted = index(parts, " " $3 " ") } wanted' requirements.txt
