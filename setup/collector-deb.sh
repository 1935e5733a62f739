#!/bin/sh
# Makes dist/jojlab-collector_VERSION_amd64.deb of what `make collector` built: the collector and
# its uploader, which are static and need nothing, the unit that runs them, and its configuration.
set -eu
cd "$(dirname "$0")/.."
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' agent/Cargo.toml | head -1)
built=${CARGO_TARGET_DIR:-target}/x86_64-unknown-linux-gnu/release
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
chmod 755 "$stage"
mkdir -p "$stage/DEBIAN" "$stage/usr/bin" "$stage/usr/lib/systemd/system" "$stage/etc/jojlab" \
	"$stage/usr/share/doc/jojlab-collector" dist
install -m 755 "$built/joj-agent" "$built/joj-uploader" "$stage/usr/bin"
sed 's|/usr/local/bin|/usr/bin|' setup/joj-collector.service \
	>"$stage/usr/lib/systemd/system/joj-collector.service"
cat >"$stage/etc/jojlab/collector.env" <<'EOF'
# Arguments of `joj-agent collect` (joj-agent collect --help). The token of this device, as
# `joj fleet enrol` prints it, belongs into /etc/jojlab/token, which only root may read. Then:
#   systemctl enable --now joj-collector
ARGUMENTS=--server https://fleet.example
EOF
cp LICENSE "$stage/usr/share/doc/jojlab-collector/copyright"
cp kernel/LICENSE "$stage/usr/share/doc/jojlab-collector/copyright.kernel"
cp target/linked/licences.txt "$stage/usr/share/doc/jojlab-collector/copyright.linked"
cat >"$stage/DEBIAN/control" <<EOF
Package: jojlab-collector
Version: $version
Architecture: amd64
Maintainer: The authors of jojlab <jojlab@localhost>
Section: admin
Priority: optional
Description: collects what disks and SQLite do on a device, for a fleet
 Sums of block I/O by file kind and process, commits of SQLite by database, and
 life spans of files, seen by eBPF on an unchanged kernel and sent to a server
 of jojlab (joj fleet serve). Runs as a service without root.
EOF
echo /etc/jojlab/collector.env >"$stage/DEBIAN/conffiles"
for script in postinst prerm postrm; do
	printf '#!/bin/sh\nset -e\n' >"$stage/DEBIAN/$script"
	chmod 755 "$stage/DEBIAN/$script"
done
cat >>"$stage/DEBIAN/prerm" <<'EOF'
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
	systemctl disable --now joj-collector >/dev/null 2>&1 || true
fi
EOF
# A newer collector takes the spool up where the older one left it.
cat >>"$stage/DEBIAN/postinst" <<'EOF'
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart joj-collector || true
fi
EOF
cat >>"$stage/DEBIAN/postrm" <<'EOF'
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
if [ "$1" = purge ]; then
	rm -rf /etc/jojlab/token /var/lib/private/joj-collector /var/lib/joj-collector
	rmdir /etc/jojlab 2>/dev/null || true
fi
EOF
setup/pack-deb.sh "$stage" "dist/jojlab-collector_${version}_amd64.deb"
