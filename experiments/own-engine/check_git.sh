#!/bin/sh
# Judges what a power cut left of a Git repository: what is there passes git fsck, and the commit
# that was acknowledged last, to which all others lead, is in the history of main.
last=
while read -r hash; do
	last=$hash
done <"$JOJ_ACKED"
# Until a commit was acknowledged nothing is promised.
[ "$last" ] || exit 0
if ! git fsck --no-dangling 2>&1; then
	echo "git fsck finds damage; acknowledged was $last"
	exit 2
fi
if ! git merge-base --is-ancestor "$last" main 2>&1; then
	echo "main does not have the acknowledged commit $last"
	exit 1
fi
