#!/bin/sh
# Makes commits with Git, and acknowledges each by its hash when `git commit` has returned. Words
# are settings of Git, such as core.fsync=all; the word sync syncs the empty repository first, as
# `git init` syncs nothing.
set -e
git init -q -b main .
for word in user.name=a user.email=b gc.auto=0 maintenance.auto=false "$@"; do
	case $word in
	sync) ;;
	*) git config "${word%%=*}" "${word#*=}" ;;
	esac
done
case " $* " in
*" sync "*) sync ;;
esac
number=0
while [ $number -lt 8 ]; do
	printf "contents %0${number}00d\n" $number >file-$number
	git add .
	git commit -qm "commit $number"
	git rev-parse HEAD >&"$JOJ_ACKS"
	number=$((number + 1))
done
