#!/bin/sh
# Makes a Debian package of a staged folder: adds its size, gives no file a time after
# SOURCE_DATE_EPOCH or rights by this user's umask, and packs it, so that the same files give the
# same bytes.
#
#     setup/pack-deb.sh STAGE FILE
set -eu
stage=$1
deb=$2
# shellcheck disable=SC2016 # fields of awk's
sizes='{ kib += int(($1 + 1023) / 1024) } END { print "Installed-Size: " kib }'
find "$stage" -mindepth 2 -type f -printf '%s\n' | awk "$sizes" >>"$stage/DEBIAN/control"
chmod -R u=rwX,go=rX "$stage"
find "$stage" -newermt "@$SOURCE_DATE_EPOCH" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group -Zzstd --threads-max=1 --build "$stage" "$deb" >/dev/null
echo "setup: $deb, $(du -m "$deb" | cut -f 1) MB"
