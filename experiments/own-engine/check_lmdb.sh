#!/bin/sh
# Judges what a power cut left of an LMDB environment: mdb_dump reads it, and it has each record
# that was acknowledged.
if [ -s store ]; then
	found=$(mdb_dump -n -p store 2>&1) || {
		echo "mdb_dump: $found"
		exit 2
	}
fi
while read -r number; do
	case $found in
	*" key-$number
 value-$number-"*) ;;
	*)
		echo "record $number was acknowledged, and is not there"
		exit 1
		;;
	esac
done <"$JOJ_ACKED"
