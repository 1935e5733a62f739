#!/bin/sh
# Puts records into an LMDB environment, a transaction each, and acknowledges each when mdb_load has
# returned.
set -e
number=100
while [ $number -lt 124 ]; do
	printf "key-%d\nvalue-%d-%0400d\n" $number $number $number | mdb_load -T -n store
	echo $number >&"$JOJ_ACKS"
	number=$((number + 1))
done
