#!/bin/sh
# Refuses a commit message whose first line is wider than 72 columns, or whose second is not empty.
# Git's hook commit-msg calls it with the message's file (.pre-commit-config.yaml).
set -eu
awk 'NR == 1 && length > 72 { print "the subject has " length " columns, at most 72"; bad = 1 }
	NR == 2 && length { print "the second line of a message is empty"; bad = 1 }
	END { exit bad }' "$1" >&2
