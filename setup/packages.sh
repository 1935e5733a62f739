#!/bin/sh
# Installs the Debian packages of the lists it is given (files beside it): as root by itself,
# otherwise by printing the one line to run, with exit code 3. Of `a | b` one is enough; the first
# that the archive has is installed.
set -eu
cd "$(dirname "$0")"
wanted=$(sed 's/#.*//; s/ *| */|/g' "$@")
# shellcheck disable=SC2046 # a list of names
states=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' $(echo "$wanted" | tr '|' ' ') \
	2>/dev/null || true)
missing=
for package in $wanted; do
	# A python3 or an npm that did not come from a package is as good. Debian's npm cannot be
	# installed beside a nodejs of another origin.
	case $package in
	python3 | python3-venv) python3 -c 'import venv, ensurepip' 2>/dev/null && continue ;;
	npm) npm --version >/dev/null 2>&1 && continue ;;
	esac
	printf '%s\n' "$states" | grep -qxE "($package) installed" || missing="$missing $package"
done
if [ -z "$missing" ]; then
	echo "setup: Debian packages of $*: all there"
	exit 0
fi
offered() {
	for package in $missing; do
		found=
		for name in $(echo "$package" | tr '|' ' '); do
			[ -z "$found" ] || break
			[ -z "$(apt-cache madison "$name" 2>/dev/null)" ] || found=$name
		done
		printf ' %s' "${found:-${package%%|*}}"
	done
}
line="apt-get update && apt-get install -y --no-install-recommends$(offered)"
if [ "$(id -u)" != 0 ]; then
	echo "setup: Debian packages are missing. Run this line, then make again:" >&2
	echo "    sudo sh -c '$line'" >&2
	exit 3
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -q >/dev/null
missing=$(offered)
echo "setup: installing$missing"
# shellcheck disable=SC2086 # a list of names
apt-get install -y -q --no-install-recommends $missing >/dev/null
