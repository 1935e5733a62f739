#!/bin/sh
# Tries this checkout on a fresh machine of another release: makes a chroot by debootstrap, clones
# HEAD into it, and runs a command in the clone. Ends with the command's exit code.
#
#     setup/host.sh SUITE DIR COMMAND...
#     setup/host.sh trixie /var/tmp/trixie make run
#     setup/host.sh trixie /var/tmp/trixie .venv/bin/joj verify attribution
#     rm -rf --one-file-system /var/tmp/trixie
#
# DIR is made where it is not there (300 MB; 4 GB after make run, 6 GB after make test) and kept, so
# that the next command finds what this one installed and built; the clone, DIR/root/jojlab, is
# brought to HEAD each time. Needs root, debootstrap and git.
#
# The packages come from the archive that this machine's apt has Debian from, or from MIRROR, and
# are checked by KEYRING; of its COMPONENTS, where that is not main alone. A release that
# debootstrap does not know is made by its SCRIPT: gutsy is that of Ubuntu's. This machine gives its
# kernel, with /proc, /sys and /dev, its toolchain of Rust, and what it trusts and asks by:
# certificates, names, apt's and the environment's proxies. What is mounted is so for the command
# alone, and what it leaves running is ended.
set -eu
fail() {
	echo "setup/host.sh: $1" >&2
	exit 3
}
if [ $# -lt 3 ]; then
	sed -n '5,8s/^#     //p' "$0" >&2
	exit 2
fi
[ "$(id -u)" = 0 ] || fail "a chroot needs root"
for tool in debootstrap git rustc; do
	command -v "$tool" >/dev/null || fail "$tool is missing"
done
if [ -z "${JOJ_HOST_MOUNTS:-}" ]; then
	JOJ_HOST_MOUNTS=own exec unshare --mount --propagation private "$0" "$@"
fi
suite=$1
dir=$(realpath -m "$2")
shift 2
cd "$(dirname "$0")/.."

# In an environment of its own, but for what the network is asked by.
in_chroot() (
	names='^(https?_proxy|no_proxy|PIP_CERT|PIP_INDEX_URL|SSL_CERT_FILE)='
	passed=$(env | grep -iE "$names" || true)
	set -f
	IFS='
'
	# shellcheck disable=SC2086 # a variable a line
	exec env -i $passed HOME=/root LANG=C.UTF-8 \
		PATH=/opt/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		chroot "$dir" "$@" 9<&-
)

# One command at a time, as it ends what runs in there.
mkdir -p "$dir"
exec 9<"$dir"
flock -n 9 || fail "another command runs in $dir"

if [ ! -e "$dir/etc/joj-host" ]; then
	# shellcheck disable=SC2016 # a field of apt's
	mirror=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' \
		'Origin: Debian' 'Label: Debian' | head -n 1)}
	[ -n "$mirror" ] || fail "apt knows no archive of Debian: apt-get update, or set MIRROR"
	[ -z "$(ls -A "$dir")" ] || fail "$dir is neither empty nor a chroot of ours"
	echo "setup: debootstrap $suite in $dir"
	# COMPONENTS and SCRIPT are names of debootstrap's own, too.
	env -u COMPONENTS -u SCRIPT debootstrap --variant=minbase --include=ca-certificates,make \
		--keyring="${KEYRING:-/usr/share/keyrings/debian-archive-keyring.gpg}" \
		--components="${COMPONENTS:-main}" "$suite" "$dir" "$mirror" ${SCRIPT:+"$SCRIPT"} \
		>"$dir/debootstrap.log" 2>&1 || {
		tail -n 5 "$dir/debootstrap.log" >&2
		fail "debootstrap cannot make $suite of $mirror"
	}
	apt-config dump | grep -E '^Acquire::(https?::|Check-)' \
		>"$dir/etc/apt/apt.conf.d/99host" || true
	if [ -d /usr/local/share/ca-certificates ]; then
		cp -rT /usr/local/share/ca-certificates "$dir/usr/local/share/ca-certificates"
		in_chroot update-ca-certificates >/dev/null 2>&1 || fail "it takes no certificates"
	fi
	echo "$suite" >"$dir/etc/joj-host"
fi
made=$(cat "$dir/etc/joj-host")
[ "$made" = "$suite" ] || fail "$dir is $made, not $suite"
cp -L /etc/resolv.conf /etc/hosts "$dir/etc/"

clone=$dir/root/jojlab
if [ -d "$clone" ]; then
	git -C "$clone" fetch -q --depth 1 "file://$PWD" HEAD
	git -C "$clone" reset -q --hard FETCH_HEAD
else
	git clone -q --depth 1 "file://$PWD" "$clone"
fi

# A root that is no mount point is in no table of mounts (proc_pid_mountinfo(5)), and so statx(2)'s
# mount of every file in it is one that nobody in there finds.
mount --bind "$dir" "$dir"
mount -t proc proc "$dir/proc"
mount --rbind /sys "$dir/sys"
mount --rbind /dev "$dir/dev"
mount -t tmpfs tmpfs "$dir/run"
mkdir -p "$dir/opt/rust"
mount --bind "$(rustc --print sysroot)" "$dir/opt/rust"
mount -o remount,bind,ro "$dir/opt/rust"

end() {
	for process in /proc/[0-9]*; do
		root=$(readlink "$process/root" 2>/dev/null) || continue
		[ "$root" != "$dir" ] || kill -9 "${process#/proc/}" || true
	done
	in_chroot apt-get clean || true
}
trap end EXIT
trap 'exit 130' INT TERM HUP
# An installation that was interrupted, by Ctrl-C for one.
if [ -n "$(in_chroot dpkg --audit)" ]; then
	in_chroot sh -c 'dpkg --configure -a; apt-get -y -q --fix-broken install' >/dev/null 2>&1
fi
# shellcheck disable=SC2016 # $@ is the inner shell's
in_chroot /bin/sh -c 'cd /root/jojlab && exec "$@"' sh "$@"
