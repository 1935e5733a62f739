#!/bin/sh
# Installs the Debian packages of setup/packages.txt: as root by itself, otherwise by printing the
# one line to run. Says nothing to do when nothing is.
set -eu
cd "$(dirname "$0")"
missing=
# shellcheck disable=SC2013 # one name a line
for package in $(sed 's/#.*//' packages.txt); do
	state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
	# A python3 that did not come from a package is as good.
	case $package in
	python3 | python3-venv) python3 -c 'import venv, ensurepip' 2>/dev/null && continue ;;
	esac
	[ "$state" = installed ] || missing="$missing $package"
done
if [ -z "$missing" ]; then
	echo "setup: Debian packages: all there"
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
# shellcheck disable=SC2086 # a list of words
apt-get install -y -q --no-install-recommends $missing >/dev/null
