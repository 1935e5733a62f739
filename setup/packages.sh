#!/bin/sh
# Installs the Debian packages of the lists it is given (files beside it): as root by itself,
# otherwise by printing the one line to run, with exit code 3.
set -eu
cd "$(dirname "$0")"
wanted=$(sed 's/#.*//' "$@")
# shellcheck disable=SC2086 # a list of names
states=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' $wanted 2>/dev/null || true)
missing=
for package in $wanted; do
	# A python3 that did not come from a package is as good.
	case $package in
	python3 | python3-venv) python3 -c 'import venv, ensurepip' 2>/dev/null && continue ;;
	esac
	printf '%s\n' "$states" | grep -qx "$package installed" || missing="$missing $package"
done
if [ -z "$missing" ]; then
	echo "setup: Debian packages of $*: all there"
	exit 0
fi
line="apt-get update && apt-get install -y --no-install-recommends$missing"
if [ "$(id -u)" != 0 ]; then
	echo "setup: Debian packages are missing. Run this line, then make again:" >&2
	echo "    sudo sh -c '$line'" >&2
	exit 3
fi
echo "setup: installing$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -q >/dev/null
# shellcheck disable=SC2086 # a list of names
apt-get install -y -q --no-install-recommends $missing >/dev/null
